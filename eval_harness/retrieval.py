"""Retrieval: the model reads passages before each question. It is the baseline for what training puts into weights."""

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import bm25s
import numpy as np
import regex

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.base.terminal import say
from temporalwiki.builders.ckl.text_steps import occurs
from temporalwiki.eval_harness.misalignment import month_of, places
from temporalwiki.eval_harness.models.model import Model
from temporalwiki.eval_harness.scoring import SENTINEL
from temporalwiki.eval_harness.task import Row
from temporalwiki.methods.architecture import context_length
from temporalwiki.methods.packing import Encoder
from temporalwiki.methods.processes import processes
from temporalwiki.methods.training_data import check_config, content_key, load

EVIDENCE = "evidence"  # this source is the sentence in each row of probes and of CKL's data
VERSION = 1  # raise it if other passages are retrieved, or a model reads them differently
PASSAGES = "passages"  # the key of a row for its passages, the best first

_WORDS = 100  # words of a passage, as in DPR (Karpukhin et al. 2020)
_ANSWER = 64  # tokens of the model's context that passages leave to the answer
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
_WORD = regex.compile(rf"(?V1)[{_UNSPACED}]|[[\p{{L}}\p{{M}}\p{{N}}_]--[{_UNSPACED}]]+")


@dataclass(frozen=True)
class Retriever:
    """Finds the passages of a config that fit a question best, or takes the evidence that a row holds.

    An article is cut into passages of 100 words, each with the title of its article in front. Passages are ranked by
    BM25 in Lucene's form (k1 = 1.5, b = 0.75), without stemming and stop words, after NFC and case folding. In scripts
    without spaces each character is a word. Equal scores keep the order of the config. A passage that shares no word
    with the question is not retrieved.

    Of several configs, only those of months up to ``month`` are searched: what was known then. The passages of the
    newest come first among equal scores.
    """

    data: str  # folder, Hub id or id@revision
    source: str  # a config, several with commas, or "evidence"
    top_k: int = 5
    month: str | None = None  # of the questions

    @property
    def configs(self) -> list[str]:
        """The configs that are searched, the newest first; as given for configs without a month."""
        named = list(dict.fromkeys(self.source.split(",")))
        months = {config: month for config in named if (month := month_of(config)) is not None}
        if self.month is None or len(months) < len(named) or len(named) == 1:
            return named
        place = places([*months.values(), self.month])
        known = [config for config in named if place[months[config]] <= place[self.month]]
        return sorted(known, key=lambda config: -place[months[config]])

    def check(self, available: list[str]) -> None:
        """Raise UsageError if the source is not one of the ``available`` configs, or has no text."""
        if self.top_k < 1:
            raise UsageError(f"--top-k must be at least 1, not {self.top_k}")
        if self.source == EVIDENCE:
            return
        for config in self.source.split(","):
            check_config(self.data, config, available)
            columns = next(iter(load(self.data, config, None).values())).column_names
            if "text" not in columns:
                raise UsageError(
                    f"--retrieve {config}: it has no column 'text', only {', '.join(columns)}; name a config with "
                    f"text, such as diffset-*, or {EVIDENCE}"
                )

    @property
    def identity(self) -> dict[str, Any]:
        """What a result records about its passages; a result with another source is another result."""
        if self.source == EVIDENCE:
            return {"source": EVIDENCE, "version": VERSION}
        keys = [content_key(self.data, config) for config in self.configs]
        return {
            "source": self.source,
            "top_k": self.top_k,
            "hash": keys[0] if len(keys) == 1 else fingerprint(keys),
            "version": VERSION,
        }

    def with_passages(self, rows: Sequence[Row], query: Sequence[str], where: str) -> list[Row]:
        """Return rows with their passages; ``query`` are the columns with the words of the question.

        Raises UsageError if the rows hold no evidence, and InputError if the source is empty.
        """
        if self.source != EVIDENCE:
            questions = [" ".join(str(row[column] or "") for column in query).replace(SENTINEL, " ") for row in rows]
            found = {question: self._best(question) for question in dict.fromkeys(questions)}
            return [{**row, PASSAGES: found[question]} for row, question in zip(rows, questions, strict=True)]
        if rows and EVIDENCE not in rows[0]:
            raise UsageError(f"--retrieve {EVIDENCE}: {where} has no column {EVIDENCE!r}; name a config with text")
        return [{**row, PASSAGES: [_titled(row, row[EVIDENCE])] if row[EVIDENCE] else []} for row in rows]

    @cached_property
    def _loaded(self) -> dict[str, Any]:
        each = {config: load(self.data, config, None) for config in self.configs}
        return {f"{config}/{split}": rows for config, splits in each.items() for split, rows in splits.items()}

    @cached_property
    def _index(self) -> tuple[bm25s.BM25, list[str]]:
        if processes().is_main_process:
            say(f"retrieve: indexing {self.data}, {self.source}")
        passages = [passage for split in self._loaded.values() for row in split for passage in cut(row)]
        if not passages:
            raise InputError(f"{self.data}, {self.source}: no text to retrieve from")
        index = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
        index.index([words(passage) for passage in passages], show_progress=False)
        return index, passages

    def _best(self, question: str) -> list[str]:
        index, passages = self._index
        asked = [word for word in words(question) if word in index.vocab_dict]
        if not asked:
            return []
        scores = index.get_scores(asked)
        least = np.partition(scores, -self.top_k)[-self.top_k] if self.top_k < len(scores) else 0
        found = np.flatnonzero((scores > 0) & (scores >= least))
        best = found[np.lexsort((found, -scores[found]))][: self.top_k]
        return [passages[i] for i in best]


def found_right(rows: Sequence[Row]) -> dict[str, int]:
    """Count the rows whose passages are "right", and those whose right passage is also "current"; empty without facts.

    A passage is right if it is of the fact's article and names a right object. It is current if no passage of the
    article that only names a gone object stands before it.
    """
    facts = [row for row in rows if row.get("object") and row.get("title")]
    counts = {"right": 0, "current": 0} if facts else {}
    for row in facts:
        own = [passage for passage in row[PASSAGES] if passage.startswith(f"{row['title']}. ")]
        gone = row.get("gone_objects")
        gone = row.get("previous_objects") or () if gone is None else gone
        right = [
            _names(passage, (row["object"], *(row.get("objects") or ()), *(row.get("aliases") or ())))
            for passage in own
        ]
        at = right.index(True) if True in right else len(right)
        counts["right"] += any(right)
        counts["current"] += any(right) and not any(_names(passage, gone) for passage in own[:at])
    return counts


def _names(passage: str, names: Sequence[str]) -> bool:
    return any(occurs(name, passage) for name in names)


def cut(row: Row) -> Iterator[str]:
    """Yield the passages of an article, each with the title in front."""
    text = str(row["text"] or "")
    begins = [word.start() for word in _WORD.finditer(text)][::_WORDS]
    for begin, end in zip(begins, [*begins, len(text)][1:], strict=True):
        yield _titled(row, text[begin:end])


def words(text: str) -> list[str]:
    """Return the words of a text, as BM25 counts them."""
    return list(_WORD.findall(unicodedata.normalize("NFC", text).casefold()))


def reading(model: Model) -> Callable[[Row, str], str]:
    """Return a function of a row and its prompt: the text that the model reads before the prompt.

    It has the row's passages, the best one last, and a blank line after each. If a prompt does not fit into the
    model's context with 64 tokens to spare, the beginning of the text is cut off, never the prompt. The text is empty
    for a row without passages.
    """
    encoders: list[Encoder] = []  # made for the first row that has passages

    def before(row: Row, prompt: str) -> str:
        text = "".join(f"{passage}\n\n" for passage in reversed(row.get(PASSAGES) or ()))
        longest = context_length(model.loaded.model.config) if text else None
        if longest is None:
            return text
        encoders.extend([Encoder(model.loaded.tokenizer)] if not encoders else [])
        while text:
            [(ids, offsets)] = encoders[0].with_offsets([text + prompt])
            over = 1 + len(ids) + _ANSWER - longest  # 1: BOS
            if over <= 0:
                break
            text = text[max(1, int(offsets[min(over, len(ids)) - 1, 1])) :].lstrip()
        return text

    return before


def _titled(row: Mapping[str, Any], text: str) -> str:
    text = " ".join(text.replace(SENTINEL, " ").split())
    return f"{row['title']}. {text}" if row.get("title") else text
