"""What models are scored on is not what they are trained on, and if it is, all that comes of it says so."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import UsageError
from temporalwiki.builders.configs import SCHEMAS, TEST_DATA
from temporalwiki.commands import main
from temporalwiki.eval_harness.experiment import read_experiment
from temporalwiki.eval_harness.experiment.cells import plan_cells
from temporalwiki.eval_harness.leaderboard.rows import read_parquet, rows
from temporalwiki.eval_harness.models.local import training
from temporalwiki.eval_harness.results import read_results
from temporalwiki.eval_harness.tasks import TASKS, find_task
from temporalwiki.methods import METHODS, checkpoint, find_method
from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.training_data import configs_to_read

import a_result
from a_dataset import write_dataset

NAMES = ["Ann", "Bert", "Cleo", "Dan"]
FACTS = [{"subject": name, "relation": "lives in", "object": "Easton", "subject_id": name} for name in NAMES]
ROWS: dict[str, Any] = {
    "diffset-1112": [{"title": name, "text": f"{name} is in Easton. " * 20} for name in NAMES],
    "probes-1112": {"unchanged": FACTS, "changed": FACTS},
    "lighttuning-1112": {"unchanged": FACTS, "changed": FACTS},
}
pytestmark = pytest.mark.usefixtures("quick")
SHORT = ("--batch-size", "2", "--sequence-length", "32", "--max-steps", "1")
TEXT = ("diffset-", "unchanged-", "kilt-")  # of KILT, a task trains on one split and scores another

CONFIGS = [f"{kind}-1112" for kind in SCHEMAS] + ["invariantlama", "newlama-easy", "newquestions-easy", "recentnews"]
FAIR = {"diffset-1112", "deletions-1112", "unchanged-1112", "wikipedia-1112", "lighttuning-1112", "recentnews"}


@pytest.mark.parametrize("task", TASKS)
def test_what_a_task_scores_is_text_or_test_data(task: str) -> None:
    for start in find_task(task).configs:
        assert start in TEXT or start.startswith(TEST_DATA)


@pytest.mark.parametrize("name", [name for name in METHODS if find_method(name).trains and name != "study"])
@pytest.mark.parametrize("config", CONFIGS)
def test_no_method_reads_test_data_unless_it_is_told_to(config: str, name: str) -> None:
    method = find_method(name)()

    def reads(config: str, past: str | None, options: TrainOptions) -> list[str]:
        return configs_to_read(name, method, "data", config, past, options, CONFIGS)

    places = [(config, "unchanged-1112")] + [("diffset-1112", config)] * method.needs_past
    for new, past in places:
        told = reads(new, past, TrainOptions(train_on_test=True))
        assert told == [new, past][: 1 + method.needs_past]
        if config in FAIR:
            assert reads(new, past, TrainOptions()) == told
        else:
            with pytest.raises(UsageError, match=f"^{config}: models are scored on these facts.*--train-on-test"):
                reads(new, past, TrainOptions())


RECIPES = {
    "phases": {"phases": ["diffset-1112", "probes-1112"], "methods": {"light_tuning": {}}},
    "the start": {"months": ["1112"], "start": {"method": "light_tuning", "config": "probes-1112"}},
    "past data": {"months": ["1112"], "past": "probes-1112", "methods": {"replay": {}}},
    "past data of a method": {"months": ["1112"], "methods": {"replay": {"past": "probes-1112"}}},
}


@pytest.mark.parametrize("where", RECIPES)
def test_no_experiment_reads_test_data_unless_its_recipe_says_so(
    where: str, data: Path, models: dict[str, Path], tmp_path: Path
) -> None:
    wanted = {"methods": {"diff": {}}, "tasks": {}, "data": str(data), "output": str(tmp_path)}
    recipe: dict[str, Any] = {"model": str(models["gpt2"]), "experiment": wanted | RECIPES[where]}
    path = tmp_path / "recipe.yaml"
    path.write_text(json.dumps(recipe), "utf-8")
    with pytest.raises(UsageError, match=r"probes-1112: models are scored on these facts.*train_on_test: true"):
        plan_cells(read_experiment(str(path)))
    path.write_text(json.dumps(recipe | {"train_on_test": True}), "utf-8")
    assert plan_cells(read_experiment(str(path)))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "data", ROWS)


@pytest.fixture(scope="module")
def trained(data: Path, models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints of diff and of light-tuning on the probes, and a month on top of the latter."""
    folder = tmp_path_factory.mktemp("trained")
    fair, tuned = ("diff", models["gpt2"], "diffset-1112"), ("light_tuning", models["gpt2"], "probes-1112")
    for name, (method, model, config) in {
        "fair": fair,
        "tuned": tuned,
        "later": ("diff", folder / "tuned", "diffset-1112"),
        "copied": ("initial", folder / "later", "diffset-1112"),
    }.items():
        given = ("--method", method, "--model", model, "--data", data, "--config", config, "--output", folder / name)
        told = ["--train-on-test"] if name == "tuned" else []
        assert main([str(word) for word in ("train", *given, *SHORT, *told)]) == 0
    return folder


MARKED = {"fair": [], "tuned": ["probes-1112"], "later": ["probes-1112"], "copied": ["probes-1112"]}


@pytest.mark.parametrize("name", MARKED)
def test_a_checkpoint_and_those_that_begin_with_it_are_marked(name: str, trained: Path) -> None:
    record = json.loads((trained / name / "training.json").read_text("utf-8"))
    assert record.get("trained_on_test", []) == MARKED[name]
    assert training(str(trained / name)).get("trained_on_test", []) == MARKED[name]


def test_the_mark_comes_with_a_checkpoint_from_the_hub(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "hub_file", lambda reference, name: trained / "later" / name)
    assert training("ORG/later")["trained_on_test"] == ["probes-1112"]


def test_every_result_is_marked(trained: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, board = tmp_path / "results", tmp_path / "board"
    for name in ("fair", "later"):
        given = ("--model", trained / name, "--data", data, "--tasks", "twiki_probes", "--no-answers")
        words = ("evaluate", *given, "--no-light-tuning", "--output", results)
        assert main([str(word) for word in words]) == 0
        assert (" (trained on test data) on probes-1112" in capsys.readouterr().out) == (name == "later")
    assert main(["inspect", str(results)]) == 0
    assert capsys.readouterr().out.count("later (trained on test data) on probes-1112") == 1
    assert main(["leaderboard", str(results), "--out", str(board)]) == 0
    labels = {(row.label, row.trained_on_test) for row in read_parquet(board / "results.parquet")}
    assert labels == {("diff", False), ("diff (trained on test data)", True)}
    assert "Diff (trained on test data)" in (board / "index.html").read_text("utf-8")  # names for people
    for file in (board / "tables").glob("*.md"):
        assert "diff (trained on test data)" in file.read_text("utf-8")


def test_a_model_that_was_trained_on_test_data_is_never_the_best(tmp_path: Path) -> None:
    def items(nll: float) -> dict[str, list[dict[str, Any]]]:
        return {"changed": [{"id": str(i), "cluster": str(i), "nll": nll * (i + 1), "tokens": 4} for i in range(20)]}

    written: Callable[..., Any] = a_result.write_probes
    for name, nll in (("a", 2.0), ("b", 3.0)):
        written(tmp_path, "probes-1112", items(nll), name=name, method="diff")
    written(tmp_path, "probes-1112", items(0.1), name="c", method="diff", trained_on_test=["probes-1112"])
    found = {row.model: row for row in rows(read_results(tmp_path), tmp_path) if row.measure == "perplexity"}
    assert found["c"].value < found["a"].value < found["b"].value
    assert {name: (row.rank_best, row.rank_worst) for name, row in found.items()} == {
        "a": (1, 1),
        "b": (2, 2),
        "c": (None, None),
    }
