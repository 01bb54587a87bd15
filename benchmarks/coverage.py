"""Simulate how often intervals hold the truth, and how often equal methods are called different.

    python benchmarks/coverage.py [--repeats 1000] [--seed 0] [--relations 3 5 10 30] [--runs 1 3 5]

prints Markdown; docs/performance.md has its ranges. The facts of a relation stand in panels of six to ten, and a
simulated model knows each fact with a probability of its relation's. All cells of the panels have noise, so facts
that it does not know are known by chance. Relations are of unequal size, subjects have one to three facts, and each
training run adds something to all of a relation's probabilities, or nothing. Columns:

- new known: coverage of the percentage of known facts
- learned: coverage of the difference to a start model, fact by fact, in points
- text: coverage of a mean of numbers that facts of a relation and of a subject share
- compare: how often ``compare`` calls two equal methods different
- alone: the same if each method has one run, and the spread is that of five runs of another method
- ranks: how often any of five equal methods gets another rank than the others
- count: as many equal relations weigh as much (the mean of what is stored with a score)
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from temporalwiki.eval_harness.known import FEWEST, MOST, known
from temporalwiki.eval_harness.statistics import (
    PERCENT,
    POINTS,
    Estimate,
    Items,
    compare,
    estimate,
    ranks,
    spread_of,
)

FACTS = 24  # of a relation, on average
BOUND = 4.0  # nats by which a subject prefers an object that it knows
RELATION, RUN = 1.0, 0.5  # standard deviations of what relations and runs add to the log odds of knowing a fact

Floats = npt.NDArray[np.float64]


@dataclass
class World:
    """Facts in panels, and models that know some of them."""

    generator: np.random.Generator
    relations: int
    effect: float  # of relations
    spread: float  # of runs

    def __post_init__(self) -> None:
        """Draw the size of each relation and the subject of each fact."""
        shares = np.arange(1, self.relations + 1) ** -0.7
        sizes = np.maximum(FEWEST, np.round(FACTS * self.relations * shares / shares.sum())).astype(int)
        self.of = np.repeat(np.arange(self.relations), self.generator.permutation(sizes))
        pool = self.generator.permutation(len(self.of))
        self.subjects = pool // self.generator.integers(1, 4)
        each = [np.flatnonzero(self.of == relation) for relation in range(self.relations)]
        self.panels = [part for facts in each for part in np.array_split(facts, -(-len(facts) // MOST))]
        self.odds = self.effect * self.generator.normal(size=self.relations)

    def model(self, odds: Floats, mean: float, spread: float) -> Floats:
        """Return which facts a run knows, 0 or 1, measured in panels."""
        run = spread * self.generator.normal(size=self.relations)
        run = run / np.sqrt(2) + spread * self.generator.normal() / np.sqrt(2)
        knows = self.generator.random(len(self.of)) < 1 / (1 + np.exp(-(mean + odds + run)[self.of]))
        found = np.zeros(len(self.of))
        for panel in self.panels:
            cells = self.generator.normal(size=(len(panel), len(panel)))
            cells[np.diag_indices(len(panel))] += BOUND * knows[panel]
            found[panel] = known(cells)
        return found

    def runs(self, count: int, mean: float = 0.0) -> Floats:
        """Return the runs of a method, [runs, facts]."""
        own = self.odds + self.effect / 2 * self.generator.normal(size=self.relations)
        return np.stack([self.model(own, mean, self.spread) for _ in range(count)])

    def texts(self, count: int) -> Floats:
        """Return numbers with the mean 0 that facts of a relation and of a subject share, [runs, facts]."""
        draw = self.generator.normal
        shared = self.effect / 2 * draw(size=self.relations)[self.of] + draw(size=len(self.of))[self.subjects]
        own = shared + draw(size=len(self.of))
        return np.stack([own + self.spread * draw() + 0.3 * draw(size=len(self.of)) for _ in range(count)])

    def items(self, values: npt.ArrayLike) -> Items:
        """Return the facts with these values."""
        return Items(values, 1, self.subjects.tolist(), range(len(self.of)), self.of.tolist())


def holds(found: Estimate, truth: float) -> bool:
    """Return whether an interval holds the truth."""
    return found.low is not None and found.high is not None and found.low <= truth <= found.high


def once(world: World, runs: int) -> tuple[list[float], list[Estimate], list[float]]:
    """Return the scores of one simulation, their estimates, and what happens to equal methods."""
    models = [world.runs(runs) for _ in range(5)]
    items = [world.items(100 * model) for model in models]
    start = world.model(world.odds, -1.0, 0.0)  # one given model
    estimates = [
        estimate([items[0]], PERCENT),
        estimate([world.items(100 * (models[0] - start))], POINTS),
        estimate([world.items(world.texts(runs))]),
    ]
    two = compare([items[0]], [items[1]], PERCENT).p_value
    spread = spread_of([world.items(100 * world.runs(5))], PERCENT)
    ones = [item._replace(numerators=np.asarray(item.numerators)[:1]) for item in items[:2]]
    alone = compare(ones[:1], ones[1:], PERCENT, spread=spread).p_value
    together = world.items(100 * np.concatenate(models))
    five = ranks([together], PERCENT, higher_is_better=True, runs=[runs] * 5)
    different = [two is not None and two < 0.05, alone is not None and alone < 0.05]
    different.append(five is not None and any(own != (1, 5) for own in five))
    return [found.value for found in estimates], estimates, [float(one) for one in different]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--relations", type=int, nargs="+", default=[3, 5, 10, 30])
    parser.add_argument("--runs", type=int, nargs="+", default=[1, 3, 5])
    options = parser.parse_args(arguments)
    columns = ("new known", "learned", "text", "compare", "alone", "ranks", "count")
    print("| relations | effect | runs |", " | ".join(columns), "|")
    print("|---:|---:|---:|" + "---:|" * len(columns))
    for relations, effect, runs in product(options.relations, (0.0, RELATION), options.runs):
        generator = np.random.default_rng([options.seed, relations, int(effect > 0), runs])
        # the interval of one run leaves the differences between runs out
        spread = RUN if runs > 1 else 0.0
        drawn = [once(World(generator, relations, effect, spread), runs) for _ in range(options.repeats)]
        truth = np.mean([values for values, _, _ in drawn], axis=0)
        truth[2] = 0
        held = np.mean([[holds(*pair) for pair in zip(of, truth, strict=True)] for _, of, _ in drawn], axis=0)
        wrong = np.mean([different for _, _, different in drawn], axis=0)
        shown = " | ".join(f"{share:.3f}".removeprefix("0") for share in (*held, *wrong))
        count = np.mean([of[0].relations for _, of, _ in drawn if of[0].relations])
        print(f"| {relations} | {effect:g} | {runs} | {shown} | {count:.1f} |", flush=True)


if __name__ == "__main__":
    main()
