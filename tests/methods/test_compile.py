"""A compiled model trains as the model itself, with every method that changes the model or the loss."""

from pathlib import Path

import pytest
from torch._dynamo.utils import counters

import tiny_training

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick")]
METHODS = ("diff", "lora", "dora", "o_lora", "k_adapter", "modular", "ewc", "lwf", "osf")


def losses(folder: Path, method: str, output: Path, *more: str) -> list[tuple[float, ...]]:
    """Train, and return the values in the log that are losses."""
    start = folder / ("t5" if method == "modular" else "gpt2")
    tiny_training.train(folder, method, start, output, "--max-steps", 2, "--held-out", 2, *more)
    log = tiny_training.record(output)["log"]
    return [tuple(value for name, value in line.items() if "loss" in name) for line in log]


@pytest.fixture(autouse=True)
def no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trace the model as inductor does, but build no kernels, which takes minutes."""
    monkeypatch.setattr("temporalwiki.methods.trainer.COMPILER", "eager")
    counters.clear()


@pytest.mark.parametrize("method", METHODS)
def test_a_compiled_model_has_the_same_losses(method: str, tmp_path: Path) -> None:
    folder = tiny_training.write(tmp_path, "gpt2", "t5")
    plain = losses(folder, method, tmp_path / "plain")
    assert counters["stats"]["unique_graphs"] == 0
    compiled = losses(folder, method, tmp_path / "compiled", "--compile")
    assert counters["stats"]["unique_graphs"] > 0
    assert len(plain) == len(compiled)
    for one, other in zip(plain, compiled, strict=True):
        assert other == pytest.approx(one, rel=1e-5)


def test_the_next_run_of_a_process_is_not_compiled(tmp_path: Path) -> None:
    folder = tiny_training.write(tmp_path, "gpt2")
    losses(folder, "diff", tmp_path / "compiled", "--compile")
    counters.clear()
    losses(folder, "diff", tmp_path / "plain")
    assert counters["stats"]["unique_graphs"] == 0
