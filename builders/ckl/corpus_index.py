"""A local index over a corpus of the past: what did people write about this before it was news?

CKL (appendix B) looks for the evidence in C4 and an older Wikipedia. Here the corpus is cut into passages of about 100
words, and SQLite's full-text search (FTS5) ranks them by BM25. The index is one file on disk.
"""

from __future__ import annotations

import io
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import only_one, whole_file
from temporalwiki.base.json_files import fingerprint
from temporalwiki.builders.ckl import json_lines
from temporalwiki.builders.streams import digest
from temporalwiki.builders.wikipedia.sentences import split_sentences

VERSION = 1  # of the passages and of how they are found
WORDS = 100  # in a passage, about: it ends with the sentence that passes this
LONGEST = 2 * WORDS  # a sentence of more words is cut
_PIECE = 1 << 20  # characters of a text file that are read at once, where it has no line breaks
_LONGEST_RECORD = 256 << 20  # bytes
_WANTED = 'wanted is one record with a text a line, as in {"text": "...", "title": "...", "url": "..."}'
_BATCH = 200_000  # passages a transaction
_HELD = 64 << 20  # bytes of the index that are gathered before they are written: the fewer pieces, the fewer merges
_TERMS = 12  # of a query, the rarest: what all texts have finds nothing and takes long
_LEAST_TERMS = 3
_POSTINGS = 200_000  # of all terms of a query together, where it has more: reading a million takes a second
_EVERYWHERE = 0.1  # a term in more than this share of passages is left out where there are others
_LONGEST_QUERY = 2_000  # characters
_TOKENS = "porter unicode61 remove_diacritics 2"
_SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz", ".json.gz", ".txt", ".txt.gz")

_WORD = re.compile(r"\w+")

Text = tuple[str, str, Iterator[str]]  # id, title and pieces of a document


@dataclass(frozen=True)
class Past:
    """A passage of the corpus of the past."""

    id: str  # of the document, and after # the number of the passage in it
    title: str
    text: str
    score: float  # BM25: higher is nearer; comparable for one query alone
    has_answer: bool  # the answer stands in it, word for word but for case, accents and endings


class _Document(msgspec.Struct):
    text: str | None
    id: str | int | None = None
    title: str | None = None
    url: str | None = None


class CorpusIndex:
    """An index that is complete."""

    def __init__(self, path: Path) -> None:
        """Open it; raise InputError where it is none, or of another version."""
        self.path = path
        if not path.is_file():
            raise InputError(f"{path}: no index is there")
        try:
            self._file = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            about = self._file.execute("SELECT about FROM about").fetchone()[0]
            # the same rules as the passages' make words of a query
            self._file.execute("PRAGMA temp_store = MEMORY")
            self._file.execute(f"CREATE VIRTUAL TABLE temp.query USING fts5(text, tokenize='{_TOKENS}')")
            self._file.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab(temp, query, 'instance')")
        except (sqlite3.Error, TypeError) as error:
            raise _damaged(path, error) from None
        self.about: dict[str, Any] = msgspec.json.decode(about)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def search(self, question: str, answer: str, count: int = 5) -> list[Past]:
        """Return the ``count`` passages nearest to a question, nearest first, and one more that holds the answer.

        That one is the nearest with the answer in it, where there is one and it is not among the first ``count``.
        Whatever the texts hold, they are words and no query language. Raises InputError where the index is damaged.
        """
        try:
            return self._search(question, answer, count)
        except sqlite3.Error as error:
            raise _damaged(self.path, error) from None

    def _search(self, question: str, answer: str, count: int) -> list[Past]:
        words, said = self._words(question), self._words(answer)
        if not words:
            return []
        phrase = _quoted(answer)
        query = " OR ".join(map(_quoted, words))
        found = self._find(query, count)
        holding = self._find(f"({query}) AND {phrase}", count) if said else []
        holds = {number for number, *_ in holding}
        rows = found + [row for row in holding[:1] if row[0] not in {number for number, *_ in found}]
        missing = [number for number, *_ in rows if number not in holds]
        if said and missing:  # as many passages with the answer may be nearer than these
            marks = ",".join("?" * len(missing))
            sql = f"SELECT rowid FROM passages WHERE passages MATCH ? AND rowid IN ({marks})"
            holds |= {number for (number,) in self._file.execute(sql, (phrase, *missing))}
        return [Past(id, title, text, round(-rank, 4), number in holds) for number, id, title, text, rank in rows]

    def _find(self, query: str, count: int) -> list[tuple[int, str, str, str, float]]:
        sql = "SELECT rowid, id, title, text, rank FROM passages WHERE passages MATCH ? ORDER BY rank, rowid LIMIT ?"
        return self._file.execute(sql, (query, count)).fetchall()

    def _words(self, text: str) -> list[str]:
        """Return the words of a text that tell most, the rarest in the corpus first; none that it does not have."""
        words = list(dict.fromkeys(_WORD.findall(plain(text[:_LONGEST_QUERY]))))
        self._file.execute("DELETE FROM temp.query")
        self._file.executemany("INSERT INTO temp.query(rowid, text) VALUES (?, ?)", enumerate(words))
        # in this order: the corpus has millions of terms
        sql = """SELECT min(doc), passages FROM temp.words CROSS JOIN terms USING (term)
                 GROUP BY term ORDER BY passages, term"""
        known = self._file.execute(sql).fetchall()
        most = max(1.0, _EVERYWHERE * self.about["passages"])
        telling = [(at, passages) for at, passages in known if passages <= most] or known
        chosen: list[str] = []
        postings = 0
        for at, passages in telling[:_TERMS]:
            postings += passages
            if len(chosen) < _LEAST_TERMS or postings <= _POSTINGS:
                chosen.append(words[at])
        return list(dict.fromkeys(chosen))


def _damaged(path: Path, error: Exception) -> InputError:
    return InputError(f"{path}: not an index of a corpus, or damaged ({error}); remove it, and it is made again")


def build_index(paths: Sequence[Path], folder: Path) -> CorpusIndex:
    """Index a corpus and return it; what was indexed before, with the same content, is taken from ``folder``.

    ``paths`` are files or folders of them: Parquet with a column ``text`` (and ``id``, ``title``, ``url`` where they
    are there), ``.jsonl`` with such records, plain or as ``.gz`` (so C4's ``.json.gz``), and ``.txt``, of which each
    is one document. A folder with a dataset of this project counts as its one config ``wikipedia-*``, or where it has
    none ``unchanged-*``. An index takes about 2.5 times the room of its text; memory does not grow with the corpus.

    Raises InputError where there is nothing to index, and naming file and line for what cannot be read.
    """
    files = sorted({file.resolve(): file for path in paths for file in _files(path)}.values())
    if not files:
        raise InputError("no corpus of the past is named")
    inputs = [{"file": file.name, "size": file.stat().st_size, "sha1": digest(file, "sha1")} for file in files]
    order = sorted(range(len(files)), key=lambda i: (inputs[i]["file"], inputs[i]["sha1"]))
    files, inputs = [files[i] for i in order], [inputs[i] for i in order]
    target = folder / f"past-{fingerprint(VERSION, inputs)}.sqlite"
    if not target.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with only_one(target, "indexing"):
            if not target.is_file():
                for left in folder.glob(f".{target.name}.*.part*"):  # of a run that was killed
                    left.unlink(missing_ok=True)
                with whole_file(target) as part:
                    _write(part, files, inputs)
    return CorpusIndex(target)


def _write(part: Path, files: Sequence[Path], inputs: list[dict[str, Any]]) -> None:
    dropped: dict[str, int] = {}
    documents = passages = 0
    with closing(sqlite3.connect(part, isolation_level=None)) as file:
        try:
            # the file is thrown away if anything goes wrong
            file.execute("PRAGMA journal_mode = OFF")
            file.execute("PRAGMA synchronous = OFF")
            file.execute(f"CREATE VIRTUAL TABLE passages USING fts5(id UNINDEXED, title, text, tokenize='{_TOKENS}')")
            file.execute("INSERT INTO passages(passages, rank) VALUES ('rank', 'bm25(0.0, 1.0, 1.0)')")
            file.execute(f"INSERT INTO passages(passages, rank) VALUES ('hashsize', {_HELD})")
            file.execute("BEGIN")
            bar = tqdm(desc="indexing the past", unit="passage", disable=None)
            with bar:
                for path in files:
                    for id, title, pieces in _documents(path):
                        number = 0
                        for text in _passages(pieces):
                            row = (f"{id}#{number}", title, text)
                            file.execute("INSERT INTO passages(id, title, text) VALUES (?, ?, ?)", row)
                            number, passages = number + 1, passages + 1
                            bar.update()
                            if passages % _BATCH == 0:
                                file.execute("COMMIT")
                                file.execute("BEGIN")
                        documents += 1
                        if not number:
                            dropped["no text"] = dropped.get("no text", 0) + 1
            file.execute("COMMIT")
            if not passages:
                raise InputError(f"{files[0]}: no text in this corpus ({documents:,} documents)")
            file.execute("INSERT INTO passages(passages) VALUES ('optimize')")
            file.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, passages, 'row')")
            file.execute("CREATE TABLE terms (term TEXT PRIMARY KEY, passages INTEGER) WITHOUT ROWID")
            file.execute("INSERT INTO terms SELECT term, doc FROM temp.words")
            about = {
                "version": VERSION,
                "inputs": inputs,
                "documents": documents,
                "dropped": dropped,
                "passages": passages,
            }
            file.execute("CREATE TABLE about AS SELECT ? AS about", (msgspec.json.encode(about).decode(),))
        except sqlite3.OperationalError as error:
            if "full" in str(error):
                raise InputError(f"{part.parent}: no space left on the disk for the index; free some") from None
            raise


def _passages(pieces: Iterator[str]) -> Iterator[str]:
    """Yield passages of a document, of whole sentences where they are not too long; nothing is lost or twice."""
    words: list[str] = []
    for piece in pieces:
        for sentence in split_sentences(piece, "en"):
            more = sentence.split()
            while len(more) > LONGEST:
                yield from _joined(words)
                words, more = more[:WORDS], more[WORDS:]
            if words and len(words) + len(more) > WORDS + WORDS // 5:
                yield from _joined(words)
                words = []
            words += more
            if len(words) >= WORDS:
                yield from _joined(words)
                words = []
    yield from _joined(words)


def _joined(words: list[str]) -> Iterator[str]:
    if words:
        yield " ".join(words)


def plain(text: str) -> str:
    """Return text as SQLite can hold it: it ends at NUL, and lone surrogates are no text."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def _quoted(text: str) -> str:
    """Return a phrase of FTS5's query language that means these words and nothing else."""
    return '"' + plain(text).replace('"', " ") + '"'


# What is read


def _files(path: Path) -> list[Path]:
    if path.is_file():
        if not path.name.endswith(_SUFFIXES):
            raise InputError(f"{path}: a corpus is read from {', '.join(_SUFFIXES)}")
        return [path]
    if not path.is_dir():
        raise InputError(f"{path}: no such file or folder")
    if (path / "manifests").is_dir() and (path / "data").is_dir():
        path = _config(path)
    files = [file for file in path.rglob("*") if file.name.endswith(_SUFFIXES) and file.is_file()]
    files = [file for file in files if not any(p.startswith(".") for p in file.relative_to(path).parts)]
    if not files:
        raise InputError(f"{path}: nothing to index there; a corpus is read from {', '.join(_SUFFIXES)}")
    return files


def _config(folder: Path) -> Path:
    """Return the folder of the one config of a dataset folder that is a corpus."""
    for kind in ("wikipedia", "unchanged"):
        found = sorted((folder / "data").glob(f"{kind}-*"))
        if len(found) > 1:
            raise InputError(
                f"{folder}: which of {', '.join(one.name for one in found)}? Name the folder of one: {found[0]}"
            )
        if found:
            return found[0]
    raise InputError(f"{folder}: no config wikipedia-* or unchanged-* there; build one with --include wikipedia")


def _documents(path: Path) -> Iterator[Text]:
    if path.suffix == ".parquet":
        yield from _parquet(path)
    elif path.name.endswith((".txt", ".txt.gz")):
        title = plain(path.name.removesuffix(".gz").removesuffix(".txt"))
        yield title, title, _lines(path)
    else:
        yield from _records(path)


def _parquet(path: Path) -> Iterator[Text]:
    try:
        with pq.ParquetFile(path) as file:
            columns = [name for name in ("id", "title", "url", "text") if name in file.schema_arrow.names]
            if "text" not in columns or not is_text(file.schema_arrow.field("text").type):
                there = ", ".join(file.schema_arrow.names[:8])
                raise InputError(f"{path}: no column of text named 'text'; there are {there}")
            batches = file.iter_batches(256, columns=columns, use_threads=False)
            for number, row in enumerate(row for records in batches for row in records.to_pylist()):
                name = row.get("url") or row.get("id")
                id = str(name) if name is not None else f"{path.stem}:{number}"
                yield plain(id), plain(str(row.get("title") or "")), iter([plain(row["text"] or "")])
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a Parquet file that can be read: {error}") from None


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a column of this type holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _records(path: Path) -> Iterator[Text]:
    for number, record in json_lines.read(path, _Document, _LONGEST_RECORD, _WANTED):
        name = record.url or record.id
        id = str(name) if name is not None else f"{path.name.split('.')[0]}:{number}"
        yield plain(id), plain(record.title or ""), iter([plain(record.text or "")])


def _lines(path: Path) -> Iterator[str]:
    """Yield a text's lines; one of unheard-of length comes in pieces, which end with a word where there is any."""
    number, rest = 1, ""
    with json_lines.opened(path) as file, io.TextIOWrapper(file, "utf-8-sig", newline="\n") as text:
        try:
            while piece := text.readline(_PIECE):
                line, rest = rest + piece, ""
                if piece.endswith("\n"):
                    number += 1
                elif len(piece) == _PIECE:
                    cut = line.rfind(" ") + 1 or len(line)
                    line, rest = line[:cut], line[cut:]
                yield plain(line)
            yield plain(rest)
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not UTF-8 at line {number} or soon after it: {error.reason}") from None
