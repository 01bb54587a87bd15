"""The language of a build: its variant, its labels, and the tables that it lacks."""

import json
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import UsageError
from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.manifests import BuiltManifest
from temporalwiki.builders.parquet import read_rows
from temporalwiki.builders.snapshot import Interval

from tiny_dumps import (
    articles_file,
    item,
    multistream,
    page,
    property_,
    statement,
    value,
    wikidata_file,
    write_wikidata,
)

DATES = "20211101", "20211201"


def run(dumps: Path, out: Path, wiki: str, variant: str | None = None) -> BuiltManifest:
    """Build all facts of a wiki; builds of one test share their work folder."""
    sources = find_sources(dumps, Interval(wiki, *DATES))
    options = BuildOptions(unchanged_fraction=1.0, caps=None, variant=variant)
    return build(sources, out, out.with_name("work"), options, accept_dates=True)


def rows(out: Path, config: str, split: str) -> list[dict[str, Any]]:
    return list(read_rows(sorted((out / "data" / f"{config}-{'-'.join(DATES)}").glob(f"{split}-*.parquet"))))


def facts(out: Path) -> set[tuple[str, str, str]]:
    found = rows(out, "probes", "changed")
    return {(row["subject"], row["relation"], row["object"]) for row in found if row["strict"]}


def texts(out: Path) -> list[str]:
    return [row["text"] for row in rows(out, "diffset", "train")]


def write(dumps: Path, wiki: str, labels: dict[int, dict[str, str]], text: str) -> None:
    """A wiki with one country and one town, which becomes its capital."""

    def named(number: int) -> dict[str, Any]:
        return {code: {"language": code, "value": label} for code, label in labels[number].items()}

    for date, added in zip(DATES, ("", text), strict=True):
        country = item(1, {"P36": [statement(value(2))]} if added else {}, labels=named(1), lastrevid=int(date))
        country["sitelinks"] = {wiki: {"site": wiki, "title": "A", "badges": []}}
        entities = [country, item(2, labels=named(2)), property_(36, "x") | {"labels": named(36)}]
        write_wikidata(wikidata_file(dumps, date), entities)
        multistream(articles_file(dumps, date, wiki), [page(1, "A", f"Old.{added}", revision_id=int(date))], wiki=wiki)


SERBIAN = {
    1: {"sr-ec": "Србија", "sr-el": "Srbija", "en": "Serbia"},
    2: {"sr-el": "Novi Grad", "en": "Newtown"},
    36: {"sr": "главни град", "sr-el": "glavni grad", "en": "capital"},
}


def test_a_variant_decides_text_and_labels(tmp_path: Path) -> None:
    """Each variant has its own texts and labels, even if another one was built in the same work folder."""
    text = " -{sr-ec:Главни град државе Србија је Novi Grad; sr-el:Glavni grad države Srbija je Novi Grad}-."
    write(tmp_path, "srwiki", SERBIAN, text)
    default = run(tmp_path, tmp_path / "default", "srwiki")
    latin = run(tmp_path, tmp_path / "latin", "srwiki", "sr-el")
    assert facts(tmp_path / "default") == {("Србија", "главни град", "Novi Grad")}
    assert facts(tmp_path / "latin") == {("Srbija", "glavni grad", "Novi Grad")}
    assert texts(tmp_path / "default") == ["Главни град државе Србија је Novi Grad."]
    assert texts(tmp_path / "latin") == ["Glavni grad države Srbija je Novi Grad."]
    assert (default.options.variant, latin.options.variant) == (None, "sr-el")
    assert default.language == latin.language == "sr"


@pytest.mark.parametrize(
    ("wiki", "variant", "problem"),
    [
        ("enwiki", "zh-tw", "there is no variant 'zh-tw' of enwiki; its language has none"),
        ("srwiki", "sr-latn", "there is no variant 'sr-latn' of srwiki; there are sr, sr-ec, sr-el"),
        ("zhwiki", "../zh", "no variant '../zh' of zhwiki; there are zh, zh-hans"),
    ],
)
def test_a_variant_that_the_wiki_lacks_is_refused(wiki: str, variant: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem.replace(".", r"\.")):
        BuildOptions(variant=variant).language(Interval(wiki, *DATES))


def test_an_unknown_language_is_built_and_says_what_it_lacks(tmp_path: Path) -> None:
    english = {1: {"en": "Qo"}, 2: {"en": "Veng"}, 36: {"en": "capital"}}
    text = " The capital of Qo is Veng. [[File:A.jpg|thumb|b]] {{formatnum:1234}} live there."
    write(tmp_path, "tlhwiki", english, text)
    manifest = run(tmp_path, tmp_path / "out", "tlhwiki")
    assert texts(tmp_path / "out") == ["The capital of Qo is Veng. 1,234 live there."]
    assert facts(tmp_path / "out") == {("Qo", "capital", "Veng")}
    tables = "templates and headings and names of namespaces, switches and numbers of tlh are not known"
    assert manifest.warnings[0].startswith(tables)
    written = json.loads((tmp_path / "out" / manifest.path).read_text())
    assert written["warnings"] == list(manifest.warnings)


# Small dumps that failed, made from public reports, and what is right for each. The README of the data has the list.
REPORTS = {  # the wiki, its diffset, its strict facts
    "zh": (
        ["甲国的首都是新城。甲国有三个信息中心。", "乙国的首都是海港。"],
        {("甲国", "首都", "新城"), ("乙国", "首都", "海港")},
    ),
    "hr": (["Grad ima novi most.\n\nMost je dug."], set()),
}
PARTS = {  # of the diffset
    "de": "Die Burg wurde im 12. Jahrhundert. Der Verein stieg in die 3. Bundesliga. "
    "Sie starb in Berlin. 2018 wurde das Haus verkauft.",
    "fr": "Elle fut détruite en 146 av. J.-C. par les Romains.",
}
LABELS = ("Newton\u200e", "Côte d'Or", "Port Dee", "Saint-Paul", "J.R. Ewing City")
FACTS = {  # object: support, strict
    "hiwiki hi_cue": {"राम": ("mentioned", False)},
    "hewiki he": {"נמל": ("stated", True)},
    "enwiki labels": dict.fromkeys(LABELS, ("stated", True)),
}


@pytest.mark.parametrize("name", [*REPORTS, *PARTS, *FACTS])
def test_a_reported_wiki_is_right(name: str, shared_data: Path, tmp_path: Path) -> None:
    wiki, _, report = name.rpartition(" ")
    run(shared_data / "reports" / report, tmp_path / "out", wiki or f"{report}wiki")
    found = texts(tmp_path / "out")
    if name in REPORTS:
        assert (found, facts(tmp_path / "out")) == REPORTS[name]
    else:
        assert any(PARTS.get(name, "") in text for text in found), found
        changed = rows(tmp_path / "out", "facts", "changed")
        assert {row["object"]: (row["support"], row["strict"]) for row in changed} == FACTS.get(name, {})
    if name == "fr":
        assert found[0].endswith("Elle compte 1 234 567 habitants.")
