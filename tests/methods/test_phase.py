"""What a method learns about its phase, and when its hooks are called."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from temporalwiki.commands import main
from temporalwiki.methods import checkpoint
from temporalwiki.methods.diff import Diff
from temporalwiki.methods.method import Method, Model, Phase

import tiny_training

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def phases(monkeypatch: pytest.MonkeyPatch) -> list[Phase]:
    """Return the phases that methods were given when they prepared a model."""
    given: list[Phase] = []
    prepare = Method.prepare

    def record(self: Method, model: Model, phase: Phase) -> Model:
        given.append(phase)
        return prepare(self, model, phase)

    monkeypatch.setattr(Method, "prepare", record)
    return given


def same(model: Model, folder: Path) -> bool:
    expected = load_file(folder / "model.safetensors")
    return all(torch.equal(p, expected[name]) for name, p in model.named_parameters())


def test_a_phase_knows_the_phases_before_it(tmp_path: Path, phases: list[Phase]) -> None:
    start = tiny_training.write(tmp_path, "gpt2") / "gpt2"
    # the same method in a row, then another one
    for at, (method, steps) in enumerate((("replay", 2), ("diff", 1), ("diff", 3), ("diff", 1), ("replay", 1))):
        output = tmp_path / str(at)
        tiny_training.train(tmp_path, method, start, output, "--max-steps", steps, "--seed", 7)
        start = output
    assert [phase.index for phase in phases] == [0, 0, 1, 2, 0]
    assert [phase.earlier for phase in phases] == [(), (2,), (2, 1), (2, 1, 3), (2, 1, 3, 1)]
    assert {phase.seed for phase in phases} == {7}
    previous = ("gpt2", "0", "1", "2", "3")
    base = ("gpt2", "0", "0", "0", "3")
    for phase, first, before in zip(phases, base, previous, strict=True):
        assert same(phase.previous(), tmp_path / before)
        assert same(phase.base(), tmp_path / first)


def test_a_phase_of_a_model_in_memory_has_no_checkpoint() -> None:
    with pytest.raises(TypeError, match="no checkpoint"):
        Phase().previous()


def test_a_hook_changes_the_weights_after_each_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[list[float]] = []

    def clear(self: Method, model: Any) -> None:
        weight = model.transformer.ln_f.bias
        called.append(weight.tolist())
        with torch.no_grad():
            weight.zero_()

    monkeypatch.setattr(Diff, "after_step", clear)
    start = tiny_training.write(tmp_path, "gpt2") / "gpt2"
    # two micro-batches a step
    tiny_training.train(tmp_path, "diff", start, tmp_path / "out", "--max-steps", 3, "--micro-batch-size", 1)
    assert len(called) == 3
    assert all(any(values) for values in called)  # the step came first
    assert not load_file(tmp_path / "out" / "model.safetensors")["transformer.ln_f.bias"].any()


REFUSED = {
    "EWC with FSDP": ("FSDP", ("--method", "ewc"), "ewc: needs unsharded weights, which FSDP does not give"),
    "DeepSpeed": ("DEEPSPEED", ("--method", "diff"), "DeepSpeed is not supported: shard with FSDP"),
    "Adafactor with FSDP": ("FSDP", ("--method", "diff", "--optimizer", "adafactor"), "the state of adafactor"),
    "bf16 with FSDP": ("FSDP", ("--method", "diff", "--dtype", "bf16"), "--precision bf16, without --dtype"),
    "4 bits with FSDP": ("FSDP", ("--method", "lora", "--quantize", "4bit"), "--precision bf16, without --quantize"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_sharded_is_refused_before_anything_is_read(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    how, words, said = REFUSED[case]
    monkeypatch.setenv(f"ACCELERATE_USE_{how}", "true")
    monkeypatch.setattr(checkpoint, "load", lambda *_: pytest.fail("it was loaded"))
    where = ("--model", "nowhere", "--data", "nowhere", "--config", "new", "--output", str(tmp_path / "out"))
    assert main(["train", *words, *where]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
