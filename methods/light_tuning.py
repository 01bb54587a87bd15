"""Light-tuning: a model learns the form of the probes from facts that no probe is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import datasets
from peft import PeftModel
from transformers import PreTrainedModel
from trl import SFTTrainer

from temporalwiki.base.errors import InputError
from temporalwiki.base.options import did_you_mean
from temporalwiki.methods.method import Method
from temporalwiki.methods.trainer import Continual

_COLUMNS = ("subject", "relation", "object")


@dataclass(frozen=True)
class LightTuning(Method):
    """One epoch on ``lighttuning-*``: given subject and relation, say the object (TemporalWiki section 4.2, app. F).

    All parameters are trained, those that the model's own method had frozen included; a peft adapter is merged.
    Decoder-only models alone: CKL does not light-tune T5, and the library's supervised trainer is causal.
    """

    data: ClassVar[str] = "lighttuning"
    defaults: ClassVar[Mapping[str, Any]] = {"batch_size": 32, "learning_rate": 1e-5}
    refuses: ClassVar[str] = "encoder-decoder"

    def prepare(self, model: PreTrainedModel | PeftModel, seed: int) -> PreTrainedModel:
        """Let everything train."""
        model = model.merge_and_unload() if isinstance(model, PeftModel) else model
        model.requires_grad_(True)
        return model


class LightTuner(Continual, SFTTrainer):
    """The library's supervised trainer, with our order, checkpoints and log."""


def facts(rows: datasets.Dataset, name: str) -> datasets.Dataset:
    """Return prompts and completions, "subject relation" and " object", of the facts of config ``name``.

    Raises InputError where there are none.
    """
    for column in _COLUMNS:
        if column not in rows.column_names:
            raise InputError(
                f"{name}: light-tuning needs the column {column!r}{did_you_mean(column, rows.column_names)}; "
                f"there are {', '.join(rows.column_names)}"
            )
    return datasets.Dataset.from_list(
        [
            {"prompt": f"{fact['subject']} {fact['relation']}", "completion": f" {fact['object']}"}
            for fact in rows.select_columns(list(_COLUMNS))
        ]
    )
