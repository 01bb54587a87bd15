"""FUAR of checkpoints: computed by hand, with the right earlier models, or left out."""

import math
import random
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.eval_harness.leaderboard.fuar_rows import fuar_rows
from temporalwiki.eval_harness.leaderboard.rows import Row, read_parquet, rows, write_parquet
from temporalwiki.eval_harness.results import read_results

from a_result import Item, clozes, facts, write_clozes, write_known, write_probes

BASE: dict[str, Any] = {"name": "base"}
FIRST = {"name": "runs/diff/0809", "method": "diff", "trained_on": ["diffset-0809"]}
SECOND = {"name": "runs/diff/0910", "method": "diff", "trained_on": ["diffset-0809", "diffset-0910"]}
# NLL a token by model on (0809 unchanged, 0809 changed, 0910 unchanged, 0910 changed)
LEVELS = {"base": (2.0, 5.0, 2.1, 6.0), "runs/diff/0809": (2.5, 4.0, 3.0, 5.5), "runs/diff/0910": (2.6, 4.5, 3.2, 4.0)}
SPREAD = (-0.2, -0.1, -0.05, 0.0, 0.0, 0.0, 0.1, 0.25)  # of eight facts around the level, the mean of it


def probes(level: float) -> list[Item]:
    return facts(*(level + off for off in SPREAD))


def write_months(folder: Path, *models: dict[str, Any], like: str | None = None) -> None:
    """Write the probes of both months for each model, with its levels or those of ``like``."""
    for model in models:
        levels = LEVELS[like or model["name"]]
        for month, (unchanged, changed) in (("0809", levels[:2]), ("0910", levels[2:])):
            splits = {"unchanged": probes(unchanged), "changed": probes(changed)}
            write_probes(folder, f"probes-{month}", splits, **model)


def found(folder: Path) -> list[Row]:
    results = read_results(folder)
    return fuar_rows(results, rows(results, folder), folder)


def values(folder: Path) -> dict[tuple[str, str | None, str], float]:
    return {(row.label, row.month, row.test): row.value for row in found(folder)}


# 2.5 - 2.0 forgotten for 5.0 - 4.0; then 2.6 - 2.0 and 3.2 - 3.0 for 6.0 - 4.0 and 5.5 - 4.0
BY_HAND = {("diff", "0809", "probes"): 0.5, ("diff", "0910", "probes"): 0.8 / 3.5}


def test_probes_by_hand(tmp_path: Path) -> None:
    write_months(tmp_path, BASE, FIRST, SECOND)
    assert values(tmp_path) == pytest.approx(BY_HAND)
    first, second = found(tmp_path)
    assert (first.task, first.kind, first.measure, first.higher_is_better) == ("fuar", "fuar", "fuar", False)
    assert (first.config, first.tested, second.config, second.tested) == ("probes-0809", "0809", "probes-0910", "0910")
    assert (first.model, first.items, first.clusters) == ("diff/0809", 16, 8)
    assert (second.items, second.clusters) == (24, 8)  # both months' unchanged facts, and the changed ones of its own
    assert (first.rank_best, first.rank_worst) == (None, None)
    assert second.result.endswith(".json") and (tmp_path / second.result).is_file()


def test_known_facts_in_several_forms_are_their_mean(tmp_path: Path) -> None:
    """It learned 30 and 12 of 60 facts, 21 on average, and forgot 10 and 6, which is 8."""
    results = [
        write_known(tmp_path, "base", 0, 10, 40, "probes-0809", cloze=(20, 30), **BASE),
        write_known(tmp_path, "diff", 0, 40, 30, "probes-0809", cloze=(32, 24), **FIRST),
    ]
    (row,) = fuar_rows(results, rows(results, tmp_path), tmp_path)
    assert row.value == pytest.approx(8 / 21)


def test_known_facts_by_hand(tmp_path: Path) -> None:
    """Of 60 facts: 40 - 37 and 38 - 36 forgotten, 25 - 10 and 25 - 15 gained."""
    levels = {"base": ((12, 40), (10, 40)), "0809": ((30, 39), (15, 38)), "0910": ((20, 37), (25, 36))}
    models = {"base": BASE, "0809": FIRST, "0910": SECOND}
    results = [
        write_known(tmp_path, model.get("method", "base"), 0, known, old, f"probes-{month}", **model)
        for name, model in models.items()
        for month, (known, old) in zip(("0809", "0910"), levels[name], strict=True)
    ]
    made = {row.month: row for row in fuar_rows(results, rows(results, tmp_path), tmp_path) if row.test == "known"}
    assert made["0809"].value == pytest.approx((40 - 39) / (30 - 12))
    assert made["0910"].value == pytest.approx(((40 - 37) + (38 - 36)) / ((25 - 10) + (25 - 15)))
    assert made["0910"].items == 3 * 60


def write_lama(
    folder: Path, model: dict[str, Any], invariant: int, updated: int, new: int, suffix: str = "", **more: Any
) -> None:
    for kind, hits in (("invariant", invariant), ("updated", updated), ("new", new)):
        write_clozes(folder, f"{kind}lama{suffix}", clozes(hits), **model, **more)


def test_clozes_by_hand(tmp_path: Path) -> None:
    """80 - 60 points forgotten for 40 - 10 and 50 - 0."""
    write_lama(tmp_path, BASE, 8, 1, 0)
    write_lama(tmp_path, FIRST, 6, 4, 5)
    [row] = found(tmp_path)
    assert (row.test, row.value, row.month, row.tested) == ("lama", pytest.approx(0.25), "0809", "0809")
    assert (row.config, row.items, row.clusters) == ("invariantlama, updatedlama, newlama", 30, 10)
    assert row.low is not None and row.high is not None and 0 <= row.low < row.value < row.high


def test_clozes_of_its_own_month_come_first(tmp_path: Path) -> None:
    """Configs without a month are used if the checkpoint's own month has no config."""
    for model, hits in ((BASE, (8, 1, 0)), (FIRST, (6, 4, 5))):
        write_lama(tmp_path, model, *hits, suffix="-0809")
        write_lama(tmp_path, model, 5, 5, 5)
        write_lama(tmp_path, model, 5, 5, 5, suffix="-0910")
        write_clozes(tmp_path, "newlama-easy", clozes(9), **model)
    assert values(tmp_path) == {("diff", "0809", "lama"): pytest.approx(0.25)}
    for path in tmp_path.glob("*/invariantlama-0809*"):
        path.unlink()
    assert values(tmp_path) == {("diff", "0809", "lama"): 0}


def test_a_corpus_of_no_month_has_clozes_alone(tmp_path: Path) -> None:
    news = {"name": "runs/news", "method": "lora", "trained_on": ["recent-news"]}
    write_lama(tmp_path, BASE, 8, 1, 0)
    write_lama(tmp_path, news, 6, 4, 5)
    write_months(tmp_path, BASE, news, like="base")
    assert values(tmp_path) == {("lora", None, "lama"): pytest.approx(0.25)}


def test_what_gained_nothing_is_infinite_and_may_have_an_end(tmp_path: Path) -> None:
    """One cloze lost and none won: no gain in any resample. One won and one lost: no gain in many of them."""
    write_lama(tmp_path, BASE, 8, 0, 0)
    write_lama(tmp_path, FIRST, 7, 0, 0)
    write_lama(tmp_path, SECOND, 7, 1, 0)
    nothing, little = found(tmp_path)
    assert (nothing.value, nothing.low, nothing.high) == (math.inf, math.inf, math.inf)
    assert (little.value, little.low, little.high) == (pytest.approx(1), 0, math.inf)
    write_parquet([nothing, little], tmp_path / "x.parquet")
    assert read_parquet(tmp_path / "x.parquet") == [nothing, little]


# The models that are compared


def test_the_base_itself_and_a_checkpoint_of_initial_are_the_same_model(tmp_path: Path) -> None:
    initial = {"name": "runs/initial", "method": "initial", "base": "base"}
    for month, (unchanged, changed) in (("0809", LEVELS["base"][:2]), ("0910", LEVELS["base"][2:])):
        model = initial if month == "0809" else BASE
        write_probes(
            tmp_path, f"probes-{month}", {"unchanged": probes(unchanged), "changed": probes(changed)}, **model
        )
    write_months(tmp_path, FIRST, SECOND)
    assert values(tmp_path) == pytest.approx(BY_HAND)


def test_initial_may_have_been_trained_before_the_first_month(tmp_path: Path) -> None:
    """The scored base model is not Initial, because the months started from another model."""
    before = ["wikipedia-08"]
    write_months(tmp_path, {**BASE, "method": "initial", "trained_on": before})
    write_months(tmp_path, *({**m, "trained_on": before + m["trained_on"]} for m in (FIRST, SECOND)))
    write_probes(tmp_path, "probes-0809", {"unchanged": probes(9), "changed": probes(9)}, name="raw", base="base")
    assert values(tmp_path) == pytest.approx(BY_HAND)


def test_a_model_that_was_trained_on_one_month_alone_is_compared_with_initial_alone(tmp_path: Path) -> None:
    """3.2 - 2.1 forgotten for 6.0 - 4.0: the model of 0809 has the same label but is no earlier phase."""
    write_months(tmp_path, BASE, FIRST, {**SECOND, "trained_on": ["diffset-0910"]})
    assert values(tmp_path) == pytest.approx({("diff", "0809", "probes"): 0.5, ("diff", "0910", "probes"): 1.1 / 2})


def test_each_label_and_base_has_its_own(tmp_path: Path) -> None:
    other = {"label": "again", "base": "large"}
    write_months(tmp_path, BASE, FIRST, SECOND)
    for model in (FIRST, SECOND):
        write_months(tmp_path, {**model, "name": f"{model['name']}/again", "label": "again"}, like=model["name"])
        write_months(tmp_path, {**model, **other, "name": f"{model['name']}/large"}, like=model["name"])
    again = {("again", month, test): value for (_, month, test), value in BY_HAND.items()}
    assert values(tmp_path) == pytest.approx(BY_HAND | again)  # of the base "large" there is no Initial


def test_months_have_two_names(tmp_path: Path) -> None:
    second = {**SECOND, "trained_on": ["diffset-0809", "diffset-20210901-20211001"]}
    write_months(tmp_path, BASE, FIRST, second)
    for path in tmp_path.glob("*/probes-0809*.json"):
        path.write_text(path.read_text("utf-8").replace("probes-0809", "probes-20210801-20210901"), "utf-8")
    assert {month: value for (_, month, _), value in values(tmp_path).items()} == pytest.approx(
        {"20210801-20210901": 0.5, "0910": 0.8 / 3.5}
    )


def test_two_learning_rates_under_one_label_are_two_lines(tmp_path: Path) -> None:
    slow = [{**model, "name": f"{model['name']}/slow", "learning_rate": 0.1} for model in (FIRST, SECOND)]
    write_months(tmp_path, BASE, FIRST, SECOND)
    for model, like in zip(slow, (FIRST, SECOND), strict=True):
        write_months(tmp_path, model, like=like["name"])
    assert [row.value for row in found(tmp_path)] == pytest.approx([0.5, 0.5, 0.8 / 3.5, 0.8 / 3.5])
    for model in slow:  # the same rate again: it could have been trained from either model
        write_months(tmp_path, {**model, "name": f"{model['name']}/er"}, like="base")
    assert [row.model for row in found(tmp_path) if row.month == "0910"] == ["diff/0910"]


LEFT_OUT = {
    "Initial": ("base-*/*", set()),
    "Initial on a month": ("base-*/probes-0910*", {"0809"}),
    "Initial on the first month": ("base-*/probes-0809*", set()),
    "the model between": ("0809-*/*", set()),
    "the model between on its month": ("0809-*/probes-0809*", {"0910"}),
    "the model between on the next": ("0809-*/probes-0910*", {"0809"}),
    "the last on its month": ("0910-*/probes-0910*", {"0809"}),
    "the last on the first month": ("0910-*/probes-0809*", {"0809"}),
    "the items of one": ("0910-*/probes-0910*.parquet", {"0809"}),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_without_a_score_that_it_needs_there_is_no_row(case: str, tmp_path: Path) -> None:
    pattern, left = LEFT_OUT[case]
    write_months(tmp_path, BASE, FIRST, SECOND)
    paths = list(tmp_path.glob(pattern))
    assert paths
    for path in paths:
        path.unlink()
    assert {month for _, month, _ in values(tmp_path)} == left


@pytest.mark.parametrize("kind", ["invariantlama", "updatedlama", "newlama"])
def test_without_one_of_the_clozes_there_is_no_row(kind: str, tmp_path: Path) -> None:
    write_lama(tmp_path, BASE, 8, 1, 0)
    write_lama(tmp_path, FIRST, 6, 4, 5)
    for path in tmp_path.glob(f"base-*/{kind}*"):
        path.unlink()
    assert found(tmp_path) == []


OTHERWISE: dict[str, dict[str, Any]] = {
    "other rows": {"rows": "-limit"},
    "other options": {"options": {"question": True}},
}


@pytest.mark.parametrize("case", OTHERWISE)
def test_models_that_were_asked_otherwise_are_not_compared(case: str, tmp_path: Path) -> None:
    write_lama(tmp_path, BASE, 8, 1, 0, **OTHERWISE[case])
    write_lama(tmp_path, FIRST, 6, 4, 5)
    assert found(tmp_path) == []
    write_lama(tmp_path, BASE, 8, 1, 0)
    assert len(found(tmp_path)) == 1


def test_models_that_left_out_other_items_are_not_compared(tmp_path: Path) -> None:
    write_lama(tmp_path, BASE, 8, 1, 0)
    write_lama(tmp_path, FIRST, 6, 4, 5)
    write_clozes(tmp_path, "newlama", clozes(5, of=9), **FIRST)
    assert found(tmp_path) == []


def test_a_corpus_that_comes_twice_has_no_next_month(tmp_path: Path) -> None:
    write_months(tmp_path, BASE, FIRST, {**SECOND, "trained_on": ["diffset-0809", "unchanged-0809"]})
    assert set(values(tmp_path)) == {("diff", "0809", "probes")}


def test_the_order_of_results_does_not_matter(tmp_path: Path) -> None:
    write_months(tmp_path, BASE, FIRST, SECOND)
    write_lama(tmp_path, BASE, 8, 1, 0)
    write_lama(tmp_path, SECOND, 6, 4, 5)
    results = read_results(tmp_path)
    expected = fuar_rows(results, rows(results, tmp_path), tmp_path)
    assert [row.test for row in expected] == ["lama", "probes", "probes"]
    for seed in range(3):
        shuffled = random.Random(seed).sample(results, len(results))
        assert fuar_rows(shuffled, rows(shuffled, tmp_path), tmp_path) == expected
