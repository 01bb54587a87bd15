"""Learned and forgotten: by hand, from models and from their results, and what cannot be compared."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import plain_transformers
import pyarrow.parquet as pq
import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.cached_model import CachedModel
from temporalwiki.eval_harness.results import Result, read_result
from temporalwiki.eval_harness.runner import Evaluation, evaluate
from temporalwiki.eval_harness.stored_scores import StoredScores, open_scores
from temporalwiki.eval_harness.tasks import find_task

import tiny_models
from a_dataset import write_dataset

pytestmark = pytest.mark.usefixtures("quick")


def fact(subject: str, relation: str, label: str, **columns: Any) -> dict[str, Any]:
    return {"subject": subject, "relation": relation, "object": label, **columns}


UNCHANGED = [
    fact("Norland", "capital", "Easton", support="stated", strict=True),
    fact("Sudland", "capital", "Weston", support="list", strict=True),
    fact("Norland", "anthem", "Easton, Easton", support="stated", strict=False),
    fact("Norland", "motto", "in the north", support="mentioned", strict=False),
]
CHANGED = [
    fact("Eastland", "capital", "Weber", support="stated", strict=True),
    fact("Norland", "anthem", "1961", support="mentioned", strict=False),
    fact("Westland", "head", "Anna Weber", support="stated", strict=True),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset, a start model, and a model that was trained from it."""
    folder = tmp_path_factory.mktemp("world")
    write_dataset(folder / "data", {"probes-1112": {"unchanged": UNCHANGED, "changed": CHANGED}})
    tokenizer = tiny_models.tokenizer("gpt2")
    for seed, name in enumerate(("start", "model")):
        tiny_models.model("gpt2", len(tokenizer), seed).save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return folder


def run(world: Path, out: Path, start: Path | None, model: str = "model", **changes: Any) -> list[Result]:
    tasks = changes.pop("tasks", ("learned_and_forgotten",))
    found = open_scores(str(world / model), world / "kept", "fp32")
    wanted = Evaluation(
        str(world / model), str(world / "data"), {name: find_task(name)() for name in tasks}, (), out, None,
        start=None if start is None else str(start),
    )  # fmt: skip
    return evaluate(replace(wanted, **changes), found)


def test_it_is_the_formula_of_the_design(world: Path, tmp_path: Path) -> None:
    [result] = run(world, tmp_path, world / "start")
    plain = [plain_transformers.load(world / name) for name in ("start", "model")]

    def gain_of(row: dict[str, Any]) -> float:
        """Return by how much the NLL per token of the object falls."""
        of = [
            plain_transformers.fact(*loaded, f"{row['subject']} {row['relation']}", row["object"]) for loaded in plain
        ]
        (_, _, before, tokens, _), (_, _, after, _, _) = of
        return (before - after) / tokens

    gain = {str(row): gain_of(row) for row in UNCHANGED + CHANGED}

    def gains(rows: list[dict[str, Any]], relation: str | None = None) -> list[float]:
        chosen = [row for row in rows if relation in (None, row["relation"])]
        return [gain[str(row)] for row in chosen]

    def mean(values: list[float]) -> float:
        return sum(values) / len(values)

    tests = {
        "all": (UNCHANGED, CHANGED),
        **{
            name: tuple([row for row in rows if row[column] == value] for rows in (UNCHANGED, CHANGED))
            for name, column, value in (("stated", "support", "stated"), ("strict", "strict", True))
        },
    }
    scores = result.manifest.scores
    assert scores.keys() == {f"{test}/{measure}" for test in tests for measure in ("learned", "forgotten")}
    for test, (unchanged, changed) in tests.items():
        above = below = 0.0
        for relation in ("capital", "anthem", "motto", "head"):
            c, u = gains(changed, relation), gains(unchanged, relation)
            if c and u:
                weight = len(c) * len(u) / (len(c) + len(u))
                above, below = above + weight * (mean(c) - mean(u)), below + weight
        assert scores[f"{test}/learned"].value == pytest.approx(above / below, abs=1e-4)
        assert scores[f"{test}/forgotten"].value == pytest.approx(-mean(gains(unchanged)), abs=1e-4)
    assert result.manifest.excluded == {
        "relations (not facts) with unchanged facts only: not in learned": 1,
        "relations (not facts) with changed facts only: not in learned": 1,
    }
    assert result.manifest.start is not None and result.manifest.start.name == str(world / "start")
    assert result.manifest.start.precision == "fp32"


def test_a_model_learned_and_forgot_nothing_since_itself(world: Path, tmp_path: Path) -> None:
    [result] = run(world, tmp_path, world / "model")
    assert {score.value for score in result.manifest.scores.values()} == {0.0}


@pytest.fixture(scope="module")
def results(world: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folders of the results of both models on twiki_probes."""
    out = tmp_path_factory.mktemp("results")
    return {name: run(world, out, None, name, tasks=("twiki_probes",))[0].path.parent for name in ("start", "model")}


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


def edited(source: Path, folder: Path, part: str, **values: Any) -> Path:
    """Return a copy of a folder of results, with other values in one part of the result files."""
    shutil.copytree(source, folder)
    for path in folder.glob("*.json"):
        content = json.loads(path.read_text("utf-8"))
        content[part] |= values
        path.write_text(json.dumps(content, sort_keys=True), "utf-8")
    return folder


def test_results_of_other_facts_tokenizers_or_versions_are_refused(
    world: Path, results: dict[str, Path], tmp_path: Path
) -> None:
    old = edited(results["start"], tmp_path / "old", "task", version=1)
    with pytest.raises(InputError, match=r"old: of other task versions \(twiki_probes version 1, now \d+\)"):
        run(world, tmp_path / "out", old)
    other = tmp_path / "other"
    write_dataset(other / "data", {"probes-1112": {"unchanged": UNCHANGED[1:], "changed": CHANGED[:-1]}})
    shutil.copytree(world / "start", other / "start")
    [few] = run(other, tmp_path / "few", None, "start", tasks=("twiki_probes",))
    with pytest.raises(InputError, match="of other facts: 1 of 4 are not in it, such as Norland capital 'Easton'"):
        run(world, tmp_path / "out", few.path)


def test_a_result_that_could_not_score_a_fact_stands_for_its_own_facts_only(world: Path, tmp_path: Path) -> None:
    """A missing fact is one that the result left out only if the result has all others, and left out as many."""
    long = fact("Sudland", "anthem", "Easton " * 300, support="", strict=False)
    other = fact("Sudland", "motto", "1961", support="", strict=False)
    asked: dict[str, dict[str, Any]] = {
        "same": {"unchanged": [*UNCHANGED, long], "changed": CHANGED},
        "one more": {"unchanged": [*UNCHANGED, long, other], "changed": CHANGED},
        "one more in another split": {
            "unchanged": [*UNCHANGED, long],
            "changed": [*CHANGED, other],
        },
        "other facts": {"unchanged": [other], "changed": CHANGED},
    }
    data = {name: str(write_dataset(tmp_path / name, {"probes-1112": of})) for name, of in asked.items()}
    [start] = run(world, tmp_path / "results", None, "start", tasks=("twiki_probes",), data=data["same"])
    [result] = run(world, tmp_path / "out", start.path.parent, data=data["same"])
    assert result.manifest.excluded["unchanged: longer than the context, or nothing to predict"] == 1
    for name in ("one more", "one more in another split", "other facts"):
        with pytest.raises(InputError, match="of other facts: "):
            run(world, tmp_path / "out", start.path.parent, data=data[name])


DAMAGED: dict[str, Any] = {  # a column and its values, or the content of the file
    "missing": None,
    "no Parquet": b"PAR1",
    "without a column": ("bytes", None),
    "text for a number": ("object_tokens", "2"),
    "no tokens": ("object_tokens", 0),
    "no number": ("object_nll", float("nan")),
    "nothing": ("nll", None),
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


def test_items_are_read_once(
    world: Path, results: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    items = Result.items

    def counted(result: Result) -> list[dict[str, Any]]:
        read.append(result.path)
        return items(result)

    monkeypatch.setattr(Result, "items", counted)
    run(world, tmp_path, results["start"])
    assert len(read) == 1


def test_scores_of_two_precisions_are_not_compared(world: Path, results: dict[str, Path], tmp_path: Path) -> None:
    other = edited(results["start"], tmp_path / "other", "model", precision="bf16")
    with pytest.raises(
        InputError, match=r"its scores are bf16, but .*model is scored in fp32; score both with the same"
    ):
        run(world, tmp_path / "out", other)
    shutil.copytree(results["start"], tmp_path / "both" / "fp32")
    shutil.copytree(other, tmp_path / "both" / "bf16")
    with pytest.raises(InputError, match=r"holds results of 2 models \(.*start in bf16, .*start in fp32\)"):
        StoredScores(tmp_path / "both")


def test_a_models_folder_with_results_in_it_is_the_model(
    world: Path, results: dict[str, Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(world / "start", tmp_path / "start"))
    shutil.copytree(results["model"], folder / "results")
    assert isinstance(open_scores(str(folder), tmp_path / "kept", "fp32"), CachedModel)


def test_models_with_other_tokenizers_are_refused(world: Path, tmp_path: Path) -> None:
    t5 = tiny_models.save("t5", tmp_path / "t5")
    with pytest.raises(InputError, match=r"have different tokenizers: 'Easton' has \d+ tokens of the first and \d+"):
        run(world, tmp_path / "out", t5)


START_MISSING = {
    "not named": (None, r"learned_and_forgotten: name the model that .*model started from, or its results, with"),
    "not there": ("no/such/model", "learned_and_forgotten: --start no/such/model"),
}


@pytest.mark.parametrize("case", START_MISSING)
def test_a_missing_start_model_is_named_and_other_tasks_are_scored(
    case: str, world: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    start, said = START_MISSING[case]
    [result] = run(world, tmp_path, start and Path(start), tasks=("learned_and_forgotten", "twiki_probes"))
    assert result.manifest.task.name == "twiki_probes"
    error = capfd.readouterr().err
    assert "left out: learned_and_forgotten" in error
    with pytest.raises(InputError, match=said):
        run(world, tmp_path, start and Path(start))


def test_deleted_facts_are_scored_without_a_start_model_that_cannot_be_used(
    world: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    facts = {
        split: [row | {"kind": "ended"} for row in of]
        for split, of in (("deleted", CHANGED), ("unchanged", UNCHANGED))
    }
    data = str(write_dataset(tmp_path / "data", {"probes-1112": facts}))
    [result] = run(world, tmp_path, Path("no/such/model"), tasks=("deleted",), data=data)
    assert "deleted/perplexity" in result.manifest.scores and "deleted/let_go" not in result.manifest.scores
    assert "deleted: without let_go: --start no/such/model: " in capfd.readouterr().err
    run(world, tmp_path / "plain", None, tasks=("deleted",), data=data)
    assert "without let_go" not in capfd.readouterr().err  # nobody asked for it


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


def test_a_month_without_a_shared_relation_has_only_forgotten(tmp_path: Path, world: Path) -> None:
    write_dataset(tmp_path / "data", {"probes-1112": {"unchanged": UNCHANGED[:2], "changed": CHANGED[2:]}})
    for name in ("start", "model"):
        shutil.copytree(world / name, tmp_path / name)
    [result] = run(tmp_path, tmp_path / "out", tmp_path / "start")
    assert "all/learned" not in result.manifest.scores and "all/forgotten" in result.manifest.scores
    assert read_result(result.path).manifest.scores == result.manifest.scores
