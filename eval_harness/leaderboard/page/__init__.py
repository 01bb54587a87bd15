"""The leaderboard's page: one HTML file with its styles, its script and all scores, and pictures next to it.

The page opens from disk and makes no network requests. Its content security policy allows only its own script, which
shows the table of all scores; the rest of the page needs no script.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import whole_file
from temporalwiki.eval_harness.leaderboard.headline import Month, months
from temporalwiki.eval_harness.leaderboard.names import listed
from temporalwiki.eval_harness.leaderboard.page.methods import Captioned, figure, hero_of, methods_section
from temporalwiki.eval_harness.leaderboard.page.scores import href, scores_data
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.tables.table import Table

TITLE = "TemporalWiki leaderboard"
_HERE = Path(__file__).parent
_CUTOFFS = "cutoffs"
_LINKS = {
    "Paper: TemporalWiki": "https://arxiv.org/abs/2204.14211",
    "Paper: CKL": "https://arxiv.org/abs/2110.03215",
    "The papers’ code": "https://github.com/joeljang/temporalwiki",
    "Add a model": "#add",
    "Cite": "#cite",
}


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
    links = {f"Dataset: {name}": f"https://huggingface.co/datasets/{name}" for name in datasets} | _LINKS
    finding = by_month[0].finding if by_month else ""
    page = Template((_HERE / "template.html").read_text("utf-8")).substitute(
        policy="; ".join(policy),
        title=escape(title),
        description=escape(finding or "What language models learn and forget as Wikipedia changes"),
        preview=f'<meta property="og:image" content="{href(f"figures/{hero}.png")}">' if hero else "",
        notice="".join(map(_notice, warnings)),
        style=style,
        script=script,
        data=_in_script(scores_data(rows, results)),
        tested=escape(_tested(by_month)),
        links=" ".join(f'<a href="{escape(url)}"{_new_tab(url)}>{escape(name)}</a>' for name, url in links.items()),
        methods=methods_section(by_month, figures),
        cutoffs=_cutoffs(cutoffs, figures.get(_CUTOFFS)),
        no_scores="" if rows else " hidden",
        figures=_figures(
            {name: of for name, of in figures.items() if name != _CUTOFFS and (name != hero or not by_month)}
        ),
        tables=_tables(tables),
    )
    path = out / "index.html"
    with whole_file(path) as part:  # a lone surrogate in a name cannot be encoded
        part.write_bytes(page.encode("utf-8", "replace"))
    return path


def without_results(page: str) -> str:
    """Return the text of a page from ``write_page`` without its links to result files.

    A published page must not show the paths of the machine that wrote it.
    """
    return re.sub(r'\{"results":"[^"]*",', '{"results":null,', page, count=1)  # quotation marks in data are escaped


def _notice(warning: str) -> str:
    shown = re.sub("`([^`]+)`", r"<code>\1</code>", escape(warning))
    return f'<p class="notice" role="note">About the data: {shown}.</p>'


def _tested(by_month: Sequence[Month]) -> str:
    """Return a sentence on what the page compares."""
    if not by_month:
        return ""
    methods = len({entry.line.label for month in by_month for entry in month.entries if not entry.start})
    bases = sorted({entry.row.base for month in by_month for entry in month.entries} - {""})
    what = f"{methods} {'method' if methods == 1 else 'methods'}"
    span = f"{len(by_month)} months, the newest is {by_month[0].name}" if len(by_month) > 1 else by_month[0].name
    return f"Here: {what}{f' on {listed(bases[:3])}' if bases else ''}, {span}."


def _new_tab(url: str) -> str:
    return ' target="_blank" rel="noopener"' if url.startswith("http") else ""


def _in_script(data: Any) -> str:
    """Return ASCII JSON that is safe inside a script element: nothing in it can end the element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def _hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _cutoffs(table: Captioned | None, timeline: Captioned | None) -> str:
    """Return the section on the models' knowledge cutoffs, a picture and a table, or ""."""
    if not isinstance(table, Table):
        return ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
    lines = [
        f'<tr><th scope="row"><bdi>{escape(str(first))}</bdi></th>'
        + "".join(f"<td><bdi>{escape(str(cell))}</bdi></td>" for cell in others)
        + "</tr>"
        for first, *others in table.lines
    ]
    shown = [figure(_CUTOFFS, timeline)] if timeline else []
    shown += [
        f'<div class="board"><table class="cutoffs"><caption class="unseen">{escape(table.title)}</caption>',
        f"<thead><tr>{head}</tr></thead>\n<tbody>",
        *lines,
        "</tbody></table></div>",
        f'<p class="legend">{escape(table.caption)}</p>',
    ]
    return _section(_CUTOFFS, table.title, "", shown, "")


def _figures(figures: Mapping[str, Captioned]) -> str:
    shown = [figure(name, of) for name, of in figures.items()]
    return _section("figures", "Figures", "", shown, "")


def _tables(tables: Mapping[str, Captioned]) -> str:
    shown = []
    for name, table in tables.items():
        path = href(f"tables/{name}")
        shown.append(
            f"<li><strong>{escape(table.title)}</strong> <span>{escape(table.caption)}</span> "
            f'<span class="links"><a href="{path}.md">Markdown</a> <a href="{path}.csv">CSV</a></span></li>'
        )
    shown.append(
        "<li><strong>All scores</strong> <span>Every score with its interval, ranks, model and test, one per "
        'row.</span> <span class="links"><a href="./results.parquet">Parquet</a></span></li>'
    )
    return _section("tables", "Tables and data", '<ul class="files">\n', shown, "\n</ul>")


def _section(name: str, title: str, before: str, shown: Iterable[str], after: str) -> str:
    if not (inside := "\n".join(shown)):
        return ""
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2>\n{before}{inside}{after}\n</section>'
