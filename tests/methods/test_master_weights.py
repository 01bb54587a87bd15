"""Weights in bf16 learn from steps that bf16 is too coarse for, and a checkpoint keeps the type of its start."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM

from temporalwiki.base.errors import UsageError
from temporalwiki.methods import checkpoint
from temporalwiki.methods.diff import Diff
from temporalwiki.methods.lora import LoRA
from temporalwiki.methods.master_weights import MasterWeights
from temporalwiki.methods.method import Phase
from temporalwiki.methods.options import TrainOptions

import tiny_training
from a_folder import rewrite
from tiny_training import equal, losses, weights

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset, and a Llama model that is stored in each type: ``fp32``, ``bf16`` and ``fp16``."""
    made = tiny_training.write(tmp_path_factory.mktemp("start"), "llama")
    for name, dtype in DTYPES.items():
        shutil.copytree(made / "llama", made / name)
        AutoModelForCausalLM.from_pretrained(made / "llama", dtype=dtype).save_pretrained(made / name)
    return made


def types(folder: Path) -> set[torch.dtype]:
    return {tensor.dtype for tensor in weights(folder).values()}


# bf16 has 256 numbers from 1/2 to 1, so a single step of 1/1024 changes nothing there.
# steps of 1/1024 down from 1 -> the copy, and the weight: the nearest multiple of 1/256
STEPS = {1: (1023, 256), 3: (1021, 255), 4: (1020, 255), 7: (1017, 254), 512: (512, 128)}


@pytest.mark.parametrize("steps", STEPS)
def test_steps_add_up_that_are_too_small_for_bf16(steps: int) -> None:
    layer = nn.Linear(1, 1, bias=False, dtype=torch.bfloat16)
    nn.init.ones_(layer.weight)
    masters, optimizer = MasterWeights(layer), torch.optim.SGD(layer.parameters(), lr=1 / 1024)
    masters.give_to(optimizer)
    for _ in range(steps):
        layer(torch.ones(1, 1, dtype=torch.bfloat16)).sum().backward()
        optimizer.step()
    copy, weight = STEPS[steps]
    assert masters.masters["weight"].item() == copy / 1024
    assert layer.weight.item() == weight / 256
    masters.unround()
    assert (layer.weight.dtype, layer.weight.item()) == (torch.float32, copy / 1024)


def test_weights_that_a_run_does_not_train_or_that_are_in_fp32_have_no_copy() -> None:
    model = nn.ModuleDict({name: nn.Linear(2, 2, bias=False, dtype=torch.bfloat16) for name in ("trained", "frozen")})
    model["frozen"].requires_grad_(False)
    model["exact"] = nn.Linear(2, 2, bias=False)
    masters = MasterWeights(model)
    assert list(masters.masters) == ["trained.weight"]
    optimizer = torch.optim.AdamW([model["trained"].weight, model["exact"].weight])
    masters.give_to(optimizer)
    (group,) = optimizer.param_groups
    assert [id(p) for p in group["params"]] == [id(masters.masters["trained.weight"]), id(model["exact"].weight)]


def size(tensors: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def test_what_a_model_takes(folder: Path) -> None:
    """A trained weight takes 6 bytes (2, and 4 for its copy), a frozen one 2. A weight of an adapter takes 4."""
    model = checkpoint.load_model(str(folder / "llama"), torch.bfloat16)
    count = sum(p.numel() for p in model.parameters())
    trained = Diff().prepare(model, Phase())
    assert (size(trained.parameters()), size(MasterWeights(trained).masters.values())) == (2 * count, 4 * count)
    adapted = LoRA().prepare(model, Phase())
    added = sum(p.numel() for p in adapted.parameters() if p.requires_grad)
    assert added == 4 * 4 * ((32 + 32) + (32 + 16))  # layers, rank, inputs and outputs of query and value
    assert size(adapted.parameters()) == 2 * count + 4 * added
    assert not MasterWeights(adapted).masters


def test_bf16_learns_what_fp32_learns(folder: Path, tmp_path: Path) -> None:
    for dtype in ("fp32", "bf16"):
        # steps of 1e-4 and less: weights are near .02, where numbers of bf16 are 1.2e-4 apart
        more = ("--precision", "bf16", "--dtype", dtype, "--max-steps", 20, "--learning-rate", 1e-4)
        tiny_training.train(folder, "diff", folder / "bf16", tmp_path / dtype, *more)
    exact, rounded = losses(tmp_path / "fp32"), losses(tmp_path / "bf16")
    assert rounded == pytest.approx(exact, rel=5e-4)
    assert exact[0] - exact[-1] > 0.02  # ten times that
    start, there = weights(folder / "bf16"), weights(tmp_path / "bf16")
    assert any(not torch.equal(there[name], start[name]) for name in start)


# A checkpoint's type


@pytest.mark.parametrize("stored", DTYPES)
@pytest.mark.parametrize(
    ("method", "dtype"),
    [("osf", "fp32"), *((name, dtype) for name in ("diff", "merge", "light_tuning") for dtype in ("fp32", "bf16"))],
)
def test_a_whole_model_is_saved_in_the_type_of_its_start(
    stored: str, method: str, dtype: str, folder: Path, tmp_path: Path
) -> None:
    more = ("--dtype", dtype, "--max-steps", 2)
    tiny_training.train(folder, method, folder / stored, tmp_path / "a", *more)
    assert types(tmp_path / "a") == {DTYPES[stored]}
    assert json.loads((tmp_path / "a" / "config.json").read_text("utf-8"))["dtype"] == str(DTYPES[stored])[6:]
    size = (tmp_path / "a" / "model.safetensors").stat().st_size
    assert size == (folder / stored / "model.safetensors").stat().st_size
    # the next month starts there
    tiny_training.train(folder, method, tmp_path / "a", tmp_path / "b", *more)
    assert types(tmp_path / "b") == {DTYPES[stored]}


def test_a_run_in_bf16_writes_its_copies_and_not_the_rounded_weights(folder: Path, tmp_path: Path) -> None:
    tiny_training.train(folder, "diff", folder / "fp32", tmp_path / "a", "--dtype", "bf16", "--max-steps", 2)
    assert all(not torch.equal(t, t.bfloat16().float()) for t in weights(tmp_path / "a").values() if t.dim() == 2)


@pytest.mark.parametrize("stored", DTYPES)
@pytest.mark.parametrize("words", [(), ("--dtype", "bf16"), ("--quantize", "4bit")], ids=" ".join)
def test_no_training_changes_no_bit(stored: str, words: tuple[str, ...], folder: Path, tmp_path: Path) -> None:
    tiny_training.train(folder, "initial", folder / stored, tmp_path / "a", *words)
    assert equal(tmp_path / "a", folder / stored)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("method", ["lora", "dora", "k_adapter"])
def test_what_is_added_to_a_model_in_bf16_stays_in_fp32(method: str, dtype: str, folder: Path, tmp_path: Path) -> None:
    start = folder / "bf16"
    for month in ("a", "b"):
        tiny_training.train(folder, method, start, tmp_path / month, "--dtype", dtype, "--max-steps", 2)
        assert torch.float32 in types(tmp_path / month)
        start = tmp_path / month
    # another method merges the adapter into the model, which is in bf16
    if method != "k_adapter":
        tiny_training.train(folder, "diff", start, tmp_path / "c", "--dtype", dtype, "--max-steps", 2)
        assert types(tmp_path / "c") == {torch.bfloat16}


@pytest.mark.parametrize(("named", "expected"), [(None, "fp32"), ("float64", "fp32"), ("float8_e4m3fn", "fp32")])
def test_an_unusual_type_in_a_configuration(named: str | None, expected: str, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "llama", tmp_path / "model")
    rewrite(tmp_path / "model" / "config.json", dtype=named)
    assert checkpoint.stored_dtype(str(tmp_path / "model")) == DTYPES[expected]


def test_a_type_that_there_is_not_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^no dtype 'bf61' \(did you mean bf16\?\); there are fp32, bf16$"):
        TrainOptions(dtype="bf61")
