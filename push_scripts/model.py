"""Publish a checkpoint of ``temporalwiki train``: its weights, tokenizer, training.json, card and results."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Any

import msgspec
from huggingface_hub import HfApi
from huggingface_hub.hf_api import DatasetInfo, RepoFile
from safetensors import SafetensorError, safe_open

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import read_small
from temporalwiki.base.markdown import one_line
from temporalwiki.builders.loading import exists, split_revision
from temporalwiki.builders.manifests import BuiltManifest, CklManifest, ImportedManifest, read_manifests
from temporalwiki.builders.published import DataSource, find_on_hub, on_hub
from temporalwiki.eval_harness.models.local import revision as revision_of
from temporalwiki.eval_harness.models.local import training
from temporalwiki.eval_harness.results import Result, read_results
from temporalwiki.methods import checkpoint
from temporalwiki.methods.checkpoint import ADAPTER, ADAPTER_WEIGHTS, PICKLES, base_of_adapter, is_hub_id
from temporalwiki.methods.expansion import SPEC, WEIGHTS, library_config, read_expansion
from temporalwiki.methods.manifest import TrainingManifest, check_checkpoint, read_training
from temporalwiki.methods.train import MANIFEST
from temporalwiki.model_cards.edits import keep_edits
from temporalwiki.model_cards.eval_results import PATH, HubDataset, eval_results
from temporalwiki.model_cards.model import Base, Card, Kind, model_card
from temporalwiki.model_cards.model_answers import answers_section
from temporalwiki.push_scripts.hub import NotFound, ask
from temporalwiki.push_scripts.repository_state import Content, Head, RemoteFile, Revision
from temporalwiki.push_scripts.revision import publish, read_file

_CONFIG, _INDEX, _WEIGHTS = "config.json", "model.safetensors.index.json", "model.safetensors"
_TOKENIZER_CONFIG = "tokenizer_config.json"
_TOKENIZER = (
    *("added_tokens.json", "chat_template.jinja", "merges.txt", "special_tokens_map.json", _TOKENIZER_CONFIG),
    *("sentencepiece.bpe.model", "sentencepiece.model", "source.spm", "spiece.model", "spm.model", "target.spm"),
    *("tekken.json", "tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt"),
)
# settings that would make a loader fetch code, or that name folders of this machine
_NOT_SENT = ("auto_map", "_name_or_path", "name_or_path", "tokenizer_file", "vocab_file", "merges_file", "is_local")
# files that an earlier checkpoint may have left in the repository
_OURS = ("*.safetensors", _INDEX, _CONFIG, "generation_config.json", ADAPTER, SPEC, "loss.png", *_TOKENIZER, *PICKLES)
# settings that may differ between two copies of a model
_NOT_COMPARED = ("_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version")
# settings that a GGUF file's model and the Hub's model must have in common
_SIZES = ("model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")


@dataclass(frozen=True)
class FinishedCheckpoint:
    """A finished checkpoint in a folder, read and checked."""

    folder: Path
    kind: Kind
    files: Mapping[str, Content]  # by name, as they are published except for the name of the base
    weights: tuple[str, ...]  # the files with the weights
    training: TrainingManifest  # training.json
    base: str | None  # the base model as the folder names it; None for a whole model

    @property
    def published_training(self) -> TrainingManifest:
        """training.json without this machine's paths, and without checksums, because publishing changes some files."""
        run = {name: _without_path(value) for name, value in self.training.content["run"].items()}
        kept = self.training.content.keys() - {"files", "settings"}
        content = {key: value for key, value in self.training.content.items() if key in kept} | {"run": run}
        for key in ("sources", "earlier_sources"):
            if key in content:
                content[key] = msgspec.to_builtins(getattr(self.training, key))
        return msgspec.convert(content | {"content": content}, TrainingManifest)


def publish_model(
    path: Path,
    repo_id: str,
    *,
    tag: str | None = None,
    base: str | None = None,
    dataset: str | None = None,
    results: Path | None = None,
    dry_run: bool = False,
) -> Iterator[str]:
    """Publish the checkpoint in the folder ``path``, its card, and its scores from the folder ``results``.

    If the base model was a folder or a GGUF file on this machine, ``base`` is its Hub id, or ``id@revision``. If the
    dataset was a folder and its ``published.json`` does not say where it is on the Hub, ``dataset`` does:
    ``ORG/NAME@TAG``. Yields a line for each step.

    Raises UsageError or InputError, before anything is sent, if the folder has no finished checkpoint, its files are
    damaged, not safetensors or not finite, nobody else could load its base, or ``dataset`` has another manifest than
    the data that the model was trained or scored on. Raises what ``publish`` raises.
    """
    found = read_checkpoint(path)
    twin = None if dataset is None else PublishedDataset.find(dataset)
    found = replace(found, training=_with_places(found, twin))
    history = training(str(path))
    on_hub = _base(found, history, base)
    if found.kind != "model" and on_hub is not None:
        checkpoint.check_added(path, f"{on_hub.id}@{on_hub.commit}")
    read = read_results(results) if results else []
    checkpoint_revision = revision_of(str(path), local_files_only=False) if read else ""
    own = [result for result in read if result.manifest.model.revision == checkpoint_revision]
    if others := [result for result in read if result not in own]:
        named = ", ".join(sorted({f"{result.path.parent.name}/{result.path.name}" for result in others})[:3])
        yield f"left out: {len(others)} of {len(read)} results are of other checkpoints ({named} ...)"
    own = [_with_place(result, twin) for result in own]
    data, languages = _data(found.training)
    card = Card(
        repo_id=repo_id,
        tag=tag,
        kind=found.kind,
        training=found.published_training,
        history=history,
        base=on_hub,
        data=data,
        languages=languages,
        results=own,
        datasets=datasets_of(own),
        answers=answers_section(own),
    )
    any_commit = not any(split_revision(named)[1] for named in (base, _base_name(found, history)) if named)
    plan = functools.partial(_plan, found, card, any_commit, results is not None)
    yield from publish(repo_id, "model", plan, dry_run=dry_run)


def read_checkpoint(folder: Path) -> FinishedCheckpoint:
    """Read a folder of ``temporalwiki train``, and load its model without its numbers, and its tokenizer.

    Raises InputError if it has no finished checkpoint, damaged files, or no safetensors.
    """
    record = read_record(folder)
    check_checkpoint(folder)
    if (folder / SPEC).is_file():
        kind: Kind = "expansion"
        base: str | None = read_expansion(folder).base_model
        weights: tuple[str, ...] = (WEIGHTS,)
    elif (folder / ADAPTER).is_file():
        kind, base, weights = "adapter", base_of_adapter(folder), (ADAPTER_WEIGHTS,)
    else:
        checkpoint.load_model(str(folder), device_map="meta")  # checks all tensors, but reads none
        kind, base, weights = "model", None, _shards(folder)
    if not (folder / _TOKENIZER_CONFIG).is_file():
        raise InputError(f"{folder}: no tokenizer: {_TOKENIZER_CONFIG} is missing; copy the base model's file there")
    try:
        checkpoint.load_tokenizer(str(folder))
    except InputError as error:
        raise InputError(f"{error}; copy the files of the base model's tokenizer there") from None
    _check_finite([folder / name for name in weights])
    files: dict[str, Content] = {}
    names = {"model": (_CONFIG, _INDEX, "generation_config.json"), "adapter": (ADAPTER,), "expansion": (SPEC, _CONFIG)}
    for name in (*weights, *names[kind], *_TOKENIZER, "loss.png"):
        file = folder / name
        if file.is_symlink():
            raise InputError(f"{file}: it is a link, but only files in the folder are published; copy it there")
        if file.is_file():
            files[name] = _cleaned(file) if file.suffix == ".json" else file
    if kind == "expansion":
        files[_CONFIG] = _json(library_config(record.architecture == "encoder-decoder"))
        files[SPEC] = _json(_expansion(folder))
    return FinishedCheckpoint(folder, kind, files, weights, record, base)


def _check_finite(files: Sequence[Path]) -> None:
    """Raise InputError for weights that are not finite numbers. One tensor is in memory at a time."""
    for path in files:
        try:
            with safe_open(path, "pt") as weights:
                names = weights.keys()
                wrong = next((one for one in names if not weights.get_tensor(one).float().isfinite().all()), None)
        except SafetensorError as error:
            raise InputError(f"{path}: {error}; copy it again") from None
        if wrong is not None:
            raise InputError(f"{path}: {wrong} has numbers that are not finite; train again, with a lower rate")


def revision(found: FinishedCheckpoint, card: Card, head: Head | None = None) -> Revision:
    """Return the revision that brings a checkpoint and removes the files of an earlier one in ``head``."""
    files = {**found.files, MANIFEST: _json(card.training.content)}
    if card.base is not None:
        base = f"{card.base.id}@{card.base.commit}"
        if found.kind == "adapter":
            config = _read_json(found.folder / ADAPTER)
            files[ADAPTER] = _json(config | {"base_model_name_or_path": card.base.id, "revision": card.base.commit})
        elif found.kind == "model":
            files[MANIFEST] = _json({**card.training.content, "base": base})
        else:
            files[SPEC] = _json(_expansion(found.folder) | {"base_model": base})
    files["README.md"] = keep_edits(model_card(card), head.read("README.md") if head else None).encode()
    if (scored := eval_results(card.results, card.datasets)) is not None:
        files[PATH] = scored.encode()
    run = found.training.run
    there = [name for name in (head.files if head else ()) if "/" not in name]
    ours = {name for name in there if any(fnmatchcase(name, pattern) for pattern in _OURS)}
    remove = tuple(sorted((ours | {PATH}) - set(files)))
    return Revision(one_line(f"{run.method} on {run.config}"), files, remove, card.tag)


def _plan(found: FinishedCheckpoint, card: Card, any_commit: bool, scored: bool, head: Head) -> list[Revision]:
    if all(name in head.files and head.files[name].holds(read_file(found.files[name])) for name in found.weights):
        if PATH in head.files and not scored:
            raise InputError(f"{card.repo_id}: it has scores of these weights; name their folder with --results")
        if card.base and any_commit:  # so that a rerun changes nothing
            commit = _published_commit(found, card.base, head)
            if commit not in (None, card.base.commit):
                card = replace(card, base=replace(_on_hub(card.base.id, commit), gguf=card.base.gguf))
    return [revision(found, card, head)]


class _PublishedBase(msgspec.Struct):
    """The base in the published training.json, adapter_config.json or expansion.json."""

    base: str = ""
    base_model_name_or_path: str = ""
    revision: str | None = None
    base_model: str = ""


def _published_commit(found: FinishedCheckpoint, base: Base, head: Head) -> str | None:
    """Return the base's commit in the published files, if they name the same base."""
    name = {"model": MANIFEST, "adapter": ADAPTER, "expansion": SPEC}[found.kind]
    try:
        published = msgspec.json.decode(head.read(name) or b"", type=_PublishedBase)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):  # another program's file
        return None
    if found.kind == "adapter":
        id, commit = published.base_model_name_or_path, published.revision
    else:
        id, commit = split_revision(published.base or published.base_model)
    return commit if id == base.id else None


def read_record(folder: Path) -> TrainingManifest:
    """Return the training.json of a finished checkpoint. Raises InputError if it is missing."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    if not (folder / MANIFEST).is_file():
        phases = sorted(path.parent.name for path in folder.glob(f"*/{MANIFEST}"))
        if phases:
            one = folder / phases[-1]
            raise InputError(f"{folder}: it has several checkpoints; publish one of them, such as {one}")
        raise InputError(f"{folder}: no {MANIFEST} in it, so it is not a finished run of `temporalwiki train`")
    return read_training(folder / MANIFEST)


def _expansion(folder: Path) -> dict[str, Any]:
    """Return expansion.json without the paths of this machine."""
    spec = _read_json(folder / SPEC)
    return spec | {"phases": [{name: _without_path(value) for name, value in one.items()} for one in spec["phases"]]}


def _without_path(value: Any) -> Any:
    """Return an option as others may see it: only the last name of a path on this machine."""
    if isinstance(value, str) and (PurePath(value).is_absolute() or value.startswith(".")):
        return PurePath(value).name
    return value


def _shards(folder: Path) -> tuple[str, ...]:
    """Return the names of the files that hold the weights of a whole model, which was loaded already."""
    if not (folder / _INDEX).is_file():
        return (_WEIGHTS,)
    return tuple(sorted(set(_read_json(folder / _INDEX)["weight_map"].values())))


def _cleaned(file: Path) -> Content:
    """Return a JSON file as it is published: without references to code and to folders of this machine."""
    content = _read_json(file)
    kept = {name: value for name, value in content.items() if name not in _NOT_SENT}
    return file if kept == content else _json(kept)


def _read_json(file: Path) -> dict[str, Any]:
    try:  # not with msgspec: these files may have Infinity and integers of more than 64 bits
        content = json.loads(read_small(file))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file}: damaged ({error})") from None
    if not isinstance(content, dict):
        raise InputError(f"{file}: damaged (not an object)")
    return content


def _json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()


def _base(found: FinishedCheckpoint, history: Mapping[str, Any], given: str | None) -> Base | None:
    """Return the checkpoint's base on the Hub, or None for a whole model whose base is not there.

    Raises UsageError or InputError if the base of an adapter or expansion is not there, or is another model.
    """
    named = _base_name(found, history)
    on_hub = is_hub_id(named) and (found.kind != "model" or found.training.base is not None or "/" in named)
    if given is None:
        if not on_hub and found.kind == "model":
            return None
        if not on_hub:
            raise InputError(
                f"{found.folder}: its base {named} is only on this machine, so nobody else could load it; name the "
                "same model on the Hub with --base"
            )
        given = named
    elif not is_hub_id(given):
        raise UsageError(f"--base {given}: not a model on the Hub; write its id, ORG/NAME")
    elif on_hub and split_revision(named)[0] != split_revision(given)[0]:
        raise UsageError(f"--base {given}: but {found.folder} was made from {named}")
    id, at = split_revision(given)
    trained_on = split_revision(named)[1] if on_hub else None
    base = _on_hub(id, at or trained_on)
    if at and trained_on and base.commit != trained_on and base.commit != _on_hub(id, trained_on).commit:
        raise UsageError(f"--base {given}: is commit {base.commit}, but {found.folder} was made from {named}")
    if found.kind == "model" or on_hub:
        return base
    return _check_same(named, base)


def _base_name(found: FinishedCheckpoint, history: Mapping[str, Any]) -> str:
    """Return the base as the checkpoint names it: a Hub id, or a folder or file on this machine."""
    if (base := found.base or found.training.base) is not None:
        return base
    model = found.training.run.model
    return str(history["base"]) if PurePath(model).is_absolute() else model


def _on_hub(id: str, at: str | None) -> Base:
    """Return a model on the Hub at a revision. Raises InputError if it is not there."""
    named = f"{id}@{at}" if at else id
    try:
        info = ask(named, lambda: HfApi().model_info(id, revision=at))
    except NotFound:
        raise InputError(f"{named}: the Hub has no such model, or you may not read it") from None
    keys = ("license", "license_name", "license_link")
    licence = {key: info.card_data.get(key) for key in keys} if info.card_data else {}
    return Base(id, str(info.sha), {key: value for key, value in licence.items() if value is not None})


def _check_same(local: str, base: Base) -> Base:
    """Return ``base``. Raises InputError unless it is the model on this machine."""
    path, more = checkpoint.library_arguments(local)
    if "gguf_file" in more:
        _check_config(local, base, _SIZES)
        return replace(base, gguf=more["gguf_file"])
    checkpoint.load_model(local, device_map="meta")  # no name in its index leads out of the folder
    names = _shards(Path(path))
    listed = ask(base.id, lambda: HfApi().get_paths_info(base.id, list(names), revision=base.commit))
    remote = {file.path: file for file in listed if isinstance(file, RepoFile)}
    for name in names:
        if (file := remote.get(name)) is None:
            raise InputError(
                f"--base {base.id}: it lacks {name}, which {local} has; the checkpoint was made from that"
            )
        sha256 = file.lfs.sha256 if file.lfs else None
        if not RemoteFile(file.size, sha256, file.blob_id).holds(read_file(Path(path) / name)):
            raise InputError(f"--base {base.id}: it has other weights in {name} than {local}, the checkpoint's base")
    _check_config(local, base)  # with another number of heads, the same weights are another model
    return base


def _check_config(local: str, base: Base, names: Sequence[str] | None = None) -> None:
    """Raise InputError unless the settings ``names``, or all that matter, are the same in both models."""
    mine, theirs = checkpoint.read_config(local), checkpoint.read_config(f"{base.id}@{base.commit}")
    for name in names or sorted({*mine.to_dict(), *theirs.to_dict()} - set(_NOT_COMPARED)):
        here, on_hub = (getattr(config, name, None) for config in (mine, theirs))
        if here != on_hub:
            raise InputError(f"--base {base.id}: another model than {local}: {name} is {on_hub}, not {here}")


@dataclass(frozen=True)
class PublishedDataset:
    """The dataset on the Hub that ``--dataset`` names."""

    given: str  # ORG/NAME@TAG
    id: str
    commit: str

    @classmethod
    def find(cls, given: str) -> PublishedDataset:
        """Ask the Hub for the dataset. Raises UsageError or InputError if it is not there."""
        id, at = split_revision(given)
        if not is_hub_id(given) or "/" not in id:
            raise UsageError(f"--dataset {given}: not a dataset on the Hub; write its id and tag, ORG/NAME@TAG")
        try:
            info = ask(given, lambda: HfApi().dataset_info(id, revision=at))
        except NotFound:
            raise InputError(f"--dataset {given}: the Hub has no such dataset, or you may not read it") from None
        return cls(given, id, str(info.sha))

    def place(self, source: DataSource, what: str) -> DataSource | None:
        """Return the source with its place in this dataset, or None if the dataset has no config of its name.

        Raises InputError if that config has another manifest. The message names ``what`` was made from the source.
        """
        found = ask(self.given, lambda: find_on_hub(self.id, source.config, self.commit))
        if found is None:
            return None
        name, manifest = found
        if source.manifest_sha256 is None:
            raise InputError(f"{what}: does not say which manifest {name} had; make it again to compare")
        if manifest.sha256 != source.manifest_sha256:
            raise InputError(
                f"--dataset {self.given}: the manifest of {name} has the SHA-256 {manifest.sha256} there, but "
                f"{source.manifest_sha256} in {what}; name the dataset that it was made from"
            )
        tag = manifest.content.get("tag")
        return msgspec.structs.replace(source, config=name, repository=self.id, commit=self.commit, tag=tag)


def _with_places(found: FinishedCheckpoint, twin: PublishedDataset | None) -> TrainingManifest:
    """Return the record of a training; its sources name their places on the Hub if those are known.

    Raises InputError if ``twin`` does not have the data of the last phase.
    """
    training = found.training
    folder = Path(training.run.data) if PurePath(training.run.data).is_absolute() else None

    def placed(source: DataSource) -> DataSource:
        return source if source.repository or folder is None else on_hub(folder, source)

    sources, earlier = list(map(placed, training.sources)), list(map(placed, training.earlier_sources))
    if twin is not None:
        if not sources:
            raise InputError(f"{found.folder}: training.json names no data to compare with --dataset; train again")
        for i, source in enumerate(sources):
            place = twin.place(source, str(found.folder))
            if place is None:
                what = f"{source.config}, which {found.folder} was trained on"
                raise InputError(f"--dataset {twin.given}: has no {what}")
            sources[i] = place
    return msgspec.structs.replace(training, sources=sources, earlier_sources=earlier)


def _with_place(result: Result, twin: PublishedDataset | None) -> Result:
    """Return the result; its dataset has the name that it has on the Hub, if that is known."""
    data = result.manifest.data
    if data.source is None or data.source.id is not None:
        return result
    source = on_hub(Path(data.dataset), data.source) if exists(data.dataset) else data.source
    if source.id is None and twin is not None:
        source = twin.place(source, str(result.path)) or source
    if source.id is None:
        return result
    named = msgspec.structs.replace(data, dataset=source.id, source=source)
    return replace(result, manifest=msgspec.structs.replace(result.manifest, data=named))


def _data(training: TrainingManifest) -> tuple[BuiltManifest | ImportedManifest | None, list[str]]:
    """Return the manifest of the last phase's data, if it is an interval on this machine, and the data's languages."""
    named, config = training.run.data, training.run.config
    for source in training.sources[:1]:
        if source.repository and source.commit and source.manifest_sha256:
            find = functools.partial(find_on_hub, source.repository, source.config, source.commit)
            with contextlib.suppress(NotFound):  # deleted since
                if (found := ask(source.repository, find)) and isinstance(found[1], BuiltManifest):
                    return found[1], [found[1].language]
    if PurePath(named).is_absolute():
        for manifest in reversed(read_manifests(Path(named))):
            if any(config in (name, found.short_name) for name, found in manifest.configs.items()):
                return None if isinstance(manifest, CklManifest) else manifest, [manifest.language]
        return None, []
    info = _dataset_info(named)
    languages = (info.card_data.get("language") if info and info.card_data else None) or []
    return None, [str(language) for language in (languages if isinstance(languages, list) else [languages])]


def datasets_of(results: Sequence[Result]) -> dict[str, HubDataset]:
    """Return the results' datasets that are on the Hub, by the names in the results."""
    configs: dict[str, set[str]] = {}
    for result in results:
        configs.setdefault(result.manifest.data.dataset, set()).add(result.manifest.data.config)
    found = {}
    for named, of in sorted(configs.items()):
        id, at = split_revision(named)
        if exists(named) or id.count("/") != 1 or id.startswith((".", "/")):
            continue
        if info := _dataset_info(named):
            commit, names = str(info.sha), {}
            if any(file.rfilename.startswith("manifests/") for file in info.siblings or ()):
                for config in sorted(of):
                    if place := ask(id, functools.partial(find_on_hub, id, config, commit)):
                        names[config] = place[0]
            found[named] = HubDataset(id, commit if at else None, names)
    return found


def _dataset_info(named: str) -> DatasetInfo | None:
    """Return what the Hub knows about a dataset (``id`` or ``id@revision``), or None if the Hub does not have it."""
    id, at = split_revision(named)
    try:
        return ask(named, lambda: HfApi().dataset_info(id, revision=at))
    except (NotFound, UsageError):
        return None
