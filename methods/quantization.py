"""Load a model with its frozen matrices in 4 bits, with bitsandbytes."""

import importlib.util

import torch
from peft import PeftModel
from transformers import BitsAndBytesConfig

from temporalwiki.base.errors import UsageError
from temporalwiki.methods.checkpoint import Checkpoint, load


def check_installed() -> None:
    """Raise UsageError if bitsandbytes is not installed."""
    if importlib.util.find_spec("bitsandbytes") is None:
        raise UsageError("--quantize needs the package bitsandbytes: pip install 'temporalwiki[quantize]'")


def quantized(reference: str) -> Checkpoint:
    """Load a checkpoint as QLoRA does (Dettmers et al. 2023): NF4, its constants in 8 bits, the rest in bf16.

    The output layer and the embeddings are part of the rest. Raises InputError if it cannot be loaded.
    """
    config = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )
    found = load(reference, torch.bfloat16, quantization_config=config)
    model = found.model.get_base_model() if isinstance(found.model, PeftModel) else found.model
    model.is_quantized = False  # else the library trains only the adapters of peft, no layers of K-Adapter
    for module in model.modules():
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False  # it repacks weights in evaluation, and then has no gradients
    return found
