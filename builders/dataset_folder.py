"""The dataset folder: Parquet in shards, one manifest per interval, and the card that makes all of it loadable.

temporalwiki/
  README.md
  data/diffset-20211101-20211201/train-00000-of-00004.parquet
  manifests/20211101-20211201.json
"""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import leads_out, make_folder, room_for, sweep, sync, sync_tree, whole_file, whole_folder
from temporalwiki.base.json_files import read_json, write_json
from temporalwiki.base.terminal import say
from temporalwiki.builders import manifests
from temporalwiki.builders.configs import SCHEMAS
from temporalwiki.builders.parquet import ParquetWriter

# A shard ends at the first of these limits. Both depend only on the rows.
SHARD_ROWS = 500_000
SHARD_BYTES = 512 << 20

Card = Callable[[Sequence[manifests.Manifest]], str]  # makes the text of README.md from all manifests of the folder

_READY = ".ready"  # in the dataset folder: files that are complete and wait to be moved into place
_PLAN = "plan.json"  # written last into it


class _InstallPlan(msgspec.Struct):
    """The content of ``plan.json``: the configs to delete."""

    ends: list[Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9_-]*\Z")]]


@dataclass(frozen=True)
class SplitFiles:
    """The files of one split, as a manifest lists them."""

    num_examples: int
    num_bytes: int  # in memory, as Arrow
    files: list[dict[str, Any]]  # path in the folder, size, sha256


def write_split(
    folder: Path, config: str, split: str, rows: Iterable[Mapping[str, Any]], schema: pa.Schema | None = None
) -> SplitFiles:
    """Write the rows of one split as numbered shards to the folder data/CONFIG in ``folder``.

    ``schema`` gives the columns; by default, the config's kind decides them.
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
        files.append(msgspec.to_builtins(manifests.DataFile.of(final, folder)))
    return SplitFiles(examples, size, files)


SEALS = "seals"  # files of coming months, which may be there before the first one


def check_place(folder: Path, owner: str | None = None) -> None:
    """Raise InputError if a dataset cannot be written to a folder.

    It cannot if the folder holds something else, has a damaged manifest, or holds data of an owner that is not
    ``owner``. A folder that is empty or does not exist yet can be used.
    """
    found = {path.name for path in folder.iterdir()} - {_READY, SEALS} if folder.is_dir() else set()
    place = folder / "manifests"  # other programs have folders of this name as well
    foreign = place.is_dir() and any(path.suffix not in (".json", ".part") for path in place.iterdir())
    if (folder.exists() and not folder.is_dir()) or (found and not place.is_dir()) or foreign:
        raise InputError(f"{folder}: exists and is not a dataset folder; choose another --out")
    described = manifests.read_manifests(folder)
    if owner is not None:
        _refuse_others(described, owner, folder)


def _refuse_others(found: Iterable[manifests.Manifest], owner: str, folder: Path) -> None:
    if others := ", ".join(sorted({other.owner for other in found} - {owner})):
        raise InputError(f"{folder}: holds {others}; a folder holds one wiki, or CKL: choose another --out")


def problems(folder: Path, manifest: manifests.Manifest) -> list[str]:
    """Return a line for each file of a manifest that is missing or has other bytes, and for a missing card."""
    found = [] if (folder / "README.md").is_file() else ["README.md: missing: no config can be loaded"]
    for file in manifest.files:
        out = leads_out(folder / file.path, folder)
        if problem := "is a link out of the folder" if out else file.problem(folder):
            found.append(f"{file.path}: {problem}")
    return found


def warn_of_damage(folder: Path, made_now: str) -> None:
    """Print a line for each damaged file in the folder, but not for files of the manifest ``made_now``."""
    for manifest in manifests.read_manifests(folder):
        if manifest.name != made_now:
            for problem in problems(folder, manifest):
                if problem.startswith("data/"):
                    say(f"warning: {folder}/{problem}; make {manifest.name} again")


def strays(folder: Path, described: Iterable[manifests.Manifest]) -> list[str]:
    """Return a line for each config that no manifest describes, and one if an install waits for ``finish_install``."""
    known = {config for manifest in described for config in manifest.configs}
    data = sorted(path.name for path in (folder / "data").glob("[!.]*") if path.is_dir())
    found = [f"data/{ascii(name)[1:-1]}: no manifest describes it" for name in data if name not in known]
    if (folder / _READY / _PLAN).is_file():
        found.append("the last write was stopped before its end: run its command again, or any that writes here")
    return found


def install(staged: Path, manifest: manifests.Manifest, folder: Path, card: Card | None = None) -> None:
    """Put the staged configs of one manifest into the dataset folder, in place of an older manifest of the same data.

    ``card`` makes the text of README.md; without it the folder gets no card and `datasets` cannot load it.

    All files are first completed in a subfolder. Then each config's folder is moved into place as a whole, and the
    manifests come last, so that a manifest always describes files that exist. Configs that only the older manifest
    has are deleted; the configs of other manifests stay. If the process is killed before all files are complete,
    nothing has changed; if it is killed later, the next write to the folder finishes the install (``finish_install``).
    """
    finish_install(folder)
    # a mount point cannot be renamed to
    if folder.exists() and (any(folder.iterdir()) or folder.is_mount()):
        _put(staged, manifest, folder, card)
        return
    with whole_folder(folder) as part:
        _put(staged, manifest, part, card)


def finish_install(folder: Path) -> None:
    """Finish an install that was stopped after all its files were complete, and delete one that was stopped before.

    It only renames and deletes, so a full disk does not stop it. It can be stopped and repeated at any step.
    Raises InputError for a folder with links in place of its own folders.
    """
    if not folder.is_dir():
        return
    _refuse_links(folder)
    ready, data, described = folder / _READY, folder / "data", folder / "manifests"
    if (ready / _PLAN).is_file():
        ends = read_json(ready / _PLAN, _InstallPlan, f"the plan of an install; remove {ready} and build again").ends
        if not (ready / "data").is_dir():
            raise InputError(f"{ready / _PLAN}: its data are missing; remove {ready} and build again")
        files = sorted((ready / "manifests").glob("*.json"))
        make_folder(described)
        make_folder(data)
        for file in files:
            (described / file.name).unlink(missing_ok=True)
        sync(described)
        for config in ends:
            shutil.rmtree(data / config, ignore_errors=True)
        for moved in sorted((ready / "data").iterdir()):
            shutil.rmtree(data / moved.name, ignore_errors=True)
            moved.replace(data / moved.name)
        if (ready / "README.md").is_file():
            (ready / "README.md").replace(folder / "README.md")
        sync(data)
        sync(folder)
        for file in files:
            file.replace(described / file.name)
        sync(described)
        (ready / _PLAN).unlink()
    shutil.rmtree(ready, ignore_errors=True)
    sweep(described)


def _refuse_links(folder: Path) -> None:
    """Raise InputError if a folder that an install changes, or a file in it, is a link: it may point anywhere."""
    places = (folder / "data", folder / "manifests", folder / _READY, folder / "README.md")
    for path in (*places, *(path for place in places if not place.is_symlink() for path in place.rglob("*"))):
        if path.is_symlink():
            raise InputError(f"{path}: is a link; replace it by what it points to")


def _put(staged: Path, manifest: manifests.Manifest, target: Path, card: Card | None) -> None:
    found = manifests.read_manifests(target)
    _refuse_others(found, manifest.owner, target)
    replaced = {config for other in found if other.age == manifest.age for config in other.configs}
    # wikipedia-20211201 belongs to every interval that ends on that day
    before = [_with_shared_configs(other, manifest) for other in found if other.age != manifest.age]
    still_used = {config for other in (*before, manifest) for config in other.configs}
    ready = target / _READY
    try:
        make_folder(ready)
        for config in manifest.configs:
            _copy(staged / "data" / config, ready / "data" / config, target / "data" / config)
        if card is not None:
            with whole_file(ready / "README.md") as part:
                part.write_text(card(sorted([*before, manifest], key=lambda one: one.age)), encoding="utf-8")
        for one in (*(other for other in before if other not in found), manifest):
            write_json(ready / one.path, one.content)
        sync_tree(ready)
        write_json(ready / _PLAN, {"ends": sorted(replaced - still_used)})
    except BaseException:
        shutil.rmtree(ready, ignore_errors=True)
        raise
    finish_install(target)


def _with_shared_configs(other: manifests.Manifest, manifest: manifests.Manifest) -> manifests.Manifest:
    """Return a copy of ``other``. For each config in both manifests, it lists the files of ``manifest``."""
    configs = manifest.content["configs"]
    shared = {name: configs[name] for name in other.configs if name in configs}
    content = other.content | {"configs": other.content["configs"] | shared}
    return manifests.checked(content, other.path) if shared else other


def _copy(source: Path, target: Path, final: Path) -> None:
    target.mkdir(parents=True)  # synced with all of the staged files
    for file in sorted(source.iterdir()):
        with room_for(final / file.name):
            shutil.copyfile(file, target / file.name)
