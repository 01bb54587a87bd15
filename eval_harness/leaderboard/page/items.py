"""What the page shows of single facts: the question, the right answer, and what each model answered."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from temporalwiki.base.errors import InputError
from temporalwiki.base.terminal import in_line
from temporalwiki.eval_harness.leaderboard.headline import NEW, Month, months
from temporalwiki.eval_harness.leaderboard.rows import Row, items_in, path_in
from temporalwiki.eval_harness.results import Result

_MOST, _MOST_MONTHS = 20, 12  # facts of a split, and months
_LONGEST = 100  # characters of a text


class ShownFact(msgspec.Struct):
    """A fact that a model was asked about."""

    id: str
    split: Literal["changed", "unchanged"]
    prompt: str
    object: str
    answer: str
    known: float
    start_known: float | None = None


def items_of(results: Sequence[Result], rows: Sequence[Row], folder: Path) -> dict[str, dict[str, ShownFact]]:
    """Return result file -> id -> item, for the models of the page's tables. Results of older versions have no texts.

    The first ids of each split are shown: they are hashes, so nobody chose the facts. Of several runs, these are the
    first one's. Raises InputError for damaged items.
    """
    by_path = {path_in(folder, result): result for result in results}
    entries = [entry for month in months(rows)[:_MOST_MONTHS] for entry in month.entries if NEW in entry.values]
    shown = dict.fromkeys(entry.values[NEW].result for entry in entries)
    return {path: _items(by_path[path]) for path in shown if path in by_path}


def items_data(by_month: Sequence[Month], items: Mapping[str, Mapping[str, ShownFact]]) -> list[dict[str, Any]]:
    """Return the facts of each month and, for each line of its table, answers and whether they were and are known."""
    data = []
    for month in by_month:
        of = [items.get(entry.values[NEW].result, {}) if NEW in entry.values else {} for entry in month.entries]
        facts = {id: item for own in of for id, item in own.items()}
        order = sorted(facts, key=lambda id: (facts[id].split, id))
        lines = [
            [[_text(own[id].answer), own[id].start_known, own[id].known] if id in own else None for id in order]
            for own in of
        ]
        texts = [[facts[id].split, _text(facts[id].prompt), _text(facts[id].object)] for id in order]
        data.append({"facts": texts, "lines": [line if any(line) else None for line in lines]})
    return data


def _items(result: Result) -> dict[str, ShownFact]:
    try:
        table = items_in(result)
        if table is None or "prompt" not in table.column_names:
            return {}
        named = table.filter(pc.equal(table["form"], "name"))
        parts = [named.filter(pc.equal(named["split"], split)).slice(0, _MOST) for split in ("changed", "unchanged")]
        found = msgspec.convert([row for part in parts for row in part.to_pylist()], list[ShownFact])
    except (KeyError, UnicodeError, pa.ArrowException, msgspec.ValidationError):
        path = result.path.with_suffix(".parquet")
        raise InputError(f"{path}: not the items of a result; evaluate the model again") from None
    return {item.id: item for item in found}


def _text(text: str) -> str:
    text = in_line(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
