"""The converter of the Factbook, on invented countries: pages and claims by hand, and files that cannot be read."""

import gzip
import importlib.util
import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki import load_dataset
from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.dumps import Item, Page
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.snapshot import Interval
from temporalwiki.model_cards.folder_card import folder_card

from a_clone import Json, write_clone
from a_factbook import country, two_years
from a_folder import contents
from documents import ROOT

pytestmark = pytest.mark.slow

SCRIPT = ROOT / "examples" / "factbook" / "convert.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("factbook_convert", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


convert = load()

NORLAND: Json = {
    "Introduction": {"Background": {"text": "<p>Norland was settled by <em>fishers</em>.</p><p>It left in 1912.</p>"}},
    "Geography": {
        "Elevation": {"highest point": {"text": "Mount Ul (in the [[north]]) 1,204 m"}},
        "Land boundaries": {"border countries": {"text": "Sudmark 90 km; Ostania (north) 1,100 km"}},
    },
    "People and Society": {
        "Languages": {
            "Languages": {"text": "Norish (official) 81.5%, Sudish&nbsp;12%, other 6.5%; note - Ulish is official"},
            "note": "<strong>note:</strong> data of 2019",
        },
        "Major urban areas - population": {"text": "1.204 million ULSTAD (capital), 92,000 Fj&ouml;rd (2021)"},
    },
    "Government": {
        "Country name": {
            "conventional short form": {"text": "Norland"},
            "conventional long form": {"text": "Kingdom of Norland"},
        },
        "Executive branch": {
            "chief of state": {
                "text": "King OSKAR IV (since 6 May 2012); Vice President Ivo &ldquo;Ib&rdquo; KEL (since May 2021);"
                " note - the king reigns"
            },
            "head of government": {"text": "Acting Prime Minister Dr. Ann BERG-Lie, Jr. (Left) (since 2020)"},
        },
        "Legislative branch": {"description": {"text": "bicameral Diet or Ting consists of:<br>Senate (9 seats)"}},
        "Political parties and leaders": {
            "text": "Green Party or GP [Bo VIK]<br>Left Front - (a union) [Ann BERG]<br>other: two small parties"
        },
        "International organization participation": {"text": "CD, FAO (observer), G-20, UN Peace Fund, WHO"},
        "Diplomatic representation in the US": {"chief of mission": {"text": "Ambassador Liv ROS (since 4 May 2019)"}},
        "Diplomatic representation from the US": {
            "chief of mission": {"text": "Ambassador (vacant); Charge d'Affaires Max POE (since 2021)"}
        },
    },
    "Economy": {"Exchange rates": {"currency": {"text": "Norish crowns (NOC) per US dollar -"}}},
    "Transnational Issues": {
        "Refugees and internally displaced persons": {
            "refugees (country of origin)": {"text": "12,000 (Sudmark), 900 (Ostania) (2020)"}
        }
    },
}
PAGE = """\
== Introduction ==

Norland was settled by fishers. It left in 1912.

== Geography ==

Highest point of Norland: Mount Ul (in the ((north))) 1,204 m.

Border countries of Norland: Sudmark 90 km, Ostania (north) 1,100 km.

== People and Society ==

Languages of Norland: Norish (official) 81.5%, Sudish 12%, other 6.5%. Note - Ulish is official.

Languages of Norland: Note: data of 2019.

Major urban areas of Norland: 1.204 million Ulstad (capital), 92,000 Fjord (2021).

== Government ==

Chief of state of Norland: King Oskar IV (since 6 May 2012). Vice President Ivo Kel (since May 2021). Note - the king \
reigns.

Head of government of Norland: Acting Prime Minister Dr. Ann BERG-Lie, Jr. (Left) (since 2020).

Legislature of Norland: Diet.

Political parties of Norland:
* Green Party or GP
* Left Front - (a union)
* other: two small parties

International organizations of Norland: CD, FAO (observer), G-20, UN Peace Fund, WHO.
"""
CLAIMS = {
    ("highest point", "Mount Ul", None),
    ("shares border with", "Sudmark", None),
    ("shares border with", "Ostania", None),
    ("language used", "Norish", None),
    ("official language", "Norish", None),
    ("language used", "Sudish", None),
    ("major urban area", "Ulstad", None),
    ("major urban area", "Fjord", None),
    ("head of state", "Oskar IV", "2012-05-06"),
    ("vice president", "Ivo Kel", "2021-05-00"),
    ("head of government", "Ann Berg-Lie Jr", "2020-00-00"),
    ("legislative body", "Diet", None),
    ("political party", "Green Party", None),
    ("political party", "Left Front", None),
    ("member of", "CD", None),
    ("member of", "G-20", None),
    ("member of", "UN Peace Fund", None),
    ("member of", "WHO", None),
    ("ambassador to the United States", "Liv Ros", "2019-05-04"),
    ("currency", "Norish crowns", None),
    ("refugees from", "Sudmark", None),
    ("refugees from", "Ostania", None),
}


def converted(
    tmp_path: Path, files: dict[str, Json], relations: tuple[str, ...] = ()
) -> tuple[list[Page], list[Item]]:
    write_clone(tmp_path / "clone", [("2021-12-30T22:00:00+00:00", files)])
    pages, items = convert.convert(convert.read_snapshot(tmp_path / "clone", "20220101"), relations)
    return pages, items


def test_a_country_becomes_a_page_and_claims(tmp_path: Path) -> None:
    pages, items = converted(tmp_path, {"europe/no.json": NORLAND, "europe/sm.json": country("Sudmark")})
    page = next(page for page in pages if page.title == "Norland")
    assert page.text.startswith(PAGE), page.text
    assert (page.id, page.timestamp) == (int("no", 36), "2021-12-30T00:00:00Z")
    by_id = {item.id: item for item in items}
    norland = by_id[f"Q{int('no', 36)}"]
    labels = {relation: one["label"] for relation, one in convert.TABLES["relations"].items()}
    claims = {(labels[one.relation], by_id[one.object or ""].labels["en"], one.start) for one in norland.statements}
    assert claims == CLAIMS
    [sudmark] = [item for item in items if item.labels["en"] == "Sudmark"]
    assert sudmark.sitelinks == {"enwiki": "Sudmark"}, "a neighbour is the country itself"
    [party] = [item for item in items if item.labels["en"] == "Green Party"]
    assert party.aliases == {"en": ["GP"]}


@pytest.mark.parametrize(
    ("objects", "one", "other", "same"),
    [
        ("person", "Ann M. Berg", "Ann Berg", True),
        ("person", "Ann Bergs", "Ann Berg", False),
        ("good", "sugar beets", "Sugar beet", True),
        ("good", "glass", "gas", False),
        ("place", "The Ul", "Ul", True),
        ("party", "People's Front", "Peoples Front", True),
        ("party", "A List", "B List", False),
    ],
)
def test_which_names_are_one_item(objects: str, one: str, other: str, same: bool) -> None:
    assert (convert.key(one, objects) == convert.key(other, objects)) is same


def test_only_the_fields_of_some_relations_are_read(tmp_path: Path) -> None:
    pages, items = converted(tmp_path, {"europe/no.json": NORLAND}, ("P2936", "P38"))
    assert re.findall(r"^(?:== )?(\w[\w ]*)(?: ==| of Norland:)", pages[0].text, re.MULTILINE) == [
        *("People and Society", "Languages", "Languages"),
        *("Economy", "Currency"),
    ]
    assert "Oskar IV" not in {item.labels["en"] for item in items}


@pytest.mark.parametrize(
    ("short", "long", "title"),
    [
        ("Norland", "Kingdom of Norland", "Norland"),
        ("none", "Norish Islands", "Norish Islands"),
        ("NRL", "Republic of Norland", "Republic of Norland"),
        ("Norland (Ul)", "Republic of Norland", "Republic of Norland"),
        ("Norland (Ul)", "none", "Norland"),
        ("The Norish", "Norish Republic", "Norish Republic"),
        ("The Norland", "Union of The Norland", "The Norland"),
        ("none", "Norland; note - once a colony", "Norland"),
    ],
)
def test_the_name_of_a_country(short: str, long: str, title: str, tmp_path: Path) -> None:
    name = {"conventional short form": {"text": short}, "conventional long form": {"text": long}}
    pages, _ = converted(tmp_path, {"europe/no.json": {"Government": {"Country name": name}}})
    assert [page.title for page in pages] == [title]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("President Maria SILVA Santos (since 3 May 2021)", [("P35", "Maria Silva Santos")]),
        ("Queen ELIN II (since 1 May 1990); represented by Governor Bo VIK (since 2020)", [("P35", "Elin II")]),
        ("President of the Republic Al MIR (since 2020)", [("P35", "Al Mir")]),
        ("President XU Lan (since 2020); Vice Presidents A BO and C DO (since 2020)", [("P35", "Xu Lan")]),
        ("Taoiseach (Prime Minister) Nia ROE (since 2020)", [("P35", "Nia Roe")]),
        ("president (vacant); President Al MIR left", []),
        ("none", []),
        ("", []),
        (";;", []),
    ],
)
def test_a_head_of_state(text: str, names: list[tuple[str, str]]) -> None:
    assert [(name.relation, name.label) for name in convert.persons("P35", text)] == names


# what is wrong with a repository -> its files and what the converter says
BROKEN = {
    "not JSON": ({"europe/ox.json": "{"}, "europe/ox.json: not the JSON of a country"),
    "a list": ({"europe/ox.json": "[]"}, "europe/ox.json: not the JSON of a country"),
    "too deep": ({"europe/ox.json": '{"a":' * 9999}, "europe/ox.json: not the JSON of a country"),
    "no name": ({"europe/ox.json": "{}"}, "europe/ox.json: Government / Country name: no name"),
    "the name of another": (
        {"europe/ox.json": country("Norland")},
        "europe/ox.json: Government / Country name: no name",
    ),
    "a number": (
        {"europe/ox.json": country("Ostania") | {"Economy": {"Industries": {"text": 7}}}},
        "europe/ox.json: Economy / Industries: not text",
    ),
    "a text for fields": (
        {"europe/ox.json": country("Ostania") | {"Geography": "flat"}},
        "europe/ox.json: Geography / Location: not text",
    ),
}  # fmt: skip


def run(*words: object) -> tuple[int, str]:
    done = subprocess.run([sys.executable, SCRIPT, *map(str, words)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_read_is_named_and_the_rest_is_converted(case: str, tmp_path: Path) -> None:
    files, named = BROKEN[case]
    write_clone(tmp_path / "clone", [("2021-12-30T22:00:00+00:00", {"europe/no.json": country("Norland")} | files)])
    found = convert.read_snapshot(tmp_path / "clone", "20220101")
    pages, _ = convert.convert(found)
    assert any(problem.startswith(named) for problem in found.problems), found.problems
    assert "Norland" in {page.title for page in pages}


def test_a_field_of_2015_without_text_is_no_problem(tmp_path: Path) -> None:
    old = country("Norland") | {"Geography": {"Map": {"text": None}, "Location": {"text": None}}}
    old["Geography"]["Elevation extremes"] = {"highest point": {"text": "Mount Ul 1,204 m"}}
    write_clone(tmp_path / "clone", [("2015-12-30T22:00:00+00:00", {"europe/no.json": old})])
    found = convert.read_snapshot(tmp_path / "clone", "20160101")
    _, items = convert.convert(found)
    assert "Mount Ul" in {item.labels["en"] for item in items} and found.problems == []


def test_paths_that_are_no_country_are_not_read(tmp_path: Path) -> None:
    files = {path: country("Evil") for path in ("meta/xx.json", "oceans/xx.json", "a/b/no.json", "europe/nor.json")}
    pages, _ = converted(tmp_path, {"europe/no.json": country("Norland")} | files)
    assert [page.title for page in pages] == ["Norland"]


def test_the_newest_commit_of_a_day_with_countries_is_taken_and_others_are_counted(tmp_path: Path) -> None:
    write_clone(
        tmp_path / "clone",
        [
            (
                "2021-06-01T10:00:00+00:00",
                {"europe/no.json": country("Norland"), "europe/sm.json": country("Sudmark")},
            ),
            ("2021-07-02T01:59:00+02:00", {"asia/no.json": country("Norland, New")}),
            ("2021-07-02T02:01:00+02:00", {"README.md": "# A book"}),
        ],
    )
    status, said = run(tmp_path / "clone", tmp_path / "dumps", "20210601", "20210701", "20210801")
    assert status == 0, said
    assert "20210601: 0 newer commits without a country; 0 countries gone []" in said
    assert "20210701: 0 newer commits without a country; 1 countries gone ['sm']" in said  # no only moved
    assert "20210801: 1 newer commits without a country; 1 countries gone ['sm']" in said
    assert re.search("20210801: commit [0-9a-f]{12} of 2021-07-01: 1 pages, 1 items", said)
    status, said = run(tmp_path / "clone", tmp_path / "dumps", "20210501")
    assert status == 1 and "its first commit is of 2021-06-01" in said
    status, said = run(tmp_path / "clone", tmp_path / "dumps", "2021-05-01")
    assert status == 2 and "is not a date" in said
    status, said = run(tmp_path, tmp_path / "dumps", "20210501")
    assert status == 1 and "git log" in said and "Traceback" not in said


def test_the_same_commits_give_the_same_bytes(tmp_path: Path) -> None:
    two_years(tmp_path / "clone")
    run(tmp_path / "clone", tmp_path / "one", "20250101", "20260101")
    run(tmp_path / "clone", tmp_path / "other", "20260101", "20250101")
    assert contents(tmp_path / "one") == contents(tmp_path / "other")
    assert len(contents(tmp_path / "one")) == 6


def test_an_object_that_is_wrong_now_keeps_its_item(tmp_path: Path) -> None:
    """Without an item, a build takes it for deleted or merged, and no wrong answer is known."""
    norland = [country("Norland", capital__name=name) for name in ("Ulstad", "Easton", "Easton")]
    moments = [f"{year}-12-30T22:00:00+00:00" for year in (2021, 2022, 2023)]
    days = [{"europe/no.json": at} for at in norland]
    write_clone(tmp_path / "clone", list(zip(moments, days, strict=True)))
    dates = ("20220101", "20230101", "20240101")
    run(tmp_path / "clone", tmp_path / "dumps", *dates)
    labels = [capitals(tmp_path / "dumps", date) for date in dates]
    assert labels == [{"Ulstad"}, {"Ulstad", "Easton"}, {"Ulstad", "Easton"}]
    for pair in pairwise(dates):
        options = BuildOptions(unchanged_fraction=1.0, caps=None)
        sources = find_sources(tmp_path / "dumps", Interval("enwiki", *pair))
        build(sources, tmp_path / "data", tmp_path / "work", options, Machine(jobs=1), folder_card)
    (fact,) = load_dataset(str(tmp_path / "data"), "probes-20220101-20230101", split="changed")
    assert (fact["object"], fact["gone_objects"]) == ("Easton", ["Ulstad"])


def capitals(dumps: Path, date: str) -> set[str]:
    """Return the names of towns in a Wikidata dump."""
    (path,) = dumps.glob(f"wikidatawiki/entities/{date}/*.json.gz")
    lines = [line.rstrip(",") for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    found = [json.loads(line) for line in lines if line.startswith("{")]
    return {one["labels"]["en"]["value"] for one in found} & {"Ulstad", "Easton"}


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>a  b</p><p>c</p>", "a b\nc"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("a <em class='x'>b</em>", "a b"),
        ("a<!-- c -->b", "ab"),
        ("A (B) ++ C", "A (B)\nC"),
        ("&lt;b&gt; &amp;&nbsp;&eacute;", "<b> & e"),
        ("Š “x” – y", 'S "x" - y'),
        ("a\x00\x0b\u202eb", "ab"),
    ],
)
def test_html_accents_and_control_characters_go(html: str, text: str) -> None:
    assert convert.plain(html) == text


@given(st.text(alphabet='()[];, -.\n"0aA1%', max_size=60), st.sampled_from(sorted(convert.TABLES["relations"])))
def test_readers_read_anything(text: str, relation: str) -> None:
    for reader in convert.READERS.values():
        if reader is not convert.matched or "pattern" in convert.TABLES["relations"][relation]:
            for name in reader(relation, text):
                assert name.label and name.relation in convert.TABLES["relations"]


def test_the_recipes_are_experiments() -> None:
    pytest.importorskip("torch", reason="torch, which experiments need, is not installed")
    from temporalwiki.eval_harness.experiment.recipe import read_experiment

    names = ("reduced", "rates", "year", "small", "experiment")
    reduced, rates, year, small, study = (read_experiment(str(SCRIPT.with_name(f"{name}.yaml"))) for name in names)
    assert [line.label for line in reduced.lines if not line.added] == ["initial", "diff"]
    assert rates.months == year.months == small.months == study.months[:1], "rates are chosen on the first year"
    trained = {line.label for line in year.lines if not line.added}
    assert trained < {line.label for line in small.lines} < {line.label for line in study.lines}
    for_all, for_first = (
        [(line.label, line.options) for line in of.lines if line.label in trained] for of in (study, year)
    )
    assert for_all == for_first, "experiment.yaml goes on from year.yaml"
    assert len(study.months) == 5
    assert {line.name for line in study.lines if not line.added} == {
        *("initial", "diff", "shuffled", "unread", "study", "full"),
        *("lora", "k_adapter", "mix_review", "recadam", "replay"),
    }
