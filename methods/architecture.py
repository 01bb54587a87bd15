"""Find the parts of a model: `transformers` gives them different names in each architecture."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from peft import PeftModel
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from temporalwiki.base.errors import InputError
from temporalwiki.methods.attention import is_flash, one_row

_LAYERS = ("layers", "h", "block")  # names in Llama and most others, in GPT-2, in T5
_SEEN = 1e-3  # the share of a change that a model without a causal mask passes on to earlier tokens is far larger
_ROUNDING = 1e-6  # of logits, as a share of the largest one
_TEXT = "language_model"  # the name of the part of a composite model that reads text
_FINAL_NORMS = ("norm", "ln_f", "final_layer_norm")


@dataclass(frozen=True)
class Stack:
    """The transformer layers that methods extend: a decoder-only model's layers for text, or those in T5's encoder."""

    module: nn.Module
    layers: nn.ModuleList
    final_norm: nn.Module


def is_encoder_decoder(model: PreTrainedModel) -> bool:
    """Return True for T5 and similar models, False for decoder-only ones."""
    return bool(model.config.is_encoder_decoder)


def context_length(config: PreTrainedConfig) -> int | None:
    """Return the number of tokens that a model can read, or None for any number, as of T5."""
    longest = getattr(config.get_text_config(decoder=True), "max_position_embeddings", None)
    return longest if longest and longest > 0 else None


def text_module(model: PreTrainedModel) -> nn.Module:
    """Return the part of a decoder-only model that reads text, without its output layer, or the encoder of T5."""
    module = model.get_encoder() if is_encoder_decoder(model) else model.base_model
    found: nn.Module = getattr(module, _TEXT, module)
    return found


def stack(model: PreTrainedModel) -> Stack:
    """Return a model's stack of layers; raise InputError for an architecture with an unknown layout."""
    module = text_module(model)
    layers = next((getattr(module, name) for name in _LAYERS if hasattr(module, name)), None)
    norm = next((getattr(module, name) for name in _FINAL_NORMS if hasattr(module, name)), None)
    if not isinstance(layers, nn.ModuleList) or norm is None:
        raise InputError(
            f"{model.config.model_type}: no list of layers named {', '.join(_LAYERS)} with a final norm; "
            "this method works with models like GPT-2, Llama or T5"
        )
    return Stack(module, layers, norm)


def unread(model: nn.Module) -> list[nn.Module]:
    """Return the parts of a composite model that text does not pass through, such as an image encoder."""
    whole = model.get_base_model() if isinstance(model, PeftModel) else model
    parts = dict(whole.base_model.named_children())
    return [part for name, part in parts.items() if name != _TEXT] if _TEXT in parts else []


def train_text(model: PreTrainedModel) -> None:
    """Unfreeze all parameters that text passes through, and freeze the others."""
    model.requires_grad_(True)
    for part in unread(model):
        part.requires_grad_(False)


def _logits(model: nn.Module, ids: torch.Tensor, places: torch.Tensor | None = None) -> torch.Tensor:
    """Return the logits of rows of tokens, [rows, tokens, vocabulary], each row computed alone, in evaluation mode."""
    training, flash = model.training, is_flash(model)  # flash computes in bf16
    device = next(model.parameters()).device
    places = torch.arange(ids.shape[1])[None] if flash and places is None else places
    more = {} if places is None else {"position_ids": places.to(device)}
    with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=flash):
        batches = [{"input_ids": row, **more} for row in ids.to(device).unsqueeze(1)]
        found = [model.eval()(**(one_row(one) if flash else one), use_cache=False).logits[0] for one in batches]
    model.train(training)
    return torch.stack(found).float()


def mixes_documents(model: nn.Module) -> bool:
    """Return whether the tokens of a document depend on the document before it in a row.

    ``position_ids`` that start again at 0 mark the documents of a row. Some decoder-only models, such as OPT and all
    with recurrent layers, do not keep these apart. The test compares two rows that differ in their first document.
    """
    length, vocabulary = 8, model.get_input_embeddings().weight.shape[0]
    ids = torch.arange(4 * length).reshape(2, 2 * length) % vocabulary
    ids[1, length:] = ids[0, length:]
    first, second = _logits(model, ids, torch.arange(length).repeat(1, 2))[:, length:]
    return bool((first - second).abs().max() > _ROUNDING * first.abs().max())


def check_causal(model: PreTrainedModel, name: str) -> None:
    """Raise InputError if a decoder-only model sees later tokens, as BERT does: it has no likelihoods of texts.

    The trial changes the last token of a row: no earlier logit may move.
    """
    vocabulary = model.get_input_embeddings().weight.shape[0]
    # XLM ignores as many places as it sees padding
    ids = (vocabulary // 2 + torch.arange(8).repeat(2, 1)) % vocabulary
    ids[1, -1] = ids[1, 0]
    one, other = _logits(model, ids)
    moved = (one - other).abs().amax(dim=-1)
    # on a GPU, experts that get other numbers of tokens may round other sums; on a CPU, no earlier logit moved
    rounding = 0.0 if model.device.type == "cpu" else 4 * torch.finfo(model.dtype).eps * float(one.abs().max())
    if moved[:-1].max() > max(_SEEN * float(moved[-1]), rounding):
        raise InputError(
            f"{name}: its tokens see later ones, so it is not a causal language model, and its scores would mean "
            "nothing; name a causal one"
        )


def train_only_decoder(model: PreTrainedModel) -> list[str]:
    """Freeze everything but the decoder blocks and their final norm; return the names of these modules.

    The embeddings are frozen because T5 shares them with the encoder and the output.
    """
    model.requires_grad_(False)
    decoder = model.get_decoder()
    prefix = next(name for name, module in model.named_modules() if module is decoder)
    names = [f"{prefix}.block.{i}" for i in range(len(decoder.block))] + [f"{prefix}.final_layer_norm"]
    for name in names:
        model.get_submodule(name).requires_grad_(True)
    return names


def trainable(model: nn.Module) -> int:
    """Count the numbers that training can change; entries of a parameter that a mask keeps fixed do not count."""
    fixed = sum(int(module.fixed) for module in model.modules() if isinstance(getattr(module, "fixed", None), int))
    return sum(p.numel() for p in model.parameters() if p.requires_grad) - fixed


def entries(parameter: nn.Parameter) -> int:
    """Count the entries of a matrix or vector; bitsandbytes packs two into a byte."""
    packed = getattr(parameter, "quant_state", None)
    return parameter.numel() if packed is None else math.prod(packed.shape)


def total(model: nn.Module) -> int:
    """Count all parameters. Shared parameters and modules that peft has copied count once."""
    return sum(entries(p) for name, p in model.named_parameters() if ".original_module." not in name)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the CPU's random numbers inside the block and restore their state after it."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
