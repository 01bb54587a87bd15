"""A config of CKL's dataset folder, from streamed rows to Parquet files and a manifest."""

import importlib.metadata
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import digest, only_one
from temporalwiki.base.progress import Progress
from temporalwiki.builders import dataset_folder
from temporalwiki.builders.ckl.schemas import SCHEMAS
from temporalwiki.builders.configs import BACKFILLED
from temporalwiki.builders.dataset_folder import finish_install, install, warn_of_damage, write_split
from temporalwiki.builders.manifests import CklManifest, checked_as, read_manifests

Row = Mapping[str, Any]


@dataclass
class RowCounts:
    """How many rows a step read, kept and dropped. The numbers are final once all splits have been read."""

    read: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)  # by reason
    more: dict[str, Any] = field(default_factory=dict)  # other counts for the manifest: rows by relation, ...

    def drop(self, reason: str, number: int = 1) -> None:
        """Count dropped rows, by default one."""
        if number:
            self.dropped[reason] = self.dropped.get(reason, 0) + number

    def as_json(self) -> dict[str, Any]:
        """Return the counts for a manifest, without ``more``."""
        return {"read": self.read, "kept": self.kept, "dropped": dict(sorted(self.dropped.items()))}


def unique_id(id: str, taken: dict[str, int]) -> str:
    """Return ``id``, with a number if an earlier row has it.

    ``taken`` maps each earlier id to its last number, so that many equal ids take linear time.
    """
    found, n = id, taken.get(id, 1)
    while found in taken:
        n += 1
        found = f"{id}-{n}"
    taken[id] = n
    taken.setdefault(found, 1)
    return found


def is_drawn(id: str, share: float, seed: int) -> bool:
    """Tell whether an id is in a share of all ids; a larger share has the ids of a smaller one."""
    draw = blake2b(id.encode("utf-8", "surrogatepass"), digest_size=8, key=b"%d" % seed).digest()
    return int.from_bytes(draw, "little") < share * 2**64


@dataclass
class CklConfig:
    """One config: its rows, streamed, and the content of its manifest and its card."""

    name: str  # "invariantlama", "updatedlama-20211101-20211201"
    kind: str  # its columns: a key of SCHEMAS
    splits: Mapping[str, Iterable[Row]]  # read once, in this order
    about: str  # one line that describes a row
    licences: tuple[str, ...]  # as the Hub names them: "cc-by-nc-4.0", "cc0-1.0", "other"
    source: str  # where the content comes from, and who owns it
    inputs: list[Path]  # the files that were read; the manifest has their SHA-1
    options: dict[str, Any]  # everything else that decides the rows
    counts: RowCounts
    short_name: str | None = None  # "updatedlama-1112"
    language: str = "en"
    imported: bool = False  # from an archive of others, which we do not publish
    warnings: list[str] = field(default_factory=list)


def write(config: CklConfig, out: Path, card: dataset_folder.Card | None = None) -> CklManifest:
    """Write a config into the dataset folder ``out``, next to its other configs, and return its manifest.

    ``card`` makes the text of the folder's README.md. ``out`` changes only after all rows were written. A config of
    the same name is replaced. Raises InputError if only one of the two was imported, if they are of different wikis,
    or if ``out`` is not a dataset folder of CKL. Also raises any error of reading the rows.
    """
    out = out.resolve()
    dataset_folder.check_place(out)
    with only_one(out, "ckl"):
        finish_install(out)
        warn_of_damage(out, config.name)
        _check_replaceable(config, out)
        staged = out.with_name(f".{out.name}.staged")
        shutil.rmtree(staged, ignore_errors=True)
        try:
            manifest = _staged(config, staged)
            install(staged, manifest, out, card)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    return manifest


def _check_replaceable(config: CklConfig, out: Path) -> None:
    for old in read_manifests(out):
        if not isinstance(old, CklManifest) or old.config != config.name:
            continue
        if old.imported != config.imported:
            origin = "imported from an archive" if old.imported else "built by `temporalwiki ckl`"
            raise InputError(f"{out}: already has {config.name}, {origin}; choose another --out")
        wiki, old_wiki = config.options.get("wiki"), old.options.get("wiki")
        if wiki != old_wiki:
            raise InputError(
                f"{out}: already has {config.name} of {old_wiki or 'no wiki'}, and the new one is of "
                f"{wiki or 'no wiki'}; choose another --out"
            )


def _staged(config: CklConfig, staged: Path) -> CklManifest:
    splits, warnings = {}, list[str]()
    for split, rows in config.splits.items():
        with Progress(f"{config.name} {split}", None, "row") as progress:
            splits[split] = asdict(write_split(staged, config.name, split, progress.each(rows), SCHEMAS[config.kind]))
        if not splits[split]["num_examples"] and split != BACKFILLED:  # which is better empty
            warnings.append(f"{config.name}: no rows in the split {split}; only temporalwiki.load_dataset lists it")
    counts = config.counts
    written = sum(split["num_examples"] for split in splits.values())
    if (counts.kept, counts.read) != (written, written + sum(counts.dropped.values())):
        raise AssertionError(f"{config.name}: {written} rows written, but counted were {counts}")
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
        "warnings": [*config.warnings, *warnings],  # reading the rows may have added some
        "configs": {config.name: {"short_name": config.short_name, "splits": splits}},
    }
    return checked_as(CklManifest, content, config.name)


@lru_cache(100_000)  # several configs come from the same files
def _sha1(file: Path, _modified: int) -> str:
    return digest(file, "sha1")


def described(files: Sequence[Path]) -> list[dict[str, Any]]:
    """Return name, size and SHA-1 of files; the names are without folders, which are private and change nothing.

    Raises InputError if a file is missing.
    """
    found = []
    for file in files:
        if not file.is_file():
            raise InputError(f"{file}: no such file")
        status = file.stat()
        found.append({"file": file.name, "size": status.st_size, "sha1": _sha1(file, status.st_mtime_ns)})
    return sorted(found, key=lambda one: (one["file"], one["sha1"]))
