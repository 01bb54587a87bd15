"""Which commit stands for a date, and what is read of it. Each repository is made here."""

import re
import subprocess
from pathlib import Path

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.builders.git_history import NoCommit, commits_until, files, newest_month

from a_clone import write_clone

ALL = re.compile(r"[a-z]+")


def state(clone: Path, date: str) -> str:
    """Return the content of file "a" at a date."""
    [(_, content)] = files(clone, next(commits_until(clone, date)).id, re.compile("a"), 99, [])
    return content.decode()


# moments of commits, oldest first, whose file says their number -> date -> the number that it sees
CLOCKS = {
    "one a day": (
        ["2026-01-01T10:00:00+00:00", "2026-01-02T10:00:00+00:00", "2026-01-03T10:00:00+00:00"],
        {"20260101": "0", "20260102": "1", "20260131": "2"},
    ),
    "the last of a day, in UTC": (
        ["2026-01-01T10:00:00+00:00", "2026-01-02T01:59:00+02:00", "2026-01-02T02:01:00+02:00"],
        {"20260101": "1", "20260102": "2"},
    ),
    "a clock that is years behind does not bring the future": (
        ["2026-01-01T10:00:00+00:00", "2026-01-20T10:00:00+00:00", "2020-01-01T10:00:00+00:00"],
        {"20260101": "0", "20260110": "0", "20260120": "2"},
    ),
    "a clock that is ahead holds later commits back": (
        ["2026-01-01T10:00:00+00:00", "2030-01-01T10:00:00+00:00", "2026-01-20T10:00:00+00:00"],
        {"20260131": "0", "20300101": "2"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CLOCKS)
def test_the_newest_commit_of_a_day(case: str, tmp_path: Path) -> None:
    moments, seen = CLOCKS[case]
    write_clone(tmp_path / "clone", [(moment, {"a": str(number)}) for number, moment in enumerate(moments)])
    assert {date: state(tmp_path / "clone", date) for date in seen} == seen


def test_the_side_of_a_merge_is_no_state_of_the_main_line(tmp_path: Path) -> None:
    main = [(f"2026-01-{day:02}T10:00:00+00:00", {"a": f"main {day}"}) for day in (1, 20)]
    write_clone(tmp_path / "clone", main, side=[("2026-01-10T10:00:00+00:00", {"a": "side"})])
    assert state(tmp_path / "clone", "20260115") == "main 1"
    assert state(tmp_path / "clone", "20260120") == "main 20"


def test_a_shallow_clone_and_an_early_date_give_one_line(tmp_path: Path) -> None:
    write_clone(tmp_path / "whole", [(f"2026-0{month}-05T10:00:00+00:00", {"a": str(month)}) for month in (1, 2, 3)])
    words = ["--bare", "--depth", "1", f"file://{tmp_path}/whole", tmp_path / "clone"]
    subprocess.run(["git", "clone", "-q", *words], check=True)
    assert state(tmp_path / "clone", "20260331") == "3"
    with pytest.raises(InputError, match=r"a shallow clone, whose first commit is of 2026-03-05.*--unshallow"):
        next(commits_until(tmp_path / "clone", "20260228"))
    with pytest.raises(NoCommit, match="first commit is of 2026-01-05; name a later date than 20251231"):
        next(commits_until(tmp_path / "whole", "20251231"))
    with pytest.raises(InputError, match=r"git log: .*not a git repository"):
        next(commits_until(tmp_path, "20260101"))


def test_links_and_large_files_are_named(tmp_path: Path) -> None:
    found = {"b": "text", "link:c": "../../etc/passwd", "d": "x" * 100, "e/f": "below a folder"}
    write_clone(tmp_path / "clone", [("2026-01-01T10:00:00+00:00", found)])
    problems: list[str] = []
    read = dict(files(tmp_path / "clone", "HEAD", ALL, 99, problems))
    assert read == {"b": b"text"}
    assert [problem.partition(":")[0] for problem in problems] == ["c", "d"]


@pytest.mark.parametrize(
    ("newest", "month"),
    [
        ("2026-08-22", ("20260701", "20260801")),
        ("2026-08-02", ("20260701", "20260801")),
        ("2026-08-01", ("20260601", "20260701")),  # a later commit of the same day may change that state
        ("2026-01-31", ("20251201", "20260101")),
    ],
)
def test_the_newest_complete_month(newest: str, month: tuple[str, str], tmp_path: Path) -> None:
    write_clone(tmp_path / "clone", [(f"{newest}T23:00:00+00:00", {"a": "1"})])
    assert newest_month(tmp_path / "clone") == month
