"""Articles that are held out: which ones, that nothing trains on them, and their loss in the log."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from temporalwiki.commands import main
from temporalwiki.methods.trainer import Display

import tiny_models
from a_dataset import write_dataset
from a_stop import Killed

pytestmark = pytest.mark.usefixtures("quick")

NAMES = ("Anna Weber", "Boris Okafor", "Chen Li", "Dora Haugen", "Emil Novak", "Fatima Sahin")
TEXTS = [f"{name} is in Easton, and {name} stays there. " * 4 for name in NAMES]
BY_HASH = sorted(TEXTS, key=lambda text: hashlib.sha256(text.encode()).hexdigest())
LENGTH = 32


@pytest.fixture
def train(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Train on texts, in the order given, and return the manifest."""
    for kind in ("gpt2", "llama", "t5"):
        tiny_models.save(kind, tmp_path / kind)

    def run(name: str, texts: list[str], *more: Any, kind: str = "llama", method: str = "diff") -> dict[str, Any]:
        past = [{"text": "Norland was far away. " * 20}]
        data = tmp_path / f"data {name}"
        if not data.exists():  # files that are written again count as other data
            write_dataset(data, {"new": [{"text": text} for text in texts], "past": past})
        words = ("train", "--method", method, "--model", tmp_path / kind, "--data", data, "--config", "new")
        words += ("--past", "past", "--batch-size", 2, "--sequence-length", LENGTH, "--max-steps", 5)
        words += ("--save-steps", 2, "--logging-steps", 1, "--learning-rate", 1e-2, *more)
        assert main([str(word) for word in (*words, "--output", tmp_path / name)]) == 0
        manifest: dict[str, Any] = json.loads((tmp_path / name / "training.json").read_text("utf-8"))
        return manifest

    return run


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return dict(load_file(folder / "model.safetensors"))


def by_hand(folder: Path, texts: list[str]) -> float:
    """Return the loss per token of articles that follow each other in chunks, and do not see each other."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    total, tokens, at = 0.0, 0, 0
    for text in texts:
        ids = [tokenizer.bos_token_id, *tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id]
        begin = 0
        while begin < len(ids) - 1:
            end = min(begin + LENGTH - at % LENGTH, len(ids))  # a chunk ends here
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([ids[begin:end]])).logits[0]
            targets = torch.tensor(ids[begin + 1 : end + 1])
            total += F.cross_entropy(logits[: len(targets)], targets, reduction="sum").item()
            tokens += len(targets)
            at, begin = at + end - begin, end
        at += len(ids) - begin
    return total / tokens


@pytest.mark.parametrize("count", [1, 3])
def test_the_loss_is_that_of_the_articles_with_the_lowest_hashes(
    count: int, train: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    log = train("out", TEXTS, "--held-out", count)["log"]
    assert [line["step"] for line in log if "held_out_loss" in line] == [2, 4, 5]
    assert log[-1]["held_out_loss"] == pytest.approx(by_hand(tmp_path / "out", BY_HASH[:count]), rel=1e-5)


@pytest.mark.parametrize("kind", ["gpt2", "t5"])  # with dropout
def test_nothing_trains_on_them_and_the_training_does_not_notice(
    kind: str, train: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    rest = [text for text in TEXTS if text not in BY_HASH[:2]]
    one, other = train("held out", TEXTS, "--held-out", 2, kind=kind), train("rest", rest, kind=kind)
    assert [line["loss"] for line in one["log"]] == [line["loss"] for line in other["log"]]
    assert all("held_out_loss" not in line for line in other["log"])
    there, here = weights(tmp_path / "held out"), weights(tmp_path / "rest")
    assert all(torch.equal(there[name], here[name]) for name in here)
    assert one["data"]["new"]["articles"] == 4
    assert one["data"]["held_out"]["articles"] == 2
    assert all(math.isfinite(line["held_out_loss"]) for line in one["log"] if "held_out_loss" in line)


def test_they_are_the_same_for_every_method_order_and_seed(train: Callable[..., dict[str, Any]]) -> None:
    still = ("--held-out", 2, "--learning-rate", 1e-30)
    losses = {
        train(f"{method} {seed}", texts, *still, "--seed", seed, method=method)["log"][-1]["held_out_loss"]
        for method, seed, texts in (
            ("diff", 0, TEXTS),
            ("diff", 1, TEXTS[::-1]),
            ("lwf", 0, TEXTS),
            ("replay", 0, TEXTS),
        )
    }
    assert len(losses) == 1


def test_a_run_that_was_killed_logs_the_same(train: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    end = Display.on_step_end

    def stop(self: Display, args: Any, state: Any, *more: Any, **named: Any) -> None:
        end(self, args, state, *more, **named)
        if state.global_step == 3:
            raise Killed

    whole = train("whole", TEXTS, "--held-out", 2, kind="gpt2")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Display, "on_step_end", stop)
        train("parts", TEXTS, "--held-out", 2, kind="gpt2")
    parts = train("parts", TEXTS, "--held-out", 2, kind="gpt2")
    for name in ("loss", "held_out_loss"):
        assert [line.get(name) for line in parts["log"]] == [line.get(name) for line in whole["log"]]


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "held_out must be at least 1, not 0"), (6, "--held-out 6: new has 6 articles, and some must be trained on")],
)
def test_a_number_that_leaves_nothing_is_wrong_usage(
    count: int, said: str, train: Callable[..., dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError):
        train("out", TEXTS, "--held-out", count)
    assert said in capsys.readouterr().err
