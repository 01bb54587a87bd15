"""`temporalwiki evaluate` as a command: its recipes, options and output."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from temporalwiki.eval_harness import runner
from temporalwiki.eval_harness.models.cache import ScoreCache
from temporalwiki.eval_harness.tasks import TASKS, find_task

import tiny_models
from a_dataset import write_dataset
from faults.rows import ONE_LINE
from tiny_probes import CHANGED, LIGHT_TUNING, OF_A_PANEL, UNCHANGED, rows

pytestmark = pytest.mark.usefixtures("quick")

Run = Callable[..., tuple[int, str, str]]

CONFIGS: dict[str, Any] = {
    "probes-1112": {"unchanged": rows(UNCHANGED), "changed": rows(CHANGED)},
    "probes-panels": {split: rows(facts) for split, facts in OF_A_PANEL.items()},
    "lighttuning-1112": {"unchanged": rows(LIGHT_TUNING)},
}


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that the commands below name."""
    folder = tmp_path_factory.mktemp("there")
    for kind in tiny_models.KINDS:
        tiny_models.save(kind, folder / kind)
    write_dataset(folder / "data", CONFIGS)
    return folder


@pytest.fixture
def evaluate(run: Run, there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command in the folder ``there`` and returns its status and what it said on stdout and stderr."""
    monkeypatch.chdir(there)
    monkeypatch.setattr("temporalwiki.eval_harness.models.cache.cache_folder", lambda: tmp_path / "scores")
    return partial(run, "evaluate")


GIVEN = ("--model", "gpt2", "--data", "data", "--tasks", "twiki_probes", "--config", "probes-1112")
SHORT = ("--no-light-tuning", "--no-answers")


def last_line(err: str) -> str:
    return err.splitlines()[-1] if err else ""


def words(tmp_path: Path, given: tuple[Any, ...]) -> tuple[Any, ...]:
    own = () if "--tasks" in given else SHORT
    return (*GIVEN, *own, "--output", tmp_path / "results", *given)


# Recipes

RECIPE = """\
model: gpt2
data: data
config: probes-panels
limit: 1
tasks:
  twiki_probes: {light-tuning: false, answers: false}
  learned_and_forgotten:
start: llama
"""


def test_a_recipe_says_what_the_options_say(evaluate: Run, tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    tasks = ("--tasks", "twiki_probes,learned_and_forgotten", "--start", "llama", *SHORT, "--limit", 1, "--json")
    status, of_options, err = evaluate(*GIVEN[:-1], "probes-panels", *tasks, "--output", tmp_path / "options")
    assert status == 0, err
    status, of_recipe, err = evaluate("--recipe", tmp_path / "recipe.yaml", "--json", "--output", tmp_path / "recipe")
    assert status == 0, err
    assert json.loads(of_recipe)["rows"] == json.loads(of_options)["rows"]
    assert len(list((tmp_path / "recipe").rglob("*.json"))) == 2


def test_the_command_line_wins_over_the_recipe(evaluate: Run, tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    words = ("--recipe", tmp_path / "recipe.yaml", "--output", tmp_path / "results", "--json")
    status, out, err = evaluate(*words, "--tasks", "twiki_probes", "--limit", 2, *SHORT)
    assert status == 0, err
    assert {row["items"] for row in json.loads(out)["rows"] if row["test"] == "changed"} == {2}
    status, out, err = evaluate(*words, "--answers")  # an option of a task that only the recipe names
    assert status == 0, err
    assert "f1" in {row["measure"] for row in json.loads(out)["rows"]}


BROKEN = {
    "not YAML": ("[", "recipe.yaml: cannot be read"),
    "an option of trainings": (RECIPE + "epochs: 3", "twiki_probes, learned_and_forgotten: no option 'epochs'"),
    "an option of no task": ("tasks: {deleted: {beam: 2}}", "deleted: no option 'beam'"),
    "an option that is not a number": ("tasks: {twiki_probes: {beams: many}}", "twiki_probes: beams must be a whole"),
    "a number of text": ("tasks: deleted\nlimit: few", "recipe.yaml: limit must be a whole number, not 'few'"),
    "a task that there is not": ("tasks: [delete]", "no task 'delete' (did you mean deleted?)"),
    "a number of tasks": ("tasks: 3", "recipe.yaml: tasks must be a list, not 3"),
    "a number of options": ("tasks: {deleted: 3}", "recipe.yaml: tasks must map names of tasks"),
    "a number as a task": ("tasks: {3: {}}", "recipe.yaml: tasks must map names of tasks"),
    "another recipe": ("recipe: recipe.yaml", "recipe.yaml: no option 'recipe' in a recipe"),
    "a model that is a list": ("tasks: deleted\nmodel: [a]", "recipe.yaml: model must be text, not ['a']"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_recipe_that_cannot_be_used(case: str, evaluate: Run, tmp_path: Path) -> None:
    text, said = BROKEN[case]
    (tmp_path / "recipe.yaml").write_text(
        "model: gpt2\ndata: data\n" * (RECIPE not in text and "model" not in text) + text
    )
    status, out, err = evaluate("--recipe", tmp_path / "recipe.yaml", "--output", tmp_path / "results")
    assert (status, out) == (2, "")
    assert said in last_line(err)
    assert "Traceback" not in err


@pytest.mark.fault("full disk", "evaluate: while a result is written", ONE_LINE)
def test_a_full_disk_is_one_line(evaluate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pyarrow.parquet.write_table", full)
        status, out, err = evaluate(*words(tmp_path, ()))
    assert (status, out) == (1, "")
    assert "no space left on the disk; free some and run the same command again" in last_line(err)
    assert evaluate(*words(tmp_path, ()))[0] == 0


def test_a_damaged_store_is_one_line_with_what_to_do(evaluate: Run, tmp_path: Path) -> None:
    assert evaluate(*words(tmp_path, ()))[0] == 0
    [store] = (tmp_path / "scores").glob("*.sqlite")
    store.write_bytes(b"x" * 5000)
    status, _, err = evaluate(*words(tmp_path, ("--limit", 3)))
    assert status == 1
    assert str(store) in last_line(err)
    assert "remove this file: it is only a cache" in last_line(err)


def test_interrupted_it_says_how_to_go_on(evaluate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ScoreCache, "add_scores", interrupt)
    status, _, err = evaluate(*words(tmp_path, ()))
    assert status == 1
    assert last_line(err) == "temporalwiki evaluate: interrupted; run the same command again to continue"


@pytest.mark.parametrize("missing", ["torch", "peft", "trl"])
def test_a_missing_library_is_named_with_what_to_install(missing: str) -> None:
    code = f"""
import sys
sys.modules[{missing!r}] = None
from temporalwiki.commands import main
sys.exit(main("evaluate --model m --data d --tasks twiki_probes --beams 2".split()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    line = f"temporalwiki evaluate: evaluation needs the package {missing}: pip install 'temporalwiki[eval]'"
    assert done.stderr.splitlines()[-1] == line
    assert "Traceback" not in done.stderr


# Help


def test_help_needs_no_torch_and_has_an_example() -> None:
    code = "import sys; sys.modules['torch'] = None; from temporalwiki.commands import main; main(sys.argv[1:])"
    words = [sys.executable, "-c", code, "evaluate", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "example:\n  temporalwiki evaluate" in done.stdout
    assert all(name in done.stdout for name in TASKS)


@pytest.mark.parametrize("names", [*TASKS, "twiki_probes, twiki_intrinsic"])
def test_help_names_the_tasks_own_options(names: str, evaluate: Run) -> None:
    status, out, _ = evaluate("--tasks", names, "--help")
    assert status == 0
    for name in names.split(", "):
        options = fields(find_task(name))
        assert all(f"--{option.name.replace('_', '-')}" in out for option in options)
        assert f"options of {name}:" in out or not options
        assert all(option.metadata["help"] for option in options)


# What it does


def test_it_prints_the_scores_and_where_they_are(evaluate: Run, tmp_path: Path) -> None:
    status, out, err = evaluate(*GIVEN, "--output", tmp_path / "results")
    assert status == 0
    title, *lines, meaning, path = out.splitlines()
    assert title == "twiki_probes of gpt2 on probes-1112"
    assert meaning.endswith("Brackets: 95 % intervals; docs/evaluating.md explains the scores.")
    result = json.loads(Path(path).read_text("utf-8"))
    stages = ["average", "changed", "unchanged"]
    tests = [line.split()[0] for line in lines if "[" in line]
    assert tests == [*stages, *(f"light-tuned/{stage}" for stage in stages)] * 2
    heads = " ".join(line for line in lines if "[" not in line).split()
    measures = ("perplexity", "perplexity_instance_mean", "object_perplexity", "bits_per_byte")
    assert heads == [*measures, "exact_match", "%", "f1", "%", "items"]
    score = result["scores"]["average/perplexity"]
    assert "{value:.2f} [{low:.2f}, {high:.2f}]".format(**score) in lines[1]
    assert max(map(len, lines)) <= 120
    assert "Warning" not in err
    assert [line for line in err.splitlines() if not line.startswith("train: ")] == []
    assert "is defined on" not in err


def test_again_it_prints_the_same_at_once(evaluate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = evaluate(*words(tmp_path, ()))
    monkeypatch.setattr("temporalwiki.methods.checkpoint.load_model", lambda *_: pytest.fail("loaded"))
    assert evaluate(*words(tmp_path, ())) == (0, first[1], "")


def test_what_is_left_out_is_printed(evaluate: Run, tmp_path: Path) -> None:
    status, out, _ = evaluate(*GIVEN, "--model", "t5", "--no-answers", "--output", tmp_path / "results")
    assert status == 0
    assert "left out, light-tuned: an encoder-decoder model is not light-tuned: 9\n" in out


def test_bf16_runs_where_there_is_no_gpu(evaluate: Run, tmp_path: Path) -> None:
    found = {}
    for precision in ("auto", "fp32", "bf16"):
        status, out, _ = evaluate(*words(tmp_path, ("--precision", precision)))
        assert status == 0
        found[precision] = json.loads(Path(out.splitlines()[-1]).read_text("utf-8"))
    values = [found[of]["scores"]["average/perplexity"]["value"] for of in ("fp32", "bf16")]
    assert values[0] != values[1]
    assert values[0] == pytest.approx(values[1], rel=0.01)
    assert found["bf16"]["model"]["precision"] == "bf16"
    if not torch.cuda.is_available():
        assert found["auto"] == found["fp32"]


def test_several_tasks_and_all_they_read(evaluate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options go to the tasks that have them; results are printed in the order of the tasks."""
    seen: list[Any] = []
    monkeypatch.setattr(runner, "evaluate", lambda wanted, model: seen.append((wanted, model)) or [])
    given = ("--model", "gpt2", "--data", "data", "--tasks", "lama, twiki_probes,", "--beams", 3, "--no-answers")
    assert evaluate(*given, "--limit", 5, "--candidates", 7)[0] == 0
    [(wanted, model)] = seen
    assert list(wanted.tasks) == ["lama", "twiki_probes"]
    lama, probes = wanted.tasks.values()
    assert (lama.beams, lama.candidates, probes.beams, probes.answers, probes.light_tuning) == (3, 7, 3, False, True)
    assert (wanted.configs, wanted.limit, wanted.output) == ((), 5, Path("results"))
    assert (model.reference, model.cache_folder) == ("gpt2", tmp_path / "scores")
