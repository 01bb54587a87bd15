"""``temporalwiki.ForgettingCallback``: measure what a model learns and forgets in a training of your own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.terminal import say
from temporalwiki.builders.loading import config_names
from temporalwiki.methods import needs

with needs("eval"):
    from transformers import TrainerCallback

    from temporalwiki.eval_harness.known import SCORED
    from temporalwiki.eval_harness.models.local import HeldModel, held_model, modes_kept
    from temporalwiki.eval_harness.scoring import Scorer, Text, TokenScores
    from temporalwiki.eval_harness.statistics import Estimate
    from temporalwiki.eval_harness.tasks.learned_and_forgotten import LearnedAndForgotten
    from temporalwiki.methods.training_data import check_config, load

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

_SHOWN = ("new_known", "old_known", "learned", "forgotten")


class ForgettingCallback(TrainerCallback):
    """A callback for the trainers of `transformers` and trl that measures learned and forgotten facts.

    It compares the model with its state at the start of the training: at each evaluation, every ``every`` steps, and
    at the end. It writes four values to ``trainer.state.log_history``, in percent (see the task
    ``learned_and_forgotten``):

    - ``new_known`` and ``old_known``: changed and unchanged facts that the model knows
    - ``learned``: ``new_known`` minus its value at the start
    - ``forgotten``: ``old_known`` at the start minus its value now

    ``strict/learned`` and so on count only strict facts. ``history`` has the values with their 95 %
    intervals. The callback does not change the training.
    """

    def __init__(
        self,
        data: str | os.PathLike[str] | DatasetDict,
        *,
        config: str | None = None,
        every: int | None = None,
        limit: int | None = 1000,
        tokenizer: Any = None,
        trainer: Any = None,
    ) -> None:
        """Read the facts.

        Args:
            data: dataset folder, Hub id, id@revision, or the splits of a config of probes in memory.
            config: config of probes; by default the last one of the dataset.
            every: also measure each time this many steps are done. Evaluations always measure.
            limit: sample at most this many facts of each split, with a fixed seed. None uses all.
            tokenizer: tokenizer of the model; the trainer's by default.
            trainer: the trainer, which then also sends the values to its trackers (W&B, trackio, TensorBoard).

        Raises UsageError for a wrong argument, and InputError for data without changed and unchanged facts.
        """
        for name, value in (("every", every), ("limit", limit)):
            if value is not None and value < 1:
                raise UsageError(f"{name} must be at least 1, not {value}")
        self.every, self.tokenizer, self.trainer = every, tokenizer, trainer
        self.history: list[dict[str, Any]] = []  # {"step", "measure", "value", "low", "high"}
        splits = _splits(data, config) if isinstance(data, str | os.PathLike) else data
        self._rows = {split: _sample(splits[split], limit) for split in LearnedAndForgotten.splits if split in splits}
        if len(self._rows) < 2 or not all(self._rows.values()):
            raise InputError("data: needs facts in both of its splits, unchanged and changed")
        self._start: _LiveModel | None = None
        self._measured = 0  # the last step

    def to_pandas(self) -> Any:
        """Return ``history`` as a ``pandas.DataFrame``."""
        return pa.Table.from_pylist(self.history).to_pandas()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Score the model that the training starts from."""
        self._measured = state.global_step
        if state.is_world_process_zero:
            self._start = self._live(args, kwargs)
            self._start.kept = {}
            self._score(self._start)

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Measure after an evaluation. The end of the training calls this as well."""
        self._measure(args, state, kwargs)

    on_train_end = on_evaluate

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Measure after every ``every`` steps."""
        if self.every is not None and state.global_step % self.every == 0:
            self._measure(args, state, kwargs)

    def _measure(self, args: Any, state: Any, kwargs: dict[str, Any]) -> None:
        if self._start is None or self._measured == state.global_step:  # an evaluation before training, or twice
            return
        self._measured = step = state.global_step
        model = self._live(args, kwargs)
        model.start = self._start
        scores = {
            name.removeprefix("all/"): score
            for name, score in self._score(model).items()
            if name.partition("/")[0] in ("all", "strict") and name.rpartition("/")[2] in _SHOWN
        }
        values = {name: score.value for name, score in scores.items()}
        for name, one in scores.items():
            self.history.append({"step": step, "measure": name, "value": one.value, "low": one.low, "high": one.high})
        if self.trainer is not None:
            self.trainer.log(values)
        else:
            state.log_history.append({**values, "step": step})
            shown = ", ".join(f"{name} {value:.1f}" for name, value in values.items())
            say(f"step {step}: {shown} %")

    def _score(self, model: _LiveModel) -> dict[str, Estimate]:
        with modes_kept(model.loaded.model):
            return dict(LearnedAndForgotten().run(model, self._rows).scores)

    def _live(self, args: Any, kwargs: dict[str, Any]) -> _LiveModel:
        held = held_model(kwargs["model"], self.tokenizer or kwargs.get("processing_class"), Path(), "auto")
        return _LiveModel(held.loaded, held.name, Path(), "bf16" if args.bf16 else held.precision)


class _LiveModel(HeldModel):
    """A model whose weights change, so no cache of its scores is used. ``kept`` holds the scores at the start."""

    kept: dict[Text, TokenScores | None] | None = None

    def score(self, texts: Sequence[Text], what: str) -> list[TokenScores | None]:
        known = {} if self.kept is None else self.kept
        if new := [text for text in dict.fromkeys(texts) if text not in known]:
            scorer = Scorer(self.loaded.model, self.loaded.tokenizer, self.precision)
            found = dict(one for batch in scorer.score(new) for one in batch)
            known |= {text: found.get(i) for i, text in enumerate(new)}
        return [known[text] for text in texts]


def _splits(data: str | os.PathLike[str], config: str | None) -> Any:
    path = os.fspath(data)
    names = config_names(path)
    probes = [name for name in names if name.startswith(LearnedAndForgotten.configs)]
    if config is None and not probes:
        raise InputError(f"{path}: no config probes-*; there are {', '.join(names)}")
    config = probes[-1] if config is None else config
    check_config(path, config, names)
    return load(path, config, None)


def _sample(rows: Dataset, limit: int | None) -> list[dict[str, Any]]:
    """Return all rows; those beyond a sample only stand in the panels of the others."""
    if limit is None or len(rows) <= limit:
        return list(rows)
    chosen = set(np.random.default_rng(0).choice(len(rows), limit, replace=False).tolist())
    return [row if i in chosen else {**row, SCORED: False} for i, row in enumerate(rows)]
