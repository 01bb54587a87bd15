"""Manifests of dataset folders: the JSON files that say what an interval or a CKL config holds and how it was made.

Each struct has the fields that other code relies on, and is checked once, where the file is read. ``content`` is the
whole file as JSON values, for code that writes a manifest again: so fields survive that the structs do not know.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import msgspec

from temporalwiki.base.errors import InputError, in_one_line
from temporalwiki.base.files import digest, read_small
from temporalwiki.builders.ckl import schemas as ckl
from temporalwiki.builders.configs import SCHEMAS, SPLITS, names
from temporalwiki.builders.snapshot import Interval, check_date

Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Digest = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
# names become folders, keys of the card, and arguments of commands
CklName = Annotated[str, msgspec.Meta(pattern=r"\A[a-z][a-z0-9]*([_-][a-z0-9]+)*\Z", max_length=80)]
Language = Annotated[str, msgspec.Meta(pattern=r"\A[a-z]+(-[a-z0-9]+)*\Z", max_length=80)]
Licence = Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9][a-z0-9.-]*\Z")]
Property = Annotated[str, msgspec.Meta(pattern=r"\AP[1-9][0-9]*\Z")]
Rule = Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9_ ]+\Z")]

OTHER = "not the file that the manifest describes"
_INTERVAL_NAME = re.compile(r"\d{8}-\d{8}")


class DataFile(msgspec.Struct, frozen=True):
    """A file of a dataset or of a checkpoint, by its path in the folder."""

    path: str
    size: Count
    sha256: Digest

    @classmethod
    def of(cls, path: Path, folder: Path) -> Self:
        """Describe the file ``path``, which lies in ``folder``."""
        return cls(path.relative_to(folder).as_posix(), path.stat().st_size, digest(path, "sha256"))

    def problem(self, folder: Path, content: bool = True) -> str | None:
        """Return what is wrong with the file in ``folder``, or None; without ``content`` compare only its size."""
        path = folder / self.path
        if not path.is_file():
            return "missing"
        if path.stat().st_size != self.size or (content and digest(path, "sha256") != self.sha256):
            return OTHER
        return None


class Split(msgspec.Struct, frozen=True):
    """The rows of one split and the files that hold them."""

    num_examples: Count
    num_bytes: Count  # in memory, as Arrow
    files: list[DataFile]


class Config(msgspec.Struct, frozen=True):
    """One config: its short name (``diffset-1112``) and its splits."""

    short_name: str | None
    splits: dict[str, Split]


class InputFile(msgspec.Struct, frozen=True):
    """A file that the dataset was made from."""

    file: str
    size: Count
    sha1: str


class SplitCounts(msgspec.Struct, frozen=True):
    """How many rows were read and kept, and how many were dropped by reason."""

    read: Count
    kept: Count
    dropped: dict[str, Count]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What the manifests of intervals and of CKL configs have in common."""

    configs: dict[str, Config]
    inputs: list[InputFile]
    warnings: list[str] = []
    imported: bool = False  # from an archive that others released without a licence: never published
    content: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """The interval (``20211101-20211201``) or the CKL config that the manifest describes."""
        raise NotImplementedError

    @property
    def owner(self) -> str:
        """The wiki, or "CKL": a dataset folder holds the data of one owner."""
        raise NotImplementedError

    @property
    def age(self) -> tuple[str, str, str]:
        """A key that sorts manifests, oldest interval first; it is equal for manifests of the same data."""
        raise NotImplementedError

    @property
    def path(self) -> str:
        """The path of the manifest in its dataset folder and on the Hub."""
        return f"manifests/{self.name}.json"

    @property
    def sha256(self) -> str:
        """The SHA-256 of the manifest as JSON with sorted keys, without ``run`` and ``tag``.

        It is the same for a local month and its published copy, because publishing changes only these two.
        """
        content = {key: value for key, value in self.content.items() if key not in ("run", "tag")}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    @property
    def files(self) -> list[DataFile]:
        """All data files."""
        return [file for config in self.configs.values() for split in config.splits.values() for file in split.files]


@dataclass(frozen=True)
class Dates(Interval):
    """The interval, and the dates of the two Wikidata dumps. A date that the manifest lacks is ""."""

    wikidata_prev: str = ""
    wikidata_recent: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        for date in filter(None, (self.wikidata_prev, self.wikidata_recent)):
            check_date(date)


class IntervalManifest(Manifest, frozen=True, kw_only=True):
    """The manifest of an interval, built or imported."""

    interval: Dates
    tag: str | None = None  # of the revision on the Hub

    @property
    def name(self) -> str:
        """The interval, ``20211101-20211201``."""
        return self.interval.name

    @property
    def owner(self) -> str:
        """The wiki."""
        return self.interval.wiki

    @property
    def age(self) -> tuple[str, str, str]:
        """The later date, the earlier date and the wiki."""
        return self.interval.recent, self.interval.prev, self.interval.wiki

    @property
    def language(self) -> str:
        """The language of the wiki's labels."""
        return self.interval.language


class ImportedManifest(IntervalManifest, frozen=True, kw_only=True):
    """The manifest of an interval that `temporalwiki import` wrote."""

    imported: Literal[True]
    counts: dict[str, dict[str, SplitCounts]]  # by config and split


class PageCounts(msgspec.Struct, frozen=True):
    """The pages of the later snapshot, by category."""

    new: Count
    updated: Count
    read: Count = 0
    unchanged: Count = 0
    dropped: dict[str, Count] = {}


class DiffsetCounts(msgspec.Struct, frozen=True):
    """The size of the diffset."""

    words: Count
    articles: Count = 0
    words_new: Count = 0
    words_reworded: Count = 0
    words_of_other_typography: Count = 0  # of sentences that are not in the diffset
    sentences_without_formula: Count = 0  # of changed paragraphs, new and old, which are not in the diffset


class Grades(msgspec.Struct, frozen=True):
    """How many facts have each value of the columns ``support`` and ``dated``, and how many are strict."""

    support: dict[str, Count]
    dated: dict[str, Count]
    strict: Count


class FactCounts(msgspec.Struct, frozen=True):
    """How many facts of one split are left after each step (Table 2 of the paper).

    ``facts`` has the grades of the facts before the caps, ``probes`` the grades after them.
    """

    categorised: Count
    sampled: Count
    aligned: Count
    filtered: Count
    kept: Count
    facts: Grades | None = None
    probes: Grades | None = None


class ProbeCounts(msgspec.Struct, frozen=True):
    """Fact counts by split."""

    unchanged: FactCounts
    changed: FactCounts
    deleted: FactCounts

    def by_split(self) -> dict[str, FactCounts]:
        """Return the counts by the name of their split."""
        return {split: getattr(self, split) for split in SPLITS["probes"]}


class Counts(msgspec.Struct, frozen=True):
    """The counts of a built interval: pages, diffset, facts and probes."""

    pages: PageCounts
    diffset: DiffsetCounts
    probes: ProbeCounts
    entity_types: dict[str, Any] | None = None


class BuiltWith(msgspec.Struct, frozen=True):
    """The options that decide the rows."""

    seed: int
    unchanged_fraction: float
    compare: str
    caps: tuple[float, float, float] | None
    allow_truncated: bool = False
    variant: str | None = None  # of the language


class StageRun(msgspec.Struct, frozen=True):
    """The cost of one stage of a build."""

    tasks: Count
    cpu_seconds: float
    peak_memory_mb: Count
    began: float = 0.0
    kept: Count | None = None
    seconds: float | None = None
    mb: float | None = None
    mb_per_cpu_second: float | None = None


class BuildRun(msgspec.Struct, frozen=True):
    """The cost of a build, by stage."""

    stages: dict[str, StageRun] = {}


class BuiltManifest(IntervalManifest, frozen=True, kw_only=True):
    """The manifest of an interval that `temporalwiki build` wrote."""

    options: BuiltWith
    counts: Counts
    run: BuildRun = BuildRun()  # not published: it differs between two builds of the same data


class RelationCounts(msgspec.Struct, frozen=True):
    """The rows of one LAMA relation."""

    raw: Count
    kept: Count
    dropped: dict[Rule, Count]


class CklCounts(SplitCounts, frozen=True):
    """The counts of a CKL config."""

    decided_by: dict[str, Count] = {}  # candidates by annotator
    relations: dict[Property, RelationCounts] | None = None  # of invariantlama


class CklManifest(Manifest, frozen=True, kw_only=True):
    """The manifest of a CKL config that `temporalwiki ckl` or `temporalwiki import` wrote."""

    dataset: Literal["ckl"]
    config: CklName
    kind: str  # of its columns, in ckl.schemas.SCHEMAS
    about: str
    licences: Annotated[list[Licence], msgspec.Meta(min_length=1)]
    source: str
    language: Language
    options: dict[str, Any]
    counts: CklCounts

    @property
    def name(self) -> str:
        """The config."""
        return self.config

    @property
    def owner(self) -> str:
        """CKL."""
        return "CKL"

    @property
    def age(self) -> tuple[str, str, str]:
        """The config: it has no dates."""
        return "", "", self.config


OfInterval = BuiltManifest | ImportedManifest
AnyManifest = BuiltManifest | ImportedManifest | CklManifest
M = TypeVar("M", bound=Manifest)


def checked(content: Any, where: str) -> AnyManifest:
    """Make a manifest from JSON values. Raises InputError, whose message starts with ``where``, if that fails."""
    try:
        if not isinstance(content, dict):
            raise ValueError("not an object")
        with_content = content | {"content": content}
        if content.get("dataset") == "ckl":
            manifest = msgspec.convert(with_content, CklManifest)
            _check_ckl(manifest)
            return manifest
        kind = ImportedManifest if content.get("imported") else BuiltManifest
        of_interval: OfInterval = msgspec.convert(with_content, kind)  # type: ignore[assignment]
        _check_interval(of_interval)
        return of_interval
    except (ValueError, msgspec.ValidationError) as error:
        raise InputError(f"{where}: not a manifest of temporalwiki ({in_one_line(error)})") from None


def checked_as(kind: type[M], content: Any, where: str) -> M:
    """Return JSON values as a manifest of one ``kind``. Raises InputError, which names ``where`` they come from."""
    manifest = checked(content, where)
    if not isinstance(manifest, kind):
        raise InputError(f"{where}: not a manifest of temporalwiki (of another kind)")
    return manifest


def decode(data: bytes, where: str) -> AnyManifest:
    """Return the manifest in the bytes of a file. Raises InputError, which names ``where`` they come from."""
    try:
        content = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InputError(f"{where}: not a manifest of temporalwiki ({in_one_line(error)})") from None
    return checked(content, where)


def read_manifests(folder: Path) -> list[AnyManifest]:
    """Return the manifests of a dataset folder, oldest interval first.

    Raises InputError, which names the file, for one that is damaged or has the wrong name.
    """
    manifests = []
    for path in sorted((folder / "manifests").glob("*.json")):
        try:
            manifest = decode(read_small(path), str(path))
            if manifest.name != path.stem:
                raise InputError(f"{path}: not a manifest of temporalwiki (it describes {manifest.name})")
        except InputError as error:
            again = "build its month again" if _INTERVAL_NAME.fullmatch(path.stem) else "make it again"
            raise InputError(f"{error}; remove it, or {again}") from None
        manifests.append(manifest)
    return sorted(manifests, key=lambda manifest: manifest.age)


def not_a_dataset(folder: Path) -> str:
    """Return what to say of a folder without manifests. It names a dataset folder in it, if there is one."""
    inner = next((path.parent.parent for path in sorted(folder.glob("[!.]*/manifests/*.json"))), None)
    return f"{folder}: no manifests in it, so it is no dataset folder" + (f"; {inner} is one" if inner else "")


def read_intervals(folder: Path) -> list[OfInterval]:
    """Return the manifests of intervals in a dataset folder, oldest first; raise InputError as ``read_manifests``."""
    return [manifest for manifest in read_manifests(folder) if not isinstance(manifest, CklManifest)]


def find_config(folder: Path, name: str | None) -> tuple[str, AnyManifest] | None:
    """Return the full name of a local config and its manifest: the newest interval's, as short names have it."""
    for manifest in reversed(read_manifests(folder)):
        for full_name, config in manifest.configs.items():
            if name in (full_name, config.short_name or full_name):
                return full_name, manifest
    return None


def _check_interval(manifest: OfInterval) -> None:
    """Raise ValueError unless all configs and files belong to the manifest's own interval."""
    known = dict(names(kind, manifest.interval) for kind in SCHEMAS)
    if not manifest.imported and not any(name.startswith("diffset-") for name in manifest.configs):
        raise ValueError("it has no diffset")
    for name, config in manifest.configs.items():
        if name not in known or known[name] != config.short_name:
            raise ValueError(f"{manifest.name} cannot have a config {name!r}, {config.short_name!r} in short")
        if unknown := config.splits.keys() - SPLITS[name.split("-")[0]]:
            raise ValueError(f"{name} cannot have a split {min(unknown)!r}")
        counted = manifest.counts.get(name, {}) if isinstance(manifest, ImportedManifest) else config.splits
        if uncounted := config.splits.keys() - counted.keys():
            raise ValueError(f"it has no count of {min(uncounted)!r} of {name}")
        _check_files(name, config)


def _check_ckl(manifest: CklManifest) -> None:
    """Raise ValueError unless the manifest describes one CKL config and its counts add up."""
    if manifest.kind not in ckl.SCHEMAS:
        raise ValueError(f"rows of the kind {manifest.kind!r}; there are {', '.join(ckl.SCHEMAS)}")
    if list(manifest.configs) != [manifest.config]:
        listed = ", ".join(map(repr, manifest.configs)) or "no config"
        raise ValueError(f"a manifest of {manifest.config} that lists {listed}")
    config = manifest.configs[manifest.config]
    if config.short_name is not None:
        msgspec.convert(config.short_name, CklName)
    for split in config.splits:
        if not re.fullmatch("[a-z]+", split):
            raise ValueError(f"{manifest.config} cannot have a split {split!r}")
    _check_files(manifest.config, config)
    rows, counts = sum(split.num_examples for split in config.splits.values()), manifest.counts
    if (counts.kept, counts.read) != (rows, rows + sum(counts.dropped.values())):
        raise ValueError(f"{rows:,} rows, but its counts say otherwise")


def _check_files(name: str, config: Config) -> None:
    for split, written in config.splits.items():
        path = re.compile(rf"data/{re.escape(name)}/{re.escape(split)}-[0-9]{{5}}-of-[0-9]{{5}}\.parquet")
        for file in written.files:
            if not path.fullmatch(file.path):
                raise ValueError(f"it says that {split!r} of {name} is in {file.path!r}")
