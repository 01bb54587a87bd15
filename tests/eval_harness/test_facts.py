"""The score of a fact and of its object equals that of plain `transformers`, one text at a time."""

import shutil
from pathlib import Path

import pytest
from plain_transformers import fact, load
from transformers import AutoTokenizer

from temporalwiki.eval_harness.facts import identity, prompt_of, score_facts
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.models.model import FactScore

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


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_scores_are_those_of_one_text_at_a_time(kind: str, models: dict[str, Path], tmp_path: Path) -> None:
    found = score_facts(CachedModel(str(models[kind]), tmp_path), FACTS, "")
    plain = load(models[kind])
    for score, (prompt, label) in zip(found, FACTS, strict=True):
        assert score == pytest.approx(fact(*plain, prompt, label), rel=1e-4)


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_what_cannot_be_scored_is_none(kind: str, models: dict[str, Path], tmp_path: Path) -> None:
    facts = [("Norland capital", ""), *FACTS[:1]]
    if kind != "t5":  # T5's context has no limit
        facts.append(("Norland capital", "Easton " * 300))
    scored = score_facts(CachedModel(str(models[kind]), tmp_path), facts, "")
    assert [isinstance(score, FactScore) for score in scored] == [False, True, False][: len(facts)]


# "Nor" is the first token; 東 is three tokens, so that it begins with one that is predicted as well
@pytest.mark.parametrize(("asked", "size"), [(("Norland country", "Easton"), 19), (("東京 country", "日本"), 21)])
def test_without_bos_a_first_token_has_neither_nats_nor_bytes(
    asked: tuple[str, str], size: int, models: dict[str, Path], tmp_path: Path
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(models["gpt2"])
    tokenizer.bos_token = None
    folder = Path(shutil.copytree(models["gpt2"], tmp_path / "without"))
    tokenizer.save_pretrained(folder)
    (found,) = score_facts(CachedModel(str(folder), tmp_path), [asked], "")
    (whole,) = score_facts(CachedModel(str(models["gpt2"]), tmp_path), [asked], "")
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
