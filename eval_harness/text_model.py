"""Language models that write text for the builders of CKL: questions, rewritten sentences, translations, decisions."""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

from temporalwiki.builders.loading import exists
from temporalwiki.eval_harness.models.cache import cache_folder
from temporalwiki.eval_harness.models.local import CachedModel, default_precision, revision
from temporalwiki.eval_harness.scoring import SENTINEL
from temporalwiki.eval_harness.tasks.lama import in_question
from temporalwiki.methods import checkpoint

_ANSWER_TOKENS = 20  # the longest answer to a question, as in the task new_questions


class WritingModel:
    """A model that answers prompts with text; it fulfils ``builders.ckl.text_model.TextModel``.

    Answers are cached as in an evaluation: an interrupted run continues, and no prompt is asked twice.
    """

    def __init__(self, model: CachedModel, name: str) -> None:
        """Wrap a model; ``name`` is its name in manifests. Raises InputError for a missing model."""
        self._model = model
        self.identity: Mapping[str, str] = {"name": name, "revision": model.revision}

    @cached_property
    def encoder_decoder(self) -> bool:
        """Whether it is an encoder-decoder model, which does not follow instructions."""
        return self._model.encoder_decoder

    def knows(self, token: str) -> bool:
        """Tell whether ``token`` is one token of the model."""
        return token in self._model.tokenizer.get_vocab()

    def answers(self, prompts: Sequence[str], what: str, max_new_tokens: int) -> list[str | None]:
        """Return each prompt's answer on one line; None if the prompt is empty or too long, or the answer is empty.

        If a prompt ends with a label ("Question:"), the answer does not repeat it.
        """
        answers = self._model.write(prompts, what, max_new_tokens)
        return [_without_label(answer or "", prompt) or None for prompt, answer in zip(prompts, answers, strict=True)]

    def closed_book(self, questions: Sequence[str], what: str) -> list[str | None]:
        """Return the model's own answer to each question, asked as in the task ``new_questions``."""
        cloze = in_question(self._model)
        prompts = [cloze({"question": question}) for question in questions]
        if not self.encoder_decoder:
            prompts = [prompt.partition(SENTINEL)[0].strip() for prompt in prompts]
        return self._model.generate(prompts, what, _ANSWER_TOKENS)


def _without_label(answer: str, prompt: str) -> str:
    label = prompt.rpartition("\n")[2]
    answer = " ".join(answer.split())
    return answer.removeprefix(label).lstrip() if label.endswith(":") else answer


def open_model(reference: str) -> WritingModel:
    """Return a model by folder, Hub id (``id@revision``), ``.gguf`` file or ``package:NAME``.

    The last model stays in memory for the next call. Raises InputError for a missing model.
    """
    pinned = checkpoint.pinned(reference)
    name = Path(reference).name if exists(reference) else reference
    return _opened(pinned, name, revision(pinned))


@lru_cache(maxsize=1)
def _opened(reference: str, name: str, revision: str) -> WritingModel:
    model = CachedModel(reference, cache_folder(), default_precision())
    model.revision = revision  # its files are not hashed again
    return WritingModel(model, name)
