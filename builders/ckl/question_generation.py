"""Let models ask questions about sentences, and answer them: step 4 of CKL's Figure 4 (b), and its Appendix B."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import regex

from temporalwiki.base.normalization import normalize
from temporalwiki.builders.ckl.templates import SENTINEL
from temporalwiki.builders.ckl.text_model import TextModel

_MARKS = ("<hl>", "[HL]")  # around the answer, where a model was trained with them
_CONTEXT = 600  # characters before a sentence that a model reads
_QUESTION_TOKENS = 96
_ANSWER_TOKENS = 24


class Passage(NamedTuple):
    """A sentence with an answer, and its context."""

    sentence: str
    answer: str
    start: int  # of the answer in the sentence, in characters
    title: str = ""
    context: str = ""  # the text before the sentence
    published: datetime | None = None

    @property
    def statement(self) -> str:
        """The sentence with a sentinel for the answer."""
        return f"{self.sentence[: self.start]}{SENTINEL}{self.sentence[self.start + len(self.answer) :]}"


def occurs(answer: str, text: str) -> bool:
    """Tell whether a text contains an answer; see ``occurrences``."""
    return occurrences(answer, text) > 0


def occurrences(answer: str, text: str) -> int:
    """Return how often a text contains an answer as whole words, either both normalised or both only in lower case.

    Two comparisons are needed: normalisation makes one word of "AI-powered", and changes "the U.S. army".
    """
    answer_words = normalize(answer).split()
    words = normalize(text).split()
    normal = sum(words[at : at + len(answer_words)] == answer_words for at in range(len(words))) if answer_words else 0
    answer, text = (" ".join(unicodedata.normalize("NFC", part).lower().split()) for part in (answer, text))
    pattern = rf"(?<![\p{{L}}\p{{M}}\p{{N}}_]){regex.escape(answer)}(?![\p{{L}}\p{{M}}\p{{N}}_])"
    return max(normal, len(regex.findall(pattern, text)) if answer else 0)


def questions(passages: Sequence[Passage], model: TextModel) -> list[str | None]:
    """Return a question for each passage that its answer answers, or None.

    A model that knows the token ``<hl>`` or ``[HL]`` reads the sentence with the answer
    between two of them; another encoder-decoder model reads "answer: ... context: ..."; any other model gets
    instructions. A model's text that does not end with a question mark does not count as a question.
    """
    texts = model.answers([_prompt(passage, model) for passage in passages], "questions", _QUESTION_TOKENS)
    return [_question(text) for text in texts]


def _prompt(item: Passage, model: TextModel) -> str:
    sentence, answer = item.sentence, item.answer
    for mark in _MARKS:
        if model.knows(mark):
            end = item.start + len(answer)
            marked = f"{sentence[: item.start]}{mark} {answer} {mark}{sentence[end:]}"
            return f"generate question: {marked}" if mark == "<hl>" else marked
    if model.encoder_decoder:
        return f"answer: {answer} context: {sentence}"
    before = f"Text: {' '.join(item.context[-_CONTEXT:].split())}\n\n" if item.context else ""
    return (
        f"{before}Write one question that is answered by {answer!r} according to the sentence below. The question "
        "must be understandable without the sentence, be in its language, and must not contain the answer.\n"
        f"Sentence: {sentence}\nQuestion:"
    )


def _question(text: str | None) -> str | None:
    if not text or "?" not in text:
        return None
    return text[: text.index("?") + 1].removeprefix("question:").strip()


def are_answered(passages: Sequence[Passage], asked: Sequence[str], model: TextModel) -> list[bool]:
    """Return whether a model that reads a passage's sentence answers its question with the passage's answer.

    Both answers are normalised. A question that leads a reader to another part of the sentence, or nowhere, is wrong.
    """
    prompts = [
        f"question: {question} context: {passage.sentence}"
        if model.encoder_decoder
        else "Answer the question with a name or date copied from the sentence. Write the answer only.\n"
        f"Sentence: {passage.sentence}\nQuestion: {question}\nAnswer:"
        for passage, question in zip(passages, asked, strict=True)
    ]
    said = model.answers(prompts, "round trip", _ANSWER_TOKENS)
    return [normalize(text or "") == normalize(one.answer) for text, one in zip(said, passages, strict=True)]
