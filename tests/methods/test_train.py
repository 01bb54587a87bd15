"""Whole runs of `temporalwiki train`: one month, one month after the other, and what a step computes."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, LlamaForCausalLM

from temporalwiki.commands import main
from temporalwiki.methods import checkpoint
from temporalwiki.methods import train as train_module
from temporalwiki.methods.loss_curve import draw

import tiny_training
from a_dataset import write_dataset
from tiny_training import by_hand, equal, record, weights

SHORT = ("--batch-size", 4, "--micro-batch-size", 2, "--sequence-length", 32, "--max-steps", 3, "--logging-steps", 1)
FAST = ("--learning-rate", 1e-2)
Run = Callable[..., tuple[int, str, str]]


pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def train(models: dict[str, Path], month: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command and returns its status and what it said on stdout and stderr; later words count."""

    def run(method: str, kind: str, output: Path, *more: Any) -> tuple[int, str, str]:
        small = ("--small", models["t5"]) if method == "modular" else ()
        given = ("--method", method, "--model", models[kind], "--data", month, "--config", "diffset-1112")
        words = ("train", *given, "--past", "unchanged-1112", *SHORT, *FAST, *small, *more, "--output", output)
        status = main([str(word) for word in words])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


# A whole run


def test_a_run_learns_what_it_reads(train: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_module, "draw", draw)
    status, out, err = train("diff", "gpt2", tmp_path / "output", "--max-steps", 40)
    assert status == 0
    found = record(tmp_path / "output")
    assert found["steps"] == 40
    assert [line["step"] for line in found["log"]] == list(range(1, 41))
    # a model that knows nothing gives each of its 300 tokens or so the same
    assert found["loss"]["first"] == pytest.approx(
        math.log(len(AutoTokenizer.from_pretrained(tmp_path / "output"))), rel=0.05
    )
    assert found["loss"]["last"] < found["loss"]["first"] - 1
    assert out.startswith("diffset-1112: loss {first:.4f} to {last:.4f} in 40 steps".format(**found["loss"]))
    assert (tmp_path / "output" / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert err == ""  # a short run prints nothing to a log


def test_a_long_run_shows_its_progress_and_loss_in_a_log(
    train: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("temporalwiki.base.progress.LOG_SECONDS", 0.0)
    _, _, err = train("diff", "gpt2", tmp_path / "output", "--max-steps", 4, "--logging-steps", 3)
    lines = [line for line in err.splitlines() if line.startswith("diff diffset-1112: ")]
    assert [line.split("[")[0].split()[-1] for line in lines] == ["1/4", "2/4", "3/4", "4/4", "4/4"]
    assert ["loss" in line for line in lines] == [False, True, True, True, True]
    assert [line["step"] for line in record(tmp_path / "output")["log"]] == [1, 3, 4]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_log_tells_the_loss_of_the_text_from_the_methods_own_term(
    precision: str, train: Run, tmp_path: Path
) -> None:
    """At first, LwF's student is its teacher. It stays so at a learning rate near 0, and only the text counts."""
    logs = {}
    for method, weight in (("diff", ()), ("lwf", ("--weight", 9.0))):
        output, same = tmp_path / method, ("--precision", precision, "--learning-rate", 1e-30)
        assert train(method, "llama", output, *same, *weight)[0] == 0
        logs[method] = record(output)["log"]
    assert [line["extra_loss"] for line in logs["lwf"]] == [0.0] * 3
    assert all("extra_loss" not in line for line in logs["diff"])
    assert train("lwf", "llama", tmp_path / "far", "--precision", precision, "--weight", 9.0)[0] == 0
    assert train("diff", "llama", tmp_path / "text", "--precision", precision)[0] == 0
    first, second, *_ = record(tmp_path / "far")["log"]
    assert second["extra_loss"] > 0.001
    # the first step is the same with and without a term that is 0
    text = record(tmp_path / "text")["log"]
    assert first["loss"] == text[0]["loss"]
    assert second["loss"] - second["extra_loss"] == pytest.approx(text[1]["loss"], rel=1e-4)


def test_the_same_command_gives_the_same_bits_and_another_seed_others(train: Run, tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        assert train("k_adapter", "gpt2", tmp_path / name, "--seed", seed)[0] == 0
    assert equal(tmp_path / "a", tmp_path / "b")
    assert not equal(tmp_path / "a", tmp_path / "c")


def test_full_is_plain_training_on_another_config(train: Run, tmp_path: Path) -> None:
    for method in ("full", "diff"):
        assert train(method, "llama", tmp_path / method, "--config", "wikipedia-12")[0] == 0
    assert equal(tmp_path / "full", tmp_path / "diff")


# A step computes the same as by hand


@pytest.fixture
def articles(tmp_path: Path) -> Callable[..., Path]:
    """Writes a dataset folder with one config, ``texts``."""

    def write(*texts: str) -> Path:
        return write_dataset(tmp_path / "data", {"texts": [{"text": text} for text in texts]})

    return write


PLAIN = ("--config", "texts", "--schedule", "constant", "--warmup-ratio", 0, "--epochs", 1, "--max-grad-norm", 0)


@pytest.mark.parametrize("scales", [True, False])
def test_a_step_is_adam_on_the_mean_over_its_tokens(
    models: dict[str, Path],
    articles: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    scales: bool,
) -> None:
    # some models compute their own loss (Gemma 3n and 4: False); we do not use it
    monkeypatch.setattr(LlamaForCausalLM, "accepts_loss_kwargs", scales, raising=False)
    text = "The capital of Norland is Easton. Anna Weber was born in 1961 and lives there. " * 4
    data = articles(text)
    assert main(command(models["llama"], data, tmp_path / "output", "--batch-size", 8, "--micro-batch-size", 2)) == 0
    found = record(tmp_path / "output")
    assert (found["steps"], found["data"]["new"]["chunks"]) == (1, 3)  # the last one short, the rest of 8 empty

    loss, tokens, model = by_hand(models["llama"], [text], 32)
    assert found["loss"]["first"] == pytest.approx(float(loss) / tokens, rel=1e-6)
    (loss / tokens).backward()
    decayed = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    torch.optim.AdamW(groups, lr=1e-2, eps=1e-8).step()
    got = weights(tmp_path / "output")
    for name, parameter in model.named_parameters():
        # where a gradient is nearly nothing, its sign is rounding
        clear = parameter.grad.abs() > 1e-7
        torch.testing.assert_close(got[name][clear], parameter.detach()[clear], rtol=1e-4, atol=1e-5, msg=name)


def command(model: Path, data: Path, output: Path, *more: Any) -> list[str]:
    given = ("--method", "diff", "--model", model, "--data", data, *PLAIN, "--weight-decay", 0.1)
    words = ("train", *given, "--sequence-length", 32, *FAST, *more, "--output", output)
    return [str(word) for word in words]


def test_a_sequence_is_as_long_as_the_model_reads(
    models: dict[str, Path], tmp_path: Path, articles: Callable[[str], Path]
) -> None:
    """Without --sequence-length: 512 tokens, or the model's context if that is less. A rerun finds the same run."""
    data = articles("Norland is a country. " * 30)
    words = [word for word in command(models["gpt2"], data, tmp_path / "o", "--max-steps", 1) if word != "32"]
    words.remove("--sequence-length")
    for _ in range(2):
        assert main(words) == 0
        assert record(tmp_path / "o")["run"]["sequence_length"] == 256  # of the tiny model
    assert main([*words, "--sequence-length", "256"]) == 0


# Months


MONTHS = ("diffset-1112", "unchanged-1112")
PHASES = ("--config", *MONTHS)


@pytest.mark.parametrize(
    ("kind", "method"), [("gpt2", "lora"), ("llama", "k_adapter"), ("llama", "merge"), ("t5", "modular")]
)
def test_months_are_trained_one_after_the_other(
    kind: str, method: str, train: Run, models: dict[str, Path], tmp_path: Path
) -> None:
    status, out, err = train(method, kind, tmp_path / "both", *PHASES)
    assert status == 0, err
    assert [line.split(":")[0] for line in out.splitlines()] == list(MONTHS)
    assert sorted(path.name for path in (tmp_path / "both").iterdir()) == sorted(MONTHS)
    first, second = (tmp_path / "both" / name for name in MONTHS)
    assert [record(folder)["run"]["model"] for folder in (first, second)] == [str(models[kind]), str(first)]
    assert [record(folder)["run"]["config"] for folder in (first, second)] == list(MONTHS)
    assert record(first)["sources"][0]["config"] == "diffset-20211101-20211201"
    assert record(second)["earlier_sources"] == record(first)["sources"]
    # the same, month by month
    assert train(method, kind, tmp_path / "one")[0] == 0
    assert equal(tmp_path / "one", first)
    words = ("--model", tmp_path / "one", "--config", "unchanged-1112")
    assert train(method, kind, tmp_path / "two", *words)[0] == 0
    assert equal(tmp_path / "two", second)
    assert not equal(first, second)
    # adapters and new layers always belong to the first model
    for path in (*tmp_path.glob("both/*/adapter_config.json"), *tmp_path.glob("both/*/expansion.json")):
        said = json.loads(path.read_text())
        assert said.get("base_model", said.get("base_model_name_or_path")) == str(models[kind])


def test_a_month_that_is_done_is_not_done_again(train: Run, tmp_path: Path) -> None:
    output = tmp_path / "output"
    assert train("diff", "llama", output, *PHASES)[0] == 0
    before = {path: path.stat().st_mtime_ns for path in output.rglob("*")}
    status, out, _ = train("diff", "llama", output, *PHASES, "wikipedia-12")
    assert status == 0
    assert len(out.splitlines()) == 3
    assert {path: path.stat().st_mtime_ns for path in before if path != output} == {
        path: time for path, time in before.items() if path != output
    }
    assert record(output / "wikipedia-12")["run"]["model"] == str(output / "unchanged-1112")


def test_a_month_whose_predecessor_was_made_anew_is_not_taken_for_done(train: Run, tmp_path: Path) -> None:
    output = tmp_path / "output"
    assert train("diff", "llama", output, *PHASES, "--learning-rate", 1e-3)[0] == 0
    shutil.rmtree(output / "diffset-1112")
    status, _, err = train("diff", "llama", output, *PHASES)
    assert status == 1
    assert "holds another run (learning_rate 0.001 there, 0.01 here)" in err.splitlines()[-1]


# From one method to another


@pytest.mark.parametrize("method", ["lora", "k_adapter"])
def test_a_base_that_was_named_by_a_relative_path_is_found_from_elsewhere(
    method: str,
    train: Run,
    models: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(models["llama"].parent)
    assert train(method, "llama", tmp_path / "output", "--model", "llama")[0] == 0
    monkeypatch.chdir(tmp_path)
    checkpoint.load(str(tmp_path / "output"))


def test_light_tuning_learns_facts(train: Run, tmp_path: Path) -> None:
    assert train("light_tuning", "llama", tmp_path / "output", "--config", "lighttuning-1112")[0] == 0
    found = record(tmp_path / "output")
    assert found["data"] == {"config": "lighttuning-1112", "facts": 14}
    assert found["steps"] == 3


def test_a_method_that_adds_more_bytes_than_the_budget_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = tiny_training.write(tmp_path, "gpt2") / "gpt2"

    def run(name: str, *more: str) -> None:
        tiny_training.train(tmp_path, "lora", start, tmp_path / name, "--max-steps", 1, *more)

    run("lora")
    added = 4 * record(tmp_path / "lora")["parameters"]["trainable"]
    run("again", "--budget", f"bytes={added}")
    with pytest.raises(AssertionError):
        run("less", "--budget", f"bytes={added - 1}")
    assert f"lora: --budget bytes={added - 1}: it adds {added:,} bytes" in capsys.readouterr().err
