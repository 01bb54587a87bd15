"""Each measure computed by hand, and the items that count for it."""

import math
from typing import Any

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.measures import MEASURES, columns_of, composition, earned, higher_is_better, scores
from temporalwiki.eval_harness.statistics import Estimate

LN2 = math.log(2)
# figures of two items -> the score
BY_HAND: dict[str, tuple[dict[str, Any], dict[str, Any], float]] = {
    # exp of 9 nats over 3 tokens
    "perplexity": ({"nll": 2.0, "tokens": 1}, {"nll": 7.0, "tokens": 2}, math.exp(3)),
    # the mean of exp(2) and exp(3.5)
    "perplexity_instance_mean": (
        {"nll": 2.0, "tokens": 1},
        {"nll": 7.0, "tokens": 2},
        (math.exp(2) + math.exp(3.5)) / 2,
    ),
    "object_perplexity": (
        {"nll": 99.0, "tokens": 9, "object_nll": 1.0, "object_tokens": 1},
        {"nll": 99.0, "tokens": 9, "object_nll": 5.0, "object_tokens": 2},
        math.exp(2),
    ),
    # 3 + 9 bits over 4 + 2 bytes
    "bits_per_byte": ({"nll": 3 * LN2, "bytes": 4}, {"nll": 9 * LN2, "bytes": 2}, 2.0),
    "proper_noun_perplexity": (
        {"nll": 99.0, "proper_noun_nll": 1.0, "proper_noun_tokens": 1},
        {"nll": 99.0, "proper_noun_nll": 8.0, "proper_noun_tokens": 2},
        math.exp(3),
    ),
    "proper_noun_bits_per_byte": (
        {"nll": 99.0, "proper_noun_nll": 2 * LN2, "proper_noun_bytes": 6},
        {"nll": 99.0, "proper_noun_nll": LN2, "proper_noun_bytes": 6},
        0.25,
    ),
    "margin": ({"margin": -1.0}, {"margin": 4.0}, 1.5),
    "new_known": ({"known": 1.0}, {"known": 0.0}, 50),
    "old_known": ({"known": 1.0}, {"known": 0.0}, 50),
    "learned": ({"known": 1.0, "start_known": 0.0}, {"known": 0.0, "start_known": 0.0}, 50),
    "forgotten": ({"known": 1.0, "start_known": 0.0}, {"known": 1.0, "start_known": 1.0}, -50),
}
COMPARED = {"let_go", "over_unchanged"}  # with unchanged facts
IN_PANELS = {"new_known", "old_known", "learned", "forgotten", "corrected"}
ALONE = [measure for measure in MEASURES if measure not in COMPARED]
PERCENTAGES = sorted(set(ALONE) - set(BY_HAND))


def item(name: str, figures: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "cluster": name, **figures}


def score(measure: str, *figures: dict[str, Any]) -> Any:
    found = scores({"test": [[item(str(i), of) for i, of in enumerate(figures)]]}, [measure])
    return found.get(f"test/{measure}")


@pytest.mark.parametrize("measure", BY_HAND)
def test_by_hand(measure: str) -> None:
    *figures, expected = BY_HAND[measure]
    found = score(measure, *figures)
    assert found.value == pytest.approx(expected)
    assert (found.items, found.clusters) == (2, 2)
    assert found.low <= found.value <= found.high


@pytest.mark.parametrize("measure", PERCENTAGES)
def test_the_others_are_percentages(measure: str) -> None:
    """1 of 1, 0 of 1 and half of 1 is 50 percent of 3."""
    assert score(measure, {measure: 1.0}, {measure: 0.0}, {measure: 0.5}).value == pytest.approx(50)


@pytest.mark.parametrize("measure", ALONE)
def test_an_item_without_the_figure_does_not_count(measure: str) -> None:
    """Items without the figure, or with None, do not count; without items there is no score."""
    figures = BY_HAND[measure][0] if measure in BY_HAND else {measure: 1.0}
    nothing = dict.fromkeys(figures)
    found, alone = score(measure, figures, nothing, {}), score(measure, figures)
    assert (found.value, found.items) == (alone.value, 1)
    assert score(measure, nothing, {}) is None
    assert score(measure) is None


def test_a_zero_is_a_figure() -> None:
    assert score("exact_match", {"exact_match": 0.0}, {"exact_match": 1.0}).value == 50
    assert score("perplexity", {"nll": 0.0, "tokens": 3}).value == 1


def test_the_average_is_the_mean_of_the_groups_whatever_their_size() -> None:
    unchanged = [item(str(i), {"exact_match": 1.0, "f1": 1.0}) for i in range(9)]
    changed = [item("x", {"exact_match": 0.0})]
    tests = {"unchanged": [unchanged], "changed": [changed], "average": [unchanged, changed]}
    found = scores(tests, ["exact_match", "f1"])
    assert {name: of.value for name, of in found.items()} == {
        "unchanged/exact_match": 100,
        "unchanged/f1": 100,
        "changed/exact_match": 0,
        "average/exact_match": 50,  # the mean of 100 and 0; F1 has no average because no changed item has it
    }
    assert found["average/exact_match"].items == 10


def test_a_subject_is_drawn_with_all_its_items() -> None:
    """One subject gives no interval, even with many items."""
    items = [{"id": str(i), "cluster": "Q1", "exact_match": i % 2} for i in range(10)]
    found = scores({"test": [items]}, ["exact_match"])["test/exact_match"]
    assert (found.value, found.low, found.high, found.items, found.clusters) == (50, None, None, 10, 1)


def test_no_tests_no_scores() -> None:
    assert scores({}, list(MEASURES)) == {}
    assert scores({"test": []}, list(MEASURES)) == {}


@pytest.mark.filterwarnings("ignore:overflow")
def test_what_is_no_number_is_an_error_not_a_score() -> None:
    with pytest.raises(InputError, match="finite"):
        score("perplexity", {"nll": float("nan"), "tokens": 2})
    with pytest.raises(InputError, match="finite"):
        score("perplexity", {"nll": 1e6, "tokens": 1})


def test_over_unchanged_by_hand() -> None:
    """9 nats over 3 tokens against 4 over 2: exp(3 - 2)."""
    facts = [item("a", {"object_nll": 4.0, "object_tokens": 1}), item("b", {"object_nll": 5.0, "object_tokens": 2})]
    control = [item("c", {"object_nll": 4.0, "object_tokens": 2})]
    found = scores({"deleted": [facts, control]}, ["over_unchanged"])["deleted/over_unchanged"]
    assert (found.value, found.items, found.clusters) == (pytest.approx(math.e), 3, 3)
    assert found.low is None  # because the control has only one cluster


def test_let_go_by_hand() -> None:
    """Two of three deleted facts that the start model knew, and one of two unchanged ones, are not known any more."""
    deleted = [item(str(i), {"let_go": value}) for i, value in enumerate((1.0, 1.0, 0.0, None))]
    unchanged = [item(f"u{i}", {"let_go": value}) for i, value in enumerate((1.0, 0.0))]
    assert scores({"deleted": [deleted, unchanged]}, ["let_go"])["deleted/let_go"].value == pytest.approx(100 / 6)


LOWER = (
    "forgotten",
    "perplexity",
    "perplexity_instance_mean",
    "object_perplexity",
    "over_unchanged",
    "bits_per_byte",
    "proper_noun_perplexity",
    "proper_noun_bits_per_byte",
)
# a model that knows nothing never gives the old answer
NEITHER = ("chance", "old_exact_match", "old", "both", "neither", "abstained", "judge_agreement")


@pytest.mark.parametrize("measure", MEASURES)
def test_which_end_is_the_better(measure: str) -> None:
    assert higher_is_better("any", measure) == (None if measure in NEITHER else measure not in LOWER)
    assert higher_is_better("deleted", measure) == (True if measure == "let_go" else None)


@pytest.mark.parametrize(("measure", "low", "chance", "competes"), [
    ("acc", 51.0, 50.0, True), ("acc", 49.0, 50.0, False), ("acc_norm", None, 50.0, False),
    ("new_known", 17.1, 17.0, True), ("new_known", 16.9, 17.0, False), ("old_known", None, 17.0, False),
    ("margin", 0.1, 50.0, True), ("margin", -0.1, 50.0, False), ("exact_match", 0.0, 0.0, True),
    ("let_go", 0.1, 0.0, True), ("let_go", -0.1, 0.0, False), ("let_go", None, 0.0, False),
])  # fmt: skip
def test_a_score_must_be_better_than_that_of_a_model_without_knowledge(
    measure: str, low: float | None, chance: float, competes: bool
) -> None:
    assert earned(measure, Estimate(90.0, low, low and 100.0, 9, 9), chance) is competes


# Composition of a score


def of_split(split: str, *figures: dict[str, Any], kind: str = "") -> list[dict[str, Any]]:
    return [item(f"{split}{i}", {"split": split, "kind": kind, **of}) for i, of in enumerate(figures)]


@pytest.mark.parametrize("stage", ["", "light-tuned/", "</script>/"])
@pytest.mark.parametrize("measure", [measure for measure in ALONE if measure not in IN_PANELS])
def test_a_score_is_found_in_its_items(measure: str, stage: str) -> None:
    figures = BY_HAND[measure][:2] if measure in BY_HAND else ({measure: 1.0}, {measure: 0.0})
    unchanged = of_split(f"{stage}unchanged", *figures, dict.fromkeys(figures[0]))
    changed = of_split(f"{stage}changed", figures[0])
    other = of_split("other", *figures, *figures)
    tests = {f"{stage}unchanged": [unchanged], f"{stage}changed": [changed], f"{stage}average": [unchanged, changed]}
    expected = scores(tests, [measure])
    assert len(expected) == 3
    for name, of in expected.items():
        found = composition(columns_of([*changed, *other, *unchanged]), name.rpartition("/")[0], measure)
        assert found is not None
        assert (found.value, sum(len(group.ids) for group in found.groups)) == (pytest.approx(of.value), of.items)
        assert found.scale is MEASURES[measure].scale


def test_items_without_splits_are_of_one_test() -> None:
    found = composition(columns_of([item("a", {"acc": 1.0}), item("b", {"acc": 0.0})]), "zero-shot", "acc")
    assert found is not None and found.value == 50


def test_a_kind_of_deleted_facts_and_what_it_is_compared_with() -> None:
    gone = of_split("deleted", {"object_nll": 6.0, "object_tokens": 2}, kind="ended")
    gone += of_split("deleted", {"object_nll": 9.0, "object_tokens": 2}, kind="replaced")
    kept = of_split("unchanged", {"object_nll": 1.0, "object_tokens": 1}, kind="ended")
    items = columns_of([*gone, *kept])
    for test, of in (("ended", gone[:1]), ("replaced", gone[1:]), ("deleted", gone)):
        perplexity, over = (composition(items, test, measure) for measure in ("object_perplexity", "over_unchanged"))
        assert perplexity is not None and over is not None
        assert perplexity.value == pytest.approx(score("object_perplexity", *of).value)
        expected = scores({test: [of, kept]}, ["over_unchanged"])[f"{test}/over_unchanged"]
        assert over.value == pytest.approx(expected.value)


# form, split, known, strict
PANELS = [
    ("name", "changed", 1.0, True),
    ("name", "changed", 0.0, False),
    ("name", "unchanged", 1.0, True),
    ("cloze", "changed", 1.0, True),
    ("cloze", "changed", 1.0, False),
    ("cloze", "unchanged", 0.0, None),
    ("spelling", "changed", 0.0, True),
    ("spelling", "unchanged", 1.0, True),
]


@pytest.mark.parametrize(
    ("test", "new", "old"),
    [
        ("all", 75, 50),  # the mean of 50 and 100, and of 100 and 0
        ("strict", 100, 100),  # no fact as a cloze is strict and unchanged
        ("stated", None, None),  # the items lack the column
        ("name/all", 50, 100),
        ("cloze/all", 100, 0),
        ("worst/all", 50, 0),
        ("spelling/all", 0, 100),
        ("reverse/all", None, None),
    ],
)
def test_forms_and_subsets_of_facts_in_panels(test: str, new: float | None, old: float | None) -> None:
    items = columns_of(
        [
            item(str(i), {"form": form, "split": split, "known": known, "strict": strict, "start_known": 1 - known})
            for i, (form, split, known, strict) in enumerate(PANELS)
        ]
    )
    found = {measure: composition(items, test, measure) for measure in ("new_known", "old_known", "learned")}
    assert [found[name] and found[name].value for name in ("new_known", "old_known")] == [new, old]  # type: ignore[union-attr]
    assert found["learned"] is None or found["learned"].value == pytest.approx(2 * (new or 0) - 100)


def test_the_worst_form_is_the_one_that_forgot_most() -> None:
    figures = (("name", 1.0), ("cloze", 0.0))
    items = columns_of(
        [item(f, {"form": f, "split": "unchanged", "known": known, "start_known": 1.0}) for f, known in figures]
    )
    found = composition(items, "worst/all", "forgotten")
    assert found is not None and found.value == 100


NOT_KNOWN: dict[str, tuple[str, str]] = {
    "a test of no items": ("removed", "object_perplexity"),
    "not a measure": ("deleted", "luck"),
    "a figure that items lack": ("deleted", "f1"),
    "an average of one": ("average", "object_perplexity"),
}


@pytest.mark.parametrize("case", NOT_KNOWN)
def test_what_is_not_known_is_not_guessed(case: str) -> None:
    items = columns_of(of_split("deleted", {"object_nll": 6.0, "object_tokens": 2}, kind="ended"))
    assert composition(items, *NOT_KNOWN[case]) is None
    assert composition(items, "deleted", "over_unchanged") is None  # nothing is unchanged


def test_what_must_be_equal_for_two_scores_to_be_compared() -> None:
    """Two models are comparable if items, clusters and tokens agree; their scores may differ."""
    one = {"nll": 1.0, "tokens": 2, "bytes": 9}

    def asked(measure: str, **changes: Any) -> Any:
        found = composition(columns_of([item("a", one), {**item("b", one), **changes}]), "changed", measure)
        assert found is not None
        return found.asked

    for measure in ("perplexity", "perplexity_instance_mean", "bits_per_byte"):
        assert asked(measure) == asked(measure, nll=5.0)
        assert asked(measure) != asked(measure, id="c")
        assert asked(measure) != asked(measure, cluster="a")
        assert (asked(measure) == asked(measure, tokens=3)) == (measure == "bits_per_byte")
        assert (asked(measure) == asked(measure, bytes=8)) == (measure != "bits_per_byte")
