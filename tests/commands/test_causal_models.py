"""Models that see later tokens are refused before the first score and the first step; causal ones are not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch, which models need, is not installed")
import torch
import transformers

from temporalwiki.base.errors import InputError
from temporalwiki.methods.architecture import check_causal

import tiny_models
from a_dataset import write_dataset
from tiny_probes import CHANGED, UNCHANGED, rows

pytestmark = pytest.mark.usefixtures("quick")

SIZES: dict[str, Any] = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 32, "intermediate_size": 64}
# a class of transformers, and the sizes of its configuration
CAUSAL: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2LMHeadModel", {"n_embd": 32, "n_layer": 2, "n_head": 2}),
    "llama": ("LlamaForCausalLM", SIZES),
    "mixtral": ("MixtralForCausalLM", SIZES | {"num_key_value_heads": 2, "num_local_experts": 4}),
    "mamba": ("MambaForCausalLM", {"hidden_size": 32, "num_hidden_layers": 2}),
    "bert as a decoder": ("BertLMHeadModel", SIZES | {"is_decoder": True}),
}
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("BertLMHeadModel", SIZES),
    "roberta": ("RobertaForCausalLM", SIZES),
    "electra": ("ElectraForCausalLM", SIZES | {"embedding_size": 32}),
    "xlm": ("XLMWithLMHeadModel", {"emb_dim": 32, "n_layers": 2, "n_heads": 2, "vocab_size": 99}),
    "xlnet": ("XLNetLMHeadModel", {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 64}),
}


def made(name: str, sizes: dict[str, Any]) -> Any:
    of = getattr(transformers, name)
    return of(of.config_class(**sizes))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", CAUSAL)
def test_a_causal_model(kind: str, dtype: torch.dtype) -> None:
    model = made(*CAUSAL[kind]).to(dtype).train()
    check_causal(model, "m")
    assert model.training


@pytest.mark.fault("misleading input", "a model whose tokens see later ones", "one line refuses it")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", OTHERS)
def test_a_model_that_sees_later_tokens(kind: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    with pytest.raises(InputError, match=r"^m: its tokens see later ones, so it is not a causal language model"):
        check_causal(made(*OTHERS[kind]).to(dtype), "m")


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("there")
    tokenizer = tiny_models.tokenizer("gpt2")
    made("BertLMHeadModel", SIZES | {"vocab_size": len(tokenizer)}).save_pretrained(folder / "bert")
    tokenizer.save_pretrained(folder / "bert")
    text = [{"title": "Norland", "text": "Norland is a country. " * 20}]
    probes = {"unchanged": rows(UNCHANGED), "changed": rows(CHANGED)}
    write_dataset(folder / "data", {"diffset-1112": {"train": text}, "probes-1112": probes})
    return folder


@pytest.mark.parametrize(
    "words",
    [
        "evaluate --tasks twiki_probes --config probes-1112 --no-light-tuning --no-answers",
        "train --method diff --config diffset-1112 --max-steps 2",
        "train --method lora --target all-linear --config diffset-1112 --max-steps 2",
    ],
)
def test_the_commands_refuse_it_in_one_line(
    words: str, there: Path, run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(there)
    status, out, err = run(*words.split(), "--model", "bert", "--data", "data")
    assert (status, out) == (1, "")
    assert "bert: its tokens see later ones" in err.splitlines()[-1]
