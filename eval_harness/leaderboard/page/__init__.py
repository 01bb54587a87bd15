"""The leaderboard's page: one HTML file with its styles, its script and all scores, and pictures next to it.

The page opens from disk and makes no network requests. Its content security policy allows only its own script, which
shows the table of all scores; the rest of the page needs no script.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jinja2

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import whole_file
from temporalwiki.eval_harness.leaderboard.headline import (
    MEASURES,
    Column,
    Entry,
    Month,
    months,
    ratio,
    training_runs,
)
from temporalwiki.eval_harness.leaderboard.names import listed
from temporalwiki.eval_harness.leaderboard.page.scores import compact, href, score_text, scores_data
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.tables import ScoreTable
from temporalwiki.methods import CONTROLS, METHODS

TITLE = "TemporalWiki leaderboard"
_HERE = Path(__file__).parent
_CUTOFFS = "cutoffs"
_HERO = ("learned_and_forgotten", "learning_rate")  # the picture at the top: the first that there is
_LINKS = {
    "Paper: TemporalWiki": "https://arxiv.org/abs/2204.14211",
    "Paper: CKL": "https://arxiv.org/abs/2110.03215",
    "The papers’ code": "https://github.com/joeljang/temporalwiki",
    "Add a model": "#add",
    "Cite": "#cite",
}


class Captioned(Protocol):
    """A figure or table with a title and a caption."""

    @property
    def title(self) -> str:
        """A few words that name it, or what it shows."""

    @property
    def caption(self) -> str:
        """A few sentences on what it shows."""


class _MethodCell(NamedTuple):
    """A cell of the table of methods: its text, and what stands below it."""

    main: str
    small: str = ""
    bold: bool = False


def write_page(
    rows: Sequence[Row],
    figures: Mapping[str, Captioned],
    tables: Mapping[str, Captioned],
    out: Path,
    *,
    title: str = TITLE,
    results: str | None = None,
    warnings: Sequence[str] = (),
    datasets: Sequence[str] = (),
) -> Path:
    """Write OUT/index.html and return its path.

    The page shows figures/NAME.svg and links to figures/NAME.png, tables/NAME.md, tables/NAME.csv and results.parquet
    in ``out``; it does not write these files. ``results`` is the folder of the result files relative to ``out``, such
    as "../results", or None for a page without links to them. ``warnings`` about the data become a banner,
    ``datasets`` are ids of datasets on the Hub to link to. The table ``cutoffs`` and its figure get a section of their
    own. Raises InputError if there are neither rows nor cutoffs.
    """
    cutoffs = tables.get(_CUTOFFS)
    if not rows and cutoffs is None:
        raise InputError(f"{out}: the results hold no scores; evaluate a model first")
    style, script = ((_HERE / name).read_text("utf-8") for name in ("style.css", "script.js"))
    policy = [
        "default-src 'none'",
        f"style-src {_hash_of(style)}",
        f"script-src {_hash_of(script)}",
        "img-src 'self' file: data:",  # file: for browsers that have no 'self' for a page on disk
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
    by_month, hero = months(rows), hero_of(figures)
    more = {name: of for name, of in figures.items() if name != _CUTOFFS and (name != hero or not by_month)}
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["href"] = href
    page = environment.get_template("template.html").render(
        policy="; ".join(policy),
        title=title,
        finding=by_month[0].finding if by_month else "",
        hero=hero,
        warnings=[re.sub("`([^`]+)`", r"<code>\1</code>", escape(warning)) for warning in warnings],
        style=style,
        script=script,
        data=_in_script(scores_data(rows, results)),
        tested=_tested(by_month),
        links={f"Dataset: {name}": f"https://huggingface.co/datasets/{name}" for name in datasets} | _LINKS,
        months=[
            {"month": month, "lines": [(entry, _about(entry), _cells(entry, month)) for entry in month.entries]}
            for month in by_month
        ],
        runs=_runs(by_month[0]) if by_month else "",
        explained=bool(by_month) and MEASURES[0] in by_month[0].columns,
        cutoffs=cutoffs if isinstance(cutoffs, ScoreTable) else None,
        scored=bool(rows),
        figures=figures,
        more=more,
        tables=tables,
    )
    path = out / "index.html"
    with whole_file(path) as part:  # a lone surrogate in a name cannot be encoded
        part.write_bytes(page.encode("utf-8", "replace"))
    return path


def hero_of(figures: Mapping[str, Captioned]) -> str | None:
    """Return the name of the figure at the top of the page."""
    return next((name for name in _HERO if name in figures), None)


def without_results(page: str) -> str:
    """Return the text of a page from ``write_page`` without its links to result files.

    A published page must not show the paths of the machine that wrote it.
    """
    return re.sub(r'\{"results":"[^"]*",', '{"results":null,', page, count=1)  # quotation marks in data are escaped


def _tested(by_month: Sequence[Month]) -> str:
    """Return a sentence on what the page compares."""
    if not by_month:
        return ""
    methods = len(
        {
            entry.line.label
            for month in by_month
            for entry in month.entries
            if not entry.start and not entry.line.control
        }
    )
    bases = sorted({entry.row.base for month in by_month for entry in month.entries} - {""})
    what = f"{methods} {'method' if methods == 1 else 'methods'}"
    span = f"{len(by_month)} months, the newest is {by_month[0].name}" if len(by_month) > 1 else by_month[0].name
    return f"Here: {what}{f' on {listed(bases[:3])}' if bases else ''}, {span}."


def _runs(month: Month) -> str:
    """Return the page's sentences on training runs."""
    rows = [value.row for entry in month.entries if not entry.start for value in entry.values.values()]
    spread = " ±: the standard deviation between runs." if any(row.runs > 1 for row in rows) else ""
    return training_runs(rows) + spread


def _about(entry: Entry) -> str:
    known = (METHODS | CONTROLS).get(entry.line.method or "")
    about = known.about if known else ""
    return f"{about}; reads before it answers" if entry.row.retrieved else about


def _cells(entry: Entry, month: Month) -> list[tuple[str, _MethodCell]]:
    """Return the cells of a method's line with the heads of their columns."""
    row, parameters = entry.row, ""
    if row.trainable is not None:
        of = f" of {compact(row.parameters)}" if row.parameters not in (None, row.trainable) else ""
        parameters = f"{compact(row.trainable)}{of} parameters"
    tokens = f"{compact(row.tokens)} tokens" if row.tokens is not None else "–"
    cost = _MethodCell("nothing") if entry.start or row.trainable == 0 else _MethodCell(tokens, parameters)
    return [*((column.title, _cell(entry, column)) for column in month.columns), ("Cost", cost)]


def _cell(entry: Entry, column: Column) -> _MethodCell:
    if column not in entry.values:
        return _MethodCell("–")
    value, row = entry.values[column].value, entry.values[column].row
    if column.relative:
        size = f"perplexity {score_text(row.value, 1)}"
        return _MethodCell(size) if entry.start else _MethodCell(ratio(value), size, bold=True)
    runs = f"; {row.runs} runs ± {row.spread or 0:.1f}" if row.runs > 1 else ""
    unknown = row.low is None or row.high is None
    interval = "no interval" if unknown else f"{row.low:.0f} to {row.high:.0f}"
    return _MethodCell(f"{value:.0f}", f"{interval}{runs}", bold=not entry.line.control)


def _in_script(data: Any) -> str:
    """Return ASCII JSON that is safe inside a script element: nothing in it can end the element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def _hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
