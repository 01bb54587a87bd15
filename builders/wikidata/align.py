"""Stage align: find the sentence that best supports each fact (TemporalWiki, section 3.3) and filter single facts.

The text that must name a fact's object is, for a changed fact, the changed text of its subject's page; for an
unchanged fact, the whole recent text; for a deleted fact, the removed text.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from temporalwiki.builders.parquet import KeptFile, ParquetWriter, read_rows
from temporalwiki.builders.stages import Report
from temporalwiki.builders.wikidata import support
from temporalwiki.builders.wikidata.cues import Cue, cues_of
from temporalwiki.builders.wikidata.fact_diff import CANDIDATES
from temporalwiki.builders.wikidata.respelled import is_respelled
from temporalwiki.builders.wikidata.tables import properties
from temporalwiki.builders.wikipedia.outline import Place, links, outline
from temporalwiki.builders.wikipedia.plain_text import UnreadablePage
from temporalwiki.builders.wikipedia.sentence_diff import Articles, SentenceDiffTask
from temporalwiki.builders.wikipedia.variants import convert, variant_of
from temporalwiki.builders.wikipedia.words import plain

VERSION = 9
MAX_OBJECT_WORDS = 5
_MOST_SENTENCES = 40  # of a page that name an object and are compared; later ones are not

_ONLY_HERE = ("page_id", "object_title", "object_aliases", "subject_aliases")
ALIGNED = pa.schema(
    [
        *(field for field in CANDIDATES if field.name not in _ONLY_HERE),
        *(pa.field(name, pa.int64()) for name in ("page_id", "page_revision_id")),
        *(pa.field(name, pa.string()) for name in ("title", "evidence", "support")),
        *(pa.field(name, pa.bool_()) for name in ("respelled", "strict", "newly_stated")),
    ]
)


@dataclass(frozen=True)
class AlignTask:
    """The candidates whose page id is in [first, end)."""

    index: int
    candidates: str
    diffs: str  # the folder of stage wiki-diff
    prev: str  # the extracts of the Wikipedia dumps
    recent: str
    wikidata: tuple[str, ...]  # the extracts of the Wikidata dumps, the later one first
    first: int
    end: int
    language: str
    namespaces: tuple[tuple[str, int], ...]


def plan(
    pages: Sequence[SentenceDiffTask], candidates: Path, diffs: Path, wikidata: tuple[str, ...]
) -> list[AlignTask]:
    """Return a task for the page range of each task of stage wiki-diff."""
    return [
        AlignTask(
            *(of.index, str(candidates), str(diffs), of.prev, of.recent, wikidata),
            *(of.first, of.end, of.language, of.namespaces),
        )
        for of in pages
    ]


def says(sentence: str, label: str) -> bool:
    """Return whether ``sentence`` contains ``label`` as whole words, in the forms of ``plain`` and ignoring case."""
    text, part = (plain(s).casefold() for s in (sentence, label))
    return any(True for _ in support.occurrences(text, part))


def run(task: AlignTask, folder: Path) -> Report:
    """Align and filter the candidates of one page range, and count what becomes of each."""
    counts: dict[str, dict[str, Any]] = {
        split: {"candidates": 0, "not_aligned": {}, "aligned": 0, "filtered": {}, "kept": 0}
        for split in ("unchanged", "changed", "deleted")
    }
    pages = _Pages(task)
    with ParquetWriter(folder / f"aligned-{task.index:05d}.parquet", ALIGNED, rows=20_000) as out:
        for row in _candidates(task):
            count = counts[row["split"]]
            count["candidates"] += 1
            try:
                aligned = _align(row, pages.at(row["page_id"]))
            except _NotAligned as problem:
                count["not_aligned"][problem.reason] = count["not_aligned"].get(problem.reason, 0) + 1
                continue
            count["aligned"] += 1
            if reason := filtered(row["subject"], row["object"]):
                count["filtered"][reason] = count["filtered"].get(reason, 0) + 1
                continue
            count["kept"] += 1
            out.write(aligned, size=len(aligned["evidence"]))
    return {"alignment": counts, "wrote": [out.path]}


class _NotAligned(ValueError):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _candidates(task: AlignTask) -> Iterator[dict[str, Any]]:
    """Yield the candidates of the range, sorted by page."""
    parts = [_candidates_in(path, task) for path in sorted(Path(task.candidates).glob("candidates-*.parquet"))]
    return heapq.merge(*parts, key=lambda row: (row["page_id"], row["s"], row["p"], row["o"], row["split"]))


def _candidates_in(path: Path, task: AlignTask) -> Iterator[dict[str, Any]]:
    with KeptFile(path) as file:
        for group in range(file.num_row_groups):
            low, high = file.group_range(group, "page_id")
            if high < task.first or low >= task.end:
                continue
            for batch in file.iter_batches(2048, row_groups=[group], use_threads=False):
                at = np.searchsorted(batch["page_id"].to_numpy(), [task.first, task.end])
                yield from batch.slice(at[0], at[1] - at[0]).to_pylist()


class _ArticleText:
    """A text to find facts in, and the article that it comes from."""

    def __init__(self, title: str, revision_id: int, sentences: Sequence[str], article: _Article) -> None:
        self.title, self.revision_id, self.article = title, revision_id, article
        self.sentences = [(sentence, text := plain(sentence), support.fold(text)) for sentence in sentences]

    def find(self, names: support.Names) -> Iterator[tuple[str, str, list[tuple[int, int]]]]:
        """Yield the sentences that name an object, with their ``plain`` text and the places in it that do."""
        label, others = names.label, names.linked
        for sentence, text, folded in self.sentences:
            if not (label in folded or (others and any(name in folded for name in others))):
                continue  # most sentences
            if spans := list(names.find(text, folded)):
                yield sentence, text, spans


class _Article:
    """An article at one date; its parts are computed on first use."""

    def __init__(self, articles: Articles, page_id: int, task: AlignTask) -> None:
        self._task = task
        self._found = articles.find(page_id)

    @functools.cached_property
    def wikitext(self) -> str:
        """The wikitext, or "" without an article."""
        return self._found.wikitext if self._found is not None else ""

    @functools.cached_property
    def normalised(self) -> str:
        """The wikitext in the form of ``plain``."""
        return plain(html.unescape(self.wikitext))

    @functools.cached_property
    def folded(self) -> str:
        """The wikitext in that form, without case."""
        return support.fold(self.normalised)

    @functools.cached_property
    def links(self) -> list[support.LinkText]:
        """The texts of its links."""
        variant = variant_of(self._task.language)
        text = convert(self.wikitext, variant) if variant else self.wikitext
        return [support.LinkText.of(shown, titles) for shown, titles in links(text).items()]

    @functools.cached_property
    def link_texts(self) -> frozenset[str]:
        """The texts of its links, folded."""
        return frozenset(link.text for link in self.links)

    @functools.cached_property
    def places(self) -> dict[str, Place]:
        """The place of each sentence, in reading order; empty if the article cannot be read."""
        found: dict[str, Place] = {}
        with contextlib.suppress(UnreadablePage):  # stage wiki-diff has counted the page
            for line in outline(self.wikitext, self._task.language, dict(self._task.namespaces)):
                for sentence in line.sentences:
                    found.setdefault(sentence, line.place)
        return found

    @functools.cached_property
    def text(self) -> _ArticleText | None:
        """The whole text of the article, or None without an article."""
        if self._found is None or not self.places:
            return None
        return _ArticleText(self._found["title"], self._found.revision_id, list(self.places), self)


class _Pages:
    """Finds the texts of pages; pages must be asked for in ascending order."""

    def __init__(self, task: AlignTask) -> None:
        self.task = task
        name = f"{task.index:05d}.parquet"
        columns = ["page_id", "title", "revision_id", "previous_revision_id", "sentences"]
        self.changed: dict[str, dict[int, dict[str, Any]]] = {
            split: {row["page_id"]: row for row in read_rows([Path(task.diffs) / f"{table}-{name}"], columns)}
            for split, table in (("changed", "diffset"), ("deleted", "deletions"))
        }
        self.prev, self.recent = (Articles(Path(side), task.first, task.end) for side in (task.prev, task.recent))
        self._page: _Page | None = None
        self._phrases = properties(*map(Path, task.wikidata))
        self.cues = functools.cache(self._cues)

    def at(self, page_id: int) -> _Page:
        """Return a page."""
        if self._page is None or self._page.page_id != page_id:
            self._page = _Page(self, page_id)
        return self._page

    def _cues(self, relation: int) -> list[Cue]:
        return cues_of(relation, self._phrases.get(relation, ()), self.task.language)


class _Page:
    """A page and its texts, which are read on first use."""

    def __init__(self, pages: _Pages, page_id: int) -> None:
        self.page_id, self._pages, self.language = page_id, pages, pages.task.language
        self.cues = pages.cues
        self.texts = functools.cache(self._text)

    @functools.cached_property
    def prev(self) -> _Article:
        """The article in the earlier snapshot."""
        return _Article(self._pages.prev, self.page_id, self._pages.task)

    @functools.cached_property
    def recent(self) -> _Article:
        """The article in the later snapshot."""
        return _Article(self._pages.recent, self.page_id, self._pages.task)

    def _text(self, split: str) -> _ArticleText | None:
        """Return the text that must mention a fact of ``split``, or None if it does not exist."""
        if split == "unchanged":
            return self.recent.text
        row = self._pages.changed[split].get(self.page_id)
        if row is None:
            return None
        side, revision = (self.prev, "previous_revision_id") if split == "deleted" else (self.recent, "revision_id")
        sentences = [sentence.strip() for paragraph in row["sentences"] for sentence in paragraph]
        return _ArticleText(row["title"], row[revision], sentences, side)

    def mentioned_before(self, row: dict[str, Any]) -> bool:
        """Return whether the previous article mentions a fact's object anywhere, templates and links included."""
        article, language = self.prev, self.language
        if any(True for _ in support.occurrences(article.folded, support.fold(plain(row["object"])), language)):
            return True
        aliases = map(plain, row["object_aliases"])
        if any(True for alias in aliases for _ in support.occurrences(article.normalised, alias, language)):
            return True
        return any(row["object_title"] in link.hashes for link in article.links)


def _align(row: dict[str, Any], page: _Page) -> dict[str, Any]:
    """Return a candidate with its evidence. Raises _NotAligned with the reason if nothing supports it."""
    for name in ("subject", "relation", "object"):
        if not row[name]:
            raise _NotAligned(f"{name}_without_label")
    text = page.texts(row["split"])
    if text is None:
        reasons = {"changed": "page_not_in_diffset", "deleted": "nothing_removed_from_page"}
        raise _NotAligned(reasons.get(row["split"], "no_page"))
    names = support.Names(row["object"], row["object_title"], text.article.links, page.language)
    best, rank, level = "", -1, support.MENTIONED
    cues, others = page.cues(row["p"]), text.article.link_texts
    subject = support.Subject.of(row["subject"], text.title, *row["subject_aliases"], others=others)
    for sentence, plain_text, spans in islice(text.find(names), _MOST_SENTENCES):
        place = text.article.places.get(sentence, Place())
        found, word = support.support(row["p"], row["relation"], plain_text, spans, place, cues, subject)
        if found > rank:
            best, rank, level = sentence, found, word
        if rank == support.BEST:
            break
    if rank < 0:
        raise _NotAligned("object_not_in_text")
    aligned = {"page_revision_id": text.revision_id, "title": text.title, "evidence": best, "support": level}
    newly_stated = row["split"] == "changed" and level != support.MENTIONED and not page.mentioned_before(row)
    gone = [*row["gone_objects"], *(name for name in row["previous_objects"] if name not in row["objects"])]
    row |= aligned | {"respelled": row["split"] == "changed" and is_respelled(row["object"], gone)}
    return row | {"strict": _is_strict(row, newly_stated), "newly_stated": newly_stated}


def _is_strict(row: dict[str, Any], newly_stated: bool) -> bool:
    """Return whether a fact is stated or listed and right, and, if it is a changed one, whether it is new."""
    if row["support"] not in (support.STATED, support.LIST) or not row["current"] or row["split"] == "deleted":
        return False
    if row["split"] == "unchanged":
        return True
    if row["respelled"] or row["dated"] not in ("within", "undated"):
        return False
    replaced = row["kind"] == "new_object" and bool(row["gone_objects"])
    return row["dated"] == "within" or replaced or newly_stated


def filtered(subject: str, obj: str) -> str | None:
    """Return why filters 1 and 2 of section 3.3 drop a fact, or None if they keep it.

    Filter 1 drops a fact if one label contains the other, ignoring case; filter 2 if the object has more than five
    words.
    """
    a, b = plain(subject).casefold(), plain(obj).casefold()
    if a in b or b in a:
        return "subject_and_object_overlap"
    return "object_longer_than_5_words" if len(obj.split()) > MAX_OBJECT_WORDS else None
