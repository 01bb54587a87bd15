"""Modular: a small new encoder each phase beside T5's frozen one.

A saved phase is read into a fresh copy of its base model::

    model = AutoModelForSeq2SeqLM.from_pretrained(base)
    attach(model, folder)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from huggingface_hub.errors import StrictDataclassError
from peft import PeftModel
from torch import nn
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel, T5Config, T5EncoderModel
from transformers.activations import ACT2FN
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.t5.modeling_t5 import T5Stack

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.methods.architecture import is_encoder_decoder, train_decoder_alone
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

NAME = "modular"

# what a small encoder is built from: kind and highest value
_WHOLE_NUMBERS = {
    "vocab_size": 2**24,
    "d_model": 2**16,
    "d_kv": 2**16,
    "d_ff": 2**18,
    "num_layers": 1000,
    "num_heads": 2**12,
    "relative_attention_num_buckets": 2**16,
    "relative_attention_max_distance": 2**24,
}
_FRACTIONS = ("dropout_rate", "layer_norm_epsilon", "initializer_factor")
_T5_SMALL = {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8}


@dataclass(frozen=True)
class Modular(Method):
    """T5 with a second, small encoder over the same input (CKL section 4): encoder(x) + scale * projection(small(x)).

    The encoder and the shared embedding are frozen, the decoder is trained. Each later phase adds another small
    encoder and freezes the earlier ones; their contributions are summed.
    """

    refuses: ClassVar[str] = "decoder-only"
    through_base: ClassVar[bool] = False

    small: str | None = field(
        default=None, metadata={"help": "T5 whose pretrained encoder is the small one; else a new T5-small encoder"}
    )
    scale: float = field(default=0.05, metadata={"help": "of what the small encoder adds to the encoder's output"})

    def __post_init__(self) -> None:
        """Refuse what adds nothing."""
        if not (self.scale > 0 and math.isfinite(self.scale)):
            raise UsageError(f"modular needs scale > 0, not {self.scale:g}")

    def prepare(self, model: PreTrainedModel | PeftModel, seed: int) -> PreTrainedModel:
        """Add the phase's small encoder, which is trained with the decoder.

        Raises InputError for a model that is no T5 or expanded by another method, and for a ``small`` that is no T5
        of the model's vocabulary.
        """
        expansion = expansion_of(model)
        if isinstance(model, PeftModel) or expansion is None or expansion.method != NAME:
            merged = merged_modules(model)
            model = whole(model)
            _check_t5(model)
            expansion = new_expansion(model, NAME, merged)
        with _seeded(seed + len(expansion.phases)):
            encoder = self._small_encoder(model)
        train_decoder_alone(model)
        _register(model, [*_small_encoders(model), encoder])
        options = {"small": self.small, "scale": self.scale, "encoder": _description(encoder.stack.config)}
        set_expansion(model, replace(expansion, phases=(*expansion.phases, options)))
        return model

    def _small_encoder(self, model: PreTrainedModel) -> SmallEncoder:
        """Return a small encoder of ``model``'s vocabulary, all of it trained."""
        like = next(model.get_encoder().final_layer_norm.parameters())
        # on the CPU whatever the device, so that a seed gives the same weights everywhere
        with torch.device("meta" if like.is_meta else "cpu"):
            if self.small is None:
                encoder = T5EncoderModel(T5Config(**{**_description(model.config), **_T5_SMALL})).encoder
            else:
                encoder = _pretrained(self.small, model.config.vocab_size, weights=not like.is_meta)
            small = SmallEncoder(encoder, model.config.d_model, self.scale)
        factor = encoder.config.initializer_factor
        nn.init.normal_(small.projection.weight, std=factor * encoder.config.d_model**-0.5)  # T5's rule for its maps
        return small.to(device=like.device, dtype=like.dtype).requires_grad_(True).train(model.training)


def attach(model: PreTrainedModel, folder: Path | str) -> PreTrainedModel:
    """Build what ``save`` wrote into its base model, in place, and return that model, with nothing to train.

    Raises InputError where the folder holds something else or belongs to another model; the model is as before then.
    """
    folder = Path(folder)
    _check_t5(model)
    expansion = expansion_for(model, folder, NAME)
    try:
        encoders = [_read_options(options, model) for options in expansion.phases]
    except InputError as error:
        raise InputError(f"{folder / SPEC}: {error}") from None
    weights = read_weights(folder, model, expansion, nn.ModuleList(encoders))
    like = next(model.get_encoder().final_layer_norm.parameters())
    for encoder in encoders:
        encoder.to_empty(device=like.device).to(like.dtype).train(model.training)
    _register(model, encoders)
    model.load_state_dict(weights, strict=False)
    set_expansion(model, expansion)
    return model.requires_grad_(False)


class SmallEncoder(nn.Module):
    """A small encoder with its own embedding, and a projection to the width of the large one."""

    def __init__(self, encoder: T5Stack, width: int, scale: float) -> None:
        """Take over ``encoder``; what it adds is ``width`` wide."""
        super().__init__()
        self.stack = encoder
        self.projection = nn.Linear(encoder.config.d_model, width, bias=False)
        self.scale = scale

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None) -> torch.Tensor:
        """Return what is added to the large encoder's output (batch, length, width)."""
        hidden = self.stack(input_ids=input_ids, attention_mask=attention_mask, return_dict=True).last_hidden_state
        added: torch.Tensor = self.projection(hidden)
        return self.scale * added


class ModularStack(T5Stack):
    """T5's encoder with small encoders beside it.

    A subclass and not a wrapper, so that every name in the model stays as it is, tied weights among them.
    """

    modular: nn.ModuleList

    def forward(
        self, input_ids: torch.Tensor | None = None, attention_mask: torch.Tensor | None = None, **kwargs: Any
    ) -> BaseModelOutput | tuple[Any, ...]:
        """Encode ``input_ids`` (batch, length); raise InputError for embeddings, which small encoders cannot read."""
        if input_ids is None:
            raise InputError("modular: its encoders need token ids, not embeddings")
        as_output = kwargs.pop("return_dict", self.config.return_dict)
        output = super().forward(input_ids=input_ids, attention_mask=attention_mask, return_dict=True, **kwargs)
        hidden: torch.Tensor = output.last_hidden_state
        # Gradient checkpointing makes the embeddings' output require gradients; a frozen encoder needs none. One that
        # was unfrozen (light-tuning) does.
        hidden = hidden.detach() if frozen(self.final_layer_norm) else hidden
        for small in self.modular:
            added = small(input_ids, attention_mask).to(hidden.dtype)
            hidden = hidden + (added.detach() if frozen(small) else added)
        output.last_hidden_state = hidden
        if output.hidden_states is not None:
            output.hidden_states = (*output.hidden_states[:-1], hidden)
        result: BaseModelOutput | tuple[Any, ...] = output if as_output else output.to_tuple()
        return result


def _check_t5(model: PreTrainedModel) -> None:
    """Raise InputError unless a model has T5's encoder."""
    if not is_encoder_decoder(model) or not isinstance(model.get_encoder(), T5Stack):
        raise InputError(f"{model.config.model_type}: modular works on T5 only")


def _small_encoders(model: PreTrainedModel) -> list[SmallEncoder]:
    """Return the small encoders that a model has, oldest first."""
    return list(getattr(model.get_encoder(), NAME, []))


def _register(model: PreTrainedModel, encoders: list[SmallEncoder]) -> None:
    """Make small encoders part of a model's encoder."""
    encoder = model.get_encoder()
    if not isinstance(encoder, ModularStack):
        # constructed, though its parts are the old one's: a class's constructor tells the library what it can record
        with torch.device("meta"):
            new = ModularStack(encoder.config)
        for name, child in encoder.named_children():
            setattr(new, name, child)
        model.encoder = encoder = new.train(encoder.training)
    encoder.modular = nn.ModuleList(encoders)


def _description(config: PreTrainedConfig) -> dict[str, Any]:
    """Return what an encoder is built from."""
    return {name: getattr(config, name) for name in (*_WHOLE_NUMBERS, *_FRACTIONS, "feed_forward_proj")}


def _pretrained(name: str, vocab_size: int, weights: bool) -> T5Stack:
    """Return the encoder of the T5 in folder or Hub id ``name``; raise InputError if it does not fit.

    Without ``weights`` it is only built like that one.
    """
    try:
        config = AutoConfig.from_pretrained(name, trust_remote_code=False)
        if config.model_type != "t5":
            raise InputError(f"{name}: a {config.model_type}, no T5")
        if config.vocab_size != vocab_size:
            raise InputError(f"{name}: its vocabulary has {config.vocab_size} tokens, the model's {vocab_size}")
        if not weights:
            return T5EncoderModel(config).encoder
        return T5EncoderModel.from_pretrained(name, trust_remote_code=False, use_safetensors=True).encoder
    except InputError:
        raise
    except (OSError, ValueError, StrictDataclassError) as error:
        raise InputError(f"{name}: no T5 can be read there ({str(error).splitlines()[0]})") from None


def _read_options(options: dict[str, Any], model: PreTrainedModel) -> SmallEncoder:
    """Return the small encoder that a phase's options in a file describe, on the meta device."""
    if set(options) != {"small", "scale", "encoder"}:
        raise InputError("a phase of modular has the options small, scale, encoder")
    if type(options["scale"]) not in (int, float) or not isinstance(options["small"], str | None):
        raise InputError("scale or small of a phase of modular is of the wrong kind")
    scale = Modular(options["small"], options["scale"]).scale
    described = options["encoder"]
    if not isinstance(described, dict) or set(described) != {*_WHOLE_NUMBERS, *_FRACTIONS, "feed_forward_proj"}:
        raise InputError("encoder of a phase of modular does not describe one")
    for name, highest in _WHOLE_NUMBERS.items():
        if type(described[name]) is not int or not 1 <= described[name] <= highest:
            raise InputError(f"{name} of a small encoder is no whole number from 1 to {highest}")
    for name in _FRACTIONS:
        if type(described[name]) not in (int, float) or not 0 <= described[name] <= 10:
            raise InputError(f"{name} of a small encoder is no number from 0 to 10")
    if str(described["feed_forward_proj"]).removeprefix("gated-") not in ACT2FN:
        raise InputError("feed_forward_proj of a small encoder is no activation function")
    if described["vocab_size"] != model.config.vocab_size:
        raise InputError(
            f"a checkpoint of another model: its vocabulary has {described['vocab_size']} tokens, "
            f"this one's {model.config.vocab_size}"
        )
    try:
        with torch.device("meta"):
            encoder = T5Stack(T5Config(**described, is_encoder_decoder=False, use_cache=False))
            return SmallEncoder(encoder, model.config.d_model, scale)
    except (ValueError, StrictDataclassError) as error:
        raise InputError(f"no small encoder can be built as described ({str(error).splitlines()[0]})") from None


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Draw random numbers on the CPU from ``seed``, and leave those after the block as they would have been."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
