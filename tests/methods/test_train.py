"""Whole runs of `temporalwiki train`: one month, one month after the other, and what a step computes."""

from __future__ import annotations

import gc
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

from temporalwiki.commands import main
from temporalwiki.methods import checkpoint
from temporalwiki.methods import train as train_module

import tiny_training
from a_dataset import write_dataset

SHORT = ("--batch-size", 4, "--micro-batch-size", 2, "--sequence-length", 32, "--max-steps", 3, "--logging-steps", 1)
FAST = ("--learning-rate", 1e-2)


@pytest.fixture(autouse=True, scope="module")
def quiet() -> Iterator[None]:
    """One thread, so that sums are the same everywhere; no search of all objects for garbage after each run."""
    torch.set_num_threads(1)
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No picture, which takes longer than a run here."""
    monkeypatch.setattr(train_module, "draw", lambda log, title, path: path.touch())


@pytest.fixture
def train(
    models: dict[str, Path], month: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Runs the command and returns its status and what it said on stdout and stderr; later words count."""

    def run(method: str, kind: str, output: Path, *more: Any) -> tuple[int, str, str]:
        small = ("--small", models["t5"]) if method == "modular" else ()
        given = ("--method", method, "--model", models[kind], "--data", month, "--config", "diffset-1112")
        words = ("train", *given, "--past", "unchanged-1112", *SHORT, *FAST, *small, *more, "--output", output)
        status = main([str(word) for word in words])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def read(output: Path) -> Any:
    return json.loads((output / "training.json").read_text("utf-8"))


def weights(output: Path) -> dict[str, torch.Tensor]:
    return {name: tensor for path in sorted(output.glob("*.safetensors")) for name, tensor in load_file(path).items()}


def equal(one: Path, other: Path) -> bool:
    a, b = weights(one), weights(other)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


# A whole run


def test_a_run_learns_what_it_reads(train: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    status, out, err = train("diff", "gpt2", tmp_path / "output", "--max-steps", 40)
    assert status == 0
    record = read(tmp_path / "output")
    assert record["steps"] == 40
    assert [line["step"] for line in record["log"]] == list(range(1, 41))
    # a model that knows nothing gives each of its 300 tokens or so the same
    assert record["loss"]["first"] == pytest.approx(math.log(load_vocabulary(tmp_path / "output")), rel=0.05)
    assert record["loss"]["last"] < record["loss"]["first"] - 1
    assert out.startswith("diffset-1112: loss {first:.4f} to {last:.4f} in 40 steps".format(**record["loss"]))
    assert (tmp_path / "output" / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert err == ""  # a short run prints nothing to a log


@pytest.mark.usefixtures("quick")
def test_a_long_run_shows_its_progress_and_loss_in_a_log(
    train: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("temporalwiki.base.progress.LOG_SECONDS", 0.0)
    _, _, err = train("diff", "gpt2", tmp_path / "output", "--max-steps", 4, "--logging-steps", 3)
    lines = [line for line in err.splitlines() if line.startswith("diff diffset-1112: ")]
    assert [line.split("[")[0].split()[-1] for line in lines] == ["1/4", "2/4", "3/4", "4/4", "4/4"]
    assert ["loss" in line for line in lines] == [False, True, True, True, True]
    assert [line["step"] for line in read(tmp_path / "output")["log"]] == [1, 3, 4]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_log_tells_the_loss_of_the_text_from_the_methods_own_term(
    precision: str, train: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    """At first, LwF's student is its teacher. It stays so at a learning rate near 0, and only the text counts."""
    logs = {}
    for method, weight in (("diff", ()), ("lwf", ("--weight", 9.0))):
        output, same = tmp_path / method, ("--precision", precision, "--learning-rate", 1e-30)
        assert train(method, "llama", output, *same, *weight)[0] == 0
        logs[method] = read(output)["log"]
    assert [line["extra_loss"] for line in logs["lwf"]] == [0.0] * 3
    assert all("extra_loss" not in line for line in logs["diff"])
    assert train("lwf", "llama", tmp_path / "far", "--precision", precision, "--weight", 9.0)[0] == 0
    assert train("diff", "llama", tmp_path / "text", "--precision", precision)[0] == 0
    first, second, *_ = read(tmp_path / "far")["log"]
    assert second["extra_loss"] > 0.001
    # the first step is the same with and without a term that is 0
    text = read(tmp_path / "text")["log"]
    assert first["loss"] == text[0]["loss"]
    assert second["loss"] - second["extra_loss"] == pytest.approx(text[1]["loss"], rel=1e-4)


def load_vocabulary(folder: Path) -> int:
    return len(AutoTokenizer.from_pretrained(folder))


@pytest.mark.usefixtures("quick")
def test_the_same_command_gives_the_same_bits_and_another_seed_others(
    train: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        assert train("k_adapter", "gpt2", tmp_path / name, "--seed", seed)[0] == 0
    assert equal(tmp_path / "a", tmp_path / "b")
    assert not equal(tmp_path / "a", tmp_path / "c")


@pytest.mark.usefixtures("quick")
def test_full_is_plain_training_on_another_config(train: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
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


@pytest.mark.usefixtures("quick")
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
    record = read(tmp_path / "output")
    assert (record["steps"], record["data"]["new"]["chunks"]) == (1, 3)  # the last one short, the rest of 8 empty

    loss, tokens, model = by_hand(models["llama"], text, 32)
    assert record["loss"]["first"] == pytest.approx(float(loss) / tokens, rel=1e-6)
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


def by_hand(folder: Path, text: str, length: int) -> tuple[torch.Tensor, int, Any]:
    """The sum of the losses of one article's tokens in chunks that do not see each other, their number, the model."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    ids = [tokenizer.bos_token_id, *tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id]
    losses = []
    for at in range(0, len(ids) - 1, length):
        inputs, targets = torch.tensor(ids[at : at + length]), torch.tensor(ids[at + 1 : at + length + 1])
        logits = model(input_ids=inputs[None]).logits[0]
        losses.append(F.cross_entropy(logits[: len(targets)], targets, reduction="sum"))
    return torch.stack(losses).sum(), len(ids) - 1, model


@pytest.mark.usefixtures("quick")
def test_a_sequence_is_as_long_as_the_model_reads(
    models: dict[str, Path], tmp_path: Path, articles: Callable[[str], Path]
) -> None:
    """Without --sequence-length: 512 tokens, or the model's context if that is less. A rerun finds the same run."""
    data = articles("Norland is a country. " * 30)
    words = [word for word in command(models["gpt2"], data, tmp_path / "o", "--max-steps", 1) if word != "32"]
    words.remove("--sequence-length")
    for _ in range(2):
        assert main(words) == 0
        assert read(tmp_path / "o")["run"]["sequence_length"] == 256  # of the tiny model
    assert main([*words, "--sequence-length", "256"]) == 0


# Months


PHASES = ("--config", "diffset-1112", "unchanged-1112")
MONTHS = ("diffset-1112", "unchanged-1112")


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("kind", "method"),
    [("gpt2", "lora"), ("llama", "k_adapter"), ("llama", "merge"), ("t5", "modular")],
)
def test_months_are_trained_one_after_the_other(
    kind: str, method: str, train: Callable[..., tuple[int, str, str]], models: dict[str, Path], tmp_path: Path
) -> None:
    status, out, err = train(method, kind, tmp_path / "both", *PHASES)
    assert status == 0, err
    assert [line.split(":")[0] for line in out.splitlines()] == list(MONTHS)
    assert sorted(path.name for path in (tmp_path / "both").iterdir()) == sorted(MONTHS)
    first, second = (tmp_path / "both" / name for name in MONTHS)
    assert [read(folder)["run"]["model"] for folder in (first, second)] == [str(models[kind]), str(first)]
    assert [read(folder)["run"]["config"] for folder in (first, second)] == list(MONTHS)
    assert read(first)["sources"][0]["config"] == "diffset-20211101-20211201"
    assert read(second)["earlier_sources"] == read(first)["sources"]
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


@pytest.mark.usefixtures("quick")
def test_a_month_that_is_done_is_not_done_again(train: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    output = tmp_path / "output"
    assert train("diff", "llama", output, *PHASES)[0] == 0
    before = {path: path.stat().st_mtime_ns for path in output.rglob("*")}
    status, out, _ = train("diff", "llama", output, *PHASES, "wikipedia-12")
    assert status == 0
    assert len(out.splitlines()) == 3
    assert {path: path.stat().st_mtime_ns for path in before if path != output} == {
        path: time for path, time in before.items() if path != output
    }
    assert read(output / "wikipedia-12")["run"]["model"] == str(output / "unchanged-1112")


@pytest.mark.usefixtures("quick")
def test_a_month_whose_predecessor_was_made_anew_is_not_taken_for_done(
    train: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    output = tmp_path / "output"
    assert train("diff", "llama", output, *PHASES, "--learning-rate", 1e-3)[0] == 0
    for path in (output / "diffset-1112").iterdir():
        path.unlink()
    (output / "diffset-1112").rmdir()
    status, _, err = train("diff", "llama", output, *PHASES)
    assert status == 1
    assert "holds another run (learning_rate 0.001 there, 0.01 here)" in err.splitlines()[-1]


# From one method to another


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        ("llama", "k_adapter", "diff"),
        ("t5", "modular", "k_adapter"),
    ],
)
def test_what_cannot_be_merged_is_refused_in_one_line(
    kind: str, first: str, second: str, train: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    assert train(first, kind, tmp_path / "first")[0] == 0
    status, out, err = train(second, kind, tmp_path / "second", "--model", tmp_path / "first")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert f"a checkpoint of {first}" in err
    assert not (tmp_path / "second").exists() or not list((tmp_path / "second").iterdir())


@pytest.mark.usefixtures("quick")
def test_lora_goes_on_from_a_whole_model_and_names_it_as_its_base(
    train: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    assert train("diff", "llama", tmp_path / "first")[0] == 0
    assert train("lora", "llama", tmp_path / "second", "--model", tmp_path / "first")[0] == 0
    config = json.loads((tmp_path / "second" / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == str(tmp_path / "first")


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("method", ["lora", "k_adapter"])
def test_a_base_that_was_named_by_a_relative_path_is_found_from_elsewhere(
    method: str,
    train: Callable[..., tuple[int, str, str]],
    models: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(models["llama"].parent)
    assert train(method, "llama", tmp_path / "output", "--model", "llama")[0] == 0
    monkeypatch.chdir(tmp_path)
    checkpoint.load(str(tmp_path / "output"))


@pytest.mark.usefixtures("quick")
def test_light_tuning_learns_facts(train: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    assert train("light_tuning", "llama", tmp_path / "output", "--config", "lighttuning-1112")[0] == 0
    record = read(tmp_path / "output")
    assert record["data"] == {"config": "lighttuning-1112", "facts": 14}
    assert record["steps"] == 3


def test_a_method_that_adds_more_bytes_than_the_budget_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_training.write(tmp_path, "gpt2")
    tiny_training.train(tmp_path, "lora", tmp_path / "gpt2", tmp_path / "lora", "--max-steps", 1)
    added = 4 * json.loads((tmp_path / "lora" / "training.json").read_text("utf-8"))["parameters"]["trainable"]
    words = ("--max-steps", 1, "--budget", f"bytes={added}")
    tiny_training.train(tmp_path, "lora", tmp_path / "gpt2", tmp_path / "again", *words)
    capsys.readouterr()
    words = ("--max-steps", 1, "--budget", f"bytes={added - 1}")
    with pytest.raises(AssertionError):
        tiny_training.train(tmp_path, "lora", tmp_path / "gpt2", tmp_path / "less", *words)
    assert f"lora: --budget bytes={added - 1}: it adds {added:,} bytes" in capsys.readouterr().err
