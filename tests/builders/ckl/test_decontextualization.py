"""Decontextualisation by rules: replaced words, and rejected sentences."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.builders.ckl.decontextualization import decontextualize, written
from temporalwiki.builders.ckl.question_generation import Passage

FRIDAY = datetime(2023, 4, 28, 17, 40, tzinfo=UTC)


def alone(sentence: str, context: str = "", answer: str = "", published: datetime | None = FRIDAY) -> str | None:
    return decontextualize([Passage(sentence, answer, max(0, sentence.find(answer)), "", context, published)])[0]


@pytest.mark.parametrize(
    ("sentence", "stands_alone"),
    [
        ("Norland won the cup.", "Norland won the cup."),
        # connectives
        ("EASTON, Norland (AP) — Norland won the cup.", "Norland won the cup."),
        ("EASTON, April 28 (Reuters) - Norland won the cup.", "Norland won the cup."),
        ("However, Norland won the cup.", "Norland won the cup."),
        ("But Norland also won the cup.", "Norland won the cup."),
        ("Norland, by contrast, won the cup.", "Norland won the cup."),
        # days of the past week
        ("Norland won on Monday.", "Norland won on April 24, 2023."),
        ("Norland won Friday.", "Norland won on April 28, 2023."),
        ("Norland won on Saturday morning.", "Norland won on the morning of April 22, 2023."),
        ("On Monday, Norland won the cup.", "On April 24, 2023, Norland won the cup."),
        ("Norland has not won since Monday.", "Norland has not won since April 24, 2023."),
        ("Norland won yesterday.", "Norland won on April 27, 2023."),
        # days of the next week
        ("Norland will play Easton on Monday.", "Norland will play Easton on May 1, 2023."),
        ("Norland will play Easton on Friday.", "Norland will play Easton on April 28, 2023."),
        # months and years
        ("Norland won the cup this year.", "Norland won the cup in 2023."),
        ("Norland won the cup last year.", "Norland won the cup in 2022."),
        ("Last year, Norland won the cup.", "In 2022, Norland won the cup."),
        ("Norland won the cup last month.", "Norland won the cup in March 2023."),
        ("Norland won the cup earlier this month.", "Norland won the cup in April 2023."),
        ("Norland won the cup in January.", "Norland won the cup in January 2023."),
        ("Norland won the cup in January last year.", "Norland won the cup in January 2022."),
        ("Norland won the cup in December.", "Norland won the cup in December 2022."),
        ("Norland will play Easton in June.", "Norland will play Easton in June 2023."),
        ("Norland will play Easton in January.", "Norland will play Easton in January 2024."),
        ("Norland won the cup on April 24.", "Norland won the cup on April 24, 2023."),
        ("Norland won the cup on Nov. 3.", "Norland won the cup on Nov. 3, 2022."),
        ("Norland won the cup on May 3, 2021.", "Norland won the cup on May 3, 2021."),
        ("Norland won the cup in May 2021.", "Norland won the cup in May 2021."),
        ("Norland may win the cup.", "Norland may win the cup."),
        # the pronoun refers to a name in the sentence
        ("Anna Weber said she won the cup.", "Anna Weber said she won the cup."),
        ("There is a cup for Norland.", "There is a cup for Norland."),
    ],
)
def test_stands_alone(sentence: str, stands_alone: str) -> None:
    assert alone(sentence) == stands_alone


@pytest.mark.parametrize(
    "sentence",
    [
        "He won the cup in Norland.",
        "Their cup is in Norland.",
        "This cup is in Norland.",
        "Norland won those cups.",
        "The cup was won by Norland.",  # which cup?
        "The airline flew to Norland.",
        "We won the cup in Norland.",
        "In March 2021, she won the cup.",
        "Norland won the cup two years ago.",
        "Norland won the cup last week.",
        "Norland won the cup on Monday and lost it on Tuesday.",
        "Norland won Monday's game.",
        "Norland will play next Friday.",
        "Norland is now a republic.",
        "In that case Norland won.",
    ],
)
def test_leans_on_others(sentence: str) -> None:
    assert alone(sentence) is None


def test_days_need_a_day_of_publishing() -> None:
    assert alone("Norland won on Monday.", published=None) is None
    assert alone("Norland won in 1961.", published=None) == "Norland won in 1961."


BEFORE = "President Anna Weber came to Norland. Nobody was there. "


@pytest.mark.parametrize(
    ("context", "sentence", "answer", "stands_alone"),
    [
        (BEFORE, "Weber said Norland won.", "Norland", "Anna Weber said Norland won."),
        (BEFORE, "Ms. Weber met Norland.", "Norland", "Anna Weber met Norland."),
        # not clearly a person
        (BEFORE, "Weber met Norland.", "Norland", "Weber met Norland."),
        # two people of that name, or none
        (f"{BEFORE}Otto Weber was late. ", "Weber said Norland won.", "Norland", "Weber said Norland won."),
        ("", "Weber said Norland won.", "Norland", "Weber said Norland won."),
        # the answer is not changed
        (BEFORE, "Weber said Norland won.", "Weber", "Weber said Norland won."),
        # not surnames
        ("The White House was closed. ", "House said Norland won.", "Norland", "House said Norland won."),
    ],
)
def test_full_names(context: str, sentence: str, answer: str, stands_alone: str) -> None:
    assert alone(sentence, context, answer) == stands_alone


@given(st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)))
def test_weekdays_are_those_of_the_calendar(published: datetime) -> None:
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    for number, day in enumerate(days):
        text = alone(f"Norland won on {day}.", published=published)
        assert text is not None
        meant = datetime.strptime(text.removeprefix("Norland won on ").removesuffix("."), "%B %d, %Y")
        assert meant.isoweekday() == number + 1
        assert 0 <= (published.date() - meant.date()).days < 7


@given(st.text(max_size=120), st.text(max_size=120))
def test_any_text(sentence: str, context: str) -> None:
    text = alone(sentence or ".", context)
    assert text is None or isinstance(text, str)


def test_written() -> None:
    assert written(FRIDAY) == "April 28, 2023"
