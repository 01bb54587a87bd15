"""Commands that are to fail as they should: with a status and one line, which names what is wrong."""

from __future__ import annotations

import pytest

from temporalwiki.commands import main

LONGEST = 2000  # characters of an error: a hostile file does not fill a screen


def error_of(capsys: pytest.CaptureFixture[str], *argv: object) -> str:
    """Run a command in this process, which is to fail; what it says last."""
    capsys.readouterr()
    status = main(list(map(str, argv)))
    said = capsys.readouterr().err
    assert status in (1, 2), said
    line = said.splitlines()[-1]
    assert line.startswith(f"temporalwiki {argv[0]}: ")
    assert len(line) < LONGEST
    assert "Traceback" not in said
    return line
