"""The work of a step is what PaLM's appendix B counts, worked out by hand for the models of the papers."""

import time
from typing import Any

import pytest
import torch
from transformers import (
    Gemma4ForCausalLM,
    Gemma4TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from temporalwiki.methods.k_adapter import KAdapter
from temporalwiki.methods.lora import LoRA
from temporalwiki.methods.method import Phase
from temporalwiki.methods.speed import Speed, Work, peak, work

WIDTH, LAYERS, LENGTH = 1280, 36, 512
# query, key, value and output; two of the feed-forward, four times as wide
LAYER = 4 * WIDTH**2 + 2 * 4 * WIDTH**2
BODY = LAYERS * LAYER  # 707,788,800
HEAD = 50257 * WIDTH  # the output matrix, which is the embedding as well; looking embeddings up costs nothing
ATTENTION = LAYERS * 2 * 2 * LENGTH * WIDTH  # scores and their sum of values, 2 FLOP a multiplication, forward


def gpt2_large() -> GPT2LMHeadModel:
    with torch.device("meta"):
        return GPT2LMHeadModel(GPT2Config(n_embd=WIDTH, n_layer=LAYERS, n_head=20))


def t5(d_model: int = 1024, heads: int = 16) -> T5ForConditionalGeneration:
    config = T5Config(d_model=d_model, d_kv=64, d_ff=4096, num_layers=24, num_heads=heads, vocab_size=32128)
    with torch.device("meta"):
        return T5ForConditionalGeneration(config)


def test_gpt2_large_trained_whole() -> None:
    """Six FLOP a weight: two forward, two for the gradient of its input, two for its own."""
    found = work(gpt2_large(), LENGTH, True)
    assert found == Work(0.0, 6 * (BODY + HEAD) + 3 * ATTENTION)
    assert found.decoder == 6 * 772_117_760 + 3 * 94_371_840 == 4_915_822_080


def test_the_length_counts_in_attention_alone() -> None:
    long, short = (work(gpt2_large(), length, True).decoder for length in (1024, 512))
    assert long - short == 3 * ATTENTION


def test_lora_saves_the_gradients_of_frozen_weights() -> None:
    model = LoRA().prepare(gpt2_large(), Phase())
    adapters = LAYERS * (8 * WIDTH + 3 * WIDTH * 8)  # two of rank 4 in one of rank 8, which is multiplied whole
    assert work(model, LENGTH, True) == Work(0.0, 4 * (BODY + HEAD) + 6 * adapters + 3 * ATTENTION)


def test_k_adapter_goes_back_through_its_own_layers_and_the_head_alone() -> None:
    model = KAdapter(k=2).prepare(gpt2_large(), Phase())
    found = work(model, LENGTH, KAdapter.gradients_through_base).decoder
    by_hand = 2 * BODY + ATTENTION + 2 * (6 * LAYER + 3 * ATTENTION / LAYERS) + 4 * HEAD
    assert found == pytest.approx(by_hand, rel=0.01)
    assert found < 0.5 * work(gpt2_large(), LENGTH, True).decoder


def test_an_untied_head_counts_as_a_tied_one() -> None:
    size = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}

    def llama(tied: bool) -> Any:
        with torch.device("meta"):
            config = LlamaConfig(vocab_size=1000, num_key_value_heads=2, tie_word_embeddings=tied, **size)
            return LlamaForCausalLM(config)

    # query and output 64 x 64, key and value 64 x 32, three of the feed-forward 64 x 128; attention 4 * 64 * 10
    body = 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128)
    expected = Work(0.0, 6 * (body + 64 * 1000) + 3 * 2 * 4 * 64 * 10)
    assert work(llama(True), 10, True) == work(llama(False), 10, gradients_through_base=True) == expected


ENCODER = 24 * (4 * 1024**2 + 2 * 1024 * 4096)
DECODER = 24 * (8 * 1024**2 + 2 * 1024 * 4096)
T5_HEAD = 32128 * 1024
T5_ATTENTION = 24 * 4 * 1024 * 350


def test_t5_large_trained_whole() -> None:
    assert work(t5(), 350, True) == Work(6 * ENCODER + 3 * T5_ATTENTION, 6 * (DECODER + T5_HEAD))


def test_t5_large_with_adapters_in_the_encoder_and_the_decoder_trained() -> None:
    """The original decoder does not run: peft trains a copy."""
    adapters = 24 * 2 * 4 * (1024 + 1024)
    found = work(LoRA().prepare(t5(), Phase()), 350, True)
    assert found.encoder == 4 * ENCODER + 6 * adapters + 3 * T5_ATTENTION
    assert found.decoder == 6 * DECODER + 4 * T5_HEAD


def test_attention_is_as_wide_as_its_heads() -> None:
    """T5-3B has 32 heads of 128 in a model of 1024: four times as wide. Here 32 of 64."""

    def attention(model: T5ForConditionalGeneration) -> float:
        return work(model, 2, True).encoder - work(model, 1, gradients_through_base=True).encoder

    assert attention(t5(heads=32)) == 3 * 24 * 4 * (32 * 64)


def test_rates_are_of_all_processes_and_start_afresh_at_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    speed = Speed(Work(encoder=2e9, decoder=3e9), peak=1e12, processes=4)
    speed.add(10, 20)
    speed.add(30, 0)
    now[0] += 2.0
    # 40 and 20 positions in 2 s, by four processes: 120 a second; 4 * (40 * 2 + 20 * 3) / 2 = 0.28 TFLOP a second,
    # 0.07 on each device of 1
    expected = {"seconds": 2.0, "tokens_per_second": 120.0, "model_tflops_per_second": 0.28, "mfu": 0.07}
    assert speed.rates() == expected
    now[0] += 1.0
    assert set(speed.rates().values()) == {1.0, 0.0}
    assert "mfu" not in Speed(Work(1.0, 1.0), peak=None, processes=1).rates()
    assert speed.rates()["tokens_per_second"] == 0.0  # in no time at all


# dense bf16, from the data sheets; None where it is not known
DEVICES = {
    "NVIDIA H200": 989e12,
    "NVIDIA H100 80GB HBM3": 989e12,
    "NVIDIA H100 PCIe": 756e12,
    "NVIDIA A100-SXM4-80GB": 312e12,
    "NVIDIA L4": 121e12,
    "NVIDIA L40S": 362e12,
    "NVIDIA GeForce RTX 4090": 165e12,
    "NVIDIA L40": 181e12,  # no L4, and no L40S
    "Tesla V100-SXM2-16GB": None,  # no bf16
}


@pytest.mark.parametrize(("name", "expected"), DEVICES.items(), ids=DEVICES)
def test_the_peak_of_a_device(name: str, expected: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: name)
    assert peak(torch.device("cuda")) == expected
    assert peak(torch.device("cpu")) is None


def test_layers_of_unequal_attention_are_counted_one_by_one() -> None:
    """Gemma 4: three layers of 4 heads of 8, and one of 4 heads of 16."""
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4}
    heads = {"num_key_value_heads": 2, "head_dim": 8, "global_head_dim": 16}
    config = Gemma4TextConfig(**size, **heads, vocab_size=99, vocab_size_per_layer_input=99)
    assert [config.per_layer_config[i].head_dim for i in range(4)] == [8, 8, 8, 16]
    model = Gemma4ForCausalLM(config)
    short, long = (work(model, length, True) for length in (32, 96))
    assert short is not None and long is not None
    assert long.decoder - short.decoder == 4 * (3 * 4 * 8 + 4 * 16) * 64 * 3
