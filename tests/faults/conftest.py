"""Benches of commands, which several rows of the table share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.commands import DATA, MODELS, Bench, inputs
from faults.struck import Struck


@pytest.fixture(scope="session")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of all inputs."""
    with inputs(tmp_path_factory.mktemp("there")) as folder:
        yield folder


@pytest.fixture(scope="session")
def of_data(there: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A bench of the commands that make data."""
    modules = ["builders.build", "builders.fetch", "builders.ckl.live", "model_cards.dataset"]
    modules += ["model_cards.ckl_dataset", *(f"api.{name}" for name in ("build", "fetch", "ckl", "import"))]
    with Struck([f"temporalwiki.{name}" for name in modules]) as struck:
        yield Bench(struck, DATA, there, tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def of_models(there: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A bench of the commands that train and score models."""
    modules = ["methods.train", "eval_harness.runner", "eval_harness.experiment", "eval_harness.leaderboard"]
    with Struck([*(f"temporalwiki.{name}" for name in modules), "trl"]) as struck:
        yield Bench(struck, MODELS, there, tmp_path_factory.mktemp("models"))
