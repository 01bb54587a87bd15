"""A pytest plugin: ``--faults=FILE`` writes a table of the tests with a ``fault`` mark.

The "=" is needed: without it, pytest takes an existing file for tests. A marked test counts as one case of its row. A
test that tries more cases records their number: ``record_property("cases", 20)``.
"""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from faults.rows import ROWS

Fault = tuple[str, str, str]  # row, action, outcome

HEAD = """# Faults that we test

`make faults` writes this table from the tests with a `fault` mark. Each line names cases that ran and what happened.
`make faults SEEDS=200` tries more random cases. `security.md` says what else we promise.

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
    """Record modules that pytest could not collect: their marks are missing from the table."""
    if report.outcome != "passed":
        _uncollected.append(report.nodeid)


_uncollected: list[str] = []


@pytest.hookimpl(tryfirst=True)  # before -m and -k deselect tests
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
    """Gathers the outcomes of the marked tests from their reports, which also come from xdist's workers."""

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
    """Return the (row, done, happens) of every line of a table."""
    found = set()
    for line in file.read_text("utf-8").splitlines():
        if line.startswith("| ") and not line.startswith("| fault "):
            cells = [cell.strip().replace("\\|", "|") for cell in line.replace("\\|", "\0").strip("|").split("|")]
            row, done, happens, _ = (cell.replace("\0", "|") for cell in cells)
            found.add((row, done, happens))
    return found
