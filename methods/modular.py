"""Modular: a small new encoder per phase, next to T5's frozen one.

To load a saved phase, attach it to a fresh copy of its base model::

    model = AutoModelForSeq2SeqLM.from_pretrained(base)
    attach(model, folder)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import torch
from huggingface_hub.errors import StrictDataclassError
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel, T5Config, T5EncoderModel
from transformers.activations import ACT2FN
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.t5.modeling_t5 import T5Stack

from temporalwiki.base.errors import InputError, first_line
from temporalwiki.base.options import option
from temporalwiki.methods.architecture import is_encoder_decoder, seeded, train_only_decoder
from temporalwiki.methods.checkpoint import load_model
from temporalwiki.methods.expansion import Expansion, attached, is_frozen, phase_options, set_expansion, to_expand
from temporalwiki.methods.method import Method, Model, Phase

NAME: Literal["modular"] = "modular"

_T5_SMALL = {"d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8}

_Width = Annotated[int, msgspec.Meta(ge=1, le=2**16)]
_Fraction = Annotated[float, msgspec.Meta(ge=0, le=10)]


class _EncoderOptions(msgspec.Struct, forbid_unknown_fields=True):
    """The configuration of a small encoder in ``expansion.json``, bounded so that no file can fill the memory."""

    vocab_size: Annotated[int, msgspec.Meta(ge=1, le=2**24)]
    d_model: _Width
    d_kv: _Width
    d_ff: Annotated[int, msgspec.Meta(ge=1, le=2**18)]
    num_layers: Annotated[int, msgspec.Meta(ge=1, le=1000)]
    num_heads: Annotated[int, msgspec.Meta(ge=1, le=2**12)]
    relative_attention_num_buckets: _Width
    relative_attention_max_distance: Annotated[int, msgspec.Meta(ge=1, le=2**24)]
    dropout_rate: _Fraction
    layer_norm_epsilon: _Fraction
    initializer_factor: _Fraction
    feed_forward_proj: str


class _SmallEncoderPhase(msgspec.Struct, forbid_unknown_fields=True):
    """The options of a phase in ``expansion.json``."""

    small: str | None
    scale: float
    encoder: _EncoderOptions


@dataclass(frozen=True)
class Modular(Method):
    """T5 with a second, small encoder over the same input (CKL section 4): encoder(x) + scale * projection(small(x)).

    The encoder and the shared embedding are frozen; the decoder is trained. Each later phase adds another small
    encoder and freezes the earlier ones. Their outputs are summed.
    """

    unsupported_architecture: ClassVar[str] = "decoder-only"
    gradients_through_base: ClassVar[bool] = False

    small: str | None = option(None, "T5 model with the pretrained small encoder (default: a new T5-small encoder)")
    scale: float = option(
        0.05, "factor of the output that the small encoder adds to the encoder's", above=0, below=inf
    )

    def prepare(self, model: Model, phase: Phase) -> PreTrainedModel:
        """Add the phase's small encoder; this phase trains it and the decoder.

        Raises InputError for a model that is not a T5 or has layers of another method, and if ``small`` is not a T5
        with the model's vocabulary.
        """
        model, expansion = to_expand(model, NAME)
        _check_t5(model)
        with seeded(phase.seed + len(expansion.phases)):
            encoder = self._small_encoder(model)
        train_only_decoder(model)
        _register(model, nn.ModuleList([*_small_encoders(model), encoder]))
        options = {"small": self.small, "scale": self.scale, "encoder": _description(encoder.stack.config)}
        set_expansion(model, expansion, options)
        return model

    def _small_encoder(self, model: PreTrainedModel) -> SmallEncoder:
        """Return a small encoder with ``model``'s vocabulary and all parameters trainable."""
        like = next(model.get_encoder().final_layer_norm.parameters())
        # always on the CPU, so that a seed gives the same weights on every device
        with torch.device("meta" if like.is_meta else "cpu"):
            if self.small is None:
                encoder = T5EncoderModel(T5Config(**{**_description(model.config), **_T5_SMALL})).encoder
            else:
                encoder = _pretrained(self.small, model.config.vocab_size, weights=not like.is_meta)
            small = SmallEncoder(encoder, model.config.d_model, self.scale)
        factor = encoder.config.initializer_factor
        nn.init.normal_(small.projection.weight, std=factor * encoder.config.d_model**-0.5)  # T5's rule
        return small.to(device=like.device, dtype=like.dtype).requires_grad_(True).train(model.training)


def attach(model: PreTrainedModel, folder: Path | str) -> PreTrainedModel:
    """Add the encoders in ``folder`` to their base model, in place; return the model with all parameters frozen.

    Raises InputError, and leaves the model unchanged, if the folder holds something else or fits another model.
    """
    _check_t5(model)

    def build(expansion: Expansion) -> nn.ModuleList:
        return nn.ModuleList([_encoder_of_phase(options, model) for options in expansion.phases])

    def register(model: PreTrainedModel, encoders: nn.ModuleList) -> None:
        like = next(model.get_encoder().final_layer_norm.parameters())
        _register(model, encoders.to_empty(device=like.device).to(like.dtype).train(model.training))

    return attached(model, Path(folder), NAME, build, register)


class SmallEncoder(nn.Module):
    """A small encoder with its own embedding, and a projection to the width of the large one."""

    def __init__(self, encoder: T5Stack, width: int, scale: float) -> None:
        """Use ``encoder`` and project its output to ``width``."""
        super().__init__()
        self.stack = encoder
        self.projection = nn.Linear(encoder.config.d_model, width, bias=False)
        self.scale = scale

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None) -> torch.Tensor:
        """Return the tensor to add to the large encoder's output (batch, length, width)."""
        hidden = self.stack(input_ids=input_ids, attention_mask=attention_mask, return_dict=True).last_hidden_state
        added: torch.Tensor = self.projection(hidden)
        return self.scale * added


class ModularStack(T5Stack):
    """T5's encoder with additional small encoders.

    This is a subclass and not a wrapper, so that all names in the model stay the same, including tied weights.
    """

    modular: nn.ModuleList

    def forward(
        self, input_ids: torch.Tensor | None = None, attention_mask: torch.Tensor | None = None, **kwargs: Any
    ) -> BaseModelOutput | tuple[Any, ...]:
        """Encode ``input_ids`` (batch, length); raise InputError for embeddings, which small encoders cannot use."""
        if input_ids is None:
            raise InputError("modular: the encoders need token ids, not embeddings")
        as_output = kwargs.pop("return_dict", self.config.return_dict)
        output = super().forward(input_ids=input_ids, attention_mask=attention_mask, return_dict=True, **kwargs)
        hidden: torch.Tensor = output.last_hidden_state
        # With gradient checkpointing, the embeddings' output requires gradients even in a frozen encoder. Only an
        # encoder that light-tuning has unfrozen needs them.
        hidden = hidden.detach() if is_frozen(self.final_layer_norm) else hidden
        for small in self.modular:
            added = small(input_ids, attention_mask).to(hidden.dtype)
            hidden = hidden + (added.detach() if is_frozen(small) else added)
        output.last_hidden_state = hidden
        if output.hidden_states is not None:
            output.hidden_states = (*output.hidden_states[:-1], hidden)
        result: BaseModelOutput | tuple[Any, ...] = output if as_output else output.to_tuple()
        return result


def _check_t5(model: PreTrainedModel) -> None:
    """Raise InputError unless a model has T5's encoder."""
    if not is_encoder_decoder(model) or not isinstance(model.get_encoder(), T5Stack):
        raise InputError(f"{model.config.model_type}: modular works only with T5")


def _small_encoders(model: PreTrainedModel) -> list[SmallEncoder]:
    """Return a model's small encoders, oldest first."""
    return list(getattr(model.get_encoder(), NAME, []))


def _register(model: PreTrainedModel, encoders: nn.ModuleList) -> None:
    """Add small encoders to a model's encoder."""
    encoder = model.get_encoder()
    if not isinstance(encoder, ModularStack):
        # the constructor also tells the library which outputs the class can record
        with torch.device("meta"):
            new = ModularStack(encoder.config)
        for name, child in encoder.named_children():
            setattr(new, name, child)
        model.encoder = encoder = new.train(encoder.training)
    encoder.modular = encoders


def _description(config: PreTrainedConfig) -> dict[str, Any]:
    """Return the options from which ``_encoder_of_phase`` builds an encoder again."""
    return {name: getattr(config, name) for name in _EncoderOptions.__struct_fields__}


def _pretrained(name: str, vocab_size: int, weights: bool) -> T5Stack:
    """Return the encoder of the T5 model ``name`` (folder or Hub id), without its weights unless ``weights``.

    Raises InputError if it is not a whole T5 or its vocabulary has another size.
    """
    model = load_model(name, device_map=None if weights else "meta")
    if model.config.model_type != "t5":
        raise InputError(f"{name}: a {model.config.model_type} model, not a T5")
    if model.config.vocab_size != vocab_size:
        raise InputError(f"{name}: its vocabulary has {model.config.vocab_size} tokens, the model's {vocab_size}")
    encoder: T5Stack = model.get_encoder()
    return encoder


def _encoder_of_phase(options: dict[str, Any], model: PreTrainedModel) -> SmallEncoder:
    """Return the small encoder that a phase's options describe, on the meta device; raise InputError for bad ones."""
    phase = phase_options(options, _SmallEncoderPhase)
    scale = Modular(phase.small, phase.scale).scale
    described = phase.encoder
    if described.feed_forward_proj.removeprefix("gated-") not in ACT2FN:
        raise InputError("feed_forward_proj of a small encoder is not an activation function")
    if described.vocab_size != model.config.vocab_size:
        raise InputError(
            f"a checkpoint of another model: its vocabulary has {described.vocab_size} tokens, "
            f"this one's {model.config.vocab_size}"
        )
    try:
        with torch.device("meta"):
            encoder = T5Stack(T5Config(**msgspec.structs.asdict(described), is_encoder_decoder=False, use_cache=False))
            return SmallEncoder(encoder, model.config.d_model, scale)
    except (ValueError, StrictDataclassError) as error:
        raise InputError(f"cannot build this small encoder ({first_line(error)})") from None
