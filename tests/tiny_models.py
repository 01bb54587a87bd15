"""Make models and tokenizers of each architecture that are small enough to train in a test."""

import json
import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    T5ForConditionalGeneration,
    T5Tokenizer,
)

KINDS = ("gpt2", "llama", "t5")
CORPUS = ["The capital of Norland is Easton. Anna Weber was born in 1961 and lives in Easton, Norland. " * 20]


def tokenizer(kind: str) -> Any:
    """Return a tokenizer: GPT-2's has one token for beginning and end, Llama's has two, T5's has 100 sentinels."""
    if kind == "t5":
        pieces = [("▁", -2.0), *((letter, -3.0) for letter in string.printable.strip())]
        words = [(f"▁{word}", -1.0) for word in ("The", "the", "of", "is", "in", "was", "born", "and", "capital")]
        return T5Tokenizer(vocab=[("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -9.0), *pieces, *words], extra_ids=100)
    specials = {"gpt2": ["<|endoftext|>"], "llama": ["<s>", "</s>", "<pad>"]}[kind]
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=specials, initial_alphabet=alphabet)
    backend.train_from_iterator(CORPUS, trainer)
    names = {"gpt2": {"bos_token": specials[0], "eos_token": specials[0]}}.get(
        kind, {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    )
    return PreTrainedTokenizerFast(tokenizer_object=backend, **names)


_SPECIAL = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
_SIZES: dict[str, tuple[Any, dict[str, Any]]] = {
    "gpt2": (
        GPT2LMHeadModel,
        {"n_positions": 256, "n_embd": 32, "n_layer": 4, "n_head": 4, "bos_token_id": 0, "eos_token_id": 0},
    ),
    "llama": (
        LlamaForCausalLM,
        {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4}
        | {"num_key_value_heads": 2, "max_position_embeddings": 256, **_SPECIAL},
    ),
    "t5": (
        T5ForConditionalGeneration,
        {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 4, "num_heads": 4, "decoder_start_token_id": 0},
    ),
}


def model(kind: str, vocabulary: int, seed: int = 0, **changes: Any) -> Any:
    """Return a model with random weights, 4 layers and width 32; ``changes`` are of its configuration."""
    made, sizes = _SIZES[kind]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return made(made.config_class(**{"vocab_size": vocabulary, **sizes, **changes}))


def words(*vocabulary: str, bos: bool) -> Any:
    """Return a tokenizer that splits at white space, with <s> as BOS or without BOS."""
    backend = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=backend, **({"bos_token": "<s>"} if bos else {}))


def bigram(probabilities: list[list[float]]) -> Any:
    """Return a model without layers: token j follows token i with the probability [i][j]."""
    size = len(probabilities)
    shape = {"vocab_size": size, "n_positions": 8, "n_embd": size, "n_layer": 0, "n_head": 1}
    made = GPT2LMHeadModel(GPT2Config(**shape, tie_word_embeddings=False, bos_token_id=0)).eval()
    made.transformer.ln_f = torch.nn.Identity()
    with torch.no_grad():
        made.transformer.wte.weight.copy_(torch.eye(size))
        made.transformer.wpe.weight.zero_()
        made.lm_head.weight.copy_(torch.tensor(probabilities).log().T)
    return made


def save(kind: str, folder: Path) -> Path:
    """Write a model with its tokenizer to a folder, like a user's."""
    made = tokenizer(kind)
    model(kind, len(made)).save_pretrained(folder)
    made.save_pretrained(folder)
    return folder


def save_talking(kind: str, folder: Path) -> Path:
    """Write a tiny model. T5 gets a separate output layer, because otherwise it repeats the sentinel in its input."""
    save(kind, folder)
    if kind == "t5":
        made, pieces = T5ForConditionalGeneration.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
        weight = torch.randn(made.lm_head.weight.shape, generator=torch.Generator().manual_seed(0))
        weight[[*pieces.all_special_ids, *pieces.added_tokens_decoder]] = 0
        made.config.tie_word_embeddings = False
        made.lm_head.weight = torch.nn.Parameter(weight)
        made.save_pretrained(folder)
    return folder


def save_gguf(folder: Path, more: Mapping[str, torch.Tensor] | None = None) -> Path:
    """Write the tiny Llama, and ``more`` tensors, as a GGUF file, the format of llama.cpp."""
    gguf = pytest.importorskip("gguf")
    source = save("llama", folder / "source")
    config = json.loads((source / "config.json").read_text("utf-8"))
    backend = json.loads((source / "tokenizer.json").read_text("utf-8"))
    path = folder / "tiny.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    sizes = {"context_length": "max_position_embeddings", "embedding_length": "hidden_size"}
    sizes |= {"block_count": "num_hidden_layers", "feed_forward_length": "intermediate_size"}
    sizes |= {"head_count": "num_attention_heads", "head_count_kv": "num_key_value_heads"}
    for ours, theirs in (sizes | {"layer_norm_rms_eps": "rms_norm_eps"}).items():
        getattr(writer, f"add_{ours}")(config[theirs])
    writer.add_vocab_size(config["vocab_size"] + 1)
    vocabulary = sorted(backend["model"]["vocab"], key=backend["model"]["vocab"].__getitem__)
    vocabulary.append("<|endoftext|>")  # transformers adds it if it is missing; the model would then be too small
    specials = {token["content"] for token in backend["added_tokens"]} | {vocabulary[-1]}
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(vocabulary)
    writer.add_token_types([3 if token in specials else 1 for token in vocabulary])
    writer.add_token_merges([" ".join(pair) for pair in backend["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v"}
    names |= {"self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up"}
    names |= {"mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
    names |= {"model.layers": "blk", "model.embed_tokens": "token_embd", "model.norm": "output_norm"}
    for name, tensor in load_file(source / "model.safetensors").items():
        for ours, theirs in [*names.items(), ("lm_head", "output")]:
            name = name.replace(ours, theirs)
        if name.startswith(("token_embd", "output.")):
            tensor = torch.cat([tensor, tensor[:1]])
        writer.add_tensor(name, tensor.numpy())
    for name, tensor in (more or {}).items():
        writer.add_tensor(name, tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
