"""The data of the page's table of all scores: names, each once, and columns of scores for each board."""

import math
import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import quote

from temporalwiki.eval_harness.leaderboard.names import method_name, month_name
from temporalwiki.eval_harness.leaderboard.rows import Row, shown_rank
from temporalwiki.eval_harness.misalignment import places
from temporalwiki.eval_harness.results import COMMIT, place_of_measure, place_of_test

_DIGITS = 6  # significant digits of scores in the data; results.parquet has all digits
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_FIRST = (("learned_and_forgotten", "all", "new_known"), ("twiki_probes", "average", "perplexity"))


class _Model(NamedTuple):
    """A checkpoint, or one of several lines (``nth``) if it has several scores of one kind."""

    label: str
    month: str | None
    method: str | None
    base: str
    model: str
    revision: str
    trainable: int | None
    tokens: int | None
    reported: str
    nth: int


class _Board(NamedTuple):
    """A score that the page compares over models and months."""

    task: str
    version: int
    kind: str
    test: str
    measure: str
    higher_is_better: bool | None


def scores_data(rows: Sequence[Row], results: str | None) -> dict[str, Any]:
    """Return the data of the page's script. ``results`` is the folder of result files, as in ``write_page``."""
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
    cells: dict[_Board, list[tuple[int, int, Row]]] = {board: [] for board in boards}
    number, at = {model: i for i, model in enumerate(models)}, {month: i for i, month in enumerate(months)}
    for board, model, row in lines:
        cells[board].append((number[model], at[row.tested], row))
    known = [(board.task, board.test, board.measure) for board in boards]
    return {
        "results": None if results is None else href(results.rstrip("/") or "/"),
        "months": [_month(month, "no month") for month in months],
        "models": [
            {
                "name": method_name(model.label),
                "place": placed(model.month)[0],
                "month": _month(model.month, "not known" if model.reported else "before any month"),
                "method": model.method,
                "base": model.base,
                "id": model.model,
                "card": _card(model),
                "trainable": model.trainable,
                "trainable_text": compact(model.trainable),
                "tokens": model.tokens,
                "tokens_text": compact(model.tokens),
                "reported": model.reported or None,
            }
            for model in models
        ],
        "boards": [_board(board, boards, sorted(cells[board], key=lambda cell: cell[:2])) for board in boards],
        "start": next((known.index(score) for score in _FIRST if score in known), 0),
    }


def _board(board: _Board, boards: Sequence[_Board], cells: Sequence[tuple[int, int, Row]]) -> dict[str, Any]:
    same = [other for other in boards if other.task == board.task]
    versions, kinds = {other.version for other in same}, {other.kind for other in same}
    # logarithms cannot overflow
    sizes = [math.log10(abs(_rounded(row.value))) for _, _, row in cells if math.isfinite(row.value) and row.value]
    decimals = min(max(2 - math.floor(median(sizes)), 0), 4) if sizes else 2
    rows = [row for _, _, row in cells]
    return {
        "task": board.task + (f" (version {board.version})" if len(versions) > 1 else ""),
        "test": ": ".join(filter(None, [board.kind if len(kinds) > 1 else "", board.test])) or "all",
        "measure": board.measure.replace("_", " "),
        "higher": board.higher_is_better,
        "model": [model for model, _, _ in cells],
        "month": [tested for _, tested, _ in cells],
        "value": [_as_json(row.value) for row in rows],
        "text": [score_text(row.value, decimals) for row in rows],
        "interval": [interval_text(row, decimals) for row in rows],
        "competes": [row.competes and not row.trained_on_test for row in rows],
        "best": [row.rank_best for row in rows],
        "rank": [shown_rank(row) for row in rows],
        "file": [quote(row.result.encode("utf-8", "replace")) for row in rows],
    }


def _place_of_board(board: _Board) -> tuple[Any, ...]:
    return (
        board.task,
        -board.version,
        board.kind,
        place_of_test(board.test),
        place_of_measure(board.measure),
        str(board.higher_is_better),
    )


def _month(month: str | None, none: str) -> str:
    return month_name(month) if month else none


def _card(model: _Model) -> str | None:
    """Return the address of a model's card, or None for a model that was read from a folder."""
    if not ((COMMIT.fullmatch(model.revision) or model.reported) and _HUB_ID.fullmatch(model.model)):
        return None
    return f"https://huggingface.co/{model.model}"


def _rounded(value: float) -> float:
    """Return a score with the digits of the page."""
    return float(f"{value:.{_DIGITS}g}")


def _as_json(value: float) -> int | float | str:
    """Return a number for JSON; infinity and NaN become texts that Number() in JavaScript and float() read."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    value = _rounded(value)
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def href(path: str) -> str:
    """Return a relative path as a URL that cannot be read as one with a scheme."""
    quoted = quote(path.encode("utf-8", "replace"))
    return quoted if quoted.startswith(("/", ".")) else f"./{quoted}"


def score_text(value: float, decimals: int) -> str:
    """Return a score with this many decimals, or with three digits if fewer than two would be left."""
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


def interval_text(row: Row, decimals: int) -> str:
    """Return the ends of a score's interval."""
    if row.low is None or row.high is None:
        return "no interval"
    return f"{score_text(row.low, decimals)} to {score_text(row.high, decimals)}"


def compact(count: int | None) -> str:
    """Return a count with three digits, such as 774 M."""
    if count is None:
        return ""
    for power, suffix in ((12, "T"), (9, "B"), (6, "M"), (3, "K")):
        if count >= 0.9995 * 10**power:
            size = count / 10**power
            return f"{size:.{2 if size < 9.995 else 1 if size < 99.95 else 0}f} {suffix}"
    return str(count)
