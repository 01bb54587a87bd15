"""A small experiment: two months of a few articles and facts, and a tiny model."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import tiny_models
from a_dataset import write_dataset
from tiny_probes import CHANGED, UNCHANGED, rows

Write = Callable[..., Path]

MONTHS = ("0910", "1011")
TEXTS = {
    "0910": "Anna Weber is head of government of Norland. She was born in Easton. ",
    "1011": "Carl Ito is head of government of Norland. He lives in St. Louis. ",
}


@pytest.fixture(scope="session")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``model`` and ``data``: text of two months, facts of two months, and snapshots."""
    folder = tmp_path_factory.mktemp("there")
    tiny_models.save("gpt2", folder / "model")
    configs: dict[str, Any] = {}
    for month, text in TEXTS.items():
        articles = [{"id": i, "title": f"Page {i}", "text": text * (9 + i)} for i in range(6)]
        configs |= {f"{kind}-{month}": {"train": articles} for kind in ("diffset", "unchanged")}
        configs[f"wikipedia-{month[2:]}"] = {"train": articles}
        configs[f"probes-{month}"] = {"unchanged": rows(UNCHANGED), "changed": rows(CHANGED)}
    write_dataset(folder / "data", configs)
    return folder


@pytest.fixture()
def wanted(there: Path, tmp_path: Path) -> dict[str, Any]:
    """A recipe: Initial and two methods, two months, one task."""
    return {
        "model": str(there / "model"),
        "batch_size": 2,
        "micro_batch_size": 2,
        "sequence_length": 16,
        "learning_rate": 0.01,
        "max_steps": 2,
        "precision": "fp32",
        "experiment": {
            "data": str(there / "data"),
            "months": list(MONTHS),
            "methods": {"initial": None, "diff": None, "lora": {"learning_rate": 0.1}},
            "tasks": {"twiki_probes": {"answers": False, "light_tuning": False}},
            "output": str(tmp_path / "out"),
        },
    }


@pytest.fixture()
def write(wanted: dict[str, Any], tmp_path: Path) -> Write:
    """Write the recipe with changes: ``write(**{"experiment/limit": 3})``; None removes a key."""

    def written(name: str = "recipe", **changes: Any) -> Path:
        recipe = copy.deepcopy(wanted)
        for key, value in changes.items():
            *folders, last = key.split("/")
            place = recipe
            for folder in folders:
                place = place[folder]
            place[last] = value
            if value is None:
                del place[last]
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(recipe, allow_unicode=True, sort_keys=False), "utf-8")
        return path

    return written
