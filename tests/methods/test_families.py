"""Models that wrap a text model, mixtures of experts and models without attention train like others."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    CONFIG_MAPPING,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    MixtralConfig,
    MixtralForCausalLM,
)

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.scoring import Text
from temporalwiki.methods import checkpoint
from temporalwiki.methods.architecture import unread
from temporalwiki.methods.lora import LoRA
from temporalwiki.methods.method import Method, Phase
from temporalwiki.methods.speed import Work, work

import tiny_models
import tiny_training
from tiny_training import record

pytestmark = pytest.mark.slow

TOKENIZER = tiny_models.tokenizer("llama")
TEXT = {"vocab_size": len(TOKENIZER), "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, "head_dim": 8}
TEXT |= {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2}
TEXT |= {"intermediate_size": 64, "max_position_embeddings": 256}
VISION = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 8}
VISION |= {"intermediate_size": 16, "image_size": 16, "patch_size": 8}
COMPOSITE = ("gemma3", "mistral3")


def composite(family: str) -> Any:
    torch.manual_seed(0)
    more = {"image_token_index": 5, "image_token_id": 5, "mm_tokens_per_image": 4}
    config = CONFIG_MAPPING[family](text_config=TEXT, vision_config=VISION, **more)
    return AutoModelForImageTextToText.from_config(config)


def saved(model: Any, folder: Path) -> Path:
    model.save_pretrained(folder)
    TOKENIZER.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("method", ["diff", "recadam", "lora", "k_adapter"])
@pytest.mark.parametrize("family", COMPOSITE)
def test_a_composite_model_trains_and_is_scored(family: str, method: str, tmp_path: Path) -> None:
    start, out = saved(composite(family), tmp_path / "start"), tmp_path / "out"
    # K-Adapter starts at 0
    more = ("--max-steps", 20, "--learning-rate", 0.1) if method == "k_adapter" else ("--max-steps", 4)
    tiny_training.train(tiny_training.write(tmp_path), method, start, out, *more)
    assert "model_tflops_per_second" in record(out)["log"][0]
    before, after = (
        CachedModel(str(folder), tmp_path / "cache", "fp32").score([Text("Anna Weber is in", " Easton")], "facts")[0]
        for folder in (start, out)
    )
    assert before is not None
    assert after is not None
    assert abs(after.nll.sum() - before.nll.sum()) > 1e-3  # the checkpoint that is scored is the trained one


@pytest.mark.parametrize("family", COMPOSITE)
def test_only_what_reads_text_is_trained(family: str) -> None:
    model = Method().prepare(composite(family), Phase())
    frozen = {name.split(".")[1] for name, p in model.named_parameters() if not p.requires_grad}
    assert frozen == {"vision_tower", "multi_modal_projector"}
    adapted = LoRA().prepare(composite(family), Phase())
    assert not [name for name, _ in adapted.named_parameters() if "lora" in name and "vision" in name]
    assert len(unread(adapted)) == 2


def test_flops_are_those_of_the_text_model_alone() -> None:
    inner = AutoModelForCausalLM.from_config(CONFIG_MAPPING["mistral"](**TEXT))
    assert isinstance(inner, torch.nn.Module)
    assert work(composite("mistral3"), 16, True) == work(inner, 16, gradients_through_base=True) != Work(0, 0)


def test_too_many_layers_are_refused_in_a_part_too(tmp_path: Path) -> None:
    folder = saved(composite("mistral3"), tmp_path / "start")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["text_config"]["num_hidden_layers"] = 10_000_000
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(InputError, match="num_hidden_layers is 10,000,000, more than"):
        checkpoint.load_model(str(folder))


def without_attention() -> Any:
    torch.manual_seed(0)
    sizes = {name: size for name, size in TEXT.items() if "heads" not in name}
    return AutoModelForCausalLM.from_config(CONFIG_MAPPING["mamba"](**sizes))


def test_a_model_without_attention_trains_without_a_count_of_flops(tmp_path: Path) -> None:
    start = saved(without_attention(), tmp_path / "start")
    tiny_training.train(tiny_training.write(tmp_path), "diff", start, tmp_path / "out", "--max-steps", 2)
    (entry, _) = record(tmp_path / "out")["log"]
    assert "tokens_per_second" in entry
    assert "model_tflops_per_second" not in entry


def mixture(**more: Any) -> MixtralForCausalLM:
    torch.manual_seed(0)
    return MixtralForCausalLM(MixtralConfig(**TEXT, num_local_experts=4, num_experts_per_tok=2, **more))


@pytest.mark.parametrize("family", ["gemma3", "mamba", "mixtral"])
def test_weights_in_bf16_learn_what_those_in_fp32_learn(family: str, tmp_path: Path) -> None:
    made = {
        "gemma3": lambda: composite("gemma3"),
        "mamba": without_attention,
        "mixtral": lambda: mixture(output_router_logits=True),
    }[family]()
    start, folder = saved(made.to(torch.bfloat16), tmp_path / "start"), tiny_training.write(tmp_path)
    losses = []
    for dtype in ("fp32", "bf16"):
        words = ("--dtype", dtype, "--precision", "bf16", "--max-steps", 4)
        tiny_training.train(folder, "diff", start, tmp_path / dtype, *words)
        losses.append(tiny_training.losses(tmp_path / dtype))
    assert losses[1] == pytest.approx(losses[0], rel=5e-3)
    assert losses[0][0] - min(losses[0]) > 0.1


@pytest.mark.parametrize("wanted", [False, True])
def test_the_routers_loss_counts_as_in_the_library(wanted: bool, tmp_path: Path) -> None:
    start = saved(mixture(output_router_logits=wanted, router_aux_loss_coef=0.5), tmp_path / "start")
    folder = tiny_training.write(tmp_path)
    tiny_training.train(folder, "diff", start, tmp_path / "out", "--max-steps", 1, "--batch-size", 1)
    (entry,) = record(tmp_path / "out")["log"]
    (tmp_path / "plain").mkdir()
    plain = saved(mixture(output_router_logits=False), tmp_path / "plain" / "start")
    tiny_training.train(folder, "diff", plain, tmp_path / "plain" / "out", "--max-steps", 1, "--batch-size", 1)
    (without,) = record(tmp_path / "plain" / "out")["log"]
    # with four experts and two for each token, the library's balance is 2 if all are used equally, and at most 4
    assert (1 <= entry["loss"] - without["loss"] <= 2) if wanted else math.isclose(entry["loss"], without["loss"])
