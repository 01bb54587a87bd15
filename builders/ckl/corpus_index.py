"""A search index over an older corpus, which shows what people wrote before something became news.

CKL (appendix B) searches C4 and an older Wikipedia. Here the corpus is cut into passages of about 100 words, and
SQLite's full-text search (FTS5) ranks them by BM25. The index is one file.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import regex

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import only_one, whole_file
from temporalwiki.base.json_files import fingerprint
from temporalwiki.base.progress import Progress
from temporalwiki.builders.ckl.config import RowCounts, described
from temporalwiki.builders.ckl.input_files import input_files, records
from temporalwiki.builders.parquet import rows_at_once
from temporalwiki.builders.wikipedia.sentences import split_sentences

VERSION = 4  # increase it when the passages or the search change
WORDS = 100  # a passage ends with the sentence that reaches this
LONGEST = 2 * WORDS  # longer sentences are cut
_TO_DO = 'each line must be a record with a text, such as {"text": "...", "title": "...", "url": "..."}'
_HELD = 64 << 20  # bytes of the index that SQLite collects before it writes: fewer pieces need fewer merges
_TERMS = 12  # a query has at most this many terms, the rarest: frequent terms cost time and find nothing
_LEAST_TERMS = 3
_POSTINGS = 200_000  # limit for the terms of a query after the first three: a million take a second to read
_FREQUENT = 0.1  # terms in more than this share of the passages are used only if a query has nothing rarer
_LONGEST_QUERY = 2_000  # characters
_TOKENS = "unicode61 remove_diacritics 2"  # English words also lose their endings
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz", ".json.gz")

_WORD = regex.compile(r"[\w\p{N}]+")  # with marks, such as vowel signs

Text = tuple[str, str, str]  # id, title and text of a document
_Fields = tuple[str | int | None, str | None, str | None]  # address or id, title and text as they stand in a file


@dataclass(frozen=True)
class Past:
    """A passage of the older corpus."""

    id: str  # of the document, then # and the number of the passage
    title: str
    text: str
    score: float  # BM25: higher is more similar; comparable only within one query
    has_answer: bool  # it contains the answer, ignoring case, accents and endings


class _Document(msgspec.Struct):
    text: str | None
    id: str | int | None = None
    title: str | None = None
    url: str | None = None


class CorpusIndex:
    """A complete index, open for search."""

    def __init__(self, path: Path) -> None:
        """Raise InputError if the file is missing or is not an index."""
        self.path = path
        if not path.is_file():
            raise InputError(f"{path}: no such index")
        try:
            self._file = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            about = self._file.execute("SELECT about FROM about").fetchone()[0]
            # splits a query into words as FTS5 splits the passages
            self.about: dict[str, Any] = msgspec.json.decode(about)
            self._file.execute("PRAGMA temp_store = MEMORY")
            tokens = _tokens(self.about["language"])
            self._file.execute(f"CREATE VIRTUAL TABLE temp.query USING fts5(text, tokenize='{tokens}')")
            self._file.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab(temp, query, 'instance')")
        except (sqlite3.Error, TypeError) as error:
            raise _damaged(path, error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def search(self, question: str, answer: str, count: int = 5) -> list[Past]:
        """Return up to ``count`` passages that are most similar to a question, best first.

        If none of them has the answer, one more passage follows: the best one with the answer, if there is any.
        Question and answer are plain text, not FTS5's query language. Raises InputError if the index is damaged.
        """
        try:
            return self._search(question, answer, count)
        except sqlite3.Error as error:
            raise _damaged(self.path, error) from None

    def _search(self, question: str, answer: str, count: int) -> list[Past]:
        words = self._words(question)
        if not words:
            return []
        query, phrase = " OR ".join(map(_quoted, words)), _quoted(answer)
        found = self._find(query, count)
        holding = set()
        if self._words(answer):
            has = "SELECT 1 FROM passages WHERE passages MATCH ? AND rowid = ?"
            holding = {row[0] for row in found if self._file.execute(has, (phrase, row[0])).fetchone()}
            if not holding:
                found += (best := self._find(f"({query}) AND {phrase}", 1))
                holding = {row[0] for row in best}
        return [Past(id, title, text, round(-rank, 4), number in holding) for number, id, title, text, rank in found]

    def _find(self, query: str, count: int) -> list[tuple[int, str, str, str, float]]:
        sql = "SELECT rowid, id, title, text, rank FROM passages WHERE passages MATCH ? ORDER BY rank, rowid LIMIT ?"
        return self._file.execute(sql, (query, count)).fetchall()

    def _words(self, text: str) -> list[str]:
        """Return the rarest words of a text that the corpus has, rarest first."""
        words = list(dict.fromkeys(_WORD.findall(plain(text[:_LONGEST_QUERY]))))
        self._file.execute("DELETE FROM temp.query")
        self._file.executemany("INSERT INTO temp.query(rowid, text) VALUES (?, ?)", enumerate(words))
        # CROSS JOIN keeps this order: the corpus has millions of terms
        sql = """SELECT min(doc), passages FROM temp.words CROSS JOIN terms USING (term)
                 GROUP BY term ORDER BY passages, term"""
        known = self._file.execute(sql).fetchall()
        most = max(1.0, _FREQUENT * self.about["passages"])
        rare = [(at, passages) for at, passages in known if passages <= most] or known
        chosen: list[str] = []
        postings = 0
        for at, passages in rare[:_TERMS]:
            postings += passages
            if len(chosen) < _LEAST_TERMS or postings <= _POSTINGS:
                chosen.append(words[at])
        return list(dict.fromkeys(chosen))


def _damaged(path: Path, error: Exception) -> InputError:
    return InputError(f"{path}: not an index of a corpus, or damaged ({error}); remove it to build it again")


def _tokens(language: str) -> str:
    return f"porter {_TOKENS}" if language == "en" else _TOKENS


def build_index(paths: Sequence[Path], folder: Path, language: str = "en") -> CorpusIndex:
    """Return an index of a corpus, which is kept in ``folder`` and built only once for the same content.

    ``paths`` are files or folders: Parquet with a column ``text`` (and possibly ``id``, ``title``, ``url``),
    ``.jsonl`` with such records, plain or ``.gz`` (C4 has ``.json.gz``). If a folder is a dataset folder of this
    project, its config ``wikipedia-*`` is indexed, or else ``unchanged-*``. An index is about 2.5 times as large as
    its text. Memory does not grow with the corpus; bm25s would hold the whole index of a Wikipedia in memory.

    Raises InputError if there is nothing to index, and, with file and line, if something cannot be read.
    """
    described_files = [(described([file])[0], file) for file in corpus_files(paths)]
    described_files.sort(key=lambda one: (one[0]["file"], one[0]["sha1"]))  # so no folder's name matters
    inputs, files = map(list, zip(*described_files, strict=True))
    target = folder / f"past-{fingerprint(VERSION, inputs, language)}.sqlite"
    if not target.is_file():
        with only_one(target, "indexing"):
            if not target.is_file():
                for left in folder.glob(f".{target.name}.*.part*"):  # left by a killed run
                    left.unlink(missing_ok=True)
                with whole_file(target) as part:
                    _write(part, files, inputs, language)
    return CorpusIndex(target)


def _write(part: Path, files: Sequence[Path], inputs: list[dict[str, Any]], language: str) -> None:
    counts = RowCounts()
    about = {"version": VERSION, "language": language, "inputs": inputs}
    with closing(sqlite3.connect(part, isolation_level=None)) as file:
        try:
            # no recovery is needed: after a crash the file is built again
            file.execute("PRAGMA journal_mode = OFF")
            file.execute("PRAGMA synchronous = OFF")
            columns = f"id UNINDEXED, title, text, tokenize='{_tokens(language)}'"
            file.execute(f"CREATE VIRTUAL TABLE passages USING fts5({columns})")
            file.execute("INSERT INTO passages(passages, rank) VALUES ('rank', 'bm25(0.0, 1.0, 1.0)')")
            file.execute(f"INSERT INTO passages(passages, rank) VALUES ('hashsize', {_HELD})")
            file.execute("BEGIN")
            with Progress("indexing the past", None, "passage") as progress:
                rows = progress.each(_rows(files, language, counts))
                file.executemany("INSERT INTO passages(id, title, text) VALUES (?, ?, ?)", rows)
            file.execute("COMMIT")
            if not counts.kept:
                raise InputError(f"{files[0]}: no text in this corpus ({counts.read:,} documents)")
            file.execute("INSERT INTO passages(passages) VALUES ('optimize')")
            file.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, passages, 'row')")
            file.execute("CREATE TABLE terms (term TEXT PRIMARY KEY, passages INTEGER) WITHOUT ROWID")
            file.execute("INSERT INTO terms SELECT term, doc FROM temp.words")
            about |= {"documents": counts.read, "dropped": counts.dropped, "passages": counts.kept}
            file.execute("CREATE TABLE about AS SELECT ? AS about", (msgspec.json.encode(about).decode(),))
        except sqlite3.OperationalError as error:
            if "full" in str(error):
                raise InputError(f"{part.parent}: no space left on the disk for the index; free some") from None
            raise


def _rows(files: Sequence[Path], language: str, counts: RowCounts) -> Iterator[Text]:
    """Yield the passages of a corpus; ``counts`` has the documents as read, and the passages as kept."""
    for path in files:
        for id, title, text in read_documents(path):
            counts.read += 1
            number = -1
            for number, passage in enumerate(_passages(text, language)):
                counts.kept += 1
                yield f"{id}#{number}", title, passage
            if number < 0:
                counts.drop("no text")


def _passages(text: str, language: str = "en") -> Iterator[str]:
    """Yield all text of a document as passages; only very long sentences are split."""
    words: list[str] = []
    for sentence in split_sentences(text, language):
        more = sentence.split()
        if words and len(words) + len(more) > WORDS + WORDS // 5:
            yield " ".join(words)
            words = []
        words += more
        while len(words) > LONGEST:
            yield " ".join(words[:WORDS])
            words = words[WORDS:]
        if len(words) >= WORDS:
            yield " ".join(words)
            words = []
    if words:
        yield " ".join(words)


def plain(text: str) -> str:
    """Return a text without NUL and lone surrogates, which SQLite cannot store."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def _quoted(text: str) -> str:
    """Return a text as a phrase of FTS5's query language, without any operators."""
    return '"' + plain(text).replace('"', " ") + '"'


# Files


def corpus_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files of a corpus in order; raise InputError if the paths have no such file."""
    folders = [_config(path) if (path / "manifests").is_dir() and (path / "data").is_dir() else path for path in paths]
    kind = f"a corpus ({', '.join(_SUFFIXES)})"
    found, _ = input_files(folders, lambda file: file.name.endswith(_SUFFIXES), kind)
    return found


def _config(folder: Path) -> Path:
    """Return the folder of the config to index in a dataset folder."""
    for kind in ("wikipedia", "unchanged"):
        found = sorted((folder / "data").glob(f"{kind}-*"))
        if len(found) > 1:
            raise InputError(
                f"{folder}: has {', '.join(one.name for one in found)}; give the folder of one of them: {found[0]}"
            )
        if found:
            return found[0]
    raise InputError(f"{folder}: has no config wikipedia-* or unchanged-*; build one with --include wikipedia")


def read_documents(path: Path) -> Iterator[Text]:
    """Yield the documents of a file; raise InputError, with the line if there are lines, if it is damaged."""
    of_lines = ((number, (one.url or one.id, one.title, one.text)) for number, one in records(path, _Document, _TO_DO))
    for number, (name, title, text) in _parquet(path) if path.suffix == ".parquet" else of_lines:
        id = str(name) if name is not None else f"{path.name.split('.')[0]}:{number}"
        yield plain(id), plain(str(title or "")), plain(text or "")


def _parquet(path: Path) -> Iterator[tuple[int, _Fields]]:
    try:
        with pq.ParquetFile(path) as file:
            columns = [name for name in ("id", "title", "url", "text") if name in file.schema_arrow.names]
            if "text" not in columns or not any(is_text(file.schema_arrow.field("text").type) for is_text in _TEXTS):
                names = ", ".join(file.schema_arrow.names[:8])
                raise InputError(f"{path}: needs a text column named 'text'; its columns are {names}")
            batches = file.iter_batches(rows_at_once(path, 256), columns=columns, use_threads=False)
            for number, row in enumerate(row for records in batches for row in records.to_pylist()):
                yield number, (row.get("url") or row.get("id"), row.get("title"), row["text"])
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a Parquet file that can be read: {error}") from None
