"""The loss that never keeps all logits: the same loss and gradients, with less memory."""

from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from transformers import GPT2Config, GPT2LMHeadModel, TrainingArguments

from temporalwiki.methods.method import Method
from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.trainer import ContinualTrainer, fuse_loss

import tiny_training

pytestmark = pytest.mark.usefixtures("quick")
VOCABULARY, ROWS, LENGTH = 5000, 4, 64


def trainer(fused: bool, folder: Path) -> ContinualTrainer:
    torch.manual_seed(0)
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    config = GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=1, n_head=2, **ends, embd_pdrop=0, resid_pdrop=0)
    model = GPT2LMHeadModel(config).eval()
    if fused:
        fuse_loss(model)
    made = ContinualTrainer(model=model, args=TrainingArguments(str(folder), report_to=[], use_cpu=True))
    made.set_up(TrainOptions(fused_loss=fused), Method())
    return made


def batch() -> dict[str, torch.Tensor]:
    draw = torch.Generator().manual_seed(1)
    ids, labels = torch.randint(VOCABULARY, (2, ROWS, LENGTH), generator=draw)
    labels[:, ::7] = -100
    return {"input_ids": ids, "labels": labels, "position_ids": torch.arange(LENGTH).repeat(ROWS, 1)}


def loss_and_gradients(made: ContinualTrainer) -> dict[str, torch.Tensor]:
    loss = made.compute_loss(made.model, batch(), num_items_in_batch=torch.tensor(100))
    loss.backward()
    return {"loss": loss.detach()} | {name: p.grad for name, p in made.model.named_parameters() if p.grad is not None}


def peak_bytes(made: ContinualTrainer) -> int:
    """Return the most bytes that a forward and backward pass holds at once."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        loss_and_gradients(made)
    held = most = 0
    for event in found.profiler.kineto_results.events():  # in order of time
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    return most


def test_loss_and_gradients_are_those_of_all_logits(tmp_path: Path) -> None:
    plain, fused = (loss_and_gradients(trainer(is_fused, tmp_path)) for is_fused in (False, True))
    assert plain.keys() == fused.keys()
    for name, wanted in plain.items():
        assert (fused[name] - wanted).abs().max() <= 1e-6 * wanted.abs().max().clamp(min=1), name


def test_fewer_bytes_are_held_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # pieces that are as small next to this model's logits as the library's are next to those of a micro-batch
    monkeypatch.setattr("trl.trainer.utils._CHUNKED_LOGPROB_CHUNK_SIZE", VOCABULARY // 4)
    monkeypatch.setattr("trl.kernels.chunked_logprob.TOKEN_CHUNK_SIZE", LENGTH)
    logits = 4 * ROWS * LENGTH * VOCABULARY
    plain, fused = (peak_bytes(trainer(is_fused, tmp_path)) for is_fused in (False, True))
    assert plain > 3 * logits
    assert fused < logits


@pytest.mark.parametrize("method", ["diff", "ewc", "lora", "k_adapter"])
def test_a_run_has_the_same_losses(method: str, tmp_path: Path) -> None:
    folder, logs = tiny_training.write(tmp_path, "gpt2"), []
    for more in ((), ("--fused-loss",)):
        output = tmp_path / f"out{len(more)}"
        tiny_training.train(folder, method, folder / "gpt2", output, "--max-steps", 3, "--held-out", 2, *more)
        logs.append(tiny_training.record(output)["log"])
    for plain, fused in zip(*logs, strict=True):
        for key in plain.keys() & {"loss", "extra_loss", "held_out_loss"}:
            assert fused[key] == pytest.approx(plain[key], rel=1e-5, abs=1e-6)
