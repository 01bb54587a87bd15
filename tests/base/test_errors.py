"""An error of the input has one line, with any names in the input."""

import copy

import pytest

from temporalwiki.base.errors import InputError, UsageError


@pytest.mark.parametrize("error", [InputError, UsageError])
@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\x85", "\u2028"])
def test_a_name_with_a_line_break(error: type[InputError], line_break: str) -> None:
    said = error(f"a{line_break}b  c: no such file")
    assert str(said) == str(copy.copy(said)) == "a b  c: no such file"  # as it comes from a worker
