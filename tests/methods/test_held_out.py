"""Articles that are held out: which ones, that nothing trains on them, and their loss in the log."""

import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from temporalwiki.commands import main

import tiny_models
from a_dataset import write_dataset
from tiny_training import by_hand, killed_after, record, weights

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
        return dict(record(tmp_path / name))

    return run


@pytest.mark.parametrize("count", [1, 3])
def test_the_loss_is_that_of_the_articles_with_the_lowest_hashes(
    count: int, train: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    log = train("out", TEXTS, "--held-out", count)["log"]
    assert [line["step"] for line in log if "held_out_loss" in line] == [2, 4, 5]
    loss, tokens, _ = by_hand(tmp_path / "out", BY_HASH[:count], LENGTH)
    assert log[-1]["held_out_loss"] == pytest.approx(loss.item() / tokens, rel=1e-5)


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
    whole = train("whole", TEXTS, "--held-out", 2, kind="gpt2")
    with killed_after(3):
        train("parts", TEXTS, "--held-out", 2, kind="gpt2")
    parts = train("parts", TEXTS, "--held-out", 2, kind="gpt2")
    for name in ("loss", "held_out_loss"):
        assert [line.get(name) for line in parts["log"]] == [line.get(name) for line in whole["log"]]
