"""Lines that a news site puts into an article: notes about subscriptions, and invitations to a newsletter."""

from __future__ import annotations

from pathlib import Path

import regex

from temporalwiki.base.json_files import read_yaml

_LONGEST = 320  # characters of a note; a longer paragraph is the article's
_SAID = read_yaml(Path(__file__).with_name("site_notes.yaml"))
_NOTE = regex.compile("|".join(pattern for patterns in _SAID.values() for pattern in patterns), regex.IGNORECASE)


def without_notes(lines: list[str]) -> list[str]:
    """Return the lines of an article that are not notes of its site."""
    return [line for line in lines if len(line) > _LONGEST or not _NOTE.search(line.removeprefix("- "))]
