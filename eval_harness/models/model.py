"""What tasks know of a model under evaluation: its identity, what it can do, and the methods for that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from accelerate import PartialState

from temporalwiki.base.errors import InputError
from temporalwiki.base.progress import Progress
from temporalwiki.methods.processes import processes

if TYPE_CHECKING:
    from temporalwiki.eval_harness.scoring import Text, TokenScores
    from temporalwiki.methods.checkpoint import Checkpoint

LIKELIHOODS = "likelihoods"  # it scores and continues any text: ``score``, ``generate``
WEIGHTS = "weights"  # its weights are here: ``loaded``, ``tokenizer``, ``copied``, ``light_tuned``
REPLIES = "replies"  # it replies to questions: ``ask``
STORED = "stored"  # it has scores of the facts of earlier results: ``stored``
LOGGED = "logged"  # it has answers and likelihoods for the probes of a log: ``logged``


class FactScore(NamedTuple):
    """The negative log-likelihood of "subject relation object", in nats, and of the object in it.

    An encoder-decoder model scores only the object, after ``<extra_id_0>``, so for it both are the same.
    """

    nll: float
    tokens: int
    object_nll: float
    object_tokens: int
    bytes: int  # of the scored text in UTF-8; without BOS, a model does not score the first token


class Model:
    """A model under evaluation. The methods that it lacks raise InputError, which names the model.

    A task tells in ``needs`` which abilities suffice for it, and the runner compares them with ``can``.
    """

    can: ClassVar[frozenset[str]] = frozenset()
    # why it cannot do some tasks; {tasks} are these, {able} the tasks that it can do, {reference} and {hint} its own
    refusal: ClassVar[str] = "{tasks} cannot use {reference}"

    reference: str  # folder, Hub id, .gguf file, package:NAME or PROVIDER/NAME
    precision: str
    cache_folder: Path
    start: Model | None = None  # the model that it started from
    judge: Model | None = None  # reads its replies as well
    costs: Counter[str] = Counter()  # noqa: RUF012 - "requests", "input_tokens", "output_tokens"; never changed here
    borrowed: tuple[Any, ...] = ()  # modules of the caller, whose modes an evaluation must restore

    @cached_property
    def name(self) -> str:
        """Its name in result files."""
        return self.reference

    @cached_property
    def revision(self) -> str:
        """The identity of what computes its scores."""
        raise NotImplementedError

    @cached_property
    def loaded(self) -> Checkpoint:
        """The model on its device, with its tokenizer."""
        raise self._lacks(WEIGHTS)

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer, for callers that do not need the model."""
        raise self._lacks(WEIGHTS)

    @cached_property
    def encoder_decoder(self) -> bool:
        """Whether it is an encoder-decoder model such as T5."""
        return False

    @cached_property
    def has_bos(self) -> bool:
        """Whether it scores the first token of a text; for a server, the offsets of the scores tell."""
        return False

    @property
    def hint(self) -> str:
        """The last words of a refusal."""
        return ""

    @cached_property
    def state(self) -> PartialState:
        """The processes that share the work."""
        return processes()

    def check(self) -> None:
        """Raise InputError or UsageError if the model is missing or cannot be asked."""

    def training(self) -> dict[str, Any]:
        """Return how the model was trained; here, nothing is known."""
        return {"method": None, "trained_on": [], "base": None}

    def score(self, texts: Sequence[Text], what: str) -> list[TokenScores | None]:
        """Return each text's scores, or None for a text that cannot be scored. ``what`` names the progress."""
        raise self._lacks(LIKELIHOODS)

    def generate(
        self, prompts: Sequence[str], what: str, max_new_tokens: int, beams: int = 1, whole: bool = False
    ) -> list[str | None]:
        """Return each prompt's answer, or None for a prompt that is too long for the model's context."""
        raise self._lacks("answers")

    def ask(self, questions: Sequence[str], what: str) -> list[str]:
        """Return the reply to each question."""
        raise self._lacks(REPLIES)

    def stored(self, rows: Sequence[Mapping[str, Any]], split: str) -> list[FactScore | None]:
        """Return the known scores of the facts of a split."""
        raise self._lacks("scores of facts")

    def known_items(self) -> dict[str, dict[str, Any]]:
        """Return the known items of facts in panels by their id."""
        raise self._lacks("facts in panels")

    def softened(self, temperature: float) -> Model:
        """Return this model with its logits divided by ``temperature``; both share the weights."""
        raise self._lacks(WEIGHTS)

    def logged(
        self, probes: Mapping[str, Sequence[Mapping[str, Any]]], excluded: Counter[str]
    ) -> list[dict[str, Any]]:
        """Return an item for each probe in a log; ``excluded`` counts the others."""
        raise self._lacks("logged answers")

    def copied(self) -> Checkpoint:
        """Return a second copy of model and tokenizer, which training may change."""
        raise self._lacks(WEIGHTS)

    @contextmanager
    def light_tuned(self, facts: Sequence[Mapping[str, Any]]) -> Iterator[Model]:
        """Yield a copy of the model, light-tuned on ``facts`` (subject, relation, object)."""
        raise self._lacks(WEIGHTS)
        yield self

    def check_border(self, text: Text, scores: TokenScores, border: int) -> None:
        """Raise InputError if a token lies across a border of the text, which only a server's tokens may do."""

    def progress(self, what: str, total: int, done: int, unit: str) -> Progress:
        """Return a progress display that only the first process shows."""
        return Progress(what, total, unit, done, shown=self.state.is_main_process)

    def _lacks(self, what: str) -> InputError:
        return InputError(f"{self.reference}: gives no {what}")
