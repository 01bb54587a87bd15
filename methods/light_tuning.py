"""Light-tuning: the model learns the form of the probes from facts that are in no probe."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import datasets
import numpy as np
from peft import PeftModel
from transformers import PreTrainedModel
from trl import SFTConfig, SFTTrainer

from temporalwiki.base.errors import InputError
from temporalwiki.base.options import did_you_mean
from temporalwiki.builders.published import source_of
from temporalwiki.methods.architecture import train_text
from temporalwiki.methods.method import Method, Model, Phase, TrainingData
from temporalwiki.methods.trainer import ContinualMixin
from temporalwiki.methods.training_data import load

_COLUMNS = ("subject", "relation", "object")


@dataclass(frozen=True)
class LightTuning(Method):
    """One epoch on ``lighttuning-*``: predict the object from subject and relation (TemporalWiki section 4.2, app. F).

    All parameters are trained, including those frozen by the model's own method. A peft adapter is merged first. Only
    decoder-only models are supported: CKL does not light-tune T5, and trl's SFTTrainer is for causal models.
    """

    data: ClassVar[str] = "lighttuning"
    defaults: ClassVar[Mapping[str, Any]] = {"batch_size": 32, "learning_rate": 1e-5}
    unsupported_architecture: ClassVar[str] = "encoder-decoder"

    def prepare(self, model: Model, phase: Phase) -> PreTrainedModel:
        """Merge a peft adapter and make all parameters trainable."""
        model = model.merge_and_unload() if isinstance(model, PeftModel) else model
        train_text(model)
        return model

    def check_columns(self, columns: Collection[str], name: str) -> None:
        """Raise InputError if ``columns``, the columns of config ``name``, lack one that light-tuning needs."""
        for column in _COLUMNS:
            if column not in columns:
                raise InputError(
                    f"{name}: light-tuning needs the column {column!r}{did_you_mean(column, columns)}; "
                    f"there are {', '.join(columns)}"
                )

    def own_data(self, data: str, config: str) -> TrainingData:
        """Return a prompt, "subject relation", and a completion, " object", for each fact of all splits.

        Raises InputError if a column is missing.
        """
        loaded = load(data, config, None)
        rows = datasets.concatenate_datasets(list(loaded.values()))
        self.check_columns(rows.column_names, config)
        facts = [
            {"prompt": f"{fact['subject']} {fact['relation']}", "completion": f" {fact['object']}"}
            for fact in rows.select_columns(list(_COLUMNS))
        ]
        description = {"config": config, "facts": len(facts)}
        return TrainingData(datasets.Dataset.from_list(facts), None, description, [source_of(data, config, loaded)])

    def own_trainer(
        self, model: Model, data: TrainingData, order: np.ndarray, tokenizer: Any, arguments: Callable[..., Any]
    ) -> LightTuner:
        """Return a trainer that counts only the tokens of objects."""
        return LightTuner(
            model=model,
            args=arguments(kind=SFTConfig, max_length=None, eos_token=tokenizer.eos_token),
            train_dataset=data.new.select(order[order >= 0]),
            processing_class=copy.deepcopy(tokenizer),  # SFTTrainer adds a padding token to it
        )


class LightTuner(ContinualMixin, SFTTrainer):
    """trl's SFTTrainer with our data order, checkpoints and log."""
