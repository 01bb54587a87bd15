"""Attention that computes only the pairs of tokens within a document, for rows of several documents.

The default attention of `transformers` computes all pairs of a row, and masks pairs that belong to two documents.
"""

from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.modeling_flash_attention_utils import prepare_fa_kwargs_from_position_ids
from transformers.utils import is_flash_attn_2_available, is_flash_attn_3_available

from temporalwiki.base.errors import UsageError, first_line

_FLASH = "flash_attention_"
_PACKAGES = {
    "flash_attention_2": ("flash-attn", is_flash_attn_2_available),
    "flash_attention_3": ("flash-attn-3", is_flash_attn_3_available),
}
_DROPOUTS = ("attn_pdrop", "attention_dropout")  # their names in configurations


def check_kernels(name: str, precision: str) -> None:
    """Raise UsageError if this machine cannot run the kernels that `transformers` calls ``name``."""
    option = f"--attention {name}"
    if not torch.cuda.is_available():
        raise UsageError(f"{option}: needs a GPU")
    if name in _PACKAGES:
        package, available = _PACKAGES[name]
        if not available():  # the library would download kernels
            raise UsageError(f"{option}: needs the package {package}, which is not installed")
        if precision == "fp32":
            raise UsageError(f"{option}: computes in bf16 or fp16 only, so not with --precision fp32")


def set_attention(model: PreTrainedModel, name: str) -> None:
    """Let a model compute attention with the kernels ``name``, which ``check_kernels`` has found.

    Raises UsageError if they do not support the model, or its dropout.
    """
    option, config = f"--attention {name}", model.config.get_text_config(decoder=True)
    if model.config.is_encoder_decoder:
        raise UsageError(f"{option}: only for decoder-only models, whose rows hold several documents")
    rate = max(getattr(config, dropout, 0) or 0 for dropout in _DROPOUTS)
    if name != "flash_attention_2" and rate:
        raise UsageError(
            f"{option}: has no dropout, but the model's configuration asks for {rate:g} in attention; use "
            "flash_attention_2, or set it to 0"
        )
    try:
        model.set_attn_implementation(name)
    except (ImportError, ValueError) as error:
        raise UsageError(f"{option}: {first_line(error)}") from None
    if model.config._attn_implementation != name:
        raise UsageError(f"{option}: {model.config.model_type} cannot change its attention")


def is_flash(model: nn.Module) -> bool:
    """Return whether a decoder-only model has a flash kernel, which reads rows as ``one_row`` makes them."""
    attention = str(getattr(model.config, "_attn_implementation", ""))
    return attention.startswith(_FLASH) and not model.config.is_encoder_decoder


def one_row(batch: Any) -> dict[str, Any]:
    """Return a batch as one row, with the places where documents begin, as flash kernels need them.

    With several rows, they ignore where documents begin.
    """
    flat = {name: tensor.reshape(1, -1) for name, tensor in batch.items()}
    (begins, _), _ = prepare_fa_kwargs_from_position_ids(flat["position_ids"])
    longest = batch["position_ids"].shape[1]  # at most: the real maximum would make the GPU wait
    return flat | {"cu_seq_lens_q": begins, "cu_seq_lens_k": begins, "max_length_q": longest, "max_length_k": longest}
