"""Several processes compute the same as one: the same global batches and losses, and nearly the same weights.

They run on the CPU with gloo. Accelerate shards (FSDP2) only on accelerators, so the program pretends to have some.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils.launch import prepare_multi_gpu_env
from filelock import FileLock
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

import temporalwiki
from temporalwiki.commands import main

from a_dataset import write_dataset
from a_folder import rewrite

# The program of each process: it runs several commands and breaks some off after a number of steps.
PROGRAM = """
import gc, io, json, os, sys
if sys.argv[2] == "fsdp":
    from accelerate import PartialState
    from accelerate.utils import DistributedType
    PartialState._prepare_backend = lambda self, *_, **__: ("gloo", DistributedType.MULTI_GPU)
from temporalwiki.commands import main
from temporalwiki.methods import train
from temporalwiki.methods.trainer import Display

class Killed(BaseException):
    pass

first = os.environ["RANK"] == "0"

end, stop = Display.on_step_end, None
def on_step_end(self, args, state, *more, **named):
    global held
    end(self, args, state, *more, **named)
    parameters = list(named["model"].parameters())
    local = [p.to_local() if hasattr(p, "to_local") else p for p in parameters]
    held = sum(p.numel() for p in local) / sum(p.numel() for p in parameters)
    if state.global_step == stop:
        raise Killed
Display.on_step_end = on_step_end
train.draw = lambda log, title, path: path.touch()  # a plot takes longer than a run here
gc.collect = lambda *_: 0  # and so does this

for words, stop in json.load(open(sys.argv[1])):
    said, held = io.StringIO(), None  # held: the share of the parameters that is in this process
    sys.stderr = said
    try:
        status = main(words)
    except Killed:
        status = "killed"
    except Exception as error:
        status = f"{type(error).__name__}: {error}"
    sys.stderr = sys.__stderr__
    if first:
        with open(sys.argv[1] + ".said", "a") as file:
            print(json.dumps([status, said.getvalue(), held]), file=file)
"""
RECIPE = Path(temporalwiki.__file__).parents[2] / "examples" / "fsdp.yaml"
STEPS = ("--logging-steps", 1, "--sequence-length", 32, "--learning-rate", 1e-2)


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick")]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of few chunks: with Llama, 13 new ones of 32 tokens."""
    names = ("Anna Weber", "Boris Okafor", "Chen Li", "Dora Haugen", "Emil Novak", "Fatima Sahin")
    texts = {
        name: f" is in the {name} town of Easton. ".join(names * 9)[:letters]
        for name, letters in (("new", 620), ("past", 1250))
    }
    return write_dataset(tmp_path_factory.mktemp("data"), {name: [{"text": text}] for name, text in texts.items()})


@pytest.fixture(scope="module")
def plain_t5(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny T5 without dropout, whose random numbers differ between processes."""
    folder = tmp_path_factory.mktemp("t5")
    shutil.copytree(models["t5"], folder, dirs_exist_ok=True)
    rewrite(folder / "config.json", dropout_rate=0.0)
    return folder


@pytest.fixture(scope="module")
def in_bf16(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny Llama, stored in bf16."""
    folder = tmp_path_factory.mktemp("bf16")
    shutil.copytree(models["llama"], folder, dirs_exist_ok=True)
    AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def words(models: dict[str, Path], plain_t5: Path, in_bf16: Path, data: Path) -> Callable[..., list[str]]:
    """Makes the words of a command; later ones count."""

    def make(method: str, kind: str, output: Path, *more: Any) -> list[str]:
        model = {**models, "t5": plain_t5, "llama in bf16": in_bf16}[kind]
        given = ("--method", method, "--model", model, "--data", data, "--config", "new", "--past", "past")
        batch = ("--batch-size", 4, "--micro-batch-size", 2)
        limit = () if "--epochs" in more else ("--max-steps", 4)
        return [str(word) for word in ("train", *given, *batch, *STEPS, *limit, *more, "--output", output)]

    return make


def environment(how: str) -> dict[str, str]:
    """Return what a launch sets: for FSDP, `accelerate launch --config_file examples/fsdp.yaml`."""
    if how == "ddp":
        return {"ACCELERATE_USE_CPU": "true"}
    given = launch_command_parser().parse_args(["--config_file", str(RECIPE), "-m", "temporalwiki"])
    arguments, *_ = _validate_launch_command(given)
    return prepare_multi_gpu_env(arguments) | {"ACCELERATE_TORCH_DEVICE": "cpu"}


def run_processes(words: list[str], environment: dict[str, str]) -> str:
    """Run a Python program in two processes, as `accelerate launch` does; return their output."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    common = {**os.environ, "OMP_NUM_THREADS": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", **environment}
    common |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    with tempfile.TemporaryFile("w+") as said:
        both = [
            subprocess.Popen(
                [sys.executable, *words],
                env={**common, "RANK": rank, "LOCAL_RANK": rank},
                stdout=said,
                stderr=subprocess.STDOUT,
            )
            for rank in ("0", "1")
        ]
        try:
            while None in (statuses := [process.poll() for process in both]) and not any(statuses):
                time.sleep(0.05)  # a process whose partner failed would wait for it without end
        finally:
            for process in both:
                process.kill()
                process.wait()
        said.seek(0)
        return said.read()


def read(output: Path) -> Any:
    return json.loads((output / "training.json").read_text("utf-8"))


def weights(output: Path) -> dict[str, torch.Tensor]:
    return {name: tensor for path in output.glob("*.safetensors") for name, tensor in load_file(path).items()}


def agree(got: Path, expected: Path) -> None:
    """The same losses and gradients at every step, and the same weights, but for the order of additions."""
    for name in ("loss", "grad_norm"):
        curves = [[line[name] for line in read(output)["log"]] for output in (got, expected)]
        assert curves[0] == pytest.approx(curves[1], rel=1e-5), name
    there, here = weights(got), weights(expected)
    assert there.keys() == here.keys()
    apart = 0
    for name in here:
        torch.testing.assert_close(
            there[name], here[name], rtol=1e-4, atol=1e-4, msg=lambda said, n=name: f"{n}: {said}"
        )
        apart += int((~torch.isclose(there[name], here[name], rtol=1e-4, atol=1e-5)).sum())
    # Adam divides by the size of a gradient: where that is next to nothing, the order of additions shows
    assert apart <= 1e-4 * sum(tensor.numel() for tensor in here.values())


def moved(output: Path, start: Path) -> bool:
    """Tell whether training changed what it wrote, if the start has weights of these names at all."""
    there, here = weights(output), weights(start)
    return any(not torch.equal(tensor, here[name]) for name, tensor in there.items() if name in here) or (
        not there.keys() & here.keys()
    )


# name -> method, kind of model, further words of the command
Table = dict[str, tuple[str, str, tuple[Any, ...]]]
DDP: Table = {
    # 13 chunks in two steps of 12: of the last one's six micro-batches five are empty
    "diff": ("diff", "llama", ("--batch-size", 12, "--epochs", 1)),
    "diff on T5": ("diff", "t5", ("--batch-size", 12, "--epochs", 1)),
    "lwf": ("lwf", "llama", ("--batch-size", 12, "--epochs", 1)),
    "lora": ("lora", "llama", ()),
    "k_adapter": ("k_adapter", "llama", ()),
    "recadam": ("recadam", "llama", ("--t0", 2, "--gamma", 20)),
    "ewc": ("ewc", "llama", ("--fisher-examples", 3, "--penalty", 1000)),
    # one process takes steps of 6 by twos, two take their 3 at once; see OTHERWISE
    "micro-batches of another size": ("diff", "llama", ("--batch-size", 6, "--micro-batch-size", 4)),
}
OTHERWISE = {"micro-batches of another size": ("--micro-batch-size", 2)}  # in one process
SHARDED: Table = {
    "gradient checkpointing": ("diff", "llama", ("--gradient-checkpointing",)),
    "diff": ("diff", "llama", ("--batch-size", 12, "--epochs", 1)),
    "recadam": ("recadam", "llama", ("--t0", 2, "--gamma", 20)),
    "lora": ("lora", "llama", ()),
    "k_adapter": ("k_adapter", "llama", ()),
}
REFUSED: dict[str, tuple[str, str, tuple[Any, ...], str]] = {
    "ewc": ("ewc", "llama", ("--fisher-examples", 2), "needs unsharded weights"),
    "lwf": ("lwf", "llama", (), "needs unsharded weights"),
    "Adafactor": ("diff", "llama", ("--optimizer", "adafactor"), "adafactor"),
    "T5, whose embedding is in three places": ("diff", "t5", (), "t5"),
}
BF16: Table = {"bf16": ("diff", "llama in bf16", ("--precision", "bf16"))}  # as on a GPU
TIED: Table = {"merge": ("merge", "gpt2", ())}  # the output is the embedding
# runs that are repeated, broken off after the third step, and continued
KILLED = {"ddp": ("diff on GPT-2", "weights in bf16", "ewc"), "fsdp": ("tied: merge", "lora", "recadam")}


class Launched:
    """All runs of two processes of one kind, in one launch, because starting the processes takes most of the time.

    The workers of a parallel test run share ``folder``; the first that needs the runs launches them.
    """

    def __init__(self, how: str, table: Table, words: Callable[..., list[str]], folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        done = folder / "done.json"
        with FileLock(folder / "lock"):
            if not done.exists():
                done.write_text(json.dumps(self.launch(how, table, words)))
        self.output, said = json.loads(done.read_text())
        self.statuses = {name: status for name, (status, _, _) in said.items()}
        self.said = {name: text for name, (_, text, _) in said.items()}
        self.held = {name: held for name, (_, _, held) in said.items()}

    def launch(self, how: str, table: Table, words: Callable[..., list[str]]) -> tuple[str, dict[str, Any]]:
        """Return what the processes wrote on stdout, and by run its exit status and the first one's stderr."""
        cases: list[tuple[str, list[str], int | None]] = []
        for name, (method, kind, more) in table.items():
            cases.append((name, words(method, kind, self.folder / name, *more), None))
            if name in KILLED[how]:
                again = words(method, kind, self.folder / f"{name}, killed", *more, "--save-steps", 2)
                cases += [(f"{name}, killed", again, 3), (f"{name}, again", again, None)]
        left = words("lora", "llama", self.folder / "left", "--save-steps", 2)
        cases.append(("left", left, 3))
        (self.folder / "cases.json").write_text(json.dumps([(command, stop) for _, command, stop in cases]))
        (self.folder / "program.py").write_text(PROGRAM)
        program = [str(self.folder / "program.py"), str(self.folder / "cases.json"), how]
        out = run_processes(program, environment(how))
        said = [json.loads(line) for line in Path(f"{program[1]}.said").read_text().splitlines()]
        assert len(said) == len(cases), out[-6000:]
        return out, dict(zip((name for name, _, _ in cases), said, strict=True))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the processes of a parallel run of these tests share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="module")
def in_two(words: Callable[..., list[str]], shared: Path) -> Launched:
    table = DDP | {"weights in bf16": ("diff", "llama", ("--dtype", "bf16"))}
    table |= {"diff on GPT-2": ("diff", "gpt2", ())}  # with dropout: only its repetition is the same
    return Launched("ddp", table, words, shared / "ddp")


@pytest.fixture(scope="module")
def sharded(words: Callable[..., list[str]], shared: Path) -> Launched:
    table = SHARDED | BF16
    table |= {f"tied: {name}": case for name, case in TIED.items()}
    table |= {f"refused: {name}": case[:3] for name, case in REFUSED.items()}
    return Launched("fsdp", table, words, shared / "fsdp")


# Two processes


@pytest.mark.parametrize(
    ("how", "name"), [*(("in_two", name) for name in DDP), *(("sharded", name) for name in SHARDED)]
)
def test_two_processes_compute_what_one_does(
    how: str,
    name: str,
    request: pytest.FixtureRequest,
    words: Callable[..., list[str]],
    models: dict[str, Path],
    tmp_path: Path,
) -> None:
    launched = request.getfixturevalue(how)
    method, kind, more = (DDP if how == "in_two" else SHARDED)[name]
    assert launched.statuses[name] == 0
    assert read(launched.folder / name)["processes"] == 2
    assert main(words(method, kind, tmp_path / "one", *more, *OTHERWISE.get(name, ()))) == 0
    agree(launched.folder / name, tmp_path / "one")
    assert moved(launched.folder / name, models[kind])


def test_the_last_step_was_nearly_empty(in_two: Launched) -> None:
    cases = (("diff", "chunks", 13), ("diff on T5", "windows", 19))
    for name, size, examples in cases:
        record = read(in_two.folder / name)
        assert record["data"]["new"][size] == examples
        assert record["steps"] == 2


@pytest.mark.parametrize(
    ("how", "name"), [*(("in_two", name) for name in KILLED["ddp"]), *(("sharded", name) for name in KILLED["fsdp"])]
)
def test_two_processes_go_on_to_the_same_bits(how: str, name: str, request: pytest.FixtureRequest) -> None:
    launched = request.getfixturevalue(how)
    statuses = [launched.statuses[name + which] for which in ("", ", killed", ", again")]
    assert statuses == [0, "killed", 0]
    assert "continuing from step 2 of 4" in launched.said[f"{name}, again"]
    whole, parts = launched.folder / name, launched.folder / f"{name}, killed"
    assert [line["loss"] for line in read(parts)["log"]] == [line["loss"] for line in read(whole)["log"]]
    there, here = weights(parts), weights(whole)
    assert there.keys() == here.keys()
    assert all(torch.equal(there[name], here[name]) for name in here)
    assert not (parts / "checkpoints").exists()


def left(launched: Launched, words: Callable[..., list[str]], output: Path) -> list[str]:
    """Copy a run that two processes left unfinished to ``output``; return the command that goes on with it."""
    assert launched.statuses["left"] == "killed"
    shutil.copytree(launched.folder / "left", output)
    command = words("lora", "llama", output, "--save-steps", 2)
    record = json.loads((output / "run.json").read_text("utf-8"))
    # another process of a parallel run of these tests may have begun it, with files of its own
    record["run"] |= {name: command[command.index(f"--{name}") + 1] for name in ("model", "data")}
    (output / "run.json").write_text(json.dumps(record))
    return command


def test_one_process_goes_on_where_two_left_off(
    in_two: Launched, words: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(left(in_two, words, tmp_path / "left")) == 0
    assert "continuing from step 2 of 4" in capsys.readouterr().err
    agree(tmp_path / "left", in_two.folder / "lora")


def test_the_first_process_speaks_for_all(in_two: Launched) -> None:
    finished = [status for status in in_two.statuses.values() if status == 0]
    assert in_two.output.count("checkpoint in") == len(finished)
    assert in_two.said["lora"].count(" parameters") == 1


# Sharded over two processes


def test_each_process_holds_its_share(in_two: Launched, sharded: Launched) -> None:
    assert [in_two.held[name] for name in DDP] == [1] * len(DDP)
    assert [sharded.held[name] for name in SHARDED | BF16] == pytest.approx([0.5] * len(SHARDED | BF16), abs=0.01)


def test_a_sharded_run_in_bf16_is_near_one_process_and_keeps_the_type_of_its_start(
    sharded: Launched, words: Callable[..., list[str]], tmp_path: Path
) -> None:
    ((name, (method, kind, more)),) = BF16.items()
    assert sharded.statuses[name] == 0
    assert main(words(method, kind, tmp_path / "one", *more)) == 0
    curves = [[line["loss"] for line in read(output)["log"]] for output in (sharded.folder / name, tmp_path / "one")]
    assert curves[0] == pytest.approx(curves[1], rel=5e-3)
    assert curves[0][0] - curves[0][-1] > 0.1
    for output in (sharded.folder / name, tmp_path / "one"):
        assert {tensor.dtype for tensor in weights(output).values()} == {torch.bfloat16}
        assert json.loads((output / "config.json").read_text("utf-8"))["dtype"] == "bfloat16"


def test_a_sharded_runs_checkpoint_is_a_plain_model(sharded: Launched) -> None:
    folder = sharded.folder / "diff"
    model, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    expected = weights(folder)
    assert all(torch.equal(tensor, expected[name]) for name, tensor in model.state_dict().items() if name in expected)


@pytest.mark.parametrize("name", TIED)
def test_weights_that_are_tied_stay_tied(name: str, sharded: Launched, models: dict[str, Path]) -> None:
    folder = sharded.folder / f"tied: {name}"
    assert weights(folder).keys() == weights(models["gpt2"]).keys()
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert torch.equal(model.lm_head.weight, model.transformer.wte.weight)


def test_one_process_says_so_where_it_cannot_go_on_with_a_sharded_run(
    sharded: Launched, words: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(left(sharded, words, tmp_path / "left")) == 1
    assert "shard" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_sharded_is_refused_in_one_line(case: str, sharded: Launched) -> None:
    *_, said = REFUSED[case]
    assert sharded.statuses[f"refused: {case}"] == 2
    last = sharded.said[f"refused: {case}"].splitlines()[-1]
    assert last.startswith("temporalwiki train: ")
    assert said in last.lower()
