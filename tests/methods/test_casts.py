"""How often weights and gradients are cast: for each micro-batch or, with weights in bf16, once a step."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import GPT2Config, GPT2LMHeadModel, TrainingArguments

from temporalwiki.methods.method import Method
from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.packing import PackedBatch
from temporalwiki.methods.trainer import ContinualTrainer, OrderedExamples, training_arguments

LAYERS, LENGTH, ROWS, MICRO_BATCHES = 3, 20, 6, 3
WIDTH = 24  # no activation has the size of a weight
OF_LAYERS = 8 * LAYERS + 1  # four matrices with biases in each, and the output


class Casts(TorchDispatchMode):
    """Counts casts of tensors that are as large as a weight, by the types they are cast from and to."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.sizes = {p.numel() for p in model.parameters()}
        self.counts: Counter[tuple[torch.dtype, torch.dtype]] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        wanted = (kwargs or {}).get("dtype")
        if function is torch.ops.aten._to_copy.default and wanted and args[0].numel() in self.sizes:
            self.counts[args[0].dtype, wanted] += 1
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_weights_in_bf16_are_not_cast_for_each_micro_batch(dtype: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=100, n_positions=64, n_embd=WIDTH, n_layer=LAYERS, n_head=2, bos_token_id=0, eos_token_id=0
    )
    model = GPT2LMHeadModel(config).to(torch.bfloat16 if dtype == "bf16" else torch.float32)
    options = TrainOptions(
        batch_size=ROWS, micro_batch_size=ROWS // MICRO_BATCHES, sequence_length=LENGTH, dtype=dtype, precision="bf16"
    )
    chunk = {"input_ids": list(range(LENGTH)), "starts": [0, 5], "next_token": 0}
    arguments = training_arguments(options, "bf16", tmp_path, 1, "casts", TrainingArguments)
    arguments.save_strategy = "no"  # type: ignore[assignment]
    trainer = ContinualTrainer(
        model=model,
        args=arguments,
        train_dataset=OrderedExamples(np.arange(ROWS), [chunk] * ROWS, None),
        data_collator=PackedBatch(LENGTH, 0, shared=True),
    )
    trainer.set_up(options, Method())
    with Casts(model) as casts:
        trainer.train()
    down, up = casts.counts[torch.float32, torch.bfloat16], casts.counts[torch.bfloat16, torch.float32]
    if dtype == "fp32":
        assert (down, up) == (MICRO_BATCHES * OF_LAYERS, MICRO_BATCHES * OF_LAYERS)
    else:
        assert (down, up) == (0, len(list(model.parameters())))
