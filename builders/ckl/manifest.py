"""What a card, a publish and the loader rely on in the manifest of a CKL config."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec

from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl.schemas import SCHEMAS

# Names become folders, keys of the card, and what people type.
_Name = Annotated[str, msgspec.Meta(pattern=r"\A[a-z][a-z0-9]*([_-][a-z0-9]+)*\Z", max_length=80)]
_Count = Annotated[int, msgspec.Meta(ge=0)]


class _File(msgspec.Struct):
    path: str
    size: _Count
    sha256: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class _Split(msgspec.Struct):
    num_examples: _Count
    num_bytes: _Count
    files: list[_File]


class _Config(msgspec.Struct):
    short_name: _Name | None
    splits: dict[Annotated[str, msgspec.Meta(pattern=r"\A[a-z]+\Z")], _Split]


class _Relation(msgspec.Struct):
    raw: _Count
    kept: _Count
    dropped: dict[Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9_ ]+\Z")], _Count]


class _Counts(msgspec.Struct):
    read: _Count
    kept: _Count
    dropped: dict[str, _Count]
    decided_by: dict[str, _Count] = {}  # candidates by annotator
    relations: dict[Annotated[str, msgspec.Meta(pattern=r"\AP[1-9][0-9]*\Z")], _Relation] = {}  # of invariantlama


class _Input(msgspec.Struct):
    file: str
    size: _Count
    sha1: str


class _Manifest(msgspec.Struct):
    dataset: Literal["ckl"]
    config: _Name
    kind: str
    about: str
    licences: Annotated[
        list[Annotated[str, msgspec.Meta(pattern=r"\A[a-z0-9][a-z0-9.-]*\Z")]], msgspec.Meta(min_length=1)
    ]
    source: str
    language: str
    inputs: list[_Input]
    options: dict[str, Any]
    counts: _Counts
    warnings: list[str]
    configs: dict[str, _Config]
    imported: bool = False


def check_ckl_manifest(manifest: Any, where: str) -> None:
    """Raise InputError, naming ``where`` it is from, unless a manifest is as ``temporalwiki ckl`` writes it.

    That is: all that others read of it is there, its counts add up, and no file is another config's.
    """
    try:
        read = msgspec.convert(manifest, _Manifest)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: not a manifest of CKL ({error})") from None
    if read.kind not in SCHEMAS:
        raise InputError(f"{where}: rows of the kind {read.kind!r}; there are {', '.join(SCHEMAS)}")
    if list(read.configs) != [read.config]:
        raise InputError(
            f"{where}: a manifest of {read.config} that has {', '.join(map(repr, read.configs)) or 'none'}"
        )
    splits = read.configs[read.config].splits
    for split, files in splits.items():
        path = re.compile(rf"data/{re.escape(read.config)}/{split}-[0-9]{{5}}-of-[0-9]{{5}}\.parquet")
        stray = next((file.path for file in files.files if not path.fullmatch(file.path)), None)
        if stray is not None:
            raise InputError(f"{where}: says that {split!r} of {read.config} is in {stray!r}")
    rows, counts = sum(files.num_examples for files in splits.values()), read.counts
    if (counts.kept, counts.read) != (rows, rows + sum(counts.dropped.values())):
        raise InputError(f"{where}: {rows:,} rows, of which its counts tell otherwise")
