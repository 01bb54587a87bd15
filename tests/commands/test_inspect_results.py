"""``temporalwiki inspect`` on result files: scores, months, and no need of torch."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from temporalwiki.base.json_files import write_json
from temporalwiki.eval_harness.results import Outcome, path_of, write_result
from temporalwiki.eval_harness.statistics import Estimate

from tiny_dumps import item

Run = Callable[..., tuple[int, str, str]]


def write(
    folder: Path,
    month: str,
    score: float,
    model: str = "base",
    trained_on: str | None = None,
    task: str = "twiki_probes",
    names: tuple[str, ...] = ("average/perplexity",),
    rows: str = "",
    method: str = "lora",
) -> Path:
    """Write a result whose first score is ``score``, and all others 1 more than the one before."""
    what = {
        "task": {"name": task, "version": 1, "options": {}},
        "model": {"name": model, "revision": f"of {model}", "precision": "fp32"},
        "data": {"config": month, "dataset": "temporalwiki", "rows": {"changed": 3}, "hash": month + rows},
    }
    path = path_of(folder, what)
    known = {"method": trained_on and method, "trained_on": [trained_on] if trained_on else []}
    described = {**what, "model": {**what["model"], **known}}
    scores = {name: Estimate(score + i, score - 1, score + 1, items=3, clusters=3) for i, name in enumerate(names)}
    items = [{"id": str(i), "cluster": str(i)} for i in range(3)]
    write_result(path, described, Outcome(scores, items, {"too long": 1}), {})
    return path


@pytest.fixture
def months(tmp_path: Path) -> Path:
    """Two months, the model before them and one of each, on two tasks."""
    folder = tmp_path / "results"
    scores = {"base": (90.0, 80.0), "runs/1112": (50.0, 70.0), "runs/1201": (60.0, 40.0)}
    for model, values in scores.items():
        trained_on = model.replace("runs/", "diffset-") if "/" in model else None
        for month, value in zip(("probes-1112", "probes-1201"), values, strict=True):
            write(folder, month, value, model, trained_on)
            write(folder, month, value, model, trained_on, "multiple_choice", ("changed/acc",))
    return folder


def test_a_result_file(tmp_path: Path, run: Run) -> None:
    status, text, _ = run("inspect", write(tmp_path, "probes-1112", 12.5))
    assert status == 0
    assert text.splitlines() == [
        "twiki_probes of base on probes-1112",
        f"{'perplexity':>29}  items",
        "average  12.50 [11.50, 13.50]      3",
        "left out, too long: 1",
    ]


def test_a_folder_of_results_ends_with_months(months: Path, run: Run) -> None:
    """Backward: 50 - 60 where lower is better, 60 - 50 where higher is. Forward: 80 - 70, and 70 - 80."""
    status, text, _ = run("inspect", months)
    assert status == 0
    assert text.count("left out, too long: 1") == 12
    assert text[text.index("multiple_choice, changed/acc") :].splitlines() == [
        "multiple_choice, changed/acc on probes-* by month",
        "model      method  month   1112   1201",
        "base                      90.00  80.00",
        "runs/1112  lora    1112   50.00  70.00",
        "runs/1201  lora    1201   60.00  40.00",
        "lora: diagonal 45.00, backward 10.00, forward -10.00, forgetting -10.00",
        "",
        "twiki_probes, average/perplexity on probes-* by month",
        "model      method  month   1112   1201",
        "base                      90.00  80.00",
        "runs/1112  lora    1112   50.00  70.00",
        "runs/1201  lora    1201   60.00  40.00",
        "lora: diagonal 45.00, backward -10.00, forward 10.00, forgetting 10.00",
    ]


def test_of_many_results_the_summary_is_what_is_shown(tmp_path: Path, run: Run) -> None:
    for model in range(12):
        for month in ("probes-1112", "probes-1201"):
            write(tmp_path, month, float(model), f"runs/{model}")
        write(tmp_path, "invariantlama", float(model), f"runs/{model}", task="lama", names=("test/exact_match",))
    status, text, _ = run("inspect", tmp_path)
    first, *lines = text.splitlines()
    assert status == 0
    assert first.startswith("36 results of 12 models. For all scores of a model, name its folder, such as ")
    assert len(lines) == 2 * (3 + 12)
    assert ["runs/7", "invariantlama", "7.00"] in [line.split() for line in lines]
    assert ["runs/7", "7.00", "7.00"] in [line.split() for line in lines]
    status, text, _ = run("inspect", first.rpartition(" ")[2])
    assert (status, text.count("of runs/")) == (0, 3)


OF_DELETED = {
    "compared": ("deleted/let_go", "deleted/object_perplexity"),
    "alone": ("deleted/object_perplexity",),
}


@pytest.mark.parametrize("case", OF_DELETED)
def test_what_is_no_longer_so_had_better_be_unlikely(case: str, months: Path, run: Run) -> None:
    names = OF_DELETED[case]
    for model, values in {"runs/1112": (1.5, 1.1), "runs/1201": (1.25, 1.75)}.items():
        for month, value in zip(("probes-1112", "probes-1201"), values, strict=True):
            trained_on = model.replace("runs/", "diffset-")
            write(months, month, value, model, trained_on, "deleted", names)
    _, text, _ = run("inspect", months)
    assert f"deleted, {names[0]} on" in text
    assert "diagonal 1.62, backward -0.25, forgetting 0.25" in text


def test_a_models_folder_is_a_folder_of_results(months: Path, run: Run) -> None:
    [folder] = months.glob("1112-*")
    status, text, _ = run("inspect", folder)
    assert status == 0
    assert text.count("of runs/1112 on probes") == 4
    assert "base" not in text


def test_one_month_is_no_matrix(tmp_path: Path, run: Run) -> None:
    write(tmp_path, "probes-1112", 1.0)
    write(tmp_path, "probes-1112", 1.0, "other")
    write(tmp_path, "updated_lama", 1.0, task="lama")
    write(tmp_path, "new_lama", 1.0, task="lama")
    status, text, _ = run("inspect", tmp_path)
    assert status == 0
    assert "month" not in text


def test_why_there_is_no_matrix(months: Path, run: Run) -> None:
    write(months, "probes-1112", 1.0, "other", rows="the first 100")
    status, text, _ = run("inspect", months)
    assert status == 0
    title, why = text.splitlines()[-2:]
    assert title == "twiki_probes, average/perplexity on probes-* by month"
    assert "not the same questions about 1112" in why


def test_why_a_method_has_no_transfer(months: Path, run: Run) -> None:
    write(months, "probes-1112", 1.0, "again/1112", "diffset-1112")
    write(months, "probes-1112", 7.0, "recadam/1112", "diffset-1112", method="recadam")
    _, text, _ = run("inspect", months)
    lora, recadam = text.splitlines()[-2:]
    assert lora.startswith("lora: two models of 1112, ")
    assert recadam == "recadam: diagonal 7.00"
    assert "lora: diagonal 45.00, backward 10.00" in text  # of the other task


def test_a_config_of_no_month(months: Path, run: Run) -> None:
    write(months, "probes-all", 1.0)
    status, text, _ = run("inspect", months)
    assert status == 0
    assert text.endswith(": the config probes-all has no month in its name\n")


def test_each_kind_of_config_has_its_own_months(tmp_path: Path, run: Run) -> None:
    for config, value in {"diffset-1011": 1, "unchanged-1011": 2, "diffset-1112": 3, "unchanged-1112": 4}.items():
        write(tmp_path, config, value, task="twiki_intrinsic", names=("proper nouns/perplexity",))
    _, text, _ = run("inspect", tmp_path)
    shown = [line.split() for line in text[text.index("twiki_intrinsic, ") :].splitlines()]
    assert [line[-2:] for line in shown if line and line[0] == "base"] == [["1.00", "3.00"], ["2.00", "4.00"]]


def test_a_result_of_a_later_version_is_said_to_be_one(tmp_path: Path, run: Run) -> None:
    path = write(tmp_path, "probes-1112", 1.0)
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 2'))
    status, out, err = run("inspect", path)
    assert (status, out) == (1, "")
    assert "update temporalwiki" in err


def test_other_json_is_no_result(tmp_path: Path, run: Run) -> None:
    """Not what an interrupted training left, nor a manifest's folder, nor Wikidata's entities."""
    write_json(tmp_path / "runs" / "lora" / "run.json", {"data": {"config": "x", "facts": 1}, "run": {}})
    status, _, err = run("inspect", tmp_path / "runs")
    assert status == 1
    assert "no manifests" in err
    (tmp_path / "w.json").write_text(f"[\n{json.dumps(item(1))}\n]\n")
    status, text, _ = run("inspect", tmp_path / "w.json")
    assert status == 0
    assert "Wikidata JSON, complete" in text


def test_torch_is_not_needed(months: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None; from temporalwiki.commands import main; sys.exit(main(sys.argv[1:]))"
    )
    subprocess.run([sys.executable, "-c", code, "inspect", str(months)], check=True, capture_output=True)
