"""Decode one line of a Wikidata JSON dump into an entity and its statements.

A fact (subject, relation, object) is the main snak of a best-rank statement whose value is an item. Qualifiers and
references are not facts about the subject. Earlier pipelines searched the JSON as text and took every item id in an
entity for an object; this module reads the JSON by its structure.
"""

import functools
import re
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from temporalwiki.builders.wikipedia.variants import label_variants

_LARGEST = 10**18 - 1  # ids have at most 18 digits
_ID = re.compile(r"[QP][1-9][0-9]{0,17}")
_MODIFIED = re.compile(r"20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-9:]{8}Z")
_TIME = re.compile(r"([+-]?)(\d{1,16})-(\d\d)-(\d\d)T")
# Why a statement is dropped. A statement that one of better rank hides is kept, and counted as not_best_rank.
DROPPED = ("bad_property", "deprecated", "no_value", "not_an_item", "unexpected_structure", "unknown_rank")


# Millions of these structs are made, and none is part of a reference cycle: gc=False saves the garbage collector time.
class _DataValue(msgspec.Struct, gc=False):
    value: msgspec.Raw
    type: str = ""


class _Snak(msgspec.Struct, gc=False):
    snaktype: str = "value"
    datavalue: _DataValue | None = None


class _Dates(msgspec.Struct, gc=False):
    P580: list[_Snak] = []  # start time
    P582: list[_Snak] = []  # end time
    P585: list[_Snak] = []  # point in time


class _EntityId(msgspec.Struct, gc=False):
    entity_type: str = msgspec.field(name="entity-type", default="")
    numeric_id: Annotated[int, msgspec.Meta(ge=1, le=_LARGEST)] | None = msgspec.field(name="numeric-id", default=None)
    id: str | None = None


class _MainValue(msgspec.Struct, gc=False):
    value: _EntityId | str  # any other JSON object is decoded as an _EntityId without members
    type: str = ""


class _MainSnak(msgspec.Struct, gc=False):
    snaktype: str = "value"
    datavalue: _MainValue | None = None


class _Statement(msgspec.Struct, gc=False):
    mainsnak: _MainSnak
    rank: str = "normal"
    id: str = ""
    qualifiers: _Dates | list[Any] | None = None


class _AnyStatement(msgspec.Struct, gc=False):
    """A statement with any kind of value, which is only decoded if it should be an item."""

    mainsnak: _Snak
    rank: str = "normal"
    id: str = ""
    qualifiers: _Dates | list[Any] | None = None


class _Time(msgspec.Struct, gc=False):
    time: str = ""
    precision: int = 11  # 11 a day, 10 a month, 9 a year, 8 a decade, 7 a century, 6 a millennium


class _Text(msgspec.Struct, gc=False):
    value: str = ""


class _Sitelink(msgspec.Struct, gc=False):
    title: str = ""


_any_statement = msgspec.json.Decoder(_AnyStatement)
_entity_id = msgspec.json.Decoder(_EntityId)
_time = msgspec.json.Decoder(_Time)


class ItemStatement(NamedTuple):
    """A statement that is not deprecated and whose value is an item; it is a fact if it is of best rank."""

    relation: int
    object: int
    best: bool
    rank: str
    statement_id: str
    start_day: int | None  # as ``first_day`` has it; 0 is an unknown day
    end_day: int | None
    point_day: int | None


class Entity(msgspec.Struct, frozen=True):
    """An item (Q) or property (P), reduced to what the dataset needs."""

    kind: str  # "item" or "property"
    number: int
    lastrevid: int
    label: str | None
    aliases: list[str]
    title: str | None  # title of its page in the wiki
    modified: str = ""  # time of the revision, as 2021-12-01T08:15:30Z; missing in dumps of 2014
    values: list[Any] = []  # the fields of all its statements in a row; a tuple for each would take time
    dropped: dict[str, int] = {}

    @property
    def statements(self) -> list[ItemStatement]:
        """Its statements that are not dropped."""
        return list(map(ItemStatement._make, zip(*[iter(self.values)] * len(ItemStatement._fields), strict=True)))


class NotAnEntity(ValueError):
    """Raised for a line that is neither an item nor a property; ``reason`` is the key under which it is counted."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def label_languages(language: str) -> tuple[str, ...]:
    """Return the languages whose labels are used, best first.

    These are the wiki's, its base language, their variants, "mul", and then English.
    """
    base = language.split("-")[0]
    chain = [language, *label_variants(language), base, *label_variants(base), "mul", "en"]
    if language == "en":
        chain += ["en-gb", "en-us", "en-ca"]
    return tuple(dict.fromkeys(chain))


class EntityReader:
    """Decodes lines for one wiki: names in its language (with fallbacks), its sitelinks and statements."""

    def __init__(self, wiki: str, language: str) -> None:
        languages = label_languages(language)
        fields = {f"l{i}": code for i, code in enumerate(languages)}
        labels = msgspec.defstruct("Labels", [(name, _Text | None, None) for name in fields], rename=fields)
        some = list[_Text] | dict[str, _Text] | None  # some dumps number them
        aliases = msgspec.defstruct("Aliases", [(name, some, None) for name in fields], rename=fields)
        sitelinks = msgspec.defstruct("Sitelinks", [("page", _Sitelink | None, None)], rename={"page": wiki})
        self._languages = list(fields)
        self._own = languages.index("mul")  # languages after it are only used if none before has a label
        self._decoder, self._lenient = (
            msgspec.json.Decoder(
                msgspec.defstruct(
                    "Entity",
                    [
                        ("id", str, ""),
                        ("type", str, ""),
                        ("lastrevid", Annotated[int, msgspec.Meta(ge=0, le=_LARGEST)], 0),
                        ("modified", Any, None),
                        ("redirect", str | None, None),
                        ("missing", str | None, None),
                        ("labels", labels | list[Any] | None, None),
                        ("aliases", aliases | list[Any] | None, None),
                        ("claims", dict[str, list[statement]] | list[Any] | None, None),  # type: ignore[valid-type]
                        ("sitelinks", sitelinks | list[Any] | None, None),
                    ],
                )
            )
            for statement in (_Statement, msgspec.Raw)
        )

    def read(self, line: bytes) -> Entity:
        """Decode one line (one JSON object).

        Raises NotAnEntity, or msgspec.DecodeError if the line is not JSON in UTF-8. A statement with an unexpected
        structure is dropped and counted; the rest of its entity is kept.
        """
        try:
            return self._read(line)
        except UnicodeDecodeError as error:
            raise msgspec.DecodeError(f"not UTF-8: {error.reason}") from None

    def _read(self, line: bytes) -> Entity:
        try:
            raw: Any = self._decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raw = self._read_leniently(line)
        except RecursionError:
            raise NotAnEntity("unexpected_structure") from None
        if raw.redirect is not None:
            raise NotAnEntity("redirect")
        if raw.missing is not None:
            raise NotAnEntity("missing")
        if not _ID.fullmatch(raw.id):
            raise NotAnEntity(raw.type if re.fullmatch(r"[a-z]{1,20}", raw.type) else "no_id")
        label, aliases = None, []
        for number, name in enumerate(self._languages):
            if label is not None and number > self._own:
                break
            if found := getattr(raw.aliases, name, None):
                aliases += [alias.value for alias in (found if isinstance(found, list) else found.values())]
            if label is None and (text := getattr(raw.labels, name, None)) is not None:
                label = text.value or None
        page = getattr(raw.sitelinks, "page", None)
        kind = "item" if raw.id[0] == "Q" else "property"
        title = page.title if page is not None else None
        modified = raw.modified if isinstance(raw.modified, str) and _MODIFIED.fullmatch(raw.modified) else ""
        entity = Entity(kind, int(raw.id[1:]), raw.lastrevid, label, aliases, title, modified)
        if kind == "item" and isinstance(raw.claims, dict):
            for relation, statements in raw.claims.items():
                _add_statements(entity, relation, statements)
        return entity

    def _read_leniently(self, line: bytes) -> Any:
        """Decode a line statement by statement: a statement with an unexpected structure becomes None."""
        try:
            raw: Any = self._lenient.decode(line)
        except (msgspec.ValidationError, RecursionError):
            raise NotAnEntity("unexpected_structure") from None
        if isinstance(raw.claims, dict):
            raw.claims = {relation: [_lenient_statement(s) for s in found] for relation, found in raw.claims.items()}
        return raw


def _lenient_statement(raw: msgspec.Raw) -> _AnyStatement | None:
    try:
        return _any_statement.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


@functools.lru_cache(1 << 16)
def _property(relation: str) -> int | None:
    return int(relation[1:]) if relation[:1] == "P" and _ID.fullmatch(relation) else None


def _add_statements(entity: Entity, relation: str, statements: Sequence[_Statement | _AnyStatement | None]) -> None:
    dropped = entity.dropped
    number = _property(relation) if len(relation) < 20 else None  # longer strings must not fill the cache
    if number is None:
        dropped["bad_property"] = dropped.get("bad_property", 0) + len(statements)
        return
    best, add = "normal", entity.values.extend
    for statement in statements:
        if statement is not None and statement.rank == "preferred":
            best = "preferred"
    for statement in statements:
        target = _item(statement)
        if statement is None or isinstance(target, str):
            reason = str(target)
            dropped[reason] = dropped.get(reason, 0) + 1
            continue
        start = end = point = None
        dates = statement.qualifiers
        if isinstance(dates, _Dates):
            if dates.P580:
                start = _earliest(dates.P580)
            if dates.P582:
                end = _earliest(dates.P582)
            if dates.P585:
                point = _earliest(dates.P585)
        rank = statement.rank
        add((number, target, rank == best, rank, statement.id, start, end, point))


def _item(statement: _Statement | _AnyStatement | None) -> int | str:
    """Return the number of the item that is a statement's value, or the reason why the statement is dropped."""
    if statement is None:
        return "unexpected_structure"
    rank = statement.rank
    if rank != "normal" and rank != "preferred":
        return "deprecated" if rank == "deprecated" else "unknown_rank"
    snak = statement.mainsnak
    value = snak.datavalue
    if value is None or snak.snaktype != "value":
        return "no_value"
    if value.type != "wikibase-entityid":
        return "not_an_item"
    target = value.value
    if not isinstance(target, _EntityId):
        if isinstance(target, str):
            return "unexpected_structure"
        try:
            target = _entity_id.decode(target)
        except msgspec.ValidationError:
            return "unexpected_structure"
    if target.entity_type != "item":
        return "not_an_item"
    number = target.numeric_id
    if number is not None:  # dumps before 2015 have no "id"
        return number
    text = target.id or ""
    return int(text[1:]) if text[:1] == "Q" and _ID.fullmatch(text) else "unexpected_structure"


def _earliest(snaks: Sequence[_Snak]) -> int | None:
    """Return the ``first_day`` of the earliest time of a qualifier.

    Returns 0 if a time is unknown and None without any time: "novalue" and values that are not times are ignored.
    """
    days: list[int] = []
    for snak in snaks:
        if snak.snaktype == "somevalue":
            return 0
        if snak.snaktype == "value" and snak.datavalue is not None and snak.datavalue.type == "time":
            try:
                value = _time.decode(snak.datavalue.value)
            except msgspec.ValidationError:
                continue
            if (day := first_day(value.time, value.precision)) is not None:
                days.append(day)
    return min(days, default=None)


def first_day(time: str, precision: int = 11) -> int | None:
    """Return the first day that a Wikidata time ("+2014-05-00T00:00:00Z") can mean, as the number YYYYMMDD.

    The precision says which parts of the time count. Years before 1 give negative numbers, years after 9999 count as
    9999, so that the number fits into 32 bits. Returns None if ``time`` is not a time.
    """
    match = _TIME.match(time)
    if not match:
        return None
    year, month, day = int(match[2]), int(match[3]), int(match[4])
    if match[1] == "-":
        return -min(year, 9_999) * 10_000 - 101
    if precision <= 10:
        day = 1
    if precision <= 9:
        month = 1
    if precision == 8:
        year = year // 10 * 10
    elif precision == 7:
        year = (year - 1) // 100 * 100 + 1
    elif precision == 6:
        year = (year - 1) // 1000 * 1000 + 1
    return min(year, 9_999) * 10_000 + max(month, 1) * 100 + max(day, 1)
