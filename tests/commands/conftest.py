"""The command ``temporalwiki``, run in this process."""

from collections.abc import Callable

import pytest

from temporalwiki.commands import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs the command with these words; returns its status and what it said on stdout and stderr."""

    def run(*words: object) -> tuple[int, str, str]:
        try:
            status = main([str(word) for word in words])
        except SystemExit as stop:
            status = int(stop.code or 0)
        said = capsys.readouterr()
        return status, said.out, said.err

    return run
