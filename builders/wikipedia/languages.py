"""The languages of wikis: their templates that carry text, and the headings of their sections of references.

language_en.yaml has those of English, and a file such as language_de.yaml has what another language adds to them.
docs/how_to/add_a_language.md explains the format.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

from temporalwiki.base.json_files import read_yaml
from temporalwiki.builders.wikipedia.prose_lines import Headings
from temporalwiki.builders.wikipedia.template_text import RENDERERS, Rules, phrase


class Language(NamedTuple):
    """The templates and headings of a language."""

    templates: Rules
    headings: Headings


_FILES = {file.stem.partition("_")[2]: file for file in Path(__file__).parent.glob("language_*.yaml")}


def language_of(code: str) -> Language:
    """Return the tables of a language.

    A language has the tables of English, with additions from its own file, or else from that of its base language
    ("de" for "de-at"). A template in that file replaces an English one of the same name.
    """
    return _read(next((name for name in (code, code.partition("-")[0]) if name in _FILES), "en"))


@functools.cache  # every page of a wiki has the same
def _read(code: str) -> Language:
    english = Language(RENDERERS, Headings()) if code == "en" else _read("en")
    table = read_yaml(_FILES[code])
    templates = {**english.templates, **dict.fromkeys(table.get("silent", ()))}
    for text, names in table["templates"].items():
        rule = templates[text.removeprefix("as ")] if text.startswith("as ") else phrase(text)
        templates |= dict.fromkeys(names, rule)
    references, lists = table["references"], table["lists_of_references"]
    headings = Headings(english.headings.apparatus.union(references), english.headings.lists_only.union(lists))
    return Language(templates, headings)
