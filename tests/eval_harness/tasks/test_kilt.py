"""KILT: inputs, scores, cut and excluded rows, and fine-tuning."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedConfig

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.models.model import LIKELIHOODS, WEIGHTS, Model
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.runner import Evaluation, evaluate
from temporalwiki.eval_harness.task import check_columns
from temporalwiki.eval_harness.tasks import kilt
from temporalwiki.eval_harness.tasks.kilt import Kilt
from temporalwiki.methods.options import TrainOptions

import tiny_models
from a_dataset import write_dataset

UUID = "0f0e0d0c-0b0a-0908-0706-050403020100"
MENTION = "[START_ENT] Easton [END_ENT]"
tokenizer = cache(tiny_models.tokenizer)


@dataclass
class Canned(Model):
    """A model with given answers that records its prompts and training examples."""

    can = frozenset({LIKELIHOODS, WEIGHTS})

    kind: str = "llama"
    said: Mapping[str, str | None] = field(default_factory=dict)
    context: int | None = None
    asked: list[str] = field(default_factory=list)
    how: list[dict[str, Any]] = field(default_factory=list)
    taught: list[tuple[str, str]] = field(default_factory=list)
    options: TrainOptions | None = None

    @property
    def encoder_decoder(self) -> bool:
        return self.kind == "t5"

    @property
    def tokenizer(self) -> Any:
        return tokenizer(self.kind)

    @property
    def loaded(self) -> Any:
        return SimpleNamespace(model=SimpleNamespace(config=PreTrainedConfig(max_position_embeddings=self.context)))

    def generate(
        self, prompts: Sequence[str], what: str, max_new_tokens: int, beams: int, whole: bool
    ) -> list[str | None]:
        self.asked += prompts
        self.how.append({"max_new_tokens": max_new_tokens, "beams": beams, "whole": whole})
        return [self.said.get(prompt.removesuffix("\nAnswer:"), "") for prompt in prompts]


@pytest.fixture
def taught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces fine-tuning by a function that records its arguments."""

    @contextmanager
    def note(model: Canned, examples: list[tuple[str, str]], options: TrainOptions, what: str) -> Iterator[Canned]:
        model.taught, model.options = examples, options
        yield model

    monkeypatch.setattr(kilt, "fine_tuned", note)


def row(text: str | None, *answers: str, id: str = "1") -> dict[str, Any]:
    return {"id": id, "input": text, "answers": list(answers)}


def run(model: Canned, rows: list[dict[str, Any]], *, options: Any = None, **splits: list[dict[str, Any]]) -> Outcome:
    beside = {name.replace("__", "/"): of for name, of in splits.items()}
    return Kilt(**(options or {})).run(model, {"validation": rows, **beside})  # type: ignore[arg-type]


def values(found: Outcome) -> dict[str, float]:
    return {name: round(score.value, 2) for name, score in found.scores.items()}


# Scores


@pytest.mark.parametrize(
    ("said", "answers", "accuracy", "exact_match", "f1", "rouge_l"),
    [
        ("Jim Laker", ["Jim Laker"], 100, 100, 100, 100),
        ("jim laker", ["Jim Laker"], 0, 100, 100, 100),  # accuracy is not normalised
        ("The Jim Laker!", ["Jim Laker"], 0, 100, 100, 80),  # precision 2/3, recall 1
        ("Jim", ["Jim Laker"], 0, 0, 66.67, 66.67),
        ("Laker Jim", ["Jim Laker"], 0, 0, 100, 50),  # the longest common subsequence has one word of two
        ("metal", ["heavy metal", "metal"], 100, 100, 100, 100),  # the best answer counts
        ("he came and he went", ["he went", "she came"], 0, 0, 57.14, 57.14),  # 2 of 5 and 2 of 2
        ("SUPPORTS", ["REFUTES"], 0, 0, 0, 0),
        ("", ["REFUTES"], 0, 0, 0, 0),
    ],
)
def test_scores_are_those_of_kilt(
    said: str, answers: list[str], accuracy: float, exact_match: float, f1: float, rouge_l: float
) -> None:
    found = run(Canned(said={"Who?": said}), [row("Who?", *answers)])
    expected = {"accuracy": accuracy, "exact_match": exact_match, "f1": f1, "rouge_l": rouge_l}
    assert values(found) == {f"zero-shot/{name}": value for name, value in expected.items()}


# Input


@pytest.mark.parametrize(
    "given",
    [
        {"answers": ["Oslo", "Kristiania"]},
        {"output": ["Oslo", "Kristiania"]},
        {"output": [{"answer": "Oslo"}, {"answer": None}, {"provenance": []}, {"answer": " Kristiania "}]},
        {"answers": ["", " ", "Oslo", "Kristiania\n"], "output": None},
    ],
)
def test_answers_are_texts_or_kilts_output(given: dict[str, Any], taught: None) -> None:
    question = {"id": "1", "input": " What is it? ", **given}
    model = Canned(said={"What is it?": "Kristiania"})
    found = run(model, [question], nq__train=[question])
    assert values(found)["fine-tuned/accuracy"] == 100
    assert model.taught == [("What is it?\nAnswer:", " Oslo")]


def test_rows_that_cannot_be_asked_or_learnt_are_counted(taught: None) -> None:
    rows = [row("Who?", "Jim"), row("Who?"), row("Who?", " "), row(None, "Jim"), row(" ", "Jim"), row("Whom?", "Jim")]
    model = Canned(said={"Who?": "Jim", "Whom?": None})
    found = run(model, rows, nq__train=rows)
    assert len(found.items) == 1
    assert +found.excluded == {  # type: ignore[operator]
        "validation: no answer": 2,
        "validation: no input": 2,
        "validation: no room for an answer in the context": 1,
        "train: no answer": 2,
        "train: no input": 2,
    }
    assert [prompt for prompt, _ in model.taught] == ["Who?\nAnswer:", "Whom?\nAnswer:"]


def test_rows_without_a_column_of_answers_are_refused() -> None:
    with pytest.raises(InputError, match=r"validation: no column 'answers' \(did you mean answer\?\)"):
        run(Canned(), [{"id": "1", "input": "Who?", "answer": "Jim"}])


@pytest.mark.parametrize(
    ("id", "text", "cluster"),
    [
        ("5328212470870865242", "who is it", "who is it"),
        ("sfq_17752", "who is it", "who is it"),
        (UUID, "Anna Weber [SEP] occupation", "Anna Weber"),
        (f"{UUID}_947testa CRICKET:12", f"{MENTION} won", "947testa CRICKET"),
        (f"{UUID}_Bob_[a]: x:0", f"{MENTION} won", "Bob_[a]: x"),
        (f"{UUID}_3", "I like it.\nSo do I.", UUID),
    ],
)
def test_what_is_not_independent_is_one_cluster(id: str, text: str, cluster: str) -> None:
    [item] = run(Canned(), [row(text, "x", id=id)]).items
    assert (item["id"], item["cluster"]) == (id, cluster)


@pytest.mark.parametrize(
    ("config", "beside"),
    [
        ("kilt-nq", {"nq": "kilt-nq"}),
        ("kilt-wned", {"aidayago2": "kilt-aidayago2"}),
        ("kilt-cweb", {"aidayago2": "kilt-aidayago2"}),
    ],
)
def test_linking_without_a_train_split_learns_from_aidas(config: str, beside: dict[str, str]) -> None:
    assert Kilt().extra_configs(config) == beside


# Training and prompts


@pytest.mark.parametrize(
    ("kind", "learnt", "expected"),
    [
        ("t5", "nq", {"epochs": 45, "batch_size": 768, "learning_rate": 1e-3, "optimizer": "adafactor"}),
        ("t5", "wow", {"epochs": 8, "batch_size": 96, "learning_rate": 1e-4, "schedule": "constant"}),
        ("gpt2", "nq", {"epochs": 45, "batch_size": 768, "learning_rate": 5e-5, "optimizer": "adamw"}),
        ("gpt2", "new_one", {"epochs": 10, "batch_size": 128, "learning_rate": 5e-5, "schedule": "linear"}),
    ],
)
def test_training_is_ckls_unless_it_is_said(kind: str, learnt: str, expected: dict[str, Any], taught: None) -> None:
    model = Canned(kind)
    rows = [row("Who?", "Jim")]
    run(model, rows, **{f"{learnt}__train": rows})
    assert {name: getattr(model.options, name) for name in expected} == expected
    given = {"epochs": 2, "batch_size": 3, "learning_rate": 4.0}
    run(model, rows, options=given, **{f"{learnt}__train": rows})
    assert {name: getattr(model.options, name) for name in given} == given


@pytest.mark.parametrize(
    ("learnt", "train", "expected"),
    [
        ("eli5", True, {"max_new_tokens": 350, "whole": True}),
        ("wow", False, {"max_new_tokens": 40, "whole": True}),
        ("nq", True, {"max_new_tokens": 20, "whole": True}),
        ("nq", False, {"max_new_tokens": 20, "whole": False}),
    ],
)
def test_answers_end_where_they_should(learnt: str, train: bool, expected: dict[str, Any], taught: None) -> None:
    rows = [row("Who?", "Jim")]
    model = Canned()
    run(model, rows, options={"beams": 2}, **{f"{learnt}__train": rows if train else []})
    assert model.how == [{**expected, "beams": 2}]
    run(model, rows, options={"max_new_tokens": 7}, **{f"{learnt}__train": rows if train else []})
    assert model.how[1] == {**expected, "max_new_tokens": 7, "beams": 1}


def test_an_encoder_decoder_model_reads_the_input_as_it_is(taught: None) -> None:
    model = Canned("t5")
    run(model, [row("Who?", "Jim")], nq__train=[row("Whom?", "Jo")])
    assert (model.asked, model.taught) == (["Who?"], [("Whom?", "Jo")])


@pytest.mark.parametrize("name", ["epochs", "batch_size", "input_length", "max_new_tokens", "beams"])
def test_values_out_of_range_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} must be at least 1, not 0"):
        Kilt(**{name: 0})


# Cut inputs


def tokens(kind: str, text: str) -> int:
    return len(tokenizer(kind)(text, add_special_tokens=False)["input_ids"])


words = st.text(st.sampled_from("ab é東\t\n'-."), max_size=120)


@settings(max_examples=60)
@given(before=words, after=words, most=st.integers(70, 120), kind=st.sampled_from(tiny_models.KINDS))
def test_a_long_input_is_cut_around_its_mention(before: str, after: str, most: int, kind: str) -> None:
    model = Canned(kind)
    whole = f"{before} {MENTION} {after}".strip()
    found = run(model, [row(whole, "x")], options={"input_length": most})
    read = model.asked[0]
    text = read.removesuffix("\nAnswer:")
    assert MENTION in text
    assert text in whole
    assert tokens(kind, read) <= most
    fits = tokens(kind, read.replace(text, whole)) <= most
    assert (text == whole) == fits
    assert sum(found.excluded.values()) == (not fits)


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_what_is_kept_lies_evenly_around_the_mention(kind: str) -> None:
    model = Canned(kind)
    run(model, [row(f"{'a ' * 300}{MENTION}{' b' * 300}", "x")], options={"input_length": 101})
    before, _, after = model.asked[0].removesuffix("\nAnswer:").partition(MENTION)
    assert before.count("a") > 10
    assert abs(before.count("a") - after.count("b")) <= 8


def test_of_a_long_dialogue_the_end_is_read(taught: None) -> None:
    talk = "\n".join(f"I said {n}." for n in range(200))
    model = Canned()
    found = run(model, [row(talk, "x")], wow__train=[row(talk, "y")], options={"input_length": 50})
    assert model.asked[0].endswith("I said 198.\nI said 199.\nAnswer:")
    assert model.taught[0][0] == model.asked[0]
    assert +found.excluded == {  # type: ignore[operator]
        "validation: the rest of an input over 50 tokens": 1,
        "train: the rest of an input over 50 tokens": 1,
    }


def test_an_input_leaves_room_for_the_answer_in_the_context(taught: None) -> None:
    model = Canned("gpt2", context=64)
    rows = [row("Anna Weber lives in Easton. " * 30, "In Easton, Norland. " * 30)]
    found = run(model, rows, nq__train=rows, options={"max_new_tokens": 10})
    [(prompt, answer)] = model.taught
    assert prompt == model.asked[0]
    assert 40 < 1 + tokens("gpt2", prompt) <= 64 - 10  # with BOS
    assert " In Easton, Norland. In Easton".startswith(answer)
    assert tokens("gpt2", answer) >= 8
    assert +found.excluded == {  # type: ignore[operator]
        "validation: the rest of an input over 53 tokens": 1,
        "train: the rest of an input over 53 tokens": 1,
        "train: the rest of an answer over 10 tokens": 1,
    }
    with pytest.raises(UsageError, match="no part of an input fits"):
        run(model, rows, options={"max_new_tokens": 60})


# With real data and real models

DATA_SETS = ["aidayago2", "cweb", "eli5", "fever", "hotpotqa", "nq", "structured_zeroshot", "trex", "wned", "wow"]


def published(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("name", DATA_SETS)
def test_rows_as_they_are_published_are_read(name: str, shared_data: Path, taught: None) -> None:
    """Giving back the first answer is right by every measure; only inputs of entity linking are cut."""
    dev = published(shared_data / "kilt" / name / f"{name}-dev-kilt.jsonl")
    learnt = Kilt().extra_configs(f"kilt-{name}")
    [source] = learnt
    train = published(shared_data / "kilt" / source / f"{source}-train-kilt.jsonl")
    first = {r["input"].strip(): next(o["answer"] for o in r["output"] if "answer" in o) for r in dev}
    model = Canned("gpt2", said=first)
    check_columns(dev, Kilt.columns, name)
    options = {"input_length": 100_000, "max_new_tokens": 100_000}
    found = run(model, dev, options=options, **{f"{source}__train": train})
    assert +found.excluded == {}  # type: ignore[operator]
    assert set(values(found).values()) == {100}
    assert len(found.items) == len(dev)
    assert len(model.taught) == len(train)
    short = Canned("t5")
    cut = +run(short, dev, **{f"{source}__train": train}).excluded  # type: ignore[operator]
    linking = source == "aidayago2"
    assert any(reason.startswith("validation: the rest of an input") for reason in cut) == linking
    assert all("[START_ENT]" in prompt and "[END_ENT]" in prompt for prompt in short.asked) == linking


def test_triviaqa_without_its_questions_is_refused(shared_data: Path, tmp_path: Path) -> None:
    rows = published(shared_data / "kilt" / "triviaqa_support_only" / "triviaqa-dev_id-kilt.jsonl")
    data = str(write_dataset(tmp_path / "ckl", {"kilt-triviaqa_support_only": {"validation": rows}}))
    model = CachedModel(str(tiny_models.save("llama", tmp_path / "llama")), tmp_path / "scores")
    wanted = Evaluation(model.reference, data, {"kilt": Kilt()}, (), tmp_path / "results", None)
    with pytest.raises(InputError, match="kilt-triviaqa_support_only, validation: no column 'input'"):
        evaluate(wanted, model)


@pytest.mark.usefixtures("quick")
def test_what_the_train_split_says_is_learnt(tmp_path: Path) -> None:
    """WnWi is scored with the model trained on all of AIDA: a limit only shortens the scored split."""
    rows = [row(f"{MENTION} Anna", "of", id="a"), row(f"{MENTION} Bo", "The! In", id="b")]
    one = rows[::-1]
    both = {"train": rows, "validation": rows}
    configs = {"kilt-aidayago2": both, "kilt-wned": {"validation": one}, "kilt-nq": {"validation": one}}
    data = str(write_dataset(tmp_path / "ckl", configs))
    model = CachedModel(str(tiny_models.save("llama", tmp_path / "llama")), tmp_path / "scores")
    task = Kilt(epochs=60, batch_size=2, learning_rate=1e-2, max_new_tokens=8)
    wanted = Evaluation(model.reference, data, {"kilt": task}, ("kilt-wned", "kilt-nq"), tmp_path / "results", 1)
    tuned, asked = evaluate(wanted, model)
    assert {name: (s["value"], s["items"]) for name, s in tuned.data["scores"].items()} == {
        f"fine-tuned/{name}": (100, 1) for name in ("accuracy", "exact_match", "f1", "rouge_l")
    }
    assert tuned.data["data"]["rows"] == {"validation": 1, "aidayago2/train": 2, "aidayago2/validation": 2}
    assert asked.data["scores"]["zero-shot/accuracy"]["value"] == 0
    assert tuned.data["excluded"] == asked.data["excluded"] == {}
    assert list((tmp_path / "scores" / "fine-tuned").iterdir()) == []
