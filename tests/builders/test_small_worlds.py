"""Builds of a few facts: caps, dumps without properties, and the short names of yearly intervals."""

import importlib.metadata
import re
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.builders.build import BuildOptions, WorkFolder, build, find_sources
from temporalwiki.builders.manifests import BuiltManifest
from temporalwiki.builders.parquet import read_rows
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.wikidata import cues
from temporalwiki.commands import main

from a_folder import contents
from tiny_dumps import articles_file, item, multistream, page, statement, time, value, wikidata_file, write_wikidata

PEOPLE, TOWN = range(1, 19), 50
YEARS = ("20210101", "20220101", "20230101")


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eighteen people; each year says where six more of them were born in the year before. No properties."""
    folder = tmp_path_factory.mktemp("dumps")
    for year, date in enumerate(YEARS):
        known = [n for n in PEOPLE if n <= 6 * (year + 1)]
        texts = {
            n: f"'''Person {n}''' is a painter." + (f" Person {n} was born in [[Marn]]." if n in known else "")
            for n in PEOPLE
        }
        at = f"{int(date[:4]) - 1}-12-30T00:00:00Z"
        pages = [page(n, f"Person {n}", text, revision_id=100 * year + n, at=at) for n, text in texts.items()]
        multistream(articles_file(folder, date), [*pages, page(TOWN, "Marn", "A town.", at=at)])
        born = [statement(value(TOWN), P585=[time(f"+{int(date[:4]) - 1}-06-01T00:00:00Z")])]
        claims = {n: {"P19": born} if n in known else {} for n in PEOPLE}
        items: list[dict[str, Any]] = [item(n, claims[n], f"Person {n}", f"Person {n}") for n in PEOPLE]
        town = item(TOWN, None, "Marn", "Marn", aliases={"en": [{"language": "en", "value": "Old Marn"}]})
        write_wikidata(wikidata_file(folder, date), [*items, town])
    return folder


def run(dumps: Path, out: Path, *years: str, **options: Any) -> BuiltManifest:
    sources = find_sources(dumps, Interval("enwiki", *years))
    chosen = BuildOptions(**{"unchanged_fraction": 1.0} | options)
    return build(sources, out, out.with_name(f"{out.name}.work"), chosen)


def test_few_unchanged_facts_are_said(dumps: Path, tmp_path: Path) -> None:
    few = run(dumps, tmp_path / "a", *YEARS[:2], unchanged_fraction=0.1, caps=None)
    [said] = [text for text in few.warnings if "fraction" in text]
    assert re.fullmatch(r"only \d unchanged facts can be asked .*; --unchanged-fraction 1 samples all, not 0\.1", said)
    assert not any("fraction" in text for text in run(dumps, tmp_path / "b", *YEARS[:2]).warnings)


def test_caps_that_leave_little_are_said_and_can_be_left_out(dumps: Path, tmp_path: Path) -> None:
    capped = run(dumps, tmp_path / "a", *YEARS[:2])
    assert capped.counts.probes.changed.kept == 1
    [said] = [text for text in capped.warnings if "caps" in text]
    assert said.startswith("the caps of 0.01,0.05,0.05 leave 1 of 6 unchanged facts, 1 of 6 changed facts")
    assert capped.options.caps == (0.01, 0.05, 0.05)
    free = run(dumps, tmp_path / "b", *YEARS[:2], caps=None)
    assert (free.counts.probes.changed.kept, free.counts.probes.unchanged.kept) == (6, 6)
    assert not [text for text in free.warnings if "caps" in text]
    assert free.options.caps is None
    again = run(dumps, tmp_path / "a", *YEARS[:2], caps=None)
    assert contents(tmp_path / "a", "*.parquet") == contents(tmp_path / "b", "*.parquet")
    stages = again.content["run"]["stages"]
    assert [name for name, took in stages.items() if took["kept"] < took["tasks"]] == ["finish", "install"]
    half = run(dumps, tmp_path / "c", *YEARS[:2], caps=(0.5, 1.0, 1.0))
    assert half.counts.probes.changed.kept == 6


@pytest.mark.parametrize("library", ["sentencex", "rapidfuzz"])
def test_another_version_of_a_library_repeats_the_interval(
    library: str, dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = find_sources(dumps, Interval("enwiki", *YEARS[:2]))
    folders = WorkFolder(tmp_path, sources, BuildOptions(), dict.fromkeys(sources.files, ""))
    version, now = importlib.metadata.version, folders.interval()
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0" if name == library else version(name))
    assert folders.interval() != now


def test_a_dump_without_properties_builds_with_the_table(dumps: Path, tmp_path: Path) -> None:
    manifest = run(dumps, tmp_path / "a", *YEARS[:2], caps=None)
    [said] = [text for text in manifest.warnings if text.startswith("no properties in the Wikidata dumps")]
    assert said.endswith(f"names and cue words from a built-in table of {len(cues.labels())} properties")
    for split in ("changed", "unchanged"):
        rows = list(read_rows(sorted((tmp_path / "a").rglob(f"probes-*/{split}-*.parquet"))))
        assert len(rows) == 6
        for row in rows:
            assert (row["relation"], row["object"], row["aliases"]) == ("place of birth", "Marn", ["Old Marn"])
            assert (row["support"], row["dated"], row["strict"]) == ("stated", "within", True)
            assert row["evidence"] == f"{row['subject']} was born in Marn."


def test_the_owner_of_a_short_name_is_said(dumps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for years, said in (
        (YEARS[1:], None),
        (YEARS[:2], "short for diffset-20220101-20230101; use the full name for diffset-20210101-20220101"),
    ):
        capsys.readouterr()
        run(dumps, tmp_path / "out", *years)
        lines = [line for line in capsys.readouterr().err.splitlines() if "is short for" in line]
        assert lines == ([f"diffset-0101 is {said}"] if said else [])


@pytest.mark.parametrize("caps", ["all", "0.1", "0.1,0.1", "0.1,x,1", "0,1,1", "2,1,1", "1,1,nan", ""])
def test_other_caps_are_wrong_usage_of_the_command(caps: str, dumps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["build", *YEARS[:2], "--dumps", str(dumps), f"--caps={caps}"]
    try:
        status: Any = main(arguments)
    except SystemExit as stop:  # argparse
        status = stop.code
    assert status == 2
    assert re.search("build: --caps: |the caps must be ", capsys.readouterr().err.splitlines()[-1])
