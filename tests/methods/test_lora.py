"""LoRA: adapters only on query and value, as if they were separate, and a new block of ranks in each phase."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from peft import IA3Config, LoraConfig, PeftModel, get_peft_model
from peft.tuners.lora import LoraLayer
from torch import nn
from transformers import (
    GPTBigCodeConfig,
    GPTBigCodeForCausalLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    TrainingArguments,
)

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.methods.architecture import total, trainable
from temporalwiki.methods.dora import DoRA
from temporalwiki.methods.lora import LoRA, adapters
from temporalwiki.methods.method import Phase
from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.trainer import ContinualTrainer, training_arguments

import tiny_methods
import tiny_models
from a_folder import contents
from tiny_expansions import VOCABULARY, base, logits, train

WIDTH, LAYERS = 32, 4
KINDS = tiny_models.KINDS


def saved(method: LoRA, model: PeftModel, folder: Path) -> Path:
    method.save(model, folder)
    return folder


def load(kind: str, folder: Path) -> PeftModel:
    """Load a checkpoint as a user of peft does, on the original base model."""
    return PeftModel.from_pretrained(base(kind), folder)


def matrices(model: PeftModel) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """A (rank, in) and B (out, rank) of each adapter, as they are now."""
    return [
        (layer.lora_A["default"].weight.detach().clone(), layer.lora_B["default"].weight.detach().clone())
        for layer in adapters(model)
    ]


# -- what is trained ---------------------------------------------------------------------------------------------


SITES = {
    "gpt2": {f"transformer.h.{i}.attn.c_attn" for i in range(LAYERS)},
    "llama": {f"model.layers.{i}.self_attn.{part}_proj" for i in range(LAYERS) for part in "qv"},
    "t5": {f"encoder.block.{i}.layer.0.SelfAttention.{part}" for i in range(LAYERS) for part in "qv"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_adapters_sit_on_query_and_value_and_the_rest_of_a_decoder_only_model_is_frozen(kind: str) -> None:
    model = LoRA().prepare(base(kind), Phase())
    trained = {name.removeprefix("base_model.model.") for name, p in model.named_parameters() if p.requires_grad}
    lora = {name for name in trained if ".lora_" in name}
    assert {name.split(".lora_")[0] for name in lora} == SITES[kind]
    rest = {name.replace(".modules_to_save.default", "") for name in trained - lora}
    own = [name for name, _ in base(kind).named_parameters()]
    decoder = {name for name in own if name.startswith(("decoder.block.", "decoder.final_layer_norm."))}
    assert rest == (decoder if kind == "t5" else set())


def test_the_query_of_grouped_heads_is_wider_than_the_value() -> None:
    model = LoRA(rank=3).prepare(base("llama"), Phase())  # two of four heads have keys and values
    assert trainable(model) == LAYERS * (3 * (32 + 32) + 3 * (32 + 16))


# -- GPT-2: two adapters in one ----------------------------------------------------------------------------------


class Separate:
    """Adapters of GPT-2's query and value as LoRA's paper has them: q += x A_q^T B_q^T * alpha / rank, v likewise."""

    def __init__(self, scale: float, start: list[tuple[torch.Tensor, ...]]) -> None:
        self.model = base("gpt2").requires_grad_(False)
        self.adapters = [tuple(nn.Parameter(tensor.clone()) for tensor in four) for four in start]
        for block, (a_q, b_q, a_v, b_v) in zip(self.model.transformer.h, self.adapters, strict=True):

            def add(module: Any, inputs: Any, out: Any, a_q=a_q, b_q=b_q, a_v=a_v, b_v=b_v) -> torch.Tensor:
                query, key, value = out.split(WIDTH, dim=-1)
                (x,) = inputs
                return torch.cat([query + x @ a_q.T @ b_q.T * scale, key, value + x @ a_v.T @ b_v.T * scale], dim=-1)

            block.attn.c_attn.register_forward_hook(add)
        self.model.extra = nn.ParameterList(p for four in self.adapters for p in four)


def apart(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """A_q, B_q, A_v, B_v of a fused adapter of one phase; the rest of its B must be nothing."""
    half = a.shape[0] // 2
    assert not b[WIDTH : 2 * WIDTH].any(), "the key moved"
    assert not b[:WIDTH, half:].any(), "the query reads what is the value's"
    assert not b[2 * WIDTH :, :half].any(), "the value reads what is the query's"
    return a[:half], b[:WIDTH, :half], a[half:], b[2 * WIDTH :, half:]


@pytest.mark.parametrize(("rank", "alpha"), [(4, 32.0), (1, 1.0), (3, 2.0)])
def test_a_fused_adapter_of_twice_the_rank_trains_like_two_separate_ones(rank: int, alpha: float) -> None:
    fused = LoRA(rank=rank, alpha=alpha).prepare(base("gpt2"), Phase())
    separate = Separate(alpha / rank, [apart(a, b) for a, b in matrices(fused)])
    train(fused, 6)
    train(separate.model, 6)
    torch.testing.assert_close(logits(fused), logits(separate.model), rtol=1e-4, atol=1e-4)
    assert (logits(fused) - logits(base("gpt2"))).abs().max() > 0.005  # it did learn
    for ours, theirs in zip([apart(a, b) for a, b in matrices(fused)], separate.adapters, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one, other.detach(), rtol=1e-3, atol=1e-4)


# -- saving and loading ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_adapter_has_the_same_bytes_with_any_hash_seed(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib, torch, tiny_models; from temporalwiki.methods.lora import LoRA\n"
        "from temporalwiki.methods.method import Phase\n"
        "torch.manual_seed(0); model = tiny_models.model('llama', 300)\n"
        "LoRA().save(LoRA().prepare(model, Phase()), pathlib.Path(sys.argv[1]))"
    )
    paths = os.pathsep.join(str(path) for path in sys.path if path)
    environment = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "other")], env=environment, check=True)
    torch.manual_seed(0)
    model = tiny_models.model("llama", 300)
    LoRA().save(LoRA().prepare(model, Phase()), tmp_path / "here")  # with this process's hash seed
    assert contents(tmp_path / "here") == contents(tmp_path / "other")


@pytest.mark.parametrize("kind", KINDS)
def test_the_alpha_of_the_authors_code_is_kept(kind: str, tmp_path: Path) -> None:
    method = LoRA(rank=4, alpha=1.0)
    model = method.prepare(base(kind), Phase())
    assert {layer.scaling["default"] for layer in adapters(model)} == {0.25}
    assert {layer.scaling["default"] for layer in adapters(load(kind, saved(method, model, tmp_path)))} == {0.25}


# -- later phases ------------------------------------------------------------------------------------------------


def first_phase(kind: str, folder: Path, **options: Any) -> tuple[PeftModel, torch.Tensor]:
    """The loaded checkpoint of a first phase, and what it answers."""
    method = LoRA(**{"rank": 2, **options})
    model = train(method.prepare(base(kind), Phase()), 3)
    loaded = load(kind, saved(method, model, folder))
    return loaded, logits(loaded)


@pytest.mark.parametrize("kind", KINDS)
def test_weight_decay_spares_matrices_of_which_a_part_is_held(kind: str, tmp_path: Path) -> None:
    """Decay is decoupled from gradients: it would shrink what gets none."""
    loaded, _ = first_phase(kind, tmp_path / "1")
    options = TrainOptions(weight_decay=0.1)
    method = LoRA(rank=2)
    arguments = training_arguments(options, "fp32", tmp_path, 1, "lora", TrainingArguments)
    trainer = ContinualTrainer(model=method.prepare(loaded, Phase()), args=arguments)
    trainer.set_up(options, method)
    decay = {p: group["weight_decay"] for group in trainer.create_optimizer().param_groups for p in group["params"]}
    held = [of["default"].weight for layer in adapters(loaded) for of in (layer.lora_A, layer.lora_B)]
    assert held
    assert all(decay[weight] == 0 for weight in held)
    assert kind != "t5" or 0.1 in decay.values()  # the decoder's


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_phase_trains_new_ranks_of_one_adapter_and_holds_the_first(kind: str, tmp_path: Path) -> None:
    method = LoRA(rank=2)
    loaded, first = first_phase(kind, tmp_path / "1")
    before, once = matrices(loaded), method.prepare(base(kind), Phase())
    rank = before[0][0].shape[0]
    assert rank == (4 if kind == "gpt2" else 2)
    model = method.prepare(loaded, Phase())
    assert trainable(model) == trainable(once)  # its own ranks alone
    more = sum(a.numel() + b.numel() for a, b in matrices(once))
    assert total(model) == total(once) + more == total(base(kind)) + 2 * more
    frozen = {name: p.detach().clone() for name, p in model.named_parameters() if not p.requires_grad}
    start = matrices(model)
    train(model, 5)
    for (a, b), (first_a, first_b), (start_a, _) in zip(matrices(model), before, start, strict=True):
        assert a.shape[0] == b.shape[1] == 2 * rank
        assert not torch.equal(a[rank:], start_a[rank:])
        assert b[:, rank:].any()
        if kind == "gpt2":
            apart(a[rank:], b[:, rank:])
        assert torch.equal(a[:rank], first_a)
        assert torch.equal(b[:, :rank], first_b)
    parameters = dict(model.named_parameters())
    assert all(torch.equal(parameters[name], value) for name, value in frozen.items())
    # on the original base
    again = load(kind, saved(method, model, tmp_path / "2"))
    one, two = (json.loads((tmp_path / phase / "adapter_config.json").read_text()) for phase in "12")
    assert two["r"] == 2 * one["r"]
    assert two["lora_alpha"] / two["r"] == one["lora_alpha"] / one["r"] == 16  # 32 / 2
    expected = logits(model)
    torch.testing.assert_close(logits(again), expected, rtol=1e-5, atol=1e-5)
    assert (expected - first).abs().max() > 1e-3
    for grown in (again, model):
        torch.testing.assert_close(logits(grown.merge_and_unload()), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_each_phase_begins_in_directions_of_its_own_in_every_layer(kind: str, tmp_path: Path) -> None:
    """Months are trained with one seed. Ranks that read the same directions as earlier ones add little to them."""
    method = LoRA(rank=2)
    model = method.prepare(base(kind), Phase())
    for phase in range(2):
        model = method.prepare(load(kind, saved(method, model, tmp_path / str(phase))), Phase())
    blocks = [block for a, _ in matrices(model) for block in a.chunk(3)]
    assert len({block.shape for block in blocks}) == 1
    assert len({block.numpy().tobytes() for block in blocks}) == len(blocks)


# (rank, alpha) of the second phase after (2, 16), and the alpha that fits
SCALES = {"another alpha": (2, 32, 16), "another rank": (4, 16, 32), "the authors'": (2, 1, 16)}


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@pytest.mark.parametrize(("rank", "alpha", "fitting"), SCALES.values(), ids=SCALES)
def test_phases_have_one_scale(kind: str, rank: int, alpha: float, fitting: int, tmp_path: Path) -> None:
    loaded, _ = first_phase(kind, tmp_path, rank=2, alpha=16)
    with pytest.raises(UsageError, match=f"use alpha {fitting}$"):
        LoRA(rank=rank, alpha=alpha).prepare(loaded, Phase())


def test_an_adapter_made_with_peft_alone_can_be_gone_on_with(tmp_path: Path) -> None:
    targets = ["q_proj", "v_proj"]
    own = get_peft_model(base("llama"), LoraConfig(r=4, lora_alpha=8, target_modules=targets, init_lora_weights=False))
    own.save_pretrained(tmp_path)
    loaded = load("llama", tmp_path)
    before = matrices(loaded)
    model = train(LoRA(rank=2, alpha=4).prepare(loaded, Phase()), 3)
    for (a, b), (first_a, first_b) in zip(matrices(model), before, strict=True):
        assert torch.equal(a[:4], first_a)
        assert torch.equal(b[:, :4], first_b)
        assert a.shape[0] == 6
    method = LoRA(rank=2, alpha=4)
    again = load("llama", saved(method, model, tmp_path / "2"))
    torch.testing.assert_close(logits(again), logits(model), rtol=1e-5, atol=1e-5)


# -- what it does not know ---------------------------------------------------------------------------------------


def neox() -> Any:
    tiny = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
    return GPTNeoXForCausalLM(GPTNeoXConfig(vocab_size=50, bos_token_id=0, eos_token_id=1, **tiny))


def big_code() -> Any:
    """The c_attn of GPTBigCode (StarCoder) is a Linear, and its key and value have one head each."""
    config = GPTBigCodeConfig(n_embd=32, n_layer=2, n_head=4, vocab_size=50, bos_token_id=0, eos_token_id=1)
    return GPTBigCodeForCausalLM(config)


def ia3() -> Any:
    config = IA3Config(target_modules=["k_proj"], feedforward_modules=[], task_type="CAUSAL_LM")
    return get_peft_model(base("llama"), config)


def stabilised() -> Any:
    """Its scale is alpha / sqrt(rank), so new ranks would change the scale of earlier ones."""
    config = LoraConfig(r=4, lora_alpha=8, use_rslora=True, target_modules=["q_proj", "v_proj"])
    return get_peft_model(base("llama"), config)


UNKNOWN = {
    neox: "gpt_neox",
    big_code: "gpt_bigcode: no query and value projections",
    ia3: "another peft method",
    stabilised: "an adapter with rslora",
}


@pytest.mark.parametrize(("make", "said"), UNKNOWN.items())
def test_models_and_adapters_that_it_does_not_know_are_refused(make: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        LoRA(rank=4, alpha=8).prepare(make(), Phase())


@settings(max_examples=10)
@given(first=st.integers(1, 3), more=st.integers(1, 3), seed=st.integers(0, 100))
def test_any_ranks_can_follow_each_other(first: int, more: int, seed: int) -> None:
    """With one scale: alpha is four times the rank."""
    torch.manual_seed(seed)
    model = LoRA(rank=first, alpha=4 * first).prepare(base("gpt2"), Phase(seed=seed))
    with torch.no_grad():
        for layer in adapters(model):
            a, b = layer.lora_A["default"], layer.lora_B["default"]
            b.weight.normal_().mul_(b.trained)
            a.weight.normal_()
    expected = logits(model.double())  # weights as large as these cost fp32 more digits than that
    model = LoRA(rank=more, alpha=4 * more).prepare(model, Phase(seed=seed))
    torch.testing.assert_close(logits(model.double()), expected, rtol=1e-4, atol=1e-4)
    assert trainable(model) == LAYERS * 2 * more * (WIDTH + WIDTH)


# -- other layers than query and value --------------------------------------------------------------------------

BLOCKS = {  # linear layers of a block of the decoder-only model or the encoder
    "gpt2": ("c_attn", "attn.c_proj", "c_fc", "mlp.c_proj"),
    "llama": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
    "t5": ("q", "k", "v", "o", "wi", "wo"),
}


def adapted(model: Any) -> dict[str, tuple[int, int]]:
    """Return the inputs and outputs of each adapted layer, by name."""
    found = {}
    for name, layer in model.named_modules():
        if isinstance(layer, LoraLayer):
            a, b = layer.lora_A["default"], layer.lora_B["default"]
            assert a.trained[-2:].all()  # rank 2
            assert b.trained[:, -2:].all()
            found[name] = (a.weight.shape[1], b.weight.shape[0])
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_all_linear_layers_of_the_blocks_are_adapted(kind: str, tmp_path: Path) -> None:
    method, names = LoRA(rank=2, target=("all-linear",)), BLOCKS[kind]
    model = method.prepare(base(kind), Phase())
    found = adapted(model)
    sizes = tiny_models.model(kind, VOCABULARY).state_dict()
    layers = len(found) // len(names)
    assert layers > 1
    for part in names:
        of_part = {name: size for name, size in found.items() if name.endswith(f".{part}")}
        assert len(of_part) == layers
        for name, size in of_part.items():
            shape = tuple(sizes[f"{name.removeprefix('base_model.model.')}.weight"].shape)
            assert size == (shape if kind == "gpt2" else shape[::-1])  # GPT-2's weights are (inputs, outputs)
    before = logits(train(model, 3))
    loaded = load(kind, saved(method, model, tmp_path))
    torch.testing.assert_close(logits(loaded), before, rtol=1e-4, atol=1e-4)
    again = LoRA(rank=2).prepare(loaded, Phase())  # without the option, the layers of the checkpoint
    assert adapted(again) == found
    torch.testing.assert_close(logits(again), before, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("family", "target", "expected"),
    [
        ("OPT", None, {"q_proj", "v_proj"}),
        ("Lfm2", None, {"q_proj", "v_proj"}),
        ("Lfm2", ("w1", "in_proj"), {"w1", "in_proj"}),
        ("Mamba", ("in_proj",), {"in_proj"}),
        ("Bloom", ("query_key_value",), {"query_key_value"}),
        ("Mpt", ("all-linear",), {"Wqkv", "out_proj", "up_proj", "down_proj"}),
    ],
)
def test_layers_of_any_decoder_are_adapted(
    family: str, target: tuple[str, ...] | None, expected: set[str], tmp_path: Path
) -> None:
    """Also of models whose list of layers has an unusual name or no norm after it."""
    start = tiny_methods.architecture(family, 99)
    before = logits(start)
    model = LoRA(rank=2, target=target).prepare(start, Phase())
    assert {name.rpartition(".")[2] for name in adapted(model)} == expected
    assert torch.equal(logits(model), before)
    for name, part in model.named_parameters():
        if "lora_" in name:
            assert part.requires_grad
            nn.init.normal_(part)
    changed = logits(model)
    assert not torch.allclose(changed, before, atol=1e-3)
    LoRA().save(model, tmp_path)
    loaded = PeftModel.from_pretrained(tiny_methods.architecture(family, 99), tmp_path)
    torch.testing.assert_close(logits(loaded), changed)


@pytest.mark.parametrize(
    ("kind", "target", "said"),
    [
        ("llama", "q_prj", r"no linear layer 'q_prj' \(did you mean q_proj\?\); there are q_proj, k_proj, v_proj, o_"),
        ("gpt2", "q_proj", r"no linear layer 'q_proj'.*; there are c_attn, c_proj, c_fc$"),
        ("t5", "lm_head", r"no linear layer 'lm_head'; there are q, k, v, o, wi, wo$"),
    ],
)
def test_an_unknown_layer_is_answered_with_those_that_exist(kind: str, target: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        LoRA(target=(target,)).prepare(base(kind), Phase())


def test_a_layer_that_peft_cannot_adapt_is_named() -> None:
    with pytest.raises(UsageError, match=r"^--target: .*'out_proj' is incompatible with Mamba-based models"):
        LoRA(target=("all-linear",)).prepare(tiny_methods.architecture("Mamba", 99), Phase())


@pytest.mark.parametrize("method", [LoRA, DoRA])
def test_a_later_phase_cannot_adapt_other_layers(method: type[LoRA]) -> None:
    model = method(rank=2).prepare(base("llama"), Phase())
    for target in (("q_proj",), ("all-linear",)):
        with pytest.raises(UsageError, match="the checkpoint adapts q_proj, v_proj; a later phase adapts the same"):
            method(rank=2, target=target).prepare(model, Phase())
    method(rank=2, target=("v_proj", "q_proj")).prepare(model, Phase())
