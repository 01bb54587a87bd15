"""The bench of commands, which several rows of the table share."""

from collections.abc import Iterator

import pytest

from faults.commands import Bench, inputs
from faults.struck import Struck

MODULES = ("builders.build", "builders.fetch", "builders.ckl.live", "model_cards.dataset", "model_cards.ckl_dataset")
MODULES += ("methods.train", "eval_harness.runner", "eval_harness.experiment", "eval_harness.leaderboard")
MODULES += ("api.build", "api.fetch", "api.ckl", "api.import")


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with (
        inputs(tmp_path_factory.mktemp("there")) as there,
        Struck([*(f"temporalwiki.{name}" for name in MODULES), "trl"]) as struck,
    ):
        yield Bench(struck, there, tmp_path_factory.mktemp("bench"))
