"""What a method trains in the papers' models, counted by hand; CKL's table 2 has T5-large."""

from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration

from temporalwiki.methods.architecture import total, trainable
from temporalwiki.methods.k_adapter import KAdapter
from temporalwiki.methods.lora import LoRA
from temporalwiki.methods.method import Method, Phase
from temporalwiki.methods.modular import Modular

# T5-large: attention, feed-forward, two norms of a layer of the encoder; the decoder's have attention to the encoder
LAYER = 4 * 1024 * 1024 + 2 * 1024 * 4096 + 2 * 1024
DECODER = 24 * (8 * 1024 * 1024 + 2 * 1024 * 4096 + 3 * 1024) + 32 * 16 + 1024  # with its positions and final norm
T5 = 32128 * 1024 + 24 * LAYER + 32 * 16 + 1024 + DECODER
T5_LORA = 24 * 2 * 4 * (1024 + 1024)  # layers, query and value, rank, in and out
# six layers of T5-small, their positions, final norm and embedding, and the projection
SMALL = 6 * (4 * 512 * 512 + 2 * 512 * 2048 + 2 * 512) + 32 * 8 + 512 + 32128 * 512 + 512 * 1024
# GPT-2 large: c_attn, attention's c_proj, c_fc, the feed-forward's c_proj, all with biases; two norms
GPT2_LAYER = 1280 * 3840 + 3840 + 1280 * 1280 + 1280 + 1280 * 5120 + 5120 + 5120 * 1280 + 1280 + 4 * 1280
# query and value have rank 4 each, in one adapter of rank 8 to query, key and value
GPT2_LORA, GPT2_FUSED = 36 * 2 * 4 * (1280 + 1280), 36 * 8 * (1280 + 3840)
# method -> the formula of what is trained and its value, and of what is added
SIZES: dict[str, dict[str, tuple[Method, int, int, int]]] = {
    "t5": {
        "lora": (LoRA(), T5_LORA + DECODER, 403_121_664, T5_LORA),
        "k_adapter, 2": (KAdapter(k=2), DECODER + 2 * LAYER + 1024, 427_899_392, 2 * LAYER + 1024),
        "k_adapter, 3": (KAdapter(k=3), DECODER + 3 * LAYER + 1024, 440_484_352, 3 * LAYER + 1024),
        "modular": (Modular(), DECODER + SMALL, 438_583_552, SMALL),
    },
    "gpt2": {
        "lora": (LoRA(), GPT2_LORA, 737_280, GPT2_FUSED),
        "k_adapter": (KAdapter(), 2 * GPT2_LAYER + 2 * 1280, 39_357_440, 2 * GPT2_LAYER + 2 * 1280),
    },
}


def large(kind: str) -> Any:
    with torch.device("meta"):
        if kind == "gpt2":
            return GPT2LMHeadModel(GPT2Config(n_embd=1280, n_layer=36, n_head=20))
        sizes = {"d_model": 1024, "d_kv": 64, "d_ff": 4096, "num_layers": 24, "num_heads": 16}
        return T5ForConditionalGeneration(T5Config(vocab_size=32128, **sizes))


@pytest.mark.parametrize(("kind", "case"), [(kind, case) for kind, of in SIZES.items() for case in of])
def test_a_method_trains_what_the_papers_say(kind: str, case: str) -> None:
    method, trained, number, added = SIZES[kind][case]
    model = large(kind)
    assert total(model) == {"t5": T5, "gpt2": 774_030_080}[kind]
    model = method.prepare(model, Phase())
    assert trainable(model) == trained == number
    assert total(model) == {"t5": 737_668_096, "gpt2": 774_030_080}[kind] + added
