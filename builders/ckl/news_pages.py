"""Read news articles from files: WARC, saved pages, and JSON or Parquet of news-please.

The articles are stored unfiltered (any language, date and length), so a run with other options need not read the
pages again.
"""

import hashlib
import importlib.metadata
import io
import re
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from temporalwiki.base.errors import InputError, in_one_line
from temporalwiki.base.json_files import fingerprint
from temporalwiki.builders import streams
from temporalwiki.builders.ckl import html_page
from temporalwiki.builders.ckl.html_page import LARGEST, Extractor, NewsPage, Response
from temporalwiki.builders.ckl.input_files import input_files, lines
from temporalwiki.builders.ckl.schemas import SCHEMAS
from temporalwiki.builders.machine import find_machine
from temporalwiki.builders.parquet import ParquetWriter, rows_at_once
from temporalwiki.builders.stages import Report, run_stage, total

VERSION = 2  # increase it when the articles change: kept articles of other versions are not used

ARTICLES = pa.schema(
    {
        "url": pa.string(),
        "title": pa.string(),
        "text": pa.string(),
        "published": pa.int64(),  # seconds since 1970
        "language": pa.string(),  # null: already selected by language
    }
)

# Kinds of files by suffix; all except Parquet may be compressed.
_KINDS = {"warc": "warc", "html": "page", "htm": "page", "json": "record", "jsonl": "records", "parquet": "table"}
_PAGES_A_TASK = 500
_LONGEST_RECORD = 1 << 40  # bytes; a longer one is damaged
_BYTES_A_TASK = 64 << 20  # of a WARC file: a few minutes


@dataclass(frozen=True)
class NewsTask:
    """Files, or a range of a WARC file's gzip members."""

    index: int
    kind: str
    files: tuple[str, ...]
    start: int = 0
    end: int | None = None


@dataclass(frozen=True)
class Extracted:
    """Articles as Parquet, with the counts of pages."""

    key: str  # of the content
    articles: list[Path]
    inputs: list[Path]
    read: int
    dropped: dict[str, int]  # by reason
    ignored: list[str]  # files of other kinds in the folders
    libraries: dict[str, str]  # that read the pages: name and version


def extract(paths: list[Path], work: Path, jobs: int = 1) -> Extracted:
    """Read the pages of files and folders into ``work``, and return the articles; earlier results are reused.

    Raises InputError if there is nothing to read, a file is damaged, or a library is not installed.
    """
    html_page.check_installed()
    kind = f"news ({', '.join(f'.{end}' for end in _KINDS)})"
    found, others = input_files(paths, lambda file: _kind(file) is not None, kind)
    files = sorted(found, key=lambda file: (file.name, file))
    tasks = _plan(files)
    libraries = {name: importlib.metadata.version(name) for name in html_page.LIBRARIES}
    # by time instead of content: WARC files may have hundreds of gigabytes; without folders, which change nothing
    stats = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    parts = [(task.kind, len(task.files), task.start, task.end) for task in tasks]
    key = fingerprint(VERSION, html_page.VERSION, libraries, stats, parts)
    folder = work / f"news-pages-{key}"
    sizes = [sum(Path(file).stat().st_size for file in task.files) if task.end is None else task.end - task.start
             for task in tasks]  # fmt: skip
    reports = run_stage("news-pages", run, tasks, folder, find_machine(jobs=jobs), sizes, plan=key)
    return Extracted(
        key=key,
        articles=[_output(folder, task) for task in tasks],
        inputs=files,
        read=sum(report["read"] for report in reports),
        dropped=total(reports, "dropped"),
        ignored=sorted(file.name for file in others),
        libraries=libraries,
    )


def _kind(file: Path) -> str | None:
    *_, before, last = ["", *file.name.lower().split(".")]
    return _KINDS.get(before if last == "gz" and before != "parquet" else last)


def _plan(files: list[Path]) -> list[NewsTask]:
    tasks: list[NewsTask] = []
    pages = [str(file) for file in files if _kind(file) in ("page", "record")]
    for first in range(0, len(pages), _PAGES_A_TASK):
        tasks.append(NewsTask(len(tasks), "page", tuple(pages[first : first + _PAGES_A_TASK])))
    for file in files:
        kind = _kind(file)
        if kind in ("records", "table"):
            tasks.append(NewsTask(len(tasks), kind, (str(file),)))
        elif kind == "warc":
            starts = streams.split(file, _BYTES_A_TASK)
            for start, end in zip(starts, [*starts[1:], None], strict=True):
                tasks.append(NewsTask(len(tasks), kind, (str(file),), start, end))
    return tasks


def _output(folder: Path, task: NewsTask) -> Path:
    return folder / f"articles-{task.index:05d}.parquet"


def run(task: NewsTask, folder: Path) -> Report:
    """Write the articles of one task; count every page as kept or dropped for a reason."""
    dropped: Counter[str] = Counter()
    read = 0
    with Extractor() as extractor, ParquetWriter(_output(folder, task), ARTICLES) as out:
        for found in _pages(task, extractor):
            read += 1
            reason = found if isinstance(found, str) else _missing_field(found)
            if reason:
                dropped[reason] += 1
            else:
                assert isinstance(found, NewsPage)
                row = msgspec.structs.asdict(found)
                out.write(row, size=len(found.text or "") + 200)
    return {"read": read, "kept": out.rows_written, "dropped": dict(sorted(dropped.items()))}


def _missing_field(page: NewsPage) -> str | None:
    for name, value in (("address", page.url), ("title", page.title), ("text", page.text)):
        if not value:
            return f"no {name}"
    return "no date" if page.published is None else None


def _pages(task: NewsTask, extractor: Extractor) -> Iterator[NewsPage | str]:
    """Return each page of a task, or the reason why it has no article."""
    file = Path(task.files[0])
    if task.kind == "warc":
        return _warc(file, task.start, task.end, extractor)
    if task.kind == "records":
        return _records(file)
    return _table(file) if task.kind == "table" else _saved_pages(task, extractor)


def _saved_pages(task: NewsTask, extractor: Extractor) -> Iterator[NewsPage | str]:
    for file in map(Path, task.files):
        data = _content(file)
        if data is None:
            yield f"larger than {LARGEST >> 20} MB"
        elif _kind(file) == "record":
            yield _record(data, str(file))
        else:
            found = extractor.read(data)
            if isinstance(found, NewsPage) and not found.url:
                found.url = _file_address(file.name, data)
            yield found


def _file_address(name: str, data: bytes) -> str:
    """Return an address for a page without one, made of its name and its content."""
    return f"file:///{urllib.parse.quote(name)}#{hashlib.sha1(data, usedforsecurity=False).hexdigest()[:16]}"


_FILE_ADDRESS = re.compile(r"file:///[^/#]+#[0-9a-f]{16}")


def _content(file: Path) -> bytes | None:
    """Return the content of a file; None if it is larger than a page may be."""
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
    """The decompressed gzip members of a WARC file that begin in a range of bytes.

    Reading raises InputError if the stream ends early or is damaged, where warcio would silently stop.
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


def _warc(file: Path, start: int, end: int | None, extractor: Extractor) -> Iterator[NewsPage | str]:
    from warcio.archiveiterator import WARCIterator
    from warcio.exceptions import ArchiveLoadFailed

    members = _Members(file, start, end)
    reader = io.BufferedReader(members, streams.READ)
    # no_record_parse: HTTP headers are parsed below, as warcio silently stops if they are cut off
    records = WARCIterator(reader, no_record_parse=True)
    records.reader.set_decomp(None)  # do not decompress twice

    def place() -> str:
        """Return where the current record, or its gzip member, begins."""
        return f"byte {members.member if streams.compression(file) == 'gz' else records.offset}"

    try:
        for record in records:
            if record.length is None or record.length > _LONGEST_RECORD:
                raise InputError(f"{file}: the record at {place()} does not say how long it is; fetch it again")
            if record.rec_type in ("response", "resource", "revisit"):
                yield _response(record, records.loader, extractor)
            if _missing_bytes(record.raw_stream):
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


def _missing_bytes(stream: Any) -> int:
    """Return how many bytes of a record the file lacks."""
    while stream.read(streams.READ):
        pass  # skip to its end
    return int(getattr(stream, "limit", 0))


def _response(record: Any, loader: Any, extractor: Extractor) -> NewsPage | str:
    if record.rec_type == "revisit":
        return "revisit of a page, without content"
    given = record.rec_headers.get_header("WARC-Target-URI")
    try:
        headers = loader.load_http_headers(record.rec_type, given or "", record.raw_stream, record.length)
    except EOFError:  # the file ends here; ``_warc`` reports it
        return "no HTTP status"
    status = "200" if headers is None else headers.get_statuscode() or ""
    if status != "200":
        return "HTTP status not 200" if re.fullmatch("[1-9][0-9][0-9]", status) else "no HTTP status"
    address = html_page.web_address(given)
    if address is None:
        return "no address"
    if record.rec_headers.get_header("WARC-Truncated"):
        return "cut off by the crawler"
    sent_as = Message()
    sent_as["Content-Type"] = (
        record.content_type if headers is None else headers.get_header("Content-Type") or "text/html"
    )
    if sent_as.get_content_type() not in ("text/html", "application/xhtml+xml"):
        return "not HTML"
    sent = Response(address, sent_as.get_content_charset())
    if headers is not None:
        sent.encoding = (headers.get_header("Content-Encoding") or "").strip().lower() or None
        sent.chunked = (headers.get_header("Transfer-Encoding") or "").strip().lower() == "chunked"
    return extractor.read(record.raw_stream.read(LARGEST + 1), sent)


# Records


class _NewsRecord(msgspec.Struct):
    """An article as news-please and CC-News write it; some versions write "None" for null."""

    url: str | None = None
    title: str | None = None
    maintext: str | None = None
    text: str | None = None
    date_publish: str | None = None
    published: str | None = None
    language: str | None = None


def _record(data: bytes, place: str) -> NewsPage | str:
    try:
        record = msgspec.json.decode(data, type=_NewsRecord)
    except msgspec.ValidationError:
        return "not a record of news-please"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{place}: not JSON ({error})") from None
    values = {name: None if value == "None" else value for name, value in msgspec.structs.asdict(record).items()}
    if not any(values[name] for name in ("url", "maintext", "text")):
        return "not a record of news-please"
    date = values["date_publish"] or values["published"]
    return NewsPage(
        url=html_page.web_address(values["url"]),
        title=html_page.clean_line(values["title"] or "") or None,
        text=html_page.clean_text(values["maintext"] or values["text"] or "") or None,
        published=html_page.moment(date) if date else None,
        language=(values["language"] or "").lower()[:2] or "",
    )


def _records(file: Path) -> Iterator[NewsPage | str]:
    for number, line in lines(file):
        yield f"larger than {LARGEST >> 20} MB" if len(line) > LARGEST else _record(line, f"{file}, line {number}")


def _table(file: Path) -> Iterator[NewsPage]:
    try:
        with pq.ParquetFile(file) as table:
            if not table.schema_arrow.equals(SCHEMAS["news"]):
                names = in_one_line(", ".join(table.schema_arrow.names)) or "none"
                raise InputError(f"{file}: not written by recentnews, whose columns these are not: {names[:200]}")
            for batch in table.iter_batches(rows_at_once(file, 64)):
                # as numbers: a file may have years that Python's datetime does not have
                moments = batch.column("published").cast(pa.int64()).to_pylist()
                for row, moment in zip(batch.drop_columns(["published"]).to_pylist(), moments, strict=True):
                    url = row["url"] or ""
                    yield NewsPage(
                        url=url if _FILE_ADDRESS.fullmatch(url) else html_page.web_address(url),
                        title=html_page.clean_line(row["title"] or "") or None,
                        text=html_page.clean_text(row["text"] or "") or None,
                        published=None if moment is None else html_page.in_our_time(moment // 1000),
                        language=None,
                    )
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: not a whole Parquet file: {in_one_line(error)[:200]}; fetch it again") from None
