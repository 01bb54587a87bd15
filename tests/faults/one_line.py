"""Run a command that should fail with one clear line."""

import pytest

from temporalwiki.commands import main

LONGEST = 2000  # characters of an error, so that a hostile file does not fill the screen


def error_of(capsys: pytest.CaptureFixture[str], *argv: object) -> str:
    """Run a command that should fail in this process, and return its last line on standard error."""
    capsys.readouterr()
    status = main(list(map(str, argv)))
    said = capsys.readouterr().err
    assert status in (1, 2), said
    line = said.splitlines()[-1]
    assert line.startswith(f"temporalwiki {argv[0]}: ")
    assert len(line) < LONGEST
    assert "Traceback" not in said
    return line
