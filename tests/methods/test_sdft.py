"""SDFT: the loss is the paper's, on tokens that the student draws itself."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from temporalwiki.base.errors import UsageError
from temporalwiki.methods import checkpoint
from temporalwiki.methods.method import Batch, Method, Phase, StepShare
from temporalwiki.methods.sdft import SDFT, documents

from tiny_methods import sharpened

HALF = StepShare(torch.tensor(7), 0.5)


def packed(*lengths: int, padding: int = 0, seed: int = 0) -> Batch:
    """A row of documents of these lengths, and padding."""
    draw = torch.Generator().manual_seed(seed)
    parts = [torch.arange(length) for length in (*lengths, *[padding] * bool(padding))]
    ids = torch.randint(5, 60, (1, sum(map(len, parts))), generator=draw)
    labels = ids.roll(-1, 1)
    labels[0, sum(lengths) - 1 :] = -100
    return {"input_ids": ids, "position_ids": torch.cat(parts)[None], "labels": labels}


def test_documents_are_found_and_short_ones_and_padding_left_out() -> None:
    batch = packed(6, 3, 9, padding=8)
    ids = batch["input_ids"][0]
    assert [one.tolist() for one in documents(batch, 3)] == [ids[:6].tolist(), ids[9:18].tolist()]


def expected(model: Any, start: Any, texts: list[torch.Tensor], prompt: int, length: int) -> torch.Tensor:
    """The loss as in the paper, without a cache, in double precision; it draws from the same random numbers."""
    model, start = model.double().eval(), start.double().eval()
    y = torch.stack([text[:prompt] for text in texts])
    with torch.no_grad():
        for _ in range(length):
            chances = model(input_ids=y).logits[:, -1].softmax(-1)
            y = torch.cat([y, torch.multinomial(chances.float(), 1)], dim=1)
    terms = []
    for text, own in zip(texts, y, strict=True):
        for at in range(prompt, prompt + length):
            student = model(input_ids=own[None, :at]).logits[0, -1].softmax(-1)
            with torch.no_grad():
                teacher = start(input_ids=torch.cat([text, own[:at]])[None]).logits[0, -1].softmax(-1)
            terms.append(sum(p * torch.log(p / q) for p, q in zip(student, teacher, strict=True)))
    return torch.stack(terms).mean()  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_loss_and_gradients_are_those_of_the_paper(kind: str, models: dict[str, Path]) -> None:
    method, batch = SDFT(prompt=3, length=4), packed(6, 3, 9, padding=5)
    model = sharpened(method.prepare(checkpoint.load_model(str(models[kind])), Phase()), 0.2)
    model.train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    distil = method.extra_loss(model, lambda *a, **k: [], Phase())
    start = copy.deepcopy(model)
    torch.manual_seed(4)
    with torch.no_grad():  # the student learns, and its teacher stays
        for p in model.parameters():
            p.add_(torch.randn_like(p), alpha=0.02)
    logits = model(input_ids=batch["input_ids"]).logits
    torch.manual_seed(3)
    loss = distil(model, batch, logits, HALF)
    loss.backward()
    assert model.training
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    torch.manual_seed(3)
    reference = expected(model, start, documents(batch, 3), 3, 4)
    (reference * HALF.fraction).backward()
    assert loss.item() == pytest.approx(reference.item() * 0.5, rel=1e-4)
    assert loss.item() > 1e-3
    for name, p in model.named_parameters():
        if p.grad is not None:
            torch.testing.assert_close(found[name].double(), p.grad, rtol=1e-3, atol=1e-6)


def test_a_batch_of_short_documents_adds_nothing(models: dict[str, Path]) -> None:
    model = SDFT().prepare(checkpoint.load_model(str(models["llama"])), Phase())
    batch = packed(4, 4)
    logits = model(input_ids=batch["input_ids"]).logits
    loss = SDFT().extra_loss(model, lambda *a, **k: [], Phase())(model, batch, logits, HALF)
    loss.backward()
    assert loss.item() == 0


def test_more_tokens_than_the_model_reads_are_refused(models: dict[str, Path]) -> None:
    model = checkpoint.load_model(str(models["gpt2"]))
    with pytest.raises(UsageError, match=r"^sdft: --prompt and --length are \d+ tokens together, but the model reads"):
        SDFT(prompt=8, length=100_000).extra_loss(model, lambda *a, **k: [], Phase())


def test_the_text_itself_counts_only_if_it_is_asked_for() -> None:
    assert (Method().text_weight, SDFT().text_weight, SDFT(text=0.5).text_weight) == (1.0, 0.0, 0.5)
