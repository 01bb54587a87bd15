"""The command `temporalwiki train`: its options, its output, and faults while it trains."""

import json
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from temporalwiki.methods import train as train_module
from temporalwiki.methods import trainer as trainer_module

import tiny_models
from a_dataset import write_dataset
from a_disk import disk
from faults.rows import ONE_LINE, REFUSED

Run = Callable[..., tuple[int, str, str]]

SHORT = ("--batch-size", 2, "--micro-batch-size", 2, "--sequence-length", 32, "--max-steps", 2)
NAMES = ("Anna Weber", "Boris Okafor", "Chen Li", "Dora Haugen")
ROWS: dict[str, list[dict[str, Any]]] = {
    "diffset-1112": [{"title": name, "text": f"{name} is in Easton. " * 20} for name in NAMES],
    "news": [{"text": f"{name} was in Norland. " * 20} for name in NAMES],
    "lighttuning-1112": [{"subject": name, "relation": "lives in", "object": "Easton"} for name in NAMES],
    "blank": [{"text": " "}, {"text": ""}],
}

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that the commands below name."""
    folder = tmp_path_factory.mktemp("there")
    tiny_models.save("gpt2", folder / "gpt2")
    write_dataset(folder / "data", ROWS)
    return folder


@pytest.fixture
def train(run: Run, there: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command in the folder ``there`` and returns its status and what it said on stdout and stderr."""
    monkeypatch.chdir(there)
    return partial(run, "train")


GIVEN = ("--method", "diff", "--model", "gpt2", "--data", "data", "--config", "diffset-1112")


def last_line(err: str) -> str:
    return err.splitlines()[-1] if err else ""


def test_the_output_that_failed_can_be_used_again(train: Run, tmp_path: Path) -> None:
    output = ("--output", tmp_path / "output")
    for words in (("--config", "blank"), ("--sequence-length", 999), ("--method", "ewc")):
        assert train(*GIVEN, *SHORT, *output, *words)[0] != 0
    assert train(*GIVEN, *SHORT, *output)[0] == 0


# What goes wrong while it trains


@pytest.mark.parametrize("logged", [1, 10], ids=["each step is logged", "the steps are not logged"])
def test_a_loss_that_is_no_number_ends_the_run(logged: int, train: Run, tmp_path: Path) -> None:
    steps = ("--max-steps", 6, "--logging-steps", logged, "--schedule", "constant")
    far = ("--learning-rate", 1e30, "--output", tmp_path / "output")
    status, out, err = train(*GIVEN, *SHORT, *steps, *far)
    assert (status, out) == (1, "")
    assert "lower the learning rate" in last_line(err)
    assert not (tmp_path / "output" / "training.json").exists()
    # and another rate, in the same folder
    assert train(*GIVEN, *SHORT, "--output", tmp_path / "output")[0] == 0


@pytest.mark.fault("two at once", "two runs of train in one folder", REFUSED)
def test_two_trainings_do_not_share_an_output(train: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end = trainer_module.Display.on_step_end
    others = []

    def train_another(self: Any, *args: Any, **kwargs: Any) -> None:
        end(self, *args, **kwargs)
        if not others:
            others.append(train(*GIVEN, *SHORT, "--output", tmp_path / "output"))

    monkeypatch.setattr(trainer_module.Display, "on_step_end", train_another)
    status, out, _ = train(*GIVEN, *SHORT, "--output", tmp_path / "output")
    assert (status, "checkpoint in" in out) == (0, True)
    assert others[0][0] == 1
    assert "another training is at work here" in last_line(others[0][2])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["output"]


def test_an_interrupted_run_says_how_to_go_on(train: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(trainer_module.Display, "on_step_end", interrupt)
    status, _, err = train(*GIVEN, *SHORT, "--output", tmp_path / "output")
    assert status == 1
    assert last_line(err) == "temporalwiki train: interrupted; run the same command again to continue"


# A tiny GPT-2 has 280 kB of weights, and its optimizer's state has twice as much. A checkpoint is kept while the
# next one is written.
FULL_AT: dict[str, tuple[str, int]] = {
    "before anything else": ("4k", 1),
    "in the weights of a checkpoint": ("64k", 1),
    "in its optimizer's state": ("400k", 1),
    "in a second checkpoint": ("1000k", 1),
    "in the result": ("1000k", 5),
}


@pytest.mark.fault("full disk", "train: --output", ONE_LINE)
@pytest.mark.parametrize("when", FULL_AT)
def test_a_full_disk_is_one_line_and_the_same_command_goes_on(when: str, train: Run, tmp_path: Path) -> None:
    size, save_steps = FULL_AT[when]
    words = (*GIVEN, *SHORT, "--save-steps", save_steps)
    assert train(*words, "--output", tmp_path / "expected")[0] == 0
    with disk(tmp_path / "disk", size) as resize:
        output = tmp_path / "disk" / "output"
        status, out, err = train(*words, "--output", output)
        assert (status, out) == (1, "")
        assert "no space left" in last_line(err).lower()
        assert str(tmp_path / "disk") in last_line(err)
        assert "Traceback" not in err
        resize("50m")
        assert train(*words, "--output", output)[0] == 0
        got, expected = (load_file(at / "model.safetensors") for at in (output, tmp_path / "expected"))
        assert all(torch.equal(got[name], expected[name]) for name in expected)
        assert {path.name for path in output.iterdir()} == {path.name for path in (tmp_path / "expected").iterdir()}


FULL = {
    "safetensors": SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
    "torch": RuntimeError("[enforce fail at inline_container.cc:664] . unexpected pos 64; No space left on device"),
    "the system": OSError(28, "No space left on device"),
}


@pytest.mark.parametrize("who", FULL)
@pytest.mark.fault("full disk", "train: a library reports it in its own words", "one line names the disk")
def test_a_full_disk_is_one_line_whoever_says_it(
    who: str, train: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise FULL[who]

    monkeypatch.setattr(trainer_module, "save_file", full)
    status, _, err = train(*GIVEN, *SHORT, "--save-steps", 1, "--output", tmp_path / "output")
    assert status == 1
    assert "no space left on the disk; free some and run the same command again" in last_line(err)


# Where an option comes from


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch, train: Run) -> Callable[..., Any]:
    """Gives what the command would train."""
    runs: list[Any] = []
    monkeypatch.setattr(train_module, "train", lambda run, configs: runs.append((run, configs)) or [])

    def of(*words: Any) -> Any:
        assert train(*words)[0] == 0
        return runs.pop()

    return of


MINE = "batch-size: 6\nepochs: 3\nsequence_length: 100\nrank: 2\n"
MINE += "methods: {lora: {epochs: 4, alpha: 8}, dora: {epochs: 9}}\n"
TUNING, FASTER = "--method light_tuning ", "batch_size: 4\nlearning_rate: 1.0e-3\n"
# words, and a recipe -> what would be trained
WANTED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "TemporalWiki's defaults": (
        "--method diff", "",
        {"options.batch_size": 64, "options.tokens": 512, "options.learning_rate": 1e-4, "options.epochs": 1,
         "options.schedule": "one_cycle", "options.seed": 0, "past": None, "output": Path("runs/diff-diffset-1112")},
    ),
    "the command line wins over the recipe and that over the defaults": (
        "--method lora --batch-size 7 --alpha 9", MINE,
        {"options.batch_size": 7, "options.epochs": 4, "options.sequence_length": 100, "options.learning_rate": 1e-4,
         "method.rank": 2, "method.alpha": 9.0},
    ),
    "the method's own defaults": (TUNING, "", {"options.batch_size": 32, "options.learning_rate": 1e-5}),
    "they lose to the recipe": (TUNING, FASTER, {"options.batch_size": 4, "options.learning_rate": 1e-3}),
    "and to the command line": (
        TUNING + "--batch-size 5", FASTER, {"options.batch_size": 5, "options.learning_rate": 1e-3}
    ),
    "one by one": (TUNING + "--learning-rate 2e-5", "", {"options.batch_size": 32, "options.learning_rate": 2e-5}),
    "options of the recipe's method": (
        "--gamma 9", "method: recadam\nmethods: {recadam: {gamma: 7, t0: 8}}\n", {"method.gamma": 9, "method.t0": 8}
    ),
    "of two methods the last one": ("--method diff --method lora --rank 2", "", {"name": "lora", "method.rank": 2}),
}  # fmt: skip


@pytest.mark.parametrize("case", WANTED)
def test_where_an_option_comes_from(case: str, wanted: Callable[..., Any], tmp_path: Path) -> None:
    words, recipe, expected = WANTED[case]
    (tmp_path / "mine.yaml").write_text(recipe)
    run, configs = wanted(*words.split(), *GIVEN[2:], *(("--recipe", tmp_path / "mine.yaml") if recipe else ()))
    assert {name: attrgetter(name)(run) for name in expected} == expected
    assert configs == ["diffset-1112"]


def test_help_shows_the_methods_own_defaults(run: Run) -> None:
    assert "(default: 64)" in run("train", "--help")[1]
    text = run("train", "--method", "light_tuning", "--help")[1]
    assert "over all processes (default: 32)" in " ".join(text.split())
    assert "(default: 64)" not in text


def test_a_recipe_may_say_everything(wanted: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(
        "method: recadam\nmodel: gpt2\ndata: data\nconfig: [diffset-1112, news]\noutput: x\n"
        "gradient_checkpointing: true\nreport_to: tensorboard\nmethods: {recadam: {gamma: 7}}\n"
    )
    run, configs = wanted("--recipe", tmp_path / "all.yaml")
    assert (run.name, run.model, run.data, str(run.output)) == ("recadam", "gpt2", "data", "x")
    assert configs == ["diffset-1112", "news"]
    assert (run.options.gradient_checkpointing, run.options.report_to) == (True, ("tensorboard",))
    assert run.method.gamma == 7


@pytest.mark.parametrize("method", ["lora", "light_tuning", "k_adapter"])
def test_help_names_the_methods_own_options(method: str, train: Run) -> None:
    status, out, _ = train("--method", method, "--help")
    assert status == 0
    for flag in {"lora": ("--rank", "--alpha"), "k_adapter": ("--scale",), "light_tuning": ()}[method]:
        assert flag in out
    assert "--learning-rate" in out
    assert "example:\n  temporalwiki train" in out


# What it says


def test_it_says_what_it_did(train: Run, tmp_path: Path) -> None:
    status, out, err = train(*GIVEN, *SHORT, "--output", tmp_path / "output", "--logging-steps", 1)
    record = json.loads((tmp_path / "output" / "training.json").read_text("utf-8"))
    loss = "loss {first:.4f} to {last:.4f}".format(**record["loss"])
    assert status == 0
    assert out == f"diffset-1112: {loss} in 2 steps; checkpoint in {tmp_path / 'output'} (training.json)\n"
    assert err == ""
