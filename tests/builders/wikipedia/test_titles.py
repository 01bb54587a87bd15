"""Look-ups of titles and page ids find what a dict of all of them has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError
from temporalwiki.builders.wikipedia import titles
from temporalwiki.builders.wikipedia.titles import (
    HASH,
    TitleWriter,
    are_articles,
    articles_titled,
    titles_among,
)

TITLES = st.sampled_from([*"abcdefghij", "Ä", "Ä b", "a\u0301", "🜁", "../a"])
# a page without an id is a redirect
PAGES = st.lists(st.tuples(TITLES, st.none() | st.integers(1, 12) | st.just(10**18 - 1)), max_size=12)


def write(folder: Path, *tasks: list[tuple[str, int | None]]) -> Path:
    folder.mkdir(exist_ok=True)
    for number, pages in enumerate(tasks):
        with TitleWriter(folder, number) as writer:
            for title, page_id in pages:
                writer.add(title, page_id or 3, page_id is not None)
    return folder


def titled(folder: Path, asked: list[str]) -> list[tuple[int, int]]:
    hashed = pa.array([None, *map(titles.title_hash, asked)], HASH)[1:]  # as a part of a longer column
    which, page_ids = articles_titled(folder, hashed)
    return sorted(zip(which.tolist(), page_ids.tolist(), strict=True))


@settings(max_examples=150)
@given(
    tasks=st.lists(PAGES, max_size=4),
    asked=st.lists(TITLES, max_size=12),
    ids=st.lists(st.integers(0, 13) | st.just(10**18 - 1), max_size=12),
    rows=st.integers(1, 5),
    alike=st.booleans(),
)
def test_what_is_found_is_what_a_dict_has(
    tmp_path_factory: pytest.TempPathFactory,
    tasks: list[list[tuple[str, int | None]]],
    asked: list[str],
    ids: list[int],
    rows: int,
    alike: bool,
) -> None:
    """Titles are held or asked for more than once; where they are ``alike``, all hashes have the same first half."""
    pages = [page for task in tasks for page in task]
    whole = titles.title_hash
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(titles, "_ROWS", rows)
        if alike:
            patch.setattr(titles, "title_hash", lambda title: bytes(8) + whole(title)[8:])
        folder = write(tmp_path_factory.mktemp("titles") / "x", *tasks)
        wanted = sorted(
            (at, page_id)
            for at, title in enumerate(asked)
            for other, page_id in pages
            if other == title and page_id is not None
        )
        assert titled(folder, asked) == wanted
        known = {title for title, _ in pages}
        assert titles_among(folder, asked) == known.intersection(asked)
        there = {page_id for _, page_id in pages}
        assert are_articles(folder, np.array(ids, np.int64)).tolist() == [page_id in there for page_id in ids]


def test_files_are_sorted_and_have_so_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(titles, "_ROWS", 3)
    folder = write(tmp_path, [("a", 9), ("b", None), ("c", 4), ("d", 7), ("e", 1)])
    found = {path.name: np.load(path)[2].tolist() for path in sorted(folder.iterdir())}
    assert found == {"titles-00000-000.npy": [6, 9, 19], "titles-00000-001.npy": [3, 15]}


def test_of_a_task_that_fails_nothing_is_left_aside(tmp_path: Path) -> None:
    with pytest.raises(KeyError), TitleWriter(tmp_path, 0) as writer:
        writer.add("a", 1, True)
        raise KeyError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damaged", [b"", b"\x93NUMPY", b"a page", None], ids=["empty", "cut", "other", "a pickle"])
def test_a_damaged_file_is_named(tmp_path: Path, damaged: bytes | None) -> None:
    folder = write(tmp_path, [("a", 1), ("b", 2)])
    path = folder / "titles-00000-000.npy"
    if damaged is None:
        np.save(path, np.array([{}], object), allow_pickle=True)
    else:
        path.write_bytes(damaged)
    for look_up in (
        lambda: titles_among(folder, ["a"]),
        lambda: articles_titled(folder, pa.array([titles.title_hash("a")], HASH)),
        lambda: are_articles(folder, np.array([1])),
    ):
        with pytest.raises(InputError, match=f"{path}: damaged or missing .*; delete its folder and build again"):
            look_up()
