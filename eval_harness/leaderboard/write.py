"""Write the leaderboard of result files: a page, tables, figures and a Parquet file of scores."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import only_one, sweep, whole_file
from temporalwiki.builders.loading import config_names
from temporalwiki.builders.manifests import BuiltManifest, read_manifests
from temporalwiki.eval_harness.leaderboard.cutoffs import read_cutoffs
from temporalwiki.eval_harness.leaderboard.figures import FIGURES, Plot, write_figures
from temporalwiki.eval_harness.leaderboard.fuar_rows import fuar_rows
from temporalwiki.eval_harness.leaderboard.headline import UNDECIDED, months
from temporalwiki.eval_harness.leaderboard.page import TITLE, write_page
from temporalwiki.eval_harness.leaderboard.page.items import items_of
from temporalwiki.eval_harness.leaderboard.rows import Row, is_leaderboard, rows, write_parquet
from temporalwiki.eval_harness.leaderboard.tables import TABLES, write_tables
from temporalwiki.eval_harness.misalignment import places
from temporalwiki.eval_harness.results import Result

_PARQUET = "results.parquet"
# from a title, and the leaderboard's results, rows and figures, to the text of a card
Card = Callable[[str, Sequence[Result], Sequence[Row], Mapping[str, Plot]], str]


def write_leaderboard(
    results: Sequence[Result], folder: Path, out: Path, card: Card, data: str | None = None, others: Sequence[Row] = ()
) -> Iterator[str]:
    """Write the leaderboard of the results in ``folder`` to ``out``, and yield lines about the files.

    Results of ``temporalwiki cutoff`` in ``folder`` become a timeline.

    Args:
        results: the results, as ``read_results(folder)`` returns them.
        folder: their folder; the page links to the files in it.
        out: an empty folder, or one with an older leaderboard.
        card: makes the README.md of the Space that ``out`` can be published as.
        data: also show the facts of this dataset: a folder, a Hub id or id@revision. A folder's warnings become a
            note, and its months get their years.
        others: scores that other people reported, without ranks.

    The same results give the same bytes. Raises InputError if ``out`` holds anything else, or if another process
    writes to it.
    """
    existing = [path for path in out.iterdir() if not path.match(f".{_PARQUET}.*.part")] if out.is_dir() else []
    if existing and not is_leaderboard(out / _PARQUET):
        raise InputError(f"{out}: is not empty, and is not a leaderboard; name another folder with --out")
    if data is not None:
        config_names(data)  # a typo must not leave half of a leaderboard
    cutoffs = read_cutoffs(folder)
    with only_one(out, "leaderboard"):
        sweep(out)
        found = rows(results, folder)
        found += fuar_rows(results, found, folder)
        both = [*found, *_in_months_of(found, others)]
        write_parquet(both, out / _PARQUET)
        tables = write_tables(both, out / "tables", cutoffs)
        manifests = read_manifests(Path(data)) if data is not None and Path(data).is_dir() else []
        built = [manifest for manifest in manifests if isinstance(manifest, BuiltManifest)]
        names = [manifest.name for manifest in built]
        shown = _with_years(found, names)
        figures = write_figures(shown, out / "figures", data, cutoffs)
        with whole_file(out / "README.md") as part:
            part.write_text(card(TITLE, results, found, figures), encoding="utf-8", newline="\n")
        page = write_page(
            _with_years(both, names),
            figures,
            tables,
            out,
            items=items_of(results, shown, folder),
            results=Path(os.path.relpath(folder, out)).as_posix(),
            warnings=list(dict.fromkeys(text for manifest in built for text in manifest.warnings)),
            cutoff_items=[one.items for one in cutoffs],
            datasets=sorted({id for result in results if (id := dataset_on_hub(result))}),
        )
    yield f"{len(found):,} scores of {len(results):,} results: {out / _PARQUET}"
    yield from _written("tables", list(tables), TABLES, out)
    yield from _written("figures", list(figures), FIGURES, out)
    yield f"the page: {page}"
    if found:
        yield from [month.title for month in months(found)][:1] or [UNDECIDED]


def _with_years(found: Sequence[Row], intervals: Sequence[str]) -> list[Row]:
    """Return rows with the short names of months replaced by the long names of the dataset's intervals."""
    long = {name[4:6] + name[13:15]: name for name in intervals}
    return [
        replace(row, month=long.get(row.month or "", row.month), tested=long.get(row.tested or "", row.tested))
        for row in found
    ]


def _in_months_of(found: Sequence[Row], others: Sequence[Row]) -> list[Row]:
    """Return rows of others with the names that their months have in our rows."""
    ours = sorted({row.tested for row in found if row.tested}, key=len)
    place = places({*ours, *(row.tested or "" for row in others)} - {""})
    names = {place[month]: month for month in ours}
    return [replace(row, tested=names.get(place[row.tested], row.tested)) if row.tested else row for row in others]


def dataset_on_hub(result: Result) -> str | None:
    """Return the id of a result's dataset on the Hub, or None. A name without a revision may name a folder."""
    name, at, revision = result.manifest.data.dataset.partition("@")
    return name if at and revision and is_hub_id(name) and "/" in name else None


def is_hub_id(name: str) -> bool:
    """Return whether a repository on the Hub can have this name."""
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def _written(what: str, names: Sequence[str], possible: Collection[str], out: Path) -> Iterator[str]:
    if names:
        yield f"{what}: {', '.join(names)} in {out / what}"
    if missing := [name for name in possible if name not in names]:
        yield f"not made, because the results lack their scores: {', '.join(missing)}"
