"""Steps of language models: rewrite, translate, ask and answer (CKL, Figure 4 (b) and Appendix B)."""

import unicodedata
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import NamedTuple

import regex

from temporalwiki.base.json_files import read_yaml
from temporalwiki.base.normalization import normalize
from temporalwiki.builders.ckl.templates import SENTINEL
from temporalwiki.builders.ckl.text_model import TextModel

_MARKS = ("<hl>", "[HL]")  # around the answer, where a model was trained with them
_REWRITTEN_CONTEXT, _ASKED_CONTEXT = 1200, 600  # characters before a sentence that a model reads
_REWRITTEN_TOKENS, _TRANSLATED_TOKENS, _QUESTION_TOKENS, _ANSWER_TOKENS = 128, 192, 96, 24
_MONTHS = read_yaml(Path(__file__).with_name("english_words.yaml"))["months"].split()


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
    answer_words, words = normalize(answer).split(), normalize(text).split()
    normal = sum(words[at : at + len(answer_words)] == answer_words for at in range(len(words))) if answer_words else 0
    answer, text = (" ".join(unicodedata.normalize("NFC", part).lower().split()) for part in (answer, text))
    pattern = rf"(?<![\p{{L}}\p{{M}}\p{{N}}_]){regex.escape(answer)}(?![\p{{L}}\p{{M}}\p{{N}}_])"
    return max(normal, len(regex.findall(pattern, text)) if answer else 0)


def decontextualize(passages: Sequence[Passage], model: TextModel) -> list[str | None]:
    """Return each passage's sentence rewritten so that it can be understood without the page, or None.

    An encoder-decoder model reads the format of Choi et al. (2021): title, section (empty), text before, sentence,
    text after (empty), joined by " [SEP] ". Any other model gets instructions.
    """
    prompts = []  # the text comes before the instructions: a small model rewrites what follows them
    for one in passages:
        before = " ".join(one.context[-_REWRITTEN_CONTEXT:].split())
        when = f"Published: {written(one.published)}\n" if one.published else ""
        prompts.append(
            " [SEP] ".join((one.title, "", before, one.sentence, ""))
            if model.encoder_decoder
            else f"Title: {one.title}\n{when}Text: {before}\n\n"
            "Rewrite the sentence below so that it can be understood without the text above: replace pronouns and "
            "words that point to the text by names and dates from it. Change nothing else. Write the sentence only.\n"
            f"Sentence: {one.sentence}\nRewritten:"
        )
    texts = model.answers(prompts, "decontextualisation", _REWRITTEN_TOKENS)
    return [None if text is None else _sentence(text) for text in texts]


def _sentence(text: str) -> str | None:
    verdict, mark, rest = text.rpartition("####")  # "DONE #### sentence" of models trained on Choi et al.'s data
    if mark and "DONE" not in verdict.upper() and "UN" not in verdict.upper():
        return None  # "INFEASIBLE #### sentence"
    return rest.strip() or None


def written(day: date) -> str:
    """Return a day as news write it: "April 24, 2023"."""
    return f"{_MONTHS[day.month - 1]} {day.day}, {day.year}"


def back_translate(texts: Sequence[str], there: TextModel, back: TextModel, language: str = "en") -> list[str | None]:
    """Return each text, translated by the model ``there`` and back by the model ``back``; None if that failed.

    So a model cannot recite a text that it has read. Models are translation models of one pair of languages each
    (Marian), or language models, which get instructions: from English to German, from other languages to English, and
    back.
    """
    own = "English" if language == "en" else f"the language with the ISO 639-1 code {language!r}"
    foreign = _translate(texts, there, "German" if language == "en" else "English", "translation")
    returned = iter(_translate([text for text in foreign if text], back, own, "back-translation"))
    return [next(returned) if text else None for text in foreign]


def _translate(texts: Sequence[str], model: TextModel, language: str, what: str) -> list[str | None]:
    if not model.encoder_decoder:
        instruction = f"Translate this sentence to {language}. Write the translation only.\nSentence: "
        texts = [f"{instruction}{text}\nTranslation:" for text in texts]
    return model.answers(texts, what, _TRANSLATED_TOKENS)


def questions(passages: Sequence[Passage], model: TextModel) -> list[str | None]:
    """Return a question for each passage that its answer answers, or None.

    A model that knows the token ``<hl>`` or ``[HL]`` reads the sentence with the answer between two of them; another
    encoder-decoder model reads "answer: ... context: ..."; any other model gets instructions. A model's text that does
    not end with a question mark does not count as a question.
    """
    mark = next(filter(model.knows, _MARKS), "")
    texts = model.answers([_question_prompt(one, model, mark) for one in passages], "questions", _QUESTION_TOKENS)
    return [
        text[: text.index("?") + 1].removeprefix("question:").strip() if text and "?" in text else None
        for text in texts
    ]


def _question_prompt(item: Passage, model: TextModel, mark: str) -> str:
    sentence, answer = item.sentence, item.answer
    if mark:
        marked = f"{sentence[: item.start]}{mark} {answer} {mark}{sentence[item.start + len(answer) :]}"
        return f"generate question: {marked}" if mark == "<hl>" else marked
    if model.encoder_decoder:
        return f"answer: {answer} context: {sentence}"
    before = f"Text: {' '.join(item.context[-_ASKED_CONTEXT:].split())}\n\n" if item.context else ""
    return (
        f"{before}Write one question that is answered by {answer!r} according to the sentence below. The question "
        "must be understandable without the sentence, be in its language, and must not contain the answer.\n"
        f"Sentence: {sentence}\nQuestion:"
    )


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
