"""NewQuestions: prompts, scores, and excluded rows."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from plain_transformers import continuation, load

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.eval_harness.answers import answer
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.models.model import LIKELIHOODS, WEIGHTS, Model
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.runner import Evaluation, evaluate
from temporalwiki.eval_harness.tasks import lama
from temporalwiki.eval_harness.tasks.lama import Lama
from temporalwiki.eval_harness.tasks.new_questions import NewQuestions
from temporalwiki.methods.options import TrainOptions

import tiny_models
from a_dataset import write_dataset

BLANK = "<extra_id_0>"
QUESTIONS = {  # a question, and the prompt made from it
    "Who leads Norland?": "Who leads Norland?",
    "  Who\tleads\n\nNorland ": "Who leads Norland",
    "Who is {0} %s {question}?\nAnswer: Bob": "Who is {0} %s {question}? Answer: Bob",
    "東京はどこですか。": "東京はどこですか。",
    "Who is <extra_id_1> </s>?": "Who is <extra_id_1> </s>?",
}


@dataclass
class Canned(Model):
    """A model that always gives one answer, and none to questions with "long" in them."""

    can = frozenset({LIKELIHOODS, WEIGHTS})

    said: str = ""
    encoder_decoder: bool = False
    prompts: list[str] = field(default_factory=list)

    def generate(self, prompts: Sequence[str], what: str, max_new_tokens: int, beams: int) -> list[str | None]:
        self.prompts += prompts
        return [None if "long" in prompt else self.said for prompt in prompts]


def run(model: Canned, rows: list[dict[str, Any]]) -> Outcome:
    return NewQuestions().run(model, {"test": rows})  # type: ignore[arg-type]


@pytest.mark.parametrize("question", QUESTIONS)
def test_how_a_question_is_put(question: str) -> None:
    rows = [{"question": question, "answers": ["Anna"]}]
    decoder_only, encoder_decoder = Canned(), Canned(encoder_decoder=True)
    run(decoder_only, rows)
    run(encoder_decoder, rows)
    assert decoder_only.prompts == [f"Question: {QUESTIONS[question]}\nAnswer:"]
    assert encoder_decoder.prompts == [f"{QUESTIONS[question]} {BLANK}"]


@pytest.mark.parametrize("encoder_decoder", [False, True])
def test_scores_and_what_is_left_out(encoder_decoder: bool) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "1", "subject": "Norland", "question": "Who leads Norland?", "answers": ["Bob", "Anna Weber"]},
        {"id": "1", "subject": "Norland", "question": "Who led Norland?", "answers": "Weber"},
        {"id": "2", "subject": "Easton", "question": "Who leads Easton?", "answers": ["Bob"]},
        {"id": "3", "subject": "Easton", "question": "Is this too long?", "answers": ["Bob"]},
        {"id": "4", "subject": "Easton", "question": "Who?", "answers": []},
        {"id": "5", "subject": "Easton", "question": "Who?", "answers": None},
        {"id": "6", "subject": "Easton", "question": " \n", "answers": ["Bob"]},
        {"id": "7", "subject": "Easton", "question": None, "answers": ["Bob"]},
        {"id": "8", "subject": "Easton", "question": f"Who is {BLANK}?", "answers": ["Bob"]},
    ]
    found = run(Canned("the anna weber", encoder_decoder), rows)
    # Anna Weber; one word of two in "Weber", so 2 * 1 / (2 + 1); none in "Bob"
    assert {name: score.value for name, score in found.scores.items()} == pytest.approx(
        {"test/exact_match": 100 / 3, "test/f1": 100 * (1 + 2 / 3) / 3}
    )
    assert found.scores["test/f1"].items == 3
    assert found.scores["test/f1"].clusters == 2
    assert len({item["id"] for item in found.items}) == len(found.items) == 4
    where = "around" if encoder_decoder else "before"
    assert found.excluded == {
        "test: no room for an answer in the context": 1,
        "test: no answer to compare with": 2,
        f"test: no word {where} the blank": 2,
        f"test: not exactly one {BLANK}": 1,
    }


@pytest.mark.parametrize("column", ["answers", "answer", "object"])
def test_answers_are_found_in_each_of_their_columns(column: str) -> None:
    found = run(Canned("Anna"), [{"question": "Who?", column: "Anna"}])
    assert [item["exact_match"] for item in found.items] == [1]


def test_rows_without_answers_are_refused() -> None:
    with pytest.raises(InputError, match=r"^test: no column 'answers' \(did you mean answrs\?\); there are "):
        run(Canned(), [{"question": "Who?", "answrs": "Anna"}])


@dataclass
class Tuned(Canned):
    """A model whose light-tuned copy says something else."""

    learned: list[tuple[str, str]] = field(default_factory=list)
    options: list[TrainOptions] = field(default_factory=list)

    @contextmanager
    def tuned(self, examples: list[tuple[str, str]], options: TrainOptions, what: str) -> Iterator[Canned]:
        self.learned += examples
        self.options.append(options)
        yield Canned("Bob")


@pytest.fixture
def tuned(monkeypatch: pytest.MonkeyPatch) -> Tuned:
    monkeypatch.setattr(lama, "fine_tuned", Tuned.tuned)
    return Tuned("Anna")


ROWS = [
    {"id": f"{name} {i}", "subject": name, "question": f"{name} {i}?", "statement": f"{name} {i} is {BLANK}.",
     "answers": ["Bob", "Anna"]}
    for name in ("A", "B", "C", "D") for i in range(2)
]  # fmt: skip


@pytest.mark.parametrize(("task", "batch"), [(NewQuestions, 8), (Lama, 32)])
def test_questions_to_light_tune_on_are_not_scored(task: Any, batch: int, tuned: Tuned) -> None:
    more = {"candidates": 0} if task is Lama else {}
    found = task(light_tuning=3, **more).run(tuned, {"test": ROWS})
    [options] = tuned.options
    assert (options.learning_rate, options.batch_size, options.epochs) == (1e-3, batch, 1)
    assert (options.schedule, options.warmup_ratio) == ("constant", 0)
    assert len(tuned.learned) == 3
    assert {answer for _, answer in tuned.learned} == {" Bob"}  # the first one
    learned = {re.sub("Question: ", "", prompt)[0] for prompt, _ in tuned.learned}
    scored = {item["cluster"] for item in found.items}
    assert len(learned) == len(scored) == 2
    assert not learned & scored  # no subject is in both
    assert {item["answer"] for item in found.items} == {"Bob"}
    assert set(found.scores) == {"light-tuned/test/exact_match", "light-tuned/test/f1"}
    assert found.excluded["about a subject of light-tuning"] == 4
    again = Tuned()
    task(light_tuning=3, **more).run(again, {"test": ROWS[::-1]})
    assert sorted(again.learned) == sorted(tuned.learned)  # in any order of rows


def test_light_tuning_leaves_something_to_score(tuned: Tuned) -> None:
    with pytest.raises(UsageError, match="light_tuning: 7 of 8 clozes leave none to score; name a lower number"):
        NewQuestions(light_tuning=7).run(tuned, {"test": ROWS})  # type: ignore[arg-type]


@pytest.mark.parametrize("task", [NewQuestions, Lama])
def test_results_without_light_tuning_are_those_of_before_it_was_there(task: Any) -> None:
    assert "light_tuning" not in task().recorded_options()
    assert task(light_tuning=5).recorded_options()["light_tuning"] == 5


@pytest.mark.parametrize("kind", tiny_models.KINDS)
@pytest.mark.usefixtures("quick")
def test_a_light_tuned_copy_learns_the_answers(kind: str, tmp_path: Path) -> None:
    """The same answer to all questions: the copy gives it, and the model itself has not changed."""
    model = CachedModel(str(tiny_models.save_talking(kind, tmp_path / kind)), tmp_path / "scores")
    rows = [{"id": str(i), "subject": str(i), "question": f"Who {i}?", "answers": ["Easton"]} for i in range(1300)]
    before = model.generate(["Who"], "before", 5)
    assert not str(before[0]).startswith("E")
    found = NewQuestions(light_tuning=1280, max_new_tokens=12).run(model, {"test": rows})
    assert len(found.items) == 20
    assert sum(item["answer"].startswith("Easton") for item in found.items) > 15  # T5 has not learned to end there
    assert model.generate(["Who"], "after", 5) == before


@pytest.mark.parametrize("wrong", [{"max_new_tokens": 0}, {"beams": 0}, {"light_tuning": -1}])
def test_options_out_of_range_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        NewQuestions(**wrong)


# ---- tiny models, against transformers, one question at a time


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_a_config_is_scored_as_transformers_answers(kind: str, tmp_path: Path) -> None:
    asked = ["Who leads Norland?", "Where was Anna Weber born?", "Wer ist Łukasz ☃?"]
    rows = [{"id": str(n), "question": text, "answers": [text]} for n, text in enumerate([*asked, "so " * 400])]
    data = write_dataset(tmp_path / "ckl", {"newquestions-easy": {"test": rows}})
    folder = tiny_models.save_talking(kind, tmp_path / kind)
    model = CachedModel(str(folder), tmp_path / "scores")
    task = NewQuestions(max_new_tokens=6)
    (result,) = evaluate(
        Evaluation(str(folder), str(data), {"new_questions": task}, (), tmp_path / "out", None), model
    )
    assert result.data["data"]["config"] == "newquestions-easy"
    assert set(result.data["scores"]) == {"test/exact_match", "test/f1"}
    items, plain = result.items(), load(folder)
    prompts = [text if kind == "t5" else f"Question: {text}\nAnswer:" for text in asked]
    assert [item["answer"] for item in items[:3]] == [answer(continuation(*plain, text, 6)) for text in prompts]
    assert all(item["answer"] for item in items[:3])
    if kind == "t5":
        assert result.data["excluded"] == {}
    else:
        assert items[3]["answer"] is None
        assert result.data["excluded"] == {"test: no room for an answer in the context": 1}


def test_a_config_without_questions_is_refused(tmp_path: Path) -> None:
    data = write_dataset(
        tmp_path / "ckl", {"newquestions-easy": {"test": [{"questions": "Who?", "answers": ["Anna"]}]}}
    )
    model = CachedModel(str(tiny_models.save("gpt2", tmp_path / "gpt2")), tmp_path / "scores")
    wanted = Evaluation(model.reference, str(data), {"new_questions": NewQuestions()}, (), tmp_path / "out", None)
    with pytest.raises(
        InputError, match=r"newquestions-easy, test: no column 'question' \(did you mean questions\?\)"
    ):
        evaluate(wanted, model)
