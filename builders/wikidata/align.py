"""Stage align: find the sentence that supports each fact (TemporalWiki, section 3.3) and filter single facts.

The text that must mention a fact's object is, for a changed fact, the changed text of its subject's page; for an
unchanged fact, the whole recent text; for a deleted fact, the removed text.
"""

from __future__ import annotations

import contextlib
import heapq
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from temporalwiki.builders.parquet import KeptFile, ParquetWriter, read_rows
from temporalwiki.builders.stages import Report
from temporalwiki.builders.wikidata.fact_diff import CANDIDATES
from temporalwiki.builders.wikipedia.plain_text import UnreadablePage
from temporalwiki.builders.wikipedia.sentence_diff import Articles
from temporalwiki.builders.wikipedia.sentences import Paragraph, article_sentences

VERSION = 3
MAX_OBJECT_WORDS = 5
LONGEST_LABEL = 250  # characters; Wikidata allows no longer ones

ALIGNED = pa.schema(
    [
        *(CANDIDATES.field(name) for name in CANDIDATES.names if name != "page_id"),
        pa.field("page_id", pa.int64()),
        pa.field("page_revision_id", pa.int64()),
        pa.field("title", pa.string()),
        pa.field("evidence", pa.string()),
    ]
)


@dataclass(frozen=True)
class AlignTask:
    """The candidates whose page id is in [first, end)."""

    index: int
    candidates: str
    diffs: str  # the folder of stage wiki-diff
    recent: str  # the extract of the recent Wikipedia dump
    first: int
    end: int
    language: str
    namespaces: tuple[tuple[str, int], ...]


def says(sentence: str, label: str) -> bool:
    """Return whether ``sentence`` contains ``label`` as whole words, after NFC and ignoring case.

    An end of the label that is in a script without spaces between words needs no word boundary. A label longer than
    LONGEST_LABEL is never found, because the search could take for ever.
    """
    if len(label) > LONGEST_LABEL:
        return False
    text, part = (unicodedata.normalize("NFC", s).casefold() for s in (sentence, label))
    if not part:
        return False
    at = text.find(part)
    while at >= 0:
        after = at + len(part)
        if _boundary(text[at - 1 : at], part[0]) and _boundary(text[after : after + 1], part[-1]):
            return True
        at = text.find(part, at + 1)
    return False


def _boundary(outside: str, inside: str) -> bool:
    return not (_in_word(outside) and _in_word(inside)) or _unspaced(inside)


def _in_word(character: str) -> bool:
    return bool(character) and (character.isalnum() or character == "_")


def _unspaced(character: str) -> bool:
    """Return whether a character is of a script without spaces between words.

    These are Han, kana and Hangul; Thai, Lao, Khmer, Burmese, Tibetan and Javanese.
    """
    c = ord(character)
    return (
        0x2E80 <= c <= 0x9FFF
        or 0xAC00 <= c <= 0xD7FF
        or 0xF900 <= c <= 0xFAFF
        or 0x20000 <= c <= 0x3FFFF
        or 0x0E00 <= c <= 0x109F
        or 0x1780 <= c <= 0x17FF
        or 0xA980 <= c <= 0xA9DF
    )


def evidence(paragraphs: Sequence[Paragraph], label: str) -> str | None:
    """Return the first sentence that contains ``label``, or None."""
    return next((s.strip() for sentences in paragraphs for s in sentences if says(s, label)), None)


def run(task: AlignTask, folder: Path) -> Report:
    """Align and filter the candidates of one page range, and count what becomes of each."""
    counts: dict[str, dict[str, Any]] = {
        split: {"candidates": 0, "not_aligned": {}, "aligned": 0, "filtered": {}, "kept": 0}
        for split in ("unchanged", "changed", "deleted")
    }
    texts = _PageTexts(task)
    with ParquetWriter(folder / f"aligned-{task.index:05d}.parquet", ALIGNED, rows=20_000) as out:
        for row in _candidates(task):
            count = counts[row["split"]]
            count["candidates"] += 1
            try:
                aligned = _align(row, texts)
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


@dataclass(frozen=True)
class _PageText:
    title: str
    revision_id: int
    paragraphs: list[Paragraph]


class _PageTexts:
    """Finds the texts of pages; pages must be asked for in ascending order."""

    def __init__(self, task: AlignTask) -> None:
        name = f"{task.index:05d}.parquet"
        self._language, self._namespaces = task.language, dict(task.namespaces)
        columns = ["page_id", "title", "revision_id", "previous_revision_id", "sentences"]
        self._changed = {
            "changed": _Cursor(read_rows([Path(task.diffs) / f"diffset-{name}"], columns)),
            "deleted": _Cursor(read_rows([Path(task.diffs) / f"deletions-{name}"], columns)),
        }
        self._articles = Articles(Path(task.recent), task.first, task.end)
        self._article: tuple[int, _PageText | None] = (0, None)

    def of(self, split: str, page_id: int) -> _PageText | None:
        """Return the text that must mention a fact of ``split``, or None if it does not exist."""
        if split == "unchanged":
            return self._whole_article(page_id)
        row = self._changed[split].at(page_id)
        if row is None:
            return None
        revision = row["previous_revision_id"] if split == "deleted" else row["revision_id"]
        return _PageText(row["title"], revision, row["sentences"])

    def _whole_article(self, page_id: int) -> _PageText | None:
        if self._article[0] != page_id:
            text, article = None, self._articles.find(page_id)
            if article is not None:
                with contextlib.suppress(UnreadablePage):  # stage wiki-diff has counted the page
                    sentences = article_sentences(article.wikitext, self._language, self._namespaces)
                    text = _PageText(article["title"], article.revision_id, sentences)
            self._article = page_id, text
        return self._article[1]


class _Cursor:
    """Finds rows by page id; pages must be asked for in ascending order."""

    def __init__(self, rows: Iterator[dict[str, Any]]) -> None:
        self._rows, self._row = rows, next(rows, None)

    def at(self, page_id: int) -> dict[str, Any] | None:
        while self._row is not None and self._row["page_id"] < page_id:
            self._row = next(self._rows, None)
        return self._row if self._row is not None and self._row["page_id"] == page_id else None


def _align(row: dict[str, Any], texts: _PageTexts) -> dict[str, Any]:
    """Return a candidate with its evidence. Raises _NotAligned with the reason if nothing supports it."""
    for name in ("subject", "relation", "object"):
        if not row[name]:
            raise _NotAligned(f"{name}_without_label")
    text = texts.of(row["split"], row["page_id"])
    if text is None:
        raise _NotAligned(
            {"changed": "page_not_in_diffset", "deleted": "nothing_removed_from_page"}.get(row["split"], "no_page")
        )
    sentence = evidence(text.paragraphs, row["object"])
    if sentence is None:
        raise _NotAligned("object_not_in_text")
    return row | {"page_revision_id": text.revision_id, "title": text.title, "evidence": sentence}


def filtered(subject: str, obj: str) -> str | None:
    """Return why filters 1 and 2 of section 3.3 drop a fact, or None if they keep it.

    Filter 1 drops a fact if one label contains the other, ignoring case; filter 2 if the object has more than five
    words.
    """
    a, b = subject.casefold(), obj.casefold()
    if a in b or b in a:
        return "subject_and_object_overlap"
    return "object_longer_than_5_words" if len(obj.split()) > MAX_OBJECT_WORDS else None
