"""The interface of language models for the steps of CKL; ``eval_harness.text_model`` implements it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from temporalwiki.base.errors import UsageError

RULES = "rules"  # the name of the judge and of the finder of spans that use no model
# licences and sizes from memory: nobody has checked them against the Hub
WRITER = "Qwen/Qwen2.5-7B-Instruct"  # Apache 2.0, 7.6 billion parameters, 15 GB of weights
READER = "microsoft/Phi-3.5-mini-instruct"  # MIT, 3.8 billion, 8 GB; of another family than the writer


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
