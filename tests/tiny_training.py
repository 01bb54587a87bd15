"""Train any method in a second or two: tiny models, a small dataset, and the command."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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

_NAMES = ("Anna Weber", "Boris Okafor", "Chen Li", "Dora Haugen", "Emil Novak", "Fatima Sahin")
_SHORT = ("--batch-size", 2, "--micro-batch-size", 2, "--sequence-length", 32, "--logging-steps", 1)
_CONFIGS = {"light_tuning": "facts", "study": "diffset-1112"}
_OWN = {"ewc": ("--fisher-examples", 2), "recadam": ("--t0", 1)}


def write(folder: Path, *kinds: str) -> Path:
    """Write a model of each kind, and a dataset ``data`` with the configs new, past and facts, and a month."""
    for kind in kinds:
        tiny_models.save(kind, folder / kind)
    rows: dict[str, list[dict[str, Any]]] = {
        "new": [{"title": name, "text": f"{name} is in Easton. " * 20} for name in _NAMES],
        "past": [{"title": name, "text": f"{name} was in Norland. " * 20} for name in _NAMES],
        "facts": [{"subject": name, "relation": "lives in", "object": "Easton"} for name in _NAMES],
    }
    stated = [{**fact, "relation_id": "P551", "page_id": 0, "evidence": _NAMES[0]} for fact in rows["facts"]]
    rows["diffset-1112"] = [{"id": 0, **rows["new"][0]}]
    write_dataset(folder / "data", {**rows, "facts-1112": {"changed": stated}})
    return folder


def train(folder: Path, method: str, start: Path | str, output: Path, *more: Any) -> None:
    """Train a method from the checkpoint ``start`` on the data in ``folder``; ``more`` are words of the command."""
    given = ("--method", method, "--model", start, "--data", folder / "data", "--past", "past", *_SHORT)
    given += ("--config", _CONFIGS.get(method, "new"), "--learning-rate", 1e-2)
    own = ("--small", folder / "t5") if method == "modular" else _OWN.get(method, ())
    assert main([str(word) for word in ("train", *given, *own, *more, "--output", output)]) == 0


def record(output: Path) -> Any:
    """Return the ``training.json`` of a checkpoint."""
    return json.loads((output / "training.json").read_text("utf-8"))


def losses(output: Path, name: str = "loss") -> list[float]:
    return [line[name] for line in record(output)["log"]]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """Return the tensors in a checkpoint."""
    return {name: tensor for path in sorted(folder.glob("*.safetensors")) for name, tensor in load_file(path).items()}


def equal(one: Path, other: Path) -> bool:
    """Return whether two checkpoints have the same tensors, to the bit."""
    a, b = weights(one), weights(other)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def by_hand(folder: Path, texts: Sequence[str], length: int) -> tuple[torch.Tensor, int, Any]:
    """Return the sum of the losses of articles in chunks that do not see each other, their tokens, and the model."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    found, tokens, at = [], 0, 0
    for text in texts:
        ids = [tokenizer.bos_token_id, *tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id]
        begin = 0
        while begin < len(ids) - 1:
            end = min(begin + length - at % length, len(ids))  # a chunk ends here
            logits = model(input_ids=torch.tensor([ids[begin:end]])).logits[0]
            targets = torch.tensor(ids[begin + 1 : end + 1])
            found.append(F.cross_entropy(logits[: len(targets)], targets, reduction="sum"))
            tokens += len(targets)
            at, begin = at + end - begin, end
        at += len(ids) - begin
    return torch.stack(found).sum(), tokens, model


@contextmanager
def killed_after(steps: int) -> Iterator[None]:
    """Break off after this number of steps, counted over all phases."""
    done, end = [], Display.on_step_end

    def stop(self: Any, *args: Any, **kwargs: Any) -> None:
        end(self, *args, **kwargs)
        done.append(1)
        if len(done) == steps:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Display, "on_step_end", stop)
        with pytest.raises(Killed):
            yield
