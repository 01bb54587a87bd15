"""The speed of a run: tokens and model FLOPs per second, and the share of the device's peak (MFU) if it is known."""

import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from temporalwiki.methods.architecture import entries, unread

# Part of a device's name -> its dense bf16 peak in FLOP/s, from the vendors' data sheets. The first match counts.
PEAKS = {
    "H200": 989e12,
    "H100 PCIe": 756e12,
    "H100": 989e12,
    "B200": 2250e12,
    "A100": 312e12,
    "L40S": 362e12,
    "L40": 181e12,
    "L4": 121e12,
    "A10G": 70e12,
    "RTX 4090": 165e12,
}


@dataclass(frozen=True)
class Work:
    """FLOP per position (token) in each part of the model, forward and backward."""

    encoder: float
    decoder: float


def work(model: nn.Module, sequence_length: int, gradients_through_base: bool) -> Work | None:
    """Return the model FLOP per position in a training step, as MFU counts them (PaLM, appendix B).

    A matrix with n entries costs 2n forward, 2n for the gradient of its input, and 2n for its own gradient if it is
    trained. Attention costs 4 * width * length per layer forward and twice that backward. If gradients do not flow
    back through frozen layers (``gradients_through_base`` is False), the input gradients of frozen matrices and the
    backward pass of attention are not counted. Recomputed activations are never counted, nor are parts that text does
    not pass through, such as an image encoder. The result is None for a model without attention, or whose
    configuration has other names for its sizes.
    """
    config = model.config.get_text_config(decoder=True)
    try:
        head = config.vocab_size * (getattr(config, "hidden_size", None) or config.d_model)
        layers = getattr(config, "num_hidden_layers", None) or config.num_layers
        width = sum(_width(config.per_layer_config[i]) for i in range(layers))  # Gemma 4's layers differ
    except AttributeError:
        return None
    encoder_decoder = model.config.is_encoder_decoder
    parts = {"encoder": 0.0, "decoder": 0.0}
    skipped = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    skipped |= {id(p) for part in unread(model) for p in part.parameters()}
    for name, p in model.named_parameters():
        # peft trains a copy of some modules and does not run the original
        if p.dim() < 2 or id(p) in skipped or "lm_head" in name or ".original_module." in name:
            continue
        part = "encoder" if encoder_decoder and ".decoder." not in f".{name}" else "decoder"
        parts[part] += entries(p) * (2 + 2 * (gradients_through_base or p.requires_grad) + 2 * p.requires_grad)
    ends = [m for m in (model.get_input_embeddings(), model.get_output_embeddings()) if m is not None]
    head_trained = any(p.requires_grad for m in ends for p in m.parameters())
    parts["decoder"] += head * (4 + 2 * head_trained)
    attention = 4 * width * sequence_length * (3 if gradients_through_base else 1)
    parts["encoder" if encoder_decoder else "decoder"] += attention
    return Work(parts["encoder"], parts["decoder"])


def _width(layer: Any) -> int:
    """Return the width of the attention of a layer with this configuration."""
    of_head = getattr(layer, "d_kv", None) or getattr(layer, "head_dim", None)
    return int(layer.num_attention_heads * of_head if of_head else layer.hidden_size)


def peak(device: torch.device) -> float | None:
    """Return the device's dense bf16 peak in FLOP/s, or None if it is unknown."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((flops for part, flops in PEAKS.items() if part in name), None)


class Speed:
    """Measures the rates of a run since the last call of ``rates``."""

    def __init__(self, work: Work | None, peak: float | None, processes: int) -> None:
        """``peak`` is the peak of one process's device. Without ``work``, the rates are of tokens only."""
        self.work, self.peak, self.processes = work, peak, processes
        self.encoder = self.decoder = 0
        self.since = time.perf_counter()

    def add(self, encoder: int, decoder: int) -> None:
        """Count the positions of a micro-batch of this process."""
        self.encoder += encoder
        self.decoder += decoder

    def rates(self) -> dict[str, float]:
        """Return the seconds since the last call, and the rates of all processes in this time."""
        now = time.perf_counter()
        seconds, self.since = max(now - self.since, 1e-9), now
        rates = {"tokens_per_second": round(self.processes * (self.encoder + self.decoder) / seconds, 1)}
        rates["seconds"] = round(seconds, 3)
        if self.work is not None:
            flops = self.processes * (self.encoder * self.work.encoder + self.decoder * self.work.decoder) / seconds
            rates["model_tflops_per_second"] = round(flops / 1e12, 4)
            if self.peak:
                rates["mfu"] = round(flops / self.processes / self.peak, 4)
        self.encoder = self.decoder = 0
        return rates
