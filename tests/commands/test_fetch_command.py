"""``temporalwiki fetch`` on the command line."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from temporalwiki.builders.build import find_sources
from temporalwiki.builders.snapshot import Interval

from file_server import FileServer, lists_of

Run = Callable[..., tuple[int, str, str]]

FILES = {
    path: path.encode()
    for path in (
        "simplewiki/20211101/simplewiki-20211101-pages-articles-multistream.xml.bz2",
        "simplewiki/20211201/simplewiki-20211201-pages-articles-multistream.xml.bz2",
        "wikidatawiki/entities/20211101/wikidata-20211101-all.json.gz",
        "wikidatawiki/entities/20211129/wikidata-20211129-all.json.gz",
        "simplewiki/20211201/simplewiki-20211201-page_props.sql.gz",
    )
}
MONTH = ("20211101", "20211201", "--wiki", "simplewiki")


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer(FILES | lists_of(FILES)) as server:
        yield server


def test_a_plan_then_a_fetch(server: FileServer, tmp_path: Path, run: Run) -> None:
    dumps = tmp_path / "dumps"
    status, out, err = run("fetch", *MONTH, "--dumps", dumps, "--mirror", server.url, "--plan")
    assert (status, err) == (0, "")
    assert [line.split()[-1] for line in out.splitlines()[:-1]] == list(FILES)
    assert out.splitlines()[-1].endswith("5 files")
    assert not dumps.exists()

    status, out, err = run("fetch", *MONTH, "--dumps", dumps, "--mirror", server.url)
    assert status == 0
    assert out == f"{dumps}: 5 files, 0.00 GB, all as listed\n"
    assert sorted(line.split(": ")[1] for line in err.splitlines()) == sorted(FILES)  # no bar where no terminal is
    assert len(find_sources(dumps, Interval("simplewiki", "20211101", "20211201")).files) == 5


def test_a_dump_that_is_being_written_ends_with_one_line(server: FileServer, tmp_path: Path, run: Run) -> None:
    recent = {path: data for path, data in FILES.items() if "20211201" in path}
    server.files |= lists_of(recent, articlesmultistreamdump="in-progress")
    status, out, err = run("fetch", *MONTH, "--dumps", tmp_path, "--mirror", server.url)
    assert (status, out) == (1, "")
    assert re.fullmatch(
        r"temporalwiki fetch: simplewiki 20211201: articlesmultistreamdump is in-progress by http://.*; "
        r"try later, or fetch 20211101\n",
        err,
    )
