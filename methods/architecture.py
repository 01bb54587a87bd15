"""Where things are in a model: the library names the same parts differently in each architecture."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn
from transformers import PreTrainedModel

from temporalwiki.base.errors import InputError

_LAYERS = ("layers", "h", "block")  # Llama and most others, GPT-2, T5
_FINAL_NORMS = ("norm", "ln_f", "final_layer_norm")


@dataclass(frozen=True)
class Stack:
    """The stack of transformer layers that knowledge is built into: a decoder-only model's own, T5's encoder."""

    module: nn.Module
    layers: nn.ModuleList
    final_norm: nn.Module


def is_encoder_decoder(model: PreTrainedModel) -> bool:
    """Tell T5 and its like from decoder-only models."""
    return bool(model.config.is_encoder_decoder)


def stack(model: PreTrainedModel) -> Stack:
    """Find a model's stack; raise InputError for an architecture that is laid out in another way."""
    module = model.get_encoder() if is_encoder_decoder(model) else model.base_model
    layers = next((getattr(module, name) for name in _LAYERS if hasattr(module, name)), None)
    norm = next((getattr(module, name) for name in _FINAL_NORMS if hasattr(module, name)), None)
    if not isinstance(layers, nn.ModuleList) or norm is None:
        raise InputError(
            f"{model.config.model_type}: no list of layers named {', '.join(_LAYERS)} with a final norm; "
            "this method works on models that are built like GPT-2, Llama or T5"
        )
    return Stack(module, layers, norm)


def train_decoder_alone(model: PreTrainedModel) -> list[str]:
    """Freeze all but an encoder-decoder's decoder blocks and their final norm; return the names of those modules.

    Embeddings stay frozen: T5 shares them with the encoder and the output.
    """
    model.requires_grad_(False)
    decoder = model.get_decoder()
    prefix = next(name for name, module in model.named_modules() if module is decoder)
    names = [f"{prefix}.block.{i}" for i in range(len(decoder.block))] + [f"{prefix}.final_layer_norm"]
    for name in names:
        model.get_submodule(name).requires_grad_(True)
    return names


def trainable(model: nn.Module) -> int:
    """Count the parameters that training moves; entries that a mask holds fixed are not counted."""
    fixed = sum(int(module.fixed) for module in model.modules() if isinstance(getattr(module, "fixed", None), int))
    return sum(p.numel() for p in model.parameters() if p.requires_grad) - fixed


def total(model: nn.Module) -> int:
    """Count all parameters, those that are shared once.

    Parts that peft trains in a copy of their own are counted once, too.
    """
    return sum(p.numel() for name, p in model.named_parameters() if ".original_module." not in name)
