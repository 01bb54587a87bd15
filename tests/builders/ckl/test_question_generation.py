"""How often an answer stands in a text."""

from __future__ import annotations

import pytest

from temporalwiki.builders.ckl.question_generation import occurrences, occurs


@pytest.mark.parametrize(
    ("answer", "text", "times"),
    [
        ("AI", "the AI-powered agents", 1),
        ("US", "the U.S. army, the US navy", 2),
        ("Easton", "in EASTON's streets", 1),
        ("Anna  Weber", "said Anna Weber.", 1),
        ("Easton", "Eastonia", 0),
        ("art", "the start", 0),
        ("Weber", "web er", 0),
        ("C++", "in C++, too", 1),
        ("(a", "f (a b", 1),
        ("Ada", "Ada, ada and Adam", 2),
        ("e\u0301", "caf\u00e9 \u00e9", 1),
        ("caf", "cafe\u0301 cafe", 0),
        ("The Who", "The Who said who did", 2),
        ("", "a", 0),
    ],
)
def test_how_often_an_answer_stands_in_a_text(answer: str, text: str, times: int) -> None:
    assert occurrences(answer, text) == times
    assert occurs(answer, text) == (times > 0)
