"""Dumps that do not belong to their dates: the same file twice, two that are swapped, one that is too old."""

import gzip
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from temporalwiki.builders.datasets_builder import TemporalWiki
from temporalwiki.builders.manifests import read_intervals
from temporalwiki.builders.world import World, write_world
from temporalwiki.commands import main
from temporalwiki.model_cards.dataset import dataset_card

DATES = ("20211101", "20211201")


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    write_world(tmp_path / "dumps", World(people=30, dates=DATES, wikidata_dates=DATES))
    return tmp_path / "dumps"


def build(dumps: Path, *more: str) -> int:
    out = dumps.with_name("temporalwiki")
    return main(["build", *DATES, "--dumps", str(dumps), "--out", str(out), "--jobs", "1", *more])


Change = Callable[[Path, Path], object]
ARTICLES, FACTS = "enwiki/{}/*.xml.bz2", "wikidatawiki/entities/{}/*.json.gz"


def swap(prev: Path, recent: Path) -> None:
    text = prev.read_bytes()
    prev.write_bytes(recent.read_bytes())
    recent.write_bytes(text)


def link(prev: Path, recent: Path) -> None:
    recent.unlink()
    os.link(prev, recent)


def change(dumps: Path, kind: str, how: Change) -> None:
    """Change the dumps of both dates, next to which no index lies any more."""
    for path in dumps.glob("enwiki/*/*index*"):
        path.unlink()
    how(*(next(dumps.glob(kind.format(date))) for date in DATES))


WRONG: dict[str, tuple[str, Change, str]] = {
    "contents of the dates swapped": (ARTICLES, swap, "are the dumps swapped? If not, use --accept-dates"),
    "facts of the dates swapped": (FACTS, swap, "are the dumps swapped? If not, use --accept-dates"),
    "one text twice": (ARTICLES, shutil.copyfile, "are the same file: fetch the right ones"),
    "one text, linked": (ARTICLES, link, "are the same file: fetch the right ones"),
    "one Wikidata dump twice": (FACTS, shutil.copyfile, "are the same file: fetch the right ones"),
}


@pytest.mark.fault("wrong checksum or missing part", "a dump that is not of its date", "one line says so")
@pytest.mark.parametrize("case", WRONG)
def test_a_dump_that_is_not_of_its_date_is_refused(case: str, dumps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kind, how, said = WRONG[case]
    change(dumps, kind, how)
    assert build(dumps) == 1
    *_, last = capsys.readouterr().err.splitlines()
    assert said in last
    assert not dumps.with_name("temporalwiki").exists()


def test_swapped_dates_can_be_accepted(dumps: Path) -> None:
    change(dumps, ARTICLES, swap)
    change(dumps, FACTS, swap)
    assert build(dumps, "--accept-dates") == 0


def test_only_times_order_facts(dumps: Path) -> None:
    """Revision ids of Wikidata can fall: an item is deleted, or a dump was made from another source."""
    recent = next(dumps.glob(f"wikidatawiki/entities/{DATES[1]}/*.json.gz"))
    text = gzip.decompress(recent.read_bytes())
    recent.write_bytes(gzip.compress(re.sub(rb'"lastrevid":[0-9]+', b'"lastrevid":7', text)))
    assert build(dumps) == 0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [(1, "20220401", "before: is this another dump? If not"), (0, "20210401", "after: is this another dump?")],
)
def test_a_snapshot_that_is_much_older_or_newer_than_its_date_is_refused(
    old: int, new: str, said: str, dumps: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in sorted(dumps.rglob(f"*{DATES[old]}*"), reverse=True):  # files before their folders
        path.rename(path.with_name(path.name.replace(DATES[old], new)))
    dates = [new if at == old else date for at, date in enumerate(DATES)]
    words = ["build", *dates, "--dumps", str(dumps), "--out", str(dumps.with_name("out")), "--jobs", "1"]
    assert main(words) == 1
    *_, last = capsys.readouterr().err.splitlines()
    assert f"enwiki of {new}: its newest revision is of 2021-1" in last
    assert f"days {said}" in last
    assert main([*words, "--accept-dates"]) == 0


def test_facts_that_are_older_than_the_text_are_warned_of(dumps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = dumps / "wikidatawiki" / "entities" / "20211101"
    for path in old.iterdir():
        path.rename(path.with_name(path.name.replace("20211101", "20210901")))
    old.rename(old.with_name("20210901"))
    assert build(dumps) == 0
    said = "Wikidata is of 20210901, 61 days before the text of 20211101: facts may be out of date"
    assert f"warning: {said}" in capsys.readouterr().err
    months = read_intervals(dumps.with_name("temporalwiki"))
    assert said in months[0].warnings
    assert said in dataset_card(months)


def test_the_builder_sees_another_content_of_the_same_size_and_time(dumps: Path, tmp_path: Path) -> None:
    def key() -> str:
        fields = {"dumps": str(dumps), "prev": DATES[0], "recent": DATES[1], "work": str(tmp_path / "work")}
        return str(TemporalWiki("diffset", cache_dir=str(tmp_path / "cache"), **fields).hash)

    before, path = key(), next(dumps.glob(ARTICLES.format(DATES[1])))
    assert key() == before
    status, data = path.stat(), bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    for listing in path.parent.glob("*sha1sums*"):
        listing.unlink()
    assert key() != before
