"""The Gradio Space: the scores of results.parquet, the figures, and the page, all from the folder of this file."""

import html
import math
from pathlib import Path
from urllib.parse import quote

import gradio as gr
import pandas as pd  # type: ignore[import-untyped]

HERE = Path(__file__).resolve().parent
COLUMNS = ["model", "trained to", "score", "low", "high", "rank", "base", "trainable parameters", "tokens"]
ALL = "all"
NONE = "none"
FIRST = ("twiki_probes", "average", "perplexity")  # what is shown first, where there is such a score

ROWS = pd.read_parquet(HERE / "results.parquet")
ROWS = ROWS.assign(**{name: ROWS[name].fillna(NONE) for name in ("month", "method", "tested")})
SEVERAL = ROWS.groupby("task")["kind"].transform("nunique") > 1  # kinds of configs, whose tests have the same names
ROWS["test"] = (ROWS["kind"] + ": ").where(SEVERAL, "") + ROWS["test"]
FIGURES = sorted((HERE / "figures").glob("*.png"))

gr.set_static_paths([path for path in (HERE / "index.html", HERE / "figures", HERE / "tables") if path.exists()])


def values(rows: pd.DataFrame, column: str) -> list[str]:
    """Return what a column holds, in the order of the rows, which is that of the months."""
    return [str(value) for value in rows[column].unique()]


def of(task: str, test: str | None = None, measure: str | None = None) -> pd.DataFrame:
    """Return the rows of a task, and of a test and a measure where they are named."""
    chosen = ROWS["task"] == task
    for column, wanted in (("test", test), ("measure", measure)):
        if wanted is not None:
            chosen &= ROWS[column] == wanted
    return ROWS[chosen]


def first(choices: list[str], wanted: str) -> str:
    """Return the wanted choice, or the first where it is not there."""
    return wanted if wanted in choices else choices[0]


def board(task: str, test: str, measure: str, tested: str, method: str) -> pd.DataFrame:
    """Return the table of a score on a month, best first."""
    rows = of(task, test, measure)
    rows = rows[rows["tested"] == tested]
    if method != ALL:
        rows = rows[rows["method"] == method]
    higher = bool(rows["higher_is_better"].any())
    rows = rows.sort_values(["value", "label", "month"], ascending=[not higher, True, True], kind="stable")
    ranks = [rank(best, worst) for best, worst in zip(rows["rank_best"], rows["rank_worst"], strict=True)]
    shown = rows.assign(rank=ranks)[
        ["label", "month", "value", "low", "high", "rank", "base", "trainable", "tokens"]
    ].set_axis(COLUMNS, axis="columns")
    return shown.astype({"model": object}).reset_index(drop=True)


def rank(best: float | None, worst: float | None) -> str:
    """Return the range of a rank as text; empty where it is not known."""
    if best is None or worst is None or math.isnan(best) or math.isnan(worst):
        return ""
    return f"{best:.0f}" if best == worst else f"{best:.0f}–{worst:.0f}"


def direction(measure: str) -> str:
    """Return in words which scores of a measure are better."""
    higher = ROWS.loc[ROWS["measure"] == measure, "higher_is_better"].any()
    return f"{'Higher' if higher else 'Lower'} is better. low and high: the 95 % interval."


def choose(task: str, test: str | None, measure: str | None, tested: str | None) -> tuple[str, str, str]:
    """Return test, measure and month that a task has: those chosen, or those shown first."""
    tests = values(of(task), "test")
    test = test if test in tests else first(tests, FIRST[1])
    measures = values(of(task, test), "measure")
    measure = measure if measure in measures else first(measures, FIRST[2])
    months = values(of(task, test, measure), "tested")
    return test, measure, tested if tested in months else months[-1]


def show(
    task: str, test: str, measure: str, tested: str, method: str
) -> tuple[gr.Dropdown, gr.Dropdown, gr.Dropdown, str, pd.DataFrame]:
    """Return the choices that a task leaves, and its table."""
    test, measure, tested = choose(task, test, measure, tested)
    return (
        gr.Dropdown(choices=values(of(task), "test"), value=test),
        gr.Dropdown(choices=values(of(task, test), "measure"), value=measure),
        gr.Dropdown(choices=values(of(task, test, measure), "tested"), value=tested),
        direction(measure),
        board(task, test, measure, tested, method),
    )


with gr.Blocks(title="TemporalWiki leaderboard", analytics_enabled=False) as demo:
    page = html.escape(f"/gradio_api/file={quote(str(HERE / 'index.html'))}")
    gr.HTML(f'<h1>Leaderboard</h1><p><a href="{page}" target="_blank" rel="noopener">The whole leaderboard</a></p>')
    tasks = values(ROWS, "task")
    start = first(tasks, FIRST[0])
    begin = choose(start, None, None, None)
    with gr.Row():
        choices = [
            gr.Dropdown(tasks, value=start, label="task"),
            gr.Dropdown(values(of(start), "test"), value=begin[0], label="test"),
            gr.Dropdown(values(of(start, begin[0]), "measure"), value=begin[1], label="measure"),
            gr.Dropdown(values(of(start, begin[0], begin[1]), "tested"), value=begin[2], label="tested on"),
            gr.Dropdown([ALL, *values(ROWS, "method")], value=ALL, label="method"),
        ]
    better = gr.Markdown(direction(begin[1]))
    table = gr.Dataframe(board(start, *begin, ALL), interactive=False, show_search="filter", label="scores")
    if FIGURES:
        gr.Gallery([(str(path), path.stem.replace("_", " ")) for path in FIGURES], label="figures", columns=3)
    gr.on([choice.input for choice in choices], show, choices, [*choices[1:4], better, table], api_name="show")

if __name__ == "__main__":
    demo.launch()
