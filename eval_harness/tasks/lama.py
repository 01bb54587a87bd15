"""LAMA clozes: what a model knows that stays true, that was updated, and that is new (CKL)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from temporalwiki.base.errors import UsageError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.base.normalization import normalize
from temporalwiki.base.options import option
from temporalwiki.eval_harness.cached_model import CachedModel
from temporalwiki.eval_harness.measures import scores
from temporalwiki.eval_harness.metrics.knowledge_match import exact_match, f1
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.scoring import SENTINEL, Text
from temporalwiki.eval_harness.task import Row, Rows, Task, check_columns

RANKS = (1, 5, 10)  # the k of P@k
_MEASURES = ("exact_match", "f1", "old_exact_match", *(f"precision_at_{k}" for k in RANKS))
_ANSWERS = ("object", "answer", "answers")
_AT_ONCE = 1000  # clozes whose candidates are in memory together

Item = dict[str, Any]


@dataclass(frozen=True)
class Cloze:
    """A statement with a blank, as a model reads it."""

    id: str
    cluster: str
    split: str
    prompt: str  # the whole statement for an encoder-decoder model, for others what stands before the blank
    gap: str  # between prompt and answer
    answers: list[str]  # any of them is right
    row: Row


@dataclass(frozen=True)
class Lama(Task):
    """EM, F1 and P@k of InvariantLAMA, UpdatedLAMA, NewLAMA and NewLAMA-Easy (CKL, section 3.2).

    Columns: ``statement``, with ``<extra_id_0>`` where the answer belongs, and accepted answers, text or a list, in
    one or more of ``object``, ``answer`` and ``answers``; the best counts. Where a row has them: ``old_answers`` for
    ``old_exact_match`` (does the model still say what was true before), ``relation_id`` for P@k, ``subject_id`` or
    ``subject`` for the clusters of the intervals, ``id``.

    An encoder-decoder model reads the whole statement. Another reads it up to the blank, as in CKL, and nothing of
    what follows; it cannot be asked where no word comes before. Nothing is cut: CKL's inputs are of 25 tokens
    (invariant), 50 (updated, new) or 150 (easy), here a cloze that is too long for the model's context is left out;
    an answer ends with its sentence, at the latest after ``max_new_tokens`` (in CKL after 4 tokens, or 10, by two
    beams). CKL light-tunes GPT-2 before it is asked; here every model is asked as it is.

    P@k is the share of clozes with an accepted answer among the k candidates that the model finds most likely in the
    blank, by total log-likelihood, not that per token; equals are in the order of their characters. Candidates are
    the accepted answers and, drawn by hash, other objects of the relation in the config, ``candidates`` in all; none
    that another row has for the same subject, which is right as well (LAMA leaves them out, too). An item's
    ``candidates`` says how many there were: P@10 among ten is always 1. A cloze without a relation, or for which there
    is no wrong candidate, has no P@k.
    """

    version: ClassVar[int] = 2  # 1 took what another row has for the same subject for wrong
    configs: ClassVar[tuple[str, ...]] = ("invariantlama", "updatedlama", "newlama")
    columns: ClassVar[tuple[str, ...]] = ("statement",)

    question: bool = option(False, "ask the column question, as new_questions does, instead of the statement")
    max_new_tokens: int = option(20, "longest answer")
    beams: int = option(1, "1: greedy decoding")
    candidates: int = option(100, "most candidates that are ranked for P@k; 0: no P@k")

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        if self.max_new_tokens < 1 or self.beams < 1 or self.candidates < 0:
            raise UsageError("max_new_tokens and beams must be at least 1, candidates at least 0")

    def run(self, model: CachedModel, rows: Rows) -> Outcome:
        """Ask for answers, then rank the candidates."""
        excluded: Counter[str] = Counter()
        if self.question:
            for split, of in rows.items():
                check_columns(of, ("question",), split)
        statement = in_question(model) if self.question else _in_statement
        clozes = list(read(model, rows, statement, excluded))
        items = ask(model, clozes, self.max_new_tokens, self.beams, excluded)
        for cloze, item in zip(clozes, items, strict=True):
            accepted = set(map(normalize, cloze.answers))
            old = [text for text in _texts(cloze.row, ("old_answers",)) if normalize(text) not in accepted]
            said = item["answer"]
            item["old_exact_match"] = exact_match(said, old) if old and said is not None else None
        if self.candidates:
            self._rank(model, clozes, items, _objects(rows), excluded)
        return outcome(items, _MEASURES, excluded)

    def _rank(
        self,
        model: CachedModel,
        clozes: Sequence[Cloze],
        items: Sequence[Item],
        objects: Mapping[str, Mapping[str, str]],
        excluded: Counter[str],
    ) -> None:
        """Rank the candidates of each cloze and write into its item which k are enough."""
        asked = []
        right: dict[tuple[Any, str], set[str]] = {}  # of a relation and a subject, in all rows
        for cloze in clozes:
            of = right.setdefault((cloze.row.get("relation_id"), cloze.cluster), set())
            of.update(map(normalize, cloze.answers))
        for cloze, item in zip(clozes, items, strict=True):
            relation: Any = cloze.row.get("relation_id")
            item |= {"relation_id": relation, "candidates": None, **{f"precision_at_{k}": None for k in RANKS}}
            true = right[relation, cloze.cluster]
            others = [text for key, text in objects.get(relation, {}).items() if key not in true]
            others = others[: max(0, self.candidates - len(cloze.answers))]
            if others:
                asked.append((cloze, item, cloze.answers + others))
            else:
                excluded[f"{cloze.split}: P@k: no candidates"] += 1
        for at in range(0, len(asked), _AT_ONCE):
            some = asked[at : at + _AT_ONCE]
            texts = [Text(cloze.prompt, cloze.gap + text) for cloze, _, candidates in some for text in candidates]
            scored = iter(model.score(texts, f"candidates, clozes {at + 1:,} to {at + len(some):,}"))
            for cloze, item, candidates in some:
                found = [(score.nll.sum(), text) for text in candidates if (score := next(scored)) is not None]
                if len(found) < len(candidates):
                    excluded[f"{cloze.split}: P@k: no room for all candidates in the context"] += 1
                    continue
                rank = next(n for n, (_, text) in enumerate(sorted(found), 1) if text in cloze.answers)
                item |= {"candidates": len(found), **{f"precision_at_{k}": float(rank <= k) for k in RANKS}}


def in_question(model: CachedModel) -> Callable[[Row], str]:
    """Return what makes a cloze of a row's question, in the form in which a model of this kind is asked."""

    def statement(row: Row) -> str:
        question = " ".join(str(row["question"] or "").split())
        if not question:
            return SENTINEL
        return f"{question} {SENTINEL}" if model.encoder_decoder else f"Question: {question}\nAnswer: {SENTINEL}"

    return statement


def read(model: CachedModel, rows: Rows, statement: Callable[[Row], str], excluded: Counter[str]) -> Iterator[Cloze]:
    """Yield the rows that can be asked; ``excluded`` counts the others.

    Of two ``<extra_id_0>`` either may be the blank, so neither is filled. Raises InputError for rows without a column
    of answers.
    """
    seen: Counter[str] = Counter()
    for split, of in rows.items():
        if of and not any(column in of[0] for column in _ANSWERS):
            check_columns(of, ("answers",), split)
        for row in of:
            text, answers = statement(row), _texts(row, _ANSWERS)
            before = text.partition(SENTINEL)[0]
            prompt, gap = (text, "") if model.encoder_decoder else (before.strip(), " " * before[-1:].isspace())
            name = str(row.get("id") or fingerprint(split, text, answers))
            seen[name] += 1
            name = name if seen[name] == 1 else fingerprint(name, seen[name])
            if not answers:
                excluded[f"{split}: no answer to compare with"] += 1
            elif text.count(SENTINEL) != 1:
                excluded[f"{split}: not exactly one {SENTINEL}"] += 1
            elif not normalize(prompt):
                excluded[f"{split}: no word {'beside' if model.encoder_decoder else 'before'} the blank"] += 1
            else:
                cluster = str(row.get("subject_id") or row.get("subject") or name)
                yield Cloze(name, cluster, split, prompt, gap, answers, row)


def ask(
    model: CachedModel, clozes: Sequence[Cloze], max_new_tokens: int, beams: int, excluded: Counter[str]
) -> list[Item]:
    """Return an item for each cloze, with what the model answers and whether it is right."""
    items = []
    said = model.generate([cloze.prompt for cloze in clozes], "answers", max_new_tokens, beams)
    for cloze, answer in zip(clozes, said, strict=True):
        right: Item = {"exact_match": None, "f1": None}
        if answer is None:
            excluded[f"{cloze.split}: no room for an answer in the context"] += 1
        else:
            right = {"exact_match": exact_match(answer, cloze.answers), "f1": f1(answer, cloze.answers)}
        items.append({"id": cloze.id, "cluster": cloze.cluster, "split": cloze.split, "answer": answer, **right})
    return items


def outcome(items: Sequence[Item], measures: Sequence[str], excluded: Counter[str]) -> Outcome:
    """Return the scores of each split."""
    splits = dict.fromkeys(item["split"] for item in items)
    tests = {split: [[item for item in items if item["split"] == split]] for split in splits}
    return Outcome(scores(tests, measures), items, excluded)


def _in_statement(row: Row) -> str:
    return str(row["statement"] or "")


def _texts(row: Row, columns: Sequence[str]) -> list[str]:
    """Return what columns hold, text or lists of it, but for what normalisation leaves nothing of to compare."""
    cells = [row.get(column) for column in columns]
    texts = [
        str(text).strip()
        for cell in cells
        for text in (cell if isinstance(cell, list) else [cell])
        if text is not None
    ]
    return [text for text in dict.fromkeys(texts) if normalize(text)]


def _objects(rows: Rows) -> dict[str, dict[str, str]]:
    """Return each relation's objects in an order drawn by hash, by what they are compared as."""
    objects: dict[str, dict[str, str]] = {}
    for of in rows.values():
        for row in of:
            answers, relation = _texts(row, _ANSWERS), row.get("relation_id")
            if answers and relation:
                objects.setdefault(relation, {}).setdefault(normalize(answers[0]), answers[0])
    return {
        relation: dict(sorted(texts.items(), key=lambda text: fingerprint(relation, text)))
        for relation, texts in objects.items()
    }
