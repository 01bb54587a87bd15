"""The text of cards: Markdown files with $slots, and facts about kinds of configs and papers, in templates/."""

from __future__ import annotations

import calendar
import functools
import re
from pathlib import Path
from string import Template
from typing import Any

import yaml

_FOLDER = Path(__file__).with_name("templates")


def fill(template: str, **slots: str) -> str:
    """Return templates/TEMPLATE.md with its $slots filled. An empty slot leaves no gap."""
    text = Template((_FOLDER / f"{template}.md").read_text("utf-8")).substitute(slots)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n")


@functools.cache
def kinds() -> dict[str, Any]:
    """Return the content of kinds.yaml: descriptions of configs, columns, limits and licences."""
    described: dict[str, Any] = yaml.safe_load((_FOLDER / "kinds.yaml").read_text("utf-8"))
    return described


def citations(*keys: str) -> str:
    """Return the BibTeX entries of papers, by their keys in papers.bib."""
    entries = (_FOLDER / "papers.bib").read_text("utf-8").strip().split("\n\n")
    by_key = {entry[entry.index("{") + 1 : entry.index(",")]: entry for entry in entries}
    return "\n\n".join(by_key[key] for key in keys)


def in_words(date: str) -> str:
    """Return a date (YYYYMMDD) such as "1 December 2021"; one that is not in the calendar stays as it is."""
    month = int(date[4:6])
    return f"{int(date[6:])} {calendar.month_name[month]} {date[:4]}" if 1 <= month <= 12 else date
