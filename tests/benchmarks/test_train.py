"""The benchmark of training: it runs without a GPU, and leaves out measurements that need one."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import tiny_models

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_each_option_for_a_gpu_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("temporalwiki.methods.trainer.COMPILER", "eager")  # building kernels takes minutes
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    model = tiny_models.save("gpt2", tmp_path / "model")
    sizes = ("--batch-size", "4", "--micro-batch-size", "2", "--sequence-length", "32", "--steps", "5")
    where = ("--model", str(model), "--figures", str(tmp_path / "figures"))
    monkeypatch.setattr(sys, "argv", ["train.py", "speed", *where, *sizes])
    runpy.run_path(str(BENCHMARKS / "train.py"), run_name="__main__")
    table = json.loads((tmp_path / "figures" / "train_speed.json").read_text("utf-8"))
    assert table["columns"] == ["options", "step s", "tokens/s", "TFLOP/s", "MFU %", "peak GB"]
    assert [row[0] for row in table["rows"]] == ["none", "--fused-loss", "--compile"]
    assert all(step > 0 and tokens > 0 and mfu is None for _, step, tokens, _, mfu, _ in table["rows"])
    assert "--attention flash_attention_2 is left out: --attention flash_attention_2: needs a GPU." in table["note"]
