"""Names for people: methods as their papers write them, and months in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.eval_harness.leaderboard.names import listed, method_name, month_name, short_month
from temporalwiki.methods import METHODS

MONTHS = {  # name in a config -> in words, and on the axis of a figure
    "20211001-20211101": ("October to November 2021", "Oct–Nov\n2021"),
    "20211201-20220101": ("December 2021 to January 2022", "Dec–Jan\n2022"),
    "20211101-20211120": ("November to 20 November 2021", "Nov–20 Nov\n2021"),
    "20210101-20230101": ("January 2021 to January 2023", "Jan\n2021–2023"),
    "20211201": ("December 2021", "Dec\n2021"),
    "1112": ("November to December", "Nov–Dec"),
    "12": ("December", "Dec"),
    "1301": ("1301", "1301"),
    "20211301-20220101": ("20211301-20220101", "20211301-20220101"),
    "</b>": ("</b>", "</b>"),
    "": ("", ""),
}


@pytest.mark.parametrize("month", MONTHS)
def test_a_month_in_words(month: str) -> None:
    assert (month_name(month), short_month(month)) == MONTHS[month]


@given(st.one_of(st.text(), st.from_regex(r"\d{4}|\d{8}(-\d{8})?", fullmatch=True)))
def test_any_text_has_a_name(text: str) -> None:
    assert bool(month_name(text)) == bool(short_month(text)) == bool(text)


def test_all_methods_have_names_of_their_own() -> None:
    assert len({method_name(method) for method in METHODS}) == len({entry.about for entry in METHODS.values()})
    assert len({method_name(method) for method in METHODS} - METHODS.keys()) == len(METHODS)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("mix_review", "Mix-Review"),
        ("k_adapter, gpt2", "K-Adapter, gpt2"),
        ("lora (trained on test data)", "LoRA (trained on test data)"),
        ("diff-seed1", "diff-seed1"),
        ("full of it", "full of it"),
        ("acme/diff", "acme/diff"),
        ("", ""),
    ],
)
def test_a_label_of_ones_own_stays(label: str, name: str) -> None:
    assert method_name(label) == name


@pytest.mark.parametrize(
    ("names", "text"), [([], ""), (["A"], "A"), (["A", "B"], "A and B"), ([*"ABC"], "A, B and C")]
)
def test_names_in_a_sentence(names: list[str], text: str) -> None:
    assert listed(names) == text
