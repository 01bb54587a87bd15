"""Paraphrase sentences, so that a model cannot recite a text it has read: step 3 of CKL's Figure 4 (b)."""

from __future__ import annotations

from collections.abc import Sequence

from temporalwiki.builders.ckl.text_model import TextModel

_SENTENCE_TOKENS = 192


def back_translate(texts: Sequence[str], there: TextModel, back: TextModel, language: str = "en") -> list[str | None]:
    """Return each text, translated by the model ``there`` and back by the model ``back``; None if that failed.

    Models are translation models of one pair of languages each (Marian), or language models, which get instructions:
    from English to German, from other languages to English, and back.
    """
    own = "English" if language == "en" else f"the language with the ISO 639-1 code {language!r}"
    foreign = _translate(texts, there, "German" if language == "en" else "English", "translation")
    returned = iter(_translate([text for text in foreign if text], back, own, "back-translation"))
    return [next(returned) if text else None for text in foreign]


def _translate(texts: Sequence[str], model: TextModel, language: str, what: str) -> list[str | None]:
    if not model.encoder_decoder:
        instruction = f"Translate this sentence to {language}. Write the translation only.\nSentence: "
        texts = [f"{instruction}{text}\nTranslation:" for text in texts]
    return model.answers(texts, what, _SENTENCE_TOKENS)
