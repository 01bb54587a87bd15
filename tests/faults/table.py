"""A pytest plugin: ``--faults=FILE`` writes what the tests marked with ``fault`` show, as a table.

With "=": a file's name that stands apart is, where the file is there, taken for tests, and this option is not known.
A marked test is a case of its row; one that tries several cases says how many: ``record_property("cases", 20)``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from faults.rows import ROWS

Fault = tuple[str, str, str]  # row, what is done, what happens

HEAD = """# What the world does to this program

Written by `make faults` from the tests that carry a `fault` mark, and from nothing else: a line is here because these
cases were tried and ended as it says. `make faults SEEDS=200` tries more of what is tried at random. What is
promised beside: `security.md`.

| fault | what is done | what happens | cases |
|---|---|---|---|
"""
MARKED = pytest.StashKey[set[Fault]]()
WHOLE = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults", type=Path, metavar="FILE", help="write the table of faults")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "fault(row, done, happens): a case of the table of faults (docs/faults.md)")
    config.stash[MARKED] = set()
    config.stash[WHOLE] = config.args == config.getini("testpaths")
    if config.option.faults and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Table(config.option.faults))


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """What needs a package that is not here is not collected, and neither are its marks."""
    if report.outcome != "passed":
        _uncollected.append(report.nodeid)


_uncollected: list[str] = []


@pytest.hookimpl(tryfirst=True)  # before -m and -k take tests away
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[WHOLE] = config.stash[WHOLE] and not _uncollected
    for item in items:
        for mark in item.iter_markers("fault"):
            row, done, happens = mark.args
            if row not in ROWS:
                raise pytest.UsageError(f"{item.nodeid}: no row {row!r} in tests/faults/rows.py")
            config.stash[MARKED].add((row, done, happens))
            item.user_properties.append(("fault", [row, done, happens]))
    seen: dict[tuple[str, str], str] = {}
    for row, done, happens in sorted(config.stash[MARKED]):
        if seen.setdefault((row, done), happens) != happens:
            raise pytest.UsageError(f"two things happen for {row!r}, {done!r}: {seen[row, done]!r} and {happens!r}")


class Table:
    """What came of the marked tests, gathered from their reports, which come from the workers of xdist, too."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.cases: dict[Fault, int] = defaultdict(int)
        self.failed: dict[Fault, list[str]] = defaultdict(list)
        self.skipped: dict[Fault, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties: list[tuple[str, Any]] = report.user_properties
        cases = next((number for name, number in properties if name == "cases"), 1)
        for fault in {tuple(value) for name, value in properties if name == "fault"}:
            row, done, happens = fault
            if report.failed:
                self.failed[row, done, happens].append(report.nodeid)
            elif report.skipped:
                self.skipped[row, done, happens] = report.nodeid
            elif report.when == "call":
                self.cases[row, done, happens] += cases

    def pytest_sessionfinish(self) -> None:
        self.file.write_text(HEAD + "".join(self._lines()), "utf-8")

    def _lines(self) -> Iterable[str]:
        known = {*self.cases, *self.failed, *self.skipped}
        for fault in sorted(known, key=lambda fault: (ROWS.index(fault[0]), fault)):
            if fault in self.failed:
                came = "**failed**: " + ", ".join(sorted(set(self.failed[fault])))
            elif fault in self.cases:
                came = str(self.cases[fault])
            else:
                came = "not run here"
            yield "| " + " | ".join(_cell(text) for text in (*fault, came)) + " |\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def read_table(file: Path) -> set[Fault]:
    """The (row, done, happens) that a table names."""
    found = set()
    for line in file.read_text("utf-8").splitlines():
        if line.startswith("| ") and not line.startswith("| fault "):
            cells = [cell.strip().replace("\\|", "|") for cell in line.replace("\\|", "\0").strip("|").split("|")]
            row, done, happens, _ = (cell.replace("\0", "|") for cell in cells)
            found.add((row, done, happens))
    return found
