"""Sentences in other words: step 3 of CKL's Figure 4 (b), so that a text cannot be recited where it was read.

By two translation models, there and back, or by rules, which change little: see ``by_rules``.
"""

from __future__ import annotations

from collections.abc import Sequence

import regex

from temporalwiki.base.errors import UsageError
from temporalwiki.builders.ckl.text_model import RULES, TextModel


def back_translate(texts: Sequence[str], there: str = RULES, back: str = RULES) -> list[str | None]:
    """Return each text after it was translated by the model ``there`` and back by the model ``back``.

    "rules" for both: no translation, but a few other ways to write the same. Models are translation models of one
    pair of languages each (Marian), or language models that are told what to do: to German, and to English. None
    where a model says nothing. Raises UsageError where only one is "rules", InputError where there is no such model.
    """
    if (there == RULES) != (back == RULES):
        raise UsageError("back-translation needs two models, there and back, or none")
    if there == RULES:
        return [by_rules(text) for text in texts]
    foreign = _translated(texts, TextModel(there, max_new_tokens=192), "German", "translation")
    said = iter(_translated([text for text in foreign if text], TextModel(back, 192), "English", "back-translation"))
    return [next(said) if text else None for text in foreign]


def _translated(texts: Sequence[str], model: TextModel, language: str, what: str) -> list[str | None]:
    if model.encoder_decoder:
        return model.answers(texts, what)
    told = f"Translate this sentence to {language}. Write the translation only.\nSentence: "
    return model.answers([f"{told}{text}\nTranslation:" for text in texts], what)


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
    """Return the text with short forms written out and long-winded ones shortened; most sentences stay as they are.

    "didn't" becomes "did not", "3%" "3 percent", "in order to" "to". This is no paraphrase as a translation gives
    one: names, numbers and the order of words are left alone.
    """

    def negated(match: regex.Match[str]) -> str:
        return f"{_SPECIAL[match['special']] if match['special'] else match['plain']} not"

    text = _SHORT_NOT.sub(negated, text)
    for way, other in _OTHER_WAYS:
        text = way.sub(other, text)
    return text
