"""A build uses what an earlier build left in the work folder only if it is unchanged."""

import bz2
import gzip
import itertools
import shutil
from collections.abc import Callable
from hashlib import sha1
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dump_forms import write_page_props

from temporalwiki.base.errors import InputError
from temporalwiki.builders import stages
from temporalwiki.builders.build import BuildOptions, _Build, build, find_sources
from temporalwiki.builders.manifests import BuiltManifest
from temporalwiki.builders.parquet import KeptFile
from temporalwiki.builders.snapshot import Dump, Interval
from temporalwiki.builders.stages import run_stage
from temporalwiki.builders.wikidata import unchanged_items
from temporalwiki.builders.wikidata.tables import COPIED
from temporalwiki.builders.wikipedia import extract
from temporalwiki.builders.wikipedia import sentence_diff as wiki_diff
from temporalwiki.builders.wikipedia.sentence_diff import Articles
from temporalwiki.builders.world import World, write_world

from a_folder import contents
from tiny_dumps import articles_file, multistream, page, wikidata_file

ROW = "intermediate file missing or damaged"
MONTH = Interval("enwiki", "20211101", "20211201")
SIDES = ("enwiki-20211101", "enwiki-20211201", "wikidata-20211101", "wikidata-20211129")


def run(dumps: Path, out: Path, work: Path, seed: int = 0) -> BuiltManifest:
    return build(find_sources(dumps, MONTH), out, work, BuildOptions(unchanged_fraction=1.0, seed=seed))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Dumps, a work folder with extracts, and a build with seed 1."""
    here = tmp_path_factory.mktemp("made")
    write_page_props(here / "dumps", write_world(here / "dumps", World(people=30)))
    run(here / "dumps", here / "out", here / "work")
    run(here / "dumps", here / "wanted", here / "other.work", seed=1)
    return here


def extracts(work: Path) -> dict[str, Path]:
    found = sorted((work / "extracts").iterdir())
    return {folder.name.rsplit("-", 1)[0].removesuffix("-enwiki"): folder for folder in found}


def flipped(path: Path) -> bytes:
    """The file with another bit, which no checksum in it covers. In a Parquet file it lies behind the pages."""
    data = bytearray(path.read_bytes())
    data[-12 if path.suffix == ".parquet" else len(data) // 2] ^= 1
    return bytes(data)


def flip(path: Path) -> None:
    path.write_bytes(flipped(path))


@pytest.mark.fault(
    ROW, "build: any table of a finished extract is missing, cut or has a changed bit", "the build notices it"
)
@pytest.mark.parametrize("side", SIDES)
def test_any_file_that_a_finished_extract_has_lost_is_noticed(made: Path, side: str) -> None:
    folder = extracts(made / "work")[side]
    lost = unchanged_items.lost if side.startswith("wikidata") else stages.lost
    places = [place for place in (folder, folder / COPIED) if place.exists()]
    reports = [path for place in places for path in (place / "reports").iterdir()]
    wrote = [path for place in places for path in place.iterdir() if path.suffix == ".parquet"]
    assert len(places) == 1 + (side == "wikidata-20211129") and len(wrote) >= 2
    assert lost(folder) is None
    for path in [*wrote, *reports]:
        whole = path.read_bytes()
        for damaged in (None, whole[:-9], flipped(path)) if path in wrote else (None, whole[:-9]):
            path.unlink()
            if damaged is not None:
                path.write_bytes(damaged)
            assert lost(folder) == path
            path.write_bytes(whole)
    assert lost(folder) is None


# an extract, some of its files, and how to spoil them
SPOILT: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "articles gone": ("enwiki-20211101", "articles-*", Path.unlink),
    "pages gone": ("enwiki-20211201", "pages-*", Path.unlink),
    "pages that have another bit": ("enwiki-20211101", "pages-*", flip),
    "pages half": ("enwiki-20211101", "pages-*", lambda path: path.write_bytes(path.read_bytes()[:99])),
    "the name of its base damaged": ("wikidata-20211129", "finished.json", lambda path: path.write_text("{")),
    "a base elsewhere": ("wikidata-20211129", "finished.json", lambda path: path.write_text('{"base": "../x"}')),
    "facts gone": ("wikidata-20211101", "facts-*-all.parquet", Path.unlink),
    "a task's mark gone": ("wikidata-20211129", "executor/completions/*", Path.unlink),
    "all copied files gone": ("wikidata-20211129", "copied", shutil.rmtree),
    "copied facts that have another bit": ("wikidata-20211129", "copied/facts-*", flip),
    "revisions that have another bit": ("wikidata-20211101", "revisions/*.bin", flip),
    "revisions gone": ("wikidata-20211101", "revisions/*.bin", Path.unlink),
}


@pytest.mark.fault(
    ROW, "build: files of a finished extract are missing, cut or damaged", "they are made again: the same bytes"
)
@pytest.mark.parametrize(("side", "files", "spoil"), SPOILT.values(), ids=SPOILT)
def test_an_extract_that_lost_a_file_is_made_again(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], side: str, files: str, spoil: Any
) -> None:
    shutil.copytree(made / "work", tmp_path / "work")
    spoilt = sorted((tmp_path / "work" / "extracts").glob(f"{side}-*/{files}"))
    assert spoilt
    for path in spoilt:
        spoil(path)
    run(made / "dumps", tmp_path / "out", tmp_path / "work", seed=1)
    assert contents(tmp_path / "out", "*.parquet") == contents(made / "wanted", "*.parquet")
    assert "is missing or has changed" in capsys.readouterr().err


@pytest.mark.fault(
    ROW, "build: files of the later stages are missing or damaged", "their tasks run again: the same bytes"
)
@pytest.mark.parametrize("spoil", [Path.unlink, flip])
def test_tasks_of_later_stages_that_lost_files_run_again(
    made: Path, tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    shutil.copytree(made / "work", tmp_path / "work")
    [place] = (tmp_path / "work").glob(f"enwiki-{MONTH.name}-*")
    names = ("wiki-diff/diffset-*", "wikidata-labels/labels-*", "wikidata-diff/candidates-*", "align/aligned-*")
    for name in names:
        [path, *_] = sorted(place.glob(name))
        spoil(path)
    manifest = run(made / "dumps", tmp_path / "out", tmp_path / "work")
    assert contents(tmp_path / "out", "*.parquet") == contents(made / "out", "*.parquet")
    stages = manifest.content["run"]["stages"]
    assert [stages[name]["kept"] for name in ("wiki-diff", "wikidata-labels", "wikidata-diff", "align")] == [0] * 4
    assert stages["wiki-extract recent"]["kept"] == 1


@pytest.mark.fault(ROW, "build: articles vanish between two stages", "one line names the extract")
def test_articles_that_are_not_found_are_an_error(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = wiki_diff._groups
    monkeypatch.setattr(wiki_diff, "_groups", lambda *what: itertools.islice(groups(*what), 1, None))
    shutil.copytree(made / "work", tmp_path / "work")
    with pytest.raises(InputError, match=r"enwiki-20211101-\w+: \d+ of \d+ articles found; delete it"):
        run(made / "dumps", tmp_path / "out", tmp_path / "work", seed=1)
    monkeypatch.undo()
    run(made / "dumps", tmp_path / "out", tmp_path / "work", seed=1)
    assert contents(tmp_path / "out", "*.parquet") == contents(made / "wanted", "*.parquet")


def articles(folder: Path) -> list[tuple[Any, ...]]:
    columns = ("page_id", "revision_id", "parent_id", "sha1", "timestamp", "title", "size")
    return [(*map(article.__getitem__, columns), article.wikitext) for article in Articles(folder, 0, 1 << 62)]


def read(folder: Path, pages: list[str]) -> None:
    dump = Dump("x", (multistream(folder.with_suffix(".xml.bz2"), pages),))
    run_stage("extract", extract.run, extract.plan(dump, "enwiki", False), folder)


def pages(first: int, end: int) -> list[str]:
    return [page(n, f"T{n}", f"The river {n} is long. " * 9, revision_id=n) for n in range(first, end)]


@pytest.mark.fault(ROW, "the text of a page is damaged in an extract", "one line names the page")
def test_a_damaged_text_is_refused(tmp_path: Path) -> None:
    """The text has a checksum in another column. Here the checksums of the file's pages are right."""
    read(tmp_path / "a", pages(1, 5))
    path = tmp_path / "a/articles-00000.parquet"
    table = pq.read_table(path)
    for damaged in (extract.pack(b"The sea is deep. " * 9), b"\xff" * 9):
        packed = pa.array([*table["packed"].to_pylist()[:3], damaged], pa.binary())
        pq.write_table(table.set_column(table.column_names.index("packed"), "packed", packed), path)
        with pytest.raises(InputError, match=rf"{path.parent}: the text of page 4 is damaged; delete it"):
            articles(tmp_path / "a")


@pytest.mark.fault(ROW, "bytes of an extract's Parquet file are changed", "one line names the file or its folder")
def test_a_damaged_column_is_refused_or_reads_the_same(tmp_path: Path) -> None:
    read(tmp_path / "a", pages(1, 9))
    path = tmp_path / "a/articles-00000.parquet"
    whole, wanted = path.read_bytes(), articles(tmp_path / "a")
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    refused = 0
    for at in range(0, footer, 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            assert articles(tmp_path / "a") == wanted  # the byte carries no value
        except InputError as error:
            assert str(path.parent) in str(error)
            refused += 1
    assert refused > footer / 7 / 2
    for damaged in (b"", whole[:100], whole[:-1], whole[:-4] + b"PAR9"):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=f"{path}: damaged or missing"):
            KeptFile(path)


def swap_in(path: Path, text: bytes) -> None:
    aside = path.with_name("aside")
    aside.write_bytes(text)
    aside.replace(path)


@pytest.mark.fault(ROW, "bytes of an extract's Parquet file are changed", "one line names the file or its folder")
@pytest.mark.parametrize("name", ["wikidata-20211129-*/properties-00000.parquet", "*page_props*/page_items.parquet"])
def test_a_damaged_table_is_refused(made: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(made / "work", tmp_path / "work")
    [path] = (tmp_path / "work" / "extracts").glob(name)
    data = bytearray(path.read_bytes())
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    data[column.data_page_offset + column.total_compressed_size // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"{path}: damaged or missing"):
        run(made / "dumps", tmp_path / "out", tmp_path / "work", seed=1)


@pytest.mark.fault(
    ROW,
    "build: a dump is replaced while it is read",
    "one line; nothing read from the new file is kept for the old one",
)
@pytest.mark.parametrize("name", ["wiki-extract recent", "wikidata-extract recent"])
def test_a_dump_that_is_replaced_while_it_is_read_is_refused(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The dump is replaced after its checksum was computed, and put back before the next build."""
    dumps = shutil.copytree(made / "dumps", tmp_path / "dumps")
    wiki = name.startswith("wiki-")
    path = articles_file(dumps, "20211201") if wiki else wikidata_file(dumps, "20211129")
    right = path.read_bytes()
    packing: Any = bz2 if wiki else gzip
    old, new = (b"</text>", b" More.</text>") if wiki else (b'"rank":"normal"', b'"rank":"preferred"')
    wrong = packing.compress(packing.decompress(right).replace(old, new))
    assert wrong != right
    extract_ = _Build._read_dump

    def swapped(self: _Build, stage: str, *arguments: Any) -> None:
        if stage == name:
            swap_in(path, wrong)
        extract_(self, stage, *arguments)

    monkeypatch.setattr(_Build, "_read_dump", swapped)
    with pytest.raises(InputError, match=f"{path}: changed while it was read; run the same command again"):
        run(dumps, tmp_path / "out", tmp_path / "work", seed=1)
    monkeypatch.undo()
    swap_in(path, right)
    manifest = run(dumps, tmp_path / "out", tmp_path / "work", seed=1)
    assert contents(tmp_path / "out", "*.parquet") == contents(made / "wanted", "*.parquet")
    assert sha1(right).hexdigest() in {source["sha1"] for source in manifest.content["inputs"]}
