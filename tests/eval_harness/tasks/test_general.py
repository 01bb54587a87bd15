"""General: questions with choices and text of another domain, scored as plain transformers scores them."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from plain_transformers import load, nlls

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.results import Outcome, Result
from temporalwiki.eval_harness.runner import Evaluation, evaluate
from temporalwiki.eval_harness.tasks.general import General

import tiny_models

pytestmark = pytest.mark.usefixtures("quick")

QUESTIONS: list[dict[str, Any]] = [
    {"question": "Anna Weber is in", "choices": ["Easton", "Norland", "the rain"], "answer": 1},
    {"question": "It was", "choices": ["mayor", "a head of government"], "answer": 0},
    {"question": "Carl Ito lives in", "choices": ["St. Louis", "Easton"], "answer": 0},
]
TEXTS = ["It rains in Easton, and the head of government reads.", "Norland is a country."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("general")
    tiny_models.save("gpt2", made / "gpt2")
    return made


def run(folder: Path, cache: Path, items: int = 200, **splits: Any) -> Outcome:
    return General(items).run(CachedModel(str(folder / "gpt2"), cache, "fp32"), splits)


def test_the_right_choice_must_be_likelier_than_all_others(folder: Path, tmp_path: Path) -> None:
    outcome = run(folder, tmp_path, test=QUESTIONS)
    plain, right, norm = load(folder / "gpt2"), [], []
    for one in QUESTIONS:
        found = [-sum(nlls(*plain, one["question"], f" {choice}")) for choice in one["choices"]]
        each = [value / len(choice.encode()) for value, choice in zip(found, one["choices"], strict=True)]
        right.append(found.index(max(found)) == one["answer"])
        norm.append(each.index(max(each)) == one["answer"])
    assert outcome.scores["test/acc"].value == pytest.approx(100 * sum(right) / 3)
    assert outcome.scores["test/acc_norm"].value == pytest.approx(100 * sum(norm) / 3)
    assert outcome.scores["test/chance"].value == pytest.approx(100 * (1 / 3 + 1 / 2 + 1 / 2) / 3)


def test_the_perplexity_of_text_is_that_of_all_its_tokens(folder: Path, tmp_path: Path) -> None:
    outcome = run(folder, tmp_path, test=[{"text": text} for text in (*TEXTS, "", None)])
    plain = load(folder / "gpt2")
    found = [nll for text in TEXTS for nll in nlls(*plain, "", text)]
    expected = math.exp(sum(found) / len(found))
    assert outcome.scores["test/perplexity"].value == pytest.approx(expected, rel=1e-4)
    assert outcome.excluded["test: no text"] == 2


def test_only_the_first_items_count(folder: Path, tmp_path: Path) -> None:
    outcome = run(folder, tmp_path, 2, test=QUESTIONS, text=[{"text": text} for text in TEXTS * 2])
    assert (outcome.scores["test/acc"].items, outcome.scores["text/perplexity"].items) == (2, 2)


@pytest.mark.parametrize(
    "change",
    [
        {"answer": 3},
        {"answer": -1},
        {"answer": None},
        {"answer": "A"},
        {"choices": ["Easton"], "answer": 0},
        {"choices": None},
        {"choices": ["Easton", ""]},
        {"question": " "},
        {"question": None},
    ],
)
def test_a_bad_question_is_counted_and_left_out(change: dict[str, Any], folder: Path, tmp_path: Path) -> None:
    outcome = run(folder, tmp_path, test=[QUESTIONS[1], QUESTIONS[0] | change])
    assert outcome.scores["test/acc"].items == 1
    assert outcome.excluded["test: no question with two choices and the number of the right one"] == 1


def test_a_split_of_something_else_is_refused_in_one_line(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^split test: no column 'text'; there are title$"):
        run(folder, tmp_path, test=[{"title": "x"}])


def test_a_local_file_of_questions_is_a_dataset(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "mine"
    data.mkdir()
    (data / "choices.jsonl").write_text("".join(json.dumps(one) + "\n" for one in QUESTIONS), "utf-8")
    card = "---\nconfigs:\n- config_name: general\n  data_files: choices.jsonl\n---\n"
    (data / "README.md").write_text(card, "utf-8")
    model = CachedModel(str(folder / "gpt2"), tmp_path / "cache", "fp32")
    wanted = Evaluation(model.reference, str(data), {"general": General()}, (), tmp_path / "r", None)
    results: list[Result] = evaluate(wanted, model)
    assert set(results[0].manifest.scores) == {"train/acc", "train/acc_norm", "train/chance"}
