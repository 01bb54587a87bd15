"""Manifests: the JSON files that say what a dataset folder, a checkpoint or a result holds and how it was made.

Each struct has the fields that other code relies on, and is checked once, where the file is read. ``content`` is the
whole file as JSON values, for code that writes a manifest again: so fields survive that the structs do not know.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import msgspec

from temporalwiki.base.errors import InputError, in_one_line
from temporalwiki.base.files import read_small
from temporalwiki.base.json_files import fingerprint, read_json
from temporalwiki.builders.ckl import schemas as ckl
from temporalwiki.builders.configs import SCHEMAS, SPLITS, TEST_DATA, names
from temporalwiki.builders.snapshot import Interval, check_date
from temporalwiki.builders.streams import digest
from temporalwiki.builders.wikidata.probes import CAPS

Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Digest = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
# names become folders, keys of the card, and arguments of commands
CklName = Annotated[str, msgspec.Meta(pattern=r"\A[a-z][a-z0-9]*([_-][a-z0-9]+)*\Z", max_length=80)]
Language = Annotated[str, msgspec.Meta(pattern=r"\A[a-z]+(-[a-z0-9]+)*\Z", max_length=80)]
Licence = Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9][a-z0-9.-]*\Z")]
Property = Annotated[str, msgspec.Meta(pattern=r"\AP[1-9][0-9]*\Z")]
Day = Annotated[str, msgspec.Meta(pattern=r"\A[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}\Z")]
Month = Annotated[str, msgspec.Meta(pattern=r"\A[1-9][0-9]{3}-(0[1-9]|1[0-2])\Z")]
Rule = Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9_ ]+\Z")]
RepoId = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9._-]+)?\Z", max_length=200)]
Commit = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{40}\Z")]
Tag = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]*\Z", max_length=200)]

_OTHER = "not the file that the manifest describes"
_BASE = ("base_model", "base_model_name_or_path", "revision")  # keys of files that name a base model
_INTERVAL_NAME = re.compile(r"\d{8}-\d{8}")


# Dataset folders


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
            return _OTHER
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


class RowCounts(msgspec.Struct, frozen=True):
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
    counts: dict[str, dict[str, RowCounts]]  # by config and split


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
    # older manifests lack these
    words_new: Count | None = None
    words_reworded: Count | None = None
    words_of_other_typography: Count = 0  # of sentences that are not in the diffset
    sentences_without_formula: Count = 0  # of changed paragraphs, new and old, which are not in the diffset


class Grades(msgspec.Struct, frozen=True):
    """How many facts have each value of the columns ``support`` and ``dated``, and how many are strict."""

    support: dict[str, Count]
    dated: dict[str, Count]
    strict: Count


class FactCounts(msgspec.Struct, frozen=True):
    """How many facts of one split are left after each step (Table 2 of the paper).

    ``facts`` has the grades of the facts before the caps, ``probes`` the grades after them. Older manifests lack both.
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


class BuildOptions(msgspec.Struct, frozen=True):
    """The options that decide the rows."""

    seed: int
    unchanged_fraction: float
    compare: str = "exact"  # as in older manifests
    caps: tuple[float, float, float] | None = CAPS
    allow_truncated: bool = False


class StageRun(msgspec.Struct, frozen=True):
    """The cost of one stage of a build. Older manifests have only the first three fields."""

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

    options: BuildOptions
    counts: Counts
    run: BuildRun = BuildRun()  # not published: it differs between two builds of the same data


class RelationCounts(msgspec.Struct, frozen=True):
    """The rows of one LAMA relation."""

    raw: Count
    kept: Count
    dropped: dict[Rule, Count]


class CklCounts(RowCounts, frozen=True):
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


M = TypeVar("M", bound=Manifest)


def checked(content: Any, where: str) -> BuiltManifest | ImportedManifest | CklManifest:
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
        of_interval: BuiltManifest | ImportedManifest = msgspec.convert(with_content, kind)  # type: ignore[assignment]
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


def decode(data: bytes, where: str) -> BuiltManifest | ImportedManifest | CklManifest:
    """Return the manifest in the bytes of a file. Raises InputError, which names ``where`` they come from."""
    try:
        content = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InputError(f"{where}: not a manifest of temporalwiki ({in_one_line(error)})") from None
    return checked(content, where)


def read_manifests(folder: Path) -> list[BuiltManifest | ImportedManifest | CklManifest]:
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


def read_intervals(folder: Path) -> list[BuiltManifest | ImportedManifest]:
    """Return the manifests of intervals in a dataset folder, oldest first; raise InputError as ``read_manifests``."""
    return [manifest for manifest in read_manifests(folder) if not isinstance(manifest, CklManifest)]


def find_config(folder: Path, name: str | None) -> tuple[str, BuiltManifest | ImportedManifest | CklManifest] | None:
    """Return the full name of a local config and its manifest: the newest interval's, as short names have it."""
    for manifest in reversed(read_manifests(folder)):
        for full_name, config in manifest.configs.items():
            if name in (full_name, config.short_name or full_name):
                return full_name, manifest
    return None


def _check_interval(manifest: BuiltManifest | ImportedManifest) -> None:
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


# What models and results are made from


class DataSource(msgspec.Struct, frozen=True, omit_defaults=True):
    """A config that a model was trained or scored on, so that its rows can be found again."""

    config: str  # the full name, if it is known
    manifest_sha256: Digest | None = None  # ``Manifest.sha256``
    repository: RepoId | None = None  # on the Hub; None for a folder that is not known to be published
    commit: Commit | None = None
    tag: Tag | None = None
    language: Language | None = None  # of its rows; None if it is English, or if the manifest is not known

    @property
    def id(self) -> str | None:
        """The repository with its tag or commit (``ORG/NAME@2021.12``), or None if it is not on the Hub."""
        at = self.tag or self.commit
        return f"{self.repository}@{at}" if self.repository and at else None


# Checkpoints


class Parameters(msgspec.Struct, frozen=True):
    """How many parameters a model has, and how many of them were trained."""

    total: Count | None = None
    trainable: Count | None = None


class TrainingRun(msgspec.Struct, frozen=True):
    """A training: its model, method and data. The method's own options are in ``TrainingManifest.content``."""

    method: str
    model: str
    data: str
    config: str
    learning_rate: float | None = None
    batch_size: Count | None = None
    sequence_length: Count | None = None
    max_steps: int | None = None
    seed: int | None = None


class Loss(msgspec.Struct, frozen=True):
    """The loss at the first and the last logged step."""

    first: float
    last: float


class TrainingManifest(msgspec.Struct, frozen=True, kw_only=True):
    """``training.json``, which `temporalwiki train` writes last into a checkpoint's folder."""

    run: TrainingRun
    architecture: Literal["decoder-only", "encoder-decoder"]
    base: str | None = None  # the Hub model, at its commit, that the first phase began from
    trained_on_test: list[str] = []  # the test configs that this phase or an earlier one read
    parameters: Parameters | None = None
    data: dict[str, Any] = {}  # a description of the rows that were read
    sources: list[DataSource] = []  # the configs that this phase read; older manifests lack them
    earlier_sources: list[DataSource] = []  # the same of earlier phases, oldest first
    steps: Count | None = None  # None if the method trains nothing
    earlier_steps: list[Count] = []  # of each earlier phase that trained, oldest first; older manifests do not say
    loss: Loss | None = None
    log: list[dict[str, Any]] = []
    files: list[DataFile] = []  # of the model and the tokenizer
    settings: dict[str, str] = {}  # fingerprints of files that name the base model
    versions: dict[str, str] = {}  # of libraries
    content: dict[str, Any] = {}

    @property
    def on_test(self) -> list[str]:
        """The test configs that this phase or an earlier one read.

        Older manifests do not list them: then only this training's own config is known.
        """
        own = [self.run.config] if self.steps and self.run.config.startswith(TEST_DATA) else []
        return sorted({*self.trained_on_test, *own})


class _CheckpointFiles(msgspec.Struct):
    """The fields of ``training.json`` that list files. Older checkpoints lack them."""

    files: list[DataFile] = []
    settings: dict[str, str] = {}  # fingerprints of files that name the base model, without its name


def settings_of(path: Path) -> str:
    """Return a fingerprint of a JSON file that ignores the name of the base model, which users may change."""
    content = read_json(path, dict[str, Any], "the settings of a checkpoint")
    return fingerprint({key: value for key, value in content.items() if key not in _BASE})


def check_checkpoint(folder: Path, content: bool = True) -> None:
    """Raise InputError if a file of a checkpoint is missing, or is not the file that its ``training.json`` describes.

    Without ``content``, only sizes are compared. A folder without ``training.json`` has nothing to check.
    """
    manifest = folder / "training.json"
    if not manifest.is_file():
        return
    listed = read_json(manifest, _CheckpointFiles, "the record of a training run")
    for path in (*(file.path for file in listed.files), *listed.settings):
        if path.startswith("/") or "\0" in path or not {"", ".", ".."}.isdisjoint(path.split("/")):
            raise InputError(f"{manifest}: lists {path!a}, which is no name of a file")
    problems = [(file.path, file.problem(folder, content)) for file in listed.files]
    for path, expected in listed.settings.items():
        problems.append((path, None if settings_of(folder / path) == expected else _OTHER))
    for path, problem in problems:
        if problem:
            raise InputError(f"{folder / path}: {problem}; remove {folder} and train again, or copy it again")


def read_training(path: Path) -> TrainingManifest:
    """Return a ``training.json``. Raises InputError, which names the file, for one that is damaged or missing."""
    try:
        content = msgspec.json.decode(read_small(path), type=dict[str, Any])
        return msgspec.convert(content | {"content": content}, TrainingManifest)
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path}: not the record of a training run ({in_one_line(reason)}); train again") from None


# Results


class ResultScore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A score with its confidence interval. Both ends are None if all items belong to one cluster."""

    value: float
    low: float | None
    high: float | None
    items: Count
    clusters: Count

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval with one end")


class ResultTask(msgspec.Struct, frozen=True):
    """The task that was run."""

    name: str
    version: Count
    options: dict[str, Any]


class ResultModel(msgspec.Struct, frozen=True):
    """The model that was scored."""

    name: str
    revision: str
    precision: str
    label: str | None = None
    method: str | None = None
    trained_on: list[str] = []
    trained_on_test: list[str] = []  # the test configs that its training read
    base: str | None = None
    learning_rate: float | None = None
    recipe: str | None = None  # the same for runs that differ by their seed only
    seed: int | None = None
    parameters: Parameters | None = None
    tokens: Count | None = None

    def __post_init__(self) -> None:
        if self.learning_rate is not None and not math.isfinite(self.learning_rate):
            raise ValueError("an infinite learning rate")

    def marked(self, name: str) -> str:
        """Return a name of the model, with a mark if its training read test data."""
        return f"{name} (trained on test data)" if self.trained_on_test else name


class ResultStart(msgspec.Struct, frozen=True):
    """The model that the scored model is compared with."""

    name: str
    revision: str
    precision: str = ""  # older results do not say


class ResultNewer(msgspec.Struct, frozen=True):
    """The filter of ``--after-cutoff``, and the rows that it kept and dropped, by split."""

    day: Day
    kept: dict[str, Count]
    dropped: dict[str, Count]
    model: str | None = None  # the model whose cutoff the day is


class ResultRetrieved(msgspec.Struct, frozen=True):
    """What ``--retrieve`` let the model read before each question."""

    source: str  # a config, or "evidence"
    version: Count
    top_k: Count | None = None  # None: the evidence
    hash: str | None = None  # of the config
    found: dict[str, Count] = {}  # rows with a passage, by split

    def __str__(self) -> str:
        return self.source if self.top_k is None else f"top {self.top_k} of {self.source}"


class ResultData(msgspec.Struct, frozen=True):
    """The config that the model was scored on."""

    dataset: str
    config: str
    rows: dict[str, Count]
    hash: str
    source: DataSource | None = None  # None for data in memory and in older results
    newer: ResultNewer | None = None
    retrieved: ResultRetrieved | None = None


class ResultLeak(msgspec.Struct, frozen=True):
    """How many changed facts a model prefers already: the new object to the old ones, or a new answer."""

    model: str
    facts: Count
    new: Count


class ResultRun(msgspec.Struct, frozen=True):
    """The part of a result that may differ when it is computed again."""

    temporalwiki: str | None = None  # its version


class ResultManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A result file of `temporalwiki evaluate`."""

    task: ResultTask
    model: ResultModel
    data: ResultData
    start: ResultStart | None = None  # of tasks that compare a model with the one that it started from
    scores: dict[str, ResultScore]  # such as "unchanged/perplexity"
    excluded: dict[str, Count]  # items that were not scored, by reason
    leak: ResultLeak | None = None
    run: ResultRun
    content: dict[str, Any] = {}

    @property
    def asked(self) -> str:
        """The name of the task, with the day after which its rows begin if others were dropped."""
        return self.task.name + (f" after {self.data.newer.day}" if self.data.newer else "")

    @property
    def scored(self) -> str:
        """The name of the task as in ``asked``, with the source of passages if there is one."""
        return self.asked + (f" with {self.data.retrieved}" if self.data.retrieved else "")


# Results of `temporalwiki cutoff`

CUTOFF = "cutoff.json"


class CutoffMonths(msgspec.Struct, frozen=True):
    """The last month whose changes a model knows, with the ends of its 95 % interval."""

    verdict: Literal["found", "before the data", "after the data", "cannot tell"]
    cutoff: Month | None
    low: Month | None
    high: Month | None

    def __post_init__(self) -> None:
        known = {
            "found": (self.low, self.cutoff, self.high),
            "before the data": (self.high,),
            "after the data": (self.low,),
        }.get(self.verdict, ())
        months = [month for month in (self.low, self.cutoff, self.high) if month is not None]
        if list(known) != months or months != sorted(months):
            raise ValueError(f"the months do not fit {self.verdict!r}")


class CutoffPoint(msgspec.Struct, frozen=True):
    """A month with changes."""

    month: Month


class CutoffManifest(msgspec.Struct, frozen=True):
    """A result file of `temporalwiki cutoff`. Older ones do not say which data and evidence it comes from."""

    model: str
    overall: CutoffMonths
    curve: list[CutoffPoint]
    data: str | None = None
    evidence: dict[Literal["facts", "text"], Count] = {}


def cutoff_files(folder: Path) -> list[Path]:
    """Return the results of `temporalwiki cutoff` in a folder and in its folders, sorted."""
    return sorted(path for path in (folder / CUTOFF, *folder.glob(f"*/{CUTOFF}")) if path.is_file())


def read_cutoff(path: Path) -> CutoffManifest:
    """Return a result of `temporalwiki cutoff`. Raises InputError for any other file."""
    return read_json(path, CutoffManifest, "a result of `temporalwiki cutoff`; run the command again")
