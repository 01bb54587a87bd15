"""The configs ``facts-*`` of dataset folders: find them, chain consecutive intervals, and check their files."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from temporalwiki.base.errors import InputError, first_line
from temporalwiki.base.files import digest
from temporalwiki.builders.ckl.templates import LANGUAGES
from temporalwiki.builders.configs import SCHEMAS, SPLITS, names
from temporalwiki.builders.manifests import BuiltManifest, Split, not_a_dataset, read_manifests
from temporalwiki.builders.snapshot import Interval


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

    def check(self) -> None:
        """Raise InputError unless the files are those of the manifest, with the columns of facts."""
        for path, file in ((self.folder / file.path, file) for split in self.splits.values() for file in split.files):
            if not path.is_file() or digest(path, "sha256") != file.sha256:
                raise InputError(f"{path}: not the file that the manifest describes; build its month again")
            try:
                schema = pq.read_schema(path)
            except (pa.ArrowInvalid, OSError) as error:
                raise InputError(f"{path}: {first_line(error)}; build its month again") from None
            if other := [field.name for field in SCHEMAS["facts"] if field not in list(schema)]:
                raise InputError(f"{path}: not the columns of facts ({', '.join(other)}); build its month again")


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
            what = f"{folder}: has no config facts-*" if (folder / "manifests").is_dir() else not_a_dataset(folder)
            raise InputError(f"{what}; build its months with `temporalwiki build`")
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

    @functools.cache
    def chain(begin: str, end: str) -> list[Facts]:
        """Return the longest chain; of equally long ones that whose last interval begins later. Empty: none."""
        found = []
        for facts in (facts for facts in all_facts if facts.interval.recent == end):
            before = [] if facts.interval.prev == begin else chain(begin, facts.interval.prev)
            if before or facts.interval.prev == begin:
                found.append([*before, facts])
        return max(found, key=lambda one: (len(one), one[-1].interval.prev), default=[])

    begins = sorted({facts.interval.prev for facts in all_facts})
    ends = sorted({facts.interval.recent for facts in all_facts}, reverse=True)
    if interval is None:
        return next(filter(None, (chain(begin, ends[0]) for begin in begins)))
    for end in ends:
        for begin in reversed([begin for begin in begins if begin < end]):
            whole = Interval(all_facts[0].interval.wiki, begin, end)
            if interval in (whole.name, whole.short_name) and (found := chain(begin, end)):
                return found
    raise _no_interval(interval, all_facts)


def _no_interval(interval: str, all_facts: list[Facts]) -> InputError:
    known = ", ".join(facts.interval.name for facts in all_facts)
    return InputError(f"{all_facts[0].folder}: no interval {interval!r}; there are facts of {known}")
