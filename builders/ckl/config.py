"""A config of CKL's dataset folder on its way there: rows that are still to be read, and what is known of them."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from tqdm import tqdm

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import only_one
from temporalwiki.builders import dataset_folder
from temporalwiki.builders.ckl.schemas import SCHEMAS
from temporalwiki.builders.dataset_folder import finish_install, install, write_split
from temporalwiki.builders.manifests import CklManifest, checked_as, read_manifests
from temporalwiki.builders.streams import digest

Row = Mapping[str, Any]


@dataclass
class Counts:
    """What became of the rows that a step read; final when all its splits have been read to their ends."""

    read: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)  # by reason
    more: dict[str, Any] = field(default_factory=dict)  # what else is worth a table, in JSON: rows by relation, ...

    def drop(self, reason: str) -> None:
        """Count one row that is left out."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1

    def as_json(self) -> dict[str, Any]:
        """Return them as manifests have them, without what is ``more``."""
        return {"read": self.read, "kept": self.kept, "dropped": dict(sorted(self.dropped.items()))}


def unique_id(id: str, taken: dict[str, int]) -> str:
    """Return an id that no row before has: the first with it keeps it, others get a number.

    ``taken`` has the ids before, each with its last number: the time does not grow with how often one comes.
    """
    found, n = id, taken.get(id, 1)
    while found in taken:
        n += 1
        found = f"{id}-{n}"
    taken[id] = n
    taken.setdefault(found, 1)
    return found


@dataclass
class Config:
    """One config: its rows, streamed, and what its manifest and its card say."""

    name: str  # "invariantlama", "updatedlama-20211101-20211201"
    kind: str  # of its columns, in SCHEMAS
    splits: Mapping[str, Iterable[Row]]  # read once, in this order
    about: str  # what one row is, in a line
    licences: tuple[str, ...]  # as the Hub names them: "cc-by-nc-4.0", "cc0-1.0", "other"
    source: str  # where the content comes from and whose it is
    inputs: list[Path]  # files that were read; their SHA-1 stands in the manifest
    options: dict[str, Any]  # what else decides the rows
    counts: Counts
    short_name: str | None = None  # "updatedlama-1112"
    language: str = "en"
    imported: bool = False  # from an archive that others released: it is theirs to publish
    warnings: list[str] = field(default_factory=list)


def write(config: Config, out: Path, card: dataset_folder.Card | None = None) -> CklManifest:
    """Write a config into the dataset folder ``out`` beside those that are there, and return its manifest.

    Whole or not at all: until all rows are there, nothing in ``out`` changes. A config of that name is replaced, but
    what was imported and what was made do not replace one another, nor do those of two wikis: that raises InputError,
    as an ``out`` does that is something else than CKL's dataset folder; and what reading the rows raises.
    """
    out = out.resolve()
    dataset_folder.check_place(out)
    with only_one(out, "ckl"):
        finish_install(out)
        _check_replaceable(config, out)
        staged = out.with_name(f".{out.name}.staged")
        shutil.rmtree(staged, ignore_errors=True)
        try:
            manifest = _staged(config, staged)
            install(staged, manifest, out, card)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    return manifest


def _check_replaceable(config: Config, out: Path) -> None:
    for there in read_manifests(out):
        if not isinstance(there, CklManifest) or there.config != config.name:
            continue
        if there.imported != config.imported:
            made = "imported from an archive" if there.imported else "made by `temporalwiki ckl`"
            raise InputError(f"{out}: {config.name} is there, {made}; it is not overwritten: choose another --out")
        wiki, other = config.options.get("wiki"), there.options.get("wiki")
        if wiki != other:
            raise InputError(
                f"{out}: {config.name} is there, of {other or 'no wiki'}, and this one is of {wiki or 'no wiki'}; it "
                "is not overwritten: choose another --out"
            )


def _staged(config: Config, staged: Path) -> CklManifest:
    splits = {}
    for split, rows in config.splits.items():
        shown = tqdm(rows, desc=f"{config.name} {split}", unit="row", disable=not sys.stderr.isatty())
        splits[split] = asdict(write_split(staged, config.name, split, shown, SCHEMAS[config.kind]))
    counts = config.counts
    written = sum(split["num_examples"] for split in splits.values())
    if (counts.kept, counts.read) != (written, written + sum(counts.dropped.values())):
        raise AssertionError(f"{config.name}: {written} rows written, but accounted for are {counts}")
    empty = [split for split, files in splits.items() if not files["num_examples"]]
    warnings = [f"{config.name}: no rows in the split {split}; `datasets` will not list it" for split in empty]
    content = {
        "format": 1,
        "dataset": "ckl",
        "config": config.name,
        "kind": config.kind,
        "made_by": f"temporalwiki {importlib.metadata.version('temporalwiki')}",
        "about": config.about,
        "licences": list(config.licences),
        "source": config.source,
        "language": config.language,
        **({"imported": True} if config.imported else {}),
        "inputs": described(config.inputs),
        "options": config.options,
        "counts": counts.as_json() | counts.more,
        "warnings": [*config.warnings, *warnings],
        "configs": {config.name: {"short_name": config.short_name, "splits": splits}},
    }
    return checked_as(CklManifest, content, config.name)


@lru_cache(100_000)  # several configs come of the same files
def _sha1(file: Path, _modified: int) -> str:
    return digest(file, "sha1")


def described(files: Sequence[Path]) -> list[dict[str, Any]]:
    """Return size and SHA-1 of files, by their base names: where they lie is nobody's business, and decides nothing.

    Raises InputError where one is not there.
    """
    found = []
    for file in files:
        if not file.is_file():
            raise InputError(f"{file}: no such file")
        found.append(
            {
                "file": file.name,
                "size": file.stat().st_size,
                "sha1": _sha1(file, file.stat().st_mtime_ns),
            }
        )
    return sorted(found, key=lambda one: (one["file"], one["sha1"]))
