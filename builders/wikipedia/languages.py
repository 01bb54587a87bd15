"""The languages of wikis: their templates that carry text, and the headings of their sections of references.

English is in ``template_text`` and ``prose_lines``. A file such as language_de.yaml has what another
language adds to English. docs/how_to/add_a_language.md explains it.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import NamedTuple

import yaml

from temporalwiki.builders.wikipedia.prose_lines import ENGLISH, Headings
from temporalwiki.builders.wikipedia.template_text import TEMPLATES, Rules, phrase


class Language(NamedTuple):
    """The templates and headings of a language."""

    templates: Rules
    headings: Headings


_FILES = {file.stem.partition("_")[2]: file for file in Path(__file__).parent.glob("language_*.yaml")}


@functools.cache  # every page of a wiki has the same
def language_of(code: str) -> Language:
    """Return the tables of a language.

    A language has the tables of English, with additions from its own file, or else from that of its base language
    ("de" for "de-at"). A template in that file replaces an English one of the same name.
    """
    file = _FILES.get(code) or _FILES.get(code.partition("-")[0])
    if file is None:
        return Language(TEMPLATES, ENGLISH)
    table = yaml.safe_load(file.read_text("utf-8"))
    templates = dict(TEMPLATES)
    for text, names in table["templates"].items():
        renderer = TEMPLATES[text.removeprefix("as ")] if text.startswith("as ") else phrase(text)
        templates |= dict.fromkeys(names, renderer)
    references, lists = (frozenset(table[key]) for key in ("references", "lists_of_references"))
    return Language(templates, Headings(ENGLISH.apparatus | references, ENGLISH.lists_only | lists))
