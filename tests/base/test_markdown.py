"""Text from elsewhere stays text in Markdown."""

import pytest

from temporalwiki.base.markdown import code, escaped, one_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain", "plain"),
        ("two\r\nlines\tand\u2028more", "two lines and more"),
        ("abc\u202egnp", "abc gnp"),  # would be read from right to left
        ("bell\a, lone \ud800 surrogate", "bell , lone surrogate"),
        ("👩\u200d🔬 می\u200cخواهم", "👩\u200d🔬 می\u200cخواهم"),
    ],
)
def test_one_line(text: str, line: str) -> None:
    assert one_line(text) == line


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("snake_case _x_", r"snake_case \_x\_"),
        ("<b> & [a](b) | `c` $x$", r"&lt;b&gt; &amp; \[a\](b) \| \`c\` &#36;x&#36;"),
        ("---\n# x", "--- # x"),
    ],
)
def test_escaped(text: str, markdown: str) -> None:
    assert escaped(text) == markdown


@pytest.mark.parametrize(
    ("text", "markdown"),
    [("a_b <x>", "`a_b <x>`"), ("`a` | b\\", "`'a' ∣ b∖`"), ("a\n\u202eb", "`a b`"), ("\ud800", "")],
)
def test_code(text: str, markdown: str) -> None:
    assert code(text) == markdown
