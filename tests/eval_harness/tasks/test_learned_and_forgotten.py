"""Learned and forgotten: facts known in panels, from models and from their results, and what cannot be compared."""

import functools
import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plain_transformers
import pyarrow.parquet as pq
import pytest

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.eval_harness import panel_items
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.models.model import FactScore
from temporalwiki.eval_harness.models.stored import StoredScores, open_scores
from temporalwiki.eval_harness.panel_items import known_items, wording
from temporalwiki.eval_harness.results import Result
from temporalwiki.eval_harness.runner import Evaluation, evaluate
from temporalwiki.eval_harness.tasks import find_task
from temporalwiki.eval_harness.tasks.learned_and_forgotten import LearnedAndForgotten

import tiny_models
from a_dataset import write_dataset

pytestmark = pytest.mark.usefixtures("quick")

PLACES = ("Norland", "Sudland", "Eastland", "Westland", "Midland", "Farland", "Nearland", "Lowland")


def facts(split: str, relation: str = "head of state", id: str = "P35", **columns: Any) -> list[dict[str, Any]]:
    """Eight facts of a relation with different subjects and objects."""
    return [
        {
            "subject": f"{split} {place}",
            "relation": relation,
            "relation_id": id,
            "object": f"Weber {i} of {split}",
            "support": "stated" if i % 2 else "mentioned",
            "strict": i < 4,
            "gone_objects": [f"older {i}"],
            **columns,
        }
        for i, place in enumerate(PLACES)
    ]


CHANGED = [row | {"gone_objects": [f"old {i}"] * (i < 3)} for i, row in enumerate(facts("new"))]
UNCHANGED = facts("old")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset, a start model, and another model."""
    folder = tmp_path_factory.mktemp("world")
    write_dataset(folder / "data", {"probes-1112": {"unchanged": UNCHANGED, "changed": CHANGED}})
    tokenizer = tiny_models.tokenizer("gpt2")
    for seed, name in enumerate(("start", "model")):
        tiny_models.model("gpt2", len(tokenizer), seed).save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return folder


def run(world: Path, out: Path, start: Path | None, model: str = "model", **changes: Any) -> list[Result]:
    options = changes.pop("options", {})
    tasks = changes.pop("tasks", ("learned_and_forgotten",))
    found = open_scores(str(world / model), world / "kept", "fp32")
    of = {name: find_task(name)(**options) for name in tasks}
    wanted = Evaluation(
        str(world / model), str(world / "data"), of, (), out, None, start=None if start is None else str(start)
    )
    return evaluate(replace(wanted, **changes), found)


def values(result: Result) -> dict[str, float]:
    return {name: score.value for name, score in result.manifest.scores.items()}


# From a model


def test_it_is_the_rule_of_the_design(world: Path, tmp_path: Path) -> None:
    """By plain transformers: each fact's object against each other one of its panel, compared with other subjects."""
    [result] = run(world, tmp_path, world / "start")
    loaded = {name: plain_transformers.load(world / name) for name in ("start", "model")}

    @functools.cache
    def likelihood(name: str, subject: str, label: str) -> float:
        return -plain_transformers.fact(*loaded[name], f"{subject} head of state", label)[2]

    def beats(name: str, row: Any, label: str, others: list[Any]) -> bool:
        own = likelihood(name, row["subject"], row["object"]) - likelihood(name, row["subject"], label)
        of_others = [
            likelihood(name, other["subject"], row["object"]) - likelihood(name, other["subject"], label)
            for other in others
        ]
        return own > np.mean(of_others)

    known: dict[str, list[bool]] = {}
    for split, rows in (("new", CHANGED), ("old", UNCHANGED)):
        for name in loaded:
            known[f"{split} {name}"] = [
                all(
                    beats(name, row, other["object"], [one for one in rows if one not in (row, other)])
                    for other in rows
                    if other is not row
                )
                for row in rows
            ]
    corrected = [
        beats("model", row, f"old {i}", [r for r in CHANGED if r is not row]) for i, row in enumerate(CHANGED[:3])
    ]
    share = {name: 100 * np.mean(of) for name, of in known.items()}
    scores = values(result)
    assert scores["all/new_known"] == pytest.approx(share["new model"])
    assert scores["all/old_known"] == pytest.approx(share["old model"])
    assert scores["all/learned"] == pytest.approx(share["new model"] - share["new start"])
    assert scores["all/forgotten"] == pytest.approx(share["old start"] - share["old model"])
    assert scores["all/corrected"] == pytest.approx(100 * np.mean(corrected))
    assert scores["all/chance"] == 100 / 8
    assert scores["strict/new_known"] == pytest.approx(100 * np.mean(known["new model"][:4]))
    assert scores["stated/old_known"] == pytest.approx(100 * np.mean(known["old model"][1::2]))
    for score in result.manifest.scores.values():
        if score.low is not None:  # of one fact, nothing is known
            assert -100 <= score.low <= score.value <= score.high <= 100


def test_a_model_learned_and_forgot_nothing_since_itself(world: Path, tmp_path: Path) -> None:
    [result] = run(world, tmp_path, world / "model")
    found = values(result)
    assert found["all/learned"] == found["all/forgotten"] == 0
    assert result.manifest.scores["all/learned"].low < 0 < result.manifest.scores["all/learned"].high  # type: ignore[operator]


def test_without_a_start_model_it_still_knows(world: Path, tmp_path: Path) -> None:
    [result] = run(world, tmp_path, None)
    measures = {name.partition("/")[2] for name in values(result)}
    assert measures == {"new_known", "old_known", "corrected", "chance"} | {
        f"all/{m}" for m in ("new_known", "old_known", "chance")
    }


def test_a_limit_chooses_facts_but_not_their_panels(world: Path, tmp_path: Path) -> None:
    [all_facts] = run(world, tmp_path / "all", None)
    [few] = run(world, tmp_path / "few", None, limit=3)
    known = {item["id"]: (item["known"], item["panel"]) for item in all_facts.items()}
    assert len(few.items()) == 3 * 2 * 2  # splits; by the model and by spelling
    assert all(known[item["id"]] == (item["known"], item["panel"]) for item in few.items())


def test_evidence_stands_before_every_cell_of_its_row_and_not_before_the_start_model(
    world: Path, tmp_path: Path
) -> None:
    rows = [row | {"evidence": f"{row['object']} leads." if i < 4 else ""} for i, row in enumerate(CHANGED)]
    old = [row | {"evidence": ""} for row in UNCHANGED]
    data = str(write_dataset(tmp_path / "data", {"probes-1112": {"changed": rows, "unchanged": old}}))
    [closed] = run(world, tmp_path / "closed", None, data=data)
    [read] = run(world, tmp_path / "read", world / "model", data=data, retrieve="evidence")
    without, items = ({i["id"]: i for i in one.items() if i["form"] == "name"} for one in (closed, read))
    differ = {id for id, item in items.items() if abs(item["object_nll"] - without[id]["object_nll"]) > 1e-5}
    assert differ == {id for id, item in items.items() if item["cluster"] in {row["subject"] for row in rows[:4]}}
    assert all(items[id]["start_known"] == without[id]["known"] for id in items)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_a_temperature_is_recorded_and_hardly_matters(world: Path, tmp_path: Path, temperature: float) -> None:
    [plain] = run(world, tmp_path, None)
    [soft] = run(world, tmp_path, None, options={"temperature": temperature})
    assert soft.path != plain.path
    assert soft.data["task"]["options"]["temperature"] == temperature
    assert "temperature" not in plain.data["task"]["options"]
    name = lambda result: {item["id"]: item for item in result.items() if item["form"] == "name"}  # noqa: E731
    before, after = name(plain), name(soft)
    assert all(abs(before[id]["object_nll"] - after[id]["object_nll"]) > 1e-6 for id in before)
    assert abs(values(plain)["all/new_known"] - values(soft)["all/new_known"]) <= 100 * 3 / 8


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ({"changed": CHANGED[:4], "unchanged": UNCHANGED[:1]}, ("changed", 4)),
        ({"changed": CHANGED, "unchanged": facts("old", "anthem", "P85")[:5]}, ("unchanged", 5)),
    ],
)
def test_a_split_without_panels_is_counted_and_named(world: Path, tmp_path: Path, rows: Any, says: Any) -> None:
    split, count = says
    data = str(write_dataset(tmp_path / "data", {"probes-1112": rows}))
    excluded: dict[str, int] = {}
    try:
        [result] = run(world, tmp_path / "out", None, data=data)
        excluded = dict(result.manifest.excluded)
        assert excluded[f"{split}: without a panel, so nothing of this split is scored"] == 1
        assert excluded[f"{split}: in a panel of fewer than 6 facts of the relation"] == count
    except InputError as error:  # nothing at all
        assert f"{count} {split}: in a panel of fewer than 6 facts of the relation" in str(error)


# Forms


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("name", ("Chile head of state", "")),
        ("cloze", ("The head of state of Chile is", ".")),
        ("question", ("Question: Who is the head of state of Chile? Answer:", "")),
        ("reverse", ("Gabriel Boric is the head of state of", ".")),
    ],
)
def test_wordings(form: str, expected: tuple[str, str]) -> None:
    row = {"subject": "Chile", "relation": "head of state", "relation_id": "P35", "object": "Gabriel Boric"}
    assert wording(row, form) == expected
    assert (wording(row | {"relation": "did so with", "relation_id": "P99999"}, form) is None) == (form != "name")


def test_several_forms_have_their_own_scores_their_mean_and_the_worst(world: Path, tmp_path: Path) -> None:
    forms = ("name", "cloze", "question", "reverse")
    [result] = run(world, tmp_path, world / "start", options={"forms": forms})
    found = values(result)
    for measure in ("new_known", "old_known", "learned"):
        each = [found[f"{form}/all/{measure}"] for form in forms]
        assert found[f"all/{measure}"] == pytest.approx(np.mean(each))
        assert found[f"worst/all/{measure}"] == min(each)
    assert found["worst/all/forgotten"] == max(found[f"{form}/all/forgotten"] for form in forms)
    counts = Counter(item["form"] for item in result.items())
    assert counts == {**dict.fromkeys(forms, 16), "spelling": 16}


def test_facts_whose_object_several_subjects_have_are_not_asked_in_reverse(world: Path, tmp_path: Path) -> None:
    rows = [*CHANGED, CHANGED[0] | {"subject": "another", "gone_objects": []}]
    data = str(write_dataset(tmp_path / "data", {"probes-1112": {"changed": rows, "unchanged": UNCHANGED}}))
    [result] = run(world, tmp_path / "out", None, data=data, options={"forms": ("reverse",)})
    assert result.manifest.excluded["changed: several subjects have the object"] == 2
    assert sum(item["split"] == "changed" and item["form"] == "reverse" for item in result.items()) == 7


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"forms": ("nmae",)}, r"no form 'nmae' \(did you mean name\?\); there are name, cloze, question, reverse"),
        ({"forms": ("name", "name")}, "name each form once"),
        ({"forms": ()}, "name each form once"),
        ({"temperature": 0.0}, "temperature must be above 0"),
        ({"seed": -1}, "seed must be at least 0"),
    ],
)
def test_wrong_options_are_refused(options: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        LearnedAndForgotten(**options)


# The controls


def test_relations_that_can_be_guessed_by_spelling_are_named_and_not_strict(world: Path, tmp_path: Path) -> None:
    named = [
        row | {"object": f"President of {row['subject']}", "strict": True, "gone_objects": ["x"]} for row in CHANGED
    ]
    data = str(write_dataset(tmp_path / "data", {"probes-1112": {"changed": named, "unchanged": UNCHANGED}}))
    [result] = run(world, tmp_path / "out", None, data=data)
    assert values(result)["spelling/all/new_known"] > 2 * 100 / 8
    assert not [name for name in values(result) if name.startswith("strict/")]
    assert any(
        reason.startswith("relation P35 (not in strict): spelling alone") for reason in result.manifest.excluded
    )


class Lookup:
    """A model that knows a share of the facts by construction; all its other likelihoods are noise."""

    can = frozenset({"likelihoods"})
    encoder_decoder = False
    reference = "lookup"
    start = None

    def __init__(self, share: float, rows: list[dict[str, Any]]) -> None:
        draw = np.random.default_rng(int(1000 * share))
        self.knows = {(row["subject"], row["object"]) for row in rows if draw.random() < share}
        self.draw = draw
        self.liked: dict[str, float] = {}

    def score(self, pairs: list[tuple[str, str]]) -> list[FactScore]:
        found = []
        for prompt, label in pairs:
            liked = self.liked.setdefault(label, 3 * self.draw.normal())  # some names are likelier for all subjects
            known = (prompt.removesuffix(" head of state"), label) in self.knows
            found.append(FactScore(9, 3, -liked - self.draw.normal() - 40 * known + 90, 2, 9))
        return found


ROWS = [
    {"subject": f"s{i}", "relation": "head of state", "relation_id": "P35", "object": f"object {i}"}
    for i in range(1200)
]


def items_of(model: Lookup, rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.setattr(panel_items, "score_facts", lambda model, pairs, *_: model.score(pairs))
    monkeypatch.setattr(panel_items, "reading", lambda _: lambda *_: "")
    items = known_items(model, {"changed": rows, "unchanged": []}, ("name",), 0, Counter())  # type: ignore[arg-type]
    return [item for item in items if item["form"] == "name"]


def test_an_item_says_the_question_the_right_answer_and_the_object_that_won(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Lookup(1, ROWS[:10])
    model.knows = model.knows - {("s0", "object 0")} | {("s0", "object 3")}
    found = {item["prompt"]: (item["object"], item["answer"]) for item in items_of(model, ROWS[:10], monkeypatch)}
    assert found.pop("s0 head of state") == ("object 0", "object 3")
    assert found == {f"s{i} head of state": (f"object {i}", f"object {i}") for i in range(1, 10)}


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_planted_truth(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """The measure returns share + (1 - share) * chance within its interval."""
    model = Lookup(share, ROWS)
    known = [item["known"] for item in items_of(model, ROWS, monkeypatch)]
    truth = len(model.knows) / len(ROWS)
    expected = truth + (1 - truth) * 0.1
    assert len(known) == len(ROWS)
    assert np.mean(known) == pytest.approx(expected, abs=1e-9 + 3 * np.sqrt(expected * (1 - expected) / len(ROWS)))


# From results


@pytest.fixture(scope="module")
def results(world: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of the results of both models."""
    out = tmp_path_factory.mktemp("results")
    return {name: run(world, out, None, name)[0].path.parent for name in ("start", "model")}


def test_results_stand_for_their_models(world: Path, results: dict[str, Path], tmp_path: Path) -> None:
    """From two result files, or a folder of results, come the scores of the two models."""
    [expected] = run(world, tmp_path / "models", world / "start")
    [start] = results["start"].glob("*.json")
    for model, before in ((world / "model", start), (results["model"], world / "start"), (results["model"], start)):
        [found] = run(world, tmp_path / str(len(list(tmp_path.iterdir()))), before, str(model))
        assert found.manifest.scores == expected.manifest.scores
        assert found.manifest.model.revision == expected.manifest.model.revision
        assert found.manifest.start is not None and expected.manifest.start is not None
        assert found.manifest.start.revision == expected.manifest.start.revision


def test_a_start_with_another_tokenizer_is_compared_fact_by_fact(world: Path, tmp_path: Path) -> None:
    t5 = tiny_models.save("t5", tmp_path / "t5")
    [result] = run(world, tmp_path / "out", t5)
    assert "all/learned" in values(result)
    items = [item for item in result.items() if item["form"] == "name"]
    assert all(item["start_known"] in (0, 1) for item in items)
    assert any(item["gain"] is None for item in items)  # in nats they cannot be compared


def edited(source: Path, folder: Path, part: str, **values: Any) -> Path:
    """Return a copy of a folder of results, with other values in one part of the result files."""
    shutil.copytree(source, folder)
    for path in folder.glob("*.json"):
        content = json.loads(path.read_text("utf-8"))
        content[part] |= values
        path.write_text(json.dumps(content, sort_keys=True), "utf-8")
    return folder


def test_results_of_other_facts_versions_or_tasks_are_refused(
    world: Path, results: dict[str, Path], tmp_path: Path
) -> None:
    old = edited(results["start"], tmp_path / "old", "task", version=1)
    with pytest.raises(InputError, match=r"holds no known facts of this data as name; evaluate .*start with --tasks"):
        run(world, tmp_path / "out", old)
    data = str(write_dataset(tmp_path / "data", {"probes-1112": {"unchanged": UNCHANGED, "changed": CHANGED[:-1]}}))
    with pytest.raises(InputError, match=r"its facts stand in other panels; evaluate .*start on this data"):
        run(world, tmp_path / "out", results["start"], data=data)
    with pytest.raises(InputError, match="holds no known facts of this data as cloze"):
        run(world, tmp_path / "out", results["start"], options={"forms": ("cloze",)})


DAMAGED: dict[str, Any] = {  # a column and its values, or the content of the file
    "missing": None,
    "no Parquet": b"PAR1",
    "without a column": ("panel", None),
    "text for a number": ("object_tokens", "2"),
    "no tokens": ("object_tokens", 0),
    "more than known": ("known", 2.0),
    "no number": ("object_nll", None),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_results_are_named(case: str, world: Path, results: dict[str, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(results["start"], tmp_path / "results"))
    (path,) = folder.glob("*.parquet")
    damage = DAMAGED[case]
    if isinstance(damage, tuple):
        column, value = damage
        items = pq.read_table(path).drop_columns(column)
        if case != "without a column":
            items = items.append_column(column, [[value] * len(items)])
        pq.write_table(items, path)
    else:
        path.unlink()
        if damage is not None:
            path.write_bytes(damage)
    with pytest.raises(InputError, match=rf"{path.name}: not the items of a result; evaluate the model again"):
        run(world, tmp_path / "out", folder)


def test_scores_of_two_precisions_are_not_compared(
    world: Path, results: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = edited(results["start"], tmp_path / "other", "model", precision="bf16")
    [result] = run(world, tmp_path / "out", other)
    assert "all/learned" not in values(result)
    assert "its scores are bf16, but" in capfd.readouterr().err
    shutil.copytree(results["start"], tmp_path / "both" / "fp32")
    shutil.copytree(other, tmp_path / "both" / "bf16")
    with pytest.raises(InputError, match=r"holds results of 2 models \(.*start in bf16, .*start in fp32\)"):
        StoredScores(tmp_path / "both")


def test_results_at_another_temperature_are_no_start(world: Path, tmp_path: Path) -> None:
    [plain] = run(world, tmp_path / "start", None, "start")
    for temperature in (0.5, 2.0):
        [soft] = run(world, tmp_path / "start", None, "start", options={"temperature": temperature})
        assert soft.path.parent == plain.path.parent
    [result] = run(world, tmp_path / "model", plain.path.parent)
    before = {item["id"]: item for item in plain.items() if item["form"] == "name"}
    items = [item for item in result.items() if item["form"] == "name"]
    assert items
    assert all(item["start_nll"] == before[item["id"]]["object_nll"] for item in items)
    assert all(item["start_known"] == before[item["id"]]["known"] for item in items)
    with pytest.raises(InputError, match=r"holds no results of .* without --retrieve and --temperature"):
        StoredScores(soft.path)


def test_a_models_folder_with_results_in_it_is_the_model(
    world: Path, results: dict[str, Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(world / "start", tmp_path / "start"))
    shutil.copytree(results["model"], folder / "results")
    assert isinstance(open_scores(str(folder), tmp_path / "kept", "fp32"), CachedModel)


def test_a_start_model_that_cannot_be_used_is_named_and_the_model_is_scored(
    world: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    [result] = run(world, tmp_path, Path("no/such/model"))
    assert "all/new_known" in values(result) and "all/learned" not in values(result)
    said = "learned_and_forgotten: not compared with a start model: --start no/such/model"
    assert said in capfd.readouterr().err
    run(world, tmp_path / "plain", None)
    assert "not compared" not in capfd.readouterr().err  # nobody asked for it


def test_a_start_model_is_kept_while_it_is_needed(world: Path, tmp_path: Path) -> None:
    model = CachedModel(str(world / "model"), world / "kept")
    task, other = (find_task(name)() for name in ("learned_and_forgotten", "twiki_probes"))
    wanted = Evaluation(
        str(world / "model"), str(world / "data"), {"learned_and_forgotten": task}, (), tmp_path / "1", None,
        start=str(world / "start"),
    )  # fmt: skip
    evaluate(wanted, model)
    first = model.start
    evaluate(replace(wanted, output=tmp_path / "2"), model)
    assert model.start is first is not None
    evaluate(replace(wanted, output=tmp_path / "3", start=str(world / "model")), model)
    assert model.start is not first
    evaluate(replace(wanted, tasks={"twiki_probes": other}, output=tmp_path / "4"), model)
    assert model.start is None


def test_results_do_not_answer_for_a_model_otherwise(world: Path, results: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"twiki_probes: .* holds results; this task needs the model itself"):
        run(world, tmp_path, None, str(results["model"]), tasks=("twiki_probes",))
    with pytest.raises(InputError, match="holds results of 2 models"):
        StoredScores(results["model"].parent)
