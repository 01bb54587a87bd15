"""Light-tuning: the model learns the form of the probes from facts that are in no probe."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import datasets
from peft import PeftModel
from transformers import PreTrainedModel
from trl import SFTTrainer

from temporalwiki.base.errors import InputError
from temporalwiki.base.options import did_you_mean
from temporalwiki.methods.architecture import train_text
from temporalwiki.methods.method import Method
from temporalwiki.methods.trainer import ContinualMixin

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

    def prepare(self, model: PreTrainedModel | PeftModel, seed: int) -> PreTrainedModel:
        """Merge a peft adapter and make all parameters trainable."""
        model = model.merge_and_unload() if isinstance(model, PeftModel) else model
        train_text(model)
        return model


class LightTuner(ContinualMixin, SFTTrainer):
    """trl's SFTTrainer with our data order, checkpoints and log."""


def check_columns(columns: Collection[str], name: str) -> None:
    """Raise InputError if ``columns``, the columns of config ``name``, lack one that light-tuning needs."""
    for column in _COLUMNS:
        if column not in columns:
            raise InputError(
                f"{name}: light-tuning needs the column {column!r}{did_you_mean(column, columns)}; "
                f"there are {', '.join(columns)}"
            )


def facts(rows: datasets.Dataset, name: str) -> datasets.Dataset:
    """Return a prompt, "subject relation", and a completion, " object", for each fact of config ``name``.

    Raises InputError if a column is missing.
    """
    check_columns(rows.column_names, name)
    return datasets.Dataset.from_list(
        [
            {"prompt": f"{fact['subject']} {fact['relation']}", "completion": f" {fact['object']}"}
            for fact in rows.select_columns(list(_COLUMNS))
        ]
    )
