"""What a dump server answers: a status, an index, checksums; nothing in them names a file outside the dumps."""

import json
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from temporalwiki.base.errors import InputError
from temporalwiki.builders.fetch.connection import NotThere
from temporalwiki.builders.fetch.server import Server, Wanted

from fuzz.files import folder
from fuzz.json_text import mutate as mutate

_STEM = "enwiki-20211101-pages-articles-multistream"
_LISTED = {"size": 5, "url": "/enwiki/20211101/x", "md5": "0" * 32, "sha1": "a" * 40}
_PARTS = {f"{_STEM}1.xml-p1p41.bz2": _LISTED, f"{_STEM}2.xml-p42p99.bz2": _LISTED}
_PROPS = {"enwiki-20211101-page_props.sql.gz": _LISTED}
_STATUS = {
    "version": "0.8",
    "jobs": {
        "articlesmultistreamdump": {"status": "done", "updated": "2021-11-05 00:00:00", "files": _PARTS},
        "articlesmultistreamdumprecombine": {"status": "waiting"},
        "pagepropstable": {"status": "done", "files": _PROPS},
    },
}
SEEDS = (
    json.dumps(_STATUS).encode(),
    json.dumps({"jobs": {"articlesmultistreamdump": {"status": "in-progress"}}}).encode(),
    json.dumps(_STATUS).replace("a" * 40, "x").encode(),
    b'<html><a href="20211101/">20211101/</a> <a href="20211099/">x</a> <a href="../">..</a></html>',
    b"a" * 40 + b"  wikidata-20211101-all.json.gz\n" + b"b" * 40 + b" *wikidata-20211101-all.json.bz2\n",
)
WORDS = (b'"status": "done"', b'"files": {', b"../../../etc/passwd", b".xml-p1p9.bz2", b'"size": ', b"9" * 20,
         b'href="20211101/"', b"HREF=20211101", b"wikidata-20211101-all.json.gz", b"[" * 1200)  # fmt: skip
LONGEST = 8192


class _Answers:
    """A connection on which every page is the same."""

    def __init__(self, text: str) -> None:
        self._text = text

    def page(self, _url: str) -> str:
        return self._text

    def size(self, url: str) -> int:
        if url.endswith("gz"):
            return 5
        raise NotThere("has no size")

    def say(self, text: str) -> None:
        assert "\n" not in text


def check(data: bytes) -> None:
    server: Any = Server(_Answers(data.decode("utf-8", "replace")), ["https://dumps.example"])  # type: ignore[arg-type]
    asked: tuple[Callable[[], object], ...] = (
        lambda: server.dates("enwiki"),
        lambda: server.articles("enwiki", "20211101", folder()),
        lambda: server.page_props("enwiki", "20211101"),
        lambda: server.problem("enwiki", "20211101"),
        lambda: server.wikidata("20211101", False),
    )
    for ask in asked:
        try:
            found = ask()
        except InputError as error:
            assert "\n" not in str(error) and str(error).isprintable(), f"not one line: {str(error)!a}"
            continue
        for wanted in found if isinstance(found, list) else ():
            if isinstance(wanted, Wanted):
                _check(wanted)


def _check(wanted: Wanted) -> None:
    path = PurePosixPath(wanted.path)
    assert not path.is_absolute() and ".." not in path.parts and len(path.parts) in (3, 4), wanted.path
    assert wanted.path.isascii() and wanted.path.isprintable(), wanted.path
    assert wanted.size > 0 and len(wanted.sha1) == 40
