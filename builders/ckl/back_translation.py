"""Paraphrase sentences, so that a model cannot recite a text it has read: step 3 of CKL's Figure 4 (b).

Two translation models do it, there and back, or rules, which change little.
"""

from __future__ import annotations

from collections.abc import Sequence

import regex

from temporalwiki.base.errors import UsageError
from temporalwiki.builders.ckl.text_model import TextModel

_SENTENCE_TOKENS = 192


def back_translate(
    texts: Sequence[str], there: TextModel | None = None, back: TextModel | None = None
) -> list[str | None]:
    """Return each text, translated by the model ``there`` and back by the model ``back``; None if that failed.

    Models are translation models of one pair of languages each (Marian), or language models, which get instructions:
    to German, and to English. Without models, rules change a few phrases. Raises UsageError if only one of the
    two models is given.
    """
    if there is None and back is None:
        return [by_rules(text) for text in texts]
    if there is None or back is None:
        raise UsageError("back-translation needs two models, there and back, or none")
    foreign = _translate(texts, there, "German", "translation")
    returned = iter(_translate([text for text in foreign if text], back, "English", "back-translation"))
    return [next(returned) if text else None for text in foreign]


def _translate(texts: Sequence[str], model: TextModel, language: str, what: str) -> list[str | None]:
    if not model.encoder_decoder:
        instruction = f"Translate this sentence to {language}. Write the translation only.\nSentence: "
        texts = [f"{instruction}{text}\nTranslation:" for text in texts]
    return model.answers(texts, what, _SENTENCE_TOKENS)


_SPECIAL = {"won": "will", "can": "can", "shan": "shall"}
_SHORT_NOT = regex.compile(
    r"\b(?:(?P<special>won|can|shan)|(?P<plain>is|are|was|were|has|have|had|do|does|did|would|could|should|must)n)"
    r"['’]t\b"
)
_OTHER_WAYS = (
    (regex.compile(r"(?<=\d) ?%(?![\w%])"), " percent"),
    (regex.compile(r"\bper cent\b"), "percent"),
    (regex.compile(r"\bin order to\b"), "to"),
    (regex.compile(r"\bprior to\b"), "before"),
    (regex.compile(r"\bapproximately\b"), "about"),
    (regex.compile(r"\bdue to the fact that\b"), "because"),
    (regex.compile(r"\bdespite the fact that\b"), "although"),
    (regex.compile(r"\bmore than (?=\d)"), "over "),
    (regex.compile(r"\bnearly (?=\d)"), "almost "),
)


def by_rules(text: str) -> str:
    """Return the text with contractions written out and long phrases shortened; most sentences do not change.

    "didn't" becomes "did not", "3%" "3 percent", "in order to" "to". Unlike a translation, this leaves names,
    numbers and the order of words as they are.
    """

    def negated(match: regex.Match[str]) -> str:
        return f"{_SPECIAL[match['special']] if match['special'] else match['plain']} not"

    text = _SHORT_NOT.sub(negated, text)
    for way, other in _OTHER_WAYS:
        text = way.sub(other, text)
    return text
