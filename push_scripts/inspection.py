"""Check a published dataset as a user has it: its configs load, and have the rows and hashes of the manifests."""

import functools
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
from datasets.exceptions import DatasetsError

from temporalwiki.base.errors import InputError, in_one_line
from temporalwiki.base.files import digest
from temporalwiki.builders.inspection import describe_manifest
from temporalwiki.builders.manifests import Config, IntervalManifest, Manifest
from temporalwiki.model_cards.edits import read_header
from temporalwiki.push_scripts.dataset_repository import damaged, manifests_of
from temporalwiki.push_scripts.hub import Repository, ask
from temporalwiki.push_scripts.repository_state import Head


@dataclass(frozen=True)
class Inspection:
    """What a published dataset holds, and its faults."""

    manifests: list[Manifest]  # of the configs that were loaded
    text: str
    problems: list[str]


def inspect_published(repo_id: str, revision: str) -> Inspection:
    """Compare a dataset on the Hub at a revision with its manifests.

    The sizes and hashes of all files are compared as the Hub lists them. If they are right, the configs are downloaded
    and loaded under their full and short names. If the revision is the tag of a month, only its configs are loaded.

    Raises UsageError for a name that the Hub refuses, and InputError for a revision that is not there, for a
    repository without manifests, and if the Hub cannot be reached.
    """
    repository = Repository(repo_id, "dataset", waits=())  # somebody is waiting for the answer
    head = repository.head(revision)
    if head.commit is None:
        raise InputError(f"{repository.name}: the Hub has no such dataset, or you may not read it")
    manifests = manifests_of(head)
    if not manifests:
        raise InputError(f"{repository.name}: no manifests in it, so `temporalwiki publish` did not make it")
    problems = [f"{path}: {what}" for path, what in damaged(head, manifests).items()]
    loaded = [one for one in manifests if isinstance(one, IntervalManifest) and one.tag == revision] or manifests
    names = 0
    if not problems:  # else `datasets` may be unable to load anything
        listed = {str(config.get("config_name")) for config in _configs(head)}
        for name, config in _names(manifests, loaded):
            names += 1
            if name in listed:
                problems += _faults_of(repository, head.commit, name, config)
            else:
                problems.append(f"{name}: the card does not list it")
    text = "\n\n".join(describe_manifest(Path(f"{repo_id}@{revision}"), manifest) for manifest in loaded)
    if not problems:
        text += f"\n\nall {names:,} names load with the rows and hashes of the manifests"
        if others := len(manifests) - len(loaded):
            text += f"; the files of {others:,} other month{'s' * (others > 1)} are listed with theirs"
    return Inspection(list(loaded), text, problems)


def _configs(head: Head) -> list[dict[str, Any]]:
    listed = read_header(head.read("README.md")).get("configs")
    return [config for config in listed if isinstance(config, dict)] if isinstance(listed, list) else []


def _names(manifests: Sequence[Manifest], loaded: Sequence[Manifest]) -> Iterator[tuple[str, Config]]:
    """Yield each name in ``loaded`` with its config. `datasets` cannot load a config without rows."""
    newest = {config.short_name: name for one in manifests for name, config in one.configs.items()}
    for manifest in loaded:
        for name, config in manifest.configs.items():
            if any(split.num_examples for split in config.splits.values()):
                yield name, config
                if config.short_name is not None and newest[config.short_name] == name:
                    yield config.short_name, config


def _faults_of(repository: Repository, commit: str, name: str, config: Config) -> Iterator[str]:
    """Load a config as `datasets` does, and yield its differences from the manifest."""
    rows = {split: written.num_examples for split, written in config.splits.items() if written.num_examples}
    cache = Path(datasets.config.HF_DATASETS_CACHE)
    cache.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix="temporalwiki-inspect-", dir=cache) as scratch:
            builder = datasets.load_dataset_builder(repository.repo_id, name, revision=commit, cache_dir=scratch)
            start = f"hf://datasets/{repository.repo_id}@{commit}/"
            found = {
                str(split): sorted(str(path).removeprefix(start) for path in paths)
                for split, paths in (builder.config.data_files or {}).items()
            }
            wanted = {split: sorted(file.path for file in config.splits[split].files) for split in rows}
            if found != wanted:
                yield f"{name}: loads other files than the manifest lists"
                return
            for file in (file for split in rows for file in config.splits[split].files):
                download = functools.partial(
                    repository.api.hf_hub_download, repository.repo_id, file.path, repo_type="dataset", revision=commit
                )
                local = Path(ask(repository.name, download, ()))
                if digest(local, "sha256") != file.sha256:
                    yield f"{name}: {local}: not the file that the manifest describes; delete it and inspect again"
                    return
            builder.download_and_prepare()
            loaded = {str(split): len(of_split) for split, of_split in builder.as_dataset().items()}
    except (DatasetsError, OSError, ValueError) as error:
        yield f"{name}: cannot be loaded: {in_one_line(error)}"
        return
    if loaded != rows:
        yield f"{name}: has {loaded} rows, but {rows} in the manifest"
