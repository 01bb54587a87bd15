"""TWiki-Probes, compared with plain `transformers` and with answers that the models were trained on."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_transformers import fact, load

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.commands import main
from temporalwiki.eval_harness.facts import UNSCORED
from temporalwiki.eval_harness.measures import composition
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.statistics import Estimate
from temporalwiki.eval_harness.tasks.twiki_probes import TwikiProbes

import tiny_models
from tiny_probes import CHANGED, LIGHT_TUNING, UNCHANGED, rows, save_taught, write_month

pytestmark = pytest.mark.usefixtures("quick")

ROWS = {"unchanged": rows(UNCHANGED), "changed": rows(CHANGED)}
# The models learned these answers; every third is "the OBJECT in Easton", two words more than OBJECT,
# so no exact match and, for an OBJECT of n = 1 words, an F1 of n / (n + 1). T5's tokenizer has no letter of 日本.
EXACT_MATCH = {"unchanged": [0, 1, 1, 0, 1], "changed": [1, 0, 1, 1]}
F1 = {"unchanged": [0.5, 1, 1, 0.5, 1], "changed": [1, 0.5, 1, 1]}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {kind: save_taught(kind, folder / kind) for kind in tiny_models.KINDS}


def run(model: Path, store: Path, given: Mapping[str, Sequence[Any]], **options: Any) -> Outcome:
    return TwikiProbes(**options).run(CachedModel(str(model), store), given)


# Against plain transformers


plain = cache(load)


def reference(folder: Path, subject: str, relation: str, label: str) -> dict[str, float]:
    names = ("nll", "tokens", "object_nll", "object_tokens", "bytes")
    return dict(zip(names, fact(*plain(folder), f"{subject} {relation}", label), strict=True))


@pytest.mark.parametrize("kind", tiny_models.KINDS)
def test_scores_are_those_of_one_probe_at_a_time(kind: str, models: dict[str, Path], tmp_path: Path) -> None:
    outcome = run(models[kind], tmp_path, ROWS, light_tuning=False)
    known = kind != "t5"
    expected: dict[str, float] = {}
    for split, facts in (("unchanged", UNCHANGED), ("changed", CHANGED)):
        of = [reference(models[kind], *fact) for fact in facts]
        total = {name: sum(one[name] for one in of) for name in of[0]}
        expected |= {
            f"{split}/perplexity": math.exp(total["nll"] / total["tokens"]),
            f"{split}/perplexity_instance_mean": sum(math.exp(one["nll"] / one["tokens"]) for one in of) / len(of),
            f"{split}/object_perplexity": math.exp(total["object_nll"] / total["object_tokens"]),
            f"{split}/bits_per_byte": total["nll"] / math.log(2) / total["bytes"],
            f"{split}/exact_match": 100 * (sum(EXACT_MATCH[split]) - (split == "changed" and not known)) / len(of),
            f"{split}/f1": 100 * (sum(F1[split]) - (split == "changed" and not known)) / len(of),
        }
    for measure in [name.partition("/")[2] for name in expected if name.startswith("changed")]:
        expected[f"average/{measure}"] = (expected[f"unchanged/{measure}"] + expected[f"changed/{measure}"]) / 2
    assert {name: of.value for name, of in outcome.scores.items()} == pytest.approx(expected, rel=1e-4)
    assert outcome.excluded == {}
    sizes = {name.partition("/")[0]: (of.items, of.clusters) for name, of in outcome.scores.items()}
    # Anna Weber is the subject of three probes, Norland of two
    assert sizes == {"unchanged": (5, 4), "changed": (4, 4), "average": (9, 6)}


HOSTILE = [
    "<|endoftext|>",
    "<s></s><pad>",
    "a\0b",
    "two\nlines",
    "  spaced  ",
    "\u202eright to left",
    "👩‍👩‍👧",
    "é́́́",
    "x" * 150,
]


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_hostile_labels_are_text(kind: str, models: dict[str, Path], tmp_path: Path) -> None:
    facts = [("Anna", "is", label) for label in HOSTILE] + [(label, "is", "Easton") for label in HOSTILE]
    outcome = run(models[kind], tmp_path, {"changed": rows(facts)}, light_tuning=False, answers=False)
    assert outcome.excluded == {}
    for item, named in zip(outcome.items, facts, strict=True):
        expected = reference(models[kind], *named)
        assert {name: item[name] for name in expected} == pytest.approx(expected, rel=1e-4), named


def test_hostile_labels_do_not_stop_t5(models: dict[str, Path], tmp_path: Path) -> None:
    """A fact without a token in T5's vocabulary is excluded and counted."""
    facts = [("Anna", "is", label) for label in [*HOSTILE, "<extra_id_0>"]]
    outcome = run(models["t5"], tmp_path, {"changed": rows(facts)}, light_tuning=False)
    assert len(outcome.items) + sum(outcome.excluded.values()) == len(facts)
    assert all(math.isfinite(item["nll"]) for item in outcome.items)


# Right answers


def test_every_right_object_and_alias_is_a_right_answer(models: dict[str, Path], tmp_path: Path) -> None:
    """The model says "the Easton in Easton", "Easton", "Norland", "the Norland in Easton" and "St. Louis"."""
    more: list[dict[str, Any]] = [
        {"objects": ["Easton", "Easton in Easton"], "aliases": []},  # also right, and that is what the model says
        {"objects": ["Weston"], "aliases": ["West"]},  # the fact's own object counts always
        {"objects": ["Norland", "Sudland"], "aliases": []},
        {"objects": ["Norland"], "aliases": ["Norland Easton"]},  # two of three words: F1 is 2 * 2 / (3 + 2)
        {"objects": None, "aliases": None},
    ]
    asked = [row | columns for row, columns in zip(rows(UNCHANGED), more, strict=True)]
    found = run(models["gpt2"], tmp_path, {"unchanged": asked}, light_tuning=False)
    assert [item["exact_match"] for item in found.items] == [1, 1, 1, 0, 1]
    assert [item["f1"] for item in found.items] == pytest.approx([1, 1, 1, 0.8, 1])


# Strict facts


def test_the_strict_tests_are_those_of_the_strict_probes(models: dict[str, Path], tmp_path: Path) -> None:
    graded = {split: [row | {"strict": i % 2 == 0} for i, row in enumerate(of)] for split, of in ROWS.items()}
    only = {split: [row for row in of if row["strict"]] for split, of in graded.items()}
    found = run(models["gpt2"], tmp_path, graded, light_tuning=False)
    strict = {name.removeprefix("strict/"): of for name, of in found.scores.items() if name.startswith("strict/")}
    alone = run(models["gpt2"], tmp_path, only, light_tuning=False).scores
    assert strict == {name: of for name, of in alone.items() if not name.startswith("strict/")}
    rest = {name: of for name, of in found.scores.items() if not name.startswith("strict/")}
    assert rest == run(models["gpt2"], tmp_path, ROWS, light_tuning=False).scores
    items = {name: np.array([item[name] for item in found.items]) for name in ("id", "cluster", "split", "strict")}
    items |= {name: np.array([item[name] for item in found.items], float) for name in ("nll", "tokens")}
    for test in ("changed", "average"):
        again = composition(items, f"strict/{test}", "perplexity")
        assert again is not None
        assert again.value == pytest.approx(strict[f"{test}/perplexity"].value)


def test_older_datasets_have_no_strict_tests(models: dict[str, Path], tmp_path: Path) -> None:
    found = run(models["gpt2"], tmp_path, ROWS, light_tuning=False)
    assert not [name for name in found.scores if name.startswith("strict/")]


# Light-tuning


def test_light_tuning_is_that_of_the_command_train(models: dict[str, Path], tmp_path: Path) -> None:
    """The model is light-tuned on the facts of ``lighttuning-*`` and scored on the same probes."""
    data = write_month(tmp_path / "data")
    words = ("--model", models["gpt2"], "--data", data, "--config", "lighttuning-1112", "--output", tmp_path / "tuned")
    assert main(["train", "--method", "light_tuning", *map(str, words)]) == 0
    facts = {"light-tuning/unchanged": rows(LIGHT_TUNING)}
    outcome = run(models["gpt2"], tmp_path / "scores", ROWS | facts)
    tuned = run(tmp_path / "tuned", tmp_path / "scores", ROWS, light_tuning=False)
    scores = {name.removeprefix("light-tuned/"): of for name, of in outcome.scores.items() if "light" in name}
    assert scores == tuned.scores
    assert scores["average/perplexity"] != outcome.scores["average/perplexity"]
    zero_shot = run(models["gpt2"], tmp_path / "scores", ROWS, light_tuning=False)
    assert {name: of for name, of in outcome.scores.items() if "light" not in name} == zero_shot.scores
    assert [item["split"] for item in outcome.items] == [
        stage + split for stage in ("", "light-tuned/") for split in ROWS for _ in ROWS[split]
    ]
    assert outcome.excluded == {}
    assert not list((tmp_path / "scores" / "light-tuned").iterdir())


@pytest.fixture
def learnt(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Replaces light-tuning by a function that records the facts."""
    facts: list[Any] = []

    @contextmanager
    def note(self: CachedModel, given: Sequence[Any]) -> Iterator[CachedModel]:
        facts.extend(given)
        yield self

    monkeypatch.setattr(CachedModel, "light_tuned", note)
    return facts


def test_nothing_about_a_probed_subject_is_learnt(models: dict[str, Path], tmp_path: Path, learnt: list[Any]) -> None:
    of_probes = rows([("Anna Weber", "lives in", "Easton"), ("Norland", "capital", "Easton")])
    facts = {"light-tuning/unchanged": rows(LIGHT_TUNING) + of_probes[:1], "light-tuning/changed": of_probes[1:]}
    outcome = run(models["gpt2"], tmp_path, ROWS | facts, answers=False)
    assert learnt == rows(LIGHT_TUNING)
    assert outcome.excluded == {
        "light-tuning/unchanged: about a subject that is probed": 1,
        "light-tuning/changed: about a subject that is probed": 1,
    }


SKIPPED: dict[str, tuple[str, dict[str, Any], str]] = {
    "no config of facts": ("gpt2", {}, "light-tuned: no facts to light-tune on"),
    "no facts in it": ("gpt2", {"light-tuning/unchanged": []}, "light-tuned: no facts to light-tune on"),
    "T5": (
        "t5",
        {"light-tuning/unchanged": rows(LIGHT_TUNING)},
        "light-tuned: an encoder-decoder model is not light-tuned",
    ),
}


@pytest.mark.parametrize("case", SKIPPED)
def test_that_there_is_no_light_tuning_is_said(
    case: str, models: dict[str, Path], tmp_path: Path, learnt: list[Any]
) -> None:
    kind, facts, reason = SKIPPED[case]
    outcome = run(models[kind], tmp_path, ROWS | facts, answers=False)
    assert outcome.excluded == {reason: 9}
    assert not [name for name in outcome.scores if "light" in name]
    assert learnt == []


def test_light_tuning_reads_the_facts_of_the_same_months() -> None:
    assert TwikiProbes().extra_configs("probes-1112") == {"light-tuning": "lighttuning-1112"}
    assert TwikiProbes().extra_configs("probes-20211101-20211201") == {"light-tuning": "lighttuning-20211101-20211201"}
    assert TwikiProbes(light_tuning=False).extra_configs("probes-1112") == {}


# Odd rows


def test_what_cannot_be_asked_is_counted(models: dict[str, Path], tmp_path: Path, learnt: list[Any]) -> None:
    """An empty label, one too long for the model's 256 tokens, one that leaves no room for an answer, a fact twice."""
    broken = rows([("Anna", "is", " "), ("", "is", "x"), ("Anna", "is", "Easton" * 300), ("a" * 245, "is", "x")])
    broken += [{**broken[0], "relation": None}, {**broken[0], "object": None}, dict(ROWS["changed"][0])]
    facts = [{**rows(LIGHT_TUNING)[0], "object": None}, *rows(LIGHT_TUNING)]
    outcome = run(models["gpt2"], tmp_path, {"changed": ROWS["changed"] + broken, "light-tuning/unchanged": facts})
    once = {f"changed: {UNSCORED}": 1, "changed: no room for an answer in the context": 1}
    assert outcome.excluded == {
        "changed: no object": 2,
        "changed: no subject": 1,
        "changed: no relation": 1,
        "changed: the same fact as another": 1,
        "light-tuning/unchanged: no object": 1,
        **once,
        **{f"light-tuned/{reason}": count for reason, count in once.items()},
    }
    assert learnt == facts[1:]
    estimate = outcome.scores["changed/perplexity"]
    assert (estimate.items, outcome.scores["changed/exact_match"].items) == (5, 4)
    assert not [name for name in outcome.scores if "unchanged" in name or "average" in name]


def test_a_label_that_is_no_text_is_an_error(models: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="changed: object is 1961; a column of text is needed"):
        run(models["gpt2"], tmp_path, {"changed": [{**ROWS["changed"][0], "object": 1961}]})
    with pytest.raises(InputError, match=r"light-tuning/changed: no column 'object' \(did you mean objects\?\)"):
        facts = [{"subject": "a", "relation": "b", "objects": "c"}]
        run(models["gpt2"], tmp_path, ROWS | {"light-tuning/changed": facts})


@pytest.mark.parametrize("left_out", ["unchanged", "changed"])
def test_one_split_has_no_average(left_out: str, models: dict[str, Path], tmp_path: Path) -> None:
    given = {split: of for split, of in ROWS.items() if split != left_out}
    for rest in (given, given | {left_out: []}):
        outcome = run(models["gpt2"], tmp_path, rest, light_tuning=False, answers=False)
        assert {name.partition("/")[0] for name in outcome.scores} == set(given)


# Options


def test_answers_can_be_left_out(models: dict[str, Path], tmp_path: Path) -> None:
    outcome = run(models["gpt2"], tmp_path, ROWS, light_tuning=False, answers=False)
    assert not [name for name in outcome.scores if "exact_match" in name or "f1" in name]
    assert {item["answer"] for item in outcome.items} == {None}
    assert outcome.excluded == {}


def test_beams_and_the_longest_answer(models: dict[str, Path], tmp_path: Path) -> None:
    """Options of answers change the answers and nothing else."""
    found: list[dict[str, Estimate]] = []
    for options in ({}, {"max_new_tokens": 1}, {"beams": 2}):
        found.append(dict(run(models["gpt2"], tmp_path, ROWS, light_tuning=False, **options).scores))
    assert found[1]["average/exact_match"].value < found[0]["average/exact_match"].value
    assert len({of["average/perplexity"].value for of in found}) == 1
    for name in ("beams", "max_new_tokens"):
        with pytest.raises(UsageError, match="must be at least 1"):
            TwikiProbes(**{name: 0})


def test_the_order_of_the_probes_does_not_matter(models: dict[str, Path], tmp_path: Path) -> None:
    turned = {split: of[::-1] for split, of in reversed(ROWS.items())}
    one, other = (
        run(models["llama"], tmp_path / name, given, light_tuning=False)
        for name, given in (("a", ROWS), ("b", turned))
    )
    values = [{name: of.value for name, of in outcome.scores.items()} for outcome in (one, other)]
    assert values[0] == pytest.approx(values[1], rel=1e-5)
    assert {item["id"] for item in one.items} == {item["id"] for item in other.items}
    assert len({item["id"] for item in one.items}) == 9
