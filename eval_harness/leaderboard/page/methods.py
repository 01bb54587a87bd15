"""The part of the page that a reader sees first: a picture, and a line for each method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Protocol

from temporalwiki.eval_harness.leaderboard.headline import (
    FORGOTTEN,
    LEARNED,
    Column,
    Entry,
    Month,
    ratio,
    signed,
    training_runs,
)
from temporalwiki.eval_harness.leaderboard.page.scores import compact, href, score_text
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.methods import METHODS

_HERO = ("learned_and_forgotten", "learning_rate")  # the picture at the top: the first that there is
_HOW = """<p class="legend"><b>Learned</b>: how much more likely the objects of changed facts became, compared with
those of unchanged facts with the same relations. <b>Forgotten</b>: how much less likely the objects of unchanged facts
became. Below both: the 95&nbsp;% interval. A change of 0.69 nats per token means that a token became, on average,
twice (or half) as likely. <b>New text</b> and <b>Old text</b>: the perplexity of names in text that changed in the
month, and in text that did not, divided by the start model’s, without an interval. Below both: the perplexity.</p>"""
_SURE = (
    "Methods are compared fact by fact. A difference is clear if chance in the choice of facts does not explain it "
    "(95 %)."
)


class Captioned(Protocol):
    """A figure or table with a title and a caption."""

    @property
    def title(self) -> str:
        """A few words that name it, or what it shows."""

    @property
    def caption(self) -> str:
        """A few sentences on what it shows."""


def hero_of(figures: Mapping[str, Captioned]) -> str | None:
    """Return the name of the figure at the top of the page."""
    return next((name for name in _HERO if name in figures), None)


def methods_section(months: Sequence[Month], figures: Mapping[str, Captioned]) -> str:
    """Return the first section of the page, or "" if no method was scored on the month that it was trained up to."""
    if not months:
        return ""
    newest, hero = months[0], hero_of(figures)
    title = newest.finding or "What each method learned and forgot"
    parts = [
        f'<section aria-labelledby="methods"><p class="kicker">{escape(newest.name)}</p>',
        f'<h2 id="methods">{escape(title)}</h2>',
        f"<p>{escape(newest.advice)} {_SURE} {_runs(newest)}</p>",
        figure(hero, figures[hero], titled=False) if hero else "",
        table(newest),
        _HOW if LEARNED in newest.columns else "",
    ]
    parts += [
        f"<details><summary>{escape(month.name)}{': ' if month.finding else ''}{escape(month.finding)}</summary>\n"
        f"{table(month)}</details>"
        for month in months[1:]
    ]
    return "\n".join([*filter(None, parts), "</section>"])


def table(month: Month) -> str:
    """Return a table with a line for each method."""
    heads = "".join(
        f'<th scope="col">{escape(column.title)} <small>{escape(column.unit)}</small></th>' for column in month.columns
    )
    lines = "\n".join(_line(entry, month) for entry in month.entries)
    return (
        f'<div class="board"><table class="methods"><caption class="unseen">{escape(month.name)}</caption>\n'
        f'<thead><tr><th scope="col">Method</th>{heads}<th scope="col">Cost <small>tokens read; parameters trained'
        f"</small></th></tr></thead>\n<tbody>\n{lines}\n</tbody></table></div>"
    )


def figure(name: str, shown: Captioned, *, titled: bool = True) -> str:
    """Return a figure as HTML, with a narrow version for phones."""
    path, title, caption = href(f"figures/{name}"), escape(shown.title), escape(shown.caption)
    return (
        f'<figure><picture><source media="(max-width: 44rem)" srcset="{path}_narrow.svg">'
        f'<img src="{path}.svg" alt="{title}"></picture><figcaption>'
        + (f"<strong>{title}</strong> " if titled else "")
        + f'<span>{caption}</span> <a href="{path}.svg">SVG</a> <a href="{path}.png">PNG</a></figcaption></figure>'
    )


def _line(entry: Entry, month: Month) -> str:
    about = METHODS[entry.line.method].about if entry.line.method in METHODS else ""
    if entry.row.retrieved:
        about += "; reads before it answers"
    cells = [_cell(entry, column) for column in month.columns]
    heads = [column.title for column in month.columns]
    row, parameters = entry.row, ""
    if row.trainable is not None:
        of = f" of {compact(row.parameters)}" if row.parameters not in (None, row.trainable) else ""
        parameters = f"{compact(row.trainable)}{of} parameters"
    tokens = f"{compact(row.tokens)} tokens" if row.tokens is not None else ""
    cells.append("nothing" if entry.start else f"{tokens or '–'} <small>{parameters}</small>")
    heads.append("Cost")
    return (
        f'<tr><th scope="row"><bdi>{escape(entry.name)}</bdi> <small>{escape(about)}</small></th>'
        + "".join(f'<td data-head="{head}">{cell}</td>' for head, cell in zip(heads, cells, strict=True))
        + "</tr>"
    )


def _cell(entry: Entry, column: Column) -> str:
    if entry.start and column in (LEARNED, FORGOTTEN):
        return "0 <small>by definition</small>"
    if column not in entry.values:
        return "–"
    value, row = entry.values[column].value, entry.values[column].row
    if column.relative:
        size = score_text(row.value, 1)
        return f"perplexity {size}" if entry.start else f"<b>{ratio(value)}</b> <small>perplexity {size}</small>"
    runs = f"; {row.runs} runs ± {signed(row.spread or 0)}" if row.runs > 1 else ""
    return f"<b>{signed(value)}</b> <small>{_interval(row)}{runs}</small>"


def _runs(month: Month) -> str:
    """Return the page's sentences on training runs."""
    rows = [value.row for entry in month.entries if not entry.start for value in entry.values.values()]
    spread = " ±: the standard deviation between runs." if any(row.runs > 1 for row in rows) else ""
    return training_runs(rows) + spread


def _interval(row: Row) -> str:
    return "no interval" if row.low is None or row.high is None else f"{signed(row.low)} to {signed(row.high)}"
