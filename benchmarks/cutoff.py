"""Measure how sure ``temporalwiki cutoff`` is.

    python benchmarks/cutoff.py [--repeats 100] [--seed 1] [--only NAME]

It prints the table of docs/cutoff.md as Markdown: simulated items without a model, of fixed scenarios
and of scenarios that are drawn at random. A simulated item has noise, effects of its page, relation and month, and a
trend that is not knowledge. If the model is able to know the change, it prefers the new side up to the cutoff, and the
old side after it.

Columns:

- found, before, after, cannot tell: how often each verdict is given
- bias: the mean difference between the cutoff that is found and the planted one, in months
- coverage: how often the 95 % interval of a cutoff that is found holds the planted one, with Wilson's 95 % interval
- width: months from the low to the high end of the interval, on average
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from temporalwiki.eval_harness.cutoff import Cutoff, Item, find_cutoff

FIRST = 2021 * 12
VERDICTS = ("found", "before the data", "after the data", "cannot tell")


@dataclass(frozen=True)
class Scenario:
    """Simulated changes and what a model knows of them."""

    months: int = 12
    items: int = 60  # a month, on average
    relations: int = 12
    cutoff: int | None = 6  # months of the data that the model has read; None: it knows nothing
    plateau: float = 0.6  # share of changes that it knows before
    ramp: int = 1  # months over which this share falls to 0
    staggered: int = 0  # the largest distance of a relation's cutoff, in months
    trend: float = 0.0  # of evidence without knowledge, over all months
    jitter: float = 0.1  # standard deviation of a month's effect without knowledge
    page: float = 0.4  # standard deviations of the effects of pages and relations
    relation: float = 0.7
    tails: str = "heavy"
    novelty: float = 0.0  # of evidence without knowledge, in all months
    memory: float = 0.0  # correlation of the effects of neighbouring months
    shuffled: bool = False  # months are shuffled
    panel: bool = False  # a reference model tells the difficulty of each item


def draw(scenario: Scenario, generator: np.random.Generator) -> list[Item]:
    """Return the items of a scenario."""
    n = max(1, generator.poisson(scenario.items * scenario.months))
    month = generator.choice(scenario.months, n, p=generator.dirichlet(np.full(scenario.months, 8.0)))
    shares = np.arange(1, scenario.relations + 1) ** -0.8
    relation = generator.choice(scenario.relations, n, p=shares / shares.sum())
    pages = max(1, n // 2)
    page = generator.integers(pages, size=n)
    noise = {"heavy": generator.standard_t(3, n) / 1.5, "normal": generator.normal(size=n)}[scenario.tails]
    evidence = noise + scenario.page * generator.normal(size=pages)[page]
    evidence += scenario.relation * generator.normal(size=scenario.relations)[relation]
    effects = generator.normal(size=scenario.months)
    for i in range(1, scenario.months):
        effects[i] = scenario.memory * effects[i - 1] + np.sqrt(1 - scenario.memory**2) * effects[i]
    evidence += scenario.novelty + (scenario.jitter * effects)[month]
    evidence += scenario.trend * (month / (scenario.months - 1) - 0.5)
    # a reference model shares all effects with the model, but not the noise of an item
    difficulty = evidence - noise + generator.permutation(noise) if scenario.panel else [None] * n
    if scenario.cutoff is not None:
        late = generator.integers(-scenario.staggered, scenario.staggered + 1, scenario.relations)[relation]
        f = np.clip((scenario.cutoff + late - 0.5 + scenario.ramp / 2 - month) / scenario.ramp, 0, 1)
        able = generator.random(n) < scenario.plateau * generator.beta(8, 4, scenario.relations)[relation] * 1.5
        knows = generator.random(n) < f
        evidence += np.where(able, np.where(knows, 1.8, -1.5), 0.0)
    if scenario.shuffled:
        month = generator.permutation(month)
    return [
        Item(FIRST + int(m), f"P{r}", f"Q{p}", float(e), 0.0, None if d is None else float(d))
        for m, r, p, e, d in zip(month, relation, page, evidence, difficulty, strict=True)
    ]


BASE = Scenario()
SCENARIOS = {
    "base": BASE,
    "early": replace(BASE, cutoff=2),
    "late": replace(BASE, cutoff=10),
    "few items": replace(BASE, items=10),
    "many items": replace(BASE, items=300),
    "six months": replace(BASE, months=6, cutoff=3),
    "two years": replace(BASE, months=24, cutoff=15, items=30),
    "little knowledge": replace(BASE, plateau=0.2),
    "ramp 3": replace(BASE, ramp=3),
    "ramp 5": replace(BASE, ramp=5),
    "trend down": replace(BASE, trend=-0.6),
    "trend up": replace(BASE, trend=0.6),
    "noisy months": replace(BASE, jitter=0.3),
    "three relations": replace(BASE, relations=3),
    "staggered": replace(BASE, staggered=2),
    "before": replace(BASE, cutoff=0),
    "before, all": replace(BASE, cutoff=0, plateau=1.0),
    "after": replace(BASE, cutoff=12),
    "after, all": replace(BASE, cutoff=12, plateau=1.0),
    "nothing": replace(BASE, cutoff=None),
    "nothing, many items": replace(BASE, cutoff=None, items=300),
    "nothing, few items": replace(BASE, cutoff=None, items=8),
    "nothing, trend": replace(BASE, cutoff=None, trend=-0.8, items=200),
    "nothing, six months": replace(BASE, cutoff=None, months=6),
    "nothing, two years": replace(BASE, cutoff=None, months=24),
    "nothing, three relations": replace(BASE, cutoff=None, relations=3, items=200),
    "nothing, noisy months": replace(BASE, cutoff=None, jitter=0.4),
    "nothing, new names": replace(BASE, cutoff=None, novelty=-0.6, items=200),
    "nothing, months alike": replace(BASE, cutoff=None, memory=0.6, jitter=0.2),
    "placebo": replace(BASE, shuffled=True),
    "placebo, many items": replace(BASE, shuffled=True, items=300),
    "placebo, six months": replace(BASE, shuffled=True, months=6, cutoff=3),
    "nothing, months alike, panel": replace(BASE, cutoff=None, memory=0.6, jitter=0.2, panel=True),
    "months alike": replace(BASE, memory=0.6, jitter=0.2),
    "months alike, panel": replace(BASE, memory=0.6, jitter=0.2, panel=True),
}


HEAD = """| scenario | found | before | after | cannot tell | bias | coverage | width |
|---|--:|--:|--:|--:|--:|--:|--:|"""
FRESH = 12  # drawn scenarios for each repeat of a fixed one


def drawn(generator: np.random.Generator, kind: str) -> Scenario:
    """Return a scenario at random: of a model that knows something, or nothing, or with shuffled months."""
    months = int(generator.integers(6, 25))
    return Scenario(
        months=months,
        items=int(np.exp(generator.uniform(np.log(4), np.log(300)))),
        relations=int(generator.integers(2, 31)),
        cutoff=None if kind == "nothing" else int(generator.integers(1, months)),
        plateau=generator.uniform(0.1, 1.0),
        ramp=int(generator.choice([1, 1, 3, 5])),
        trend=generator.uniform(-0.8, 0.8),
        jitter=generator.uniform(0.0, 0.3),
        page=generator.uniform(0.0, 1.0),
        relation=generator.uniform(0.0, 1.5),
        tails=str(generator.choice(["heavy", "normal"])),
        novelty=generator.uniform(-0.5, 0.3),
        memory=generator.uniform(0.0, 0.3),
        shuffled=kind == "placebo",
    )


def row(name: str, found: Sequence[tuple[Cutoff, int | None]]) -> str:
    """Return a row of the table: a name, and verdicts with the planted cutoffs."""
    verdicts = Counter(cutoff.verdict for cutoff, _ in found)
    cells = [name, *(f"{verdicts[verdict] / len(found):.3f}" for verdict in VERDICTS)]
    pairs = [(cutoff, truth) for cutoff, truth in found if cutoff.verdict == "found" and truth is not None]
    if pairs:
        held = sum(cutoff.low <= truth <= cutoff.high for cutoff, truth in pairs)
        cells += [f"{np.mean([cutoff.cutoff - truth for cutoff, truth in pairs]):+.2f}"]
        cells += [wilson(held, len(pairs)), f"{np.mean([cutoff.high - cutoff.low for cutoff, _ in pairs]):.1f}"]
    return "| " + " | ".join([*cells, *[""] * (8 - len(cells))]) + " |"


def wilson(hits: int, of: int) -> str:
    """Return a share with Wilson's 95 % interval."""
    share, square = hits / of, 1.96**2 / of
    middle, half = share + square / 2, np.sqrt(square * (share * (1 - share) + square / 4))
    return f"{share:.3f} [{(middle - half) / (1 + square):.3f}, {(middle + half) / (1 + square):.3f}]"


def simulate(repeats: int, seed: int, only: str) -> None:
    """Print the table of fixed scenarios, then the rows of drawn ones."""
    print(HEAD)
    for number, (name, scenario) in enumerate(SCENARIOS.items()):
        if only in name:
            generators = [np.random.default_rng([seed, number, i]) for i in range(repeats)]
            print(row(name, [judged(scenario, generator) for generator in generators]), flush=True)
    for number, kind in enumerate(("step or ramp", "nothing", "placebo")):
        if only in (name := f"drawn: {kind}"):
            generators = [np.random.default_rng([seed, 1000 + number, i]) for i in range(FRESH * repeats)]
            print(row(name, [judged(drawn(generator, kind), generator) for generator in generators]), flush=True)


def judged(scenario: Scenario, generator: np.random.Generator) -> tuple[Cutoff, int | None]:
    """Return what the estimator finds, and the planted cutoff or None."""
    truth = None if scenario.cutoff is None or scenario.shuffled else FIRST + scenario.cutoff - 1
    return find_cutoff(draw(scenario, generator)), truth


def main() -> None:
    """Parse the command line, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only the scenarios whose name contains this")
    simulate(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
