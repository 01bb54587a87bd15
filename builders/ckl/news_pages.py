"""News pages out of files: WARC, saved pages, news-please's JSON and Parquet, as articles with their dates.

What is read of a page does not depend on what is asked for later (language, dates, length): it is kept, so that other
options read no page again.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import re
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from temporalwiki.base.errors import InputError, in_one_line
from temporalwiki.base.json_files import fingerprint
from temporalwiki.builders import streams
from temporalwiki.builders.ckl import html_page, json_lines
from temporalwiki.builders.ckl.corpus_index import is_text
from temporalwiki.builders.ckl.html_page import LARGEST, Extractor, Page, Response
from temporalwiki.builders.machine import find_machine
from temporalwiki.builders.parquet import ParquetWriter
from temporalwiki.builders.stages import Report, run_stage, total

VERSION = 2  # of the articles; a new one makes kept ones stale

ARTICLES = pa.schema(
    {
        "url": pa.string(),
        "title": pa.string(),
        "text": pa.string(),
        "published": pa.int64(),  # seconds since 1970
        "language": pa.string(),  # null: was chosen before
    }
)

# Kinds of files by the ends of their names; each but Parquet may be compressed.
_KINDS = {"warc": "warc", "html": "page", "htm": "page", "json": "record", "jsonl": "records", "parquet": "table"}
_PAGES_A_TASK = 500
_LONGEST_RECORD = 1 << 40  # bytes; what says more is damaged
_BYTES_A_TASK = 64 << 20  # of a WARC file: some ten minutes


@dataclass(frozen=True)
class NewsTask:
    """Some files, or a range of one WARC file's gzip members."""

    index: int
    kind: str
    files: tuple[str, ...]
    names: tuple[str, ...]  # of the files, without folders; an address is made of it where a page has none
    start: int = 0
    end: int | None = None


@dataclass(frozen=True)
class Extracted:
    """Articles as Parquet, and what became of the pages that they were on."""

    key: str  # of the content
    articles: list[Path]
    inputs: list[Path]
    read: int
    dropped: dict[str, int]  # by reason
    ignored: list[str]  # files of other kinds that lay in the folders
    libraries: dict[str, str]  # that read the pages, and their versions


def extract(paths: list[Path], work: Path, jobs: int = 1) -> Extracted:
    """Read the pages of files, and of what lies in folders, into ``work``; what is there already is kept.

    Raises InputError where there is nothing to read, a file is damaged, or what reads news is not installed.
    """
    html_page.check_installed()
    files, ignored = find_files(paths)
    tasks = _plan(files)
    libraries = {name: version for name in html_page.LIBRARIES if (version := _version(name))}
    # the time of a file stands for its content: of WARC there are hundreds of gigabytes
    stats = [(name, file.stat().st_size, file.stat().st_mtime_ns) for name, file in files]
    key = fingerprint(VERSION, html_page.VERSION, libraries, stats, [replace(task, files=()) for task in tasks])
    folder = work / f"news-pages-{key}"
    sizes = [sum(Path(file).stat().st_size for file in task.files) if task.end is None else task.end - task.start
             for task in tasks]  # fmt: skip
    reports = run_stage("news-pages", run, tasks, folder, find_machine(jobs=jobs), sizes, plan=key)
    return Extracted(
        key=key,
        articles=[_output(folder, task) for task in tasks],
        inputs=[file for _name, file in files],
        read=sum(report["read"] for report in reports),
        dropped=total(reports, "dropped"),
        ignored=ignored,
        libraries=libraries,
    )


def _version(library: str) -> str | None:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return None


def find_files(paths: list[Path]) -> tuple[list[tuple[str, Path]], list[str]]:
    """Return the files to be read by name, in order, and the names of others that lie in the folders.

    Names are those of the files alone, so that it is of no matter in which of several folders a file was found.
    Raises InputError where there are none.
    """
    found: set[Path] = set()
    others: set[Path] = set()
    for path in paths:
        if path.is_dir():
            for file in (inner for inner in path.rglob("*") if inner.is_file()):
                if not any(part.startswith(".") for part in file.relative_to(path).parts):
                    (found if _kind(file) else others).add(file.resolve())
        elif not path.exists():
            raise InputError(f"{path}: no such file or folder")
        elif _kind(path) is None:
            raise InputError(
                f"{path}: not a kind of file that news is read from ({', '.join(f'.{end}' for end in _KINDS)})"
            )
        else:
            found.add(path.resolve())
    if not found:
        given = ", ".join(map(str, paths)) or "no path"
        raise InputError(f"{given}: no files to read news from ({', '.join(f'.{end}' for end in _KINDS)})")
    return sorted((file.name, file) for file in found), sorted(file.name for file in others)


def _kind(file: Path) -> str | None:
    *_, before, last = ["", *file.name.lower().split(".")]
    return _KINDS.get(before if last == "gz" and before != "parquet" else last)


def _plan(files: list[tuple[str, Path]]) -> list[NewsTask]:
    tasks: list[NewsTask] = []
    pages = [(name, file) for name, file in files if _kind(file) in ("page", "record")]
    for first in range(0, len(pages), _PAGES_A_TASK):
        names, places = zip(*pages[first : first + _PAGES_A_TASK], strict=True)
        tasks.append(NewsTask(len(tasks), "page", tuple(map(str, places)), names))
    for name, file in files:
        kind = _kind(file)
        if kind in ("records", "table"):
            tasks.append(NewsTask(len(tasks), kind, (str(file),), (name,)))
        elif kind == "warc":
            starts = streams.split(file, _BYTES_A_TASK)
            for start, end in zip(starts, [*starts[1:], None], strict=True):
                tasks.append(NewsTask(len(tasks), kind, (str(file),), (name,), start, end))
    return tasks


def _output(folder: Path, task: NewsTask) -> Path:
    return folder / f"articles-{task.index:05d}.parquet"


def run(task: NewsTask, folder: Path) -> Report:
    """Extract one task's articles; every page is kept or dropped by reason."""
    dropped: Counter[str] = Counter()
    read = 0
    with Extractor() as extractor, ParquetWriter(_output(folder, task), ARTICLES) as out:
        for found in _pages(task, extractor):
            read += 1
            reason = found if isinstance(found, str) else _missing(found)
            if reason:
                dropped[reason] += 1
            else:
                assert isinstance(found, Page)
                row = msgspec.structs.asdict(found)
                out.write(row, size=len(found.text or "") + 200)
    return {"read": read, "kept": out.rows_written, "dropped": dict(sorted(dropped.items()))}


def _missing(page: Page) -> str | None:
    for name, value in (("address", page.url), ("title", page.title), ("text", page.text)):
        if not value:
            return f"no {name}"
    return "no date" if page.published is None else None


def _pages(task: NewsTask, extractor: Extractor) -> Iterator[Page | str]:
    """What each page of a task says, or why it says nothing."""
    if task.kind == "warc":
        yield from _warc(Path(task.files[0]), task.start, task.end, extractor)
    elif task.kind == "records":
        yield from _records(Path(task.files[0]))
    elif task.kind == "table":
        yield from _table(Path(task.files[0]))
    else:
        for file, name in zip(map(Path, task.files), task.names, strict=True):
            data = _whole(file)
            if data is None:
                yield f"larger than {LARGEST >> 20} MB"
            elif _kind(file) == "record":
                yield _record(data, str(file))
            else:
                found = extractor.read(data)
                if isinstance(found, Page) and not found.url:
                    found.url = _file_address(name, data)
                yield found


def _file_address(name: str, data: bytes) -> str:
    """Return an address for a page that says none: other content is another page, whatever it is called."""
    return f"file:///{urllib.parse.quote(name)}#{hashlib.sha1(data, usedforsecurity=False).hexdigest()[:16]}"


_FILE_ADDRESS = re.compile(r"file:///[^/#]+#[0-9a-f]{16}")


def _whole(file: Path) -> bytes | None:
    """A file's content, None where it is larger than a page may be."""
    if not file.stat().st_size:
        return b""
    data = bytearray()
    for piece in streams.pieces(file):
        data += piece.data
        if len(data) > LARGEST:
            return None
    return bytes(data)


# WARC


class _Members(io.RawIOBase):
    """The records of a WARC file that begin from one byte on and before another, decompressed.

    A stream that ends early or is damaged is an InputError here; warcio would end without a word.
    """

    def __init__(self, file: Path, start: int, end: int | None) -> None:
        self._pieces = streams.pieces(file, start)
        self._end = end
        self._left = b""
        self.member = start

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None or (self._end is not None and piece.stream >= self._end):
                return 0
            self._left, self.member = piece.data, piece.stream
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size


def _warc(file: Path, start: int, end: int | None, extractor: Extractor) -> Iterator[Page | str]:
    from warcio.archiveiterator import WARCIterator
    from warcio.exceptions import ArchiveLoadFailed

    members = _Members(file, start, end)
    reader = io.BufferedReader(members, streams.READ)
    # HTTP headers are parsed below: where they are cut off, warcio would end without a word, and it needs an address
    records = WARCIterator(reader, no_record_parse=True)
    records.reader.set_decomp(None)  # what is compressed twice is no WARC

    def place() -> str:
        """Where the record at hand begins, or its gzip member."""
        return f"byte {members.member if streams.compression(file) == 'gz' else records.offset}"

    try:
        for record in records:
            if record.length is None or record.length > _LONGEST_RECORD:
                raise InputError(f"{file}: the record at {place()} does not say how long it is; fetch it again")
            if record.rec_type in ("response", "resource", "revisit"):
                yield _response(record, records.loader, extractor)
            if _left(record.raw_stream):
                raise InputError(f"{file}: cut off inside the record at {place()}; fetch it again")
            if records.err_count:
                raise InputError(f"{file}: the record at {place()} is not as long as it says; fetch it again")
        if records.err_count:
            raise InputError(f"{file}: the last record is not as long as it says; fetch it again")
    except ArchiveLoadFailed as error:
        problem = in_one_line(error.msg)[:200]
        if records.err_count:
            problem = "the record before is not as long as it says"
        raise InputError(f"{file}: not a WARC record near {place()}: {problem}") from None


def _left(stream: Any) -> int:
    """Bytes that a record promised and the file did not have."""
    while stream.read(streams.READ):
        pass  # only its end is wanted
    return int(getattr(stream, "limit", 0))


def _response(record: Any, loader: Any, extractor: Extractor) -> Page | str:
    if record.rec_type == "revisit":
        return "revisit of a page, without content"
    given = record.rec_headers.get_header("WARC-Target-URI")
    try:
        headers = loader.load_http_headers(record.rec_type, given or "", record.raw_stream, record.length)
    except EOFError:  # the file ends here, which is told of below
        return "no HTTP status"
    if headers is not None and not re.fullmatch("[1-9][0-9][0-9]", headers.get_statuscode() or ""):
        return "no HTTP status"
    if headers is not None and headers.get_statuscode() != "200":
        return "HTTP status not 200"
    address = html_page.web_address(given)
    if address is None:
        return "no address"
    if record.rec_headers.get_header("WARC-Truncated"):
        return "cut off by the crawler"
    kind = record.content_type if headers is None else headers.get_header("Content-Type") or "text/html"
    media_type, _, parameters = (kind or "").partition(";")
    if media_type.strip().lower() not in ("text/html", "application/xhtml+xml"):
        return "not HTML"
    parameter = (part.partition("=") for part in parameters.split(";"))
    charset = next((value.strip(" \"'") for name, _, value in parameter if name.strip().lower() == "charset"), None)
    sent = Response(address, charset or None)
    if headers is not None:
        sent.encoding = (headers.get_header("Content-Encoding") or "").strip().lower() or None
        sent.chunked = (headers.get_header("Transfer-Encoding") or "").strip().lower() == "chunked"
    return extractor.read(record.raw_stream.read(LARGEST + 1), sent)


# Records


class _Record(msgspec.Struct):
    """What news-please, and CC-News, write of an article; "None" was written by some versions."""

    url: str | None = None
    title: str | None = None
    maintext: str | None = None
    text: str | None = None
    date_publish: str | None = None
    published: str | None = None
    language: str | None = None


def _record(data: bytes, place: str) -> Page | str:
    try:
        record = msgspec.json.decode(data, type=_Record)
    except msgspec.ValidationError:
        return "not a record of news-please"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{place}: not JSON ({error})") from None
    values = {name: None if value == "None" else value for name, value in msgspec.structs.asdict(record).items()}
    if not any(values[name] for name in ("url", "maintext", "text")):
        return "not a record of news-please"
    date = values["date_publish"] or values["published"]
    return Page(
        url=html_page.web_address(values["url"]),
        title=html_page.clean_line(values["title"] or "") or None,
        text=html_page.clean_text(values["maintext"] or values["text"] or "") or None,
        published=html_page.moment(date) if date else None,
        language=(values["language"] or "").lower()[:2] or "",
    )


def _records(file: Path) -> Iterator[Page | str]:
    for number, line in json_lines.lines(file, LARGEST):
        yield f"larger than {LARGEST >> 20} MB" if line is None else _record(line, f"{file}, line {number}")


def _table(file: Path) -> Iterator[Page | str]:
    columns = ["url", "title", "text", "published"]
    try:
        with pq.ParquetFile(file) as table:
            schema = table.schema_arrow
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file}: not a Parquet file ({' '.join(str(error).split())[:100]})") from None
    if missing := [name for name in columns if name not in schema.names]:
        raise InputError(
            f"{file}: no column {missing[0]}; news is read from {', '.join(columns)}, and there are "
            f"{in_one_line(', '.join(schema.names)) or 'none'}"
        )
    for name in columns:
        kind = schema.field(name).type
        if not (pa.types.is_timestamp(kind) if name == "published" else is_text(kind)):
            wanted = "no timestamp" if name == "published" else "no text"
            raise InputError(f"{file}: the column {name} is {in_one_line(kind)}, and {wanted}")
    # as numbers: Python's moments are of fewer years and zones than a file may name
    a_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[schema.field("published").type.unit]
    try:
        with pq.ParquetFile(file) as table:
            for batch in table.iter_batches(64, columns=columns):
                moments = batch.column("published").cast(pa.int64()).to_pylist()
                texts = batch.select(columns[:-1]).to_pylist()
                for row, moment in zip(texts, moments, strict=True):
                    url = row["url"] or ""
                    yield Page(
                        url=url if _FILE_ADDRESS.fullmatch(url) else html_page.web_address(url),
                        title=html_page.clean_line(row["title"] or "") or None,
                        text=html_page.clean_text(row["text"] or "") or None,
                        published=None if moment is None else html_page.in_our_time(moment // a_second),
                        language=None,
                    )
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: damaged: {' '.join(str(error).split())[:200]}; fetch it again") from None
