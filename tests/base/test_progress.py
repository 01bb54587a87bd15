"""Progress is a bar on a terminal or a few lines in a log, never both."""

import io
import sys
import threading

import pytest

from temporalwiki.base import progress
from temporalwiki.base.progress import Progress
from temporalwiki.base.terminal import say


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Replace standard error within a test; pytest would put its own back after a fixture."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the clock shows; a test sets them."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])  # type: ignore[attr-defined]
    return now


def test_a_terminal_shows_a_bar_and_no_line(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    terminal = a_terminal(monkeypatch)
    with Progress("read", 4, "page", done=1) as shown:
        clock[0] = 1000
        shown.update(2)
        shown.skip(1)
        shown.note("2\nfiles")
    text = terminal.getvalue()
    assert text.startswith("\rread:  25%|")
    assert "| 4/4 [" in text
    assert r"2\nfiles]" in text
    assert text.count("\n") == 1  # the bar stays when it ends
    assert shown.done == 4


def test_a_notebook_shows_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = io.StringIO()  # no terminal, as the stderr of a kernel
    monkeypatch.setattr(sys, "stderr", notebook)
    monkeypatch.setattr("builtins.__IPYTHON__", True, raising=False)
    with Progress("read", 4, "page") as shown:
        shown.update(4)
    assert "read: 100%|" in notebook.getvalue()


def test_a_bar_below_another_one_vanishes(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    with Progress("outer", 1), Progress("inner", 1) as inner:
        inner.update()
    assert terminal.getvalue().count("inner") > 0
    assert "inner" not in terminal.getvalue().rpartition("\r")[2]


def test_a_log_gets_a_line_a_minute_and_one_at_the_end(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("fetch", 4000, "B", done=1000) as shown:
        for clock[0] in (30, 61, 90, 100):
            shown.update(500)
        shown.note("2 files")
    assert capsys.readouterr().err.splitlines() == [
        "fetch:  50% 2.00k/4.00k [01:01<02:02, 16.4B/s]",
        "fetch:  75% 3.00k/4.00k [01:40<00:50, 20.0B/s, 2 files]",
    ]


@pytest.mark.parametrize(("seconds", "lines"), [(29, []), (33, ["read: 3page [00:33, 11.00s/page]"])])
def test_short_work_leaves_no_line_in_a_log(
    clock: list[float], capsys: pytest.CaptureFixture[str], seconds: float, lines: list[str]
) -> None:
    with Progress("read", None, "page") as shown:
        shown.update(5)
        shown.update(-2)
        clock[0] = seconds
    assert capsys.readouterr().err.splitlines() == lines


def test_hidden_progress_counts_and_shows_nothing(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    terminal = a_terminal(monkeypatch)
    with Progress("train", 10, shown=False) as shown:
        clock[0] = 1000
        shown.update(3)
    assert (shown.done, terminal.getvalue()) == (3, "")


def test_threads_may_update_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    with Progress("read", 4000) as shown:
        threads = [threading.Thread(target=lambda: [shown.update() for _ in range(1000)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert shown.done == 4000
    assert "4000/4000" in terminal.getvalue()


def test_a_line_does_not_break_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    with Progress("read", 2):
        say("warning: a page is missing")
    assert "\rwarning: a page is missing\n" in terminal.getvalue()
