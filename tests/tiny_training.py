"""Train any method in a second or two: tiny models, a small dataset, and the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from temporalwiki.commands import main

import tiny_models
from a_dataset import write_dataset

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
