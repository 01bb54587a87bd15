"""The score of a fact and of its object equals that of plain `transformers`, one text at a time."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from temporalwiki.eval_harness.cached_model import CachedModel
from temporalwiki.eval_harness.facts import FactScore, identity, prompt_of, score_facts

import tiny_models

FACTS = [
    ("Norland head of government", "Anna Weber"),
    ("Norland head of government", "Ben Ito"),
    ("東京 country", "日本"),
    ("Easton {{mayor}}", "[Ito] <b>"),
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {kind: tiny_models.save(kind, folder / kind) for kind in tiny_models.KINDS}


@torch.no_grad()
def decoder_reference(folder: Path, prompt: str, label: str) -> tuple[float, int, float, int, int]:
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).eval()
    read = tokenizer(f"{prompt} {label}", add_special_tokens=False, return_offsets_mapping=True)
    ids = torch.tensor([[tokenizer.bos_token_id, *read.input_ids]])
    predicted = model(ids).logits[0, :-1].double().log_softmax(-1)
    nll = [-float(predicted[i, token]) for i, token in enumerate(read.input_ids)]
    of_object = [value for value, (_, end) in zip(nll, read.offset_mapping, strict=True) if end > len(prompt)]
    return sum(nll), len(nll), sum(of_object), len(of_object), len(f"{prompt} {label}".encode())


@torch.no_grad()
def t5_reference(folder: Path, prompt: str, label: str) -> tuple[float, int, float, int, int]:
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    source = torch.tensor([tokenizer(f"{prompt} <extra_id_0>").input_ids])
    wanted = tokenizer(label, add_special_tokens=False).input_ids
    fed = torch.tensor([[0, tokenizer.convert_tokens_to_ids("<extra_id_0>"), *wanted[:-1]]])
    predicted = model(input_ids=source, decoder_input_ids=fed).logits[0, 1:].double().log_softmax(-1)
    nll = -sum(float(predicted[i, token]) for i, token in enumerate(wanted))
    return nll, len(wanted), nll, len(wanted), len(label.encode())


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_scores_are_those_of_one_text_at_a_time(kind: str, models: dict[str, Path], tmp_path: Path) -> None:
    reference: Any = t5_reference if kind == "t5" else decoder_reference
    for found, fact in zip(score_facts(CachedModel(str(models[kind]), tmp_path), FACTS, ""), FACTS, strict=True):
        assert found == pytest.approx(reference(models[kind], *fact), rel=1e-4)


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_what_cannot_be_scored_is_none(kind: str, models: dict[str, Path], tmp_path: Path) -> None:
    facts = [("Norland capital", ""), *FACTS[:1]]
    if kind != "t5":  # T5's context has no limit
        facts.append(("Norland capital", "Easton " * 300))
    scored = score_facts(CachedModel(str(models[kind]), tmp_path), facts, "")
    assert [isinstance(score, FactScore) for score in scored] == [False, True, False][: len(facts)]


# "Nor" is the first token; 東 is three tokens, so that it begins with one that is predicted as well
@pytest.mark.parametrize(("fact", "size"), [(("Norland country", "Easton"), 19), (("東京 country", "日本"), 21)])
def test_without_bos_a_first_token_has_neither_nats_nor_bytes(
    fact: tuple[str, str], size: int, models: dict[str, Path], tmp_path: Path
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(models["gpt2"])
    tokenizer.bos_token = None
    folder = Path(shutil.copytree(models["gpt2"], tmp_path / "without"))
    tokenizer.save_pretrained(folder)
    (found,) = score_facts(CachedModel(str(folder), tmp_path), [fact], "")
    (whole,) = score_facts(CachedModel(str(models["gpt2"]), tmp_path), [fact], "")
    assert found is not None
    assert whole is not None
    assert found.tokens == whole.tokens - 1
    assert (found.bytes, found.object_tokens) == (size, whole.object_tokens)


def test_facts_of_the_same_names_are_not_one_item() -> None:
    row = {"subject": "Easton", "relation": "country", "object": "Norland", "relation_id": "P17", "object_id": "Q2"}
    one, other = identity({**row, "subject_id": "Q1"}), identity({**row, "subject_id": "Q3"})
    assert prompt_of(row) == "Easton country"
    assert one == identity({**row, "subject_id": "Q1"})
    assert one["id"] != other["id"]
    assert (one["cluster"], other["cluster"], identity(row)["cluster"]) == ("Q1", "Q3", "Easton")
