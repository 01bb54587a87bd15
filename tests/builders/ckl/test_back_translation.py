"""Back-translation by rules, and by two models."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.base.errors import UsageError
from temporalwiki.builders.ckl.back_translation import back_translate


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Norland didn't win.", "Norland did not win."),
        ("Norland won’t play.", "Norland will not play."),
        ("Norland can't play.", "Norland can not play."),
        ("It grew by 3.8% in order to please.", "It grew by 3.8 percent to please."),
        ("It grew by 3 per cent.", "It grew by 3 percent."),
        ("More than Norland, more than 300 cups.", "More than Norland, over 300 cups."),
        ("Nothing to change.", "Nothing to change."),
        ("The URL is a%20b and %s.", "The URL is a%20b and %s."),
    ],
)
def test_rules(text: str, same: str) -> None:
    assert back_translate([text]) == [same]


@given(st.text())
def test_rules_keep_numbers_and_names(text: str) -> None:
    (same,) = back_translate([text])
    assert same is not None
    assert re.findall(r"\d+", same) == re.findall(r"\d+", text)


def test_one_model_is_none() -> None:
    with pytest.raises(UsageError, match="two models, there and back, or none"):
        back_translate(["Norland won."], there="model")
