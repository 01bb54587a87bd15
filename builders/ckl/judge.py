"""A judge that replaces annotators: rules, or a language model that answers the questions that people answer.

It writes REVIEW/annotations/judge-NAME.json, the tasks with its decisions as predictions, which Label Studio imports.
It may leave candidates undecided.
"""

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import make_folder, only_one, whole_file
from temporalwiki.base.normalization import normalize
from temporalwiki.builders.ckl.corpus_index import Past
from temporalwiki.builders.ckl.review import (
    ANNOTATIONS,
    Candidate,
    Decision,
    encoded,
    judged,
    read_candidates,
    read_decisions,
    read_review,
)
from temporalwiki.builders.ckl.templates import SENTINEL
from temporalwiki.builders.ckl.text_model import RULES, TextModel
from temporalwiki.builders.ckl.text_steps import occurs
from temporalwiki.builders.wikipedia.sentences import split_sentences

VERSION = 2  # increase it when the prompts, the rules or the reading of answers change
_SHOWN = 3  # passages that a model reads; more may not fit into its context
_ANSWER_TOKENS = 24
_ANSWER_WORDS = 8  # the longest answer of the past
_ALIKE = 0.85  # the rules call two answers the same from this share of equal letters


def judge(review: Path, model: TextModel | None = None) -> Path:
    """Decide on the candidates in ``review``, and return the file of the decisions.

    Without a model, rules decide. The name of a model's file has the model's name and revision. A finished file is
    kept; models keep their answers themselves, so a killed run continues. Raises InputError if ``review`` is not a
    review, or if the file is another judge's.
    """
    manifest = read_review(review)
    identity = {"name": RULES, "revision": "0"} if model is None else dict(model.identity)
    who = f"{identity['name']} {identity['revision']} (temporalwiki's judge {VERSION})"
    name = RULES if model is None else f"{Path(identity['name']).name}-{identity['revision'][:8]}"
    safe_name = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")
    file = review / ANNOTATIONS / f"judge-{safe_name}.json"
    make_folder(file.parent)
    with only_one(file, "judge"):
        if file.is_file():
            if any(said.who != who for said in read_decisions(file)):
                raise InputError(f"{file}: the decisions of another judge; remove it")
            return file
        candidates = read_candidates(review)
        if model is None:
            language = str(manifest.options.get("language", "en"))
            decisions = [_decide_by_rules(one, language) for one in candidates]
        else:
            decisions = _decide(candidates, model)
        tasks = (judged(one, decision, who) for one, decision in zip(candidates, decisions, strict=True))
        with whole_file(file) as part:
            part.write_bytes(b"".join(encoded(tasks)))
    return file


def _decide_by_rules(candidate: Candidate, language: str) -> Decision:
    """Decide by comparing words: this needs no model and gives the same on every machine, but understands nothing.

    The question counts as valid if it ends with a question mark, and the answer as right if the sentence has it. The
    past said the same if two sentences of a passage have the answer, the statement's other names and numbers and two
    thirds of its words, or if a sentence is the statement with another spelling of the answer. It said something else
    if a sentence is the statement with another answer. If no rule finds an answer of the past, the candidate stays
    undecided: the past may have said it in other words.
    """
    if not candidate.question.endswith("?"):
        return Decision(candidate.id, valid=False, note="no question mark at the end")
    if not occurs(candidate.answer, candidate.sentence):
        return Decision(candidate.id, valid=True, answer_right=False)
    for passage in candidate.past_evidence:
        if _says(candidate, passage, language):
            return Decision(candidate.id, valid=True, answer_right=True, past="same", old_evidence=passage.id)
    for passage in candidate.past_evidence:
        for sentence in map(str.strip, split_sentences(passage.text, language)):
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


# A model answers three questions with short answers, and only clear ones count.


def _decide(candidates: Sequence[Candidate], model: TextModel) -> list[Decision]:
    """Ask if each question is valid, then if its answer is right, then what the past says; "no" decides at once."""
    decided: dict[str, Decision] = {}
    left = list(candidates)
    for what, prompt in (("valid", _valid), ("right", _right)):
        believed = []
        for one, said in zip(left, _said(left, prompt, what, model), strict=True):
            word = (normalize(said or "").split() or [""])[0]
            if word == "yes":
                believed.append(one)
            elif word == "no":
                right = False if what == "right" else None
                decided[one.id] = Decision(one.id, valid=what == "right", answer_right=right)
            else:
                decided[one.id] = _undecided(one, what, said)
        left = believed
    shown = [one for one in left if one.past_evidence]
    for one, said in zip(shown, _said(shown, _past, "past", model), strict=True):
        decided[one.id] = _of_the_past(one, said)
    return [decided.get(one.id) or Decision(one.id, True, True, "none") for one in candidates]


def _said(
    candidates: Sequence[Candidate], prompt: Callable[[Candidate], str], what: str, model: TextModel
) -> list[str | None]:
    return model.answers([*map(prompt, candidates)], f"judge: {what}", _ANSWER_TOKENS) if candidates else []


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
