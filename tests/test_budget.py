"""`budget.txt` holds the line: the most lines of Python that each folder may have."""

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUDGET = ROOT / "budget.txt"


def budget() -> dict[str, int]:
    """The most lines of each folder."""
    rows = [line.split() for line in BUDGET.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return {folder: int(lines) for lines, folder in rows}


def counted() -> Counter[str]:
    """The lines of each folder in the budget, without links and the folders below it that have a line of their own."""
    limits, found = budget(), Counter[str]()
    for top in sorted({folder.partition("/")[0] for folder in limits}):
        for path in (ROOT / top).rglob("*.py"):
            inside = [folder for folder in limits if path.is_relative_to(ROOT / folder)]
            if not any(place.is_symlink() for place in (path, *path.parents)):
                found[max(inside, key=len, default=f"(no folder) {path}")] += path.read_bytes().count(b"\n")
    return found


def test_no_folder_has_more_lines_than_its_budget() -> None:
    limits = budget()
    above = {folder: lines for folder, lines in counted().items() if lines > limits.get(folder, 0)}
    assert not above, "over the budget of budget.txt; save lines, or raise it in the same commit and say why"


def test_the_budget_has_a_line_for_every_folder_with_code() -> None:
    tops = {folder.partition("/")[0] for folder in budget()}
    ignored = {"build", "dist", "demo", "demo-real", "temporalwiki"}
    with_code = {
        path.name
        for path in ROOT.iterdir()
        if path.is_dir() and path.name not in ignored and path.name[0] != "." and any(path.rglob("*.py"))
    }
    assert with_code <= tops
