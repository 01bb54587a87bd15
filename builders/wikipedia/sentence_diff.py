"""Stage wiki-diff: compare the articles of two snapshots with Algorithm 1 of TemporalWiki (section 3.1)."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from temporalwiki.base.errors import InputError
from temporalwiki.builders.parquet import KeptFile, ParquetWriter, byte_strings
from temporalwiki.builders.stages import Report
from temporalwiki.builders.wikipedia.extract import ARTICLES, files, unpack
from temporalwiki.builders.wikipedia.novelty import COMPARISONS, Key, letters, not_alike
from temporalwiki.builders.wikipedia.plain_text import UnreadablePage, read_versions
from temporalwiki.builders.wikipedia.sentences import (
    SECONDS,
    Paragraph,
    article_sentences,
    count_words,
    join_paragraphs,
    sentence_key,
    sentences_without_formula,
    some_sentences,
    split_sentences,
    time_limit,
)
from temporalwiki.builders.wikipedia.titles import titles_among

VERSION = 5
RANGE = 128 << 20  # bytes of the recent snapshot's wikitext a task
_GROUPS = 4  # row groups whose texts are held; pages are asked for nearly in the order of the dump

CHANGED = pa.schema(
    {
        "page_id": pa.int64(),
        "title": pa.string(),
        "kind": pa.string(),
        "revision_id": pa.int64(),
        "previous_revision_id": pa.int64(),
        "timestamp": pa.timestamp("s", "UTC"),
        "words_new": pa.int32(),
        "words_reworded": pa.int32(),
        "sentences": pa.list_(pa.list_(pa.string())),
    }
)
WHOLE = pa.schema(
    {
        "page_id": pa.int64(),
        "title": pa.string(),
        "text": pa.string(),
        "revision_id": pa.int64(),
        "timestamp": pa.timestamp("s", "UTC"),
    }
)


def new_sentences(previous: Sequence[Paragraph], recent: Sequence[Paragraph]) -> list[Paragraph]:
    """Return the sentences of ``recent`` that occur nowhere in ``previous``, by paragraph (Algorithm 1).

    Paragraphs without such a sentence are left out. So an entirely new paragraph is returned completely, and a
    sentence that merely moved is not returned. Swap the arguments to get the deleted sentences.
    """
    known = {sentence_key(sentence) for paragraph in previous for sentence in paragraph}
    new = (some_sentences(paragraph, lambda sentence: sentence_key(sentence) not in known) for paragraph in recent)
    return [paragraph for paragraph in new if paragraph]


class ArticleVersions:
    """Compares two versions of an article, given as the paragraphs that ``plain_text.paragraphs`` returns.

    If ``compare`` is "exact", ``added`` and ``removed`` return what ``new_sentences`` returns for all paragraphs. If
    it is "folded", they also leave out a sentence if one with the same ``novelty.folded_key`` is in the other version.
    Paragraphs that both versions have are only split into sentences if that can matter. The paragraphs are compared as
    strings, so they must be in NFC with single spaces.
    """

    def __init__(self, previous: Sequence[str], recent: Sequence[str], language: str, compare: str) -> None:
        self._language, self._compare = language, compare
        self._key = functools.cache(COMPARISONS[compare])
        self._keys: dict[Key, set[str]] = {}  # of the sentences in both, by rule
        both = set(previous).intersection(recent)
        self._both = [text for text in dict.fromkeys(recent) if text in both]
        self._previous = self._split(text for text in previous if text not in both)
        changed = [text for text in recent if text not in both]
        self._recent = self._split(changed)
        self.without_formula = sum(sentences_without_formula(text, language) for text in changed)  # sentences

    def added(self) -> list[Paragraph]:
        """Return the sentences that only the recent version has."""
        return self._new_sentences(self._previous, self._recent, self._key)

    def removed(self) -> list[Paragraph]:
        """Return the sentences that only the previous version has."""
        return self._new_sentences(self._recent, self._previous, self._key)

    def words_of_other_typography(self, added: list[Paragraph]) -> int:
        """Return how many words are in recent sentences that only the exact comparison takes for new."""
        if self._compare == "exact":
            return 0
        exact = self._new_sentences(self._previous, self._recent, sentence_key)
        return sum(map(count_words, exact)) - sum(map(count_words, added))

    def reworded(self, added: list[Paragraph], removed: list[Paragraph]) -> tuple[int, int]:
        """Return how many words are in ``added`` sentences that are similar to one of the previous version.

        The second number counts the same for ``removed`` sentences and the recent version.
        """
        return (
            self._alike(_flat(added), _flat(removed), self._previous),
            self._alike(_flat(removed), _flat(added), self._recent),
        )

    def _alike(self, changed: list[str], likely: list[str], others: list[Paragraph]) -> int:
        """Return the words of changed sentences that are alike to one of the other version."""
        rest = not_alike(changed, likely)
        if rest:  # all other sentences, which splits the paragraphs that both versions have
            rest = not_alike(rest, [*_flat(others), *self._kept])
        return count_words(changed) - count_words(rest)

    def _new_sentences(self, previous: list[Paragraph], recent: list[Paragraph], key: Key) -> list[Paragraph]:
        candidates = new_sentences(previous, recent)
        if not candidates:
            return []
        keys = {key(sentence) for paragraph in previous for sentence in paragraph}
        known = [s for paragraph in candidates for s in paragraph if key(s) in keys or self._in_both(s, key)]
        return new_sentences([*previous, known], recent) if known else candidates

    def _in_both(self, sentence: str, key: Key) -> bool:
        """Return whether a paragraph that both versions have contains the sentence."""
        # a quick check first: splitting loses nothing but white space
        if letters(sentence) not in self._letters:
            return False
        if key not in self._keys:
            self._keys[key] = set(map(key, self._kept))
        return key(sentence) in self._keys[key]

    @functools.cached_property
    def _letters(self) -> bytes:
        return letters("".join(self._both))

    @functools.cached_property
    def _kept(self) -> list[str]:
        """The sentences of the paragraphs that both versions have."""
        return _flat(self._split(self._both))

    def _split(self, texts: Iterable[str]) -> list[Paragraph]:
        return [sentences for text in texts if (sentences := split_sentences(text, self._language))]


def _flat(paragraphs: Iterable[Paragraph]) -> list[str]:
    return [sentence.strip() for paragraph in paragraphs for sentence in paragraph]


@dataclass(frozen=True)
class SentenceDiffTask:
    """The pages with ids in [first, end) of two extracts."""

    index: int
    prev: str
    recent: str
    first: int
    end: int
    language: str
    namespaces: tuple[tuple[str, int], ...]
    largest_prev_id: int
    seed: int
    unchanged_share: float  # of the recent articles: their text outside the diffset is written
    whole: bool  # also write the text of the whole recent snapshot
    compare: str  # the rule of novelty.COMPARISONS


def plan(
    prev: Path,
    recent: Path,
    language: str,
    namespaces: Mapping[str, int],
    seed: int,
    unchanged_pages: int,
    whole: bool,
    compare: str = "folded",
) -> list[SentenceDiffTask]:
    """Cut the page ids into ranges with about RANGE bytes of recent wikitext."""
    groups: list[tuple[int, int]] = []
    articles = 0
    for path in files(recent, "articles"):
        with KeptFile(path) as file:
            articles += file.metadata.num_rows
            for group in range(file.num_row_groups):
                first, _ = file.group_range(group, "page_id")
                sizes = file.read_row_group(group, columns=["size"], use_threads=False)["size"]
                groups.append((first, pc.sum(sizes).as_py() or 0))
    groups.sort()
    bounds, size = [0], 0
    for first, weight in groups:
        if size >= RANGE and first > bounds[-1]:
            bounds.append(first)
            size = 0
        size += weight
    largest = 0
    for path in files(prev, "pages"):
        with KeptFile(path) as file:
            largest = max(largest, *(file.group_range(g, "page_id")[1] for g in range(file.num_row_groups)))
    share = min(1.0, unchanged_pages / articles) if articles else 0.0
    names = tuple(sorted(namespaces.items()))
    return [
        SentenceDiffTask(i, str(prev), str(recent), first, end, language, names, largest, seed, share, whole, compare)
        for i, (first, end) in enumerate(zip(bounds, [*bounds[1:], 1 << 62], strict=True))
    ]


class Article:
    """An article of an extract, whose text is unpacked when it is asked for."""

    __slots__ = ("_articles", "at", "page_id", "revision_id")

    def __init__(self, articles: Articles, at: int) -> None:
        self.at = at  # its position in ``articles``
        self.page_id, self.revision_id = int(articles.page_ids[at]), int(articles.revision_ids[at])
        self._articles = articles

    def __getitem__(self, column: str) -> Any:
        return self._articles.columns[column][self.at].as_py()

    @property
    def wikitext(self) -> str:
        """Its wikitext, unpacked at every access. Raises InputError if it is damaged."""
        try:
            wikitext = unpack(self._articles.packed(self.at), self["size"])
        except (pa.ArrowInvalid, OSError):
            wikitext = b""
        if hashlib.sha1(wikitext, usedforsecurity=False).digest() != self._articles.sha1s[self.at].tobytes():
            folder = self._articles.folder
            raise InputError(f"{folder}: the text of page {self.page_id} is damaged; delete it and build again")
        return wikitext.decode()


class Articles:
    """The articles of an extract with ids in [first, end), sorted by id, one for each page.

    If an extract has several rows for a page, the newest revision counts, and of equal revisions the last row. The
    texts stay in the files until they are asked for.
    """

    def __init__(self, folder: Path, first: int, end: int) -> None:
        self.folder = folder
        self._groups: list[tuple[Path, int]] = []
        self._texts = functools.lru_cache(_GROUPS)(functools.partial(_texts, self._groups))
        schema = pa.schema([field for field in ARTICLES if field.name != "packed"])
        found, places = [schema.empty_table()], [np.empty((0, 2), np.int64)]
        for path in files(folder, "articles"):
            for file, group in _groups(path, first, end):
                rows = file.read_row_group(group, schema.names)
                ids = rows["page_id"].to_numpy()
                wanted = np.flatnonzero((ids >= first) & (ids < end))
                found.append(rows.take(pa.array(wanted)).cast(schema))
                places.append(np.column_stack([np.full(len(wanted), len(self._groups)), wanted]))
                self._groups.append((path, group))
        table = pa.concat_tables(found)
        pages, revisions = (table[name].to_numpy() for name in ("page_id", "revision_id"))
        order = np.lexsort((revisions, pages))
        last = np.append(np.diff(pages[order]) > 0, True)[: len(order)]  # the last row of each page
        self.duplicates = len(order) - int(last.sum())
        table = table.take(pa.array(order[last]))
        self._places = np.concatenate(places)[order[last]]  # the row group and the row of each article
        self.columns = {name: table[name].combine_chunks() for name in schema.names}
        # as integers: datetime objects take longer to make than the rest of a row
        self.columns["timestamp"] = self.columns["timestamp"].cast(pa.int64())
        self.page_ids, self.revision_ids = (self.columns[name].to_numpy() for name in ("page_id", "revision_id"))
        self.sha1s = byte_strings(table["sha1"])

    def packed(self, at: int) -> pa.Buffer:
        """Return the compressed wikitext of an article."""
        group, row = self._places[at].tolist()
        return self._texts(group)[row].as_buffer()

    def __getitem__(self, at: int) -> Article:
        return Article(self, at)

    def __len__(self) -> int:
        return len(self.page_ids)

    def find(self, page_id: int) -> Article | None:
        """Return the article of a page, or None."""
        at = int(np.searchsorted(self.page_ids, page_id))
        return self[at] if at < len(self) and self.page_ids[at] == page_id else None


def _texts(groups: Sequence[tuple[Path, int]], at: int) -> pa.ChunkedArray:
    """Return the compressed texts of a row group."""
    path, number = groups[at]
    with KeptFile(path, verify=False) as file:  # each text has a checksum of its own
        return file.read_row_group(number, ["packed"])["packed"]


def _groups(path: Path, first: int, end: int) -> Iterator[tuple[KeptFile, int]]:
    """Yield the row groups that may have pages in [first, end)."""
    with KeptFile(path) as file:
        for number in range(file.num_row_groups):
            low, high = file.group_range(number, "page_id")
            if high >= first and low < end:
                yield file, number


class _PreviousPages:
    """The revision of every page of prev in a range, with redirects and pages of all namespaces."""

    def __init__(self, folder: Path, first: int, end: int) -> None:
        parts = [(np.empty(0, "i8"), np.empty(0, "i8"))]
        for path in files(folder, "pages"):
            for file, number in _groups(path, first, end):
                rows = file.read_row_group(number, columns=["page_id", "revision_id"], use_threads=False)
                pages, revisions = (column.to_numpy() for column in rows.itercolumns())
                within = (pages >= first) & (pages < end)
                parts.append((pages[within], revisions[within]))
        pages, revisions = map(np.concatenate, zip(*parts, strict=True))
        order = np.lexsort((revisions, pages))[::-1]  # of a page with several rows, the newest revision counts
        self.pages, newest = np.unique(pages[order], return_index=True)
        self._revisions = revisions[order][newest]

    def revision(self, page_id: int) -> int | None:
        at = int(np.searchsorted(self.pages, page_id))
        return int(self._revisions[at]) if at < len(self.pages) and self.pages[at] == page_id else None


def sampled(share: float, seed: int, what: str, numbers: Iterable[int]) -> npt.NDArray[np.bool_]:
    """Return for each number whether it is in a random sample. This depends only on it and the other arguments."""
    texts = (f"{seed} {what} {number}".encode() for number in numbers)
    hashes = b"".join([hashlib.md5(text, usedforsecurity=False).digest() for text in texts])
    values = np.frombuffer(hashes, "<u8")[::2]
    limit = math.ceil(share * 2**64)
    return values < np.uint64(limit) if limit < 2**64 else np.ones(len(values), dtype=bool)


def run(task: SentenceDiffTask, folder: Path) -> Report:
    """Compare one range of pages, and count every recent article as unchanged, new, updated or dropped."""
    prev, recent = (Articles(Path(side), task.first, task.end) for side in (task.prev, task.recent))
    _, in_prev, in_recent = np.intersect1d(prev.page_ids, recent.page_ids, assume_unique=True, return_indices=True)
    same_revision = prev.revision_ids[in_prev] == recent.revision_ids[in_recent]
    same_wikitext = (prev.sha1s[in_prev] == recent.sha1s[in_recent]) & ~same_revision
    with _RangeDiff(task, folder, prev, recent) as diff:
        diff.prev["in_both"] = len(in_prev)
        diff.unchanged_because["same_revision"] = int(same_revision.sum())
        diff.unchanged_because["same_wikitext"] = int(same_wikitext.sum())
        unchanged = np.zeros(len(recent), dtype=bool)
        unchanged[in_recent] = same_revision | same_wikitext
        diff.pages["unchanged"] = int(unchanged.sum())
        befores = np.full(len(recent), -1)
        befores[in_recent] = in_prev
        afters = np.flatnonzero(~unchanged | diff.wanted)
        vanished = np.setdiff1d(np.arange(len(prev)), in_prev, assume_unique=True)
        order = np.argsort(np.concatenate([prev.page_ids[vanished], recent.page_ids[afters]]))
        pairs = [np.append(vanished, befores[afters])[order], np.append(np.full(len(vanished), -1), afters)[order]]
        for at_before, at_after in zip(*(side.tolist() for side in pairs), strict=True):
            if at_after < 0:
                diff.vanished(prev[at_before])
            elif unchanged[at_after]:
                # prefer the text of prev, whose row groups are read anyway
                same = prev.sha1s[at_before] == recent.sha1s[at_after]
                diff.unchanged(recent[at_after], prev[at_before] if same else recent[at_after])
            else:
                diff.changed(prev[at_before] if at_before >= 0 else None, recent[at_after])
    return diff.report()


_WORDS = ("words", "words_new", "words_reworded", "words_of_other_typography")


class _RangeDiff(contextlib.ExitStack):
    """The output files and counters of one task."""

    def __init__(self, task: SentenceDiffTask, folder: Path, prev: Articles, recent: Articles) -> None:
        super().__init__()
        self.task, self.namespaces = task, dict(task.namespaces)
        self.sampled = sampled(task.unchanged_share, task.seed, "unchanged page", recent.page_ids.tolist())
        self.wanted = self.sampled | task.whole  # articles whose whole text is written
        self.previous_pages = _PreviousPages(Path(task.prev), task.first, task.end)
        new = np.flatnonzero(~np.isin(recent.page_ids, self.previous_pages.pages))
        titles = sorted({recent[at]["title"] for at in new.tolist()})
        self.old_titles = titles_among(files(Path(task.prev), "pages"), titles)  # of new pages: another one had them
        self.pages = {"read": len(recent), "unchanged": 0, "new": 0, "updated": 0}
        self.dropped: dict[str, int] = {}
        self.unchanged_because = {"same_revision": 0, "same_wikitext": 0, "same_sentences": 0, "only_deletions": 0}
        self.updated_because = {"article_before": 0, "no_article_before": 0, "missing_in_prev": 0, "title_before": 0}
        self.duplicates, self.prev_duplicates = recent.duplicates, prev.duplicates
        self.prev = {"prev_articles": len(prev), "in_both": 0, "deleted": 0}
        self.prev_dropped: dict[str, int] = {}
        self.text = dict.fromkeys(("paragraphs", "sentences", *_WORDS, "sentences_without_formula"), 0)
        self.templates: dict[str, int] = {}  # dropped inside prose
        name = f"{task.index:05d}.parquet"
        tables = {"diffset": CHANGED, "deletions": CHANGED, "unchanged": WHOLE, "wikipedia": WHOLE}
        self.out = {
            table: self.enter_context(ParquetWriter(folder / f"{table}-{name}", schema, rows=4096))
            for table, schema in tables.items()
        }

    def vanished(self, before: Article) -> None:
        """Write an article of prev that is not an article in recent."""
        try:
            removed = self._sentences(before)
        except UnreadablePage as problem:
            _count(self.prev_dropped, problem.reason)
            return
        self.prev["deleted"] += 1
        if removed:
            revisions = {"revision_id": None, "previous_revision_id": before.revision_id}
            self._write("deletions", before, removed, 0, kind="deleted", **revisions)

    def unchanged(self, after: Article, same: Article) -> None:
        """Write the text of an article whose wikitext did not change; ``same`` has the same wikitext."""
        with contextlib.suppress(UnreadablePage):  # counted as unchanged all the same
            self._write_whole(after, self._sentences(same), [])

    def changed(self, before: Article | None, after: Article) -> None:
        """Compare an article whose wikitext changed, or that was no article in prev, and write what differs."""
        language = self.task.language
        text, text_before = after.wikitext, "" if before is None else before.wikitext
        try:
            with time_limit(SECONDS):  # once for the page: setting a timer takes longer than most steps
                prev, recent = read_versions(text_before, text, namespaces=self.namespaces, language=language)
                versions = ArticleVersions(prev.paragraphs, recent.paragraphs, language, self.task.compare)
                added, removed = versions.added(), versions.removed()
                reworded, reworded_before = versions.reworded(added, removed)
                other_typography = versions.words_of_other_typography(added)
                wanted = recent.paragraphs if self.wanted[after.at] else []
                whole = [sentences for text in wanted if (sentences := split_sentences(text, language))]
        except UnreadablePage as problem:
            _count(self.dropped, problem.reason)
            return
        self._write_whole(after, whole, added)
        self.text["words_of_other_typography"] += other_typography
        self.text["sentences_without_formula"] += versions.without_formula
        for name in recent.dropped:
            _count(self.templates, name)
        if before is not None and removed:
            revision = before.revision_id
            self._write("deletions", after, removed, reworded_before, kind="updated", previous_revision_id=revision)
        if before is not None and not added:
            self.pages["unchanged"] += 1
            self.unchanged_because["only_deletions" if removed else "same_sentences"] += 1
        elif not added:
            _count(self.dropped, "no_prose")
        else:
            kind, previous_revision = self._kind(before, after)
            self.pages[kind] += 1
            self._write("diffset", after, added, reworded, kind=kind, previous_revision_id=previous_revision)
            self.text["paragraphs"] += len(added)
            self.text["sentences"] += sum(map(len, added))
            self.text["words"] += (of_text := sum(map(count_words, added)))
            self.text["words_new"] += of_text - reworded
            self.text["words_reworded"] += reworded

    def _kind(self, before: Article | None, after: Article) -> tuple[str, int | None]:
        """Return "new" or "updated", and the previous revision if prev has one.

        A page that was no article in prev is not always new.
        """
        if before is not None:
            self.updated_because["article_before"] += 1
            return "updated", before.revision_id
        if (revision := self.previous_pages.revision(after.page_id)) is not None:  # redirect or other namespace
            self.updated_because["no_article_before"] += 1
            return "updated", revision
        if after["parent_id"] is not None and after.page_id < self.task.largest_prev_id:
            # an old page that prev's dump does not have: it was deleted at that time, or the export missed it
            self.updated_because["missing_in_prev"] += 1
            return "updated", None
        if after["title"] in self.old_titles:  # the page with that title was deleted or moved away
            self.updated_because["title_before"] += 1
            return "updated", None
        return "new", None

    def _sentences(self, article: Article) -> list[Paragraph]:
        return article_sentences(article.wikitext, self.task.language, self.namespaces)

    def _write_whole(self, after: Article, recent: list[Paragraph], added: list[Paragraph]) -> None:
        if self.task.whole and recent:
            self._write("wikipedia", after, recent)
        if self.sampled[after.at] and (rest := new_sentences(added, recent)):
            self._write("unchanged", after, rest)

    def _write(
        self, table: str, article: Article, paragraphs: list[Paragraph], reworded: int | None = None, **columns: Any
    ) -> None:
        out = self.out[table]
        row: dict[str, Any] = {"page_id": article.page_id, "revision_id": article.revision_id}
        row |= {column: article[column] for column in ("title", "timestamp")}
        if reworded is None:
            row["text"] = join_paragraphs(paragraphs)
        else:
            row |= {"sentences": paragraphs, "words_reworded": reworded}
            row["words_new"] = sum(map(count_words, paragraphs)) - reworded
        out.write(row | columns, size=sum(len(s) for p in paragraphs for s in p))

    def report(self) -> Report:
        pages = self.pages
        accounted = pages["unchanged"] + pages["new"] + pages["updated"] + sum(self.dropped.values())
        if pages["read"] != accounted:
            raise AssertionError(f"{pages['read']} articles read, {accounted} accounted for")
        return {
            "pages": {
                **pages,
                "dropped": self.dropped,
                "unchanged_because": self.unchanged_because,
                "updated_because": self.updated_because,
                "duplicates": self.duplicates,
            },
            "prev_pages": {**self.prev, "dropped": self.prev_dropped},
            "diffset": self.text,
            "templates": dict(most_frequent(self.templates, 1000)),
            "wrote": [out.path for out in self.out.values()],
            "found": {  # rows, to compare with the reports of the extracts
                "prev": self.prev["prev_articles"] + self.prev_duplicates,
                "recent": pages["read"] + self.duplicates,
            },
        }


def most_frequent(counts: Mapping[str, int], most: int) -> list[tuple[str, int]]:
    """Return the names with the greatest counts, the greatest first."""
    return sorted(counts.items(), key=lambda count: (-count[1], count[0]))[:most]


def _count(counts: dict[str, int], reason: str) -> None:
    counts[reason] = counts.get(reason, 0) + 1
