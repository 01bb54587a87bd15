"""Templates and headings of languages other than English."""

from __future__ import annotations

from pathlib import Path

import pytest

from temporalwiki.builders.wikipedia import languages
from temporalwiki.builders.wikipedia.languages import language_of
from temporalwiki.builders.wikipedia.plain_text import paragraphs

PAGES = {
    "de": (
        'Ein Epos ({{grcS|ἔπος|de=Wort}}) ist {{"|lang}} nach {{§|1}}{{citation needed}}, {{Bruch|1|2}} aus {{DEU}}.'
        " {{nowrap|Ja.}}\n\n== Einzelnachweise ==\n* Buch\n\n== Literatur ==\n* Buch\nProsa.",
        ["Ein Epos (altgriechisch ἔπος ‚Wort‘) ist „lang“ nach § 1, 1/2 aus Deutschland. Ja.", "Prosa."],
    ),
    "fr": (
        "Le {{1er}} roi, {{souverain2|Louis XIV}}, dit {{citation|Oui}} au {{s-|XVII|e}}, le"
        " {{date-|14|juillet|1789}}, à {{unité|5|km}} de {{lien|fr=Ville|lang=en}} ({{av JC}}).\n\n"
        "== Notes et références ==\nTexte.",
        ["Le 1er roi, Louis XIV, dit « Oui » au XVIIe siècle, le 14 juillet 1789, à 5 km de Ville (av. J.-C.)."],
    ),
}


@pytest.mark.parametrize("language", PAGES)
def test_a_page_reads_as_in_its_language(language: str) -> None:
    page, expected = PAGES[language]
    assert paragraphs(page, language=language) == expected
    assert paragraphs(page, language=f"{language}-x") == expected
    assert paragraphs(page, language="eo") != expected


def test_every_file_can_be_read_and_adds_to_english() -> None:
    files = Path(languages.__file__).parent.glob("language_*.yaml")
    assert {file.stem.removeprefix("language_") for file in files} == {"en", *PAGES}
    english = language_of("en")
    for code in PAGES:
        language = language_of(code)
        assert language.templates.keys() > english.templates.keys()
        assert all(name == name.lower().strip() for name in language.templates)
        assert all(title == title.lower().strip() for titles in language.headings for title in titles)
    assert language_of("en-x") is language_of("../de") is english
