"""The leaderboard's page: one HTML file with its styles, its script and all scores, and pictures next to it.

The page opens from disk and makes no network requests. Its content security policy allows only its own script, which
shows the table of all scores; the rest of the page needs no script.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Protocol

import jinja2

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import whole_file
from temporalwiki.eval_harness.leaderboard.figures.style import GREY, Look, looks, sign
from temporalwiki.eval_harness.leaderboard.headline import MEASURES, UNDECIDED, Month, months, percent
from temporalwiki.eval_harness.leaderboard.names import listed
from temporalwiki.eval_harness.leaderboard.page.items import ShownFact, items_data
from temporalwiki.eval_harness.leaderboard.page.scores import href, scores_data
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.selection import ModelBoard
from temporalwiki.eval_harness.leaderboard.tables import ScoreTable
from temporalwiki.methods import CONTROLS, METHODS

TITLE = "TemporalWiki leaderboard"
_HERE = Path(__file__).parent
_CUTOFFS = "cutoffs"
_DOTS = {"path": "M-1 0h.4M-.2 0h.4M.6 0h.4", "fill": "none", "stroke": GREY}  # as the figure's line
HERO = "learned_and_forgotten"  # the picture at the top
_PROJECT = "https://github.com/ORG/temporalwiki"  # as in CONTRIBUTING.md
_LINKS = {
    "temporalwiki": _PROJECT,
    "Docs": f"{_PROJECT}/tree/main/docs#readme",
    "Paper: TemporalWiki": "https://arxiv.org/abs/2204.14211",
    "Paper: CKL": "https://arxiv.org/abs/2110.03215",
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


def write_page(
    rows: Sequence[Row],
    figures: Mapping[str, Captioned],
    tables: Mapping[str, Captioned],
    out: Path,
    *,
    title: str = TITLE,
    items: Mapping[str, Mapping[str, ShownFact]] | None = None,
    results: str | None = None,
    warnings: Sequence[str] = (),
    datasets: Sequence[str] = (),
    cutoff_items: Sequence[str | None] = (),
) -> Path:
    """Write OUT/index.html and return its path.

    The page shows figures/NAME.svg and links to figures/NAME.png, tables/NAME.md, tables/NAME.csv and results.parquet
    in ``out``; it does not write these files. ``results`` is the folder of the result files relative to ``out``, such
    as "../results", or None for a page without links to them. ``items`` are from ``items_of``. ``warnings`` about the
    data become a note, ``datasets`` are ids of datasets on the Hub to link to. The tables ``cutoffs`` (with
    its figure) and ``reported_by_others`` get sections of their own; ``cutoff_items`` are files in the folder
    ``results`` for the lines of ``cutoffs``. Raises InputError if there are neither rows nor cutoffs.
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
    own, others = [row for row in rows if not row.reported], tables.get("reported_by_others")
    by_month, look = months(own), looks(ModelBoard(own).lines)
    asked = items_data(by_month, items or {})
    data = scores_data(rows, results) | {"items": asked, "ranked": bool(by_month)}
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
        undecided=UNDECIDED if rows and not by_month else "",
        hero=HERO if HERO in figures else None,
        warnings=[re.sub("`([^`]+)`", r"<code>\1</code>", escape(warning)) for warning in warnings],
        style=style,
        script=script,
        data=_in_script(data),
        tested=_tested(by_month),
        links={f"Dataset: {name}": f"https://huggingface.co/datasets/{name}" for name in datasets} | _LINKS,
        months=[
            {"month": month, "nth": nth, "lines": _lines(month, look, asked[nth]["lines"])}
            for nth, month in enumerate(by_month)
        ],
        measures=MEASURES,
        items=any(line for of in asked for line in of["lines"]),
        cutoffs=cutoffs if isinstance(cutoffs, ScoreTable) else None,
        others=others if isinstance(others, ScoreTable) else None,
        cutoff_items=[path and results and f"{results}/{path}" for path in cutoff_items],
        scored=bool(rows),
        figures=figures,
        more={name: of for name, of in figures.items() if name not in (HERO, _CUTOFFS)},
        tables=tables,
    )
    path = out / "index.html"
    with whole_file(path) as part:  # a lone surrogate in a name cannot be encoded
        part.write_bytes(page.encode("utf-8", "replace"))
    return path


def _tested(by_month: Sequence[Month]) -> str:
    """Return a sentence on what the page compares."""
    entries = [entry for month in by_month for entry in month.entries]
    methods = len({entry.line.label for entry in entries if not entry.start and not entry.line.control})
    bases = sorted({entry.row.base for entry in entries} - {""})
    what = f"{methods} {'method' if methods == 1 else 'methods'}"
    return f"{what}{f' on {listed(bases[:3])}' if bases else ''}" if by_month else ""


def _lines(month: Month, look: Mapping[str, Look], items: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the lines of the table: methods above chance, chance, and the others. Scores without a rank are grey."""
    lines: list[dict[str, Any]] = []
    for nth, (entry, own) in enumerate(zip(month.entries, items, strict=True)):
        known = (METHODS | CONTROLS).get(entry.line.method or "")
        lines.append(
            {
                "name": entry.name,
                "about": "reads before it answers" if entry.row.retrieved else known.about if known else "",
                "grey": entry.line.control,
                "sign": sign(look[entry.line.label]),
                "cells": [_cell(entry.values.get(measure)) for measure in MEASURES],
                "rank": entry.rank,
                "runs": entry.row.runs,
                "nth": None if own is None else nth,
            }
        )
    if month.chance is not None:
        cells = [{"main": percent(month.chance), "small": "", "ranked": False}] * len(MEASURES)
        chance = {"name": "Chance", "about": "knows nothing", "grey": True, "sign": _DOTS, "cells": cells}
        lines.insert(sum(entry.able for entry in month.entries), chance | {"rank": "", "runs": "", "nth": None})
    return lines


def _cell(row: Row | None) -> dict[str, Any]:
    if row is None:
        return {"main": "–", "small": "", "ranked": False}
    known = row.low is not None and row.high is not None
    small = f"[{row.low:.0f}, {row.high:.0f}]" if known else "no interval"
    return {"main": percent(row.value), "small": small, "ranked": row.rank_best is not None}


def _in_script(data: Any) -> str:
    """Return ASCII JSON that is safe inside a script element: nothing in it can end the element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def _hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
