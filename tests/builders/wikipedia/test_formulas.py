"""Formulas in TeX as plain text."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.builders.wikipedia.formulas import DEEPEST, LONGEST, plain_formula

SHOWN = {
    "m": "m",
    "x = y\n  + 1": "x = y + 1",
    "E = mc^2": "E = mc²",
    r"x_1, \dots, x_n": "x₁, …, x_n",
    r"a\le b": "a ≤ b",
    r"\alpha_{12}^{-1}": "α₁₂⁻¹",
    r"x^{k+1} + x^k": "x^(k+1) + x^k",
    r"\frac{1}{2}": "1/2",
    r"\frac{a + b}{c^2}": "(a + b)/c²",
    r"\sqrt{2} + \sqrt{a+b}": "√2 + √(a+b)",
    r"\mathrm{Area} = \pi r^2": "Area = π r²",
    r"\sin^2 \theta": "sin² θ",
    r"\left( x \right)": "(x)",
    r"\{ 1, 2 \}": "{ 1, 2 }",
    r"f:\N \to \mathbb{R}": "f:ℕ → R",
    r"\text{for all } x \in S": "for all x ∈ S",
    r"a~b\,c\!d": "a b cd",
    "": "",
}
LOST = [
    r"\begin{cases} 1 \end{cases}", r"\bar x", r"{a \over b}", r"\sqrt[3]{2}", r"\unknown",
    "a & b", "x}", "{x", "x^", r"\frac{1}", "{" * (DEEPEST + 1) + "x" + "}" * (DEEPEST + 1), "^" * 100,
    r"\frac" * 60, "x" * (LONGEST + 1),
]  # fmt: skip


@pytest.mark.parametrize("tex", SHOWN)
def test_a_formula_reads_as_plain_text(tex: str) -> None:
    assert plain_formula(tex) == SHOWN[tex]


@pytest.mark.parametrize("tex", LOST)
def test_a_formula_that_plain_text_cannot_show_is_none(tex: str) -> None:
    assert plain_formula(tex) is None


def test_chemical_formulas() -> None:
    assert plain_formula("2 H2 + O2 -> 2 H2O", chemical=True) == "2 H2 + O2 → 2 H2O"
    assert plain_formula("SO4^2- <=> X", chemical=True) == "SO4²⁻ ⇌ X"


@given(st.text(r"\{}^_ afrcsqt12", max_size=LONGEST))
def test_any_formula_is_read_quickly(tex: str) -> None:
    began = time.process_time()
    shown = plain_formula(tex)
    assert time.process_time() - began < 1
    assert shown is None or ("\\" not in shown and shown == " ".join(shown.split()))
