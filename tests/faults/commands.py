"""Every command that writes files, on small inputs, and how two results of it are compared."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dump_forms import write_page_props

from temporalwiki.builders.world import World, write_world

import tiny_models
import tiny_probes
from faults.struck import Ended, Struck
from file_server import FileServer, served

DATES = ("20211101", "20211201", "20220101")
# Several may write to one folder, so they leave the unfinished files of killed ones.
AT_ONCE = ("evaluate",)
CACHES = {"work", ".home"}  # folders that the next run reuses
# names in JSON that differ between two runs with the same result
OF_THE_RUN = {"run", "seconds", "began", "speed", "tokens_per_second", "model_tflops_per_second"}


@dataclass(frozen=True)
class Command:
    """A command: its arguments, its results, and the commands that run before it."""

    words: Callable[[Path], list[object]]  # of the folder of all inputs
    final: tuple[str, ...]  # patterns of its results, in the folder where it runs
    before: tuple[str, ...] = ()  # names of commands that were run there before


def _build(*dates: str, jobs: int = 1, out: str = "temporalwiki") -> Callable[[Path], list[object]]:
    more = ("--include", "wikipedia,deletions", "--unchanged-fraction", 1, "--jobs", jobs, "--out", out)
    return lambda there: ["build", *dates, "--dumps", there / "dumps", "--work", "work", *more]


FOLDER = ("temporalwiki/**/*",)
SMALL = ("--batch-size", 4, "--micro-batch-size", 2, "--sequence-length", 32, "--save-steps", 1, "--max-steps", 3)
COMMANDS: dict[str, Command] = {
    "build": Command(_build(*DATES[:2]), FOLDER),
    "build in two processes": Command(_build(*DATES[:2], jobs=2), FOLDER),
    "build of the next month": Command(_build(*DATES[1:]), FOLDER, before=("build",)),
    "fetch": Command(
        lambda there: ["fetch", *DATES[:2], "--dumps", "dumps", "--mirror", (there / "mirror").read_text()],
        ("dumps/*wiki/**/*",),
    ),
    "ckl": Command(lambda _: ["ckl", "updatedlama", "--probes", "temporalwiki"], ("ckl/**/*",), before=("build",)),
    "import": Command(lambda there: ["import", there / "archive"], FOLDER),
    "train": Command(
        lambda there: [
            *("train", "--method", "diff", "--model", there / "model", "--data", there / "text", *SMALL),
            *("--config", "diffset-0910", "--output", "trained"),
        ],
        ("trained/*",),
    ),
    "evaluate": Command(
        lambda there: [
            *("evaluate", "--model", there / "model", "--data", there / "month", "--tasks", "twiki_probes"),
            *("--config", "probes-1112", "--output", "results"),
        ],
        ("results/**/*",),
    ),
    "experiment": Command(
        lambda there: ["experiment", there / "experiment.yaml"],
        ("out/results/**/*", "out/models/*/*.safetensors", "out/leaderboard/results.parquet"),
    ),
    "leaderboard": Command(
        lambda _: ["leaderboard", "results", "--out", "leaderboard"],
        ("leaderboard/**/*",),
        before=("evaluate",),
    ),
}


@contextmanager
def inputs(folder: Path) -> Iterator[Path]:
    """Write the inputs of all commands. The file ``mirror`` has the address of a server of dumps."""
    folder.mkdir(parents=True, exist_ok=True)
    snapshots = write_world(folder / "dumps", World(people=30, dates=DATES, wikidata_dates=DATES))
    write_page_props(folder / "dumps", snapshots)
    (folder / "archive").mkdir()
    (folder / "archive" / "wikipedia_0809_gpt2.csv").write_text("text\n" + "some words and more\n" * 5_000)
    for split in ("changed", "unchanged"):
        facts = "subject,relation,object\n" + f"Ann,lives in,{split}\n" * 500
        (folder / "archive" / f"0801-0901_{split}.csv").write_text(facts)
    tiny_models.save("gpt2", folder / "model")
    tiny_probes.write_month(folder / "month")
    articles = [{"id": i, "title": f"Page {i}", "text": "Anna Weber lives in Easton. " * 9} for i in range(6)]
    probes = {"unchanged": tiny_probes.rows(tiny_probes.UNCHANGED), "changed": tiny_probes.rows(tiny_probes.CHANGED)}
    tiny_probes.write_dataset(folder / "text", {"diffset-0910": {"train": articles}, "probes-0910": probes})
    experiment = {
        "data": str(folder / "text"),
        "months": ["0910"],
        "methods": {"initial": None, "diff": None},
        "tasks": {"twiki_probes": {"answers": False, "light_tuning": False}},
        "output": "out",
    }
    training = {"batch_size": 2, "micro_batch_size": 2, "sequence_length": 16, "max_steps": 2, "save_steps": 1}
    recipe = {"model": str(folder / "model"), "precision": "fp32", **training, "experiment": experiment}
    (folder / "experiment.yaml").write_text(json.dumps(recipe))
    with FileServer(served(folder / "dumps")) as server:
        (folder / "mirror").write_text(server.url)
        yield folder


class Bench:
    """Runs commands, each in a folder of its own, and compares their results."""

    def __init__(self, struck: Struck, there: Path, folder: Path) -> None:
        self.struck, self.there, self.folder = struck, there, folder
        self._whole: dict[str, tuple[dict[str, Any], Ended]] = {}

    def prepare(self, name: str, folder: Path) -> None:
        """Make a command's folder, with the results of the commands that run before it."""
        folder.mkdir(parents=True, exist_ok=True)
        for earlier in COMMANDS[name].before:
            self.undisturbed(earlier)
            shutil.copytree(self.folder / "whole" / earlier, folder, dirs_exist_ok=True)

    def run(self, name: str, folder: Path, **options: Any) -> Ended:
        return self.struck.run(COMMANDS[name].words(self.there), folder, **options)

    def start(self, name: str, folder: Path, **options: Any) -> int:
        return self.struck.start(COMMANDS[name].words(self.there), folder, **options)

    def undisturbed(self, name: str) -> tuple[dict[str, Any], Ended]:
        """Return the results of an undisturbed run, and how it ended."""
        if name not in self._whole:
            folder = self.folder / "whole" / name
            self.prepare(name, folder)
            ended = self.run(name, folder)
            assert ended.status == 0, ended.err
            self._whole[name] = self.contents(name, folder), ended
            assert self._whole[name][0]
        return self._whole[name]

    def contents(self, name: str, folder: Path) -> dict[str, Any]:
        """Return the results by path; JSON without the parts that differ between runs."""
        found = {}
        for pattern in COMMANDS[name].final:
            for path in sorted(folder.glob(pattern)):
                parts = path.relative_to(folder).parts
                if path.is_file() and not any(part.startswith(".") for part in parts):
                    data = path.read_bytes()
                    found["/".join(parts)] = _lasting(json.loads(data)) if path.suffix == ".json" else data
        return found

    def check_whole(
        self, name: str, folder: Path, before: Mapping[str, Any], why: str, but: tuple[str, ...] = ()
    ) -> None:
        """Fail unless every result is as before the run or as after an undisturbed one.

        Paths that begin with one of ``but`` are left out.
        """
        wanted, _ = self.undisturbed(name)
        for path, data in self.contents(name, folder).items():
            if path != "trained/run.json" and not path.startswith(but):  # describes a run that has not ended
                assert data in (before.get(path), wanted.get(path)), f"{why}: {path}"

    def check_same(self, name: str, folder: Path, why: str) -> None:
        """Run to the end, and fail unless the results are those of an undisturbed run."""
        ended = self.run(name, folder)
        assert ended.status == 0, f"{why}: {ended.err}"
        found, (wanted, _) = self.contents(name, folder), self.undisturbed(name)
        assert found.keys() == wanted.keys(), why
        assert [path for path in wanted if found[path] != wanted[path]] == [], why
        if name not in AT_ONCE:
            assert [path for path in folder.rglob(".*.part") if CACHES.isdisjoint(path.parts)] == [], why


def _lasting(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _lasting(value) for name, value in data.items() if name not in OF_THE_RUN}
    return [_lasting(value) for value in data] if isinstance(data, list) else data
