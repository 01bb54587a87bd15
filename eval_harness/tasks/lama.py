"""LAMA clozes: facts that stayed true, were updated, or are new (CKL)."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from temporalwiki.base.errors import UsageError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.base.normalization import normalize
from temporalwiki.base.options import option
from temporalwiki.eval_harness.facts import identity
from temporalwiki.eval_harness.fine_tuning import fine_tuned
from temporalwiki.eval_harness.known import SCORED
from temporalwiki.eval_harness.measures import scores
from temporalwiki.eval_harness.metrics.knowledge_match import exact_match, f1
from temporalwiki.eval_harness.models.model import REPLIES, WEIGHTS, Model
from temporalwiki.eval_harness.panel_items import STATEMENT, known_items
from temporalwiki.eval_harness.questions import MEASURES as asked_measures
from temporalwiki.eval_harness.questions import read_replies
from temporalwiki.eval_harness.references import answers_in
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.retrieval import reading
from temporalwiki.eval_harness.scoring import SENTINEL, Text
from temporalwiki.eval_harness.task import Row, Rows, Task, check_columns
from temporalwiki.methods.options import TrainOptions

RANKS = (1, 5, 10)  # the k of P@k
_MEASURES = ("exact_match", "f1", "old_exact_match", *(f"precision_at_{k}" for k in RANKS))
_KNOWN = ("known", "chance")
_ANSWERS = ("object", "answer", "answers")
_TUNED = "light-tuned/"  # in front of the names of splits
_AT_ONCE = 1000  # clozes whose candidates are in memory at once

Item = dict[str, Any]


@dataclass(frozen=True)
class Cloze:
    """A statement with a blank that a model fills."""

    id: str
    cluster: str
    split: str
    prompt: str  # passages if there are any, then the whole statement or, for a decoder, the text before the blank
    gap: str  # the space between prompt and answer, or nothing
    answers: list[str]  # each of them is right
    aliases: list[str]  # other names of these
    row: Row

    @property
    def right(self) -> list[str]:
        """All right answers."""
        return [*self.answers, *self.aliases]


@dataclass(frozen=True)
class Lama(Task):
    """EM, F1 and P@k of InvariantLAMA, UpdatedLAMA, NewLAMA and NewLAMA-Easy (CKL, section 3.2).

    Required columns are ``statement``, with ``<extra_id_0>`` in the place of the answer, and accepted answers (text or
    a list) in ``object``, ``answer`` or ``answers``; the best answer counts. Optional columns are ``aliases``, other
    names of these answers, which are right for EM and F1, ``old_answers`` for ``old_exact_match`` (does the model
    still give the old answer), ``relation_id`` and ``candidates`` for P@k, ``subject_id`` or ``subject`` for the
    clusters of the intervals, and ``id``.

    An encoder-decoder model reads the whole statement. A decoder-only model reads the text before the blank, as in
    CKL, and skips statements that begin with the blank. No input is cut (CKL cuts at 25, 50 or 150 tokens): a cloze
    that is longer than the model's context is left out. An answer ends with its sentence, and at the latest after
    ``max_new_tokens`` (in CKL after 4 or 10 tokens, with two beams).

    CKL light-tunes GPT-2 before it is scored. So does this task with ``light_tuning``: it trains a copy of the model
    for one epoch on that many clozes, chosen by a hash of their subjects, at a constant rate of 1e-3 in batches of 32.
    These clozes, and others of their subjects, are not scored. The names of the scores begin with ``light-tuned/``.

    P@k is the share of clozes with an accepted answer among the k most likely candidates, by total log-likelihood;
    ties are in alphabetical order. Candidates are the accepted answers, the texts in the row's column
    ``candidates``, and other objects of the same relation in the config, chosen by hash; the option ``candidates``
    limits their number. Each object is a candidate by its label only, as in ``multiple_choice``. Aliases of right
    answers, and objects that another row has for the same subject, are also right and are left out (LAMA leaves out
    the latter). An item's ``candidates`` is their number: among ten candidates P@10 is always 1. A cloze without a
    wrong candidate has no P@k.

    ``known`` is the percentage of clozes whose subject prefers the answer to the answers of other clozes of the
    relation by more than other subjects do, as in ``learned_and_forgotten``; ``chance`` is what a model without
    knowledge gets. Likelihoods are those from the answer to the end of the statement. Models are never light-tuned
    for it.
    """

    version: ClassVar[int] = 4  # version 3 had no known facts
    configs: ClassVar[tuple[str, ...]] = ("invariantlama", "updatedlama", "newlama")
    columns: ClassVar[tuple[str, ...]] = ("statement",)
    query: ClassVar[tuple[str, ...]] = ("statement",)
    needs: ClassVar[frozenset[str]] = frozenset({REPLIES, WEIGHTS})
    whole: ClassVar[bool] = True  # panels are made before --limit
    least: ClassVar[Mapping[str, int]] = {"candidates": 0, "light_tuning": 0}
    later: ClassVar[frozenset[str]] = frozenset({"light_tuning"})

    question: bool = option(False, "ask the column question, as new_questions does, instead of the statement")
    max_new_tokens: int = option(20, "longest answer")
    beams: int = option(1, "1: greedy decoding")
    candidates: int = option(100, "most candidates that are ranked for P@k; 0: no P@k")
    light_tuning: int = option(0, "clozes to light-tune on first, which are then not scored")

    def run(self, model: Model, rows: Rows) -> Outcome:
        """Ask for answers, then rank the candidates.

        Raises UsageError for a model behind an interface without ``--question --candidates 0``, and if light-tuning
        leaves nothing to score.
        """
        excluded: Counter[str] = Counter()
        asked = REPLIES in model.can
        if asked and (not self.question or self.candidates):
            raise UsageError(f"lama: {model.reference} gives no likelihoods; ask with --question --candidates 0")
        if self.question:
            for split, of_split in rows.items():
                check_columns(of_split, ("question",), split)
        statement = in_question(model) if self.question else _in_statement
        scored = {split: [row for row in of_split if row.get(SCORED, True)] for split, of_split in rows.items()}
        found = list(read(model, scored, statement, excluded))
        with light_tuned(model, found, self.light_tuning, 32, excluded) as (model, clozes):
            items = ask(model, clozes, self.max_new_tokens, self.beams, excluded)
            for cloze, item in zip(clozes, items, strict=True):
                accepted = set(map(normalize, cloze.right))
                old = [text for text in answers_in(cloze.row, ("old_answers",)) if normalize(text) not in accepted]
                answer = item["answer"]
                item["old_exact_match"] = exact_match(answer, old) if old and answer is not None else None
            if self.candidates:
                self._rank(model, clozes, items, _objects(rows), excluded)
        measures = (*_MEASURES, *asked_measures[2:]) if asked else (*_MEASURES, *_KNOWN)
        if not (self.question or self.light_tuning):
            known = _known(model, rows, excluded)
            items = [item | known.get(item["id"], {}) for item in items]
        return outcome(items, measures, excluded)

    def _rank(
        self,
        model: Model,
        clozes: Sequence[Cloze],
        items: Sequence[Item],
        objects: Mapping[str, Mapping[str, str]],
        excluded: Counter[str],
    ) -> None:
        """Rank the candidates of each cloze, and add P@k to its item."""
        asked = []
        right: dict[tuple[Any, str], set[str]] = {}  # (relation, subject) -> answers in all rows
        for cloze in clozes:
            names = right.setdefault((cloze.row.get("relation_id"), cloze.cluster), set())
            names.update(map(normalize, cloze.right))
        for cloze, item in zip(clozes, items, strict=True):
            relation: Any = cloze.row.get("relation_id")
            item |= {"relation_id": relation, "candidates": None, **{f"precision_at_{k}": None for k in RANKS}}
            true = right[relation, cloze.cluster]
            own = {normalize(text): text for text in answers_in(cloze.row, ("candidates",))}
            others = [text for key, text in {**own, **objects.get(relation, {})}.items() if key not in true]
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


def _known(model: Model, rows: Rows, excluded: Counter[str]) -> dict[str, Item]:
    """Return "known", "chance" and "panel" of clozes by their ids: each panel has clozes of one relation."""
    facts: dict[str, list[Row]] = {}
    names: dict[str, str] = {}
    why: Counter[str] = Counter()
    for cloze in read(model, rows, _in_statement, Counter()):
        fact = {**cloze.row, **_as_fact(cloze), "subject_id": cloze.cluster, "relation": cloze.row.get("relation_id")}
        if fact["relation"] is None:
            why[f"{cloze.split}: no relation_id"] += fact.get(SCORED, True)
        elif names.setdefault(identity(fact)["id"], cloze.id) == cloze.id:
            facts.setdefault(cloze.split, []).append(fact)
    found = known_items(model, facts, (STATEMENT,), 0, why)
    excluded.update({reason.replace(": ", ": known: ", 1): count for reason, count in why.items()})
    columns = (*_KNOWN, "panel", "binding")
    known = {item["id"].removesuffix(f"/{STATEMENT}"): item for item in found if item["form"] == STATEMENT}
    return {names[id]: {column: item[column] for column in columns} for id, item in known.items()}


def in_question(model: Model) -> Callable[[Row], str]:
    """Return a function that turns the question of a row into a cloze for this kind of model."""

    def statement(row: Row) -> str:
        question = " ".join(str(row["question"] or "").split())
        if not question:
            return SENTINEL
        return f"{question} {SENTINEL}" if model.encoder_decoder else f"Question: {question}\nAnswer: {SENTINEL}"

    return statement


def read(model: Model, rows: Rows, statement: Callable[[Row], str], excluded: Counter[str]) -> Iterator[Cloze]:
    """Yield the clozes of the rows; ``excluded`` counts the rows that are not usable.

    A row needs an answer, exactly one blank, and a word that the model can read before (or around) it.

    Raises InputError if the columns of answers are missing.
    """
    seen: Counter[str] = Counter()
    first = reading(model)
    for split, of_split in rows.items():
        if of_split and not any(column in of_split[0] for column in _ANSWERS):
            check_columns(of_split, ("answers",), split)
        for row in of_split:
            text, answers = statement(row), answers_in(row, _ANSWERS)
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
                excluded[f"{split}: no word {'around' if model.encoder_decoder else 'before'} the blank"] += 1
            else:
                cluster = str(row.get("subject_id") or row.get("subject") or name)
                prompt = first(row, prompt) + prompt
                yield Cloze(name, cluster, split, prompt, gap, answers, answers_in(row, ("aliases",)), row)


@contextmanager
def light_tuned(
    model: Model, clozes: Sequence[Cloze], count: int, batch_size: int, excluded: Counter[str]
) -> Iterator[tuple[Model, list[Cloze]]]:
    """Yield a copy of the model that was trained on ``count`` of the clozes, and the clozes of other subjects.

    It learns the first answer of each cloze, in one epoch at 1e-3 (CKL, GPT-2). With a count of 0, yield the model and
    all clozes. Raises UsageError for a model behind an interface, and if no cloze would be left.
    """
    if not count:
        yield model, list(clozes)
        return
    if REPLIES in model.can:
        raise UsageError(f"light_tuning: {model.reference} cannot be trained from here")
    chosen = sorted(clozes, key=lambda cloze: (fingerprint(cloze.cluster), cloze.id))[:count]
    subjects = {cloze.cluster for cloze in chosen}
    left = [replace(cloze, split=f"{_TUNED}{cloze.split}") for cloze in clozes if cloze.cluster not in subjects]
    if not left:
        raise UsageError(f"light_tuning: {count:,} of {len(clozes):,} clozes leave none to score; name a lower number")
    excluded["about a subject of light-tuning"] = len(clozes) - len(left)
    options = TrainOptions(batch_size=batch_size, learning_rate=1e-3, schedule="constant", warmup_ratio=0.0)
    examples = [(cloze.prompt, cloze.gap + cloze.answers[0]) for cloze in chosen]
    with fine_tuned(model, examples, options, f"light-tuning on {len(chosen):,} clozes") as tuned:
        yield tuned, left


def ask(model: Model, clozes: Sequence[Cloze], max_new_tokens: int, beams: int, excluded: Counter[str]) -> list[Item]:
    """Return an item for each cloze, with the model's answer and its scores."""
    items = []
    if REPLIES in model.can:
        asked = read_replies(
            model, [cloze.row["question"] for cloze in clozes], [_as_fact(cloze) for cloze in clozes], "questions"
        )
        return [
            {"id": cloze.id, "cluster": cloze.cluster, "split": cloze.split, **reply}
            for cloze, reply in zip(clozes, asked, strict=True)
        ]
    answers = model.generate([cloze.prompt for cloze in clozes], "answers", max_new_tokens, beams)
    for cloze, answer in zip(clozes, answers, strict=True):
        figures: Item = {"exact_match": None, "f1": None}
        if answer is None:
            excluded[f"{cloze.split}: no room for an answer in the context"] += 1
        else:
            figures = {"exact_match": exact_match(answer, cloze.right), "f1": f1(answer, cloze.right)}
        items.append({"id": cloze.id, "cluster": cloze.cluster, "split": cloze.split, "answer": answer, **figures})
    return items


def _as_fact(cloze: Cloze) -> Row:
    """Return a cloze in the columns where ``references.py`` looks for right and gone objects."""
    return {
        "subject": str(cloze.row.get("subject") or ""),
        "object": cloze.answers[0],
        "objects": cloze.answers,
        "aliases": cloze.aliases,
        "gone_objects": answers_in(cloze.row, ("old_answers",)),
        "language": cloze.row.get("language"),
    }


def outcome(items: Sequence[Item], measures: Sequence[str], excluded: Counter[str]) -> Outcome:
    """Return the scores of each split."""
    splits = dict.fromkeys(item["split"] for item in items)
    tests = {split: [[item for item in items if item["split"] == split]] for split in splits}
    return Outcome(scores(tests, measures), items, excluded)


def _in_statement(row: Row) -> str:
    return str(row["statement"] or "")


def _objects(rows: Rows) -> dict[str, dict[str, str]]:
    """Return relation -> normalised object -> object, the objects ordered by hash."""
    objects: dict[str, dict[str, str]] = {}
    for of_split in rows.values():
        for row in of_split:
            answers, relation = answers_in(row, _ANSWERS), row.get("relation_id")
            if answers and relation:
                objects.setdefault(relation, {}).setdefault(normalize(answers[0]), answers[0])
    return {
        relation: dict(sorted(texts.items(), key=lambda text: fingerprint(relation, text)))
        for relation, texts in objects.items()
    }
