"""Notes of a news site are removed from an article, and its own sentences about subscribers are not."""

from __future__ import annotations

import pytest

from temporalwiki.builders.ckl.site_notes import without_notes

NOTES = [
    "Sign up for our newsletter",
    "Sign up now",
    "- Sign up here for the Morning Briefing, our daily email.",
    "For the latest stories, sign up to the Springfield Post's newsletters.",
    "Get the day's top headlines in your inbox every morning.",
    "Click here to subscribe to the Tech Newsletter",
    "SUBSCRIBE NOW!",
    "Subscribe to continue reading.",
    "Log in or create an account to continue",
    "Already a subscriber? Log in",
    "The rest of this article is available only to subscribers.",
    "You have two free articles remaining this month.",
    "Unlock this story with a free account",
    "Der Newsletter bringt Ihnen das Wichtigste vom Tag. Hier geht es zur Anmeldung!",
    "Weiterlesen mit einem Abo",
    "Dieser Artikel ist nur für Abonnenten",
    "Il vous reste 57 % de cet article à lire. La suite est réservée aux abonnés.",
    "Contenido sólo para suscriptores",
    "Contenuto riservato agli abbonati",
    "Conteúdo exclusivo para assinantes",
    "Dit artikel is alleen voor abonnees",
    "Artykuł tylko dla prenumeratorów",
]
SENTENCES = [
    "The service lost 200,000 subscribers in the first quarter.",
    "“I signed up for the army in 1941,” said Mr Lee.",
    "She signed up for a course in Latin.",
    "Subscribers to the newspaper can vote until Sunday.",
    "The mayor sent the newsletter to every household.",
    "His inbox was full of letters from readers.",
    "Readers who want to continue the debate met in the library.",
    "The company said that it would unlock a further 20 million dollars.",
    "Log cabins are cheap in Norway, and many people continue to buy them.",
    "This law is for all members of the union.",
    "Der Verlag hat 40.000 Abonnenten verloren.",
    "Le journal a gagné 3 000 abonnés en un an.",
    "El diario tiene 300.000 suscriptores.",
    "O jornal tem 300 mil assinantes.",
]


@pytest.mark.parametrize("line", NOTES)
def test_a_note_is_removed(line: str) -> None:
    assert without_notes(["Before.", line, "After."]) == ["Before.", "After."]


@pytest.mark.parametrize("line", SENTENCES)
def test_a_sentence_of_the_article_stays(line: str) -> None:
    assert without_notes([line]) == [line]


def test_a_long_paragraph_stays() -> None:
    assert without_notes([f"Sign up now. {'A word. ' * 50}"]) != []
