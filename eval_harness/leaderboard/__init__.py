"""The leaderboard: who wins, on what, and whether the difference is more than chance."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import only_one, sweep
from temporalwiki.eval_harness.leaderboard.figures import FIGURES, write_figures
from temporalwiki.eval_harness.leaderboard.fuar_rows import fuar_rows
from temporalwiki.eval_harness.leaderboard.page import TITLE, write_page
from temporalwiki.eval_harness.leaderboard.rows import rows, write_parquet
from temporalwiki.eval_harness.leaderboard.space import write_space
from temporalwiki.eval_harness.leaderboard.tables import TABLES, write_tables
from temporalwiki.eval_harness.results import Result

_PARQUET = "results.parquet"


def write_leaderboard(results: Sequence[Result], folder: Path, out: Path, data: str | None = None) -> Iterator[str]:
    """Write the leaderboard of ``results``, which lie in ``folder``, to ``out``, and yield what to say of it.

    ``data`` is the dataset whose facts are shown, too: a folder, a Hub id or id@revision. The same results give the
    same bytes. Raises InputError where ``out`` holds something else, or another one writes there.
    """
    there = [path for path in out.iterdir() if not path.match(f".{_PARQUET}.*.part")] if out.is_dir() else []
    if there and not (out / _PARQUET).is_file():
        raise InputError(f"{out}: is not empty and holds no leaderboard; name another folder with --out")
    found = rows(results, folder)
    found += fuar_rows(results, found, folder)
    with only_one(out, "leaderboard"):
        sweep(out)
        out.mkdir(parents=True, exist_ok=True)
        write_parquet(found, out / _PARQUET)
        tables = write_tables(found, out / "tables")
        figures = write_figures(found, out / "figures", data)
        write_space(out, results, title=TITLE)
        page = write_page(found, figures, tables, out, results=Path(os.path.relpath(folder, out)).as_posix())
    yield f"{len(found):,} scores of {len(results):,} results: {out / _PARQUET}"
    yield from _made("tables", list(tables), TABLES, out)
    yield from _made("figures", list(figures), FIGURES, out)
    yield f"the page: {page}"


def _made(what: str, names: Sequence[str], possible: Collection[str], out: Path) -> Iterator[str]:
    if names:
        yield f"{what}: {', '.join(names)} in {out / what}"
    if lacking := [name for name in possible if name not in names]:
        yield f"not made, as these results lack what they show: {', '.join(lacking)}"
