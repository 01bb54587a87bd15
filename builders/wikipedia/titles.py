"""Titles of a Wikipedia extract: its table of pages has a hash of the title of each page in namespace 0."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from temporalwiki.builders.parquet import read_columns

HASH = pa.binary(16)  # the type of a column with values of title_hash


def title_hash(title: str) -> bytes:
    """Return a hash of a title, the same on every machine; nobody can find two titles with the same 128 bits."""
    return hashlib.blake2b(title.encode(), digest_size=16).digest()


def titles_among(pages: Sequence[Path], titles: Sequence[str]) -> set[str]:
    """Return the ``titles`` that a page in namespace 0 has, which may be a redirect; ``pages`` are files of pages."""
    wanted, found = pa.array(map(title_hash, titles), HASH), set[int]()
    for rows in read_columns(pages, ["title"]) if titles else ():
        found.update(pc.index_in(rows["title"], wanted).unique().drop_null().to_pylist())
    return {titles[at] for at in found}
