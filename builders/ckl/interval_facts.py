"""The configs ``facts-*`` of dataset folders: find them, chain consecutive intervals, and check their files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from temporalwiki.base.errors import InputError, first_line
from temporalwiki.base.files import digest
from temporalwiki.builders.ckl.templates import LANGUAGES
from temporalwiki.builders.configs import SCHEMAS, SPLITS, names
from temporalwiki.builders.manifests import BuiltManifest, Split, read_manifests
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.sql import rows_of


@dataclass(frozen=True)
class Facts:
    """The config ``facts-*`` of one interval."""

    folder: Path
    interval: Interval
    splits: dict[str, Split]
    options: dict[str, Any]  # of the build

    def files(self, *splits: str) -> list[Path]:
        """Return the files of some splits, by default of all."""
        return [self.folder / file.path for split in splits or SPLITS["facts"] for file in self.splits[split].files]

    def check(self, db: duckdb.DuckDBPyConnection) -> None:
        """Raise InputError unless the files match the manifest and contain facts."""
        for split in self.splits.values():
            for file in split.files:
                path = self.folder / file.path
                if not path.is_file() or digest(path, "sha256") != file.sha256:
                    raise InputError(f"{path}: not the file that the manifest describes; build its month again")
                _check_rows(path, db)


_NEVER_NULL = [name for name in SCHEMAS["facts"].names if name not in ("start_time", "end_time", "gone_end")]
_IDS = {"subject_id": "Q", "relation_id": "P", "object_id": "Q"}
_LISTS = ("objects", "aliases", "objects_before", "gone_objects")
_SOUND = " AND ".join(
    [
        *(f"{name} IS NOT NULL" for name in _NEVER_NULL),
        *(f"regexp_full_match({name}, '{letter}[1-9][0-9]{{0,17}}')" for name, letter in _IDS.items()),
        *(f"list_count({name}) = len({name})" for name in _LISTS),  # list_count leaves out null
    ]
)


def _check_rows(path: Path, db: duckdb.DuckDBPyConnection) -> None:
    """Raise InputError if a file has other columns than facts, or an invalid row."""
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path}: {first_line(error)}; build its month again") from None
    wanted = SCHEMAS["facts"]
    if other := [
        field.name for field in wanted if field.name not in schema.names or schema.field(field.name).type != field.type
    ]:
        raise InputError(f"{path}: not the columns of facts ({', '.join(other)}); build its month again")
    bad = db.execute(
        f"SELECT file_row_number, {', '.join(_IDS)} FROM {rows_of([path])} "
        f"WHERE NOT coalesce({_SOUND}, false) ORDER BY file_row_number LIMIT 1"
    ).fetchone()
    if bad is not None:
        row, *ids = bad
        what = ", ".join(f"{name} {str(id)[:40]!r}" for name, id in zip(_IDS, ids, strict=True))
        raise InputError(f"{path}: row {row + 1} is not a complete fact ({what}); build its month again")


def read_facts(folders: Sequence[Path]) -> list[Facts]:
    """Return all intervals with facts, oldest first; raise InputError if two are equal or of different wikis."""
    found: dict[tuple[str, str], Facts] = {}
    for folder in dict.fromkeys(folders):
        of_folder = []
        for manifest in read_manifests(folder):
            if not isinstance(manifest, BuiltManifest):
                continue
            interval = manifest.interval
            config = manifest.configs.get(names("facts", interval)[0])
            if config is None:
                continue
            of = config.splits
            if lacking := ", ".join(split for split in SPLITS["facts"] if split not in of or not of[split].files):
                raise InputError(f"{folder / manifest.path}: names no files of {lacking} facts; build its month again")
            of_folder.append(Facts(folder, interval, of, manifest.content["options"]))
        if not of_folder:
            what = "has no config facts-*" if (folder / "manifests").is_dir() else "not a dataset folder"
            raise InputError(f"{folder}: {what}; build its months with `temporalwiki build`")
        for facts in of_folder:
            if facts.interval.language not in LANGUAGES:
                raise InputError(
                    f"{folder}: {facts.interval.wiki} has labels in {facts.interval.language!r}; there are clozes and "
                    f"questions in {' and '.join(LANGUAGES)}: docs/how_to/add_a_language.md tells how to add one"
                )
            first = next(iter(found.values()), facts)
            if facts.interval.wiki != first.interval.wiki:
                raise InputError(
                    f"{folder} is of {facts.interval.wiki}, {first.folder} of {first.interval.wiki}; use one wiki"
                )
            twice = found.setdefault((facts.interval.recent, facts.interval.prev), facts)
            if twice is not facts:
                raise InputError(f"{folder}: has {facts.interval.name}, and so has {twice.folder}; give one of them")
    return [found[key] for key in sorted(found)]


def of_interval(all_facts: list[Facts], interval: str | None) -> Facts:
    """Return the facts of an interval by name, or of the newest; raise InputError if the name is unknown."""
    for facts in reversed(all_facts):
        if interval in (None, facts.interval.name, facts.interval.short_name):
            return facts
    raise _no_interval(str(interval), all_facts)


def consecutive(all_facts: list[Facts], interval: str | None) -> list[Facts]:
    """Return the longest chain of consecutive intervals between the dates of ``interval``.

    By default it ends with the newest interval. If a short name fits several chains, the one with the newest end is
    taken, and of these the one with the newest start. Raises InputError if it fits none.
    """
    wiki = all_facts[0].interval.wiki
    begins = sorted({facts.interval.prev for facts in all_facts})
    if interval is None:
        end = all_facts[-1].interval.recent
        return next(chains[end] for begin in begins if end in (chains := _chains_from(begin, all_facts)))
    for end in sorted({facts.interval.recent for facts in all_facts}, reverse=True):
        for begin in reversed([begin for begin in begins if begin < end]):
            whole = Interval(wiki, begin, end)
            if interval in (whole.name, whole.short_name) and end in (chains := _chains_from(begin, all_facts)):
                return chains[end]
    raise _no_interval(interval, all_facts)


def _chains_from(begin: str, all_facts: list[Facts]) -> dict[str, list[Facts]]:
    """Return the longest chains of intervals that begin at a date, by their last date."""
    chains: dict[str, list[Facts]] = {begin: []}
    for facts in all_facts:  # sorted by last date: the chains before an interval are complete
        before = chains.get(facts.interval.prev)
        # of equally long chains the one whose last interval begins later wins
        if before is not None and len(before) + 1 >= len(chains.get(facts.interval.recent, [])):
            chains[facts.interval.recent] = [*before, facts]
    return chains


def _no_interval(interval: str, all_facts: list[Facts]) -> InputError:
    known = ", ".join(facts.interval.name for facts in all_facts)
    return InputError(f"{all_facts[0].folder}: no interval {interval!r}; there are facts of {known}")
