"""The languages of wikis: the names in their markup, their templates that carry text, and the headings of references.

mediawiki_names.yaml has what MediaWiki itself knows of each language. language_en.yaml has the templates and headings
of English, and a file such as language_de.yaml has what another language adds to them.
docs/how_to/add_a_language.md explains the format.
"""

import functools
import re
from pathlib import Path
from typing import Any, NamedTuple

from temporalwiki.base.json_files import read_yaml
from temporalwiki.builders.wikipedia.prose_lines import Headings
from temporalwiki.builders.wikipedia.template_text import RENDERERS, Rules, Writing, formatted_number, phrase
from temporalwiki.builders.wikipedia.variants import Variant, variant_of


class Language(NamedTuple):
    """The words of a language, or of one of its variants."""

    templates: Rules
    headings: Headings
    writing: Writing
    files_and_categories: frozenset[str]  # names of namespaces
    switches: frozenset[str]  # __NOTOC__ and the like, without the low lines around them
    variant: Variant | None  # that MediaWiki writes; None if it does not convert the language


_FOLDER = Path(__file__).parent
_FILES = {file.stem.partition("_")[2]: file for file in _FOLDER.glob("language_*.yaml")}


@functools.cache
def mediawiki_names() -> dict[str, Any]:
    """Return the table of MediaWiki's names. It takes some 50 ms to read."""
    return read_yaml(_FOLDER / "mediawiki_names.yaml")  # type: ignore[no-any-return]


@functools.cache  # every page of a wiki has the same
def language_of(code: str) -> Language:
    """Return the tables of a language.

    A language has the tables of English, with additions from its own, or else from its base language ("de" for
    "de-at"). A template in that file replaces an English one of the same name.
    """
    names = mediawiki_names()["languages"]
    return _read(_known(code, _FILES), _known(code, names), variant_of(code))


def lacking(code: str) -> list[str]:
    """Return the tables that a language lacks; the English ones serve instead."""
    names = mediawiki_names()["languages"]
    tables = {"templates and headings": _FILES, "names of namespaces, switches and numbers": names}
    return [what for what, table in tables.items() if _known(code, table) == "en" != code.partition("-")[0]]


def _known(code: str, tables: Any) -> str:
    return next((name for name in (code, code.partition("-")[0]) if name in tables), "en")


@functools.cache
def _read(file: str, names: str, variant: Variant | None) -> Language:
    table, english = mediawiki_names()["languages"][names], mediawiki_names()["languages"]["en"]
    both = {key: (*english[key], *table.get(key, ())) for key, value in english.items() if isinstance(value, list)}
    own = {key: table.get(key, english[key]) for key in ("marks", "lakh", "least", "digits")}
    writing = Writing(**own, raw=both["raw"], plain=both["plain"], english=names == "en")
    templates, headings = _templates(file)
    functions = dict.fromkeys((f"{name.replace('_', ' ')}:" for name in both["formatnum"]), formatted_number)
    hidden = frozenset(both["files"] + both["categories"])
    return Language({**templates, **functions}, headings, writing, hidden, frozenset(both["switches"]), variant)


@functools.cache
def _templates(code: str) -> tuple[Rules, Headings]:
    templates, headings = (RENDERERS, Headings()) if code == "en" else _templates("en")
    table = read_yaml(_FILES[code])
    templates = {**templates, **dict.fromkeys(table.get("silent", ()))}
    for text, names in table["templates"].items():
        rule = templates[text.removeprefix("as ")] if text.startswith("as ") else phrase(text)
        templates |= dict.fromkeys(names, rule)
    references, lists = table["references"], table["lists_of_references"]
    return templates, Headings(headings.apparatus.union(references), headings.lists_only.union(lists))


@functools.cache
def _redirect() -> re.Pattern[str]:
    """Return the pattern of a redirect in lower case. Some wikis write a second word after MediaWiki's own."""
    words = sorted(mediawiki_names()["redirects"], key=lambda word: (-len(word), word))
    one = "|".join(re.escape(word).replace("_", "[ _]") for word in words)
    return re.compile(rf"\s*+(?:{one})(?:[ _][^\s\[\]:]{{1,20}})?\s*+:?\s*+\[\[")


def is_redirect(wikitext: str) -> bool:
    """Return whether a page is a redirect, by the words of any language."""
    start = wikitext.lstrip()[:200]
    return start[:1] in ("#", "＃") and _redirect().match(start.lower().replace("i̇", "i")) is not None
