"""``temporalwiki.load_dataset``: ``datasets.load_dataset`` with a default folder and a checked revision."""

import datetime
import errno
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from datasets.naming import camelcase_to_snakecase
from datasets.packaged_modules.cache.cache import Cache
from huggingface_hub import DatasetCard, HfApi, constants, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
from huggingface_hub.file_download import repo_folder_name

from temporalwiki.base.errors import InputError, UsageError, first_line, in_one_line
from temporalwiki.base.files import digest, read_small
from temporalwiki.base.json_files import fingerprint
from temporalwiki.base.options import did_you_mean
from temporalwiki.builders.after_cutoff import Filter, read_after
from temporalwiki.builders.ckl import schemas as ckl
from temporalwiki.builders.configs import SCHEMAS, SPLITS
from temporalwiki.builders.manifests import CklManifest, find_config, not_a_dataset

# `datasets` would ask a second server, with the token, for information that our cards have.
datasets.config.USE_PARQUET_EXPORT = False
# The default folders of the commands: a config's name is enough to load from them.
DEFAULT = "temporalwiki"
_CKL = "ckl"
_HUB_ID = re.compile(r"[\w-][\w.-]*/[\w.-]+")
_CONFIG = re.compile(rf"({'|'.join(SPLITS)})-\d+(-\d+)?")


def load_dataset(
    path: str,
    name: str | None = None,
    *,
    split: str | None = None,
    revision: str | None = None,
    after_cutoff: str | datetime.date | None = None,
    **options: Any,
) -> datasets.DatasetDict | datasets.Dataset | datasets.IterableDatasetDict | datasets.IterableDataset:
    """Load a config of the benchmark: ``load_dataset("diffset-1112")`` or ``load_dataset(path, "diffset-1112")``.

    ``path`` is a dataset folder or a Hub id. With only a config's name, the folder is ``./temporalwiki``, or ``./ckl``
    for a config of CKL such as ``load_dataset("invariantlama")``. The function works like ``datasets.load_dataset``
    with four differences:

    - ``revision`` is never ignored. It raises InputError for a local folder, and if an offline cache holds another
      revision; ``datasets`` would silently load the other data.
    - A local folder whose card names data outside the folder raises InputError; ``datasets`` would fetch that data.
    - Splits without rows of a local folder load as empty splits; ``datasets`` cannot load them.
    - The rows of a local folder are cached by the names, sizes and times of the config's files. ``datasets`` caches
      them by the folder's name, and without a network it returns them in every other folder, as if they came from
      the Hub.

    ``after_cutoff`` keeps only facts that began, and text that appeared, after a date ("20211101", "2021-11") or after
    a model's cutoff: the path of a result of ``temporalwiki cutoff``. ``after_cutoff.Filter`` defines the date of a
    row. Raises UsageError for a wrong date, and InputError for an unknown config or split, for a damaged file, for a
    full disk, and for rows without a date.
    """
    after = None if after_cutoff is None else read_after(str(after_cutoff))
    if name is None and _CONFIG.fullmatch(path):
        path, name = DEFAULT, path
    elif name is None and _is_of_ckl(path):
        path, name = _CKL, path
    if after is not None and name is None:
        raise UsageError(f"{path}: after_cutoff needs the name of a config, such as probes-1112")
    folder = Path(path)
    for default, command, example in ((DEFAULT, "build", "diffset-1112"), (_CKL, "ckl", "invariantlama")):
        if path == default and not folder.is_dir():
            raise InputError(
                f"there is no folder ./{default}: make one with `temporalwiki {command}`, "
                f'or name a repository: load_dataset("ORG/{default}", "{name or example}")'
            )
    if revision is not None and folder.is_dir():
        raise InputError(f"{path}: a local folder has no revision {revision!r}; leave it out, or name a repository")
    kept = None if revision is None else _check_revision(path, name, revision)
    check_card(folder)
    empty, has_rows = _empty_splits(folder, name) if name else ({}, True)
    streaming = bool(options.get("streaming"))
    made = {split: _no_rows(features, streaming) for split, features in empty.items()}
    if split in made:
        return made[split]
    if split is None and not has_rows:
        return datasets.IterableDatasetDict(made) if streaming else datasets.DatasetDict(made)
    if folder.is_dir():
        cache = Path(datasets.config.HF_DATASETS_CACHE, "temporalwiki-folders", state_of(folder, name))
        options.setdefault("cache_dir", str(cache))
    try:
        if kept is None:
            loaded = datasets.load_dataset(place_of(path), name, split=split, revision=revision, **options)
        else:  # `datasets` would take the newest commit of its cache
            version, commit = kept.parts[-2:]
            dataset = path.split("/")[-1]
            cache = Cache(repo_id=path, dataset_name=dataset, config_name=name, version=version, hash=commit)
            loaded = cache.as_streaming_dataset(split) if streaming else cache.as_dataset(split)
    except ValueError as error:  # of `datasets`, for an unknown config or split
        raise InputError(f"{path}: {in_one_line(error)}") from None
    except (OSError, datasets.exceptions.DatasetGenerationError) as error:
        if (said := _explained(error, path, name, revision)) is None:
            raise
        raise InputError(said) from error
    if isinstance(loaded, dict):
        loaded.update(made)
    if after is not None and name is not None:
        newer = Filter.of(after, name, config_names(path if revision is None else f"{path}@{revision}"))
        if not isinstance(loaded, dict):
            return newer.kept(loaded, str(split))
        loaded.update({of: newer.kept(rows, of) for of, rows in loaded.items()})
    return loaded


def config_names(data: str) -> list[str]:
    """Return the configs of a dataset folder, a Hub id or ``id@revision``; raise InputError if it is not a dataset."""
    path, revision = split_revision(data)
    folder = Path(path)
    near = "" if folder.exists() else did_you_mean(folder.name, [other.name for other in folder.parent.glob("*/")])
    if not folder.exists() and not _HUB_ID.fullmatch(path):
        why = f"no such folder{near}; on the Hub it has a name such as ORG/temporalwiki"
        raise InputError(f"{data}: cannot load a dataset: {why}")
    described = any(folder.glob("manifests/*.json"))
    # `datasets` would take the tables in inner folders for one config
    if not described and any(folder.glob("[!.]*/manifests/*.json")):
        raise InputError(not_a_dataset(folder))
    check_card(folder)
    if datasets.config.HF_HUB_OFFLINE and not folder.exists():  # `datasets` would return "default" alone
        if found := _cached(path, revision and _check_offline(path, None, revision)):
            return sorted(found)
        raise InputError(f"{data}: HF_HUB_OFFLINE is set, and {datasets.config.HF_DATASETS_CACHE} has no config of it")
    try:
        return list(datasets.get_dataset_config_names(place_of(path), revision=revision))
    except (OSError, ValueError, RuntimeError) as error:
        unreadable = f"{data}: cannot load a dataset{near}"
        said = unreadable if described or not folder.is_dir() else not_a_dataset(folder)
        raise InputError(f"{said}: {first_line(error)}") from None


def place_of(path: str) -> str:
    """Return how `datasets` must be asked for a folder or a Hub id: the folder "json" is not its builder "json"."""
    return f"./{path}" if "/" not in path and path != DEFAULT and Path(path).is_dir() else path


def exists(reference: str) -> bool:
    """Return True if there is a folder or file of this name; raise InputError if the system cannot look for it."""
    try:
        return Path(reference).exists()
    except OSError as error:  # the name is too long, or its folder may not be read
        shown = reference if len(reference) <= 80 else f"{reference[:80]}..."
        raise InputError(f"{shown!r}: cannot look for this file: {error.strerror}") from None


def split_revision(reference: str) -> tuple[str, str | None]:
    """Split ``id@revision`` into its parts. The name of an existing folder, which may contain an @, is not split."""
    if "@" not in reference or exists(reference):
        return reference, None
    id, _, revision = reference.partition("@")
    return id, revision


def state_of(folder: Path, name: str | None) -> str:
    """Return a fingerprint of a config's Parquet files, by path, size and time: a new month does not change it.

    Without a config that a manifest lists, all Parquet files in the folder count.
    """
    folder = folder.resolve()
    found = find_config(folder, name)
    files = sorted((folder / "data" / found[0] if found else folder).rglob("*.parquet"))
    return fingerprint([(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files])


def check_card(folder: Path) -> None:
    """Raise InputError if the card of a local folder names data outside the folder.

    Even in its offline mode, `datasets` reads any address or file that an untrusted card names.
    """
    for name in ("README.md", ".huggingface.yaml"):
        try:
            text = read_small(folder / name).decode()
            said: Any = yaml.safe_load(text) if name != "README.md" else vars(DatasetCard(text).data)
        except (OSError, ValueError, TypeError, yaml.YAMLError, RecursionError):
            continue  # `datasets` reads it the same way and names the fault
        configs = said.get("configs") if isinstance(said, dict) else None
        for config in configs if isinstance(configs, list) else []:
            wanted = [config.get("data_files"), config.get("data_dir")] if isinstance(config, dict) else []
            for path in _texts(wanted):
                if "://" in path or "::" in path or path.startswith("/") or ".." in PurePosixPath(path).parts:
                    raise InputError(f"{folder / name}: names data outside its folder, {path[:100]!a}: take it out")


def _texts(value: object) -> Iterator[str]:
    """Yield all strings in nested lists and mappings; a part that YAML aliases repeat is visited once."""
    waiting, seen = [value], set[int]()
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, list | dict) and id(part) not in seen:
            seen.add(id(part))
            waiting += part.values() if isinstance(part, dict) else part


def _is_of_ckl(name: str) -> bool:
    try:
        ckl.check_name(name)
    except UsageError:
        return False
    return name != "kilt"  # which is several


def _no_rows(features: datasets.Features, streaming: bool) -> Any:
    if streaming:
        return datasets.IterableDataset.from_generator(_nothing, features=features)
    nothing: dict[str, list[Any]] = {column: [] for column in features}
    return datasets.Dataset.from_dict(nothing, features=features)


def _nothing() -> Iterator[Any]:
    yield from ()


def _empty_splits(folder: Path, name: str) -> tuple[dict[str, datasets.Features], bool]:
    """Return the features of a local config's splits without rows, and whether it has splits with rows."""
    found = find_config(folder, name)
    if found is None:
        return {}, True
    full_name, manifest = found
    schema = ckl.SCHEMAS[manifest.kind] if isinstance(manifest, CklManifest) else SCHEMAS[full_name.split("-")[0]]
    features = datasets.Features.from_arrow_schema(schema)
    splits = manifest.configs[full_name].splits
    empty = [split for split, written in splits.items() if not written.num_examples]
    return dict.fromkeys(empty, features), len(empty) < len(splits)


def _check_revision(path: str, name: str | None, revision: str) -> Path | None:
    """Return where an offline cache has a config at ``revision``; None if the Hub has the revision.

    Raises InputError if neither can be shown.
    """
    try:
        HfApi().dataset_info(path, revision=revision)
    except OfflineModeIsEnabled:
        found = _cached(path, _check_offline(path, name, revision))
        if name in found:
            return found[name]
        wanted, there = name or "config without a name", ", ".join(sorted(found)) or "nothing"
        raise InputError(f"{path}: the offline cache has no {wanted} of {revision}; it has {there}") from None
    except HfHubHTTPError as error:
        raise InputError(f"{path}: no revision {revision!r} on the Hub: {error}") from None
    return None


def _check_offline(path: str, name: str | None, revision: str) -> str:
    """Return the commit of a commit or tag; the cache of huggingface_hub says to which commit a tag points.

    Raises InputError if it does not, and for main, which moves.
    """
    refs = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=path, repo_type="dataset") / "refs"
    commit = revision
    if re.fullmatch(r"\w[\w.-]*", revision) and revision != "main" and (refs / revision).is_file():
        commit = read_small(refs / revision).decode("ascii", "replace").strip()
    if not re.fullmatch("[0-9a-f]{40}", commit):
        any_one = f"datasets would load any revision of {name or 'it'} in its cache. Go online, or leave revision= out"
        raise InputError(f"{path}: revision {revision!r} cannot be checked offline; {any_one}")
    return commit


def _cached(path: str, commit: str | None) -> dict[str, Path]:
    """Return where the cache of `datasets` has the configs of a dataset, by name: at a commit, or the newest."""
    owner, _, dataset = path.rpartition("/")
    place = Path(datasets.config.HF_DATASETS_CACHE, "___".join(filter(None, (owner, camelcase_to_snakecase(dataset)))))
    folders = [info.parent for info in place.glob(f"*/*/{commit or '*'}/dataset_info.json")]
    return {folder.parts[-3]: folder for folder in sorted(folders, key=lambda folder: folder.stat().st_mtime)}


def _explained(error: Exception, path: str, name: str | None, revision: str | None) -> str | None:
    """Return a line that names the full disk or the damaged file, or None for another error."""
    cause: BaseException | None = error
    while cause is not None:
        no_room = str(cause).startswith("Not enough disk space")  # of `datasets`, without a number
        if isinstance(cause, OSError) and (no_room or cause.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)):
            caches = [Path(str(place)) for place in (datasets.config.HF_DATASETS_CACHE, constants.HF_HUB_CACHE)]
            full = min((place for place in caches if place.exists()), key=lambda place: shutil.disk_usage(place).free)
            why = os.strerror(cause.errno or errno.ENOSPC)
            return f"{path}: {full}: {why}; free some space, or set HF_HOME to another disk"
        cause = cause.__cause__
    if isinstance(error, OSError):
        return f"{path}: {first_line(error)}" if isinstance(error, ConnectionError) else None
    builder = datasets.load_dataset_builder(place_of(path), name, revision=revision)
    for file in (file for of_split in builder.config.data_files.values() for file in of_split):
        repository, _, place = file.removeprefix("hf://datasets/").partition("@")
        commit, _, inside = place.partition("/")
        found = try_to_load_from_cache(repository, inside, revision=commit, repo_type="dataset") if inside else file
        local = Path(str(found)).resolve()  # huggingface_hub names its copy by the SHA-256
        try:
            for _ in pq.ParquetFile(local).iter_batches():
                pass
        except (OSError, pa.ArrowException) as wrong:
            mend = f"delete {local} and load it again"
            if not file.startswith("hf://"):
                mend = "build its month again"
            elif local.is_file() and digest(local, "sha256") == local.name:
                mend = "it is so on the Hub: tell its maintainers"
            return f"{file}: damaged ({first_line(wrong)}); {mend}"
    return None
