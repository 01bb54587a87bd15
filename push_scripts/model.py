"""Publish a checkpoint of ``temporalwiki train``: weights as safetensors, tokenizer, record, card and results."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Any

from huggingface_hub import HfApi
from huggingface_hub.hf_api import RepoFile
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig

from temporalwiki.base.errors import InputError, UsageError, in_one_line
from temporalwiki.builders.dataset_folder import Manifest, is_ckl, read_manifests
from temporalwiki.eval_harness.cached_model import revision as revision_of
from temporalwiki.eval_harness.cached_model import training
from temporalwiki.eval_harness.leaderboard.selection import one_line
from temporalwiki.eval_harness.results import Result, read_results
from temporalwiki.methods import checkpoint
from temporalwiki.methods.checkpoint import (
    ADAPTER,
    ADAPTER_WEIGHTS,
    PICKLES,
    base_of_adapter,
    is_hub_id,
    split_revision,
)
from temporalwiki.methods.expansion import SPEC, WEIGHTS, library_config, read_expansion
from temporalwiki.methods.train import MANIFEST
from temporalwiki.model_cards.eval_results import PATH, HubDataset, eval_results
from temporalwiki.model_cards.model import Base, Card, Kind, model_card
from temporalwiki.push_scripts.hub import NotThere, ask
from temporalwiki.push_scripts.revision import Content, Head, RemoteFile, Revision, publish, read_file

_CONFIG, _INDEX, _WHOLE = "config.json", "model.safetensors.index.json", "model.safetensors"
_TOKENS = "tokenizer_config.json"
_VOCABULARY = (
    "sentencepiece.bpe.model",
    "sentencepiece.model",
    "source.spm",
    "spiece.model",
    "spm.model",
    "target.spm",
    "tekken.json",
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
)
_TOKENIZER = (
    "added_tokens.json",
    "chat_template.jinja",
    "merges.txt",
    "special_tokens_map.json",
    _TOKENS,
    *_VOCABULARY,
)
_OF_BYTES = ("ByT5Tokenizer", "CanineTokenizer")  # have no vocabulary
# what would make a loader fetch code, and what says where files were
_NOT_SENT = ("auto_map", "_name_or_path", "name_or_path", "tokenizer_file", "vocab_file", "merges_file", "is_local")
# what a checkpoint that was published before may have left in the repository
_OURS = ("*.safetensors", _INDEX, _CONFIG, "generation_config.json", ADAPTER, SPEC, "loss.png", *_TOKENIZER, *PICKLES)
_INTERVAL = re.compile(r"manifests/(\d{8})-(\d{8})\.json")
# what two copies of a model's configuration may differ in: where it was, how it is computed, by which version
_NOT_COMPARED = ("_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version")
_SAYS = ("method", "model", "data", "config")  # what a manifest must say of a run
# what a GGUF file's model and the Hub's must agree in
_SIZES = ("model_type", "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")


@dataclass(frozen=True)
class Checkpoint:
    """A finished checkpoint as it lies in a folder, read and checked."""

    folder: Path
    kind: Kind
    files: Mapping[str, Content]  # name -> content, as they are published but for where the base is
    weights: tuple[str, ...]  # those of the files that hold them
    training: Mapping[str, Any]  # training.json without this machine's paths
    base: str | None  # what it cannot be loaded without, as the folder names it; None of a whole model


def publish_model(
    path: Path,
    repo_id: str,
    *,
    tag: str | None = None,
    base: str | None = None,
    results: Path | None = None,
    dry_run: bool = False,
) -> Iterator[str]:
    """Publish the checkpoint in the folder ``path``, its card, and its scores from the folder ``results``.

    ``base`` is the Hub id, or ``id@revision``, of the model that the checkpoint was made from, where that was a folder
    or a GGUF file on this machine. Yields what is done.

    Raises UsageError or InputError, before anything is sent, where the folder holds no finished checkpoint, its files
    are damaged or not safetensors, or nobody else could load its base; and what ``publish`` raises.
    """
    found = read_checkpoint(path)
    history = training(str(path))
    on_hub = _base(found, history, base)
    own, others = _of_this(found, read_results(results)) if results else ([], [])
    if others:
        named = ", ".join(sorted({f"{result.path.parent.name}/{result.path.name}" for result in others})[:3])
        yield f"left out: {len(others)} of {len(own) + len(others)} results are of other checkpoints ({named} ...)"
    data, languages = _data(found)
    card = Card(
        repo_id=repo_id,
        tag=tag,
        kind=found.kind,
        training=found.training,
        history=history,
        base=on_hub,
        data=data,
        languages=languages,
        results=own,
        datasets=_datasets(own),
    )
    open_base = not any(split_revision(named)[1] for named in (base, _named(found, history)) if named)
    plan = functools.partial(_plan, found, card, open_base, results is not None)
    yield from publish(repo_id, "model", plan, dry_run=dry_run)


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read and check a folder of ``temporalwiki train``: what of it is published, and how.

    Raises InputError where it holds no finished checkpoint, or one with damaged files or without safetensors.
    """
    record = _record(folder)
    if (folder / SPEC).is_file():
        kind: Kind = "expansion"
        base: str | None = read_expansion(folder).base_model
        weights: tuple[str, ...] = (WEIGHTS,)
    elif (folder / ADAPTER).is_file():
        kind, base, weights = "adapter", base_of_adapter(folder), (ADAPTER_WEIGHTS,)
    else:
        kind, base, weights = "model", None, _shards(folder)
    _check_weights(folder, weights)
    files: dict[str, Content] = {}
    names = {"model": (_CONFIG, _INDEX, "generation_config.json"), "adapter": (ADAPTER,), "expansion": (SPEC, _CONFIG)}
    for name in (*weights, *names[kind], *_TOKENIZER, "loss.png"):
        file = folder / name
        if file.is_symlink():
            raise InputError(f"{file}: is a link, and what is published must lie in the folder; copy it there")
        if file.is_file():
            files[name] = _cleaned(file) if file.suffix == ".json" else file
    if kind == "expansion":
        files[_CONFIG] = _json(library_config(record["architecture"] == "encoder-decoder"))
        spec = _read_json(folder / SPEC)
        spec["phases"] = [{name: _shown(value) for name, value in phase.items()} for phase in spec["phases"]]
        files[SPEC] = _json(spec)
    if kind == "model" and _CONFIG not in files:
        raise InputError(f"{folder}: weights without their {_CONFIG}; train it again")
    of_bytes = _TOKENS in files and _read_json(folder / _TOKENS).get("tokenizer_class") in _OF_BYTES
    if _TOKENS not in files or not (of_bytes or any(name in files for name in _VOCABULARY)):
        missing = "vocabulary, such as tokenizer.json," if _TOKENS in files else _TOKENS
        raise InputError(f"{folder}: no tokenizer, as there is no {missing} in it; copy that of the base model there")
    files[MANIFEST] = _json(record)
    return Checkpoint(folder, kind, files, weights, record, base)


def revision(found: Checkpoint, card: Card, head: Head | None = None) -> Revision:
    """Return what a checkpoint's repository is to hold; what ``head`` has of another checkpoint is to go."""
    files = dict(found.files)
    if card.base is not None and found.kind == "adapter":
        config = _read_json(found.folder / ADAPTER)
        files[ADAPTER] = _json(config | {"base_model_name_or_path": card.base.id, "revision": card.base.commit})
    if card.base is not None and found.kind == "model":
        files[MANIFEST] = _json({**found.training, "base": f"{card.base.id}@{card.base.commit}"})
    if card.base is not None and found.kind == "expansion":
        spec = json.loads(_bytes(found.files[SPEC]))
        files[SPEC] = _json(spec | {"base_model": f"{card.base.id}@{card.base.commit}"})
    files["README.md"] = model_card(card).encode()
    scored = eval_results(card.results, card.datasets)
    if scored is not None:
        files[PATH] = scored.encode()
    run = found.training["run"]
    there = head.files if head else {}
    ours = [name for name in there if "/" not in name and any(fnmatchcase(name, of) for of in _OURS)]
    remove = tuple(sorted({*ours, PATH} - set(files)))
    return Revision(one_line(f"{run['method']} on {run['config']}"), files, remove, card.tag)


def _plan(found: Checkpoint, card: Card, open_base: bool, scored: bool, head: Head) -> list[Revision]:
    if all(name in head.files and head.files[name].holds(read_file(found.files[name])) for name in found.weights):
        if PATH in head.files and not scored:
            raise InputError(f"{card.repo_id}: has scores of these weights; name them with --results")
        if card.base and open_base:  # a rerun changes nothing
            card = replace(card, base=_published_base(found, card.base, head))
    return [revision(found, card, head)]


def _published_base(found: Checkpoint, base: Base, head: Head) -> Base:
    """Return the base as these same weights were published with it, ``base`` itself where that is not known."""
    commit = _named_commit(found, base, head)
    if commit in (None, base.commit):
        return base
    return replace(_on_hub(base.id, commit), copy=base.copy)


def _named_commit(found: Checkpoint, base: Base, head: Head) -> str | None:
    """Return the base's commit that the published files name, where they name the same base."""
    try:
        if found.kind == "model":
            id, commit = split_revision(json.loads(head.read(MANIFEST) or b"")["base"])
            return commit if id == base.id else None
        if found.kind == "adapter":
            config = json.loads(head.read(ADAPTER) or b"")
            return config["revision"] if config["base_model_name_or_path"] == base.id else None
        if found.kind == "expansion":
            id, commit = split_revision(json.loads(head.read(SPEC) or b"")["base_model"])
            return commit if id == base.id else None
    except (ValueError, KeyError, TypeError, RecursionError):  # not ours
        return None
    return None


def _record(folder: Path) -> dict[str, Any]:
    """Read training.json and take this machine's paths out of it."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    if not (folder / MANIFEST).is_file():
        phases = sorted(path.parent.name for path in folder.glob(f"*/{MANIFEST}"))
        if phases:
            raise InputError(
                f"{folder}: holds several checkpoints; publish one of them, such as {folder / phases[-1]}"
            )
        raise InputError(f"{folder}: no {MANIFEST} in it, so no finished run of `temporalwiki train`")
    record = _read_json(folder / MANIFEST)
    run = record.get("run")
    if not isinstance(run, dict) or not all(isinstance(run.get(key), str) for key in _SAYS):
        raise InputError(f"{folder / MANIFEST}: does not say what was run; train it again")
    if record.get("architecture") not in ("decoder-only", "encoder-decoder"):
        raise InputError(f"{folder / MANIFEST}: does not say what kind of model this is; train it again")
    return record | {"run": {name: _shown(value) for name, value in run.items()}}


def _shown(value: Any) -> Any:
    """Return an option as others may see it: of a path on this machine the last name."""
    if isinstance(value, str) and (PurePath(value).is_absolute() or value.startswith(".")):
        return PurePath(value).name
    return value


def _shards(folder: Path) -> tuple[str, ...]:
    """Name the files that hold a whole model's weights."""
    if not (folder / _INDEX).is_file():
        return (_WHOLE,)
    parts = _read_json(folder / _INDEX).get("weight_map")
    names = sorted(set(map(str, parts.values()))) if isinstance(parts, dict) else []
    if not names or any(PurePath(name).name != name or not name.endswith(".safetensors") for name in names):
        raise InputError(f"{folder / _INDEX}: does not name the files that hold the weights")
    return tuple(names)


def _check_weights(folder: Path, names: Sequence[str]) -> None:
    """Raise InputError where a file of weights is missing, cut off or of another kind."""
    for name in names:
        if not (folder / name).is_file():
            pickles = sorted(path.name for of in PICKLES for path in folder.glob(of))
            why = f"; {pickles[0]} may run code when it is loaded, and is not published" if pickles else ""
            raise InputError(f"{folder}: no {name} in it{why}")
        try:
            with safe_open(folder / name, "pt") as weights:
                empty = not list(weights.keys())
        except (SafetensorError, OSError) as error:
            raise InputError(f"{folder / name}: cut off, or no safetensors ({error})") from None
        if empty:
            raise InputError(f"{folder / name}: holds no weights")


def _cleaned(file: Path) -> Content:
    """Return a JSON file as it is published: without code from elsewhere and this machine's paths."""
    content = _read_json(file)
    kept = {name: value for name, value in content.items() if name not in _NOT_SENT}
    return file if kept == content else _json(kept)


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file}: damaged ({error})") from None
    if not isinstance(content, dict):
        raise InputError(f"{file}: damaged (no object)")
    return content


def _json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()


def _bytes(content: Content) -> bytes:
    return content if isinstance(content, bytes) else content.read_bytes()


def _base(found: Checkpoint, history: Mapping[str, Any], given: str | None) -> Base | None:
    """Return the checkpoint's base on the Hub; None for a whole model whose base is not there.

    Raises UsageError or InputError where an adapter's or an expansion's is not there, or is another model.
    """
    named = _named(found, history)
    on_hub = is_hub_id(named) and (found.kind != "model" or "base" in found.training or "/" in named)
    if given is None:
        if not on_hub and found.kind == "model":
            return None
        if not on_hub:
            raise InputError(
                f"{found.folder}: its base {named} is on this machine alone, so nobody else could load it; name the "
                "same model on the Hub with --base"
            )
        given = named
    elif not is_hub_id(given):
        raise UsageError(f"--base {given}: not a model on the Hub; write its id, ORG/NAME")
    elif on_hub and split_revision(named)[0] != split_revision(given)[0]:
        raise UsageError(f"--base {given}: but {found.folder} was made from {named}")
    id, at = split_revision(given)
    trained_on = split_revision(named)[1] if on_hub else None  # where it is known, no other is its base
    base = _on_hub(id, at or trained_on)
    if at and trained_on and base.commit != trained_on and base.commit != _on_hub(id, trained_on).commit:
        raise UsageError(f"--base {given}: is commit {base.commit}, but {found.folder} was made from {named}")
    if found.kind == "model" or on_hub:
        return base
    return _same(named, base)


def _named(found: Checkpoint, history: Mapping[str, Any]) -> str:
    """Return what the checkpoint itself says its base is: a Hub id, or what is on this machine."""
    if found.base is not None:
        return found.base
    if "base" in found.training:
        return str(found.training["base"])
    started = str(_read_json(found.folder / MANIFEST)["run"]["model"])
    return str(history["base"]) if PurePath(started).is_absolute() else started


def _on_hub(id: str, at: str | None) -> Base:
    """Return a model on the Hub as it is at a revision; raise InputError where it is not there."""
    named = f"{id}@{at}" if at else id
    try:
        info = ask(named, lambda: HfApi().model_info(id, revision=at))
    except NotThere:
        raise InputError(f"{named}: there is no such model on the Hub, or you may not read it") from None
    said = (
        {key: info.card_data.get(key) for key in ("license", "license_name", "license_link")} if info.card_data else {}
    )
    return Base(id, str(info.sha), {key: value for key, value in said.items() if value is not None})


def _same(local: str, base: Base) -> Base:
    """Return ``base`` if it is the model on this machine; raise InputError where it is another."""
    path, more = checkpoint.library_arguments(local)
    if "gguf_file" in more:
        _check_config(local, base, _SIZES)
        return replace(base, copy=more["gguf_file"])
    names = _shards(Path(path))
    _check_weights(Path(path), names)
    listed = ask(base.id, lambda: HfApi().get_paths_info(base.id, list(names), revision=base.commit))
    there = {one.path: one for one in listed if isinstance(one, RepoFile)}
    for name in names:
        one = there.get(name)
        sha256 = one.lfs.sha256 if one and one.lfs else None
        if one is None or not RemoteFile(one.size, sha256, one.blob_id).holds(read_file(Path(path) / name)):
            what = "has other weights" if one else "has no such file"
            raise InputError(f"--base {base.id}: {what} in {name} than {local}, which the checkpoint was made from")
    _check_config(local, base)  # the same weights are another model with another number of heads
    return base


def _check_config(local: str, base: Base, names: Sequence[str] | None = None) -> None:
    """Raise InputError unless two models are configured alike, in ``names`` or in all that a model computes with."""
    path, more = checkpoint.library_arguments(local)
    try:
        mine = AutoConfig.from_pretrained(path, trust_remote_code=False, **more)
        theirs = AutoConfig.from_pretrained(base.id, revision=base.commit, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{base.id}: no model can be loaded from there: {in_one_line(error)}") from None
    for name in names or sorted({*mine.to_dict(), *theirs.to_dict()} - set(_NOT_COMPARED)):
        here, there = (getattr(config, name, None) for config in (mine, theirs))
        if here != there:
            raise InputError(f"--base {base.id}: another model than {local}: {name} is {there} there, {here} here")


def _of_this(found: Checkpoint, results: Sequence[Result]) -> tuple[list[Result], list[Result]]:
    """Part results into those of this very checkpoint and the others."""
    its = revision_of(str(found.folder))
    own = [result for result in results if result.data["model"]["revision"] == its]
    return own, [result for result in results if result not in own]


def _data(found: Checkpoint) -> tuple[Manifest | None, list[str]]:
    """Return the manifest of the interval that was read last, where it is on this machine, and the data's language."""
    run = _read_json(found.folder / MANIFEST)["run"]
    named, config = str(run["data"]), str(run["config"])
    if PurePath(named).is_absolute():
        for manifest in reversed(read_manifests(Path(named))):
            for name, of in manifest["configs"].items():
                if config in (name, of["short_name"]):
                    if is_ckl(manifest):
                        return None, [str(manifest["language"])]
                    return manifest, [str(manifest["interval"]["language"])]
        return None, []
    id, at = split_revision(named)
    try:
        info = ask(named, lambda: HfApi().dataset_info(id, revision=at))
    except (NotThere, UsageError):
        return None, []
    said = (info.card_data.get("language") if info.card_data else None) or []
    return None, [str(language) for language in (said if isinstance(said, list) else [said])]


def _datasets(results: Sequence[Result]) -> dict[str, HubDataset]:
    """Find out which of the datasets that results name are on the Hub, at which commits, and what they hold."""
    found = {}
    for named in sorted({str(result.data["data"]["dataset"]) for result in results}):
        id, at = split_revision(named)
        if checkpoint.exists(named) or id.count("/") != 1 or id.startswith((".", "/")):
            continue
        try:
            info = ask(named, functools.partial(HfApi().dataset_info, id, revision=at))
        except (NotThere, UsageError):
            continue
        files = [str(file.rfilename) for file in info.siblings or ()]
        found[named] = HubDataset(id, str(info.sha) if at else None, _full_names(id, str(info.sha), files))
    return found


def _full_names(id: str, commit: str, files: Sequence[str]) -> dict[str, str]:
    """Return what a dataset's configs are called in full, by their short names: the newest interval has them."""
    names = {}
    intervals = sorted((found[2], found[1], name) for name in files if (found := _INTERVAL.fullmatch(name)))
    for *_, name in intervals:
        download = functools.partial(HfApi().hf_hub_download, id, name, repo_type="dataset", revision=commit)
        configs = _read_json(Path(ask(id, download))).get("configs")
        for full, config in (configs if isinstance(configs, dict) else {}).items():
            if isinstance(config, dict):
                names[str(config.get("short_name"))] = str(full)
    return names
