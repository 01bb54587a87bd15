"""A judge that replaces annotators: rules, or a language model that answers the questions that people answer.

It writes REVIEW/annotations/judge-NAME.json, the tasks with its decisions as predictions, which Label Studio imports.
It may leave candidates undecided.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import make_folder, only_one, whole_file
from temporalwiki.base.json_files import fingerprint
from temporalwiki.base.normalization import normalize
from temporalwiki.base.progress import Progress
from temporalwiki.base.terminal import say
from temporalwiki.builders.ckl.candidates import ANNOTATIONS, read_candidates, read_review
from temporalwiki.builders.ckl.corpus_index import Past
from temporalwiki.builders.ckl.label_studio import Candidate, Decision, as_list, encode_judged, read_decisions
from temporalwiki.builders.ckl.question_generation import occurs
from temporalwiki.builders.ckl.templates import SENTINEL
from temporalwiki.builders.ckl.text_model import RULES, TextModel
from temporalwiki.builders.wikipedia.sentences import split_sentences

VERSION = 2  # of the prompts, of how answers are read, and of the rules
_AT_ONCE = 256  # candidates between two writes
_SHOWN = 3  # passages that a model reads; more may not fit into its context
_ANSWER_TOKENS = 24
_ANSWER_WORDS = 8  # the longest answer of the past
_ALIKE = 0.85  # the rules call two answers the same from this share of equal letters


def judge(review: Path, model: TextModel | None = None) -> Path:
    """Decide on the candidates in ``review``, and return the file of the decisions.

    Without a model, rules decide. The name of a model's file has the model's name and revision. A killed run
    continues where it was, and a finished file is kept. A model first answers questions with known answers; its score
    is the share that it has right, and a warning names the kinds of question on which it does no better than chance.
    Raises InputError if ``review`` is not a review, or if the file is another judge's.
    """
    manifest = read_review(review)
    identity = {"name": RULES, "revision": "0"} if model is None else dict(model.identity)
    who = f"{identity['name']} {identity['revision']} (temporalwiki's judge {VERSION})"
    name = RULES if model is None else f"{Path(identity['name']).name}-{identity['revision'][:8]}"
    safe_name = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")
    file = review / ANNOTATIONS / f"judge-{safe_name}.json"
    begun = file.with_name(f".{file.stem}-{fingerprint(who, manifest.sha256)}.jsonl")
    make_folder(file.parent)
    with only_one(file, "judge"):
        if file.is_file():
            if any(said.who != who for said in read_decisions(file)):
                raise InputError(f"{file}: the decisions of another judge; remove it")
            return file
        judge = None if model is None else _ModelJudge(model)
        controls = {} if judge is None else judge.controls()
        for what, (right, asked) in controls.items():
            if 2 * right <= asked:
                say(
                    f"warning: {identity['name']}: it has {right} of {asked} control questions about {what!r} right, "
                    "no better than chance: do not trust its decisions on this"
                )
        rights, sizes = zip(*controls.values(), strict=True) if controls else ((), ())
        score = round(sum(rights) / sum(sizes), 4) if controls else None
        language = str(manifest.options.get("language", "en"))
        decide = (lambda batch: _decide_by_rules(batch, language)) if judge is None else judge.decide
        lines = _lines(begun)
        left = iter(read_candidates(review)[len(lines) :])
        with (
            begun.open("ab") as out,
            Progress("judge", manifest.counts.kept, "candidate", done=len(lines)) as progress,
        ):
            while batch := list(islice(left, _AT_ONCE)):
                judged = [
                    encode_judged(candidate, decision, who, score)
                    for candidate, decision in zip(batch, decide(batch), strict=True)
                ]
                out.writelines(line + b"\n" for line in judged)
                out.flush()
                os.fsync(out.fileno())
                lines += judged
                progress.update(len(batch))
        with whole_file(file) as part:
            part.write_bytes(b"".join(as_list(lines)))
        begun.unlink()
    return file


def _lines(begun: Path) -> list[bytes]:
    """Return the tasks that a killed run decided on, in order; remove a line that was cut off."""
    if not begun.is_file():
        return []
    lines = [line for line in begun.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    with begun.open("rb+") as file:
        file.truncate(sum(map(len, lines)))
    return [line.rstrip(b"\n") for line in lines]


def _decide_by_rules(candidates: Sequence[Candidate], language: str) -> list[Decision]:
    """Decide by comparing words: this needs no model and gives the same on every machine, but understands nothing.

    The question counts as valid if it ends with a question mark, and the answer as right if the sentence has it. The
    past said the same if two sentences of a passage have the answer, the statement's other names and numbers and two
    thirds of its words, or if a sentence is the statement with another spelling of the answer. It said something else
    if a sentence is the statement with another answer. If no rule finds an answer of the past, the candidate stays
    undecided: the past may have said it in other words.
    """
    return [_decision_by_rules(candidate, language) for candidate in candidates]


def _decision_by_rules(candidate: Candidate, language: str) -> Decision:
    if not candidate.question.endswith("?"):
        return Decision(candidate.id, valid=False, note="no question mark at the end")
    if not occurs(candidate.answer, candidate.sentence):
        return Decision(candidate.id, valid=True, answer_right=False)
    for passage in candidate.past_evidence:
        if _says(candidate, passage, language):
            return Decision(candidate.id, valid=True, answer_right=True, past="same", old_evidence=passage.id)
    for passage in candidate.past_evidence:
        for sentence in split_sentences(passage.text, language):
            other = _filling(candidate.statement, sentence)
            if other and _alike(other, candidate.answer):
                return Decision(candidate.id, True, True, "same", old_evidence=passage.id)
            if other:
                return Decision(candidate.id, True, True, "other", [other], old_evidence=sentence)
    return Decision(candidate.id, valid=None, note="past: nothing found")


def _says(candidate: Candidate, passage: Past, language: str) -> bool:
    """Tell whether two neighbouring sentences of a passage state the candidate's fact."""
    words = candidate.statement.replace(SENTINEL, "").split()
    names = {normalize(word) for word in words[1:] if word[0].isupper() or word[0].isdigit()}
    wanted = {*map(normalize, words)} - {""}
    for before, sentence in pairwise(["", *split_sentences(passage.text, language)]):
        text = f"{before} {sentence}"
        found = set(normalize(text).split())
        if occurs(candidate.answer, text) and names <= found | {""} and 3 * len(wanted & found) >= 2 * len(wanted):
            return True
    return False


def _alike(one: str, other: str) -> bool:
    """Tell whether two answers are probably spellings of one: "Formation", "Formations"."""
    ratio = SequenceMatcher(None, normalize(one), normalize(other), autojunk=False).ratio()
    return ratio >= _ALIKE or occurs(one, other) or occurs(other, one)


def _filling(statement: str, sentence: str) -> str | None:
    """Return the words that fill the blank if a sentence is otherwise equal to the statement, else None."""
    before, _, after = (normalize(part) for part in statement.partition(SENTINEL))
    words = sentence.split()
    shown = [normalize(word) for word in words]
    kept = [at for at, word in enumerate(shown) if word]
    left, right = before.split(), after.split()
    inside = kept[len(left) : len(kept) - len(right)]
    same = [shown[at] for at in kept if at not in inside] == left + right
    if not left + right or not same or not 1 <= len(inside) <= _ANSWER_WORDS:
        return None
    return " ".join(words[inside[0] : inside[-1] + 1]).strip(" .,;:!?\"'()")


class _ModelJudge:
    """Asks a language model three things with short answers, and accepts only clear ones."""

    def __init__(self, model: TextModel) -> None:
        self._model = model

    def controls(self) -> dict[str, list[int]]:
        """Return the number of right answers and of control questions, by kind of question."""
        found = {}
        for kind, prompt, cases in (("valid", _valid, _VALID), ("right", _right, _RIGHT)):
            said = self._model.answers(
                [prompt(_control(*case)) for case, _ in cases], f"controls: {kind}", _ANSWER_TOKENS
            )
            right = [_first_word(text) == wanted for text, (_, wanted) in zip(said, cases, strict=True)]
            found[kind] = [sum(right), len(right)]
        shown = [_control(*case, past) for case, past, _ in _PAST]
        said = self._model.answers([_past(control) for control in shown], "controls: past", _ANSWER_TOKENS)
        pasts = [_of_the_past(control, text).past for control, text in zip(shown, said, strict=True)]
        found["past"] = [sum(past == wanted for past, (_, _, wanted) in zip(pasts, _PAST, strict=True)), len(pasts)]
        return found

    def decide(self, candidates: Sequence[Candidate]) -> list[Decision]:
        decisions: dict[str, Decision] = {}
        valid = self._yes_or_no(candidates, _valid, decisions, "valid")
        right = self._yes_or_no(valid, _right, decisions, "right")
        for candidate in right:
            decisions[candidate.id] = Decision(candidate.id, valid=True, answer_right=True, past="none")
        shown = [candidate for candidate in right if candidate.past_evidence]
        for candidate, said in self._asked(shown, _past, "past"):
            decisions[candidate.id] = _of_the_past(candidate, said)
        return [decisions[candidate.id] for candidate in candidates]

    def _yes_or_no(
        self, candidates: Sequence[Candidate], prompt: Any, decisions: dict[str, Decision], what: str
    ) -> list[Candidate]:
        """Return the candidates that the model accepts; decide on the others."""
        agreed = []
        for candidate, said in self._asked(candidates, prompt, what):
            first = _first_word(said)
            if first == "yes":
                agreed.append(candidate)
            elif first != "no":
                decisions[candidate.id] = _undecided(candidate, what, said)
            elif what == "valid":
                decisions[candidate.id] = Decision(candidate.id, valid=False)
            else:
                decisions[candidate.id] = Decision(candidate.id, valid=True, answer_right=False)
        return agreed

    def _asked(
        self, candidates: Sequence[Candidate], prompt: Any, what: str
    ) -> Iterator[tuple[Candidate, str | None]]:
        if candidates:
            said = self._model.answers(
                [prompt(candidate) for candidate in candidates], f"judge: {what}", _ANSWER_TOKENS
            )
            yield from zip(candidates, said, strict=True)


def _first_word(said: str | None) -> str:
    return (normalize(said or "").split() or [""])[0]


def _undecided(candidate: Candidate, what: str, said: str | None) -> Decision:
    return Decision(candidate.id, valid=None, note=f"{what}: {'nothing' if said is None else repr(said[:200])}")


def _valid(candidate: Candidate) -> str:
    return (
        f"Question: {candidate.question}\n\nCan somebody who has not read any article understand this question and "
        "answer it with one name or date? It must not need to be told who or what is meant. Answer yes or no.\nAnswer:"
    )


def _right(candidate: Candidate) -> str:
    return (
        f"News: {candidate.sentence}\n\nQuestion: {candidate.question}\nAnswer given: {candidate.answer}\n\n"
        "Is the given answer right according to the news? Answer yes or no.\nAnswer:"
    )


def _past(candidate: Candidate) -> str:
    texts = "\n\n".join(f"{passage.title}\n{passage.text}".strip() for passage in _read(candidate))
    return (
        f"{texts}\n\nQuestion: {candidate.question}\n\nAnswer with a name or date copied from the texts above. If the "
        "texts do not say it, answer: none.\nAnswer:"
    )


def _read(candidate: Candidate) -> list[Past]:
    """Return the passages that a model reads: the most similar ones, and last, if possible, one with the answer."""
    passages = candidate.past_evidence
    holding = [passage for passage in passages[_SHOWN - 1 :] if passage.has_answer][:1]
    return passages[: _SHOWN - 1] + (holding or passages[_SHOWN - 1 : _SHOWN])


def _of_the_past(candidate: Candidate, said: str | None) -> Decision:
    """Return the decision that a model's answer about the past gives: undecided if it is long, or in no passage."""
    # the look-behind starts a match only at the first character of a run: linear time for any answer
    found = re.sub(r"(?<![\s.,;:!?\"'])[\s.,;:!?\"']+\Z", "", (said or "").strip().strip("\"'"))
    words = normalize(found).split()
    if words[:1] == ["none"]:
        return Decision(candidate.id, valid=True, answer_right=True, past="none")
    holding = [passage.id for passage in _read(candidate) if words and occurs(found, passage.text)]
    if not holding or len(words) > _ANSWER_WORDS:
        return _undecided(candidate, "past", said)
    if occurs(candidate.answer, found) or occurs(found, candidate.answer):
        return Decision(candidate.id, True, True, "same", old_evidence=holding[0])
    return Decision(candidate.id, True, True, "other", [found], old_evidence=holding[0])


# Control questions with known answers: (question, answer, sentence)
_Case = tuple[str, str, str]
_EVEREST = "In May 1953 Edmund Hillary and Tenzing Norgay climbed Mount Everest."
_MINT = "Robert Mint was elected mayor of Easton on Sunday."
_ASKED: tuple[_Case, ...] = (
    ("When did Edmund Hillary and Tenzing Norgay climb Mount Everest?", "May 1953", _EVEREST),
    ("Who was elected mayor of Easton?", "Robert Mint", _MINT),
    ("Who was elected mayor of Easton?", "Robert Mint", "Voters in Easton chose Robert Mint as their mayor."),
)
_VALID: tuple[tuple[_Case, str], ...] = (
    *((case, "yes") for case in _ASKED),
    (("When did they do it?", "May 1953", _EVEREST), "no"),
    (("Who was elected there on that day?", "Robert Mint", _MINT), "no"),
    (("What did he say about it yesterday?", "Sunday", _MINT), "no"),
)
_RIGHT: tuple[tuple[_Case, str], ...] = (
    *((case, "yes") for case in _ASKED),
    ((_ASKED[0][0], "June 1961", _EVEREST), "no"),
    ((_ASKED[1][0], "Clara Hill", _MINT), "no"),
    ((_ASKED[2][0], "Weston", _ASKED[2][2]), "no"),
)
_PAST: tuple[tuple[_Case, str, str], ...] = (
    (_ASKED[1], "The mayor of Easton, Clara Hill, was elected in 1999.", "other"),
    (_ASKED[1], "Since 1999 Robert Mint has been elected mayor of Easton four times.", "same"),
    (_ASKED[1], "Easton is a town on the river Lenn. It has a market on Mondays.", "none"),
)


def _control(question: str, answer: str, sentence: str, past: str = "") -> Candidate:
    passages = [Past("control", "", past, 0.0, occurs(answer, past))] if past else []
    day = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
    return Candidate("control", question, answer, SENTINEL, sentence, "", "", day, None, passages)
