"""Extracts that reuse last month's are the same as extracts of the whole dump."""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError
from temporalwiki.builders import incremental
from temporalwiki.builders.parquet import ParquetWriter
from temporalwiki.builders.snapshot import Dump
from temporalwiki.builders.stages import Report, run_stage
from temporalwiki.builders.wikipedia import extract, sentence_diff, unchanged_pages
from temporalwiki.builders.wikipedia.sentence_diff import Articles

from tiny_dumps import multistream, page, revision


def read(folder: Path, pages: Sequence[str], base: Path | None = None, cut: str | None = None) -> list[Report]:
    """Make an extract as a build does."""
    dump = Dump("x", (multistream(folder.with_suffix(".xml.bz2"), pages),), cut=cut)
    before = incremental.base_of(base) if base is not None else None
    tasks = [replace(task, base=before) for task in extract.plan(dump, "enwiki", False)]
    reports = run_stage("extract", extract.run, tasks, folder)
    unchanged_pages.link_base(folder, before)
    incremental.finish(folder, tasks, before)
    return reports


def articles(folder: Path) -> list[tuple[Any, ...]]:
    columns = ("page_id", "revision_id", "parent_id", "sha1", "timestamp", "title", "size")
    return [(*map(article.__getitem__, columns), article.wikitext) for article in Articles(folder, 0, 1 << 62)]


def contents(folder: Path, *names: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for name in names for path in folder.glob(name)}


def diffed(folder: Path, prev: Path, recent: Path) -> tuple[dict[str, bytes], list[Report]]:
    tasks = [
        replace(task, prev=str(prev), recent=str(recent), unchanged_share=0.5)
        for task in sentence_diff.plan(prev, recent, "en", {}, 0, 100, True)
    ]
    reports = run_stage("diff", sentence_diff.run, tasks, folder)
    return contents(folder, "*.parquet"), counted(reports)


def counted(reports: list[Report]) -> list[Report]:
    """Reports without what may differ."""
    for report in reports:
        report["closed"] = list(report.get("closed", {}).values())
    return [{part: report[part] for part in report if part not in ("run", "kept", "files")} for report in reports]


def text_of(page_id: int, revision_id: int) -> str:
    made = random.Random(f"{page_id} {revision_id}")
    words = made.choices(["The river", 'said "no"', "is & was", "< a", "né in 1902", "[[Lenn|the town]]"], k=12)
    return ". ".join(" ".join(words[i : i + 3]) for i in range(0, 12 - 3 * (revision_id % 2), 3)) + "."


@st.composite
def month(draw: st.DrawFn) -> list[str]:
    """Pages that mostly agree with another month's. Only the text of a revision is always the same."""
    pages = []
    ids = draw(st.lists(st.integers(1, 12), max_size=14, unique=draw(st.booleans())))
    for page_id in ids if draw(st.booleans()) else sorted(ids):
        revision_id = draw(st.sampled_from((1, 1, 1, 2, 3, 0)))
        title = f"Title {page_id} é" if draw(st.integers(0, 5)) else f"Other {page_id}"
        kind = draw(st.sampled_from(("", "", "", "", "", "redirect", "talk", "module", "raw", "odd", "two")))
        made = page(
            page_id,
            title,
            text_of(page_id, revision_id),
            redirect=kind == "redirect",
            ns=1 if kind == "talk" else 0,
            revisions=[revision(text_of(page_id, n), n) for n in (revision_id + 3, revision_id)]
            if kind == "two"
            else None,
            **({} if kind == "two" else {"revision_id": revision_id, "parent": draw(st.sampled_from((None, 1)))}),
        )
        made = made.replace(">wikitext<", ">Scribunto<") if kind == "module" else made
        made = made.replace("&quot;", '"') if kind == "raw" else made
        pages.append(made.replace("<page>", "<page><!-- odd -->") if kind == "odd" else made)
    return pages


@settings(max_examples=12)
@given(st.lists(month(), min_size=3, max_size=4), st.sampled_from((1, 1 << 26)), st.integers(1, 5), st.booleans())
def test_reusing_a_base_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, months: list[list[str]], range_: int, rows: int, cut: bool
) -> None:
    here = tmp_path_factory.mktemp("layers")
    writer = functools.partial(ParquetWriter, schema=extract.ARTICLES, rows=rows, plain=extract._PLAIN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extract, "RANGE", range_)
        patch.setattr(extract, "_article_writer", writer)
        patch.setattr(unchanged_pages, "_ROWS", rows)
        for number, pages in enumerate(months):
            full, layered = here / f"full-{number}", here / f"layered-{number}"
            date = "20211101" if cut else None
            of_full = read(full, pages, cut=date)
            of_layered = read(layered, pages, here / f"layered-{number - 1}" if number else None, cut=date)
            assert counted(of_layered) == counted(of_full)
            if number:
                before = here / f"full-{number - 1}"
                wanted = diffed(here / f"diff-{number}", before, full)
                assert diffed(here / f"mixed-{number}", before, layered) == wanted
                before = here / f"layered-{number - 1}"
                assert diffed(here / f"both-{number}", before, layered) == wanted
                shutil.rmtree(before)  # an extract is complete without its base
            assert articles(layered) == articles(full)
            tables = ("pages-*", "*.npy")
            assert contents(layered, *tables) == contents(full, *tables)
    shutil.rmtree(here)


A, B = "The river is long. ", "The lake is deep. "


def test_only_what_changed_is_read_and_every_text_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Month m changes page m; every row group of a layer is read once, in page order."""
    writer = functools.partial(ParquetWriter, schema=extract.ARTICLES, rows=3, plain=extract._PLAIN)
    monkeypatch.setattr(extract, "_article_writer", writer)
    monkeypatch.setattr(unchanged_pages, "_ROWS", 4)
    revisions = dict.fromkeys(range(1, 21), 1)
    kept = []
    for number in range(incremental.GENERATIONS + 2):
        revisions[number + 1] += 1
        pages = [page(n, f"T{number} {n}", f"{A}{n} {r}", revision_id=r) for n, r in revisions.items()]
        base = tmp_path / str(number - 1) if number else None
        [report] = read(tmp_path / str(number), pages, base)
        kept.append(report["kept"]["articles"])
        assert report["pages"]["articles"] == 20
        loads: list[tuple[Path, int]] = []
        load = unchanged_pages._TextFile._load

        def counting(texts: unchanged_pages._TextFile, group: int, loads: list[Any] = loads, load: Any = load) -> None:
            if texts._group != group:
                loads.append((texts._file, group))
            load(texts, group)

        with monkeypatch.context() as patch:
            patch.setattr(unchanged_pages._TextFile, "_load", counting)
            found = [(a["title"], a.wikitext) for a in Articles(tmp_path / str(number), 0, 100)]
        assert found == [(f"T{number} {n}", f"{A}{n} {r}") for n, r in revisions.items()]
        assert len(loads) == len(set(loads))
        if base is not None:
            shutil.rmtree(base)
    assert kept == [0, *[18] * incremental.GENERATIONS, 0]  # a dump's first page is always read


FIRST = page(1, "F", A)  # always read, as the dump's header stands before it
CASES = {  # a page of base, the same later, and whether it is kept
    "the same": (page(2, "A", A, revision_id=7), page(2, "A", A, revision_id=7), True),
    "moved": (page(2, "A", A, revision_id=7), page(2, "New", A, revision_id=7), True),
    "another revision": (page(2, "A", A, revision_id=7), page(2, "A", A, revision_id=8), False),
    "another page": (page(3, "A", A, revision_id=7), page(2, "A", A, revision_id=7), False),
    "no revision id": (page(2, "A", A, revision_id=0), page(2, "A", A, revision_id=0), False),
    "another size": (page(2, "A", A, revision_id=7), page(2, "A", A + B, revision_id=7), False),
    "a redirect before": (page(2, "A", A, revision_id=7, redirect=True), page(2, "A", A, revision_id=7), False),
    "a redirect now": (page(2, "A", A, revision_id=7), page(2, "A", A, revision_id=7, redirect=True), False),
    "another namespace before": (page(2, "A", A, revision_id=7, ns=2), page(2, "A", A, revision_id=7), False),
    "another namespace now": (page(2, "A", A, revision_id=7), page(2, "A", A, revision_id=7, ns=2), False),
    "another model now": (
        page(2, "A", A, revision_id=7),
        page(2, "A", A, revision_id=7).replace(">wikitext<", ">Scribunto<"),
        False,
    ),
    "twice in base": (page(2, "A", A, revision_id=7) * 2, page(2, "A", A, revision_id=7), False),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_kept(tmp_path: Path, case: str) -> None:
    before, now, expected = CASES[case]
    read(tmp_path / "a", [FIRST, before])
    [report] = read(tmp_path / "b", [FIRST, now], tmp_path / "a")
    assert report["kept"]["articles"] == expected
    read(tmp_path / "c", [FIRST, now])
    assert articles(tmp_path / "b") == articles(tmp_path / "c")


@pytest.mark.parametrize("error", ["<title>A\x01</title>", "<title>A&nbsp;</title>", "<id>x</id>"])
def test_a_damaged_head_is_refused_as_in_a_full_reading(tmp_path: Path, error: str) -> None:
    good = page(2, "A", A, revision_id=7)
    read(tmp_path / "a", [FIRST, good])
    tag = error.split(">")[0] + ">"
    old = good[good.index(tag) : good.index(tag.replace("<", "</")) + len(tag) + 1]
    bad = good.replace(old, error, 1)
    messages = []
    for base in (None, tmp_path / "a"):
        with pytest.raises(InputError) as problem:
            read(tmp_path / "b", [FIRST, bad], base)
        messages.append(str(problem.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("links", [True, False])
def test_a_kill_among_the_links_is_made_good(tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the disk refuses links, so that base's files are copied."""
    monkeypatch.setattr(extract, "RANGE", 1)
    pages = [page(n, f"T{n}", f"{A}{n}", revision_id=n) for n in range(1, 9)]
    read(tmp_path / "a", pages)
    read(tmp_path / "whole", pages, tmp_path / "a")
    link, copy, calls = os.link, shutil.copyfile, [0, 0]  # made, allowed

    def linked(*arguments: Any) -> None:
        if not links:
            raise OSError
        call(link, *arguments)

    def call(make: Any, *arguments: Any) -> None:
        calls[0] += 1
        if calls[0] > calls[1]:
            raise KeyboardInterrupt
        make(*arguments)

    monkeypatch.setattr(os, "link", linked)
    monkeypatch.setattr(shutil, "copyfile", functools.partial(call, copy))
    killed = 0
    while True:
        calls[:] = [0, 1]
        try:
            read(tmp_path / "b", pages, tmp_path / "a")
            break
        except KeyboardInterrupt:
            killed += 1
            assert incremental.base_of(tmp_path / "b") is None
    assert killed >= 3
    shutil.rmtree(tmp_path / "a")
    assert articles(tmp_path / "b") == articles(tmp_path / "whole")
    names = {path.stat().st_nlink for path in (tmp_path / "b" / "carried").iterdir()}
    assert names == ({2} if links else {1})  # base is gone, and another extract has them, too


def test_what_was_begun_with_another_base_is_begun_anew(tmp_path: Path) -> None:
    pages = [page(n, f"T{n}", f"{A}{n}", revision_id=n) for n in range(1, 9)]
    read(tmp_path / "a", pages[:4])
    read(tmp_path / "b", pages[4:])
    kept = []
    for base in (tmp_path / "a", tmp_path / "b", None):
        [report] = read(tmp_path / "c", pages, base)
        kept.append(report["kept"]["articles"])
        assert [row[-1] for row in articles(tmp_path / "c")] == [f"{A}{n}" for n in range(1, 9)]
    assert kept == [3, 4, 0]
    assert not (tmp_path / "c" / "carried").exists()


def test_a_text_that_is_gone_is_an_error(tmp_path: Path) -> None:
    pages = [FIRST, page(2, "A", A, revision_id=7)]
    read(tmp_path / "a", pages)
    read(tmp_path / "b", pages, tmp_path / "a")
    read(tmp_path / "c", [FIRST, page(2, "A", A, revision_id=8)])
    [file] = (tmp_path / "b" / "carried").iterdir()
    shutil.copyfile(tmp_path / "c" / "articles-00000.parquet", tmp_path / "other")
    (tmp_path / "other").replace(file)
    with pytest.raises(InputError, match="the text of page 2 is missing; delete the folder and build again"):
        articles(tmp_path / "b")


@pytest.mark.parametrize("name", ["../articles-0.parquet", "/articles-0.parquet", "carried/../../articles-0.parquet"])
def test_a_list_of_page_ranges_names_only_files_of_its_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / "spans.json").write_text(json.dumps({"articles-0.parquet": [1, 2], name: [3, 4]}), "utf-8")
    with pytest.raises(InputError, match=f"not a list of page ranges: delete {tmp_path} and build again"):
        unchanged_pages.LinkedTexts(tmp_path)
