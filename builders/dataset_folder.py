"""The dataset folder: Parquet in shards, a manifest an interval, and the card that makes it all loadable.

temporalwiki/
  README.md
  data/diffset-20211101-20211201/train-00000-of-00004.parquet
  manifests/20211101-20211201.json
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import room_for, sweep, whole_file
from temporalwiki.base.json_files import write_json
from temporalwiki.builders.ckl.manifest import check_ckl_manifest
from temporalwiki.builders.parquet import ParquetWriter
from temporalwiki.builders.snapshot import Interval, check_date
from temporalwiki.builders.streams import digest

_TIME = pa.timestamp("s", "UTC")
_DIFFSET = {
    "id": pa.int64(),
    "title": pa.string(),
    "url": pa.string(),
    "text": pa.string(),
    "kind": pa.string(),
    "revision_id": pa.int64(),
    "previous_revision_id": pa.int64(),
    "timestamp": _TIME,
    "paragraphs": pa.int32(),
}
_WIKIPEDIA = {name: _DIFFSET[name] for name in ("id", "title", "url", "text", "revision_id", "timestamp")}
_PROBES = {
    "subject": pa.string(),
    "relation": pa.string(),
    "object": pa.string(),
    "subject_id": pa.string(),
    "relation_id": pa.string(),
    "object_id": pa.string(),
    "kind": pa.string(),
    "previous_objects": pa.list_(pa.string()),
    "statement_id": pa.string(),
    "page_id": pa.int64(),
    "page_revision_id": pa.int64(),
    "title": pa.string(),
    "evidence": pa.string(),
}
# A fact with what it takes to ask for it: what else is right, what was right before, and since and until when.
_FACTS = {
    **_PROBES,
    "current": pa.bool_(),
    "objects": pa.list_(pa.string()),
    "objects_before": pa.list_(pa.string()),
    "gone_objects": pa.list_(pa.string()),
    "known_before": pa.bool_(),
    "dead": pa.bool_(),
    "start_time": pa.string(),
    "end_time": pa.string(),
}

SCHEMAS: dict[str, pa.Schema] = {
    "diffset": pa.schema(_DIFFSET),
    "deletions": pa.schema(_DIFFSET),
    "unchanged": pa.schema(_WIKIPEDIA),
    "wikipedia": pa.schema(_WIKIPEDIA),
    "probes": pa.schema(_PROBES),
    "lighttuning": pa.schema(_PROBES),
    "facts": pa.schema(_FACTS),
}
SPLITS: dict[str, tuple[str, ...]] = {
    "diffset": ("train",),
    "deletions": ("train",),
    "unchanged": ("train",),
    "wikipedia": ("train",),
    "probes": ("unchanged", "changed", "deleted"),
    "lighttuning": ("unchanged", "changed"),
    "facts": ("unchanged", "changed", "deleted"),
}

# A shard ends at whichever comes first; both depend on the rows alone.
SHARD_ROWS = 500_000
SHARD_BYTES = 512 << 20

Manifest = dict[str, Any]
_CONFIG_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_INTERVAL_NAME = re.compile(r"\d{8}-\d{8}")

# In the dataset folder: what is about to take its place, and when it is whole, what is to go then.
_READY = ".ready"
_PLAN = "plan.json"


def names(kind: str, interval: Interval) -> tuple[str, str]:
    """Return the full and the short name of a config."""
    if kind == "wikipedia":  # of a snapshot, not of an interval
        return f"wikipedia-{interval.recent}", f"wikipedia-{interval.recent[4:6]}"
    return f"{kind}-{interval.name}", f"{kind}-{interval.short_name}"


class _File(msgspec.Struct):
    path: str
    size: int
    sha256: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class _Split(msgspec.Struct):
    num_examples: int
    num_bytes: int
    files: list[_File]


class _Config(msgspec.Struct):
    short_name: str
    splits: dict[str, _Split]


class _Dates(msgspec.Struct):
    wiki: str
    prev: str
    recent: str


class _Interval(_Dates):
    language: str
    wikidata_prev: str = ""
    wikidata_recent: str = ""


class _OfInterval(msgspec.Struct):
    """What all manifests of intervals hold, of those that were imported, too."""

    interval: _Dates
    configs: dict[str, _Config]
    counts: dict[str, Any]
    warnings: list[str] = []


class _Pages(msgspec.Struct):
    new: int
    updated: int


class _Words(msgspec.Struct):
    words: int


class _Facts(msgspec.Struct):
    categorised: int
    sampled: int
    aligned: int
    filtered: int
    kept: int


class _Probes(msgspec.Struct):
    unchanged: _Facts
    changed: _Facts
    deleted: _Facts


class _Counts(msgspec.Struct):
    pages: _Pages
    diffset: _Words
    probes: _Probes


class _Options(msgspec.Struct):
    seed: int
    unchanged_fraction: float


class _Input(msgspec.Struct):
    file: str
    size: int


class _Manifest(msgspec.Struct):
    """What others rely on; a manifest has more."""

    interval: _Interval
    inputs: list[_Input]
    options: _Options
    counts: _Counts
    warnings: list[str]
    configs: dict[str, _Config]


@dataclass(frozen=True)
class SplitFiles:
    """What was written for one split."""

    num_examples: int
    num_bytes: int  # in memory, as Arrow
    files: list[dict[str, Any]]  # path in the folder, size, sha256


def write_split(
    folder: Path, config: str, split: str, rows: Iterable[Mapping[str, Any]], schema: pa.Schema | None = None
) -> SplitFiles:
    """Write the rows of one split below ``folder``/data/``config`` as numbered shards.

    The columns are those of the config's kind unless a ``schema`` is given.
    """
    schema = SCHEMAS[config.split("-")[0]] if schema is None else schema
    place = folder / "data" / config
    shards: list[Path] = []
    examples = size = 0
    source = iter(rows)
    row = next(source, None)
    while row is not None or not shards:
        shards.append(place / f"{split}.{len(shards)}")
        with ParquetWriter(shards[-1], schema, rows=20_000, published=True) as out:
            shard_rows = shard_bytes = 0
            while row is not None and shard_rows < SHARD_ROWS and shard_bytes < SHARD_BYTES:
                weight = sum(len(value.encode()) for value in row.values() if isinstance(value, str))
                out.write(row, size=weight)
                shard_rows, shard_bytes = shard_rows + 1, shard_bytes + weight
                row = next(source, None)
        examples, size = examples + out.rows_written, size + out.arrow_bytes
    files = []
    for number, shard in enumerate(shards):
        final = shard.with_name(f"{split}-{number:05d}-of-{len(shards):05d}.parquet")
        shard.replace(final)
        files.append(
            {
                "path": final.relative_to(folder).as_posix(),
                "size": final.stat().st_size,
                "sha256": digest(final, "sha256"),
            }
        )
    return SplitFiles(examples, size, files)


def read_manifests(folder: Path) -> list[Manifest]:
    """Manifests of a dataset folder, oldest interval first. Raises InputError, naming the file, for what is none."""
    manifests = []
    for path in sorted((folder / "manifests").glob("*.json")):
        try:
            manifest = json.loads(path.read_text("utf-8"))
            json.dumps(manifest, ensure_ascii=False, allow_nan=False).encode()  # half of a character cannot be written
            if not all(map(_CONFIG_NAME.fullmatch, manifest["configs"])):  # they are folders' names
                raise ValueError
            if is_ckl(manifest):
                check_ckl_manifest(manifest, str(path))
                if manifest["config"] != path.stem:
                    raise ValueError
            else:
                msgspec.convert(manifest, _OfInterval)
                if interval_name(manifest) != path.stem:
                    raise ValueError
            manifests.append((age(manifest), manifest))
        except InputError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, msgspec.ValidationError):
            again = "build its month again" if _INTERVAL_NAME.fullmatch(path.stem) else "make it again"
            raise InputError(f"{path}: not a manifest of temporalwiki; take it away, or {again}") from None
    return [manifest for _, manifest in sorted(manifests, key=lambda pair: pair[0])]


def is_ckl(manifest: Manifest) -> bool:
    """Tell whether a manifest is of a CKL config, and not of an interval."""
    return manifest.get("dataset") == "ckl"


def age(manifest: Manifest) -> tuple[str, str, str]:
    """Return what sorts manifests, oldest interval first; two with the same are of the same interval.

    Of CKL's it is the name of the config.
    """
    if is_ckl(manifest):
        return "", "", str(manifest["config"])
    interval = manifest["interval"]
    return str(interval["recent"]), str(interval["prev"]), str(interval["wiki"])


def check_manifest(manifest: Any, where: str) -> None:
    """Raise InputError, naming ``where`` it is from, unless a manifest is as a build writes it.

    That is: all that a card and a publish read is there, and no config, file or short name is another interval's.
    """
    try:
        read = msgspec.convert(manifest, _Manifest)
        interval = Interval(read.interval.wiki, read.interval.prev, read.interval.recent)
        for date in filter(None, (read.interval.wikidata_prev, read.interval.wikidata_recent)):
            check_date(date)
    except (msgspec.ValidationError, InputError) as error:
        raise InputError(f"{where}: not a manifest of temporalwiki ({error})") from None
    own = dict(names(kind, interval) for kind in SCHEMAS)
    if not any(name.startswith("diffset-") for name in read.configs):
        raise InputError(f"{where}: not a manifest of temporalwiki (it has no diffset)")
    for name, config in read.configs.items():
        if own.get(name) != config.short_name:
            raise InputError(f"{where}: {interval.name} cannot have a config {name!r}, {config.short_name!r} in short")
        for split, files in config.splits.items():
            path = re.compile(rf"data/{re.escape(name)}/{re.escape(split)}-[0-9]{{5}}-of-[0-9]{{5}}\.parquet")
            stray = next((file.path for file in files.files if not path.fullmatch(file.path)), None)
            if split not in SPLITS[name.split("-")[0]] or stray is not None:
                raise InputError(f"{where}: says that {split!r} of {name} is in {stray!r}")


def check_place(folder: Path) -> None:
    """Refuse to write a dataset into a folder that is something else, or holds what no card can be made of."""
    there = {path.name for path in folder.iterdir()} - {_READY} if folder.is_dir() else set()
    if (folder.exists() and not folder.is_dir()) or (there and not (folder / "manifests").is_dir()):
        raise InputError(f"{folder}: there is something here that is not a dataset folder; choose another --out")
    for manifest in read_manifests(folder):
        if not is_ckl(manifest) and not manifest.get("imported"):
            check_manifest(manifest, str(folder / manifest_path(manifest)))


def problems(folder: Path, manifest: Manifest) -> list[str]:
    """What is wrong with the files that a manifest lists: missing, or other bytes than it says."""
    found = [] if (folder / "README.md").is_file() else ["README.md: missing: no config can be loaded"]
    for config in manifest["configs"].values():
        for split in config["splits"].values():
            for file in split["files"]:
                path = folder / file["path"]
                if not path.is_file():
                    found.append(f"{file['path']}: missing")
                elif path.stat().st_size != file["size"] or digest(path, "sha256") != file["sha256"]:
                    found.append(f"{file['path']}: not the file that the manifest describes")
    return found


def strays(folder: Path, manifests: Iterable[Manifest]) -> list[str]:
    """What no manifest of a dataset folder tells of: data of no config, and what an install was stopped with."""
    known = {config for manifest in manifests for config in manifest["configs"]}
    data = sorted(path.name for path in (folder / "data").glob("[!.]*") if path.is_dir())
    found = [f"data/{ascii(name)[1:-1]}: no manifest describes it" for name in data if name not in known]
    if (folder / _READY / _PLAN).is_file():
        found.append("the last write was stopped before its end: run its command again, or any that writes here")
    return found


def install(staged: Path, manifest: Manifest, folder: Path) -> None:
    """Put the staged configs of one interval, or one config of CKL, into the dataset folder; others stay as they are.

    All that is to change is made ready within the folder first, with the card and the manifests; then each config's
    folder is swapped in whole, and the manifests come last, so a manifest always describes what is there. Killed
    before all is ready, nothing has changed; killed afterwards, whoever writes next finishes it (``finish_install``).
    """
    # imported here: cards are made of what this module says of folders
    card: Callable[[list[Manifest]], str]
    if is_ckl(manifest):
        from temporalwiki.model_cards.ckl_dataset import ckl_card as card
    else:
        from temporalwiki.model_cards.dataset import dataset_card as card

    finish_install(folder)
    # a disk of its own cannot be renamed to
    if folder.exists() and (any(folder.iterdir()) or folder.is_mount()):
        _put(staged, manifest, folder, card)
        return
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        _put(staged, manifest, part, card)
        part.replace(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def finish_install(folder: Path) -> None:
    """Put in place what an install was stopped with when all was ready, and clear away what was not.

    Nothing is written here but renamed, so that a full disk is no reason to stop. Each step can be taken again.
    """
    ready = folder / _READY
    if (ready / _PLAN).is_file():
        ends = json.loads((ready / _PLAN).read_text("utf-8"))["ends"]
        manifests = sorted((ready / "manifests").glob("*.json"))
        (folder / "manifests").mkdir(exist_ok=True)
        (folder / "data").mkdir(exist_ok=True)
        for file in manifests:
            (folder / "manifests" / file.name).unlink(missing_ok=True)
        for config in filter(_CONFIG_NAME.fullmatch, ends):
            shutil.rmtree(folder / "data" / config, ignore_errors=True)
        for config in sorted((ready / "data").iterdir()):
            shutil.rmtree(folder / "data" / config.name, ignore_errors=True)
            config.replace(folder / "data" / config.name)
        if (ready / "README.md").is_file():
            (ready / "README.md").replace(folder / "README.md")
        for file in manifests:
            file.replace(folder / "manifests" / file.name)
        (ready / _PLAN).unlink()
    shutil.rmtree(ready, ignore_errors=True)
    sweep(folder / "manifests")


def _put(staged: Path, manifest: Manifest, target: Path, card: Callable[[list[Manifest]], str]) -> None:
    before = [m for m in read_manifests(target) if age(m) != age(manifest)]
    others = {_of(m) for m in before} - {_of(manifest)}
    if others:
        raise InputError(
            f"{target}: holds {', '.join(sorted(others))}; a folder is of one wiki, or of CKL: choose another --out"
        )
    manifest_file = target / manifest_path(manifest)
    replaced = json.loads(manifest_file.read_text("utf-8"))["configs"] if manifest_file.exists() else {}
    still_used = {config for m in (*before, manifest) for config in m["configs"]}
    sharing = [m for m in before if m["configs"].keys() & manifest["configs"].keys()]
    for other in sharing:  # wikipedia-20211201 is of every interval that ends there
        other["configs"] |= {name: c for name, c in manifest["configs"].items() if name in other["configs"]}
    ready = target / _READY
    try:
        for config in manifest["configs"]:
            _copy(staged / "data" / config, ready / "data" / config, target / "data" / config)
        with whole_file(ready / "README.md") as part:
            part.write_text(card(sorted([*before, manifest], key=age)), encoding="utf-8")
        for one in (*sharing, manifest):
            write_json(ready / manifest_path(one), one)
        write_json(ready / _PLAN, {"ends": sorted(replaced.keys() - still_used)})
    except BaseException:
        shutil.rmtree(ready, ignore_errors=True)
        raise
    finish_install(target)


def interval_name(manifest: Manifest) -> str:
    """Return the name of a manifest's interval, ``20211101-20211201``."""
    return f"{manifest['interval']['prev']}-{manifest['interval']['recent']}"


def manifest_path(manifest: Manifest) -> str:
    """Return where a manifest lies in its dataset folder, and on the Hub."""
    return f"manifests/{manifest['config'] if is_ckl(manifest) else interval_name(manifest)}.json"


def _of(manifest: Manifest) -> str:
    return "CKL" if is_ckl(manifest) else str(manifest["interval"]["wiki"])


def _copy(source: Path, target: Path, final: Path) -> None:
    target.mkdir(parents=True)
    for file in sorted(source.iterdir()):
        with room_for(final / file.name):
            shutil.copyfile(file, target / file.name)
