"""``training.json``: what a checkpoint holds, and the model, method and data that it was trained from."""

from pathlib import Path
from typing import Any, Literal

import msgspec

from temporalwiki.base.errors import InputError, in_one_line
from temporalwiki.base.files import read_small
from temporalwiki.base.json_files import fingerprint, read_json
from temporalwiki.builders.manifests import OTHER, Count, DataFile
from temporalwiki.builders.published import DataSource

_BASE = ("base_model", "base_model_name_or_path", "revision")  # keys of files that name a base model


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
    sources: list[DataSource] = []  # the configs that this phase read
    earlier_sources: list[DataSource] = []  # the same of earlier phases, oldest first
    steps: Count | None = None  # None if the method trains nothing
    earlier_steps: list[Count] = []  # of each earlier phase that trained, oldest first
    loss: Loss | None = None
    log: list[dict[str, Any]] = []
    files: list[DataFile] = []  # of the model and the tokenizer
    settings: dict[str, str] = {}  # fingerprints of files that name the base model
    versions: dict[str, str] = {}  # of libraries
    content: dict[str, Any] = {}


class _CheckpointFiles(msgspec.Struct):
    """The fields of ``training.json`` that list files."""

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
        problems.append((path, None if settings_of(folder / path) == expected else OTHER))
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
