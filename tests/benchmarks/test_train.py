"""The benchmark of training: it runs without a GPU, and leaves out measurements that need one."""

import runpy
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import tiny_models

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_each_option_for_a_gpu_is_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("temporalwiki.methods.trainer.COMPILER", "eager")  # building kernels takes minutes
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    model = tiny_models.save("gpt2", tmp_path / "model")
    sizes = ("--batch-size", "4", "--micro-batch-size", "2", "--sequence-length", "32", "--steps", "5")
    monkeypatch.setattr(sys, "argv", ["train.py", "speed", "--model", str(model), *sizes])
    runpy.run_path(str(BENCHMARKS / "train.py"), run_name="__main__")
    shown = capsys.readouterr().out
    lines = [line.strip("| ").split(" | ") for line in shown.splitlines() if line.startswith("| ")]
    assert lines[0] == ["options", "step s", "tokens/s", "TFLOP/s", "MFU %", "peak GB"]
    assert [line[0] for line in lines[1:]] == ["none", "--fused-loss", "--compile"]
    assert all(float(line[1]) > 0 and float(line[2].replace(",", "")) > 0 for line in lines[1:])
    assert "--attention flash_attention_2 is left out: --attention flash_attention_2: needs a GPU." in shown
