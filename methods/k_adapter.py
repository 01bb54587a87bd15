"""K-Adapter: new transformer layers beside a frozen model.

A saved phase is read into a fresh copy of its base model::

    model = AutoModelForCausalLM.from_pretrained(base)
    attach(model, folder)
"""

from __future__ import annotations

import copy
import math
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

import torch
from peft import PeftModel
from torch import nn
from transformers import PreTrainedModel
from transformers.cache_utils import Cache

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.methods.architecture import Stack, is_encoder_decoder, stack, train_decoder_alone
from temporalwiki.methods.expansion import (
    SPEC,
    expansion_for,
    expansion_of,
    frozen,
    merged_modules,
    new_expansion,
    read_weights,
    set_expansion,
)
from temporalwiki.methods.method import Method, whole

NAME = "k_adapter"
_DEEP = 14  # from here on the positions of the papers fit

# position -> what the model's layer there was called with: hidden state (batch, length, width), other arguments
Calls = dict[int, tuple[torch.Tensor, tuple[Any, ...], dict[str, Any]]]


@dataclass(frozen=True)
class KAdapter(Method):
    """k new layers read the hidden states of a frozen model and add to its last (Wang et al. 2021; CKL section 4).

    Each is a transformer layer of the model's own kind. Layer j reads h[l_j] + the output of layer j-1, where h[l] is
    the output of the model's layer l, and the model's output becomes final + scale * norm(output of layer k), both
    after a final norm. Encoder-decoder: the layers are the encoder's, and the decoder is trained. Each later phase
    adds k layers, freezes the earlier ones, and all phases' outputs are summed.
    """

    through_base: ClassVar[bool] = False

    k: int = field(default=2, metadata={"help": "new layers a phase"})
    layers: tuple[int, ...] | None = field(
        default=None, metadata={"help": "the layers whose outputs they read, from 1; 1, 11 and one near the top"}
    )
    scale: float = field(default=0.1, metadata={"help": "of what they add to the final hidden state"})
    gate: bool = field(default=False, metadata={"help": "learn the scale instead, from 0: the start changes nothing"})

    def __post_init__(self) -> None:
        """Refuse what no model could have."""
        if self.k < 1 or not (self.scale > 0 and math.isfinite(self.scale)):
            raise UsageError(f"k_adapter needs k >= 1 and scale > 0, not {self.k} and {self.scale:g}")
        if self.layers is not None and len(self.layers) != self.k:
            raise UsageError(f"k_adapter has k = {self.k} new layers, but {len(self.layers)} to read")
        if self.layers is not None and any(a >= b for a, b in zip(self.layers, self.layers[1:], strict=False)):
            raise UsageError(f"k_adapter reads layers in rising order, not {', '.join(map(str, self.layers))}")

    def positions(self, n_layers: int) -> tuple[int, ...]:
        """Return l_1 .. l_k for a model of ``n_layers`` layers; raise InputError for layers that it does not have."""
        top = n_layers - 1  # h[n] is no layer's input
        if self.layers is not None:
            if outside := [position for position in self.layers if not 1 <= position <= top]:
                raise InputError(f"k_adapter: a model of {n_layers} layers has no {outside[0]}; use 1 to {top}")
            return self.layers
        if self.k > top:
            raise InputError(f"k_adapter: k = {self.k} needs more than {self.k} layers, the model has {n_layers}")
        if self.k in (2, 3) and n_layers >= _DEEP:
            return (1, 11, n_layers - 2)[: self.k]
        if self.k == 1:
            return (max(1, n_layers // 2),)
        return tuple(1 + i * (top - 1) // (self.k - 1) for i in range(self.k))

    def prepare(self, model: PreTrainedModel | PeftModel, seed: int) -> PreTrainedModel:
        """Add the phase's layers, the only ones that are trained (with T5's decoder).

        Raises InputError for a model that is too shallow, built otherwise, or expanded by another method.
        """
        expansion = expansion_of(model)
        if isinstance(model, PeftModel) or expansion is None or expansion.method != NAME:
            merged = merged_modules(model)
            model = whole(model)
            expansion = new_expansion(model, NAME, merged)
        positions = self.positions(expansion.layers)
        if is_encoder_decoder(model):
            train_decoder_alone(model)
        else:
            model.requires_grad_(False)
        adapter = getattr(model, NAME, None) or AdapterLayers()
        adapter.append(self, positions, model, seed)
        _register(model, adapter)
        options = asdict(replace(self, layers=positions))
        set_expansion(model, replace(expansion, phases=(*expansion.phases, options)))
        return model


def attach(model: PreTrainedModel, folder: Path | str) -> PreTrainedModel:
    """Build what ``save`` wrote into its base model, in place, and return that model, with nothing to train.

    Raises InputError where the folder holds something else or belongs to another model; the model is as before then.
    """
    folder = Path(folder)
    expansion = expansion_for(model, folder, NAME)
    adapter = AdapterLayers()
    for options in expansion.phases:
        try:
            phase = _read_options(options)
            positions = phase.positions(expansion.layers)
        except InputError as error:
            raise InputError(f"{folder / SPEC}: {error}") from None
        adapter.append(phase, positions, model, seed=0)
    weights = read_weights(folder, model, expansion, adapter)
    _register(model, adapter)
    model.load_state_dict(weights, strict=False)
    set_expansion(model, expansion)
    return model.requires_grad_(False)


def _read_options(options: dict[str, Any]) -> KAdapter:
    """Check a phase's options as they are found in a file."""
    kinds = {"k": (int,), "layers": (list,), "scale": (int, float), "gate": (bool,)}
    if set(options) != set(kinds):
        raise InputError(f"a phase of k_adapter has the options {', '.join(kinds)}")
    if wrong := next((name for name, kind in kinds.items() if type(options[name]) not in kind), None):
        raise InputError(f"{wrong} of a phase of k_adapter is of the wrong kind")
    if any(type(position) is not int for position in options["layers"]):
        raise InputError("layers of a phase of k_adapter are not whole numbers")
    return KAdapter(**{**options, "layers": tuple(options["layers"])})


class Phase(nn.Module):
    """The new layers of one phase."""

    gate: nn.Parameter | None  # instead of the scale

    def __init__(
        self, layers: list[nn.Module], norm: nn.Module, positions: tuple[int, ...], scale: float, first_slot: int
    ) -> None:
        """Take over layers that read ``positions`` and cache in the slots from ``first_slot`` on."""
        super().__init__()
        self.layers, self.norm = nn.ModuleList(layers), norm
        self.positions, self.scale = positions, scale
        self.register_parameter("gate", None)
        self.slots = tuple(range(first_slot, first_slot + len(layers)))
        for slot, layer in zip(self.slots, layers, strict=True):
            for module in layer.modules():
                if hasattr(module, "layer_idx"):
                    module.layer_idx = slot

    def forward(self, calls: Calls) -> torch.Tensor:
        """Return what is added to the final hidden state (batch, length, width)."""
        out: torch.Tensor | None = None
        for layer, position in zip(self.layers, self.positions, strict=True):
            hidden, args, kwargs = calls[position]
            x = hidden if out is None else hidden + out
            if getattr(layer, "gradient_checkpointing", False) and torch.is_grad_enabled() and not x.requires_grad:
                # reentrant checkpointing gives no gradients to a layer none of whose inputs has one
                x = x.detach().requires_grad_(not frozen(layer))
            result = layer(x, *args, **kwargs)
            out = result[0] if isinstance(result, tuple) else result
        added: torch.Tensor = self.norm(out)
        return added * (self.scale if self.gate is None else self.gate)


class AdapterLayers(nn.Module):
    """The new layers of all phases, run by hooks on the model's own layers and its final norm."""

    def __init__(self) -> None:
        """Make one without phases."""
        super().__init__()
        self.phases = nn.ModuleList()
        self.hooked: set[int] = set()
        self.calls: Calls = {}  # of the running forward pass

    def parts(self) -> list[Phase]:
        """Return the phases, oldest first."""
        return cast("list[Phase]", list(self.phases))

    def append(self, options: KAdapter, positions: tuple[int, ...], model: PreTrainedModel, seed: int) -> None:
        """Freeze the phases so far and add one, initialised by the model's own rule, the same for the same seed."""
        self.requires_grad_(False)
        own = stack(model)
        first_slot = len(own.layers) + sum(len(phase.slots) for phase in self.parts())
        layers, norm = _unfilled(own, positions)
        phase = Phase(layers, norm, positions, options.scale, first_slot)
        like = next(own.final_norm.parameters())
        if not like.is_meta:
            # on the CPU whatever the device, so that a seed gives the same weights everywhere
            phase.to_empty(device="cpu")
            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(seed + len(self.phases))
                # children before parents: T5 gives every linear map a deviation of 1 and its parent corrects that
                phase.apply(model._init_weights)
        if options.gate:
            phase.gate = nn.Parameter(torch.zeros(1, device=next(phase.parameters()).device))  # FSDP has no scalars
        phase.to(device=like.device, dtype=like.dtype).requires_grad_(True).train(model.training)
        self.phases.append(phase)

    def hook(self, own: Stack) -> None:
        """Have the model's layers and final norm call this module."""
        if not self.hooked:
            own.final_norm.register_forward_hook(self.add)
        for position in sorted({p for phase in self.parts() for p in phase.positions} - self.hooked):
            # bound methods, which a deep copy of the model binds to its own copy; functions it would share
            own.layers[position].register_forward_pre_hook(partial(self.note, position), with_kwargs=True)
            self.hooked.add(position)

    def note(self, position: int, layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keep what the layer at ``position`` is called with; make room in its cache."""
        hidden, *others = args
        for value in (*others, *kwargs.values()):
            if isinstance(value, Cache):
                self._reserve(value)
        # Gradient checkpointing makes the embeddings' output require gradients; a frozen model needs none. One that
        # was unfrozen (light-tuning) does.
        self.calls[position] = (hidden.detach() if frozen(layer) else hidden, tuple(others), kwargs)

    def add(self, norm: nn.Module, _args: tuple[Any, ...], final: torch.Tensor) -> torch.Tensor:
        """Return the final hidden state with what each phase adds to it."""
        final = final.detach() if frozen(norm) else final
        for phase in self.parts():
            final = final + phase(self.calls).to(final.dtype)
        self.calls.clear()
        return final

    def _reserve(self, cache: Cache) -> None:
        """Append slots for the new layers to a cache that was made for the model's own layers.

        Raises InputError if the cache is in use: what the new layers need of the past is not in it.
        """
        if cache.layer_class_to_replicate is not None:
            return  # grows by itself
        for phase in self.parts():
            for slot, position in zip(phase.slots, phase.positions, strict=True):
                if len(cache.layers) == slot:
                    if cache.get_seq_length(position):
                        raise InputError("k_adapter: this cache was filled by a model without the new layers")
                    cache.layers.append(copy.deepcopy(cache.layers[position]))


def _unfilled(own: Stack, positions: tuple[int, ...]) -> tuple[list[nn.Module], nn.Module]:
    """Return new layers like those at ``positions``, and a final norm, on the meta device.

    They come out of a new stack of the model's own class: deep copies would take hooks along.
    """
    with torch.device("meta"):
        new = type(own.module)(own.module.config)
    names = {child: name for name, child in own.module.named_children()}
    layers = getattr(new, names[own.layers])
    return [layers[position] for position in positions], getattr(new, names[own.final_norm])


def _register(model: PreTrainedModel, adapter: AdapterLayers) -> None:
    """Make the new layers part of a model."""
    model.add_module(NAME, adapter)
    adapter.hook(stack(model))
