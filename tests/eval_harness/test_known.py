"""Known facts: panels, the rule, and the controls that must get nothing."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.eval_harness.known import (
    FEWEST,
    MOST,
    Matrix,
    Panel,
    PanelFact,
    binding,
    by_spelling,
    complete_places,
    corrected,
    known,
    margins,
    panels,
)


def fact(name: str, split: str = "changed", **columns: object) -> PanelFact:
    row = {"subject": f"subject {name}", "relation": "has", "object": f"object {name}", **columns}
    return PanelFact.of(f"id {name}", str(row["subject"]), split, row)


def made(facts: list[PanelFact], seed: int = 0) -> tuple[list[Panel], Counter[str]]:
    left_out: Counter[str] = Counter()
    return panels(facts, "P1", left_out, seed), left_out


# Panels


@pytest.mark.parametrize(
    "count, sizes",
    [(6, [6]), (10, [10]), (11, [6, 5]), (12, [6, 6]), (20, [10, 10]), (21, [7, 7, 7]), (25, [9, 8, 8])],
)
def test_panels_of_a_split_have_sizes_as_equal_as_possible(count: int, sizes: list[int]) -> None:
    found, _ = made([fact(str(i)) for i in range(count)] + [fact(f"old {i}", "unchanged") for i in range(6)])
    assert [len(panel.scored) for panel in found if panel.split == "changed"] == sizes


def test_a_panel_below_six_is_filled_with_facts_of_the_other_split_that_are_not_scored() -> None:
    found, left_out = made([fact(str(i)) for i in range(4)] + [fact(f"old {i}", "unchanged") for i in range(9)])
    changed, unchanged = found
    assert (changed.split, len(changed.facts), len(changed.scored)) == ("changed", 6, 4)
    assert (unchanged.split, len(unchanged.facts), len(unchanged.scored)) == ("unchanged", 9, 9)
    assert not left_out


def test_what_stays_below_six_is_left_out_and_counted() -> None:
    found, left_out = made([fact(str(i)) for i in range(3)] + [fact("old", "unchanged")])
    assert found == []
    assert left_out == {
        "changed: in a panel of fewer than 6 facts of the relation": 3,
        "unchanged: in a panel of fewer than 6 facts of the relation": 1,
    }


@pytest.mark.parametrize(
    "columns",
    [
        {"subject": "subject 0"},
        {"object": "object 0"},
        {"object": "The Object, 0!"},
        {"objects": ["another", "object 0"]},
        {"aliases": ["object 0"]},
        {"gone_objects": ["object 0"]},
        {"previous_objects": ["object 0"]},
    ],
)
def test_two_facts_that_share_a_subject_or_a_right_object_never_share_a_panel(columns: dict[str, object]) -> None:
    clash = fact("clash", **columns)
    found, _ = made([clash, *(fact(str(i)) for i in range(9)), *(fact(f"old {i}", "unchanged") for i in range(9))])
    (with_clash,) = (panel for panel in found if clash in panel.facts)
    assert "id 0" not in {one.id for one in with_clash.facts}


def test_a_fact_whose_gone_object_is_right_for_another_never_joins_it_whichever_is_first() -> None:
    new, old = fact("0"), fact("1", gone_objects=["object 0"])
    assert not Panel("P1", "changed", 10, [new]).fits(old)
    assert not Panel("P1", "changed", 10, [old]).fits(new)


def test_a_gone_object_that_is_still_right_for_nobody_else_may_stand_in_the_panel() -> None:
    found, _ = made([fact(str(i), gone_objects=["gone"]) for i in range(6)])  # all of them lost the same object
    assert [len(panel.facts) for panel in found] == [6]


@given(st.permutations(range(23)), st.integers(0, 3))
def test_panels_do_not_depend_on_the_order_of_the_facts(order: list[int], seed: int) -> None:
    facts = [fact(str(i), "changed" if i % 3 else "unchanged", objects=[f"object {i % 17}"]) for i in range(23)]
    names = lambda found: [[one.id for one in panel.facts] for panel in found[0]]  # noqa: E731
    assert names(made([facts[i] for i in order], seed)) == names(made(facts, seed))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12), st.booleans()), max_size=60, unique=True))
def test_every_fact_is_scored_once_or_counted(drawn: list[tuple[int, int, bool]]) -> None:
    facts = [
        fact(f"{s}-{o}-{new}", "changed" if new else "unchanged", subject=f"s{s}", object=f"o{o}")
        for s, o, new in drawn
    ]
    found, left_out = made(facts)
    scored = [panel.facts[i].id for panel in found for i in panel.scored]
    assert len(scored) == len(set(scored)) == len(facts) - sum(left_out.values())
    for panel in found:
        assert FEWEST <= len(panel.facts) <= MOST
        assert len({one.subject for one in panel.facts}) == len({str(one.row["object"]) for one in panel.facts})


# The rule


def by_hand(cells: Matrix) -> list[bool]:
    """The definition, word by word."""
    n = len(cells)
    return [
        all(
            cells[i, i] - cells[i, j] > np.mean([cells[k, i] - cells[k, j] for k in range(n) if k not in (i, j)])
            for j in range(n)
            if j != i
        )
        for i in range(n)
    ]


@given(st.integers(0, 10_000), st.integers(3, 10))
def test_known_is_the_definition(seed: int, size: int) -> None:
    cells = np.random.default_rng(seed).normal(size=(size, size))
    assert known(cells).tolist() == by_hand(cells)


def test_known_by_hand() -> None:
    # The second subject does not know its object; all subjects like the third object best.
    cells = -np.array([[1.0, 5.0, 0.5], [5.0, 5.0, 0.5], [5.0, 5.0, 0.5]])
    assert margins(cells)[0].tolist()[1:] == [pytest.approx(4 - 0), pytest.approx(-0.5 - (-4.5))]
    assert known(cells).tolist() == [True, False, False]


@pytest.mark.parametrize(
    "what, change",
    [
        ("a liking for one object", lambda cells: cells + np.arange(6.0)),
        ("a subject with long prompts", lambda cells: cells + np.arange(6.0)[:, None]),
        ("a softer model", lambda cells: cells / 1.25),
        ("a sharper model", lambda cells: cells * 2),
    ],
)
def test_what_says_nothing_about_single_facts_changes_nothing(what: str, change: object) -> None:
    cells = np.random.default_rng(0).normal(size=(6, 6)) + 2 * np.diag([1, 1, 1, 0, 0, 0])
    assert known(change(cells)).tolist() == known(cells).tolist()  # type: ignore[operator]
    assert known(cells).any()
    assert not known(cells).all()


def test_a_model_that_only_knows_names_knows_no_fact() -> None:
    """It gives every subject the same likelihoods, however much likelier the right objects of the month are."""
    cells = np.tile(np.random.default_rng(1).normal(size=10), (10, 1))
    assert not known(cells).any()


def test_binding_grows_with_the_sharpness_and_is_the_mean_margin() -> None:
    cells = np.random.default_rng(2).normal(size=(7, 7))
    assert binding(cells).tolist() == pytest.approx(np.nanmean(margins(cells), axis=1).tolist())
    assert binding(2 * cells).tolist() == pytest.approx((2 * binding(cells)).tolist())


# Gone objects


@pytest.mark.parametrize(
    "own, others, compared, expected",
    [
        (-4.0, -1.0, True, True),  # this subject likes the gone object less than the others do
        (-1.0, -3.0, True, False),
        (-2.0, -2.0, True, False),  # a tie
        (-4.0, -1.0, False, None),  # the object is or was right for all the others
    ],
)
def test_corrected(own: float, others: float, compared: bool, expected: bool | None) -> None:
    gone = np.full((6, 1), others)
    gone[0] = own
    assert corrected(np.full((6, 6), -2.0), 0, gone, np.full((6, 1), compared)) is expected


def test_corrected_needs_every_gone_object() -> None:
    cells = np.full((6, 6), -2.0)
    gone = np.full((6, 2), -2.0)
    gone[0] = [-5.0, -1.0]
    assert corrected(cells, 0, gone, np.full((6, 2), True)) is False
    assert corrected(cells, 0, gone[:, :1], np.full((6, 1), True)) is True
    assert corrected(cells, 0, np.empty((6, 0)), np.empty((6, 0), dtype=bool)) is None


# Cells that cannot be scored


def test_the_place_with_missing_cells_leaves() -> None:
    cells = np.zeros((8, 8))
    cells[:, 3] = np.nan  # an object without a token
    cells[5, :] = np.nan  # a prompt that is too long
    assert complete_places(cells) == [0, 1, 2, 4, 6, 7]
    assert complete_places(np.zeros((6, 6))) == list(range(6))


# Spelling


def test_spelling_finds_objects_that_contain_their_subject() -> None:
    chosen = [
        fact(str(i), subject=name, object=f"University of {name}")
        for i, name in enumerate(["Oslo", "Berlin", "Madrid", "Lisbon", "Vienna", "Athens"])
    ]
    assert known(by_spelling(chosen)).all()
    assert not known(by_spelling([fact(str(i), subject=f"{i}", object="xyz") for i in range(6)])).any()
