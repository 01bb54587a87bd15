"""The tables of the papers, made from the leaderboard's rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from temporalwiki.base.files import whole_file
from temporalwiki.eval_harness.leaderboard.cutoffs import Known
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.tables import ckl_table_2, learned_and_forgotten, temporalwiki_table_3
from temporalwiki.eval_harness.leaderboard.tables.cutoffs import cutoffs_table
from temporalwiki.eval_harness.leaderboard.tables.table import Maker, Score, Table, to_csv, to_markdown

__all__ = ["TABLES", "Maker", "Score", "Table", "to_csv", "to_markdown", "write_tables"]

_LOWER, _HIGHER = "Lower is better.", "In percent, higher is better."

# name -> function that makes the table, or None if the rows lack its scores
TABLES: dict[str, Maker] = {
    "learned_and_forgotten": learned_and_forgotten.learned_and_forgotten,
    "temporalwiki_table_3": temporalwiki_table_3.maker(
        "TemporalWiki, table 3: zero-shot perplexity of TWiki-Probes", _LOWER, "", "perplexity"
    ),
    "light_tuned_perplexity": temporalwiki_table_3.maker(
        "TWiki-Probes after light-tuning: perplexity", _LOWER, "light-tuned/", "perplexity"
    ),
    "light_tuned_exact_match": temporalwiki_table_3.maker(
        "TWiki-Probes after light-tuning: exact match", _HIGHER, "light-tuned/", "exact_match"
    ),
    "light_tuned_f1": temporalwiki_table_3.maker("TWiki-Probes after light-tuning: F1", _HIGHER, "light-tuned/", "f1"),
    "ckl_table_2": ckl_table_2.ckl_table_2,
}


def write_tables(rows: Sequence[Row], folder: Path, cutoffs: Sequence[Known] = ()) -> dict[str, Table]:
    """Write the tables that the rows have scores for as FOLDER/NAME.md and NAME.csv, and return name -> table.

    Files of tables that cannot be made are removed.
    """
    made = {}
    tables = {name: make(rows) for name, make in TABLES.items()} | {"cutoffs": cutoffs_table(cutoffs)}
    for name, table in tables.items():
        for ending, text in (("md", to_markdown), ("csv", to_csv)):
            path = folder / f"{name}.{ending}"
            if table is None:
                path.unlink(missing_ok=True)
                continue
            made[name] = table
            with whole_file(path) as part:
                part.write_text(text(table), encoding="utf-8", newline="\n")
    return made
