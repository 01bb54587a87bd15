"""Turn untrusted text into Markdown that shows it as it is."""

import html
import re

_JOINERS = "\u200c\u200d"  # not printable, but scripts and emoji are spelled with them
_MARKDOWN = re.compile(r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])")  # an underscore within a word means nothing
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last four are their wide forms
_IN_CODE = str.maketrans("`|\\", "'∣∖")  # these would end the code span or the table cell


def one_line(text: str) -> str:
    """Return a text in one line, with single spaces in place of line breaks and most invisible characters."""
    return " ".join("".join(char if char.isprintable() or char in _JOINERS else " " for char in text).split())


def escaped(text: str) -> str:
    """Return Markdown that shows a text as it is, also in a table cell."""
    # GitHub renders text between dollar signs as a formula, even after a backslash
    return html.escape(_MARKDOWN.sub(r"\\\g<0>", one_line(text)), quote=False).replace("$", "&#36;")


def code(text: str) -> str:
    """Return a text as a code span that also fits into a table cell, or "" for an empty text."""
    line = "".join(char if char.isprintable() else " " for char in text).split()
    return f"`{' '.join(line).translate(_IN_CODE)}`" if line else ""


def spreadsheet_cell(text: str) -> str:
    """Return a text in one line that a spreadsheet does not read as a formula: it gets an apostrophe in front."""
    text = one_line(text)
    return f"'{text}" if text.startswith(_FORMULA) else text


def table_row(*cells: str) -> str:
    """Return a line of a Markdown table."""
    return f"| {' | '.join(cells)} |"
