"""Draw the figures of the study and write its tables, from a Parquet file with all its numbers.

With ``--from``, it first makes this file from the results of ``experiment.yaml`` and ``rates.yaml``, and the
leaderboard of the first. Gains are pooled over the years that no learning rate was chosen on, and intervals include
subjects, relations and runs (``eval_harness/statistics.py``).
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from matplotlib.figure import Figure

from temporalwiki.base.errors import InputError
from temporalwiki.base.terminal import say
from temporalwiki.builders.parquet import read_table
from temporalwiki.eval_harness.leaderboard.figures.style import COLOURS, GREY, MARKERS, WIDTH, annotate, save, style
from temporalwiki.eval_harness.leaderboard.names import method_name
from temporalwiki.eval_harness.leaderboard.rows import read_items, read_parquet
from temporalwiki.eval_harness.measures import SUBSETS, Columns, Composition, composition
from temporalwiki.eval_harness.misalignment import month_of_model
from temporalwiki.eval_harness.results import read_results
from temporalwiki.eval_harness.statistics import Estimate, Items, compare, estimate
from temporalwiki.methods import METHODS

LATER = "2022 to 2024"  # the years that no learning rate was chosen on
MEASURES = ("learned", "forgotten")
BARS: dict[str, Any] = {"linestyle": "none", "elinewidth": 0.9, "capsize": 2}
UNSTATED = "not stated"  # the test of facts that the text mentions, but no sentence states
OF_BOARD = {  # task -> measures that are taken from the leaderboard
    "multiple_choice": ("acc",),
    "twiki_probes": ("perplexity", "object_perplexity"),
    "twiki_intrinsic": ("perplexity",),
    "fuar": ("fuar",),
}


MOST = 100_000  # numbers
ABOUT = """\
Unless a title says otherwise: strict facts, nats per token, 95 % intervals over countries and relations; *learned* and
*forgotten* since the start model. `scores.parquet` has these numbers and more; [the study](../study.md) explains them.
"""
TITLES = {
    "facts": "Facts of each year",
    "methods": "Methods, on the facts of 2022 to 2024, each in its year",
    "runs": "Single runs, on the facts of 2022 to 2024, each in its year",
    "years": "Facts of the year that each model read last",
    "kept": "Facts of 2021, after each year",
    "perplexity": "Perplexity of the objects of 2021 and of 2024, after all four years",
    "choices": "Share of changed facts whose new object is likelier than all old ones, in percent",
    "text": "Perplexity of 100 articles of 2024, and FUAR over four years, after all four years",
    "strictness": "All facts and strict facts of 2022 to 2024",
    "relations": "Relations, on the facts of 2022 to 2024",
    "rates": "Learning rates and other settings, on the facts of 2021",
}


class Number(NamedTuple):
    """A number of the study. A difference is ``method`` minus ``minus``.

    The measures ``changed`` and ``unchanged`` count the facts of a year.
    """

    measure: str
    method: str
    minus: str
    read: str  # the last year that the model has read; "" for the start model
    year: str  # of the facts
    test: str
    relation: str  # "": all
    runs: int
    facts: int
    value: float
    low: float | None
    high: float | None


Runs = dict[int, Columns]  # seed -> the facts of one or more years, and what the run's model gained
Gains = dict[tuple[str, str, str], Runs]  # method, last year read, year of the facts


def read_gains(results: Path) -> Gains:
    """Return the gains of all facts since the start model. Raises InputError for damaged results."""
    found: Gains = defaultdict(dict)
    for result in read_results(results):
        model, config = result.manifest.model, result.manifest.data.config
        items, month = read_items(result), month_of_model(model)
        if result.manifest.task.name == "learned_and_forgotten" and items is not None and month:
            items = {**items, UNSTATED: 1.0 - items["stated"]}
            found[model.label or "", month[:4], config.split("-")[1][:4]][model.seed or 0] = items
    for method in {method for method, _, _ in found}:
        years = [found[method, year, year] for year in ("2022", "2023", "2024") if (method, year, year) in found]
        if len(years) == 3:
            found[method, LATER, LATER] = {seed: _joined([of[seed] for of in years]) for seed in years[0]}
    return dict(found)


def _joined(years: Sequence[Columns]) -> Columns:
    """Return the facts of several years as one table; a fact of two years has two ids."""
    numbered = [{**of, "id": np.array([f"{n}{id}" for id in of["id"]], dtype=object)} for n, of in enumerate(years)]
    return {name: np.concatenate([of[name] for of in numbered]) for name in numbered[0]}


def _composed(runs: Runs, test: str, measure: str, relation: str = "") -> list[Composition]:
    found = []
    for _, items in sorted(runs.items()):
        chosen = items["relation"] == relation if relation else np.full(len(items["id"]), True)
        made = composition({name: column[chosen] for name, column in items.items()}, test, measure)
        found += [made] if made else []
    return found


def _together(made: Sequence[Composition]) -> list[Items]:
    return [
        of[0]._replace(numerators=np.array([one.numerators for one in of]))
        for of in zip(*(one.groups for one in made), strict=True)
    ]


def _mean(made: Sequence[Composition]) -> list[Items]:
    return [of._replace(numerators=np.asarray(of.numerators).mean(axis=0)) for of in _together(made)]


def of_rates(gains: Gains) -> Iterator[Number]:
    """Yield what the methods learned and forgot of the strict facts of the first year, with each learning rate."""
    for (method, read, year), runs in sorted(gains.items()):
        for measure in MEASURES:
            for made in _composed(runs, "strict", measure):
                found = estimate(made.groups, made.scale)
                yield _number(measure, method, "", read, year, "strict", "", 1, found)


def counts(gains: Gains) -> Iterator[Number]:
    """Yield how many facts of each year there are, by test."""
    for (method, read, year), runs in sorted(gains.items()):
        if method == "diff" and read == year and year != LATER:
            items = next(iter(runs.values()))
            for kind in ("changed", "unchanged"):
                for test, chosen in (("all", 1.0), ("strict", items["strict"])):
                    many = int(((items["split"] == kind) * chosen).sum())
                    yield Number(kind, "", "", "", year, test, "", 0, many, many, None, None)


def numbers(gains: Gains, labels: dict[str, str]) -> Iterator[Number]:
    """Yield what each method learned and forgot, by year, test and relation, and its difference to ``diff``."""
    for (method, read, year), runs in sorted(gains.items()):
        for measure in MEASURES:
            for test in (*SUBSETS, UNSTATED):
                if not (made := _composed(runs, test, measure)):
                    continue
                found = estimate(_together(made), made[0].scale)
                yield _number(measure, method, "", read, year, test, "", len(made), found)
                if test == "strict" and year == LATER:
                    for seed, one in zip(sorted(runs), made, strict=True):
                        found = estimate(one.groups, one.scale)
                        yield _number(measure, f"{method}, seed {seed}", "", read, year, test, "", 1, found)
                if method != "diff" and (other := _composed(gains[("diff", read, year)], test, measure)):
                    apart = compare(_mean(other), _mean(made), made[0].scale)
                    of = Estimate(apart.difference, apart.low, apart.high, apart.items, apart.clusters)
                    yield _number(measure, method, "diff", read, year, test, "", len(made), of)
            if read == year:
                for relation in sorted(set(next(iter(runs.values()))["relation"])):
                    if made := _composed(runs, "strict", measure, relation):
                        found = estimate(_together(made), made[0].scale)
                        of_relation = labels.get(relation, relation)
                        yield _number(measure, method, "", read, year, "strict", of_relation, len(made), found)


def _number(
    measure: str, method: str, minus: str, read: str, year: str, test: str, relation: str, runs: int, of: Estimate
) -> Number:
    return Number(measure, method, minus, read, year, test, relation, runs, of.items, of.value, of.low, of.high)


def of_board(board: Path) -> Iterator[Number]:
    """Yield perplexities and FUAR from the leaderboard."""
    for row in read_parquet(board / "results.parquet"):
        if row.measure in OF_BOARD.get(row.task, ()) and row.tested:
            read, test = (row.month or "")[:4], row.test if row.task != "twiki_intrinsic" else f"text, {row.kind}"
            name = row.measure, row.label, "", read, row.tested[:4], test, ""
            yield Number(*name, row.runs, row.items, row.value, row.low, row.high)


def tables(found: Sequence[Number]) -> dict[str, str]:
    """Return the tables of the study in Markdown, by name."""
    of = {(one.measure, one.method, one.minus, one.read, one.year, one.test, one.relation): one for one in found}

    def cell(
        measure: str,
        method: str,
        minus: str = "",
        year: str = LATER,
        test: str = "strict",
        on: str = "",
        read: str = "",
    ) -> str:
        return _cell(of.get((measure, method, minus, read or year, year, test, on)))

    def count(measure: str, year: str, test: str) -> str:
        return f"{of[measure, '', '', '', year, test, ''].value:,.0f}"

    years = sorted({one.year for one in found if one.measure == "changed"})
    methods = _methods(found)
    single = sorted({one.method for one in found if ", seed " in one.method and one.year == LATER})
    runs = [run for run in single if sum(other.partition(",")[0] == run.partition(",")[0] for other in single) > 1]
    tried = {one.method for one in found if one.method.partition("-")[0] in methods}
    relations = sorted({one.relation for one in found if one.relation and one.year == LATER})
    changed, unchanged = (of[kind, "", "", "", years[0], "strict", ""].value for kind in ("changed", "unchanged"))
    share = changed / (changed + unchanged)
    rates = [[of[measure, name, "", years[0], years[0], "strict", ""] for measure in MEASURES] for name in tried]
    rates.sort(
        key=lambda pair: (methods.index(pair[0].method.partition("-")[0]), "-" not in pair[0].method, pair[0].value)
    )
    both = [(kind, test) for kind in ("changed", "unchanged") for test in ("all", "strict")]
    tests = [(measure, test) for measure in MEASURES for test in ("all", "strict")]
    of_years = [(measure, year) for measure in MEASURES for year in years]
    ends = [(kind, year) for kind in ("unchanged", "changed") for year in (years[0], years[-1])]
    many = {method: of["learned", method, "", LATER, LATER, "strict", ""].runs for method in methods}
    chosen = [(one.method, one.read) for one in found if one.measure == "acc"]
    return {
        "facts": _table(
            ["year", *(f"{kind}, {test}" for kind, test in both)],
            [[year, *(count(kind, year, test) for kind, test in both)] for year in years],
        ),
        "methods": _table(
            ["method", "runs", *MEASURES, "learned, minus diff's", "forgotten, minus diff's"],
            [
                [f"`{method}`", str(many[method]), *(cell(measure, method) for measure in MEASURES)]
                + [cell(measure, method, "diff") for measure in MEASURES]
                for method in methods
            ],
        ),
        "runs": _table(
            ["run", *MEASURES], [[f"`{run}`", *(cell(measure, run) for measure in MEASURES)] for run in runs]
        ),
        "years": _table(
            ["method", *(f"{measure}, {year}" for measure, year in of_years)],
            [[f"`{method}`", *(cell(measure, method, year=year) for measure, year in of_years)] for method in methods],
        ),
        "kept": _table(
            ["method", *(f"{measure}, read {year}" for measure, year in of_years)],
            [
                [f"`{method}`", *(cell(measure, method, year=years[0], read=read) for measure, read in of_years)]
                for method in methods
            ],
        ),
        "perplexity": _table(
            ["model", *(f"{kind}, {year}" for kind, year in ends)],
            [
                [f"`{method}`" if read else "start model"]
                + [
                    _cell(of.get(("object_perplexity", method, "", read, year, f"strict/{kind}", "")))
                    for kind, year in ends
                ]
                for method, read in [("initial", ""), *((method, years[-1]) for method in methods)]
            ],
        ),
        "choices": _table(
            ["model", *years],
            [
                [f"`{method}`" if read == years[-1] else "start model"]
                + [_cell(of.get(("acc", method, "", read, year, "changed", ""))) for year in years]
                for method, read in dict.fromkeys(chosen)
            ],
        ),
        "text": _table(
            ["model", "new text", "unchanged text", "FUAR"],
            [
                [f"`{method}`" if read == years[-1] else "start model"]
                + [
                    _cell(of.get((measure, method, "", read, years[-1], test, "")))
                    for measure, test in (
                        ("perplexity", "text, diffset"),
                        ("perplexity", "text, unchanged"),
                        ("fuar", "probes"),
                    )
                ]
                for method, read in [("full", years[0]), *((method, years[-1]) for method in methods)]
            ],
        ),
        "strictness": _table(
            ["method", *(f"{measure}, {test}" for measure, test in tests)],
            [[f"`{method}`", *(cell(measure, method, test=test) for measure, test in tests)] for method in methods],
        ),
        "relations": _table(
            ["relation", *(f"`diff` {measure}" for measure in MEASURES)],
            [[relation, *(cell(measure, "diff", on=relation) for measure in MEASURES)] for relation in relations],
        ),
        "rates": _table(
            ["tried", *MEASURES, "gain of all facts"],
            [
                [
                    f"`{one.method}`" + ("" if "-" in one.method else ", as in the study"),
                    *(_cell(one), _cell(other), _signed(share * one.value - other.value)),
                ]
                for one, other in rates
            ],
        ),
    }


def document(found: Sequence[Number]) -> str:
    """Return all tables as a page in Markdown."""
    written = [f"## {TITLES[name]}\n\n{table}" for name, table in tables(found).items()]
    return "\n".join(["# The study in tables\n", ABOUT, *written])


def _methods(found: Sequence[Number]) -> list[str]:
    """Return the methods of the study, in the order of the papers' tables."""
    known = {one.method for one in found if one.year == LATER}
    return [method for method in METHODS if method in known]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines).replace(" --- ", "---")


def _cell(one: Number | None) -> str:
    if one is None:
        return ""
    if one.low is None or one.high is None:
        return _signed(one.value)
    return f"{_signed(one.value)} [{_signed(one.low)}, {_signed(one.high)}]"


def _signed(value: float) -> str:
    if math.isinf(value):
        return "∞"
    text = f"{value:,.0f}" if abs(value) >= 10 else f"{value:.2f}"
    return text.replace("-0.00", "0.00").replace("-", "−")


def draw(found: Sequence[Number], out: Path) -> None:
    """Draw both figures: learned against forgotten, and the gains of each year's facts."""
    at = {
        (one.measure, one.method, one.minus, one.year): one
        for one in found
        if one.test == "strict" and not one.relation and one.read == one.year and one.measure in MEASURES
    }
    methods = _methods(found)
    names = {method: _name(method, at["learned", method, "", LATER].runs) for method in methods}
    look = {method: {"color": COLOURS[i], "marker": MARKERS[i]} for i, method in enumerate(methods)}
    with style():
        figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
        axes, apart = figure.subplots(1, 2, width_ratios=(3, 2))
        axes.axhline(0, color=GREY, linewidth=0.8)
        axes.axvline(0, color=GREY, linewidth=0.8)
        points = [((0.0, 0.0), "Start model")]
        for method in methods:
            x, y = (at[measure, method, "", LATER] for measure in ("forgotten", "learned"))
            axes.errorbar(x.value, y.value, xerr=_bars([x]), yerr=_bars([y]), **BARS, **look[method])
            points.append(((x.value, y.value), names[method]))
        axes.plot([0], [0], "o", color="black")
        axes.set_xlabel("Forgotten, nats per token (← better)")
        axes.set_ylabel("Learned, nats per token (↑ better)")
        axes.set_title("Each method, with 95 % intervals", loc="left")
        others = [method for method in methods if method != "diff"][::-1]
        apart.axvline(0, color=GREY, linewidth=0.8)
        for shift, measure, filled in ((0.13, "learned", "full"), (-0.13, "forgotten", "none")):
            for place, method in enumerate(others):
                one = at[measure, method, "diff", LATER]
                line = apart.errorbar(
                    one.value, place + shift, xerr=_bars([one]), fillstyle=filled, **BARS, **look[method]
                )
            line.set_label(measure.capitalize())
        apart.set_yticks(range(len(others)), [names[method] for method in others])
        apart.set_xlabel("● learned (→ better)\n○ forgotten (← better)")
        apart.set_title("Difference to Diff", loc="left")
        annotate(figure, axes, points, ())
        _save(figure, out / "learned_and_forgotten", "What each method learned and forgot, 2022 to 2024")
        figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
        years = sorted({year for _, _, _, year in at} - {LATER})
        for axes, measure in zip(figure.subplots(1, 2), MEASURES, strict=True):
            axes.axhline(0, color=GREY, linewidth=0.8)
            for place, method in enumerate(methods):
                of_years = [at[measure, method, "", year] for year in years]
                places = [x + 0.13 * (place - (len(methods) - 1) / 2) for x in range(len(years))]
                values = [one.value for one in of_years]
                line = axes.errorbar(places, values, yerr=_bars(of_years), **BARS, **look[method])
                line.set_label(names[method] if measure == "learned" else "")
            axes.set_xticks(range(len(years)), years)
            axes.set_xlabel(f"Facts that {'changed' if measure == 'learned' else 'did not change'} in the year")
            better = {"learned": "↑", "forgotten": "↓"}[measure]
            axes.set_title(f"{measure.capitalize()}, nats per token ({better} better)", loc="left")
            axes.grid(axis="y")
        figure.legend(loc="outside lower center", ncols=len(methods))
        _save(figure, out / "over_time", "Each model after its year, compared with the start model")


def _name(method: str, runs: int) -> str:
    return method_name(method) + (f" ({runs} runs)" if runs > 1 else "")


def _bars(of: Sequence[Number]) -> Any:
    return [[one.value - (one.low or 0) for one in of], [(one.high or 0) - one.value for one in of]]


def _save(figure: Figure, path: Path, title: str) -> None:
    save(figure, path.with_suffix(".svg"))
    save(figure, path.with_suffix(".png"), title)


def main() -> int:
    """Write scores.parquet if it is asked for, then the tables and the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("out", type=Path, help="folder of scores.parquet, tables.md and the figures")
    parser.add_argument("--from", dest="outputs", nargs=2, type=Path, metavar=("EXPERIMENT", "RATES"))
    options = parser.parse_args()
    scores = options.out / "scores.parquet"
    try:
        if options.outputs:
            experiment, rates = options.outputs
            relations = yaml.safe_load(Path(__file__).with_name("fields.yaml").read_text("utf-8"))["relations"]
            labels = {relation: one["label"] for relation, one in relations.items()}
            gains = read_gains(experiment / "results")
            found = [*counts(gains), *numbers(gains, labels), *of_board(experiment / "leaderboard")]
            found += of_rates(read_gains(rates / "results"))
            options.out.mkdir(parents=True, exist_ok=True)
            columns = {name: [getattr(one, name) for one in found] for name in Number._fields}
            pq.write_table(pa.table(columns), scores)
        found = [Number(**row) for row in read_table(scores, MOST).to_pylist()]
    except InputError as error:
        say(f"study.py: {error}")
        return 1
    (options.out / "tables.md").write_text(document(found), "utf-8")
    draw(found, options.out)
    say(f"{len(found):,} numbers in {scores}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
