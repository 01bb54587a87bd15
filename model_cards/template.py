"""The text of cards: jinja2 templates in Markdown, and facts about kinds of configs and papers, in templates/."""

import calendar
import functools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jinja2

from temporalwiki.base.json_files import read_yaml
from temporalwiki.base.markdown import code, escaped, table_row

TEMPLATES = Path(__file__).with_name("templates")


def fill(template: str, **values: Any) -> str:
    """Return templates/TEMPLATE.md with these values. What a condition leaves out leaves no gap.

    The filters ``escaped`` and ``code`` make Markdown of untrusted text, and ``row`` makes a table row of Markdown.
    """
    return re.sub(r"\n{3,}", "\n\n", _environment().get_template(f"{template}.md").render(values)).strip("\n")


@functools.cache
def _environment() -> jinja2.Environment:
    found = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), undefined=jinja2.StrictUndefined)
    found.filters |= {"escaped": escaped, "code": code, "commas": _commas, "row": _row, "day": in_words}
    found.globals |= {"kinds": kinds(), "citations": citations}
    return found


def _commas(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _row(cells: Iterable[object]) -> str:
    return table_row(*(_commas(cell) if isinstance(cell, int | None) else str(cell) for cell in cells))


@functools.cache
def kinds() -> dict[str, Any]:
    """Return the content of kinds.yaml: descriptions of configs, columns, limits and licences."""
    described: dict[str, Any] = read_yaml(TEMPLATES / "kinds.yaml")
    return described


def citations(keys: Iterable[str]) -> str:
    """Return the BibTeX entries of papers, by their keys in papers.bib."""
    entries = (TEMPLATES / "papers.bib").read_text("utf-8").strip().split("\n\n")
    by_key = {entry[entry.index("{") + 1 : entry.index(",")]: entry for entry in entries}
    return "\n\n".join(by_key[key] for key in keys)


def in_words(date: str) -> str:
    """Return a date (YYYYMMDD) such as "1 December 2021"; one that is not in the calendar stays as it is."""
    month = int(date[4:6])
    return f"{int(date[6:])} {calendar.month_name[month]} {date[:4]}" if 1 <= month <= 12 else date
