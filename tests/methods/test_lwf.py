"""LwF keeps the student close to the starting checkpoint's predictions on the new data."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from temporalwiki.methods import lwf
from temporalwiki.methods.lwf import LwF, _divergence
from temporalwiki.methods.method import Batch, Phase, StepShare

import tiny_models

LN2, LN3 = math.log(2), math.log(3)


class Table(nn.Module):
    """Its logits after token i are the row i of a table."""

    def __init__(self, rows: list[list[float]]) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.tensor(rows))

    def forward(self, input_ids: torch.Tensor, use_cache: bool = True) -> Any:
        return SimpleNamespace(logits=self.rows[input_ids])


def no_examples(wanted: int) -> list[Batch]:
    raise AssertionError("it needs none")


def extra(method: LwF, teacher: nn.Module, student: nn.Module, batch: Batch, tokens: int) -> torch.Tensor:
    """The term that is added to the loss once ``teacher`` has become ``student``."""
    distil = method.extra_loss(teacher, no_examples, Phase())
    inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}
    return distil(student, batch, student(**inputs).logits, StepShare(torch.tensor(tokens), 0.5))


# teacher's logits, student's logits, temperature, sum over p_teacher * ln(p_teacher / p_student)
DIVERGENCES = {
    "the same": ([[0.0, LN3]], [[0.0, LN3]], 1.0, 0.0),
    "the same but for a constant": ([[0.0, LN3]], [[5.0, 5.0 + LN3]], 1.0, 0.0),
    # teacher 1/4 and 3/4, student 1/2 and 1/2
    "quarters": ([[0.0, LN3]], [[0.0, 0.0]], 1.0, 0.25 * math.log(1 / 2) + 0.75 * math.log(3 / 2)),
    # the other way round it is another number
    "halves": ([[0.0, 0.0]], [[0.0, LN3]], 1.0, 0.5 * math.log(2) + 0.5 * math.log(2 / 3)),
    "temperature 2": ([[0.0, 2 * LN3]], [[1.0, 1.0]], 2.0, 0.25 * math.log(1 / 2) + 0.75 * math.log(3 / 2)),
    # 1/2, 1/4, 1/4 against thirds: 1/2 ln 3/2 + 1/2 ln 3/4
    "three": ([[LN2, 0.0, 0.0]], [[0.0] * 3], 1.0, 0.5 * math.log(3 / 2) + 0.5 * math.log(3 / 4)),
    "summed over tokens": ([[0.0, LN3]] * 3, [[0.0, 0.0]] * 3, 1.0, 3 * (0.75 * LN3 - LN2)),
    "no tokens": ([], [], 1.0, 0.0),
}


@pytest.mark.parametrize(("teacher", "student", "temperature", "expected"), DIVERGENCES.values(), ids=DIVERGENCES)
def test_the_divergence_by_hand(teacher: Any, student: Any, temperature: float, expected: float) -> None:
    teacher, student = (torch.tensor(rows).reshape(len(rows), -1 if rows else 2) for rows in (teacher, student))
    assert _divergence(student, teacher, temperature).item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_divergence_of_half_precision_logits_is_computed_in_float32(dtype: torch.dtype) -> None:
    teacher, student = torch.tensor([[0.0, 2.0]], dtype=dtype), torch.tensor([[1.0, 1.0]], dtype=dtype)
    exact = _divergence(student.float(), teacher.float(), 1.0)
    assert _divergence(student, teacher, 1.0).dtype == torch.float32
    assert torch.equal(_divergence(student, teacher, 1.0), exact)


@pytest.mark.parametrize("temperature", [1.0, 2.0, 0.5])
def test_the_loss_is_weighed_and_scaled_by_the_temperatures_square_and_averaged_over_the_steps_tokens(
    temperature: float,
) -> None:
    """Only one of the three positions has a label that counts, and the step has five such in all."""
    teacher = Table([[9.0, 9.0], [0.0, temperature * LN3]])
    batch = {"input_ids": torch.tensor([[0, 1, 0]]), "labels": torch.tensor([[-100, 1, -100]])}
    student = Table([[0.0, 7.0], [0.0, 0.0]])
    loss = extra(LwF(weight=3.0, temperature=temperature), teacher, student, batch, tokens=5)
    assert loss.item() == pytest.approx(3 * temperature**2 * (0.75 * LN3 - LN2) / 5, rel=1e-5)
    loss.backward()
    assert student.rows.grad is not None
    # weight * T^2 * (1/T) * (p_student - p_teacher) / tokens, with 1/2 - 1/4 and 1/2 - 3/4
    expected = [0.0, 0.0, *(3 * temperature * difference / 5 for difference in (0.25, -0.25))]
    assert student.rows.grad.flatten().tolist() == pytest.approx(expected, rel=1e-5)
    assert teacher.rows.grad is None


def test_a_micro_batch_without_labels_adds_nothing() -> None:
    batch = {"input_ids": torch.tensor([[0, 1]]), "labels": torch.tensor([[-100, -100]])}
    student = Table([[0.0, 1.0], [2.0, 0.0]])
    loss = extra(LwF(), Table([[0.0, 0.0], [0.0, 0.0]]), student, batch, tokens=5)
    assert loss.item() == 0
    loss.backward()
    assert student.rows.grad is not None
    assert not student.rows.grad.any()


@pytest.mark.parametrize("tokens_at_once", [1, 3, 16, 17, 1000])
def test_how_many_tokens_are_compared_at_once_does_not_matter(
    tokens_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = torch.Generator().manual_seed(0)
    rows = [torch.randn(12, 12, generator=draw).tolist() for _ in range(2)]
    ids = torch.randint(0, 12, (3, 9), generator=draw)
    labels = ids.clone()
    labels[:, 6:] = -100  # 18 tokens count

    def run() -> tuple[float, torch.Tensor]:
        student = Table(rows[1])
        loss = extra(LwF(), Table(rows[0]), student, {"input_ids": ids, "labels": labels}, 18)
        loss.backward()
        assert student.rows.grad is not None
        return loss.item(), student.rows.grad

    loss, gradient = run()
    assert loss > 0.1
    monkeypatch.setattr(lwf, "_TOKENS_AT_ONCE", tokens_at_once)
    again, same = run()
    assert again == pytest.approx(loss, rel=1e-5)
    torch.testing.assert_close(same, gradient, rtol=1e-4, atol=1e-6)


def llama_batch() -> Batch:
    ids = torch.randint(3, 40, (2, 8), generator=torch.Generator().manual_seed(1))
    return {"input_ids": ids, "position_ids": torch.arange(8).expand(2, 8), "labels": ids.roll(-1, 1)}


def test_the_teacher_stays_what_it_was_while_the_student_learns() -> None:
    model = tiny_models.model("llama", 40).train()
    batch = llama_batch()
    distil = LwF().extra_loss(model, no_examples, Phase())
    share = StepShare(torch.tensor(16), 1.0)
    inputs = {name: tensor for name, tensor in batch.items() if name != "labels"}
    before = model(**inputs).logits.detach()
    with torch.no_grad():
        model.lm_head.weight.add_(0.5 * torch.randn_like(model.lm_head.weight))
    optimizer = torch.optim.Adam([model.lm_head.weight], lr=0.03)
    first = distil(model, batch, model(**inputs).logits, share).item()
    for _ in range(150):
        optimizer.zero_grad()
        loss = distil(model, batch, model(**inputs).logits, share)
        loss.backward()
        optimizer.step()
    assert loss.item() < first / 20
    now = model(**inputs).logits.softmax(-1)
    assert (now - before.softmax(-1)).abs().mean() < 0.01  # it moves towards the start


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_the_teacher_has_no_dropout(kind: str) -> None:
    model = tiny_models.model(kind, 40).train()
    batch = dict(llama_batch())
    if kind == "t5":
        batch["decoder_input_ids"] = batch["input_ids"]
        del batch["position_ids"]
    student = tiny_models.model(kind, 40).eval()
    assert extra(LwF(), model, student, batch, 16).item() == pytest.approx(0, abs=1e-6)
    assert model.training
    assert all(p.requires_grad for p in model.parameters())
