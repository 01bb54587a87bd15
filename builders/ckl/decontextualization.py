"""Rewrite sentences so that they can be understood without their page: step 2 of CKL's Figure 4 (b).

After Choi et al. 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from temporalwiki.builders.ckl.question_generation import Passage
from temporalwiki.builders.ckl.text_model import TextModel

_CONTEXT = 1200  # characters before a sentence that a model reads
_SENTENCE_TOKENS = 128
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def decontextualize(passages: Sequence[Passage], model: TextModel) -> list[str | None]:
    """Return each passage's sentence rewritten so that it can be understood without the page, or None.

    An encoder-decoder model reads the format of Choi et al.: title, section (empty),
    text before, sentence, text after (empty), joined by " [SEP] ". Any other model gets instructions.
    """
    prompts = [_prompt(passage, model) for passage in passages]
    texts = model.answers(prompts, "decontextualisation", _SENTENCE_TOKENS)
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
