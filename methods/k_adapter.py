"""K-Adapter: new transformer layers next to a frozen model.

To load a saved phase, attach it to a fresh copy of its base model::

    model = AutoModelForCausalLM.from_pretrained(base)
    attach(model, folder)
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import msgspec
import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.cache_utils import Cache
from transformers.pytorch_utils import Conv1D

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.options import option
from temporalwiki.methods.architecture import Stack, is_encoder_decoder, seeded, stack, train_only_decoder
from temporalwiki.methods.expansion import Expansion, attached, is_frozen, phase_options, set_expansion, to_expand
from temporalwiki.methods.method import Method, Model, Phase

NAME: Literal["k_adapter"] = "k_adapter"
_DEEP = 14  # layers that a model needs for the positions in the papers

# position -> arguments of the model's layer there: hidden state (batch, length, width), other arguments
Calls = dict[int, tuple[torch.Tensor, tuple[Any, ...], dict[str, Any]]]


@dataclass(frozen=True)
class KAdapter(Method):
    """k new layers read hidden states of a frozen model and change the final one (Wang et al. 2021; CKL section 4).

    Each new layer is a transformer layer of the model's own class. Layer j reads h[l_j] + the output of layer j-1,
    where h[l] is the output of the model's layer l. The model's output becomes final + scale * norm(output of layer
    k), both after a final norm. In an encoder-decoder, the new layers extend the encoder, and the decoder is trained.
    Each later phase adds k layers and freezes the earlier ones; the outputs of all phases are summed. With ``once``,
    only the first phase adds layers, and each later phase trains them further (TemporalWiki, footnote 5).

    A phase starts as the identity: the last projection of each new layer is zero, and so is the final norm, or the
    ``gate``. Random layers would add noise, and at the papers' rate of 1e-4 take thousands of steps to unlearn it.
    """

    adds_only: ClassVar[bool] = True
    gradients_through_base: ClassVar[bool] = False
    defaults: ClassVar[Mapping[str, Any]] = {"learning_rate": 1e-3}
    least_steps: ClassVar[int] = 500

    k: int = option(2, "new layers per phase", at_least=1)
    layers: tuple[int, ...] | None = option(
        None, "layers whose outputs the new layers read, counted from 1 (default: 1, 11 and one near the top)"
    )
    scale: float = option(
        0.1, "factor of the output that the new layers add to the final hidden state", above=0, below=inf
    )
    gate: bool = option(False, "learn this factor, starting at 0, so that the new layers change nothing at first")
    once: bool = option(False, "add layers in the first phase only, and train them further in later phases")

    def __post_init__(self) -> None:
        """Raise UsageError for options that fit no model."""
        super().__post_init__()
        if self.layers is not None and len(self.layers) != self.k:
            raise UsageError(f"k_adapter has k = {self.k} new layers, but {len(self.layers)} to read")
        if self.layers is not None and any(a >= b for a, b in zip(self.layers, self.layers[1:], strict=False)):
            raise UsageError(f"k_adapter reads layers in rising order, not {', '.join(map(str, self.layers))}")

    def positions(self, n_layers: int) -> tuple[int, ...]:
        """Return l_1 .. l_k for a model with ``n_layers`` layers; raise InputError if it lacks one of them."""
        top = n_layers - 1  # the output of the last layer is not the input of another layer
        if self.layers is not None:
            if outside := [position for position in self.layers if not 1 <= position <= top]:
                raise InputError(f"k_adapter: a model with {n_layers} layers lacks layer {outside[0]}; use 1 to {top}")
            return self.layers
        if self.k > top:
            raise InputError(f"k_adapter: k = {self.k} needs more than {self.k} layers, the model has {n_layers}")
        if self.k in (2, 3) and n_layers >= _DEEP:
            return (1, 11, n_layers - 2)[: self.k]
        if self.k == 1:
            return (max(1, n_layers // 2),)
        return tuple(1 + i * (top - 1) // (self.k - 1) for i in range(self.k))

    def prepare(self, model: Model, phase: Phase) -> PreTrainedModel:
        """Add the phase's new layers and freeze the rest, except T5's decoder.

        Raises InputError for a model with too few layers, an unknown layout, layers of another method, or, with
        ``once``, layers that an earlier phase added with other options.
        """
        model, expansion = to_expand(model, NAME)
        positions = self.positions(expansion.layers)
        added = {"k": self.k, "layers": positions, "scale": self.scale, "gate": self.gate}
        if is_encoder_decoder(model):
            train_only_decoder(model)
        else:
            model.requires_grad_(False)
        adapter = getattr(model, NAME, None) or AdapterLayers()
        if self.once and expansion.phases:
            if (there := {**expansion.phases[-1], "layers": tuple(expansion.phases[-1]["layers"])}) != added:
                raise InputError(f"k_adapter: --once trains the layers that are there, with {there}, not {added}")
            adapter.parts()[-1].requires_grad_(True).train(model.training)
            set_expansion(model, expansion)
            return model
        adapter.append(self, positions, model, phase.seed)
        _register(model, adapter)
        set_expansion(model, expansion, added)
        return model


def attach(model: PreTrainedModel, folder: Path | str) -> PreTrainedModel:
    """Add the layers in ``folder`` to their base model, in place; return the model with all parameters frozen.

    Raises InputError, and leaves the model unchanged, if the folder holds something else or fits another model.
    """

    def build(expansion: Expansion) -> AdapterLayers:
        adapter = AdapterLayers()
        for options in expansion.phases:
            phase = KAdapter(**msgspec.structs.asdict(phase_options(options, _AdapterPhase)))
            adapter.append(phase, phase.positions(expansion.layers), model, seed=0)
        return adapter

    return attached(model, Path(folder), NAME, build, _register)


class _AdapterPhase(msgspec.Struct, forbid_unknown_fields=True):
    """The options of a phase in ``expansion.json``."""

    k: int
    layers: tuple[int, ...]
    scale: float
    gate: bool


class PhaseLayers(nn.Module):
    """The new layers of one phase."""

    gate: nn.Parameter | None  # replaces the scale

    def __init__(
        self, layers: list[nn.Module], norm: nn.Module, positions: tuple[int, ...], scale: float, first_slot: int
    ) -> None:
        """Use ``layers``, which read the outputs at ``positions`` and use cache slots from ``first_slot`` on."""
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
        """Return the tensor to add to the final hidden state (batch, length, width)."""
        out: torch.Tensor | None = None
        for layer, position in zip(self.layers, self.positions, strict=True):
            hidden, args, kwargs = calls[position]
            x = hidden if out is None else hidden + out
            if getattr(layer, "gradient_checkpointing", False) and torch.is_grad_enabled() and not x.requires_grad:
                # reentrant checkpointing computes gradients only if an input requires one
                x = x.detach().requires_grad_(not is_frozen(layer))
            result = layer(x, *args, **kwargs)
            out = result[0] if isinstance(result, tuple) else result
        added: torch.Tensor = self.norm(out)
        return added * (self.scale if self.gate is None else self.gate)


class AdapterLayers(nn.Module):
    """The new layers of all phases. Hooks on the model's own layers and its final norm run them."""

    def __init__(self) -> None:
        """Start without phases."""
        super().__init__()
        self.phases = nn.ModuleList()
        self.hooked: set[int] = set()
        self.calls: Calls = {}  # in the current forward pass

    def parts(self) -> list[PhaseLayers]:
        """Return the phases, oldest first."""
        return cast("list[PhaseLayers]", list(self.phases))

    def append(self, options: KAdapter, positions: tuple[int, ...], model: PreTrainedModel, seed: int) -> None:
        """Freeze the earlier phases and add a new one, which at first adds nothing.

        The other weights of its layers are initialised by the model's own rule and ``seed``.
        """
        self.requires_grad_(False)
        own = stack(model)
        first_slot = len(own.layers) + sum(len(phase.slots) for phase in self.parts())
        layers, norm = _unfilled(own, positions)
        phase = PhaseLayers(layers, norm, positions, options.scale, first_slot)
        like = next(own.final_norm.parameters())
        if not like.is_meta:
            # always on the CPU, so that a seed gives the same weights on every device
            phase.to_empty(device="cpu")
            with seeded(seed + len(self.phases)):
                # apply() visits children first: T5 sets each linear layer to deviation 1, then its parent corrects it
                phase.apply(model._init_weights)
                _silence(phase, norm=not options.gate)
        if options.gate:
            phase.gate = nn.Parameter(torch.zeros(1, device=next(phase.parameters()).device))  # no scalar, for FSDP
        phase.to(device=like.device, dtype=like.dtype).requires_grad_(True).train(model.training)
        self.phases.append(phase)

    def hook(self, own: Stack) -> None:
        """Register hooks on the model's layers and final norm that call this module."""
        if not self.hooked:
            own.final_norm.register_forward_hook(self.add_outputs)
        for position in sorted({p for phase in self.parts() for p in phase.positions} - self.hooked):
            # bound methods: a deep copy of the model binds them to its own copy of this module
            own.layers[position].register_forward_pre_hook(partial(self.record_call, position), with_kwargs=True)
            self.hooked.add(position)

    def record_call(self, position: int, layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keep the arguments of the layer at ``position``; add slots for the new layers to any cache among them."""
        hidden, *others = args
        for value in (*others, *kwargs.values()):
            if isinstance(value, Cache):
                self._reserve(value)
        # With gradient checkpointing, the embeddings' output requires gradients even in a frozen model. Only a model
        # that was unfrozen (by light-tuning) needs them.
        self.calls[position] = (hidden.detach() if is_frozen(layer) else hidden, tuple(others), kwargs)

    def add_outputs(self, norm: nn.Module, _args: tuple[Any, ...], final: torch.Tensor) -> torch.Tensor:
        """Return the final hidden state plus the output of each phase."""
        final = final.detach() if is_frozen(norm) else final
        for phase in self.parts():
            final = final + phase(self.calls).to(final.dtype)
        self.calls.clear()
        return final

    def _reserve(self, cache: Cache) -> None:
        """Append slots for the new layers to a cache with slots for the model's own layers only.

        Raises InputError if such a cache is in use: it lacks the past that the new layers need.
        """
        if cache.layer_class_to_replicate is not None:
            return  # the cache adds slots by itself
        for phase in self.parts():
            for slot, position in zip(phase.slots, phase.positions, strict=True):
                if len(cache.layers) == slot:
                    if cache.get_seq_length(position):
                        raise InputError("k_adapter: this cache was filled by a model without the new layers")
                    cache.layers.append(copy.deepcopy(cache.layers[position]))


def _unfilled(own: Stack, positions: tuple[int, ...]) -> tuple[list[nn.Module], nn.Module]:
    """Return new layers like those at ``positions``, and a final norm, on the meta device.

    They are taken from a new stack of the model's own class, because deep copies would also copy hooks.
    """
    with torch.device("meta"):
        new = type(own.module)(own.module.config)
    names = {child: name for name, child in own.module.named_children()}
    layers = getattr(new, names[own.layers])
    return [layers[position] for position in positions], getattr(new, names[own.final_norm])


def _silence(phase: PhaseLayers, norm: bool) -> None:
    """Set the last projection of each new layer to zero, and the final ``norm``."""
    for layer in phase.layers:
        projections = [part for part in layer.modules() if isinstance(part, nn.Linear | Conv1D)]
        for parameter in projections[-1].parameters() if projections else ():
            nn.init.zeros_(parameter)
    if not norm:
        return
    for parameter in phase.norm.parameters():
        nn.init.zeros_(parameter)
    weight = next(phase.norm.parameters())
    if phase.norm(torch.arange(float(len(weight)))).any():  # Gemma's norms multiply by 1 + their weight
        nn.init.constant_(weight, -1.0)


def _register(model: PreTrainedModel, adapter: AdapterLayers) -> None:
    """Add the new layers to a model as a module."""
    model.add_module(NAME, adapter)
    adapter.hook(stack(model))
