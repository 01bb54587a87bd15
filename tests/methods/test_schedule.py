"""Learning rates rise and fall as the papers say, however short the run, and steps are divided as asked."""

import itertools
import math
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from temporalwiki.base.errors import UsageError
from temporalwiki.methods.options import SCHEDULES, TrainOptions
from temporalwiki.methods.trainer import linear_to_half, micro_batches, schedule

import tiny_training

HIGHEST = 0.5


def rates(name: str, steps: int, warmup: float, earlier: Sequence[int] = ()) -> list[float]:
    """The learning rate of each step, and the one that stands there after the last (it is in the log)."""
    parameter = torch.nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([parameter], lr=HIGHEST)
    made = schedule(TrainOptions(schedule=name, warmup_ratio=warmup, learning_rate=HIGHEST), optimizer, steps, earlier)
    found = []
    for _ in range(steps):
        found.append(optimizer.param_groups[0]["lr"])
        assert made.get_last_lr() == found[-1:]
        optimizer.step()
        made.step()
    return [*found, optimizer.param_groups[0]["lr"]]


# number of the step with the highest rate, of 100 with a tenth of warm-up; shares of it at the first and last step
ENDS = {
    "one_cycle": (9, 1 / 25, 1 / 250_000),
    "linear_to_half": (10, 0.0, 1 - 0.5 * 89 / 90),
}


@pytest.mark.parametrize(("name", "peak", "first", "last"), [(name, *ends) for name, ends in ENDS.items()])
def test_the_papers_schedules_are_linear_on_both_sides(name: str, peak: int, first: float, last: float) -> None:
    found = rates(name, 100, 0.1)[:100]
    assert (found[0], found[-1]) == pytest.approx((first * HIGHEST, last * HIGHEST), rel=1e-9)
    assert max(found) == pytest.approx(HIGHEST) == found[peak]
    for part in (found[: peak + 1], found[peak:]):
        differences = [b - a for a, b in itertools.pairwise(part)]
        assert differences == pytest.approx([differences[0]] * len(differences), rel=1e-6)


SHARES = {
    # step, steps, rise: share
    "no rise, start": (0, 10, 0, 1.0),
    "no rise, middle": (5, 10, 0, 0.75),
    "no rise, end": (10, 10, 0, 0.5),
    "rise of one": (0, 10, 1, 0.0),
    "after a rise of one": (1, 10, 1, 1.0),
    "a rise all through": (9, 10, 10, 0.9),
    "its end": (10, 10, 10, 1.0),
    "one step": (0, 1, 0, 1.0),
}


@pytest.mark.parametrize(("step", "steps", "rise", "expected"), SHARES.values(), ids=SHARES)
def test_shares_of_linear_to_half_by_hand(step: int, steps: int, rise: int, expected: float) -> None:
    assert linear_to_half(step, steps, rise) == pytest.approx(expected)


def test_the_librarys_schedules_have_the_same_rise() -> None:
    # ten steps: two rise from zero; then down to nought in eight, or half a cosine, or not at all
    expected = {
        "linear": [0, 0.5, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8, 0],
        "cosine": [0, 0.5, *((1 + math.cos(math.pi * i / 8)) / 2 for i in range(9))],
        "constant": [0, 0.5, *[1.0] * 9],
    }
    for name, shares in expected.items():
        assert rates(name, 10, 0.2) == pytest.approx([share * HIGHEST for share in shares], abs=1e-12)


def test_wsd_rises_stays_and_falls_in_the_last_tenth() -> None:
    shares = [*(i / 4 for i in range(4)), *[1.0] * 14, 1.0, 0.5, 0]  # 20 steps: 4 rise, 2 fall
    assert rates("wsd", 20, 0.2) == pytest.approx([share * HIGHEST for share in shares], abs=1e-12)


def test_the_highest_rate_of_an_autoregressive_cosine_falls_from_month_to_month() -> None:
    """At the start of month n, a cosine over n months of equal length stands at (n - 1) / n of its way."""
    peaks = [max(rates("cosine_ar", 40, 0.1, [40] * earlier)) / HIGHEST for earlier in range(4)]
    assert peaks == pytest.approx([1, 0.5, (1 - 0.5) / 2, (1 - math.sqrt(0.5)) / 2], rel=1e-9)
    first, second = rates("cosine_ar", 40, 0.1), rates("cosine_ar", 40, 0.1, [40])
    assert first == pytest.approx(rates("cosine", 40, 0.1), abs=1e-12)
    assert second == pytest.approx([rate / 2 for rate in first], abs=1e-12)
    longer = max(rates("cosine_ar", 10, 0.0, [20, 10])) / HIGHEST  # months of other lengths: three quarters of the way
    assert longer == pytest.approx((1 - math.sqrt(0.5)) / 2, rel=1e-9)


def test_a_reciprocal_square_root_goes_on_over_months() -> None:
    """In months of 100 steps, ten rise and ten fall. In between it is sqrt(10 / step)."""
    months = [rates("rsqrt", 100, 0.1, [100] * earlier)[:100] for earlier in range(3)]
    for month, found in enumerate(months):
        expected = [HIGHEST * math.sqrt(10 / max(100 * month + step, 10)) for step in range(100)]
        expected[:10] = [rate * step / 10 for step, rate in enumerate(expected[:10])]
        expected[90:] = [rate * (10 - step) / 10 for step, rate in enumerate(expected[90:])]
        assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.usefixtures("quick")
def test_a_phase_goes_on_where_the_phases_before_it_ended(tmp_path: Path) -> None:
    """The manifest has the steps of earlier phases; each entry of the log has the rate of its step."""
    start: Path = tiny_training.write(tmp_path, "gpt2") / "gpt2"
    for phase, steps in enumerate((6, 4, 5)):
        output = tmp_path / f"phase {phase}"
        more = ("--schedule", "rsqrt", "--warmup-ratio", 0.5, "--max-steps", steps)
        tiny_training.train(tmp_path, "diff", start, output, *more)
        manifest = tiny_training.record(output)
        assert manifest.get("earlier_steps", []) == [6, 4][:phase]
        found = [entry["learning_rate"] for entry in manifest["log"]]
        whole = [1e-2 * math.sqrt(3 / max(sum([6, 4][:phase]) + step, 3)) for step in range(steps)]
        rising = [rate * min(1, step / round(steps / 2)) for step, rate in enumerate(whole)]
        assert found == pytest.approx(rising, rel=1e-6)
        start = output


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_run_of_any_length_moves_the_model(name: str) -> None:
    """A rate of nought at every step would be a run that does nothing and does not say so."""
    still = [(1, warmup) for warmup in (0.0, 0.1, 0.6, 0.9) if not any(rates(name, 1, warmup)[:1])]
    assert still == []


@given(st.sampled_from(SCHEDULES), st.integers(1, 200), st.integers(0, 99).map(lambda percent: percent / 100))
@example("one_cycle", 10, 0.1)
@example("one_cycle", 20, 0.05)
@example("one_cycle", 1, 0.5)
def test_any_number_of_steps_and_any_warm_up_have_rates(name: str, steps: int, warmup: float) -> None:
    found = rates(name, steps, warmup)
    assert all(0 <= rate <= HIGHEST * (1 + 1e-9) for rate in found)


def test_a_schedule_that_is_made_says_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in SCHEDULES:
            rates(name, 7, 0.1)


# -- a step in micro-batches -------------------------------------------------------------------------------------

# batch size, most at once, processes: size of a micro-batch, how many a process
CUTS = {
    "one process": ((64, 8, 1), (8, 8)),
    "eight": ((64, 8, 8), (8, 1)),
    "sixty in eights": ((60, 8, 1), (6, 10)),
    "sixty on four": ((60, 8, 4), (5, 3)),
    "a prime": ((7, 4, 1), (1, 7)),
    "all at once": ((7, 100, 1), (7, 1)),
    "one each": ((8, 100, 8), (1, 1)),
}


@pytest.mark.parametrize(("given_", "expected"), CUTS.values(), ids=CUTS)
def test_a_batch_is_cut_into_even_parts(given_: tuple[int, int, int], expected: tuple[int, int]) -> None:
    batch, most, processes = given_
    assert micro_batches(TrainOptions(batch_size=batch, micro_batch_size=most), processes) == expected


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 16))
def test_the_parts_make_up_the_batch_or_a_size_that_would_is_named(batch: int, most: int, processes: int) -> None:
    options = TrainOptions(batch_size=batch, micro_batch_size=most)
    if batch % processes:
        fitting = next(size for size in range(batch, batch + processes) if size % processes == 0)
        with pytest.raises(UsageError, match=f"use --batch-size {fitting}$"):
            micro_batches(options, processes)
    else:
        size, count = micro_batches(options, processes)
        assert size * count * processes == batch
        assert 1 <= size <= most
