"""Facts out of one line of Wikidata JSON."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from temporalwiki.builders.wikidata import entities
from temporalwiki.builders.wikidata.entities import Entity, EntityReader, NotAnEntity, first_day, label_languages

from tiny_dumps import item, property_, statement, time, value


def read(entity: dict[str, Any], language: str = "en", wiki: str = "enwiki") -> Entity:
    return EntityReader(wiki, language).read(json.dumps(entity).encode())


def facts(claims: dict[str, list[dict[str, Any]]]) -> list[tuple[int, int]]:
    return [(s.relation, s.object) for s in read(item(1, claims)).statements if s.best]


def entity_value(**parts: Any) -> dict[str, Any]:
    return {"snaktype": "value", "datavalue": {"value": parts, "type": "wikibase-entityid"}}


NO_VALUE, SOME_VALUE = {"snaktype": "novalue"}, {"snaktype": "somevalue"}
STRING = {"snaktype": "value", "datavalue": {"value": "x", "type": "string"}, "datatype": "external-id"}
ITEM = {"entity-type": "item"}
LEXEME = entity_value(id="L7", **{"entity-type": "lexeme"})
PROPERTY = entity_value(id="P31", **{"entity-type": "property", "numeric-id": 31})
OF_2014 = entity_value(**ITEM, **{"numeric-id": 5})
NO_NUMBER = entity_value(**ITEM, id="Q5")
UNKNOWN = {"snaktype": "value", "datavalue": {"value": [1, {"a": None}], "type": "hologram"}, "datatype": "hologram"}

FACTS = {
    "normal statements": ([statement(value(5)), statement(value(6))], [5, 6]),
    "preferred ones hide normal ones": ([statement(value(5)), statement(value(6), "preferred")], [6]),
    "a preferred unknown value hides them, too": ([statement(value(5)), statement(SOME_VALUE, "preferred")], []),
    "deprecated ones never count": ([statement(value(5), "deprecated")], []),
    "deprecated beside normal": ([statement(value(5), "deprecated"), statement(value(6))], [6]),
    "no value and some value": ([statement(NO_VALUE), statement(SOME_VALUE)], []),
    "other datatypes": ([statement(STRING), statement(LEXEME), statement(PROPERTY), statement(UNKNOWN)], []),
    "a value as dumps of 2014 write it": ([statement(OF_2014)], [5]),
    "a value without a numeric id": ([statement(NO_NUMBER)], [5]),
    "qualifiers are not facts": ([statement(value(5), P642=[value(9)], P580=[value(8)])], [5]),
    "references are not facts": ([statement(value(5)) | {"references": [{"snaks": {"P248": [value(9)]}}]}], [5]),
    "an unknown rank": ([statement(value(5), "excellent"), statement(value(6))], [6]),
}


@pytest.mark.parametrize(("statements", "objects"), FACTS.values(), ids=FACTS)
def test_facts_are_main_snaks_of_best_rank_that_are_items(statements: list[Any], objects: list[int]) -> None:
    assert facts({"P54": statements}) == [(54, o) for o in objects]


@pytest.mark.fault("ranks that flip", "statements of all ranks", "best-rank statements are facts")
def test_rank_is_best_within_a_property_and_what_is_no_fact_is_counted_by_reason() -> None:
    claims = {"P1": [statement(value(5))], "P2": [statement(value(6), "preferred"), statement(value(7))]}
    assert facts(claims) == [(1, 5), (2, 6)]
    entity = read(item(1, {"P1": [statement(NO_VALUE), statement(STRING), statement(value(5), "deprecated")]}))
    assert entity.dropped == {"no_value": 1, "not_an_item": 1, "deprecated": 1}


def test_statement_id_rank_and_dates_are_kept() -> None:
    dates = {"P580": [time("+2012-00-00T00:00:00Z", 9)], "P582": [time("+2015-07-04T00:00:00Z")]}
    dates["P585"] = [time("+2014-06-00T00:00:00Z", 10)]
    [found] = read(item(1, {"P54": [statement(value(5), id="Q1$abc", **dates)]})).statements
    assert (found.statement_id, found.rank) == ("Q1$abc", "normal")
    assert (found.start_day, found.end_day, found.point_day) == (20120101, 20150704, 20140601)


ENDS = {
    "none": ([], None),
    "no end, said explicitly": ([{"snaktype": "novalue"}], None),
    "an unknown day": ([{"snaktype": "somevalue"}], 0),
    "the earliest of several": ([time("+2015-01-01T00:00:00Z"), time("+2014-01-01T00:00:00Z")], 20140101),
    "no time at all": ([value(5)], None),
}


@pytest.mark.parametrize(("snaks", "expected"), ENDS.values(), ids=ENDS)
def test_end_times(snaks: list[Any], expected: int | None) -> None:
    [found] = read(item(1, {"P54": [statement(value(5), P582=snaks)]})).statements
    assert found.end_day == expected


DAYS = {
    ("+2014-05-17T00:00:00Z", 11): 20140517,
    ("+2014-05-00T00:00:00Z", 10): 20140501,
    ("+2014-05-17T00:00:00Z", 10): 20140501,
    ("+2014-00-00T00:00:00Z", 9): 20140101,
    ("+00000002014-12-31T00:00:00Z", 9): 20140101,
    ("+2014-01-01T00:00:00Z", 8): 20100101,
    ("+1905-01-01T00:00:00Z", 7): 19010101,
    ("+2000-01-01T00:00:00Z", 7): 19010101,
    ("-0044-03-15T00:00:00Z", 11): -440101,
    ("-13798000000-00-00T00:00:00Z", 3): -99990101,
    ("+99999999999-01-01T00:00:00Z", 9): 99990101,
    ("soon", 11): None,
}


@pytest.mark.parametrize(("time_text", "precision"), DAYS)
def test_the_first_day_that_a_time_can_mean(time_text: str, precision: int) -> None:
    assert first_day(time_text, precision) == DAYS[time_text, precision]


def test_labels_fall_back_from_a_language_to_its_base_any_and_english() -> None:
    assert label_languages("pt-br") == ("pt-br", "pt", "mul", "en")
    assert label_languages("en") == ("en", "mul", "en-gb", "en-us", "en-ca")

    def label(language: str, **labels: str) -> str | None:
        return read(
            item(1, labels={k.replace("_", "-"): {"language": k, "value": v} for k, v in labels.items()}), language
        ).label

    assert label("ko", ko="서울", en="Seoul") == "서울"
    assert label("ko", mul="Seoul*", en="Seoul") == "Seoul*"
    assert label("ko", en="Seoul", de="Seul") == "Seoul"
    assert label("pt-br", pt="Moscovo") == "Moscovo"
    assert label("pt", pt_br="Moscou", mul="Moskva", en="Moscow") == "Moscou"
    assert label("zh", zh_tw="莫斯科", mul="Moskva") == "莫斯科"
    assert label("zh-tw", zh="京", zh_hk="莫斯科", zh_hans="莫") == "莫斯科"
    assert label("sr", sr_el="Moskva", en="Moscow") == "Moskva"
    assert label("nb", nn="Moskva", en="Moscow") == "Moskva"
    assert label("en", en_gb="colour", de="Farbe") == "colour"
    assert label("en", de="Farbe") is None
    assert label("en", en="", mul="x") == "x"


def test_a_page_is_that_of_the_wiki() -> None:
    links = {"enwiki": {"site": "enwiki", "title": "Seoul"}, "kowiki": {"site": "kowiki", "title": "서울"}}
    assert read(item(1, sitelinks=links)).title == "Seoul"
    assert read(item(1, sitelinks=links), "ko", "kowiki").title == "서울"
    assert read(item(1)).title is None


def test_empty_maps_may_be_lists_as_php_writes_them() -> None:
    entity = read({"type": "item", "id": "Q1", "labels": [], "claims": [], "sitelinks": [], "descriptions": []})
    assert (entity.label, entity.title, entity.statements) == (None, None, [])


ALIASES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "of the wiki's language": ("en", {"en": ["U.S.", "USA"], "de": ["VSA"]}, ["U.S.", "USA"]),
    "of its base language and of all languages": ("pt-br", {"pt": ["EUA"], "mul": ["USA"]}, ["EUA", "USA"]),
    "English ones, as the label": ("ko", {"en": ["U.S."], "de": ["VSA"]}, ["U.S."]),
    "numbered": ("en", {"en": {"1": "U.S.", "3": "USA"}}, ["U.S.", "USA"]),
    "none": ("en", {}, []),
}


@pytest.mark.parametrize("case", ALIASES)
def test_aliases_are_those_of_the_languages_that_can_name_the_item(case: str) -> None:
    language, texts, expected = ALIASES[case]

    def terms(found: Any) -> Any:
        if isinstance(found, dict):
            return {number: {"language": "en", "value": text} for number, text in found.items()}
        return [{"language": "en", "value": text} for text in found]

    aliases = {code: terms(found) for code, found in texts.items()} or []
    labels = {code: {"language": code, "value": "label"} for code in ("pt", "en")}
    assert read(item(1, labels=labels, aliases=aliases), language).aliases == expected


def test_a_property_has_a_label_and_no_facts() -> None:
    entity = read(property_(54, "member of sports team") | {"claims": {"P31": [statement(value(5))]}})
    found = (entity.kind, entity.number, entity.label, entity.statements)
    assert found == ("property", 54, "member of sports team", [])


NO_ENTITY = {
    "lexeme": ({"type": "lexeme", "id": "L1", "lemmas": {}}, "lexeme"),
    "redirect": ({"entity": "Q1", "redirect": "Q2"}, "redirect"),
    "missing": ({"id": "Q6", "missing": ""}, "missing"),
    "no id": ({"labels": {}}, "no_id"),
    "a hostile id": ({"type": "item", "id": "Q1; DROP TABLE"}, "item"),
    "a list": ([1, 2], "unexpected_structure"),
    "claims of another shape": ({"type": "item", "id": "Q1", "claims": {"P1": "x"}}, "unexpected_structure"),
    "a label of another shape": ({"type": "item", "id": "Q1", "labels": {"en": 5}}, "unexpected_structure"),
}


@pytest.mark.parametrize(("entity", "reason"), NO_ENTITY.values(), ids=NO_ENTITY)
def test_a_line_that_is_no_item_or_property_says_what_it_is(entity: Any, reason: str) -> None:
    with pytest.raises(NotAnEntity) as problem:
        read(entity)  # type: ignore[arg-type]
    assert problem.value.reason == reason


ODD_STATEMENTS = {
    "a null rank": statement(value(9)) | {"rank": None},
    "a null id": statement(value(9)) | {"id": None},
    "no main snak": {"rank": "normal"},
    "a value without a value": {"mainsnak": {"snaktype": "value", "datavalue": {"type": "wikibase-entityid"}}},
    "a number beyond all ids": statement(entity_value(**ITEM, **{"numeric-id": 2**70})),
    "a negative number": statement(entity_value(**ITEM, **{"numeric-id": -5})),
    "a string": "Q9",
}


@pytest.mark.fault(
    "hostile JSON", "a statement of Wikidata of every wrong shape", "dropped by reason; the rest of its entity is kept"
)
@pytest.mark.parametrize("case", ODD_STATEMENTS)
def test_a_statement_of_another_shape_is_dropped_and_leaves_the_rest(case: str) -> None:
    entity = read(item(1, {"P54": [ODD_STATEMENTS[case], statement(value(5))]}))  # type: ignore[list-item]
    assert [(s.relation, s.object) for s in entity.statements] == [(54, 5)]
    assert entity.dropped == {"unexpected_structure": 1}


HOSTILE = {
    "an id beyond 64 bits": b'{"type":"item","id":"Q%d"}' % 2**70,
    "an id of 5,000 digits": b'{"type":"item","id":"Q' + b"9" * 5_000 + b'"}',
    "a leading zero": b'{"type":"item","id":"Q01"}',
    "a revision beyond 64 bits": b'{"type":"item","id":"Q1","lastrevid":99999999999999999999}',
    "lists in lists": b'{"type":"item","id":"Q1","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "no revision": b'{"type":"item","id":"Q1","lastrevid":null}',
}


@pytest.mark.fault("hostile JSON", "a line of Wikidata that is deep, huge or of another kind", "dropped by reason")
@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_line_is_no_entity(case: str) -> None:
    with pytest.raises(NotAnEntity):
        EntityReader("enwiki", "en").read(HOSTILE[case])


def test_properties_that_are_none_are_dropped_and_their_names_not_kept() -> None:
    """One of them may be as long as a line."""
    assert read(item(1, {"P9999999999999999999": [statement(value(5))]})).dropped == {"bad_property": 1}
    before = entities._property.cache_info().currsize
    read(item(1, {f"P{number}{'x' * 50}": [statement(value(5))] for number in range(100)}))
    assert entities._property.cache_info().currsize == before


@pytest.mark.parametrize(
    "line",
    [b'{"type":"item","id":"Q1"', b'{"type":"\xd7"}', b'{"type":"item","id":"Q1","claims":{"P1\xff":[]}}'],
    ids=["cut", "not UTF-8", "a property not in UTF-8"],
)
def test_a_line_that_is_no_json_is_an_error(line: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        EntityReader("enwiki", "en").read(line)


def test_real_entities_of_several_years_are_read(shared_data: Path) -> None:
    places = sorted((shared_data / "odd/wikidata_entities").glob("*.json"))
    found = {}
    for path in places:
        data = json.loads(path.read_text("utf-8"))
        for entity in data.get("entities", {"": data}).values():
            if "missing" not in entity:
                found[path.name] = read(entity)
    douglas = found["Q42_2018-07-27.json"]
    assert douglas.label == "Douglas Adams"
    assert douglas.title == "Douglas Adams"
    assert (27, 145) in [(s.relation, s.object) for s in douglas.statements]  # citizenship: United Kingdom
    assert found["P279_2018.json"].kind == "property"
    assert found["Q60_2014-04_pywikibot.json"].label == "New York City"


@pytest.mark.parametrize(
    "text",
    [b'"x"', b'"\xff"', b"5", b"1e999", b"null", b"[1]", b"{}", b'{"id":5}', b'{"id":"\xff"}',
     b'{"numeric-id":0}', b'{"numeric-id":2.5}', b'{"entity-type":"item","id":"Q5"}'],
)  # fmt: skip
def test_a_value_of_another_type_can_be_anything(text: bytes) -> None:
    """The other statements are not affected."""
    claims = {"P1": [statement(value(5), id="Q1$a"), statement(STRING)]}
    line = json.dumps(item(1, claims)).encode().replace(b'{"value": "x"', b'{"value": ' + text)
    entity = EntityReader("enwiki", "en").read(line)
    assert [(s.relation, s.object) for s in entity.statements] == [(1, 5)]
    assert entity.dropped == {"not_an_item": 1}
