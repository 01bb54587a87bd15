"""Seals of coming months: what will draw a month's probes, written down before the month, and proved afterwards.

Nobody can then tune a seed, an option or the code on the probes that come out.
"""

import functools
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import read_json, write_json
from temporalwiki.builders.configs import names
from temporalwiki.builders.dataset_folder import SEALS
from temporalwiki.builders.manifests import BuiltManifest, read_intervals
from temporalwiki.builders.parquet import read_rows
from temporalwiki.builders.sources import BuildOptions
from temporalwiki.builders.wikidata import probes
from temporalwiki.builders.wikidata.fact_diff import sampled

RULE = (
    "probes-* holds the facts of facts-* that the caps keep, taken in the order of a hash of the seed and the fact; "
    "unchanged facts are sampled before by a hash of the seed and the fact (docs/definitions.md)"
)
_MONTH = re.compile(r"[12]\d{3}-(0[1-9]|1[0-2])")


class Seal(msgspec.Struct, frozen=True):
    """The content of ``seals/YYYY-MM.json``."""

    month: str  # of the later snapshot
    made_by: str
    code: str  # see ``code``
    options: dict[str, Any]  # of the build
    rule: str
    sha256: str = ""  # of all other fields, as JSON with sorted keys

    def hash(self) -> str:
        """Return the SHA-256 of all other fields."""
        content = msgspec.to_builtins(msgspec.structs.replace(self, sha256=""))
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


@functools.cache
def code() -> str:
    """Return the SHA-256 of the source files and tables of words that decide which facts become probes."""
    here, found = Path(__file__).resolve().parent, hashlib.sha256()
    for file in sorted([*here.glob("wiki*/*.py"), *here.glob("wiki*/*.yaml"), here / "finish.py"]):
        found.update(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()


def seal(folder: Path, month: str, seed: int | None = None) -> Path:
    """Write the seal of a coming month: the options of the folder's newest build, or their defaults, and this code.

    A seal is written once. Raises UsageError for a wrong month, and InputError for a month that is built already, and
    for another seal of the month.
    """
    if not _MONTH.fullmatch(month):
        raise UsageError(f"--month {month!r} is not a month: write YYYY-MM, for example 2021-12")
    built = [one for one in read_intervals(folder) if isinstance(one, BuiltManifest)]
    if late := [one.name for one in built if _month_of(one) >= month]:
        raise InputError(f"{folder}: {month} cannot be sealed any more: {late[0]} is built")
    # other entries of a manifest's options are not of the build command
    options = msgspec.convert(built[-1].content["options"], BuildOptions) if built else BuildOptions()
    chosen = json.loads(json.dumps(asdict(options) | ({} if seed is None else {"seed": seed})))
    new = Seal(month, f"temporalwiki {version('temporalwiki')}", code(), chosen, RULE)
    new = msgspec.structs.replace(new, sha256=new.hash())
    path = folder / SEALS / f"{month}.json"
    if path.exists() and _read(path) != new:
        raise InputError(f"{path}: this month has another seal, and a seal is never changed")
    write_json(path, msgspec.to_builtins(new))
    return path


def proofs(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield for each seal of a dataset folder what it proves, and why it does not: no reasons, if it does."""
    built = [one for one in read_intervals(folder) if isinstance(one, BuiltManifest)]
    for path in sorted((folder / SEALS).glob("*.json")):
        try:
            found = _read(path)
        except InputError as error:
            yield f"{SEALS}/{path.name}", [str(error)]
            continue
        months = [one for one in built if _month_of(one) == found.month]
        reasons = [reason for one in months for reason in _differences(folder, found, one)]
        there = any((folder / file.path).is_file() for one in months for file in one.files)
        said = "its probes are what the seal said" if there else "its files are gone" if months else "not built yet"
        yield f"seal of {found.month} ({found.sha256[:12]}): {said}", reasons


def _read(path: Path) -> Seal:
    found = read_json(path, Seal, "a seal")
    if found.hash() != found.sha256 or path.stem != found.month:
        raise InputError(f"{path}: changed after it was written: its hash is not that of its content")
    try:
        msgspec.convert(found.options, BuildOptions)
        known = {one.name for one in fields(BuildOptions)} <= found.options.keys()
    except msgspec.ValidationError:
        known = False
    if not known:
        raise InputError(f"{path}: its options are not those of a build")
    return found


def _month_of(manifest: BuiltManifest) -> str:
    return f"{manifest.interval.recent[:4]}-{manifest.interval.recent[4:6]}"


def _differences(folder: Path, sealed: Seal, manifest: BuiltManifest) -> Iterator[str]:
    """Yield how a month differs from its seal. Its probes are drawn again from its facts."""
    where = f"{SEALS}/{sealed.month}.json: {manifest.name}"
    for name, said in (("made_by", sealed.made_by), ("code", sealed.code)):
        if manifest.content.get(name) != said:
            yield f"{where} was built with another {'version' if name == 'made_by' else 'code'} than the seal said"
    options = manifest.content["options"]
    for name, said in sealed.options.items():
        if options.get(name) != said:
            yield f"{where} was built with {name} {options.get(name)}, and the seal said {said}"
    caps = sealed.options["caps"]
    share, seed = float(sealed.options["unchanged_fraction"]), int(sealed.options["seed"])
    for split in ("unchanged", "changed", "deleted"):
        facts, drawn = (_facts(folder, names(kind, manifest.interval)[0], split) for kind in ("facts", "probes"))
        if not facts and not drawn:  # deleted after it was published
            continue
        kept = probes.cap(facts, seed, None if caps is None else tuple(caps)).kept
        if {facts[at] for at in kept} != set(drawn):
            yield f"{where}: its {split} probes are not those that the seal draws from its facts"
        if split == "unchanged" and facts and not sampled(share, seed, *np.array(facts, np.int64).T).all():
            yield f"{where}: its unchanged facts are not the sample that the seal draws"


def _facts(folder: Path, config: str, split: str) -> list[probes.Fact]:
    files = sorted((folder / "data" / config).glob(f"{split}-*.parquet"))
    columns = ["subject_id", "relation_id", "object_id"]
    return [probes.Fact(*(int(row[name][1:]) for name in columns)) for row in read_rows(files, columns=columns)]
