"""The leaderboard's page: one HTML file with its styles, its script and all scores.

The page opens from disk and makes no network requests. Its content security policy allows only its own script. Without
JavaScript it shows one board.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from html import escape
from pathlib import Path
from statistics import median
from string import Template
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import whole_file
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.tables.learned_and_forgotten import ONE_RUN
from temporalwiki.eval_harness.leaderboard.tables.table import Table, to_html
from temporalwiki.eval_harness.misalignment import places
from temporalwiki.eval_harness.results import COMMIT, place_of_measure, place_of_test

TITLE = "TemporalWiki leaderboard"
_DIGITS = 6  # significant digits of scores in the page; results.parquet has all digits
_MOST_NAMES = 12  # most names of methods, tasks and so on in the heading
_HERE = Path(__file__).parent
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?", re.ASCII)


_BETTER = {True: "higher is better", False: "lower is better", None: "neither higher nor lower is better, so no ranks"}
_HEADLINE = "learned_and_forgotten"  # the table that the page opens with


class Captioned(Protocol):
    """A figure or table with a title and a caption."""

    @property
    def title(self) -> str:
        """A few words that name it."""

    @property
    def caption(self) -> str:
        """A few sentences on what it shows."""


class _Model(NamedTuple):
    """A line of the board: a checkpoint, or one of several lines (``nth``) if a cell has several scores."""

    label: str
    month: str | None
    method: str | None
    base: str
    model: str
    revision: str
    learning_rate: float | None
    trainable: int | None
    parameters: int | None
    tokens: int | None
    nth: int


class _Board(NamedTuple):
    """A score that the page compares over models and months."""

    task: str
    version: int
    kind: str
    test: str
    measure: str
    higher_is_better: bool | None


def write_page(
    rows: Sequence[Row],
    figures: Mapping[str, Captioned],
    tables: Mapping[str, Table],
    out: Path,
    *,
    title: str = TITLE,
    results: str | None = None,
) -> Path:
    """Write OUT/index.html and return its path.

    The page shows figures/NAME.svg and links to figures/NAME.png, tables/NAME.md, tables/NAME.csv and results.parquet
    in ``out``; it does not write these files. ``results`` is the folder of the result files relative to ``out``, such
    as "../results", or None for a page without links to them. Raises InputError without rows.
    """
    if not rows:
        raise InputError(f"{out}: the results hold no scores; evaluate a model first")
    data = page_data(rows, results)
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
    page = Template((_HERE / "template.html").read_text("utf-8")).substitute(
        policy="; ".join(policy),
        title=escape(title),
        style=style,
        script=script,
        data=_in_script(data),
        facts=_facts(data),
        headline=_headline(tables.get(_HEADLINE)),
        board=_table(data),
        figures=_figures(figures),
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
    where = re.search(r'\{"results":"([^"]*)",', page)  # quotation marks within the data are escaped
    if where is None:
        return page
    page = page.replace(where[0], '{"results":null,')
    return re.sub(r'(<span class="value">)<a href="[^"]*">([^<]*)</a>', r"\1\2", page)


def page_data(rows: Sequence[Row], results: str | None) -> dict[str, Any]:
    """Return the data of the page's script: names, each once, and columns of scores for each board."""
    place = places({month for row in rows for month in (row.month, row.tested) if month})

    def placed(month: str | None) -> tuple[int, str]:
        return place[month] if month else -1, month or ""

    seen: dict[tuple[_Board, _Model, str | None], int] = {}
    lines: list[tuple[_Board, _Model, Row]] = []
    for row in rows:
        board = _Board(row.task, row.version, row.kind, row.test, row.measure, row.higher_is_better)
        model = _Model._make([*(getattr(row, name) for name in _Model._fields[:-1]), 0])
        cell = (board, model, row.tested)
        seen[cell] = seen.get(cell, -1) + 1
        lines.append((board, model._replace(nth=seen[cell]), row))
    models = sorted(
        {model for _, model, _ in lines},
        key=lambda model: (placed(model.month), model.label, [(x is not None, str(x)) for x in model]),
    )
    boards = sorted({board for board, _, _ in lines}, key=_place_of_board)
    months = sorted({row.tested for row in rows}, key=placed)
    trained = sorted({model.month for model in models}, key=placed)
    files = sorted({row.result for row in rows})
    configs = sorted({row.config for row in rows})
    number = {
        name: {value: i for i, value in enumerate(values)}
        for name, values in (("model", models), ("tested", months), ("file", files), ("config", configs))
    }
    cells_of: dict[_Board, list[tuple[int, int, Row]]] = {board: [] for board in boards}
    for board, model, row in lines:
        cells_of[board].append((number["model"][model], number["tested"][row.tested], row))
    return {
        "results": None if results is None else _href(results.rstrip("/") or "/"),
        "files": files,
        "configs": configs,
        "months": months,
        "trained": trained,
        "models": {
            "label": [model.label for model in models],
            "trained": [trained.index(model.month) for model in models],
            "method": [model.method for model in models],
            "base": [model.base for model in models],
            "model": [model.model for model in models],
            "revision": [model.revision for model in models],
            "learning_rate": [model.learning_rate for model in models],
            "trainable": [model.trainable for model in models],
            "parameters": [model.parameters for model in models],
            "tokens": [model.tokens for model in models],
            "trainable_text": [_compact(model.trainable) for model in models],
            "tokens_text": [_compact(model.tokens) for model in models],
            "card": [_card(model) for model in models],
        },
        "boards": [
            _board(board, boards, sorted(cells_of[board], key=lambda cell: cell[:2]), number) for board in boards
        ],
        "start": _start(boards),
    }


def _board(
    board: _Board, boards: Sequence[_Board], cells: Sequence[tuple[int, int, Row]], number: Mapping[str, Any]
) -> dict[str, Any]:
    same = [other for other in boards if other.task == board.task]
    versions, kinds = {other.version for other in same}, {other.kind for other in same}
    # logarithms cannot overflow
    sizes = [math.log10(abs(_rounded(row.value))) for _, _, row in cells if math.isfinite(row.value) and row.value]
    return {
        "task": board.task + (f" (version {board.version})" if len(versions) > 1 else ""),
        "test": ": ".join(filter(None, [board.kind if len(kinds) > 1 else "", board.test])) or "all",
        "measure": board.measure,
        "higher": board.higher_is_better,
        "decimals": min(max(2 - math.floor(median(sizes)), 0), 4) if sizes else 2,
        "verdicts": {
            str(month): _verdict([row for _, tested, row in cells if tested == month])
            for month in sorted({tested for _, tested, _ in cells})
        },
        "model": [model for model, _, _ in cells],
        "tested": [tested for _, tested, _ in cells],
        "value": [_as_json(row.value) for _, _, row in cells],
        "low": [_as_json(row.low) for _, _, row in cells],
        "high": [_as_json(row.high) for _, _, row in cells],
        "best": [row.rank_best for _, _, row in cells],
        "worst": [row.rank_worst for _, _, row in cells],
        "competes": [row.competes for _, _, row in cells],
        "runs": [row.runs for _, _, row in cells],
        "items": [row.items for _, _, row in cells],
        "clusters": [row.clusters for _, _, row in cells],
        "file": [number["file"][row.result] for _, _, row in cells],
        "config": [number["config"][row.config] for _, _, row in cells],
    }


def _place_of_board(board: _Board) -> tuple[Any, ...]:
    return (
        board.task,
        -board.version,
        board.kind,
        place_of_test(board.test),
        place_of_measure(board.measure),
        str(board.higher_is_better),  # may be None
    )


def _start(boards: Sequence[_Board]) -> int:
    """Return the index of the first board on the page: learned facts, or the average perplexity of probes."""
    place = {(board.task, board.test, board.measure): i for i, board in reversed([*enumerate(boards)])}
    first = place.get(("twiki_probes", "average", "perplexity"), 0)
    return place.get((_HEADLINE, "all", "learned"), first)


def _verdict(rows: Sequence[Row]) -> str:
    """Return a sentence about the ranks of a month's models, or nothing."""
    ranked = [row for row in rows if row.rank_best is not None and row.rank_worst is not None]
    if len(ranked) < 2 or max(row.rank_worst or 0 for row in ranked) != len(ranked):  # one model, or other questions
        return ""
    best = [row for row in ranked if row.rank_best == 1]
    name = f"{best[0].label}{f', trained to {best[0].month},' if best[0].month else ''}" if best else ""
    if any(row.runs == 1 and row.method not in (None, "initial") for row in ranked):
        return (f"{name} scores best on these items. " if len(best) == 1 else "") + ONE_RUN
    if len({(row.rank_best, row.rank_worst) for row in ranked}) == 1:
        return f"No significant differences between these {len(ranked)} models."
    if len(best) == 1:
        return f"{name} is significantly better than the other {len(ranked) - 1}."
    if best:
        return f"{len(best)} of {len(ranked)} models may be the best: their ranges of ranks begin with 1."
    return ""


def _card(model: _Model) -> str | None:
    """Return the address of a model's card, or None for a model that was read from a folder."""
    if not (COMMIT.fullmatch(model.revision) and _HUB_ID.fullmatch(model.model)):
        return None
    return f"https://huggingface.co/{model.model}"


def _rounded(value: float) -> float:
    """Return a score with the digits of the page."""
    return float(f"{value:.{_DIGITS}g}")


def _as_json(value: float | None) -> int | float | str | None:
    """Return a number for JSON; infinity and NaN become texts that Number() in JavaScript and float() read."""
    if value is None:
        return None
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    value = _rounded(value)
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _in_script(data: Any) -> str:
    """Return ASCII JSON that is safe inside a script element: nothing in it can end the element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def _hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _href(path: str) -> str:
    """Return a relative path as a URL that cannot be read as one with a scheme."""
    quoted = quote(path.encode("utf-8", "replace"))
    return quoted if quoted.startswith(("/", ".")) else f"./{quoted}"


# These functions write numbers as script.js does, for the board without JavaScript.


def score_text(value: float, decimals: int) -> str:
    """Return a score with the decimals of its board, or with three digits if fewer than two would be left."""
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    exact, size = Decimal(value), abs(value)
    if size and (size < float(f"1e{1 - decimals}") or size >= 1e7):
        short = Context(prec=3, rounding=ROUND_HALF_UP).plus(exact)
        short = short.quantize(Decimal(1).scaleb(short.adjusted() - 2))
        power = short.adjusted()
        text = f"{short.scaleb(-power):f}e{power}" if size < 1e-6 or size >= 1e7 else f"{short:f}"
    else:
        text = f"{exact.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP):,f}"
    return text.replace("-", "−")


def _compact(count: int | None) -> str:
    """Return a count with three digits, such as 774 M."""
    if count is None:
        return ""
    for power, suffix in ((12, "T"), (9, "B"), (6, "M"), (3, "K")):
        if count >= 0.9995 * 10**power:
            size = count / 10**power
            return f"{size:.{2 if size < 9.995 else 1 if size < 99.95 else 0}f} {suffix}"
    return str(count)


def _facts(data: Mapping[str, Any]) -> str:
    """Return the heading's list of models, methods, base models, tasks and months as HTML."""
    models = data["models"]
    checkpoints = set(zip(*(models[name] for name in ("label", "trained", "base", "model", "revision")), strict=True))
    parts = [
        ("Models", [f"{len(checkpoints):,}"]),
        ("Methods", sorted({method for method in models["method"] if method}) or ["none"]),
        ("Base models", sorted({base for base in models["base"] if base}) or ["not known"]),
        ("Tasks", sorted({board["task"] for board in data["boards"]})),
        ("Tested on", [month for month in data["months"] if month] or ["no month"]),
    ]
    return "\n".join(f"<div><dt>{name}</dt><dd>{_listed(values)}</dd></div>" for name, values in parts)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(f"<bdi>{escape(name)}</bdi>" for name in names[:_MOST_NAMES]) + more


def _table(data: Mapping[str, Any]) -> str:
    """Return the first board as HTML, best model first, for the page without JavaScript."""
    board, models = data["boards"][data["start"]], data["models"]
    month = max(board["tested"])
    cells = [i for i, tested in enumerate(board["tested"]) if tested == month]

    def place(i: int) -> tuple[bool, float, int]:
        value = float(board["value"][i])
        last = math.isnan(value) or not board["competes"][i]
        return last, 0 if board["higher"] is None else -value if board["higher"] else value, board["model"][i]

    shown = data["months"][month] or "no month"
    score = f"{board['measure'].replace('_', ' ')} on {shown}"
    heads = ["Model", "Trained to", score[:1].upper() + score[1:], "Rank", "Base", "Trainable", "Tokens"]
    lines = []
    for i in sorted(cells, key=place):
        model = board["model"][i]
        name = escape(models["label"][model])
        if card := models["card"][model]:
            name = f'<a href="{escape(card)}" target="_blank" rel="noopener">{name}</a>'
        value = score_text(float(board["value"][i]), board["decimals"])
        if data["results"] is not None:
            file = quote(data["files"][board["file"][i]].encode("utf-8", "replace"))
            value = f'<a href="{data["results"]}/{file}">{value}</a>'
        ends = [board["low"][i], board["high"][i]]
        interval = "no interval"
        if None not in ends:
            interval = " – ".join(score_text(float(end), board["decimals"]) for end in ends)
        ranks = [str(rank) for rank in dict.fromkeys((board["best"][i], board["worst"][i])) if rank is not None]
        trained = data["trained"][models["trained"][model]] or "none"
        lines.append(
            f'<tr><th scope="row"><bdi class="label">{name}</bdi>'
            f'<small class="id"><bdi>{escape(models["model"][model])}</bdi></small></th><td>{escape(trained)}</td>'
            f'<td class="score wide"><span class="value">{value}</span> <span class="interval">{interval}</span></td>'
            f'<td class="rank">{"–".join(ranks)}</td><td class="base"><bdi>{escape(models["base"][model])}</bdi></td>'
            f'<td class="number">{models["trainable_text"][model]}</td>'
            f'<td class="number">{models["tokens_text"][model]}</td></tr>'
        )
    what = f"{board['task']}, {board['test']}, {score}: {_BETTER[board['higher']]}."
    return (
        f"<caption>{escape(what)} {escape(board['verdicts'][str(month)])}</caption>\n<thead><tr>"
        + "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
        + "</tr></thead>\n<tbody>\n"
        + "\n".join(lines)
        + "\n</tbody>"
    )


def _headline(table: Table | None) -> str:
    """Return the table of learned and forgotten facts as a section, or nothing without one."""
    if table is None:
        return ""
    return (
        f'<section aria-labelledby="headline"><h2 id="headline">{escape(table.title)}</h2>\n'
        f'<div class="board" role="region" aria-label="{escape(table.title)}" tabindex="0"><table>\n'
        f"{to_html(table)}\n</table></div></section>"
    )


def _figures(figures: Mapping[str, Captioned]) -> str:
    shown = []
    for name, figure in figures.items():
        path, title, caption = _href(f"figures/{name}"), escape(figure.title), escape(figure.caption)
        shown.append(
            f'<figure><a class="open" href="{path}.svg" data-png="{path}.png">'
            f'<img src="{path}.svg" alt="{caption}"></a>'
            f'<figcaption><strong>{title}</strong> <span>{caption}</span> <a href="{path}.png">PNG</a></figcaption>'
            "</figure>"
        )
    return _section("figures", "Figures", '<div class="grid">\n', shown, "\n</div>")


def _tables(tables: Mapping[str, Table]) -> str:
    shown = []
    for name, table in tables.items():
        path = _href(f"tables/{name}")
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
