"""An entity of a Wikidata dump: the fast decoder against a slow one, the anchored tail against the whole line."""

import json
import re
from typing import Any
from unittest import mock

import msgspec

from temporalwiki.builders.wikidata.entities import Entity, EntityReader, ItemStatement, NotAnEntity, first_day
from temporalwiki.builders.wikidata.extract import ITEM_END, ITEM_END_LENGTH, ITEM_START

from fuzz.json_text import mutate as mutate
from tiny_dumps import item, statement, time, value

_TAIL = {"pageid": 1, "ns": 0, "lastrevid": 5, "modified": "2021-11-01T00:00:00Z"}


def _line(entity: dict[str, Any]) -> bytes:
    return json.dumps(entity, separators=(",", ":")).encode()


def _snak(kind: str) -> dict[str, Any]:
    return value(2) | {"snaktype": kind}


SEEDS = (
    _line(item(1, {"P1": [statement(value(2), id="Q1$x")]}, "Ann", "Ann", **_TAIL)),
    _line(
        item(
            3,
            {
                "P1": [statement(value(2), "preferred"), statement(value(4)), statement(value(5), "deprecated")],
                "P2": [statement(_snak("somevalue")), statement(_snak("novalue"))],
                "P3": [statement(value(6), P580=[time("+2014-05-00T00:00:00Z", 10)], P582=[_snak("somevalue")])],
            },
            "Bo",
            **_TAIL,
        )
    ),
    b'{"type":"item","id":"Q7","labels":{"de":{"language":"de","value":"D"},"mul":{"value":"M"}},"claims":[]}',
    b'{"type":"property","id":"P7","labels":{"en":{"language":"en","value":"p"}},"lastrevid":1}',
    b'{"type":"lexeme","id":"L7","lemmas":{}}',
    b'{"type":"item","id":"Q7","redirect":"Q8"}',
    b'{"id":"Q7","missing":""}',
)
FOUND: tuple[bytes, ...] = (
    b'{"type":"\xd7"',  # no UTF-8
)
WORDS = (
    *b'{"type":"item","id":"Q1", ,"lastrevid":5,"modified":"x"} "claims":{ "labels":{ "rank": "preferred"'.split(),
    *b'"deprecated" "snaktype":"value" "datavalue":{ "numeric-id":1 "id":"Q2" "entity-type":"item"'.split(),
    *b'"type":"wikibase-entityid" "qualifiers":{"P580":[ "time":"+2014-05-00T00" "precision":9 \\u0022 \\"'.split(),
    *b"\\\\ null [] {} 1e5 -1".split(),
    *(b"9" * 18, b"9" * 20, b"[" * 50),
)
_READER = EntityReader("enwiki", "en")
_LANGUAGES = ("en", "mul", "en-gb", "en-us", "en-ca")


def check(data: bytes) -> None:
    entity = _read(data)
    if isinstance(entity, Entity):
        with mock.patch.object(_READER, "_decoder", _Refusing()):
            assert _read(data) == entity, "statement by statement, another entity"
        slow = _slowly(data)
        if slow is not None:
            _compare(entity, slow)
            tail = ITEM_END.search(data, max(0, len(data) - ITEM_END_LENGTH))
            if tail and (head := ITEM_START.match(data)):
                told = "item", int(head[1]), int(tail[1])
                assert (entity.kind, entity.number, entity.lastrevid) == told, "the line's ends tell of another item"
    first_day(data.decode("utf-8", "replace"), len(data) % 15)


def _read(data: bytes) -> Entity | str:
    try:
        return _READER.read(data.strip())
    except NotAnEntity as problem:
        assert re.fullmatch(r"[a-z_]{1,30}", problem.reason), problem.reason
        return problem.reason
    except msgspec.DecodeError:
        return "not JSON"


class _Refusing:
    """Replaces the strict decoder, so that every line goes to the lenient one."""

    def decode(self, _line: bytes) -> Any:
        raise msgspec.ValidationError


def _slowly(data: bytes) -> Any:
    """The line as another library reads it; None where a key is there twice: readers may take either."""
    doubled = False

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal doubled
        doubled = doubled or len({key for key, _ in found}) < len(found)
        return dict(found)

    try:
        read = json.loads(data, object_pairs_hook=pairs)
    except (ValueError, RecursionError):  # numbers of thousands of digits
        return None
    return None if doubled else read


def _compare(entity: Entity, slow: dict[str, Any]) -> None:
    assert f"{'Q' if entity.kind == 'item' else 'P'}{entity.number}" == slow["id"]
    assert entity.lastrevid == slow.get("lastrevid", 0)
    labels, links, claims = (slow.get(name) for name in ("labels", "sitelinks", "claims"))
    labels, links = (of if isinstance(of, dict) else {} for of in (labels, links))  # [] stands for {}
    texts = [labels[code].get("value") for code in _LANGUAGES if labels.get(code)]
    assert entity.label == next((text for text in texts if text), None), "another label"
    assert entity.title == (links["enwiki"].get("title", "") if links.get("enwiki") is not None else None)
    if entity.kind != "item" or not isinstance(claims, dict):
        assert not entity.statements and not entity.dropped
        return
    total = sum(len(statements) for statements in claims.values())
    assert len(entity.statements) + sum(entity.dropped.values()) == total, "a statement is neither kept nor counted"
    preferred = {found.relation for found in entity.statements if found.rank == "preferred"}
    for found in entity.statements:
        assert found.best == (found.rank == "preferred") or found.relation not in preferred, "not the best rank"
        assert any(_says(one, found) for one in claims[f"P{found.relation}"]), f"no statement says {found}"


def _says(one: Any, found: ItemStatement) -> bool:
    try:
        snak = one["mainsnak"]
        value = snak["datavalue"]["value"]
        number = value.get("numeric-id") or int(value["id"][1:])
        of_statement = one.get("rank", "normal"), one.get("id", "")
    except (KeyError, TypeError, AttributeError, ValueError):
        return False
    is_value = snak.get("snaktype", "value") == "value" and value.get("entity-type") == "item"
    return is_value and number == found.object and of_statement == (found.rank, found.statement_id)
