"""docs/data.md names every config, split and column."""

import re
from pathlib import Path

from temporalwiki.builders.configs import SCHEMAS, SPLITS

PAGE = (Path(__file__).parents[2] / "docs" / "data.md").read_text("utf-8")


def rows(section: str) -> list[list[str]]:
    """The names in the first cells of the tables of a section."""
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return [re.findall(r"`([\w*-]+)`", line.split(" | ")[0]) for line in text.splitlines() if line.startswith("| `")]


def test_every_config_has_its_splits() -> None:
    lines = [line.split(" | ") for line in PAGE.splitlines() if re.match(r"\| `\w+-\*`", line)]
    found = {line[0].strip("| `-*"): tuple(re.findall(r"`(\w+)`", line[1])) for line in lines}
    assert found == SPLITS


def test_every_column_has_its_row() -> None:
    assert {name for row in rows("Texts") for name in row} == set(SCHEMAS["diffset"].names)
    assert {name for row in rows("Facts") for name in row} == set(SCHEMAS["facts"].names)
    assert set(SCHEMAS["wikipedia"].names) < set(SCHEMAS["diffset"].names)
