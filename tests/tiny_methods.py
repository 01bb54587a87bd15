"""Tiny models of every training method and of many architectures, for tests that treat all of them alike."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from peft import LoraConfig, get_peft_model

from temporalwiki.methods.k_adapter import KAdapter
from temporalwiki.methods.method import Phase
from temporalwiki.methods.modular import Modular

import tiny_expansions
import tiny_models


def sharpened(model: Any, std: float, seed: int = 0) -> Any:
    """Return a model with very uneven probabilities, so that tolerances hide no differences."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=std, generator=draw)
    return model.eval()


def _adapted(model: Any, kind: str, dora: bool) -> Any:
    target = {"gpt2": "c_attn", "llama": "q_proj", "t5": "q"}[kind]
    config = LoraConfig(target_modules=[target], use_dora=dora, init_lora_weights=False, fan_in_fan_out=kind == "gpt2")
    return get_peft_model(model, config)


def _heard(model: Any) -> Any:
    """Return a model whose new layers, which start without an effect, have one."""
    tiny_expansions.spread(model.k_adapter)
    return model


def with_method(name: str, model: Any, kind: str, folder: Path) -> Any:
    """Return a model as a method changes it."""
    methods: dict[str, Callable[[], Any]] = {
        "lora": lambda: _adapted(model, kind, dora=False),
        "dora": lambda: _adapted(model, kind, dora=True),
        "k_adapter": lambda: _heard(KAdapter(k=2, scale=2.0).prepare(model, Phase())),
        "modular": lambda: Modular(small=str(tiny_models.save("t5", folder)), scale=1.0).prepare(model, Phase()),
    }
    return methods[name]().eval()


METHODS = [(name, kind) for name in ("lora", "dora", "k_adapter") for kind in tiny_models.KINDS] + [("modular", "t5")]

SIZE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SHORT = {**SIZE, "intermediate_size": 48, "max_position_embeddings": 128}
GROUPED = {**SHORT, "num_key_value_heads": 2, "head_dim": 8}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
DELTA = {f"linear_{name}": 8 for name in ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim")}
WINDOW = {"sliding_window": 8}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    # positions counted from the mask (ALiBi)
    "Bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4},
    "Mpt": {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 128},
    # recurrent: ignores the mask
    "Mamba": {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
    "FalconMamba": {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
    "RecurrentGemma": {**SHORT, "num_hidden_layers": 3, "lru_width": 32, "attention_window_size": 8},
    "Qwen3Next": {**GROUPED, **EXPERTS, **DELTA, "layer_types": ["linear_attention", "full_attention"]},
    "Lfm2": {**GROUPED, "layer_types": ["conv", "full_attention"]},
    "FalconH1": {**GROUPED, "mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 8},
    # a sliding window shorter than a row, and logits that are capped
    "Mistral": {**GROUPED, **WINDOW},
    "Qwen2": {**GROUPED, **WINDOW, "use_sliding_window": True, "max_window_layers": 0},
    "Gemma2": {**GROUPED, **WINDOW},
    "Gemma3": {**GROUPED, **WINDOW},
    "GPTNeo": {**SHORT, "window_size": 8, "attention_types": [[["global", "local"], 1]]},
    # positions of all kinds, parallel layers, experts
    "OPT": {**SHORT, "ffn_dim": 48, "word_embed_proj_dim": 32},
    "GPTNeoX": SHORT,
    "GPTJ": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128, "rotary_dim": 4},
    "Qwen3": GROUPED,
    "Qwen3Moe": {**GROUPED, **EXPERTS},
    "Cohere": {**SHORT, "num_key_value_heads": 2},
}


def architecture(name: str, vocabulary: int, **changes: Any) -> Any:
    """Return a model of an architecture with random weights, the same every time."""
    kind = getattr(transformers, f"{name}TextConfig" if name == "Gemma3" else f"{name}Config")
    shape = ARCHITECTURES[name] | changes
    config = kind(vocab_size=vocabulary, bos_token_id=0, eos_token_id=1, pad_token_id=2, **shape)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return getattr(transformers, f"{name}ForCausalLM")(config)
