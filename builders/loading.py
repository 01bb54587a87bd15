"""``temporalwiki.load_dataset``: ``datasets.load_dataset`` with a default repository and a revision that counts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import datasets
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

from temporalwiki.builders.dataset_folder import SCHEMAS, SPLITS, read_manifests
from temporalwiki.builders.errors import InputError

DEFAULT = "temporalwiki"  # a dataset folder of that name in the current folder, as the build writes it
_CONFIG = re.compile(rf"({'|'.join(SPLITS)})-\d+(-\d+)?")


def load_dataset(
    path: str, name: str | None = None, *, split: str | None = None, revision: str | None = None, **options: Any
) -> datasets.DatasetDict | datasets.Dataset | datasets.IterableDatasetDict | datasets.IterableDataset:
    """Load a config of the benchmark: ``load_dataset("diffset-1112")`` or ``load_dataset(path, "diffset-1112")``.

    ``path`` is a dataset folder or a Hub id; a config's name alone means the folder ``./temporalwiki``. All else
    is as in ``datasets.load_dataset``, except that

    - ``revision`` is never ignored: for a local folder, which has none, and where an offline cache holds another
      revision, it raises InputError, while ``datasets`` would load whatever is there;
    - splits without rows, which ``datasets`` cannot load, are there and empty in a local folder.
    """
    if name is None and _CONFIG.fullmatch(path):
        path, name = DEFAULT, path
    folder = Path(path)
    if path == DEFAULT and not folder.is_dir():
        raise InputError(
            f"there is no folder ./{DEFAULT}: build one with `temporalwiki build`, "
            f'or name a repository: load_dataset("ORG/temporalwiki", "{name or "diffset-1112"}")'
        )
    if revision is not None and folder.is_dir():
        raise InputError(
            f"{path}: a local folder has no revision {revision!r}; leave revision= out, or name a Hub repository"
        )
    if revision is not None:
        _check_revision(path, name, revision)
    empty, has_rows = _empty_splits(folder, name) if name else ({}, True)
    if split in empty:
        return empty[split].to_iterable_dataset() if options.get("streaming") else empty[split]
    if split is None and not has_rows:
        return datasets.DatasetDict(empty)
    loaded = datasets.load_dataset(path, name, split=split, revision=revision, **options)
    if isinstance(loaded, datasets.DatasetDict):
        loaded.update(empty)
    return loaded


def _empty_splits(folder: Path, name: str) -> tuple[dict[str, datasets.Dataset], bool]:
    """Splits without rows that a config of a local folder has by its manifest, and whether others have rows."""
    for manifest in reversed(read_manifests(folder)):  # the newest interval first, as short names have it
        for full_name, config in manifest["configs"].items():
            if name in (full_name, config["short_name"]):
                features = datasets.Features.from_arrow_schema(SCHEMAS[full_name.split("-")[0]])
                empty = [split for split, files in config["splits"].items() if not files["num_examples"]]
                nothing: dict[str, list[Any]] = {column: [] for column in features}
                made = {split: datasets.Dataset.from_dict(nothing, features=features) for split in empty}
                return made, len(empty) < len(config["splits"])
    return {}, True


def _check_revision(path: str, name: str | None, revision: str) -> None:
    """Refuse to go on where the Hub cannot be asked for ``revision``: offline, `datasets` takes any cached one."""
    try:
        HfApi().dataset_info(path, revision=revision)
    except OfflineModeIsEnabled:
        raise InputError(
            f"{path}: revision {revision!r} cannot be checked offline; datasets would load any revision of "
            f"{name or 'it'} in its cache. Go online, or leave revision= out"
        ) from None
    except HfHubHTTPError as error:
        raise InputError(f"{path}: no revision {revision!r} on the Hub: {error}") from None
