"""Simulate how often intervals hold the truth, and how often equal models are called different.

    python benchmarks/coverage.py [--repeats 2000] [--seed 0] [--clusters 10 50 500]

prints the table of docs/evaluating.md as Markdown. A simulated score is the mean of facts whose values have mean 0 and
variance 1, half of it shared by the facts of a subject, plus an effect of the relation. Subjects have one to five
facts, and relations are of unequal size. Each model has one training run: differences between runs, which widen the
interval of several, are not simulated. Columns:

- bootstrap: coverage of the percentile bootstrap over subjects, as in version 1 of the tasks
- subjects, wider: coverage of the interval over subjects, and of the wider one of subjects and relations
- two-way: coverage of ``statistics.estimate``
- learned: coverage of the difference of changed and unchanged facts within relations, with effects on each side
- percent: coverage of a percentage whose true value is about 3
- error: how often ``compare`` gives two equal models p < 0.05
- ranks: how often any of five equal models gets another rank than the others
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from temporalwiki.eval_harness.statistics import MATCHED, PERCENT, Estimate, Items, compare, estimate, ranks

RELATIONS = {10: 10, 50: 20, 500: 40}  # number of subjects -> number of relations
EFFECT = 0.5  # standard deviation of relations
RARE = 1.88  # a value above it is a hit
TAILS = ("normal", "heavy", "skewed")
RESAMPLES = 500

Floats = npt.NDArray[np.float64]


class World:
    """Draws facts about a number of subjects."""

    def __init__(self, generator: np.random.Generator, subjects: int, related: bool, tails: str) -> None:
        """Draw the subject and the relation of each fact."""
        self.generator, self.tails, self.effect = generator, tails, EFFECT * related
        self.subjects = np.repeat(np.arange(subjects), generator.integers(1, 6, subjects))
        shares = np.arange(1, RELATIONS[subjects] + 1) ** -0.7
        self.relations = generator.choice(len(shares), len(self.subjects), p=shares / shares.sum())
        self.counts = subjects, len(shares)

    def noise(self, size: int) -> Floats:
        """Return values with mean 0 and variance 1."""
        if self.tails == "heavy":
            return self.generator.standard_t(3, size) / np.sqrt(3)
        return (
            self.generator.exponential(size=size) - 1 if self.tails == "skewed" else self.generator.normal(size=size)
        )

    def values(self) -> Floats:
        """Return the values of all facts."""
        subjects, relations = self.counts
        shared = self.noise(subjects)[self.subjects] + self.noise(len(self.subjects))
        return np.sqrt(0.5) * shared + self.effect * self.generator.normal(size=relations)[self.relations]

    def items(self, values: npt.ArrayLike) -> Items:
        """Return the facts with these values."""
        return Items(values, 1, self.subjects.tolist(), range(len(self.subjects)), self.relations.tolist())


def holds(found: Estimate, truth: float = 0.0) -> bool:
    """Return whether an interval holds the truth."""
    return found.low is not None and found.high is not None and found.low <= truth <= found.high


def bootstrap(world: World, values: Floats) -> bool:
    """Return whether the percentile bootstrap over subjects holds 0."""
    sums, counts = np.bincount(world.subjects, values), np.bincount(world.subjects)
    drawn = world.generator.integers(len(sums), size=(RESAMPLES, len(sums)))
    low, high = np.quantile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), (0.025, 0.975))
    return bool(low <= 0 <= high)


def once(world: World, rate: float) -> list[bool]:
    """Return what happens in one simulation, in the order of the columns."""
    values = world.values()
    items = world.items(values)
    two_way, of_subjects = estimate([items]), estimate([items._replace(relations=())])
    wider = of_subjects
    if len(set(items.relations)) > 1:
        of_relations = estimate([items._replace(clusters=items.relations, relations=())])
        wider = max((of_subjects, of_relations), key=lambda found: (found.high or 0) - (found.low or 0))
    other = World(world.generator, world.counts[0], world.effect > 0, world.tails)
    learned = estimate([world.items(world.values()), other.items(other.values())], MATCHED)
    percent = estimate([world.items(100.0 * (world.values() > RARE))], PERCENT)
    hard = world.values()  # what is difficult is difficult for all models
    p_value = compare([world.items(hard + world.values())], [world.items(hard + values)]).p_value
    five = ranks([world.items([hard + world.values() for _ in range(5)])], higher_is_better=True)
    return [
        bootstrap(world, values),
        holds(of_subjects),
        holds(wider),
        holds(two_way),
        holds(learned),
        holds(percent, 100 * rate),
        p_value is not None and p_value < 0.05,
        five is not None and any(own != (1, 5) for own in five),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--clusters", type=int, nargs="+", default=list(RELATIONS), choices=list(RELATIONS))
    options = parser.parse_args(arguments)
    columns = ("bootstrap", "subjects", "wider", "two-way", "learned", "percent", "error", "ranks")
    print("| subjects | relations | effect | tails |", " | ".join(columns), "|")
    print("|---:|---:|---:|---|" + "---:|" * len(columns))
    for subjects, related, tails in product(options.clusters, (False, True), TAILS):
        generator = np.random.default_rng([options.seed, subjects, related, TAILS.index(tails)])
        large = (World(generator, 500, related, tails).values() for _ in range(400))
        rate = float(np.mean([(values > RARE).mean() for values in large]))
        drawn = [once(World(generator, subjects, related, tails), rate) for _ in range(options.repeats)]
        shares = np.mean(drawn, axis=0)
        effect = EFFECT if related else 0
        shown = " | ".join(f"{share:.3f}".lstrip("0") for share in shares)
        print(f"| {subjects} | {RELATIONS[subjects]} | {effect:g} | {tails} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
