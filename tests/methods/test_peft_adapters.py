"""Adapters that users made with peft alone: patterns, ranks per layer, resized embeddings, unused tokens."""

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.scoring import Text
from temporalwiki.methods import checkpoint
from temporalwiki.methods.k_adapter import KAdapter
from temporalwiki.methods.lora import LoRA
from temporalwiki.methods.method import Method, Phase

import tiny_models
import tiny_training
from a_folder import rewrite

pytestmark = pytest.mark.usefixtures("quick")

QUERY_VALUE, EMBEDDINGS = ["q_proj", "v_proj"], ["embed_tokens", "lm_head"]
# what an adapter says, and how many tokens its user added to the model
ADAPTERS: dict[str, tuple[dict[str, Any], int]] = {
    "a pattern of modules": ({"target_modules": r".*\.layers\.[02]\.self_attn\.(q|v)_proj"}, 0),
    "a pattern of ranks": ({"target_modules": QUERY_VALUE, "r": 2, "rank_pattern": {r"layers\.[01]\..*q_proj": 3}}, 0),
    "stable ranks": (
        {"target_modules": ".*q_proj", "r": 2, "rank_pattern": {".*0.*": 4}, "use_rslora": True},
        0,
    ),
    "a pattern of what is left out": ({"target_modules": ["q_proj"], "exclude_modules": r".*layers\.0\..*"}, 0),
    "resized embeddings": ({"target_modules": ["q_proj"]}, 5),
    "resized embeddings that were trained": ({"target_modules": ["q_proj"], "modules_to_save": EMBEDDINGS}, 5),
    "both": ({"target_modules": r".*v_proj"}, 5),
}
IDS = torch.arange(10, 20)[None]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.save("llama", tmp_path_factory.mktemp("base") / "llama")


def adapter(base: Path, folder: Path, config: dict[str, Any], more: int) -> torch.Tensor:
    """Write an adapter with its tokenizer, and return what its model says."""
    torch.manual_seed(1)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(base), AutoTokenizer.from_pretrained(base)
    if more:
        tokenizer.add_tokens([f"<x{i}>" for i in range(more)], special_tokens=True)
        model.resize_token_embeddings(len(tokenizer))
    adapted = get_peft_model(model, LoraConfig(init_lora_weights=False, task_type="CAUSAL_LM", **config))
    adapted.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return said(adapted)


@torch.no_grad()
def said(model: Any) -> torch.Tensor:
    return model.eval()(IDS, use_cache=False).logits


@pytest.mark.parametrize("case", ADAPTERS)
def test_it_is_loaded_as_peft_made_it(case: str, base: Path, tmp_path: Path) -> None:
    expected = adapter(base, tmp_path, *ADAPTERS[case])
    found = checkpoint.load(str(tmp_path))
    assert torch.equal(said(found.model), expected)
    assert found.model.get_input_embeddings().weight.shape[0] == len(found.tokenizer)
    checkpoint.check_added(tmp_path, str(base))


@pytest.mark.parametrize("method", [LoRA(rank=8, alpha=8.0), Method()], ids=["lora", "diff"])
@pytest.mark.parametrize(
    "case", ["a pattern of modules", "resized embeddings", "resized embeddings that were trained"]
)
def test_the_next_phase_keeps_it(case: str, method: Method, base: Path, tmp_path: Path) -> None:
    expected = adapter(base, tmp_path / "1", *ADAPTERS[case])
    found = checkpoint.load(str(tmp_path / "1"))
    model = method.prepare(found.model, Phase())  # new ranks change nothing at first
    (tmp_path / "2").mkdir()
    method.save(model, tmp_path / "2")
    found.tokenizer.save_pretrained(tmp_path / "2")
    torch.testing.assert_close(said(checkpoint.load(str(tmp_path / "2")).model), expected, rtol=1e-4, atol=1e-5)


def test_layers_cannot_be_added_to_an_adapter_with_its_own_embeddings(base: Path, tmp_path: Path) -> None:
    adapter(base, tmp_path, *ADAPTERS["resized embeddings"])
    with pytest.raises(InputError, match="an adapter with its own embeddings: k_adapter cannot start from it"):
        KAdapter().prepare(checkpoint.load(str(tmp_path)).model, Phase())


def test_output_weights_that_are_missing_are_not_made_up(base: Path, tmp_path: Path) -> None:
    adapter(base, tmp_path, {"target_modules": ["q_proj", "embed_tokens"]}, 5)
    with pytest.raises(InputError, match="has other numbers of embeddings and of output weights"):
        checkpoint.load(str(tmp_path))


def test_a_token_without_an_embedding_that_no_text_has_is_no_reason_to_refuse_a_model(tmp_path: Path) -> None:
    """As in gemma-3-1b; here it is even the padding token."""
    folder = tiny_training.write(tmp_path, "llama") / "llama"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_special_tokens({"pad_token": "<unused>"})
    tokenizer.save_pretrained(folder)
    assert tokenizer.pad_token_id == checkpoint.load_model(str(folder)).get_input_embeddings().weight.shape[0]
    (score,) = CachedModel(str(folder), tmp_path / "cache", "fp32").score([Text("Anna Weber is in", " Easton")], "x")
    assert score is not None
    tiny_training.train(tmp_path, "diff", folder, tmp_path / "out", "--max-steps", 2)
    model = CachedModel(str(tmp_path / "out"), tmp_path / "cache", "fp32")
    assert len(model.generate(["Anna Weber is in", "Anna"], "x", 4)) == 2


def test_an_adapter_without_tensors_of_lora_is_one_line(base: Path, tmp_path: Path) -> None:
    adapter(base, tmp_path, {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]}, 0)
    rewrite(tmp_path / "adapter_config.json", target_modules=r".*q_proj")
    rest = {name: tensor for name, tensor in tiny_training.weights(tmp_path).items() if "lora" not in name}
    save_file(rest, tmp_path / "adapter_model.safetensors")
    with pytest.raises(InputError, match=r"adapter_model\.safetensors: holds no tensors of LoRA"):
        checkpoint.load(str(tmp_path))
