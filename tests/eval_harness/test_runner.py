"""A whole evaluation: its results, nothing is computed twice, and the same inputs give the same bytes."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest
from datasets import Dataset, DatasetDict
from filelock import FileLock

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.manifests import checked, read_manifests
from temporalwiki.builders.published import record_published
from temporalwiki.commands import main
from temporalwiki.eval_harness import runner
from temporalwiki.eval_harness.measures import scores
from temporalwiki.eval_harness.models.cache import ScoreCache
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.results import Outcome, Result, read_results
from temporalwiki.eval_harness.runner import Evaluation, evaluate
from temporalwiki.eval_harness.task import Rows, Task
from temporalwiki.eval_harness.tasks.deleted import Deleted
from temporalwiki.eval_harness.tasks.multiple_choice import MultipleChoice
from temporalwiki.eval_harness.tasks.twiki_probes import TwikiProbes
from temporalwiki.methods import checkpoint, trainer

import tiny_models
from a_dataset import write_dataset
from a_folder import rewrite
from a_month import add_month
from a_stop import Killed
from tiny_probes import CHANGED, UNCHANGED, forward_passes, rows, write_month

pytestmark = pytest.mark.usefixtures("quick")

Run = Callable[..., list[Result]]
Patch = pytest.MonkeyPatch
QUICK = {"twiki_probes": TwikiProbes(answers=False, light_tuning=False)}
WHOLE = {"twiki_probes": TwikiProbes()}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {kind: tiny_models.save(kind, folder / kind) for kind in ("gpt2", "t5")}


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_month(tmp_path_factory.mktemp("data") / "temporalwiki")


@pytest.fixture
def run(models: dict[str, Path], month: Path, tmp_path: Path) -> Run:
    """Return a function that evaluates a model (default: GPT-2) on the month, with a cache for each test."""

    def evaluated(store: str = "scores", precision: str = "fp32", **more: Any) -> list[Result]:
        given = {"model": str(models["gpt2"]), "data": str(month), "tasks": QUICK, "configs": (), "limit": None}
        wanted = Evaluation(**{**given, "output": tmp_path / "results", **more})
        return evaluate(wanted, CachedModel(wanted.model, tmp_path / store, precision))

    return evaluated


def content(folder: Path) -> dict[str, Any]:
    """Return the content of all result files without "run", and the bytes of their items."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*.json")):
        data = json.loads(path.read_text("utf-8"))
        assert set(data.pop("run")) == {"seconds", "temporalwiki", "device", "processes", "python", "libraries"}
        found[path.name] = json.dumps(data), path.with_suffix(".parquet").read_bytes()
    return found


def count_kept(patch: Patch, name: str, counts: list[int]) -> None:
    """Record how many answers are added to the cache in each batch."""
    keep = getattr(ScoreCache, name)

    def count(self: ScoreCache, found: Any) -> None:
        found = list(found)
        counts.append(len(found))
        keep(self, found)

    patch.setattr(ScoreCache, name, count)


# Content of results


def test_a_result_has_all_that_is_needed_to_repeat_it(run: Run, models: dict[str, Path], month: Path) -> None:
    [result] = run(tasks=WHOLE)
    data = json.loads(result.path.read_text("utf-8"))
    assert data == result.data
    assert data["schema"] == 1
    assert data["task"] == {
        "name": "twiki_probes",
        "version": 4,
        "options": {"answers": True, "beams": 1, "light_tuning": True, "max_new_tokens": 20},
    }
    assert data["model"].items() >= {"name": str(models["gpt2"]), "precision": "fp32", "method": None}.items()
    assert data["model"]["revision"] == CachedModel(str(models["gpt2"]), month).revision
    split = {"unchanged": 5, "changed": 4, "light-tuning/unchanged": 9}
    assert data["data"].items() >= {"dataset": str(month), "config": "probes-1112", "rows": split}.items()
    assert data["run"]["processes"] == 1
    assert {"torch", "transformers", "tokenizers"} < set(data["run"]["libraries"])
    assert len(result.items()) == 2 * (5 + 4)
    assert {name.rpartition("/")[0] for name in data["scores"]} == {
        stage + test for stage in ("", "light-tuned/") for test in ("unchanged", "changed", "average")
    }


# Nothing is computed twice


def test_a_result_that_is_there_is_read_and_the_model_not_loaded(run: Run, monkeypatch: Patch, tmp_path: Path) -> None:
    [first] = run()
    before = first.path.stat().st_mtime_ns

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr(checkpoint, "load", fail)
    monkeypatch.setattr(checkpoint, "load_tokenizer", fail)
    monkeypatch.setattr(ScoreCache, "__init__", fail)
    [again] = run()
    assert again == first
    assert first.path.stat().st_mtime_ns == before


@dataclass(frozen=True)
class Later(TwikiProbes):
    """Raise the version of a task."""

    version: ClassVar[int] = TwikiProbes.version + 1


def changed_model(folder: Path, models: dict[str, Path]) -> str:
    shutil.copytree(models["gpt2"], folder / "gpt2")
    rewrite(folder / "gpt2" / "generation_config.json", eos_token_id=1)
    return str(folder / "gpt2")


def changed_data(folder: Path) -> str:
    write_dataset(folder / "other", {"probes-1112": {"unchanged": rows(UNCHANGED), "changed": rows(CHANGED[::-1])}})
    return str(folder / "other")


OTHERS: dict[str, Callable[[Path, dict[str, Path]], dict[str, Any]]] = {
    "a limit": lambda folder, models: {"limit": 3},
    "an option": lambda folder, models: {"tasks": {"twiki_probes": replace(QUICK["twiki_probes"], beams=2)}},
    "a version of the task": lambda folder, models: {"tasks": {"twiki_probes": Later(False, False)}},
    "the precision": lambda folder, models: {"precision": "bf16"},
    "the model": lambda folder, models: {"model": changed_model(folder, models)},
    "the rows, or their order": lambda folder, models: {"data": changed_data(folder)},
}


@pytest.mark.parametrize("case", OTHERS)
def test_another_run_has_another_file(case: str, run: Run, models: dict[str, Path], tmp_path: Path) -> None:
    [first], [other] = run(), run(**OTHERS[case](tmp_path, models))
    assert first.path != other.path
    assert len(read_results(tmp_path / "results")) == 2


def test_a_split_without_rows_counts_for_nothing(run: Run) -> None:
    """A local month has such splits, its published copy does not."""
    changed = Dataset.from_list(rows(CHANGED))
    [local] = run(rows={"probes-1112": DatasetDict(changed=changed, unchanged=changed.select([]))})
    [hub] = run(rows={"probes-1112": DatasetDict(changed=changed)})
    assert local.path == hub.path
    assert local.data["data"]["rows"] == {"changed": 4}


def test_a_stored_result_names_the_dataset_of_the_hub_when_that_is_known(run: Run, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    add_month(first, "20211101", "20211201", [])
    shutil.copytree(first, second)
    [manifest] = read_manifests(first)
    local = {"config": "probes-20211101-20211201", "manifest_sha256": manifest.sha256}
    on_hub = local | {"repository": "ORG/monthly", "commit": "c" * 40, "tag": "2021.12"}

    def named(data: Path) -> tuple[str, dict[str, str]]:
        [result] = run(data=str(data))
        return result.data["data"]["dataset"], result.data["data"]["source"]

    assert named(first) == (str(first), local)
    assert named(second) == (str(second), local)  # the folder has moved
    record_published(first, "ORG/monthly", [checked(manifest.content | {"tag": "2021.12"}, "")], lambda _: "c" * 40)
    assert named(first) == ("ORG/monthly@2021.12", on_hub)
    assert named(second) == ("ORG/monthly@2021.12", on_hub)  # an unpublished copy of the same month
    assert len(read_results(tmp_path / "results")) == 1


def test_a_limit_takes_the_first_rows(run: Run, month: Path) -> None:
    """The limit applies to scored splits, not to the facts for light-tuning."""
    [result] = run(limit=2, tasks={"twiki_probes": TwikiProbes(answers=False)})
    assert result.data["data"]["rows"] == {"unchanged": 2, "changed": 2, "light-tuning/unchanged": 9}
    first = ["Q-Anna Weber", "Q-Norland"]
    assert [item["cluster"] for item in result.items()][:4] == [*first, *first[::-1]]
    [all_of_it] = run(limit=10**9)
    assert all_of_it.data["data"]["rows"] == {"unchanged": 5, "changed": 4}


def test_in_four_months_only_what_is_new_is_asked(run: Run, tmp_path: Path, monkeypatch: Patch) -> None:
    """Each month shares three facts with the previous month and has two new ones."""
    facts = [(f"Town {i}", "is in", f"Norland {i}") for i in range(13)]
    months = {f"probes-{n:02}{n + 1:02}": {"changed": rows(facts[2 * n : 2 * n + 5])} for n in range(1, 5)}
    data = str(write_dataset(tmp_path / "months", months))
    new: list[int] = []
    for name in ("add_scores", "add_answers"):
        count_kept(monkeypatch, name, new)
    tasks = {"twiki_probes": TwikiProbes(light_tuning=False)}
    asked = []
    for config in months:
        new.clear()
        run(tasks=tasks, data=data, configs=(config,))
        asked.append(sum(new))
    assert asked == [2 * 5, 2 * 2, 2 * 2, 2 * 2]
    new.clear()
    assert len(run(tasks=tasks, data=data, output=tmp_path / "again")) == 4
    assert new == []
    assert content(tmp_path / "again") == content(tmp_path / "results")


# The same inputs give the same results


def kill_at(patch: Patch, owner: Any, name: str, call: int = 1) -> None:
    calls, method = [], getattr(owner, name)

    def killed(*args: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) == call:
            raise Killed
        return method(*args, **named)

    patch.setattr(owner, name, killed)


POINTS: dict[str, tuple[Any, str, int]] = {
    "before anything": (ScoreCache, "__init__", 1),
    "in the likelihoods": (ScoreCache, "add_scores", 2),
    "in the answers": (ScoreCache, "add_answers", 1),
    "in light-tuning": (trainer.Display, "on_step_end", 1),
    "in what the light-tuned model says": (ScoreCache, "add_scores", 2),
    "before the result is written": (runner, "write_result", 1),
}


def test_a_run_that_was_killed_goes_on_to_the_same_bytes(run: Run, tmp_path: Path) -> None:
    """Interrupted again and again, each time a little later, it ends with the results of an uninterrupted run."""
    run(tasks=WHOLE)
    for owner, name, call in POINTS.values():
        with Patch.context() as patch, pytest.raises(Killed):
            kill_at(patch, owner, name, call)
            run(tasks=WHOLE, store="other", output=tmp_path / "again")
        assert not list((tmp_path / "again").rglob("*.json"))
    new: list[int] = []
    with Patch.context() as patch:
        for name in ("add_scores", "add_answers"):
            count_kept(patch, name, new)
        run(tasks=WHOLE, store="other", output=tmp_path / "again")
    assert content(tmp_path / "again") == content(tmp_path / "results")
    assert new == []
    assert not list((tmp_path / "other" / "light-tuned").iterdir())


# In a fork, evaluate and be killed after the second batch; then evaluate to the end.
PROGRAM = """
import json, os, signal, sys, warnings
import torch
torch.set_num_threads(1)
from temporalwiki.commands import main
from temporalwiki.eval_harness import scoring
from temporalwiki.eval_harness.models.cache import ScoreCache

scoring._BATCH = 64
asked = []
keep = ScoreCache.add_scores

def count(self, scored):
    scored = list(scored)
    if os.getpid() != first and len(asked) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    asked.append(len(scored))
    keep(self, scored)

ScoreCache.add_scores = count
first = os.getpid()
if os.fork() == 0:
    main(sys.argv[1:])
    os._exit(0)
print(os.wait()[1], flush=True)
assert main(sys.argv[1:]) == 0
print(asked)
"""


def words(model: Path, data: Path, output: Path) -> list[str]:
    given = ("--model", model, "--data", data, "--tasks", "twiki_probes", "--output", output)
    return ["evaluate", *map(str, given)]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = {"HF_HOME": str(tmp_path_factory.mktemp("home")), "HF_HUB_OFFLINE": "1"}
    return {**os.environ, **home, "PYTHONHASHSEED": "1", "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}


@pytest.mark.slow
@pytest.mark.fault(
    "kill -9", "evaluate: after some texts are scored", "a rerun scores only the others and writes the same bytes"
)
def test_another_process_with_another_hash_seed_killed_in_the_middle(
    models: dict[str, Path], month: Path, environment: dict[str, str], tmp_path: Path, monkeypatch: Patch
) -> None:
    """After SIGKILL, cached scores are not computed again."""
    monkeypatch.setattr("temporalwiki.eval_harness.scoring._BATCH", 64)
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py"), *words(models["gpt2"], month, tmp_path / "there")],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    killed, asked = (json.loads(line) for line in done.stdout.splitlines() if line[0] in "[0123456789")
    assert killed == signal.SIGKILL
    batches: list[int] = []
    count_kept(monkeypatch, "add_scores", batches)
    monkeypatch.setattr("temporalwiki.eval_harness.models.cache.cache_folder", lambda: tmp_path / "scores")
    assert main(words(models["gpt2"], month, tmp_path / "here")) == 0
    assert content(tmp_path / "there") == content(tmp_path / "here")
    assert asked == batches[2:]


# Two processes

# several commands in one process, because starting takes long
COMMANDS = """
import json, sys
import torch
torch.set_num_threads(1)
from temporalwiki.commands import main
for words in json.load(open(sys.argv[1])):
    assert main(words) == 0
"""


@pytest.fixture(scope="module")
def in_two(
    models: dict[str, Path], month: Path, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Results of two processes, shared by the processes of a parallel run of these tests."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "evaluated-in-two"
    folder.mkdir(exist_ok=True)
    with FileLock(folder / "lock"):
        if not (folder / "output").exists():
            (folder / "program.py").write_text(COMMANDS)
            commands = [words(models[kind], month, folder / kind) for kind in models]
            (folder / "commands.json").write_text(json.dumps(commands))
            launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
            done = subprocess.run(
                [sys.executable, *launch, str(folder / "program.py"), str(folder / "commands.json")],
                env=environment, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            (folder / "output").write_text(done.stdout)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gpt2", "t5"])
def test_two_processes_find_what_one_does(kind: str, in_two: Path, run: Run, models: dict[str, Path]) -> None:
    [one], [two] = run(tasks=WHOLE, model=str(models[kind])), read_results(in_two / kind)
    assert two.data["run"]["processes"] == 2
    assert two.data["scores"].keys() == one.data["scores"].keys()
    for name, estimate in one.data["scores"].items():
        # Two processes add gradients in another order, so their tuned weights differ. A score of these few facts moves
        # by 1e-5 and an end of its interval by 1.6e-3: the facts' spread, far smaller than their NLLs, moves as much,
        # and the quantile of so few relations multiplies it.
        found, light = two.data["scores"][name], "light" in name
        for part in estimate.keys() | found.keys():
            rel = (5e-3 if part in {"low", "high"} else 1e-4) if light else 1e-5
            assert found[part] == pytest.approx(estimate[part], rel=rel), (name, part)
    assert two.data["excluded"] == one.data["excluded"]
    for there, here in zip(two.items(), one.items(), strict=True):
        assert there.keys() == here.keys()
        assert there["nll"] == pytest.approx(here["nll"], rel=1e-4)
        assert all(there[name] == here[name] for name in here if "nll" not in name)


@pytest.mark.slow
def test_the_first_process_speaks_for_all(in_two: Path) -> None:
    out = (in_two / "output").read_text("utf-8")
    assert out.count("twiki_probes of ") == 2
    assert out.count(".json\n") == 2


# Input


@dataclass(frozen=True)
class Count(Task):
    """A task that counts rows."""

    configs: ClassVar[tuple[str, ...]] = ("probes-", "news")

    @property
    def max_rows(self) -> int:
        return 5

    def run(self, model: CachedModel, given: Rows) -> Outcome:
        items = [{"id": str(i), "cluster": str(i), "acc": 1} for of in given.values() for i, _ in enumerate(of)]
        return Outcome(scores({"all": [items]}, ["acc"]), items, {"seen": len(items)})


def test_each_month_is_scored_once_by_its_short_name(run: Run, tmp_path: Path) -> None:
    """Each interval has two names, and one of them is read; so is a config without a short name."""
    split = {"changed": rows(CHANGED)}
    names = ("probes-1112", "probes-20211101-20211201", "probes-1201", "probes-20211201-20220101", "lighttuning-1112")
    data = str(write_dataset(tmp_path / "data", dict.fromkeys(names, split)))
    tasks = {**QUICK, "count": Count()}
    found = [(result.data["task"]["name"], result.data["data"]["config"]) for result in run(data=data, tasks=tasks)]
    assert found == [(task, f"probes-{month}") for task in tasks for month in ("1112", "1201")]
    [result] = run(data=data, configs=("probes-20211101-20211201",))
    assert result.data["data"]["config"] == "probes-20211101-20211201"
    assert len(run(data=data, configs=("probes-1201", "probes-1112"))) == 2
    long = str(write_dataset(tmp_path / "long", {name: split for name in names if len(name) > 20}))
    assert len(run(data=long)) == 2
    others = str(
        write_dataset(tmp_path / "others", dict.fromkeys(("probes-1112", "probes-easy", "probes-all"), split))
    )
    assert len(run(data=others)) == 3


def test_a_month_in_which_nothing_can_be_scored_does_not_stop_the_others(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nobody = [{"subject": "a", "relation": "b", "object": ""}]
    months = {"probes-1011": rows(CHANGED), "probes-1112": nobody, "probes-1201": rows(CHANGED)}
    data = str(write_dataset(tmp_path / "data", {name: {"changed": of} for name, of in months.items()}))
    assert [result.data["data"]["config"] for result in run(data=data)] == ["probes-1011", "probes-1201"]
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("left out: ")]
    assert len(said) == 1 and "probes-1112: twiki_probes could score nothing" in said[0]


def test_of_many_rows_the_same_are_drawn_and_then_limited(run: Run, tmp_path: Path) -> None:
    many = [{"text": str(i), "when": datetime(2021, 11, 1 + i, tzinfo=UTC), "raw": b"\xff"} for i in range(20)]
    data = str(write_dataset(tmp_path / "data", {"news": {"train": many, "test": many[:3]}}))
    tasks = {"count": Count()}
    [drawn], [again] = run(tasks=tasks, data=data), run(tasks=tasks, data=data, output=tmp_path / "again")
    assert drawn.data["data"] == again.data["data"]
    assert drawn.data["data"]["rows"] == {"train": 5, "test": 3}
    [limited] = run(tasks=tasks, data=data, limit=2)
    assert limited.data["data"]["rows"] == {"train": 2, "test": 2}
    assert limited.path != drawn.path


def write_csv(folder: Path, columns: str = "subject,relation,object") -> str:
    """Write probes in their released form: three columns, one file per split, and a card."""
    folder.mkdir()
    for split, facts in (("unchanged", UNCHANGED), ("changed", CHANGED)):
        lines = [",".join(f'"{part}"' for part in fact) for fact in facts]
        (folder / f"{split}.csv").write_text("\n".join([columns, *lines]), "utf-8")
    files = "".join(f"  - split: {split}\n    path: {split}.csv\n" for split in ("unchanged", "changed"))
    (folder / "README.md").write_text(f"---\nconfigs:\n- config_name: probes-0809\n  data_files:\n{files}---\n")
    return str(folder)


def test_probes_as_they_were_released(run: Run, tmp_path: Path) -> None:
    [result], [expected] = run(data=write_csv(tmp_path / "csv"), tasks=WHOLE), run()
    assert result.data["data"]["rows"] == {"unchanged": 5, "changed": 4}
    assert result.data["excluded"] == {"light-tuned: no facts to light-tune on": 9}
    for name, estimate in expected.data["scores"].items():
        assert result.data["scores"][name] == estimate, name


# Errors

PLAIN = [{"subject": "a", "relation": "b", "object": "c"}]
WRONG: dict[str, tuple[dict[str, Any], type[InputError], str]] = {
    "no config that a task reads": (
        {"news": {"train": PLAIN}},
        UsageError,
        r"twiki_probes reads probes-\*, and none of news",
    ),
    "other splits": ({"probes-1112": {"train": PLAIN}}, InputError, "no rows in unchanged, changed.*splits are train"),
    "another name of a column": (
        {"probes-1112": {"changed": [{"subject": "a", "relations": "b", "object": "c"}]}},
        InputError,
        r"probes-1112, changed: no column 'relation' \(did you mean relations\?\); there are subject, relations, obj",
    ),
    "a column of numbers": (
        {"probes-1112": {"changed": [{"subject": "a", "relation": "b", "object": 1961}]}},
        InputError,
        "object is 1961; a column of text is needed",
    ),
    "empty labels alone": (
        {"probes-1112": {"changed": [{"subject": "a", "relation": "b", "object": ""}]}},
        InputError,
        r"twiki_probes could score nothing \(1 changed: no object\)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_scored_is_one_line(case: str, run: Run, tmp_path: Path) -> None:
    configs, error, said = WRONG[case]
    with pytest.raises(error, match=said) as raised:
        run(data=str(write_dataset(tmp_path / "data", configs)))
    assert "\n" not in str(raised.value)
    assert isinstance(raised.value, UsageError) is (error is UsageError)
    assert not [path for path in (tmp_path / "results").rglob("*") if path.is_file()]


@pytest.mark.parametrize("task", [TwikiProbes(answers=False, light_tuning=False), Deleted(), MultipleChoice()])
def test_every_task_of_facts_counts_what_is_no_fact(task: Task, run: Run, tmp_path: Path) -> None:
    facts = [{**row, "kind": "replaced", "previous_objects": ["Weston"]} for row in rows(CHANGED)]
    facts += [{**facts[0], "object": None}, {**facts[0], "relation": " "}, facts[1]]
    data = str(write_dataset(tmp_path / "data", {"probes-1112": {"changed": facts, "deleted": facts}}))
    [result] = run(data=data, tasks={"task": task})
    split = "deleted" if isinstance(task, Deleted) else "changed"
    assert result.data["excluded"] == {
        f"{split}: no object": 1,
        f"{split}: no relation": 1,
        f"{split}: the same fact as another": 1,
    }
    ids = [item["id"] for item in result.items()]
    assert len(ids) == len(set(ids)) == 4


def test_configs_that_nobody_reads(run: Run) -> None:
    with pytest.raises(UsageError, match=r"no config 'probes-1113' \(did you mean probes-1112\?\)"):
        run(configs=("probes-1113",))
    with pytest.raises(UsageError, match=r"twiki_probes reads probes-\*, and none of lighttuning-1112"):
        run(configs=("lighttuning-1112",))
    with pytest.raises(UsageError, match="--config lighttuning-1112: none of the tasks twiki_probes reads it"):
        run(configs=("probes-1112", "lighttuning-1112"))


def test_an_output_that_cannot_be_written_is_known_before_the_work(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with forward_passes() as passes, pytest.raises(OSError, match="file"):
        run(output=tmp_path / "file" / "results")
    assert passes == []
