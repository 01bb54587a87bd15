"""A run that is stopped anywhere and started again ends with the same bits as an uninterrupted one."""

import contextlib
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.commands import main
from temporalwiki.methods import METHODS
from temporalwiki.methods import train as train_module
from temporalwiki.methods import trainer as trainer_module

from a_dataset import write_dataset
from a_folder import contents
from a_stop import Killed, Stop
from tiny_training import killed_after, losses, record

SHORT = ("--batch-size", 4, "--micro-batch-size", 2, "--sequence-length", 32, "--save-steps", 2, "--logging-steps", 1)
STEPS = ("--max-steps", 5)
NEW, PAST = 500, 800  # characters
QUICK = ("--learning-rate", 1e-2)  # so that a lost or repeated step shows
OWN = {
    "recadam": ("--t0", 2, "--gamma", 20),  # so that both Adam and the pull count in five steps
    "ewc": ("--fisher-examples", 4, "--penalty", 1000),
    "light_tuning": ("--config", "facts"),
    "sdft": ("--length", 6, "--text", 0.5),
    "study": ("--config", "diffset-1112"),
}
METHODS_OF = {
    "gpt2": [name for name in METHODS if name not in ("initial", "modular")],
    "t5": ["diff", "lora", "dora", "k_adapter", "modular", "mix_review"],  # what T5 adds: its batches, its decoder
}


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick")]


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of few chunks, so that epochs are short: with GPT-2, 8 new and 13 past ones of 32 tokens."""
    names = ("Anna Weber", "Boris Okafor", "Chen Li", "Dora Haugen", "Emil Novak", "Fatima Sahin")
    facts = [{"subject": name, "relation": "lives in", "object": f"Town {i}"} for i, name in enumerate(names)]
    texts = {"new": " is in Easton. ".join(names * 3)[:NEW], "past": " was in Norland. ".join(names * 5)[:PAST]}
    rows = {name: [{"text": text}] for name, text in texts.items()}
    told = [{**fact, "relation_id": "P551", "page_id": 0, "evidence": " ".join(fact.values())} for fact in facts]
    rows["diffset-1112"] = [{"id": 0, "title": "Towns", "text": ". ".join(fact["evidence"] for fact in told)}]
    months = {"facts-1112": {"changed": told}}
    return write_dataset(tmp_path_factory.mktemp("small"), {**rows, "facts": facts, **months})


@pytest.fixture(scope="session")
def words(models: dict[str, Path], data: Path) -> Callable[..., list[str]]:
    """Return a function that makes the words of a command; later words override earlier ones."""

    def make(method: str, kind: str, output: Path, *more: Any) -> list[str]:
        small = ("--small", models["t5"]) if method == "modular" else ()
        given = ("--method", method, "--model", models[kind], "--data", data, "--config", "new", "--past", "past")
        own = (*OWN.get(method, ()), *small)
        return [str(word) for word in ("train", *given, *SHORT, *QUICK, *own, *more, "--output", output)]

    return make


@contextlib.contextmanager
def killed_before_writing(module: Any, file: str, function: str = "write_json") -> Iterator[None]:
    """Break off when ``function`` in ``module`` would write ``file`` (the end of its path)."""
    write = getattr(module, function)

    def stop(*args: Any, **kwargs: Any) -> Any:
        if any(str(arg).endswith(file) for arg in args if isinstance(arg, Path)):
            raise Killed
        return write(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, function, stop)
        with pytest.raises(Killed):
            yield


def curves(output: Path) -> dict[str, list[dict[str, float]]]:
    """Return the log of each phase, without speeds."""
    kept = ("step", "loss", "grad_norm", "learning_rate")
    return {
        str(path.relative_to(output)): [{name: line[name] for name in kept} for line in record(path.parent)["log"]]
        for path in sorted(output.rglob("training.json"))
    }


def same(got: Path, expected: Path) -> None:
    """Assert that two runs wrote the same files, with equal weights and losses."""
    assert curves(got) == curves(expected)
    assert contents(got, "*.safetensors") == contents(expected, "*.safetensors")
    files = [sorted(path.relative_to(top) for path in top.rglob("*")) for top in (got, expected)]
    assert files[0] == files[1]


def check_resumed(words: Callable[..., list[str]], folder: Path, at: int, method: str, kind: str, *more: Any) -> None:
    """Assert that a run killed after ``at`` steps and started again ends like an uninterrupted one."""
    assert main(words(method, kind, folder / "whole", *more)) == 0
    with killed_after(at):
        main(words(method, kind, folder / "parts", *more))
    assert main(words(method, kind, folder / "parts", *more)) == 0
    same(folder / "parts", folder / "whole")


# Every method


@pytest.mark.parametrize(
    ("kind", "method"), [(kind, method) for kind in ("gpt2", "t5") for method in METHODS_OF[kind]]
)
@pytest.mark.fault(
    "kill -9", "train: any method, at any step", "a rerun ends with the same weights and losses, to the bit"
)
def test_a_run_of_any_method_goes_on_to_the_same_bits(
    kind: str, method: str, words: Callable[..., list[str]], tmp_path: Path
) -> None:
    # both models have dropout, so that the random state counts
    check_resumed(words, tmp_path, 1 + zlib.crc32(f"{kind} {method}".encode()) % 5, method, kind, *STEPS)


# Every way to train

FAR = ("--logging-steps", 100)  # log entries further apart than checkpoints
MIX = ("--epochs", 3, "--ratio", 2, "--decay", 0.55)
# step at which the run is killed, method, kind of model, further words
WAYS: dict[str, tuple[int, str, str, tuple[Any, ...]]] = {
    "no dropout": (3, "diff", "llama", STEPS),
    "Adafactor": (3, "diff", "t5", (*STEPS, "--optimizer", "adafactor")),
    "Adafactor in bf16": (3, "diff", "t5", (*STEPS, "--optimizer", "adafactor", "--dtype", "bf16")),
    "accumulation over single chunks": (3, "diff", "gpt2", (*STEPS, "--micro-batch-size", 1)),
    "weight decay": (3, "recadam", "gpt2", (*STEPS, "--weight-decay", 0.1)),
    "CKL's schedule": (3, "diff", "gpt2", (*STEPS, "--schedule", "linear_to_half")),
    "bfloat16": (3, "diff", "gpt2", (*STEPS, "--precision", "bf16")),
    "diff on gpt2 in bf16": (3, "diff", "gpt2", (*STEPS, "--dtype", "bf16")),
    **{
        f"{method} on {kind} in bf16": (3, method, kind, (*STEPS, "--dtype", "bf16"))
        for kind, methods in (
            ("llama", ("diff", "recadam", "ewc", "lwf", "lora", "k_adapter", "merge", "light_tuning")),
            ("t5", ("diff", "lora", "modular")),
        )
        for method in methods
    },
    **{
        f"{method} in 4 bits": (3, method, "llama", (*STEPS, "--quantize", "4bit"))
        for method in ("lora", "dora", "o_lora", "k_adapter")
    },
    "gradient checkpointing": (3, "diff", "gpt2", (*STEPS, "--gradient-checkpointing")),
    "dropout in the adapters": (3, "lora", "gpt2", (*STEPS, "--dropout", 0.1)),
    "data that is repeated: steps of four chunks, from eight": (5, "diff", "gpt2", ("--max-steps", 7)),
    "few log entries": (3, "diff", "gpt2", (*STEPS, *FAR)),
    "Mix-Review in its second epoch": (8, "mix_review", "gpt2", MIX),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_run_goes_on_however_it_trains(way: str, words: Callable[..., list[str]], tmp_path: Path) -> None:
    at, method, kind, more = WAYS[way]
    if "--quantize" in more:
        pytest.importorskip("bitsandbytes")
    check_resumed(words, tmp_path, at, method, kind, *more)
    manifest = record(tmp_path / "whole")
    if more == MIX:
        assert {which: counts["chunks"] for which, counts in manifest["data"].items()} == {"new": 8, "past": 13}
        assert manifest["steps"] == 14  # 8 + 16, 8 + 9 and 8 + 5 chunks; half of the last step is empty
    if FAR[0] in more:  # an entry is a mean since the one before, so each checkpoint needs one
        assert [line["step"] for line in manifest["log"]] == [1, 2, 4, 5]


@pytest.mark.parametrize("method", ["lora", "o_lora", "k_adapter"])
def test_a_run_killed_in_its_second_phase_goes_on_there(
    method: str, words: Callable[..., list[str]], tmp_path: Path
) -> None:
    phases = ("--max-steps", 3, "--config", "new", "past")
    assert main(words(method, "gpt2", tmp_path / "whole", *phases)) == 0
    with killed_after(3 + 3):
        main(words(method, "gpt2", tmp_path / "parts", *phases))
    first = tmp_path / "parts" / "new"
    before = {path: path.stat().st_mtime_ns for path in first.iterdir()}
    assert main(words(method, "gpt2", tmp_path / "parts", *phases)) == 0
    assert {path: path.stat().st_mtime_ns for path in first.iterdir()} == before
    same(tmp_path / "parts", tmp_path / "whole")


def test_a_run_may_be_killed_again_and_again(words: Callable[..., list[str]], tmp_path: Path) -> None:
    command = words("diff", "gpt2", tmp_path / "parts", *STEPS, "--save-steps", 1)
    for _ in range(4):
        with killed_after(2):  # one step more than was kept each time
            main(command)
    assert main([*command, "--resume"]) == 0
    assert main(words("diff", "gpt2", tmp_path / "whole", *STEPS)) == 0
    same(tmp_path / "parts", tmp_path / "whole")


def test_a_micro_batch_of_another_size_goes_on_but_for_rounding(
    words: Callable[..., list[str]], tmp_path: Path
) -> None:
    assert main(words("diff", "llama", tmp_path / "whole", *STEPS)) == 0
    with killed_after(3):
        main(words("diff", "llama", tmp_path / "parts", *STEPS))
    changed = ("--micro-batch-size", 1, "--save-steps", 1)
    assert main(words("diff", "llama", tmp_path / "parts", *STEPS, *changed)) == 0
    got, expected = (losses(tmp_path / name) for name in ("parts", "whole"))
    assert got == pytest.approx(expected, rel=1e-5)


# Killed while something is written


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.fixture(scope="module")
def whole_gpt2(words: Callable[..., list[str]], tmp_path_factory: pytest.TempPathFactory, quick: None) -> Path:
    """A run of diff on GPT-2 that nothing disturbed."""
    output = tmp_path_factory.mktemp("whole") / "output"
    assert main(words("diff", "gpt2", output, *STEPS)) == 0
    return output


def test_a_checkpoint_that_was_being_written_does_not_count(
    whole_gpt2: Path, words: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = words("diff", "gpt2", tmp_path / "parts", *STEPS)
    with killed_before_writing(trainer_module, "checkpoint-4/complete.json"):
        main(command)
    kept = tmp_path / "parts" / "checkpoints"
    assert sorted(path.name for path in kept.iterdir()) == ["checkpoint-2", "checkpoint-4"]
    cut(kept / "checkpoint-4" / "trained.safetensors")
    capsys.readouterr()
    assert main(command) == 0
    assert "continuing from step 2 of 5" in capsys.readouterr().err
    same(tmp_path / "parts", whole_gpt2)


def flip(path: Path) -> None:
    """Change one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


# what happens to the newest checkpoint after it was complete -> what the line names
DAMAGED_LATER: dict[str, tuple[Callable[[Path], object], str]] = {
    "a bit of the weights flips": (lambda folder: flip(folder / "trained.safetensors"), "trained.safetensors: not"),
    "the optimizer's file is cut": (lambda folder: cut(folder / "optimizer.pt"), "optimizer.pt: not the file"),
    "the random state is lost": (lambda folder: (folder / "rng_state.pth").unlink(), "rng_state.pth: missing"),
    "a bit of the log flips": (lambda folder: flip(folder / "trainer_state.json"), "trainer_state.json: not the file"),
    "the marker is cut": (lambda folder: cut(folder / "complete.json"), "complete.json: not a list of files"),
}


@pytest.mark.fault(
    "intermediate file missing or damaged",
    "train: a complete checkpoint of an unfinished run loses or changes a bit or a file",
    "one line names the file; the run goes on from an earlier checkpoint or from its start: the same bytes",
)
@pytest.mark.parametrize("earlier", [True, False])
@pytest.mark.parametrize("damage", DAMAGED_LATER)
def test_a_damaged_checkpoint_is_left_out(
    damage: str,
    earlier: bool,
    whole_gpt2: Path,
    words: Callable[..., list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    harm, named = DAMAGED_LATER[damage]
    command = words("diff", "gpt2", tmp_path / "parts", *STEPS)
    kept = tmp_path / "parts" / "checkpoints"
    with killed_after(3):
        main(command)
    shutil.copytree(kept / "checkpoint-2", tmp_path / "checkpoint-2")
    with killed_after(3):
        main(command)
    if earlier:  # as if the process had been killed before it removed this one
        shutil.copytree(tmp_path / "checkpoint-2", kept / "checkpoint-2")
    harm(kept / "checkpoint-4")
    capsys.readouterr()
    assert main(command) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "this checkpoint is left out" in line]
    assert len(said) == 1
    assert f"checkpoint-4/{named}" in said[0]
    same(tmp_path / "parts", whole_gpt2)


def test_damaged_fisher_information_is_estimated_again(words: Callable[..., list[str]], tmp_path: Path) -> None:
    command = words("ewc", "llama", tmp_path / "parts", *STEPS)
    with killed_after(3):
        main(command)
    fisher = tmp_path / "parts" / "checkpoints" / "fisher" / "fisher.safetensors"
    content = fisher.read_bytes()
    fisher.write_bytes(content[: len(content) // 2].ljust(len(content), b"\0"))  # half of it is lost
    assert main(command) == 0
    assert main(words("ewc", "llama", tmp_path / "whole", *STEPS)) == 0
    same(tmp_path / "parts", tmp_path / "whole")


def test_what_trains_nothing_goes_on_wherever_it_was_killed(words: Callable[..., list[str]], tmp_path: Path) -> None:
    command = words("initial", "gpt2", tmp_path / "parts")
    assert main(words("initial", "gpt2", tmp_path / "whole")) == 0
    for nth in itertools.count(1):
        stop = Stop(nth)
        with stop, contextlib.suppress(Killed):
            main(command)
        assert main(command) == 0
        assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
        shutil.rmtree(tmp_path / "parts")
        if not stop.reached:
            break
    assert nth > 5


AT_THE_END = {  # the file that would be written, and the function that writes it
    "while the result is written": ("loss.png", "draw"),
    "before the manifest is written": ("training.json", "write_json"),
}


@pytest.mark.parametrize("moment", AT_THE_END)
def test_a_run_killed_at_its_end_ends_the_same(
    moment: str, whole_gpt2: Path, words: Callable[..., list[str]], tmp_path: Path
) -> None:
    command = words("diff", "gpt2", tmp_path / "parts", *STEPS)
    with killed_before_writing(train_module, *AT_THE_END[moment]):
        main(command)
    assert main(command) == 0
    same(tmp_path / "parts", whole_gpt2)


def test_a_run_killed_while_it_tidies_up_leaves_nothing_behind(
    whole_gpt2: Path, words: Callable[..., list[str]], tmp_path: Path
) -> None:
    command = words("diff", "gpt2", tmp_path / "parts", *STEPS)
    remove = shutil.rmtree

    def stop(path: Any, **more: Any) -> None:
        if Path(path).name == "checkpoints" and (tmp_path / "parts" / "training.json").exists():
            raise Killed
        remove(path, **more)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(train_module.shutil, "rmtree", stop)
        main(command)
    assert main(command) == 0
    same(tmp_path / "parts", whole_gpt2)  # the checkpoints to go on from are larger than the model


def test_fisher_information_is_not_estimated_again(
    words: Callable[..., list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from temporalwiki.methods import ewc

    command = words("ewc", "llama", tmp_path / "parts", *STEPS)
    with killed_after(3):
        main(command)
    monkeypatch.setattr(ewc, "fisher", lambda *_: pytest.fail("it was kept"))
    assert main(command) == 0


# The same run or another one


OTHER_RUNS = {
    "learning_rate": ("--learning-rate", 1e-3),
    "seed": ("--seed", 1),
    "config": ("--config", "past"),
    "max_steps": ("--max-steps", 4),
    "batch_size": ("--batch-size", 8),
}


@pytest.mark.parametrize(("changed", "finished"), [*((name, True) for name in OTHER_RUNS), ("seed", False)])
def test_another_run_is_refused_with_what_differs(
    changed: str,
    finished: bool,
    whole_gpt2: Path,
    words: Callable[..., list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "there"
    if finished:
        shutil.copytree(whole_gpt2, output)
    else:
        with killed_after(3):
            main(words("diff", "gpt2", output, *STEPS))
    before = contents(output)
    capsys.readouterr()
    status = main(words("diff", "gpt2", output, *STEPS, *OTHER_RUNS[changed]))
    err = capsys.readouterr().err
    assert (status, err.count("\n")) == (1, 1)
    assert f"{output}: holds another run (" in err
    assert f"{changed} " in err
    assert contents(output) == before


def test_a_run_that_kept_no_checkpoint_yet_gives_way_to_another(
    whole_gpt2: Path, words: Callable[..., list[str]], tmp_path: Path
) -> None:
    with killed_after(1):
        main(words("diff", "gpt2", tmp_path / "parts", *STEPS, "--seed", 1))
    assert main(words("diff", "gpt2", tmp_path / "parts", *STEPS)) == 0
    same(tmp_path / "parts", whole_gpt2)


def test_a_run_does_not_go_on_with_other_data(
    data: Path, words: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(data, tmp_path / "data")
    command = words("diff", "gpt2", tmp_path / "parts", *STEPS, "--data", tmp_path / "data")
    with killed_after(3):
        main(command)
    shutil.copy(data / "data" / "past" / "train.parquet", tmp_path / "data" / "data" / "new" / "train.parquet")
    capsys.readouterr()
    assert main(command) == 1
    assert "the data changed since this run started" in capsys.readouterr().err


# SIGKILL


@pytest.mark.fault("kill -9", "train: at any time", "a rerun ends with the same weights and losses, to the bit")
def test_a_process_that_is_killed_at_any_time_goes_on(words: Callable[..., list[str]], tmp_path: Path) -> None:
    # a checkpoint per step, so that the kill mostly happens while one is written
    more = ("--max-steps", 12, "--save-steps", 1, "--config", "new", "past")
    command = words("recadam", "gpt2", tmp_path / "parts", *more)
    process = subprocess.Popen(
        [sys.executable, "-m", "temporalwiki", *command], env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    while process.poll() is None and not list(tmp_path.glob("parts/*/checkpoints/checkpoint-*")):
        time.sleep(0.01)
    time.sleep(random.uniform(0, 0.5))
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert main(command) == 0
    assert main(words("recadam", "gpt2", tmp_path / "whole", *more, "--save-steps", 500)) == 0
    same(tmp_path / "parts", tmp_path / "whole")
