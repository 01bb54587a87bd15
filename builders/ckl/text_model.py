"""The interface of language models for the steps of CKL; ``eval_harness.text_model`` implements it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from temporalwiki.base.errors import UsageError

RULES = "rules"  # the name that options give to a step without a model
_RULES_VERSION = 2


class TextModel(Protocol):
    """A language model that answers prompts with text."""

    @property
    def identity(self) -> Mapping[str, str]:
        """Name and revision (a commit or a hash of the files) for manifests."""
        ...

    @property
    def encoder_decoder(self) -> bool:
        """Whether it is an encoder-decoder model (T5, Marian ...), which does not follow instructions."""
        ...

    def knows(self, token: str) -> bool:
        """Tell whether ``token`` is one token of the model."""
        ...

    def answers(self, prompts: Sequence[str], what: str, max_new_tokens: int) -> list[str | None]:
        """Return each prompt's answer on one line, or None; ``what`` names the step in the progress bar."""
        ...

    def closed_book(self, questions: Sequence[str], what: str) -> list[str | None]:
        """Return the model's answer to each question, or None; ``what`` names the step in the progress bar."""
        ...


OpenModel = Callable[[str], TextModel]  # from a folder, Hub id, .gguf file or package:NAME; may raise InputError


def no_models(reference: str) -> TextModel:
    """Raise UsageError: the caller was given no function that opens models."""
    raise UsageError(f"{reference}: to use a model, pass open_model=temporalwiki.eval_harness.text_model.open_model")


def find_model(reference: str, open_model: OpenModel) -> TextModel | None:
    """Return the model that an option names; None for "rules"."""
    return None if reference == RULES else open_model(reference)


def identity(model: TextModel | None) -> dict[str, str]:
    """Return the name and revision that manifests record for a model, or for the rules if a step uses no model."""
    return {"name": RULES, "revision": str(_RULES_VERSION)} if model is None else dict(model.identity)
