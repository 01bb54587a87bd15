"""The checkpoints of methods that build layers into a model (K-Adapter, Modular): what differs from the base.

A folder holds ``expansion.json`` (base model, method, the options of each phase) and ``expansion.safetensors`` (the
new layers of all phases, and whatever else was trained). It is no model folder: without its base it says nothing.
Its ``config.json`` names a model type that ``transformers`` knows where ``methods.auto_model`` was imported, and that
it refuses elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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
from temporalwiki.base.json_files import write_json
from temporalwiki.methods.architecture import stack

# the attribute under which an expanded model keeps its Expansion, and the model type of its folder's config.json
EXPANSION = "temporalwiki_expansion"
SPEC = "expansion.json"
WEIGHTS = "expansion.safetensors"

# method -> what the names of its new parameters begin with
PREFIXES = {"k_adapter": "k_adapter.", "modular": "encoder.modular."}


@dataclass(frozen=True)
class Expansion:
    """How a model was expanded."""

    method: str
    base_model: str  # folder or Hub id
    model_type: str
    layers: int  # of the stack that was expanded
    phases: tuple[dict[str, Any], ...]  # each phase's options, oldest first
    changed: tuple[str, ...]  # the base model's parameters that are no longer its own, by name


class ExpandedConfig(PreTrainedConfig):
    """What ``config.json`` beside the layers of an expanded model says: nothing of the model, which its base does."""

    model_type = EXPANSION


AutoConfig.register(EXPANSION, ExpandedConfig)


def expansion_of(model: nn.Module) -> Expansion | None:
    """Return how a model was expanded; None for one that was not."""
    expansion: Expansion | None = getattr(model, EXPANSION, None)
    return expansion


def set_expansion(model: nn.Module, expansion: Expansion) -> None:
    """Note on a model how it was expanded."""
    setattr(model, EXPANSION, expansion)


def new_expansion(model: PreTrainedModel, method: str, merged: tuple[str, ...]) -> Expansion:
    """Return the expansion of a model without phases; its modules named ``merged`` are no longer the base model's."""
    within = tuple(f"{name}." for name in merged)
    changed = tuple(sorted(name for name, _ in model.named_parameters() if name.startswith(within)))
    base = model.config._name_or_path
    return Expansion(method, base, model.config.model_type, len(stack(model).layers), (), changed)


def merged_modules(model: PreTrainedModel | PeftModel) -> tuple[str, ...]:
    """Name the base model's modules that merging a peft model into it changes."""
    if not isinstance(model, PeftModel):
        return ()
    modules = model.get_base_model().named_modules()
    return tuple(name for name, module in modules if isinstance(module, BaseTunerLayer | AuxiliaryTrainingWrapper))


def frozen(module: nn.Module) -> bool:
    """Tell whether no parameter of a module is trained."""
    return not any(parameter.requires_grad for parameter in module.parameters())


def write_expansion(
    model: PreTrainedModel | PeftModel, folder: Path, state_dict: Mapping[str, torch.Tensor] | None = None
) -> None:
    """Write an expanded model: its new layers and all parameters that were trained, whole files or none.

    ``state_dict`` is used instead of the model's own weights where it is given. Raises InputError if the disk is full.
    """
    expansion = expansion_of(model)
    if expansion is None:
        raise TypeError(f"{type(model).__name__} is not an expanded model")
    prefix = PREFIXES[expansion.method]
    trained = {name for name, p in model.named_parameters() if p.requires_grad and not name.startswith(prefix)}
    changed = tuple(sorted(trained.union(expansion.changed)))
    weights = dict(model.state_dict() if state_dict is None else state_dict)
    names = [*changed, *(name for name in weights if name.startswith(prefix))]
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(folder / WEIGHTS) as part:
        save_file({name: weights[name].detach().cpu().contiguous() for name in names}, part)
    write_json(folder / "config.json", library_config(model.config.is_encoder_decoder))
    write_json(folder / SPEC, {**asdict(expansion), "changed": changed})


def library_config(encoder_decoder: bool) -> dict[str, Any]:
    """Return the ``config.json`` by which ``transformers`` knows what kind of checkpoint this is."""
    return {"model_type": EXPANSION, "is_encoder_decoder": encoder_decoder}


def read_expansion(folder: Path) -> Expansion:
    """Read ``expansion.json``; raise InputError where it is none."""
    try:
        spec = json.loads((folder / SPEC).read_text("utf-8"))
        if not isinstance(spec, dict) or set(spec) != set(Expansion.__dataclass_fields__):
            raise TypeError(f"it needs {', '.join(Expansion.__dataclass_fields__)}")
        for name in ("method", "base_model", "model_type"):
            if not isinstance(spec[name], str):
                raise TypeError(f"{name} is no string")
        if spec["method"] not in PREFIXES:
            raise TypeError(f"method is none of {', '.join(PREFIXES)}")
        if type(spec["layers"]) is not int:
            raise TypeError("layers is no whole number")
        if not isinstance(spec["phases"], list) or not spec["phases"]:
            raise TypeError("phases is no list, or empty")
        if not all(isinstance(phase, dict) for phase in spec["phases"]):
            raise TypeError("a phase is no object")
        if not isinstance(spec["changed"], list) or not all(isinstance(name, str) for name in spec["changed"]):
            raise TypeError("changed is no list of names")
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise InputError(f"{folder / SPEC}: not the description of an expanded model ({error})") from None
    return Expansion(**{**spec, "phases": tuple(spec["phases"]), "changed": tuple(spec["changed"])})


def expansion_for(model: PreTrainedModel, folder: Path, method: str) -> Expansion:
    """Read the expansion in ``folder`` that ``model`` is to get.

    Raises InputError if it is of another method or another model, or if the model has an expansion already.
    """
    if isinstance(model, PeftModel) or expansion_of(model):
        raise InputError(f"{folder}: attached to its base model only, not to one that was adapted already")
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
    """Return the tensors of an expansion by their names in the expanded model.

    ``new`` is the module that is to hold the new layers. Nothing is changed. Raises InputError unless the tensors are
    those, with their shapes, that the new layers and the changed parameters of the model are.
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
        raise InputError(f"{path}: {surplus} belongs nowhere")
    return weights
