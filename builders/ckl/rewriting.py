"""Let models rewrite sentences: steps 2 and 3 of CKL's Figure 4 (b)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from temporalwiki.builders.ckl.question_generation import Passage
from temporalwiki.builders.ckl.text_model import TextModel

_CONTEXT = 1200  # characters before a sentence that a model reads
_REWRITTEN_TOKENS, _TRANSLATED_TOKENS = 128, 192
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def decontextualize(passages: Sequence[Passage], model: TextModel) -> list[str | None]:
    """Return each passage's sentence rewritten so that it can be understood without the page, or None.

    An encoder-decoder model reads the format of Choi et al. (2021): title, section (empty), text before, sentence,
    text after (empty), joined by " [SEP] ". Any other model gets instructions.
    """
    prompts = [_prompt(passage, model) for passage in passages]
    texts = model.answers(prompts, "decontextualisation", _REWRITTEN_TOKENS)
    return [None if text is None else _sentence(text) for text in texts]


def _prompt(item: Passage, model: TextModel) -> str:
    before = " ".join(item.context[-_CONTEXT:].split())
    if model.encoder_decoder:
        return " [SEP] ".join((item.title, "", before, item.sentence, ""))
    when = f"Published: {written(item.published)}\n" if item.published else ""
    return (  # a small model that reads the text after its instructions rewrites the text
        f"Title: {item.title}\n{when}Text: {before}\n\n"
        "Rewrite the sentence below so that it can be understood without the text above: replace pronouns and words "
        "that point to the text by names and dates from it. Change nothing else. Write the sentence only.\n"
        f"Sentence: {item.sentence}\nRewritten:"
    )


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
