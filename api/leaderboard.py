"""``temporalwiki leaderboard``: make a page, tables and figures from result files.

Example:

    temporalwiki leaderboard results --out leaderboard
    temporalwiki leaderboard results --out leaderboard --data temporalwiki   # also plots the data
    temporalwiki leaderboard results --out leaderboard --others ORG/temporalwiki   # with scores of others on the Hub
    temporalwiki cutoff MODEL --data DATASET --output results/MODEL          # adds MODEL to a timeline of cutoffs
"""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from temporalwiki.api.arguments import Arg, Folder
from temporalwiki.api.table import Table
from temporalwiki.methods import needs


@dataclass(frozen=True, repr=False)
class Board(Table):
    """A leaderboard: its folder, and a row for each score."""

    @property
    def picture(self) -> Path | None:
        """The chart "learned and forgotten" of the methods, or None if no result has both measures."""
        return picture_in(self.path)


def picture_in(folder: Path) -> Path | None:
    """Return the chart "learned and forgotten" of a leaderboard's folder, or None."""
    figure = folder / "figures" / "learned_and_forgotten.png"
    return figure if figure.is_file() else None


def leaderboard(
    results: Annotated[str | os.PathLike[str], Arg("RESULTS", positional=True)],
    out: Folder,
    *,
    data: Annotated[str | os.PathLike[str], Arg("DATASET")] | None = None,
    export: Folder | None = None,
    others: Annotated[str, Arg("DATASET")] | None = None,
) -> Board:
    """Write the leaderboard of result files, and return its folder and a row for each score.

    Args:
        results: folder with results of `temporalwiki evaluate`, and of `temporalwiki cutoff` as DIR/cutoff.json.
        out: folder of the page, index.html.
        data: dataset folder or Hub id, to plot its facts.
        export: folder to also write each result to, as a document of Every Eval Ever.
        others: dataset on the Hub; the page also shows the scores on it that others reported there, without ranks.

    Raises InputError for folders that cannot be used, and UsageError if a package is missing.
    """
    with needs("eval"):
        from temporalwiki.eval_harness.results import read_results

        found = read_results(Path(results))

        from temporalwiki.eval_harness.leaderboard.rows import read_parquet
        from temporalwiki.eval_harness.leaderboard.write import write_leaderboard  # takes seconds to import
        from temporalwiki.model_cards.every_eval_ever import write_logs
        from temporalwiki.model_cards.space import space_card
        from temporalwiki.push_scripts.reported import reported_by_others

    folder, shown = Path(out), None if data is None else os.fspath(data)
    theirs = reported_by_others(others, {result.manifest.model.name for result in found}) if others else None
    lines = list(write_leaderboard(found, Path(results), folder, space_card, shown, theirs.rows if theirs else ()))
    if theirs:
        reasons = "; ".join(f"{count:,} {why}" for why, count in sorted(theirs.left_out.items()))
        lines.append(f"{len(theirs.rows):,} scores reported by others on {others}; left out: {reasons or 'none'}")
    if export is not None:
        lines.append(f"{len(write_logs(found, Path(export)))} results for Every Eval Ever: {Path(export)}")
    return Board(folder, [asdict(row) for row in read_parquet(folder / "results.parquet")], "\n".join(lines))
