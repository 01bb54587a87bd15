"""Checkpoints of the methods that insert layers into a model (K-Adapter, Modular).

A folder holds ``expansion.json`` (base model, method, options of each phase) and ``expansion.safetensors`` (the new
layers of all phases and every other trained parameter). It contains only the differences from its base model, so the
base is needed to load it. The model type in its ``config.json`` is known to `transformers` only after an import of
``methods.auto_model``.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
import torch
from peft import PeftModel
from peft.tuners.tuners_utils import BaseTunerLayer
from peft.utils.other import AuxiliaryTrainingWrapper
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import whole_file
from temporalwiki.base.json_files import read_json, write_json
from temporalwiki.methods.architecture import stack

T = TypeVar("T")

EXPANSION = "temporalwiki_expansion"  # a model's attribute with its Expansion, and the model type in config.json
SPEC = "expansion.json"
WEIGHTS = "expansion.safetensors"

# method -> prefix of the names of its new parameters
PREFIXES = {"k_adapter": "k_adapter.", "modular": "encoder.modular."}


class Expansion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How layers were added to a model."""

    method: Literal["k_adapter", "modular"]
    base_model: str  # folder or Hub id
    model_type: str
    layers: int  # number of layers of the stack that was expanded
    phases: Annotated[tuple[dict[str, Any], ...], msgspec.Meta(min_length=1)]  # options of each phase, oldest first
    changed: tuple[str, ...]  # names of the base model's parameters that training or merging has changed


class ExpandedConfig(PreTrainedConfig):
    """The ``config.json`` of an expanded model. It says only what kind of model it is; all else is in the base."""

    model_type = EXPANSION


AutoConfig.register(EXPANSION, ExpandedConfig)


def expansion_of(model: nn.Module) -> Expansion | None:
    """Return the expansion of a model, or None."""
    expansion: Expansion | None = getattr(model, EXPANSION, None)
    return expansion


def set_expansion(model: nn.Module, expansion: Expansion, *new_phases: dict[str, Any]) -> None:
    """Attach ``expansion`` to the model that it describes, with the options of ``new_phases`` added."""
    setattr(model, EXPANSION, msgspec.structs.replace(expansion, phases=(*expansion.phases, *new_phases)))


def unwrapped(model: PreTrainedModel | PeftModel) -> PreTrainedModel:
    """Return the plain model: a peft adapter of an earlier phase is merged into its base.

    Raises InputError for a model with built-in layers (K-Adapter, Modular), which cannot be merged, and for an adapter
    of a model in 4 bits.
    """
    if isinstance(model, PeftModel):
        if getattr(model.get_base_model(), "is_loaded_in_4bit", False):
            raise InputError("an adapter cannot be merged into a model in 4 bits: train without --quantize")
        return model.merge_and_unload()
    if expansion := expansion_of(model):
        raise InputError(
            f"a checkpoint of {expansion.method} cannot be merged into its base: continue with {expansion.method}"
        )
    return model


def to_expand(
    model: PreTrainedModel | PeftModel, method: Literal["k_adapter", "modular"]
) -> tuple[PreTrainedModel, Expansion]:
    """Return the model for the next phase of ``method``, and its expansion so far.

    An adapter is merged into the model. Raises InputError if the model has layers of another method.
    """
    expansion = expansion_of(model)
    if not isinstance(model, PeftModel) and expansion is not None and expansion.method == method:
        return model, expansion
    merged: tuple[str, ...] = ()
    if isinstance(model, PeftModel):
        if getattr(model, "own_embeddings", False):
            raise InputError(f"an adapter with its own embeddings: {method} cannot start from it; merge it first")
        modules = model.get_base_model().named_modules()
        kinds = BaseTunerLayer | AuxiliaryTrainingWrapper
        merged = tuple(f"{name}." for name, module in modules if isinstance(module, kinds))
    model = unwrapped(model)
    changed = tuple(sorted(name for name, _ in model.named_parameters() if name.startswith(merged)))
    config = model.config
    return model, Expansion(method, config._name_or_path, config.model_type, len(stack(model).layers), (), changed)


def is_frozen(module: nn.Module) -> bool:
    """Return True if training changes no parameter of a module."""
    return not any(parameter.requires_grad for parameter in module.parameters())


def write_expansion(
    model: PreTrainedModel | PeftModel, folder: Path, state_dict: Mapping[str, torch.Tensor] | None = None
) -> None:
    """Write an expanded model: its new layers, and all parameters of the base that any phase or merging has changed.

    Files are written whole or not at all. If given, ``state_dict`` replaces the model's own weights. Raises InputError
    if the disk is full.
    """
    expansion = expansion_of(model)
    if expansion is None:
        raise TypeError(f"{type(model).__name__} is not an expanded model")
    prefix = PREFIXES[expansion.method]
    trained = {name for name, p in model.named_parameters() if p.requires_grad and not name.startswith(prefix)}
    changed = tuple(sorted(trained.union(expansion.changed)))
    weights = dict(model.state_dict() if state_dict is None else state_dict)
    names = [*changed, *(name for name in weights if name.startswith(prefix))]
    with whole_file(folder / WEIGHTS) as part:
        save_file({name: weights[name].detach().cpu().contiguous() for name in names}, part)
    write_json(folder / "config.json", library_config(model.config.is_encoder_decoder))
    write_json(folder / SPEC, {**msgspec.structs.asdict(expansion), "changed": changed})


def library_config(encoder_decoder: bool) -> dict[str, Any]:
    """Return the ``config.json`` that tells `transformers` the kind of checkpoint."""
    return {"model_type": EXPANSION, "is_encoder_decoder": encoder_decoder}


def read_expansion(folder: Path) -> Expansion:
    """Return the content of ``expansion.json``; raise InputError if it is not the description of an expansion."""
    return read_json(folder / SPEC, Expansion, "the description of an expanded model")


def phase_options(options: dict[str, Any], kind: type[T]) -> T:
    """Convert a phase's options in ``expansion.json`` to the type ``kind``; raise InputError if they do not fit."""
    try:
        return msgspec.convert(options, kind)
    except msgspec.ValidationError as error:
        raise InputError(f"the options of a phase are wrong: {error}") from None


def expansion_for(model: PreTrainedModel, folder: Path, method: str) -> Expansion:
    """Return the expansion in ``folder``, checked against the ``model`` that it will be attached to.

    Raises InputError if it belongs to another method or model, or if the model already has an expansion or adapter.
    """
    if isinstance(model, PeftModel) or expansion_of(model):
        raise InputError(f"{folder}: needs its plain base model, but this model already has an adapter or new layers")
    expansion = read_expansion(folder)
    if expansion.method != method:
        raise InputError(f"{folder}: a checkpoint of {expansion.method}, not of {method}")
    layers = len(stack(model).layers)
    if (expansion.model_type, expansion.layers) != (model.config.model_type, layers):
        raise InputError(
            f"{folder}: a checkpoint of another model: {expansion.model_type} with {expansion.layers} layers "
            f"({expansion.base_model}), not {model.config.model_type} with {layers}"
        )
    return expansion


def read_weights(
    folder: Path, model: PreTrainedModel, expansion: Expansion, new: nn.Module
) -> dict[str, torch.Tensor]:
    """Return the tensors of an expansion, by their names in the expanded model. The model stays unchanged.

    ``new`` is the module for the new layers. Raises InputError unless the tensors match the new layers and
    the changed parameters in name and shape.
    """
    path = folder / WEIGHTS
    try:
        weights: dict[str, torch.Tensor] = load_file(path)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: not a file of tensors ({error})") from None
    own = dict(model.named_parameters())
    if foreign := next((name for name in expansion.changed if name not in own), None):
        raise InputError(f"{folder}: a checkpoint of another model: this one has no {foreign}")
    expected = {name: own[name].shape for name in expansion.changed}
    expected |= {PREFIXES[expansion.method] + name: tensor.shape for name, tensor in new.state_dict().items()}
    for name, shape in expected.items():
        if name not in weights:
            raise InputError(f"{path}: {name} is missing")
        if weights[name].shape != shape:
            raise InputError(
                f"{folder}: a checkpoint of another model: {name} is {list(weights[name].shape)}, not {list(shape)}"
            )
    if surplus := next((name for name in weights if name not in expected), None):
        raise InputError(f"{path}: {surplus} fits no parameter")
    return weights


def attached(
    model: PreTrainedModel,
    folder: Path,
    method: str,
    build: Callable[[Expansion], nn.Module],
    register: Callable[[PreTrainedModel, Any], None],
) -> PreTrainedModel:
    """Add the new layers in ``folder``, which ``build`` makes and ``register`` adds; freeze all parameters.

    Raises InputError, and leaves the model unchanged, if the folder holds something else or fits another model.
    """
    expansion = expansion_for(model, folder, method)
    try:
        new = build(expansion)
    except InputError as error:
        raise InputError(f"{folder / SPEC}: {error}") from None
    weights = read_weights(folder, model, expansion, new)
    register(model, new)
    model.load_state_dict(weights, strict=False)
    set_expansion(model, expansion)
    return model.requires_grad_(False)
