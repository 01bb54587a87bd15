"""A model that is not whole is refused by the names of its tensors: it would be scored with random weights."""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from temporalwiki.base.errors import InputError
from temporalwiki.commands import main
from temporalwiki.eval_harness.models.local import revision
from temporalwiki.methods import checkpoint, find_method, modular
from temporalwiki.methods.method import Phase

import tiny_models
from a_folder import rewrite

pytestmark = pytest.mark.slow

WEIGHTS = "model.safetensors"
Weights = dict[str, torch.Tensor]
Change = Callable[[Weights], Weights] | dict[str, Any]  # of the weights, or of config.json


@contextlib.contextmanager
def refused(said: str) -> Iterator[None]:
    """Assert that InputError is raised, in one line."""
    with pytest.raises(InputError, match=said) as error:
        yield
    assert "\n" not in str(error.value)


def without(text: str) -> Change:
    return lambda weights: {name: tensor for name, tensor in weights.items() if text not in name}


def with_more(name: str, tensor: torch.Tensor) -> Change:
    return lambda weights: weights | {name: tensor}


def wider(name: str) -> Change:
    return lambda weights: weights | {name: torch.cat([weights[name], weights[name]])}


def spoil(folder: Path, change: Change, file: str = WEIGHTS) -> None:
    if isinstance(change, dict):
        rewrite(folder / "config.json", **change)
    else:
        save_file(change(load_file(folder / file)), folder / file, metadata={"format": "pt"})


CANNOT = "cannot load a language model: "
FOUR_BITS = {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}
NOT_WHOLE: dict[str, tuple[str, Change, str]] = {
    "Llama without a head": ("llama", without("lm_head"), r"1 tensor is missing .*\(lm_head\.weight\)"),
    "GPT-2 without a layer": ("gpt2", without(".h.1."), r"12 tensors are missing .*\(transformer\.h\.1\..*\.\.\.\)"),
    "T5 without a tensor": (
        "t5",
        without("decoder.block.0.layer.1.EncDecAttention.k"),
        r"1 tensor is missing .*ck\.0",
    ),
    "fewer layers": (
        "llama",
        {"num_hidden_layers": 2},
        r"18 tensors are in the weights, but not .*\(model\.layers\.2\.",
    ),
    "more layers": ("llama", {"num_hidden_layers": 5}, r"9 tensors are missing .*\(model\.layers\.4\."),
    "a tensor of nobody": (
        "gpt2",
        with_more("other", torch.zeros(2)),
        r"1 tensor is in the weights, but not .*\(other\)",
    ),
    "another shape": ("llama", wider("model.norm.weight"), r"1 tensor is of another shape .*\(model\.norm\.weight\)"),
    "no such activation": ("llama", {"hidden_act": "x"}, CANNOT),
    "a quantization of nobody": ("llama", FOUR_BITS, CANNOT),
    "millions of layers": ("gpt2", {"n_layer": 10_000_000}, "n_layer is 10,000,000, more than 1,000"),
    "more layers than tensors": ("gpt2", {"n_layer": 900}, r"n_layer is 900, more than [1-9][0-9]$"),
    "a width of more than 64 bits": ("gpt2", {"n_embd": 10**30}, CANNOT),
    "no heads": ("llama", {"num_attention_heads": 0}, CANNOT),
    "too many heads": ("llama", {"num_attention_heads": 10**9}, CANNOT),
    "no words": ("llama", {"vocab_size": 0}, CANNOT),
    "no type": ("gpt2", {"model_type": []}, CANNOT),
    "wide layers": ("llama", {"intermediate_size": 10**9}, r"12 tensors are of another shape"),
}


@pytest.mark.fault("hostile model folder", "weights without some tensors, or with others than its config", "refused")
@pytest.mark.parametrize("case", NOT_WHOLE)
def test_a_model_that_is_not_whole_is_refused(case: str, tmp_path: Path) -> None:
    kind, change, said = NOT_WHOLE[case]
    folder = tiny_models.save(kind, tmp_path / kind)
    spoil(folder, change)
    for options in ({}, {"device_map": "meta"}):
        with refused(said):
            checkpoint.load_model(str(folder), **options)


def test_tied_weights_and_what_the_library_knows_are_not_missed(tmp_path: Path) -> None:
    llama = tiny_models.save("llama", tmp_path / "llama")
    for change in (without("lm_head"), {"tie_word_embeddings": True}):
        spoil(llama, change)
    model = checkpoint.load_model(str(llama))
    assert torch.equal(model.get_input_embeddings().weight, model.get_output_embeddings().weight)
    gpt2 = tiny_models.save("gpt2", tmp_path / "gpt2")  # old checkpoints have the mask
    spoil(gpt2, with_more("transformer.h.0.attn.bias", torch.ones(1, 1, 4, 4, dtype=torch.bool)))
    checkpoint.load_model(str(gpt2))


C_ATTN = "base_model.model.transformer.h.1.attn.c_attn.lora_A.weight"
ADDED: dict[str, tuple[str, Change, str]] = {
    "an adapter without a matrix": ("lora", without(".1.attn.c_attn.lora_B"), r"1 tensor is missing .*h\.1\..*lora_B"),
    "an adapter without biases": ("bias", without(".1.mlp.c_fc.bias"), r"1 tensor is missing .*h\.1\.mlp\.c_fc\.bias"),
    "an adapter without a whole module": ("head", without("lm_head"), r"1 tensor is missing .*lm_head\.weight"),
    "an adapter with a tensor of nobody": (
        "lora",
        with_more("base_model.x", torch.zeros(1)),
        r"1 .*\(base_model\.x\)",
    ),
    "an adapter of another shape": ("lora", wider(C_ATTN), r"does not fit its base model: size mismatch for .*lora_A"),
    "layers without a tensor": ("k_adapter", without("0.layers.1.ln_1.bias"), r"layers\.1\.ln_1\.bias is missing"),
}


def added(kind: str, base: Path, folder: Path) -> str:
    """Write an adapter or added layers on a tiny GPT-2, and return the name of the file with their weights."""
    from peft import LoraConfig, get_peft_model

    model = checkpoint.load_model(str(base))
    if kind == "k_adapter":
        method = find_method("k_adapter")()
        method.save(method.prepare(model, Phase()), folder)
        return "expansion.safetensors"
    more: dict[str, Any] = {"bias": {"bias": "all"}, "head": {"modules_to_save": ["lm_head"]}}.get(kind, {})
    config = LoraConfig(r=2, target_modules=["c_attn"], fan_in_fan_out=True, **more)
    config.base_model_name_or_path = str(base)
    get_peft_model(model, config).save_pretrained(folder)
    return "adapter_model.safetensors"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tiny_models.save("gpt2", tmp_path / "base")


@pytest.fixture
def adapter(base: Path, tmp_path: Path) -> Path:
    """The folder of an adapter of ``base``."""
    added("lora", base, tmp_path / "added")
    return tmp_path / "added"


@pytest.mark.parametrize("case", ADDED)
def test_an_adapter_or_layers_that_are_not_whole_are_refused(case: str, base: Path, tmp_path: Path) -> None:
    kind, change, said = ADDED[case]
    folder = tmp_path / "added"
    weights = added(kind, base, folder)
    checkpoint.load_model(str(folder))
    checkpoint.check_added(folder, str(base))
    spoil(folder, change, weights)
    for load in (lambda: checkpoint.load_model(str(folder)), lambda: checkpoint.check_added(folder, str(base))):
        with refused(said):
            load()


FOR_EVER = "((\\w+\\.?)+)+!"  # a regular expression
ENDLESS: dict[str, dict[str, Any]] = {
    "a regular expression for scales": {"alpha_pattern": {FOR_EVER: 2}},
    "one for what is saved whole": {"modules_to_save": [FOR_EVER]},
    "a rank that fills the memory": {"r": 10**9},
    "such a rank of one module": {"rank_pattern": {"c_attn": 10**9}},
    "layers without number": {"layer_replication": [[0, 4]] * 20_000},
    "a start that takes for ever": {"init_lora_weights": "pissa_niter_100000"},
}


@pytest.mark.fault("hostile model folder", "an adapter whose configuration takes for ever", "refused")
@pytest.mark.parametrize("case", ENDLESS)
def test_an_adapter_that_takes_for_ever_is_refused(case: str, adapter: Path) -> None:
    rewrite(adapter / "adapter_config.json", **ENDLESS[case])
    with refused(r"adapter_config\.json: (not the configuration of|layer_replication is not)"):
        checkpoint.load_model(str(adapter))


# patterns of a configuration, which peft would run
PATTERNS: dict[str, dict[str, Any]] = {
    "for modules": {"target_modules": FOR_EVER},
    "for ranks": {"rank_pattern": {FOR_EVER: 2}},
    "for what is left out": {"exclude_modules": FOR_EVER},
    "for layers": {"layers_pattern": [FOR_EVER], "layers_to_transform": [0]},
}


@pytest.mark.fault(
    "hostile model folder",
    "an adapter whose patterns of modules, ranks or layers take for ever",
    "no pattern is run: the names and shapes of the tensors say which modules it changes",
)
@pytest.mark.parametrize("case", PATTERNS)
def test_no_pattern_of_an_adapter_is_run(case: str, base: Path, adapter: Path) -> None:
    ids = torch.arange(9)[None]
    before = checkpoint.load_model(str(adapter)).eval()(ids).logits
    rewrite(adapter / "adapter_config.json", **PATTERNS[case])
    assert torch.equal(checkpoint.load_model(str(adapter)).eval()(ids).logits, before)
    checkpoint.check_added(adapter, str(base))


def test_the_name_of_a_tensor_is_no_pattern_either(adapter: Path) -> None:
    rewrite(adapter / "adapter_config.json", target_modules=".*c_attn")
    endless = {f"base_model.model.{FOR_EVER}.lora_{part}.weight": torch.ones(3, 3) for part in "AB"}
    spoil(adapter, lambda weights: weights | endless, "adapter_model.safetensors")
    with refused("2 tensors are in the weights, but not in the model"):
        checkpoint.load_model(str(adapter))


def test_a_great_many_names_are_not_compared(adapter: Path) -> None:
    many = {f"x{i}": 3 for i in range(50_000)}
    rewrite(adapter / "adapter_config.json", rank_pattern=many, target_modules=["c_attn", *many])
    assert not checkpoint.load_model(str(adapter)).peft_config["default"].rank_pattern


LOADS = (checkpoint.load_model, checkpoint.load_tokenizer, revision)


@pytest.mark.parametrize("kind", ["lora", "k_adapter"])
@pytest.mark.fault("hostile model folder", "an adapter or layers whose base are they themselves", "refused")
def test_a_base_that_is_no_whole_model_is_refused(kind: str, base: Path, tmp_path: Path) -> None:
    added(kind, base, tmp_path / "added")
    shutil.rmtree(base)
    shutil.copytree(tmp_path / "added", base)  # its own base, and the base of the other
    for load in LOADS:
        with refused("is not a whole model, but an adapter or added layers itself"):
            load(str(tmp_path / "added"))


# base and revision that an adapter's configuration names -> what is wrong with them
BASES: dict[str, tuple[str | None, str | None, str]] = {
    "none": (None, None, "names no base model"),
    "none, with a revision": (None, "main", "names no base model"),
    "a path for a revision": ("ORG/base", "/etc/passwd", "not the name of a branch, a tag or a commit"),
    "a way out for a revision": ("ORG/base", "a/../../b", "not the name of a branch, a tag or a commit"),
    "both in one": ("ORG/base@../../b", None, "not the name of a branch, a tag or a commit"),
}


@pytest.mark.parametrize("case", BASES)
def test_a_base_without_a_name_or_with_a_path_for_a_revision_is_refused(case: str, adapter: Path) -> None:
    named, at, said = BASES[case]
    rewrite(adapter / "adapter_config.json", base_model_name_or_path=named, revision=at)
    for load in LOADS:
        with refused(rf"adapter_config\.json: .*{said}"):
            load(str(adapter))


@pytest.mark.parametrize("name", ["main", "v1.0", "refs/pr/1", "a" * 40, "release-2026.11"])
def test_a_branch_a_tag_or_a_commit_is_a_revision(name: str) -> None:
    assert checkpoint._REVISION.fullmatch(name)


# bytes of a GGUF file, what replaces them, and the error
OF_GGUF: dict[str, tuple[bytes, bytes, str]] = {
    "a tensor of another name": (
        b"blk.1.attn_norm.w",
        b"blk.1.attn_nore.w",
        r"1 .* in the weights, .*blk\.1\.attn_nore",
    ),
    "fewer layers": (
        b"block_count\4\0\0\0\4",
        b"block_count\4\0\0\0\2",
        r"18 .* in the weights, .*\(blk\.2\.attn_k\.w",
    ),
    "more layers": (b"block_count\4\0\0\0\4", b"block_count\4\0\0\0\5", r"9 .* missing .*\(model\.layers\.4\."),
    "wider layers": (b"feed_forward_length\4\0\0\0\x40", b"feed_forward_length\4\0\0\0\x41", "12 .* of another shape"),
    "no heads": (b"head_count\4\0\0\0\4", b"head_count\4\0\0\0\0", CANNOT),
}


@pytest.mark.parametrize("case", OF_GGUF)
def test_a_gguf_that_is_not_whole_is_refused(case: str, tmp_path: Path) -> None:
    path, (before, after, said) = tiny_models.save_gguf(tmp_path), OF_GGUF[case]
    data = path.read_bytes()
    assert data.count(before) == 1
    path.write_bytes(data.replace(before, after))
    with refused(said):
        checkpoint.load_model(str(path))


def test_a_gguf_with_a_tensor_that_its_architecture_knows_is_whole(tmp_path: Path) -> None:
    path = tiny_models.save_gguf(tmp_path, more={"rope_freqs.weight": torch.ones(4)})  # as Llama 3 has it
    checkpoint.load_model(str(path))


END = {"</s>": {"id": "</s>", "ids": [5000], "tokens": ["</s>"]}}
PARTS = [{"SpecialToken": {"id": "</s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
TEMPLATE = {"type": "TemplateProcessing", "single": PARTS, "pair": [], "special_tokens": END}


def with_token(**how: Any) -> Callable[[dict[str, Any]], object]:
    """Add a token without an embedding."""
    return lambda made: made["added_tokens"].append(made["added_tokens"][-1] | {"id": 5000, "content": "<x>"} | how)


# a change of tokenizer.json, and whether it still fits the model
TOKENIZERS: dict[str, tuple[Callable[[dict[str, Any]], object], bool]] = {
    "a word far away": (lambda made: made["model"]["vocab"].update({"Ġof": 5000}), False),
    "an end far away": (lambda made: made.update(post_processor=TEMPLATE), False),
    "a token that a text may contain": (with_token(special=False), False),
    "a token that no text contains": (with_token(), True),
}


@pytest.mark.fault("hostile model folder", "a tokenizer of another model", "refused")
@pytest.mark.parametrize("case", TOKENIZERS)
def test_a_tokenizer_of_another_model_is_refused(case: str, tmp_path: Path) -> None:
    change, fits = TOKENIZERS[case]
    folder = tiny_models.save("llama", tmp_path / "llama")
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    change(tokenizer)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    said = r"the tokenizer has [\d,]+ tokens and the model \d+ embeddings"
    with contextlib.nullcontext() if fits else refused(said):
        checkpoint.load(str(folder))


# entries of tokenizer_config.json -> the error
WRONG_ENTRIES: dict[str, tuple[dict[str, Any], str]] = {
    "BOS without an embedding": ({"bos_token": "<begin>"}, "the tokenizer has .* they do not belong together"),
    "EOS without an embedding": ({"eos_token": "<end>"}, "the tokenizer has .* they do not belong together"),
    "a length that is text": ({"model_max_length": "x"}, "cannot load a tokenizer: "),
    "a chat template that is a number": ({"chat_template": 5}, "chat_template 'default' is no text with a plain name"),
    "a chat template of numbers": ({"chat_template": {"a": 1}}, "chat_template 'a' is no text with a plain name"),
    "a chat template that is a path": ({"chat_template": {"../../x": "a"}}, "chat_template '../../x' is no text"),
    "a class without a vocabulary": ({"tokenizer_class": "RagTokenizer"}, "cannot load a tokenizer: "),
}


@pytest.mark.fault("hostile model folder", "odd entries of a tokenizer's configuration", "one line names the folder")
@pytest.mark.parametrize("case", WRONG_ENTRIES)
def test_a_wrong_entry_of_a_tokenizer_is_one_line(case: str, tmp_path: Path) -> None:
    folder = tiny_models.save("llama", tmp_path / "llama")
    entries, said = WRONG_ENTRIES[case]
    rewrite(folder / "tokenizer_config.json", **entries)
    with refused(said):
        checkpoint.load(str(folder))


@pytest.mark.fault(
    "hostile model folder",
    "a configuration that asks for kernels that compile or are missing, or for other machines",
    "the library's own choice is used",
)
@pytest.mark.parametrize(
    "entries",
    [
        {"attn_implementation": "flex_attention"},
        {"attn_implementation": "flash_attention_2"},
        {"_attn_implementation": "flash_attention_2"},
        {"distributed_config": {"tp_size": 2}},
        {"distributed_config": "x"},
    ],
    ids=str,
)
def test_what_a_configuration_says_of_the_machine_is_not_followed(entries: dict[str, Any], tmp_path: Path) -> None:
    folder = tiny_models.save("llama", tmp_path / "llama")
    rewrite(folder / "config.json", **entries)
    model = checkpoint.load_model(str(folder))
    assert model.config._attn_implementation == "sdpa"
    assert checkpoint.count_parameters(str(folder)) == model.num_parameters()
    model.save_pretrained(tmp_path / "saved")
    assert "distributed_config" not in json.loads((tmp_path / "saved" / "config.json").read_text("utf-8"))


@pytest.mark.fault("hostile model folder", "weights that are not floating-point numbers", "refused")
@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int64, torch.bool, torch.complex64])
def test_weights_that_are_no_floating_point_numbers_are_refused(dtype: torch.dtype, tmp_path: Path) -> None:
    """`transformers` casts them: a quantized model without its scales was scored."""
    folder = tiny_models.save("llama", tmp_path / "llama")
    name = "model.layers.0.mlp.up_proj.weight"
    spoil(folder, lambda weights: weights | {name: (weights[name] * 100).to(dtype)})
    with refused(rf"{WEIGHTS}: the numbers of {name} are \w+, not floating-point ones"):
        checkpoint.load_model(str(folder))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.float8_e4m3fn])
def test_floating_point_weights_of_any_type_load(dtype: torch.dtype, tmp_path: Path) -> None:
    folder = tiny_models.save("llama", tmp_path / "llama")
    spoil(folder, lambda weights: {name: tensor.to(dtype) for name, tensor in weights.items()})
    assert checkpoint.load_model(str(folder)).dtype == torch.float32


def test_the_small_model_of_modular_is_whole(tmp_path: Path) -> None:
    folder = tiny_models.save("t5", tmp_path / "t5")
    for change in (without("encoder.block.0.layer.0.SelfAttention.q"), {"num_layers": 3}):
        spoil(folder, change)
    size = json.loads((folder / "config.json").read_text("utf-8"))["vocab_size"]
    with refused(r"1 tensor is missing .*encoder\.block\.0"):
        modular._pretrained(str(folder), size, weights=True)
    tiny_models.save("t5", folder)
    rewrite(folder / "config.json", num_layers=3)
    with refused(r"8 tensors are in the weights, but not in the model .*encoder\.block\.3"):
        modular._pretrained(str(folder), size, weights=True)


@pytest.mark.fault("hostile model folder", "a pipe in place of a file", "refused; it would be waited for")
@pytest.mark.parametrize("name", [WEIGHTS, "config.json", "tokenizer.json", "adapter_config.json"])
def test_a_pipe_is_not_waited_for(name: str, tmp_path: Path) -> None:
    folder = tiny_models.save("gpt2", tmp_path / "gpt2")
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    for load in (checkpoint.load_model, checkpoint.load_tokenizer):
        with refused(rf"{name}: not a regular file"):
            load(str(folder))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_no_command_uses_it(
    command: str, month: Path, models: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "llama"
    shutil.copytree(models["llama"], folder)
    spoil(folder, without("lm_head"))
    words = {
        "train": ["train", "--method", "diff", "--max-steps", "1", "--config", "diffset-1112"],
        "evaluate": ["evaluate", "--tasks", "twiki_probes", "--config", "probes-1112"],
    }[command]
    assert main([*words, "--model", str(folder), "--data", str(month), "--output", str(tmp_path / "out")]) == 1
    assert "not a whole model: 1 tensor is missing from the weights (lm_head.weight)" in capsys.readouterr().err
    assert not list(tmp_path.glob("out/**/*.json")) or command == "train"
