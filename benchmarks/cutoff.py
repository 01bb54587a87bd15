"""Measure how sure ``temporalwiki cutoff`` is.

    python benchmarks/cutoff.py simulate [--repeats 100] [--seed 1] [--only NAME]
    python benchmarks/cutoff.py worlds --folder DIR [--seeds 0 1 2 3 4] [--months 12] [--people 60] [--epochs 12]

The first command prints the table of docs/cutoff.md as Markdown: simulated items without a model, of fixed scenarios
and of scenarios that are drawn at random. A simulated item has noise, effects of its page, relation and month, and a
trend that is not knowledge. If the model is able to know the change, it prefers the new side up to the cutoff, and the
old side after it.

The second command prints the same table for small models that it trains on generated worlds. Each model reads the
first month, then what is new in each month up to its own: the diffsets and the new facts in a few words (plain), the
new facts of relations that run up to two months early or late (staggered), and what plain models read together with
the sentences that were replaced (mixture). One model is not trained, and the months of the plain models' changes are
shuffled once (placebo). A stopped run continues.
Columns:

- found, before, after, cannot tell: how often each verdict is given
- bias: the mean difference between the cutoff that is found and the planted one, in months
- coverage: how often the 95 % interval of a cutoff that is found holds the planted one, with Wilson's 95 % interval
- width: months from the low to the high end of the interval, on average
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path

import datasets
import numpy as np

from temporalwiki.base.files import whole_folder
from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.world import Snapshot, World, write_world
from temporalwiki.eval_harness import demo
from temporalwiki.eval_harness.cached_model import CachedModel
from temporalwiki.eval_harness.cutoff import Cutoff, Item, find_cutoff
from temporalwiki.eval_harness.dated_changes import evidence, read_changes
from temporalwiki.methods import find_method
from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.train import Run, train
from temporalwiki.methods.training_data import load
from temporalwiki.model_cards.folder_card import folder_card

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


NOTHING = replace(BASE, cutoff=None)
HEAD = """| scenario | found | before | after | cannot tell | bias | coverage | width |
|---|--:|--:|--:|--:|--:|--:|--:|"""
VARIANTS = ("plain", "staggered", "mixture")
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


def worlds(folder: Path, seeds: Sequence[int], months: int, people: int, epochs: int) -> None:
    """Train models on generated worlds, and print what the estimator finds, by variant."""
    found: dict[str, list[tuple[Cutoff, int | None]]] = {}
    for seed in seeds:
        here = folder / f"{months}-months-{people}-people-{epochs}-epochs" / str(seed)
        made = world(here, seed, months, people)
        changes = read_changes(str(made.data))
        first = min(change.month for change in changes)
        for variant, month in [("untrained", 0), *product(VARIANTS, range(months))]:
            model = CachedModel(str(trained(made, variant, month, epochs)), folder / "scores")
            items = evidence(model, changes)
            truth = None if variant == "untrained" else first + month - 1
            found.setdefault(variant, []).append((find_cutoff(items), truth))
            if variant == "plain":
                dealt = np.random.default_rng([seed, month]).permutation([item.month for item in items])
                shuffled = [item._replace(month=int(to)) for item, to in zip(items, dealt, strict=True)]
                found.setdefault("placebo", []).append((find_cutoff(shuffled), None))
        print(f"after seed {seed}\n{HEAD}")
        for variant, cutoffs in found.items():
            print(row(variant, cutoffs), flush=True)


@dataclass(frozen=True)
class Made:
    """A generated world: its folder, snapshots and dataset."""

    seed: int
    folder: Path
    snapshots: Sequence[Snapshot]
    data: Path


def world(folder: Path, seed: int, months: int, people: int) -> Made:
    """Write the dumps of a world, and build its intervals."""
    dates = tuple(f"{2021 + month // 12}{month % 12 + 1:02}01" for month in range(months))
    invented = World(seed, dates, dates, people=people, wordings=2)
    snapshots = write_world(folder / "dumps", invented)
    data = folder / "temporalwiki"
    options = BuildOptions(unchanged_fraction=0.4, caps=None)
    for interval in (Interval(invented.wiki, *pair) for pair in pairwise(dates)):
        sources = find_sources(folder / "dumps", interval)
        build(sources, data, folder / "work", options, Machine(jobs=1), folder_card)
    return Made(seed, folder, snapshots, data)


def trained(made: Made, variant: str, month: int, epochs: int) -> Path:
    """Return the folder of a model that has read a world up to a month; train it if it is missing."""
    start = made.folder / "untrained"
    if not start.exists():
        texts = [text for snapshot in made.snapshots for _, text in demo._first_month(snapshot)]
        with whole_folder(start) as part:
            for one in demo.tiny_model(texts):
                one.save_pretrained(part)
    if variant == "untrained":
        return start
    if month == 0:
        name, rows, size = "first", demo._first_month(made.snapshots[0]), (16, epochs, 4e-3)
    else:
        start = trained(made, variant, month - 1, epochs)
        name, rows, size = f"{variant}-{month}", news(made, variant, month), (8, 12, 2e-3)
    text, model = made.folder / f"text-{name}", made.folder / name
    if not text.exists():
        with whole_folder(text) as part:
            known = list(rows)
            table = {"title": [title or "" for title, _ in known], "text": [written for _, written in known]}
            datasets.Dataset.from_dict(table).to_parquet(part / "text.parquet")
            (part / "README.md").write_text("---\nconfigs:\n- config_name: text\n  data_files: text.parquet\n---\n")
    batch, passes, rate = size
    options = TrainOptions(
        batch_size=batch, micro_batch_size=batch, sequence_length=64, epochs=passes, learning_rate=rate, save_steps=100
    )
    list(train(Run("full", find_method("full")(), str(start), str(text), "text", None, options, model)))
    return model


def news(made: Made, variant: str, month: int) -> Iterator[tuple[str | None, str]]:
    """Yield the titles and texts that are new in a month, then its new facts in a few words.

    Staggered models read facts only, each relation up to two months early or late.
    """
    snapshots = made.snapshots
    if variant != "staggered":
        interval = "-".join(snapshot.date for snapshot in snapshots[month - 1 : month + 1])
        for kind in ("diffset", "deletions")[: 2 if variant == "mixture" else 1]:
            for one in load(str(made.data), f"{kind}-{interval}", "train"):
                yield one["title"], one["text"]
    relations = sorted({fact[1] for snapshot in snapshots for fact in snapshot.facts})
    shifts = np.random.default_rng(made.seed).integers(-2, 3, len(relations)) * (variant == "staggered")
    last = len(snapshots) - 1
    for relation, shift in zip(relations, shifts.tolist(), strict=True):
        before = snapshots[0 if month == 1 else min(max(month - 1 + shift, 0), last)]
        after = snapshots[min(max(month + shift, 0), last)]
        facts = {fact: end for fact, end in after.facts.items() if fact[1] == relation and fact not in before.facts}
        yield from demo._first_month(replace(after, articles={}, facts=facts))


def main() -> None:
    """Parse the command line, and run a study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    studies = parser.add_subparsers(dest="study", required=True)
    simulation = studies.add_parser("simulate")
    simulation.add_argument("--repeats", type=int, default=100)
    simulation.add_argument("--seed", type=int, default=1)
    simulation.add_argument("--only", default="", help="only the scenarios whose name contains this")
    study = studies.add_parser("worlds")
    study.add_argument("--folder", type=Path, required=True, help="folder of worlds, models and scores")
    study.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    for name, value in (("months", 12), ("people", 60), ("epochs", 12)):
        study.add_argument(f"--{name}", type=int, default=value)
    arguments = parser.parse_args()
    if arguments.study == "worlds":
        worlds(arguments.folder, arguments.seeds, arguments.months, arguments.people, arguments.epochs)
        return
    simulate(arguments.repeats, arguments.seed, arguments.only)


if __name__ == "__main__":
    main()
