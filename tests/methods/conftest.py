"""Fixtures for tests of training: tiny models, and a month of a generated world."""

from pathlib import Path

import pytest

from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.world import World, write_world
from temporalwiki.model_cards.folder_card import folder_card

import tiny_models


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folder of a tiny model, by its kind."""
    folder = tmp_path_factory.mktemp("models")
    return {kind: tiny_models.save(kind, folder / kind) for kind in tiny_models.KINDS}


@pytest.fixture(scope="session")
def month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a dataset folder with the interval diffset-1112 and both snapshots."""
    folder = tmp_path_factory.mktemp("month")
    write_world(folder / "dumps", World(people=40))
    interval = Interval("enwiki", "20211101", "20211201")
    options = BuildOptions(include=("wikipedia",), unchanged_fraction=1.0)
    out = folder / "temporalwiki"
    build(find_sources(folder / "dumps", interval), out, folder / "work", options, Machine(jobs=1), folder_card)
    return out
