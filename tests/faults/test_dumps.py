"""Dumps that were cut, changed on the way or lack a part: refused in one line, and a rerun ends as if never."""

import bz2
import gzip
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.builders.snapshot import Dump
from temporalwiki.builders.wikidata import extract as wikidata_extract
from temporalwiki.builders.wikipedia.xml_dump import DumpCounts, read_header, read_pages
from temporalwiki.commands import main

from a_folder import without_manifests
from faults.one_line import error_of
from tiny_dumps import (
    FOOTER,
    articles_file,
    header,
    item,
    page,
    property_,
    statement,
    value,
    wikidata_file,
    write_wikidata,
)

pytestmark = pytest.mark.slow

DATES = ("20211101", "20211201")
PAGES = [page(i, f"Town {i}", f"Town {i} is in Norland. It has a mayor.", revision_id=10 + i) for i in range(1, 6)]
STREAMS = [header(), "".join(PAGES[:2]), "".join(PAGES[2:4]), PAGES[4], FOOTER]
PACKED: dict[str, Callable[[list[str]], bytes]] = {
    "multistream.xml.bz2": lambda streams: b"".join(bz2.compress(stream.encode()) for stream in streams),
    "one.xml.bz2": lambda streams: bz2.compress("".join(streams).encode()),
    "members.xml.gz": lambda streams: b"".join(gzip.compress(stream.encode(), mtime=0) for stream in streams),
    "plain.xml": lambda streams: "".join(streams).encode(),
}


def entities(land: int) -> list[dict[str, Any]]:
    towns = [
        item(i, {"P17": [statement(value(land), id=f"Q{i}$1")]}, f"Town {i}", f"Town {i}", lastrevid=land + i)
        for i in range(1, 7)
    ]
    return [*towns, item(100, label="Norland"), item(101, label="Sudland"), property_(17, "country")]


def write_dumps(folder: Path) -> Path:
    """Two snapshots of both kinds: of each town the country changes, and its article says so."""
    pages = [page(i, f"Town {i}", f"Town {i} is in Sudland. It is new.", revision_id=20 + i) for i in range(1, 7)]
    for date, streams, land in zip(
        DATES, (STREAMS, [header(), *pages[:3], "".join(pages[3:]), FOOTER]), (100, 101), strict=True
    ):
        path = articles_file(folder, date)
        path.parent.mkdir(parents=True)
        path.write_bytes(PACKED["multistream.xml.bz2"](streams))
        write_wikidata(wikidata_file(folder, date), entities(land))
    return folder


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dumps(tmp_path_factory.mktemp("whole") / "dumps")


@pytest.fixture(scope="module")
def built(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a build that nothing disturbed."""
    out = tmp_path_factory.mktemp("built") / "temporalwiki"
    assert main(["build", *DATES, "--dumps", str(dumps), "--out", str(out), "--jobs", "1"]) == 0
    return without_manifests(out)


# A place anywhere in a file


def places(size: int) -> list[int]:
    """Every one of the last 40 bytes, and one in five of the others."""
    return [*range(0, size - 40, 5), *range(size - 40, size)]


def check_cuts(
    path: Path, data: bytes, ends: Sequence[int], read: Callable[[], object], record: Callable[[str, object], None]
) -> None:
    """Fail unless a reader refuses each beginning of a file in one line that names the file."""
    record("cases", len(ends))
    for end in ends:
        path.write_bytes(data[:end])
        with pytest.raises(InputError, match=path.name) as caught:
            read()
        assert "\n" not in str(caught.value)


def pages_of(path: Path, allow_truncated: bool = False) -> tuple[list[int], bool]:
    counts = DumpCounts()
    found = [read.page_id for read in read_pages(path, read_header(path), counts, allow_truncated=allow_truncated)]
    return found, counts.complete


@pytest.mark.fault(
    "cut dump", "Wikipedia's dump is cut at any byte: mid-block, at EOF-1, at a stream", "it is refused"
)
@pytest.mark.parametrize("name", PACKED)
def test_a_wikipedia_dump_that_is_cut_at_any_byte_is_refused(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    data, path = PACKED[name](STREAMS), tmp_path / name
    ends = {*places(len(data)), *(len(PACKED[name](STREAMS[:streams])) for streams in range(1, 5))}
    if name == "plain.xml":
        whole = data.index(b"</mediawiki>") + len(b"</mediawiki>")
        path.write_bytes(data[:whole])
        assert pages_of(path) == ([1, 2, 3, 4, 5], True)  # only the line's end is gone
        ends = {end for end in ends if end < whole}
    check_cuts(path, data, sorted(ends), lambda: pages_of(path), record_property)


def whole_pages(name: str, cut: bytes) -> int:
    """Return how many pages are surely complete: all in whole streams, and in plain text all that have an end."""
    if name == "one.xml.bz2":  # one block, which is cut
        return 0
    if name == "plain.xml":
        return cut.count(b"</page>")
    there = sum(len(PACKED[name](STREAMS[:streams])) <= len(cut) for streams in range(1, len(STREAMS)))
    return "".join(STREAMS[:there]).count("</page>")


@pytest.mark.fault(
    "cut dump",
    "Wikipedia's dump is cut at any byte, and read with --allow-truncated",
    "exactly the pages before the cut are read",
)
@pytest.mark.parametrize("name", PACKED)
def test_what_lies_before_a_cut_is_read_where_that_is_allowed(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    data, path = PACKED[name](STREAMS), tmp_path / name
    ends = range(len(PACKED[name](STREAMS[:1])), len(data), 11)
    record_property("cases", len(ends))
    before = 0
    for end in ends:
        path.write_bytes(data[:end])
        try:
            found, complete = pages_of(path, allow_truncated=True)
        except InputError as error:  # not even the header is there
            assert name == "one.xml.bz2", error
            continue
        assert found == [1, 2, 3, 4, 5][: len(found)]
        assert len(found) >= max(before, whole_pages(name, data[:end]))
        assert not complete or len(found) == 5
        before = len(found)


def extracted(path: Path, folder: Path) -> tuple[int, str | None]:
    """How many items a dump gives, and what the build warns of."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    tasks = wikidata_extract.plan(Dump("20211101", (path,)), "enwiki", "en", False)
    reports = [wikidata_extract.run(task, folder) for task in tasks]
    return sum(report["entities"]["items"] for report in reports), wikidata_extract.check(path, reports, False)


@pytest.mark.fault(
    "cut dump", "Wikidata's dump is cut at any byte", "it is refused, or read as an excerpt with a warning"
)
@pytest.mark.parametrize("suffix", ["gz", "bz2"])
def test_a_wikidata_dump_that_is_cut_at_any_byte_is_refused(
    suffix: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    whole = write_wikidata(tmp_path / f"whole.json.{suffix}", entities(100), per_member=3)
    data, path = whole.read_bytes(), tmp_path / f"cut.json.{suffix}"
    assert extracted(whole, tmp_path / "out") == (8, None)
    check_cuts(path, data, places(len(data))[::2], lambda: extracted(path, tmp_path / "out"), record_property)


# Whole builds

RECENT = "20211201"
Damage = Callable[[Path], None]


def rewritten(change: Callable[[bytes], bytes], wikidata: bool = False) -> Damage:
    def damage(dumps: Path) -> None:
        path = (wikidata_file if wikidata else articles_file)(dumps, RECENT)
        path.write_bytes(change(path.read_bytes()))

    return damage


def flipped(at: int, wikidata: bool = False) -> Damage:
    return rewritten(lambda data: data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], wikidata)


def cut_at_last(mark: bytes, wikidata: bool = False) -> Damage:
    return rewritten(lambda data: data[: data.rindex(mark)], wikidata)


def renamed(*names: str, listed: str = "") -> Damage:
    """Instead of one file numbered parts, or a list of checksums that names more than there are."""

    def damage(dumps: Path) -> None:
        path = articles_file(dumps, RECENT)
        data = path.read_bytes()
        path.unlink()
        for name in names:
            path.with_name(f"enwiki-{RECENT}-pages-articles-multistream{name}").write_bytes(data)
        if listed:
            path.with_name(f"enwiki-{RECENT}-sha1sums.txt").write_text(listed)

    return damage


def checksum(listing: str, text: str) -> Damage:
    return lambda dumps: (articles_file(dumps, RECENT).with_name(listing).write_text(text), None)[1]


ARTICLES = f"enwiki-{RECENT}-pages-articles-multistream.xml.bz2"
NOT_BZ2 = "not a bz2 file, although its name says so"
NO_ENTITIES = b'[\n{"page_id": 1, "page_title": "A"}\n]\n'
NO_START = r"byte \d+ is not the start of a bz2 stream"
SIMPLE = header(wiki="simplewiki") + FOOTER
DAMAGED: dict[str, tuple[Damage, str]] = {
    "one byte is missing at the end": (rewritten(lambda data: data[:-1]), "cut off inside the bz2 stream"),
    "cut mid-block": (rewritten(lambda data: data[: len(data) // 2]), "cut off inside the bz2 stream"),
    "cut at a stream's end": (cut_at_last(b"BZh9"), "no </mediawiki> at its end"),
    "an empty file": (rewritten(lambda data: b""), "the file is empty"),
    "zeros at its end, as of a disk that was full": (rewritten(lambda data: data + bytes(4096)), NO_START),
    "zeros in the middle": (rewritten(lambda data: data[:500] + bytes(200) + data[700:]), "damaged bz2 data"),
    "one bit": (flipped(700), "damaged bz2 data"),
    "a page of HTML instead": (rewritten(lambda data: b"<html>404</html>"), NOT_BZ2),
    "a gz under another name": (rewritten(lambda data: gzip.compress(b"x")), NOT_BZ2),
    "two dumps joined": (rewritten(lambda data: data + data), "after </mediawiki>"),
    "wikidata, one byte is missing": (rewritten(lambda data: data[:-1], True), "cut off inside the gz stream"),
    "wikidata, cut at a member's end": (cut_at_last(b"\x1f\x8b\x08", True), "no closing \\] at its end"),
    "wikidata, one bit": (flipped(300, True), "damaged gz data"),
    "wikidata, HTML": (rewritten(lambda data: gzip.compress(b"<html>"), True), "not a Wikidata JSON dump"),
    "wikidata, JSON without entities": (rewritten(lambda data: gzip.compress(NO_ENTITIES), True), "no entities in it"),
    "a dump of another wiki": (rewritten(lambda data: bz2.compress(SIMPLE.encode())), "a dump of simplewiki"),
}
LACKING: dict[str, tuple[Damage, str]] = {
    "another SHA-1 than listed": (
        checksum(f"enwiki-{RECENT}-sha1sums.txt", f"{'0' * 40}  {ARTICLES}\n"),
        "not the file whose sha1 .*sha1sums.txt has; fetch it again",
    ),
    "another SHA-256 than listed": (checksum("SHA256SUMS", f"{'0' * 64} *{ARTICLES}\n"), "sha256 SHA256SUMS has"),
    "the first part is missing": (renamed("2.xml-p42p99.bz2"), "the part with pages 1 to 41 is missing"),
    "a part in the middle is missing": (renamed("1.xml-p1p3.bz2", "3.xml-p9p99.bz2"), "pages 4 to 8 is missing"),
    "two parts with the same pages": (renamed("1.xml-p1p9.bz2", "2.xml-p3p99.bz2"), "hold the same pages"),
    "a part that only the list names": (
        renamed("1.xml-p1p9.bz2", listed=f"x  enwiki-{RECENT}-pages-articles-multistream2.xml-p10p99.bz2\n"),
        "the part with pages 10 to 99 is missing; .*sha1sums.txt lists it",
    ),
    "no dump at all": (renamed(), f"no {ARTICLES}"),
    "no dump but 7z": (renamed(".xml.7z"), "7z is not read"),
    "no Wikidata dump": (lambda dumps: shutil.rmtree(dumps / "wikidatawiki"), "no Wikidata dump at or before"),
}


GO_ON = ("cut mid-block", "wikidata, cut at a member's end", "another SHA-1 than listed")  # one a stage
OF_BUILD = {
    "cut dump": (
        DAMAGED,
        "build gets a file that is cut, changed, joined or of another kind",
        "one line names file and byte, and nothing is written; with the whole file: the same bytes",
    ),
    "wrong checksum or missing part": (
        LACKING,
        "build gets a file that its list of checksums does not confirm, or not all parts",
        "one line names the part or the list, and nothing is written",
    ),
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.fault(row, done, happens))
        for row, (cases, done, happens) in OF_BUILD.items()
        for case in cases
    ],
)
def test_a_build_of_damaged_dumps_is_refused_and_a_rerun_ends_with_the_same_bytes(
    case: str, dumps: Path, built: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage, said = (DAMAGED | LACKING)[case]
    here = shutil.copytree(dumps, tmp_path / "dumps")
    damage(here)
    out = tmp_path / "temporalwiki"
    jobs = "2" if case in GO_ON else "1"
    argv = ["build", *DATES, "--dumps", str(here), "--out", str(out), "--jobs", jobs]
    error = error_of(capsys, *argv)
    assert re.search(said, error)
    assert str(here) in error
    assert not out.exists()
    if case in GO_ON:
        shutil.rmtree(here)
        shutil.copytree(dumps, here)
        assert main(argv) == 0
        assert without_manifests(out) == built
