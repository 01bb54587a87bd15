"""Each figure of rows: its artists, texts that do not overlap or leave the figure, hostile labels, same bytes."""

import hashlib
import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from temporalwiki.eval_harness.leaderboard.figures import FIGURES, write_figures
from temporalwiki.eval_harness.leaderboard.figures.style import NARROW, WIDTH
from temporalwiki.eval_harness.leaderboard.names import method_name
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.methods import METHODS

from a_figure import check_texts
from a_row import make_row

INITIAL: dict[str, Any] = {
    "label": "initial",
    "method": "initial",
    "month": None,
    "learning_rate": None,
    "tokens": None,
}
MONTHS = ("0809", "0910", "1011", "1112")
TRAINED = tuple(method for method in METHODS if method not in ("initial", "light_tuning"))
# task, kind of config, test, measure
SCORES = [
    *(("twiki_probes", "probes", test, "perplexity") for test in ("unchanged", "changed", "average")),
    *(
        ("twiki_intrinsic", kind, "train", measure)
        for kind in ("diffset", "unchanged")
        for measure in ("proper_noun_perplexity", "perplexity")
    ),
]
NEW, OLD, CHANCE = (
    ("learned_and_forgotten", "probes", "all", measure) for measure in ("new_known", "old_known", "chance")
)
HOSTILE = (
    "_hidden",
    "$x^2$ $y$",
    "</script><b>|",
    "=cmd()\nnew line",
    "😀 語",
    "",
    "W" * 90,
    "\u202eabc",
    "a_{b}^{c} \\",
)


def score(task: str, kind: str, test: str, measure: str, tested: str, value: float, **of: Any) -> Row:
    of = {"low": value * 0.9, "high": value * 1.2} | of
    return make_row(
        task=task, config=f"{kind}-{tested}", kind=kind, tested=tested, test=test, measure=measure, value=value, **of
    )


def fuar(label: str, value: float, month: str = "1112", test: str = "lama", **of: Any) -> Row:
    return score("fuar", "fuar", test, "fuar", month, value, label=label, month=month, **of)


def world(
    lines: Sequence[dict[str, Any]], months: Sequence[str] = MONTHS, gone: float = 0.0, grow: float = 1.0
) -> Iterator[Row]:
    """Return scores of all lines on all months, without a share ``gone``; each line is ``grow`` times the last."""
    generator = random.Random(0)
    for i, line in enumerate([INITIAL, *lines]):
        for trained in [None] if line is INITIAL else months:
            for tested in months:
                for what in SCORES:
                    value = 100 * grow**i * (1 if line is INITIAL else generator.uniform(0.7, 1.2))
                    if line is INITIAL or generator.random() >= gone:
                        yield score(*what, tested, value, **{**line, "month": trained})
                of = {**line, "month": trained, "higher_is_better": True}
                for what in (NEW, OLD):
                    yield score(*what, tested, 80 * generator.random(), **of)
                yield score(*CHANCE, tested, 17.0, **of)
        if line is not INITIAL:
            for test in ("lama", "probes"):
                value = math.inf if i % 4 == 3 else generator.uniform(0, 2)
                yield fuar(line["label"], value, months[-1], test, **({"high": math.inf} if i % 3 == 0 else {}))


def of_methods(methods: Sequence[str]) -> list[dict[str, Any]]:
    return [{"label": method, "method": method} for method in methods]


def of_rates(*rates: float) -> list[dict[str, Any]]:
    named = [(method, rate) for method in ("diff", "lora") for rate in rates]
    return [{"label": f"{method} {rate:g}", "method": method, "learning_rate": rate} for method, rate in named]


YEARS = [f"{year}{month:02}01" for year in (2020, 2021) for month in range(1, 13)]
STRANGERS = [{"label": f"owner/model {i}", "method": None} for i in range(18)]
CASES: dict[str, Callable[[], Iterator[Row]]] = {
    "all methods, and runs that failed": lambda: world(of_methods(TRAINED), MONTHS[:2], gone=0.3),
    "one month": lambda: world(of_methods(TRAINED[:5]), MONTHS[:1]),
    "years": lambda: world(of_methods(["diff"]), YEARS),
    "long and hostile labels": lambda: world([{"label": label, "method": "lora"} for label in HOSTILE], MONTHS[:2]),
    "many models of nobody's": lambda: world(STRANGERS, MONTHS[:2]),
    "one that came to grief": lambda: world(of_methods(["diff", "lora"]), MONTHS[:2], grow=300.0),
    "learning rates": lambda: world(of_rates(1e-5, 3e-5, 1e-4, 1e-3), MONTHS[:1]),
}


def draw(name: str, rows: Sequence[Row]) -> Figure:
    figure = FIGURES[name].draw(rows)
    assert figure is not None
    return figure


def marks(line: Any) -> list[float | None]:
    """Return the values of a line, with None where it is interrupted."""
    return [None if math.isnan(y) else float(y) for y in line.get_ydata()]


@pytest.mark.parametrize("case", CASES)
def test_no_text_is_cut_off_or_lies_over_another_and_labels_are_shown_as_they_are(case: str) -> None:
    rows = list(CASES[case]())
    odd = {"": "?", "=cmd()\nnew line": "=cmd(", "\u202eabc": "abc"}
    wanted = [odd.get(label, label[:5]) for label in HOSTILE] if "hostile" in case else []
    for (name, plot), width in product(FIGURES.items(), (WIDTH, NARROW)):
        figure = plot.draw(rows, width)
        if figure is not None:
            texts = check_texts(figure)
            assert texts, name
            assert [begin for begin in wanted if not any(text.startswith(begin) for text in texts)] == [], name
            sizes = [text.get_fontsize() for text in figure.findobj(lambda artist: hasattr(artist, "get_fontsize"))]
            assert min(sizes) >= 8, name
        else:
            assert name.startswith(("misalignment", "known_by_month")), name
            assert len({row.tested for row in rows}) == 1


@pytest.mark.parametrize(
    ("lines", "width", "legends"),
    [(of_methods(["diff"]), WIDTH, 0), (of_methods(["diff"]), NARROW, 0), (STRANGERS, NARROW, 1)],
)
def test_every_method_that_learned_and_forgot_has_a_name_and_so_has_chance(
    lines: list[dict[str, Any]], width: float, legends: int
) -> None:
    """A legend names the methods if the points leave no room for a name."""
    rows = list(world(lines, MONTHS[:1]))
    figure = FIGURES["learned_and_forgotten"].draw(rows, width)
    assert figure is not None
    assert len(figure.legends) == legends
    named = [*(figure.legends[0].get_texts() if legends else []), *figure.axes[0].texts]
    texts = {text.get_text() for text in named}
    assert len(texts - {"chance"}) == len({row.label for row in rows})
    assert "chance" in texts


@pytest.mark.parametrize("name", FIGURES)
def test_without_its_scores_there_is_no_figure(name: str) -> None:
    assert FIGURES[name].draw([]) is None
    assert FIGURES[name].draw([make_row(task="kilt", kind="kilt", config="kilt-fever", tested=None)]) is None


@pytest.mark.parametrize(
    "name", [name for name in FIGURES if name not in ("fuar", "average_perplexity", "learned_and_forgotten", "prices")]
)
def test_what_is_relative_to_initial_needs_initial(name: str) -> None:
    rows = list(world(of_methods(["diff"])))
    assert FIGURES[name].draw(rows) is not None
    assert FIGURES[name].draw([row for row in rows if row.label != "initial"]) is None
    assert FIGURES[name].draw([row for row in rows if row.label == "initial"]) is None


def test_relative_perplexity_is_initials_share_in_each_months_text() -> None:
    of = ("twiki_intrinsic", "diffset", "train", "proper_noun_perplexity")
    unchanged = ("twiki_intrinsic", "unchanged", "train", "proper_noun_perplexity")
    rows = [
        score(*of, "0809", 80.0, **INITIAL),
        score(*of, "0910", 50.0, **INITIAL),
        score(*of, "0809", 40.0, month="0809"),
        score(*of, "0910", 30.0, month="0809"),  # not of its own month
        score(*of, "0910", 25.0, month="0910"),
        score(*unchanged, "0809", 10.0, **INITIAL),
        score(*unchanged, "0809", 12.0, month="0809"),
        score(*unchanged, "0809", 9.0, label="lora", method="lora", month="0809"),
    ]
    figure = draw("relative_perplexity", rows)
    assert [axes.get_title() for axes in figure.axes] == ["new text (diffsets)", "old text (unchanged)"]
    first, second = ([marks(line) for line in axes.lines if line.get_marker() != "None"] for axes in figure.axes)
    assert first == [[0.5, 0.5], [None, None]]
    assert second == [[1.2], [0.9]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Start model", "Diff", "LoRA"]
    figure = draw("relative_perplexity", [*rows[:4], score(*of, "0910", 0.2, month="0910")])
    assert [axes.get_title() for axes in figure.axes] == ["new text (diffsets)"]


def test_average_perplexity_has_initial_and_intervals() -> None:
    of = ("twiki_probes", "probes", "average", "perplexity")
    rows = [
        score(*of, "0809", 100.0, **INITIAL, low=90.0, high=115.0),
        score(*of, "0910", 110.0, **INITIAL, low=None, high=None),
        score(*of, "0809", 70.0, month="0809", low=60.0, high=90.0),
        score(*of, "0910", 75.0, month="0809"),
    ]
    figure = draw("average_perplexity", rows)
    (axes,) = figure.axes
    initial, diff = axes.containers
    assert marks(initial.lines[0]) == [100.0, 110.0]
    assert marks(diff.lines[0]) == [70.0, None]
    bars = [[[float(y) for _, y in segment] for segment in of.lines[2][0].get_segments()] for of in (initial, diff)]
    assert bars == [[[90.0, 115.0], [110.0, 110.0]], [[60.0, 90.0], []]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Start model", "Diff"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["Aug–Sep", "Sep–Oct"]


def test_lines_of_a_month_stand_side_by_side() -> None:
    figure = draw("average_perplexity", list(world(of_methods(TRAINED), MONTHS[:2])))
    at = sorted(float(x) for of in figure.axes[0].containers for x in of.lines[0].get_xdata())
    assert len(at) == 2 * (len(TRAINED) + 1)
    assert min(b - a for a, b in pairwise(at)) > 0.03
    assert at[len(at) // 2 - 1] < 0.5 < at[len(at) // 2]  # each nearer to its own month


def heat_map(figure: Figure) -> dict[str, list[str]]:
    """Return panel title -> texts of its cells, row by row."""
    return {axes.get_title(loc="left"): [text.get_text() for text in axes.texts] for axes in figure.axes[:-1]}


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("misalignment", ("twiki_probes", "probes", "changed", "perplexity")),
        ("misalignment_text", ("twiki_intrinsic", "diffset", "train", "perplexity")),
    ],
)
def test_misalignment_is_each_month_on_each_relative_to_initial(name: str, what: tuple[str, str, str, str]) -> None:
    rows = [
        score(*what, "0809", 100.0, **INITIAL),
        score(*what, "0910", 50.0, **INITIAL),
        score(*what, "0809", 80.0, month="0809"),
        score(*what, "0910", 60.0, month="0809"),
        score(*what, "0910", 25.0, month="0910"),
        score(*what, "0910", 50.0, label="lora", method="lora", month="0809"),
    ]
    figure = draw(name, rows)
    assert heat_map(figure) == {"Diff": ["0.80", "1.20", "–", "0.50"], "LoRA": ["–", "1.00"]}
    diff = figure.axes[0]
    cells = [patch for patch in diff.patches if isinstance(patch, Rectangle)]
    outlined = [cell.get_edgecolor()[:3] == (0, 0, 0) for cell in cells]
    assert outlined == [True, False, False, True]
    blue, orange, missing, bluest = (cell.get_facecolor() for cell in cells)
    assert blue[2] > blue[0] and orange[0] > orange[2] and missing[0] == missing[1] == missing[2]
    assert to_hex(bluest) == "#0072b2"  # the furthest from 1
    assert to_hex(figure.axes[1].patches[1].get_facecolor()) == "#ffffff"
    assert [text.get_color() for text in diff.texts] == ["#010101", "#010101", "#010101", "#fefefe"]
    assert [label.get_text() for label in diff.get_xticklabels()] == ["Aug–\nSep", "Sep–\nOct"]
    assert [label.get_text() for label in diff.get_yticklabels()] == ["Aug–Sep", "Sep–Oct"]


def test_known_facts_of_each_month_are_in_points_from_the_initial_model() -> None:
    what = ("learned_and_forgotten", "probes", "all", "new_known")
    rows = [score(*what, month, value, **INITIAL) for month, value in (("0809", 20.0), ("0910", 0.0))]
    values = {("0809", "0809"): 60.0, ("0910", "0809"): 45.0, ("0809", "0910"): 0.0, ("0910", "0910"): 90.0}
    rows += [score(*what, tested, value, month=trained) for (trained, tested), value in values.items()]
    shuffled = {"label": "shuffled", "method": "shuffled", "control": True}
    rows += [score(*what, tested, 95.0, month="0809", **shuffled) for tested in ("0809", "0910")]
    rows += [score(*what, "0910", 9.0, month="08", **{**shuffled, "label": "untrained", "method": "untrained"})]
    figure = draw("known_by_month", rows)
    assert heat_map(figure) == {"Diff": ["+40", "+0", "+25", "+90"], "Shuffled": ["+75", "+95"]}
    assert [label.get_text() for label in figure.axes[-1].get_xticklabels()] == ["≥ +50", "+0", "≤ −50"]
    assert figure.get_label() == "In 2 of 2 cases, the model trained up to a month knows most new facts of that month"


def test_misalignment_of_many_months_shows_the_newest() -> None:
    figure = draw("misalignment", list(world(of_methods(["diff"]), YEARS)))
    (cells,) = heat_map(figure).values()
    assert len(cells) == 12 * 12
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()][::11] == ["Jan\n2021", "Dec\n2021"]


def test_fuar_bars_are_of_the_newest_month_and_say_where_nothing_was_gained() -> None:
    rows = [
        fuar("diff", 0.9, "1011"),
        fuar("diff", 0.5, low=0.25, high=2.0),
        fuar("lora", math.inf, method="lora", low=None, high=None),
        fuar("full", 1.5, method="full", low=1.0, high=math.inf),
        fuar("full", 0.75, test="probes", method="full"),
    ]
    clozes, probes = draw("fuar", rows).axes
    assert [label.get_text() for label in clozes.get_yticklabels()] == ["Full", "Diff", "LoRA"]
    assert [text.get_text() for text in clozes.texts] == ["1.50", "0.50", "no gain"]
    right = clozes.get_xlim()[1]
    assert right > 2
    full, diff, lora = (patch for patch in clozes.patches if isinstance(patch, Rectangle))
    assert [full.get_width(), diff.get_width(), lora.get_width()] == [1.5, 0.5, right]
    assert [bar.get_hatch() for bar in (full, diff, lora)] == [None, None, "////"]
    intervals = [[float(x) for x, _ in line.get_segments()[0]] for line in clozes.collections]
    assert intervals == [[1.0, right], [0.25, 2.0]]
    assert [text.get_text() for text in probes.texts] == ["0.75"]
    assert "lower is better" in clozes.get_xlabel()


def test_a_figure_of_another_measure_names_no_best_method_and_says_that_its_order_may_differ() -> None:
    names = {method_name(method) for method in METHODS}
    for name in FIGURES.keys() - {"learned_and_forgotten"}:
        figure = FIGURES[name].draw(world(of_methods(["diff", "lora"]), MONTHS[:2], grow=0.1))
        assert figure is None or not any(label in figure.get_label() for label in names), name
        if name not in ("prices", "known_by_month"):  # which show the measure that ranks
            assert "not what ranks methods, whose order may differ: it" in FIGURES[name].caption, name


def test_the_finding_of_misalignment_counts_months_that_their_own_model_predicts_best() -> None:
    what = ("twiki_probes", "probes", "changed", "perplexity")
    rows = [score(*what, month, 100.0, **INITIAL) for month in ("0809", "0910")]
    values = {("0809", "0809"): 80.0, ("0809", "0910"): 60.0, ("0910", "0809"): 70.0, ("0910", "0910"): 50.0}
    rows += [score(*what, tested, value, month=trained) for (trained, tested), value in values.items()]
    assert draw("misalignment", rows).get_label() == (
        "In 1 of 2 cases, the model trained up to a month has the lowest perplexity of changed facts of that month"
    )


def test_fuar_says_the_month_where_not_all_are_of_one() -> None:
    (axes,) = draw("fuar", [fuar("diff", 0.5, "1112"), fuar("lora", 0.5, "1011", method="lora")]).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Diff (Nov–Dec)", "LoRA (Oct–Nov)"]


@pytest.mark.parametrize(
    ("task", "kept", "changed"),
    [
        ("twiki_probes", ("probes", "unchanged", "perplexity"), ("probes", "changed", "perplexity")),
        ("twiki_intrinsic", ("unchanged", "train", "perplexity"), ("diffset", "train", "perplexity")),
    ],
)
def test_learning_rates_of_a_method_are_joined_in_order(
    task: str, kept: tuple[str, str, str], changed: tuple[str, str, str]
) -> None:
    def both(tested: str, x: float, y: float, **of: Any) -> list[Row]:
        return [score(task, *kept, tested, x, **of), score(task, *changed, tested, y, **of)]

    rows = [
        *both("0809", 1.0, 1.0, **INITIAL),
        *both("0910", 100.0, 200.0, **INITIAL),
        *both("0809", 9.0, 9.0, month="0809", label="high", learning_rate=1e-3),  # not its newest month
        *both("0910", 150.0, 100.0, month="0910", label="high", learning_rate=1e-3),
        *both("0910", 90.0, 180.0, month="0910", label="low", learning_rate=2.5e-5),
        *both("0910", 110.0, 160.0, month="0910", label="middle", learning_rate=1e-4),
        *both("0910", 100.0, 190.0, month="0910", label="lora", method="lora"),
    ]
    figure = draw("learning_rate", rows[::-1])
    (axes,) = figure.axes
    points = [
        [(float(x), float(y)) for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]
        for line in axes.lines[2:]
    ]
    assert points == [[(1.0, 1.0)], [(0.9, 0.9), (1.1, 0.8), (1.5, 0.5)], [(1.0, 0.95)]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Start model", "Diff", "LoRA"]
    assert {text.get_text(): text.xy for text in axes.texts} == {
        "2.5e-5": (0.9, 0.9),
        "1e-4": (1.1, 0.8),
        "1e-3": (1.5, 0.5),
    }
    assert ("facts" if task == "twiki_probes" else "text") in axes.get_xlabel()


def of_budget(label: str, method: str | None, tokens: int | None, known: float, **of: Any) -> Row:
    month = "1112" if tokens else None
    return score(*NEW, "1112", known, label=label, method=method, tokens=tokens, month=month, **of)


def test_the_budgets_of_a_method_are_joined_in_the_order_of_their_tokens_and_what_only_reads_is_a_line() -> None:
    rows = [
        of_budget("diff twice", "diff", 2_000, 60.0),
        of_budget("diff", "diff", 1_000, 50.0),
        of_budget("study", "study", 1_000, 55.0),
        of_budget("initial", "initial", None, 20.0),
        of_budget("initial, with evidence", "initial", None, 90.0, retrieved="evidence", control=True),
        of_budget("initial, with diffset-1112", "initial", None, 30.0, retrieved="diffset-1112"),
        of_budget("initial, temperature 1.25", "initial", None, 21.0, control=True),
        of_budget("untrained", "untrained", None, 10.0, control=True),
    ]
    figure = draw("prices", rows)
    drawn = {tuple(line.get_xdata()): tuple(line.get_ydata()) for line in figure.axes[0].get_lines()}
    assert drawn[1_000, 2_000] == (50, 60)
    assert drawn[1_000,] == (55,)
    levels = [line.get_ydata()[0] for line in figure.axes[0].get_lines() if list(line.get_xdata()) == [0, 1]]
    assert sorted(levels) == [20, 30, 90]


def test_one_learning_rate_a_method_is_a_point_each() -> None:
    axes = draw("learning_rate", list(world(of_methods(TRAINED)))).axes[0]
    assert len(axes.lines) == 2 + 1 + len(TRAINED)
    assert not axes.texts


def test_two_variants_with_one_learning_rate_are_not_joined() -> None:
    lines = [
        {"label": label, "method": "k_adapter", "learning_rate": rate}
        for label, rate in (("k 2", 1e-4), ("k 3", 1e-4), ("k 3 high", 1e-3))
    ]
    figure = draw("learning_rate", list(world(lines)))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Start model", "k 2", "k 3", "k 3 high"]


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_files_are_the_same_in_another_process_with_another_hash_seed(tmp_path: Path) -> None:
    tasks = ("learned_and_forgotten", "fuar")
    rows = [row for row in world(of_methods(["diff", "lora"]), MONTHS[:2]) if row.task in tasks]
    names = ["learned_and_forgotten", "prices", "known_by_month", "fuar"]
    assert list(write_figures(rows, tmp_path / "one")) == names
    (tmp_path / "rows.json").write_text(json.dumps([asdict(row) for row in rows[::-1]]))
    code = (
        "import json, sys; from pathlib import Path; from temporalwiki.eval_harness.leaderboard.rows import Row; "
        "from temporalwiki.eval_harness.leaderboard.figures import write_figures; "
        "write_figures([Row(**row) for row in json.load(open(sys.argv[1]))], Path(sys.argv[2]))"
    )
    other = os.environ | {"PYTHONHASHSEED": "7", "LC_ALL": "C", "TZ": "Asia/Tokyo"}
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "rows.json"), str(tmp_path / "two")], env=other, check=True
    )
    assert hashes(tmp_path / "one") == hashes(tmp_path / "two")
    assert list(hashes(tmp_path / "one")) == sorted(
        f"{name}{ending}" for name in names for ending in (".png", ".svg", "_narrow.svg")
    )


def test_a_figure_that_is_no_longer_there_is_taken_away(tmp_path: Path) -> None:
    (tmp_path / "mine.png").touch()
    assert list(write_figures([fuar("diff", 0.5)], tmp_path)) == ["fuar"]
    assert write_figures([], tmp_path) == {}
    assert [path.name for path in tmp_path.iterdir()] == ["mine.png"]
