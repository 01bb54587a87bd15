"""Attention within documents: the kernels get where documents begin, and no document sees another.

The flash kernels run on GPUs only. A plain one takes their place here, with the same arguments.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from transformers import T5Config, T5ForConditionalGeneration
from transformers import modeling_flash_attention_utils as library

from temporalwiki.base.errors import UsageError
from temporalwiki.methods import attention
from temporalwiki.methods.architecture import mixes_documents
from temporalwiki.methods.attention import check_kernels, is_flash, one_row, set_attention

import tiny_models
import tiny_training
from tiny_methods import sharpened

LENGTH = 12
# three rows of the documents in digits; row 1 goes on with the last document of row 0, and row 2 is one document
DOCUMENTS = ["000011122222", "222223333333", "444444444444"]
BEGINS = [0, 4, 7, 12, 17, 24, 36]


class Kernel:
    """Stands for ``flash_attn_varlen_func``; keeps its arguments."""

    def __init__(self, whole: bool = False) -> None:
        """If ``whole``, ignore where documents begin."""
        self.whole = whole
        self.calls: list[dict[str, Any]] = []

    def __call__(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        cu_seqlens_q: torch.Tensor,
        cu_seqlens_k: torch.Tensor,
        max_seqlen_q: int,
        max_seqlen_k: int,
        dropout_p: float = 0.0,
        softmax_scale: float | None = None,
        causal: bool = False,
    ) -> torch.Tensor:
        self.calls.append({"begins": cu_seqlens_q.tolist(), "longest": max_seqlen_q, "dropout": dropout_p})
        assert (cu_seqlens_k.tolist(), max_seqlen_k, causal) == (cu_seqlens_q.tolist(), max_seqlen_q, True)
        edges = [0, len(q)] if self.whole else cu_seqlens_q.tolist()
        parts = [
            F.scaled_dot_product_attention(
                *(x[begin:end].transpose(0, 1) for x in (q, k, v)),
                is_causal=True,
                scale=softmax_scale,
                enable_gqa=True,
            ).transpose(0, 1)
            for begin, end in pairwise(edges)
        ]
        return torch.cat(parts)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """The kernel that stands for flash attention, which the library loads."""
    found = Kernel()

    def of_rows(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **how: Any) -> torch.Tensor:
        assert len(q) == 1, "several rows, without the places where documents begin"
        edges = torch.tensor([0, q.shape[1]])
        return found(q[0], k[0], v[0], edges, edges, q.shape[1], q.shape[1], **how)[None]

    monkeypatch.setattr(library, "_loaded_implementation", None)
    monkeypatch.setattr(library, "_lazy_imports", lambda *_, **__: (of_rows, found, None, None, None))
    return found


def tiny(kind: str, name: str = "sdpa", **changes: Any) -> Any:
    # with weights as small as they are made, a leak would hardly show
    model = sharpened(tiny_models.model(kind, 300, **changes), 0.2)
    model.config._attn_implementation_internal = name
    return model


def packed() -> dict[str, torch.Tensor]:
    positions = [[at - row.index(document) for at, document in enumerate(row)] for row in DOCUMENTS]
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(300, (len(DOCUMENTS), LENGTH), generator=draw)
    return {"input_ids": ids, "position_ids": torch.tensor(positions)}


def documents_alone(model: Any) -> torch.Tensor:
    """Return the logits of each document, read alone, one after the other (tokens, vocabulary)."""
    ids = packed()["input_ids"].flatten()
    return torch.cat([model(ids[None, begin:end], use_cache=False).logits[0] for begin, end in pairwise(BEGINS)])


@torch.no_grad()
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_flash_kernels_get_where_documents_begin(kind: str, kernel: Kernel) -> None:
    plain, flash = tiny(kind), tiny(kind, "flash_attention_2")
    assert (is_flash(plain), is_flash(flash)) == (False, True)
    with torch.autocast("cpu", torch.bfloat16):
        found = flash(**one_row(packed()), use_cache=False).logits
        wanted = documents_alone(plain)
    assert kernel.calls == [{"begins": BEGINS, "longest": LENGTH, "dropout": 0.0}] * 4  # in all layers
    assert found.shape == (1, 3 * LENGTH, 300)
    torch.testing.assert_close(found[0], wanted, atol=0.1, rtol=0.03)  # bf16 has three digits


@torch.no_grad()
def test_flex_attention_reads_documents_as_if_they_were_alone() -> None:
    with torch.compiler.set_stance("force_eager"):  # compiling it would take minutes
        found = tiny("llama", "flex_attention")(**packed(), use_cache=False).logits
    torch.testing.assert_close(found.flatten(0, 1), documents_alone(tiny("llama")), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("whole", [False, True])
def test_a_kernel_that_ignores_where_documents_begin_is_found(whole: bool, kernel: Kernel) -> None:
    kernel.whole = whole
    assert mixes_documents(tiny("llama", "flash_attention_2")) is whole


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("method", ["diff", "lwf", "ewc"])
def test_a_run_with_flash_attention_has_the_loss_of_one_without(
    method: str, kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each part of a run that calls the model: the test for leaks, the method's own loss, and the held-out loss."""
    folder, options = (
        tiny_training.write(tmp_path, "llama"),
        ("--precision", "bf16", "--held-out", 2, "--max-steps", 2),
    )
    tiny_training.train(folder, method, folder / "llama", tmp_path / "plain", *options)

    def without_checks(model: Any, name: str) -> None:
        model.config._attn_implementation_internal = name

    monkeypatch.setattr("temporalwiki.methods.train.check_kernels", lambda *_: None)
    monkeypatch.setattr("temporalwiki.methods.train.set_attention", without_checks)
    options += ("--attention", "flash_attention_2")
    tiny_training.train(folder, method, folder / "llama", tmp_path / "flash", *options)
    assert kernel.calls
    plain, flash = (tiny_training.record(tmp_path / name)["log"] for name in ("plain", "flash"))
    for one, other in zip(plain, flash, strict=True):
        for key in one.keys() & {"loss", "extra_loss", "held_out_loss"}:
            assert other[key] == pytest.approx(one[key], rel=0.01, abs=0.001)
    for path in (tmp_path / "flash").glob("*.json"):
        if path.name != "training.json":  # whoever loads the checkpoint may have no such kernels
            assert "flash_attention" not in path.read_text("utf-8")


CONFIGURED = T5Config(vocab_size=99, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (T5ForConditionalGeneration(CONFIGURED), "only for decoder-only models"),
        (
            tiny("gpt2"),
            "has no dropout, but the model's configuration asks for 0.1 in attention; use flash_attention_2",
        ),
        (tiny("llama", attention_dropout=0.2), "has no dropout, but the model's configuration asks for 0.2 in att"),
    ],
)
def test_models_that_the_kernels_do_not_support(model: Any, says: str) -> None:
    before = model.config._attn_implementation
    with pytest.raises(UsageError, match=f"--attention flex_attention: {says}"):
        set_attention(model, "flex_attention")
    assert model.config._attn_implementation == before


def test_flex_attention_is_set_where_a_model_has_no_dropout() -> None:
    model = tiny("llama")
    set_attention(model, "flex_attention")
    assert model.config._attn_implementation == "flex_attention"
    assert not is_flash(model)


@pytest.mark.parametrize(
    ("name", "precision", "cuda", "installed", "says"),
    [
        ("flex_attention", "bf16", False, True, "needs a GPU"),
        ("flash_attention_2", "bf16", True, False, "needs the package flash-attn, which is not installed"),
        ("flash_attention_3", "bf16", True, False, "needs the package flash-attn-3, which is not installed"),
        ("flash_attention_2", "fp32", True, True, "computes in bf16 or fp16 only, so not with --precision fp32"),
        ("flash_attention_2", "bf16", True, True, ""),
        ("flex_attention", "fp32", True, False, ""),
    ],
)
def test_machines_that_lack_the_kernels(
    name: str, precision: str, cuda: bool, installed: bool, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: cuda)
    for kernels, (package, _) in list(attention._PACKAGES.items()):
        monkeypatch.setitem(attention._PACKAGES, kernels, (package, lambda: installed))
    if not says:
        check_kernels(name, precision)
        return
    with pytest.raises(UsageError, match=f"--attention {name}: {says}"):
        check_kernels(name, precision)
