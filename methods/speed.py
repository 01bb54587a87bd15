"""How fast a run is: tokens a second, model FLOP a second, and MFU where the device's peak is known."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import nn

# Dense bf16 peak in FLOP/s by a part of the device's name, from the vendors' data sheets; the first match counts.
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
    """FLOP of one position (token) through a part of the model, forward and backward."""

    encoder: float
    decoder: float


def work(model: nn.Module, sequence_length: int, through_base: bool) -> Work:
    """Count a training step's model FLOP a position, as MFU does (PaLM, appendix B).

    A matrix of n entries costs 2n forward, 2n for the gradient of its input and 2n for its own where it is trained;
    attention costs 4 * width * length a layer forward and twice that backward. ``through_base`` tells whether
    gradients flow back through layers that are not trained. Recomputed activations are not counted.
    """
    config = model.config
    head = config.vocab_size * (getattr(config, "hidden_size", None) or config.d_model)
    parts = {"encoder": 0.0, "decoder": 0.0}
    embeddings = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    for name, p in model.named_parameters():
        # peft keeps the parts that it trains in a copy, and does not run the original
        if p.dim() < 2 or id(p) in embeddings or "lm_head" in name or ".original_module." in name:
            continue
        part = "encoder" if config.is_encoder_decoder and ".decoder." not in f".{name}" else "decoder"
        parts[part] += p.numel() * (2 + 2 * (through_base or p.requires_grad) + 2 * p.requires_grad)
    head_trained = any(
        p.requires_grad for m in (model.get_input_embeddings(), model.get_output_embeddings()) for p in m.parameters()
    )
    parts["decoder"] += head * (4 + 2 * head_trained)
    of_head = getattr(config, "d_kv", None) or getattr(config, "head_dim", None)
    width = config.num_attention_heads * of_head if of_head else config.hidden_size
    layers = getattr(config, "num_hidden_layers", None) or config.num_layers
    attention = 4 * width * sequence_length * layers * (3 if through_base else 1)
    parts["encoder" if config.is_encoder_decoder else "decoder"] += attention
    return Work(parts["encoder"], parts["decoder"])


def peak(device: torch.device) -> float | None:
    """Return the device's dense bf16 peak in FLOP/s, None where it is not known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((flops for part, flops in PEAKS.items() if part in name), None)


class Speed:
    """Counts positions and time between two looks."""

    def __init__(self, work: Work, peak: float | None, processes: int) -> None:
        """``peak`` is that of one process's device."""
        self.work, self.peak, self.processes = work, peak, processes
        self.encoder = self.decoder = 0
        self.since = time.perf_counter()

    def add(self, encoder: int, decoder: int) -> None:
        """Count the positions of a micro-batch of this process."""
        self.encoder += encoder
        self.decoder += decoder

    def look(self) -> dict[str, float]:
        """Return the rates of all processes since the last look, and start afresh."""
        now = time.perf_counter()
        seconds, self.since = max(now - self.since, 1e-9), now
        flops = self.processes * (self.encoder * self.work.encoder + self.decoder * self.work.decoder) / seconds
        rates = {
            "tokens_per_second": round(self.processes * (self.encoder + self.decoder) / seconds, 1),
            "model_tflops_per_second": round(flops / 1e12, 4),
        }
        if self.peak:
            rates["mfu"] = round(flops / self.processes / self.peak, 4)
        self.encoder = self.decoder = 0
        return rates
