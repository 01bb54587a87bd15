"""O-LoRA against its definition, computed from the adapters that each phase wrote."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from temporalwiki.methods.lora import LoRA, adapters
from temporalwiki.methods.method import Phase, StepShare
from temporalwiki.methods.o_lora import OLoRA

import tiny_models
import tiny_training

RANK = 2
Directions = dict[str, list[np.ndarray]]  # weight -> the matrix A of each phase, (rank, inputs)


def directions(model: Any, ranks: list[int]) -> Directions:
    """Return the adapters of phases with these ranks, apart from each other; GPT-2 has two weights in one layer."""
    found: Directions = {}
    for number, layer in enumerate(adapters(model)):
        rows = iter(layer.lora_A["default"].weight.detach().double().numpy())
        for rank in ranks:
            for weight in ("query", "value") if layer.fan_in_fan_out else ("",):
                found.setdefault(f"{number} {weight}", []).append(np.array([next(rows) for _ in range(rank)]))
        assert next(rows, None) is None
    return found


def defined(found: Directions) -> float:
    """Return the sum over weights and earlier phases of the squared products of old and new directions."""
    total = 0.0
    for *earlier, new in found.values():
        for old in earlier:
            total += sum(float(a @ b) ** 2 for a in old for b in new)
    return total


def learnt(model: Any, seed: int) -> Any:
    """Fill in what training would change."""
    draw = torch.Generator().manual_seed(seed)
    for layer in adapters(model):
        for matrix in (layer.lora_A["default"], layer.lora_B["default"]):
            with torch.no_grad():
                matrix.weight[matrix.trained] = torch.randn(int(matrix.trained.sum()), generator=draw)
    return model


def phases(kind: str, ranks: list[int]) -> Any:
    model: Any = tiny_models.model(kind, 40)
    for seed, rank in enumerate(ranks):
        model = learnt(OLoRA(rank=rank, alpha=4.0 * rank).prepare(model, Phase(seed=seed)), seed)
    return model


def overlap(model: Any, fraction: float = 1.0, **options: float) -> torch.Tensor:
    extra = OLoRA(rank=RANK, **options).extra_loss(model, lambda count: [], Phase())
    assert extra is not None
    return extra(model, {}, torch.empty(0), StepShare(torch.tensor(1), fraction))


@pytest.mark.parametrize("kind", tiny_models.KINDS)
@pytest.mark.parametrize("ranks", [[2, 2], [2, 2, 2], [1, 3, 2]])
def test_the_term_is_that_of_the_paper(kind: str, ranks: list[int]) -> None:
    model = phases(kind, ranks)
    expected = defined(directions(model, ranks))
    assert expected > 1
    assert overlap(model, weight=1).item() == pytest.approx(expected, rel=1e-5)
    assert overlap(model, weight=3, fraction=0.25).item() == pytest.approx(0.75 * expected, rel=1e-5)


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_only_the_new_directions_are_pushed(kind: str) -> None:
    model = phases(kind, [2, 2])
    overlap(model, weight=0.5).backward()
    for layer in adapters(model):
        matrix, found = layer.lora_A["default"], []
        for old, new in _parts(matrix.weight.detach(), layer.fan_in_fan_out):
            found.append(new @ old.T @ old)  # the derivative of |A_i A_t^T|^2 / 2
        gradient = matrix.weight.grad
        assert gradient is not None
        torch.testing.assert_close(gradient[matrix.trained], torch.cat(found).flatten(), rtol=1e-4, atol=1e-4)
        assert not gradient[~matrix.trained].any()
        assert layer.lora_B["default"].weight.grad is None


def _parts(rows: torch.Tensor, fused: bool) -> list[tuple[torch.Tensor, torch.Tensor]]:
    if not fused:
        return [(rows[:2], rows[2:])]
    return [(rows[:2], rows[4:6]), (rows[2:4], rows[6:])]


def test_the_first_phase_is_lora() -> None:
    first = LoRA(rank=RANK).prepare(tiny_models.model("gpt2", 40), Phase())
    assert OLoRA(rank=RANK).extra_loss(first, lambda count: [], Phase()) is None


def test_an_adapter_that_learnt_nothing_reads_no_direction() -> None:
    model = LoRA(rank=RANK).prepare(tiny_models.model("llama", 40), Phase())  # B is 0
    model = OLoRA(rank=RANK).prepare(model, Phase())
    assert OLoRA(rank=RANK).extra_loss(model, lambda count: [], Phase()) is None


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_month_learns_in_other_directions_than_the_month_before(kind: str, tmp_path: Path) -> None:
    start: Path = tiny_training.write(tmp_path, kind) / kind
    words = ("--rank", RANK, "--max-steps", 10)
    tiny_training.train(tmp_path, "lora", start, tmp_path / "first", *words)
    tiny_training.train(tmp_path, "o_lora", start, tmp_path / "o_first", *words)
    assert tiny_training.equal(tmp_path / "o_first", tmp_path / "first")
    tiny_training.train(tmp_path, "lora", tmp_path / "first", tmp_path / "lora", *words)
    strong = ("--weight", 100)
    tiny_training.train(tmp_path, "o_lora", tmp_path / "first", tmp_path / "o_lora", *words, *strong)
    found = {name: defined(_saved(tmp_path / name, kind)) for name in ("lora", "o_lora")}
    assert found["o_lora"] < found["lora"] / 10
    first, *_, last = tiny_training.losses(tmp_path / "o_lora", "extra_loss")
    assert last < first


def _saved(folder: Path, kind: str) -> Directions:
    found: Directions = {}
    for name, weight in tiny_training.weights(folder).items():
        if ".lora_A." in name:
            rows, size = weight.double().numpy(), RANK
            parts = [rows[at : at + size] for at in range(0, len(rows), size)]
            found |= {f"{name} {i}": parts[i::2] for i in (0, 1)} if kind == "gpt2" else {name: parts}
    return found
