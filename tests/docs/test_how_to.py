"""The guides docs/how_to/add_*.md, followed to the letter in a copy of the code.

A block of Python that begins with a path is a file, a block of differences is applied, and then all commands and other
blocks run, in order.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("evaluate", reason="evaluate, which the guides' commands need, is not installed")
pytest.importorskip("peft", reason="peft, which the guides' commands need, is not installed")
pytest.importorskip("spacy", reason="spacy, which the guides' commands need, is not installed")

from temporalwiki.builders.world import World, write_world

import tiny_models
from a_dataset import write_dataset
from docs_shell import Shell
from documents import ROOT, Typed, documents, typed
from tiny_probes import CHANGED, LIGHT_TUNING, UNCHANGED, rows

pytestmark = pytest.mark.slow

PACKAGES = ("api", "base", "builders", "commands", "eval_harness", "methods", "model_cards", "push_scripts", "src")
GUIDES = [file for file in documents() if file.startswith("docs/how_to/add_")]
FILE = re.compile(r"# ([\w/]+\.py)\n")


def steps(guide: str) -> list[Typed]:
    """Return the commands and Python of a guide, except blocks that create files."""
    found = [one for one in typed(guide) if one.language in ("shell", "python")]
    return [one for one in found if not FILE.match(one.text) and not one.text.startswith("ln ")]


def change(copy: Path, guide: str) -> None:
    """Write the guide's files and apply its differences."""
    for one in typed(guide):
        if one.language == "python" and (path := FILE.match(one.text)):
            file = copy / path[1]
            file.parent.mkdir(exist_ok=True)
            file.write_text(one.text.partition("\n")[2] + "\n", "utf-8")
        elif one.language == "diff":
            text = f"{one.text}\n"
            done = subprocess.run(["git", "apply", "-p0", "-"], cwd=copy, input=text, text=True, capture_output=True)
            assert done.returncode == 0, f"{one.place}: {done.stderr}"
        elif one.text.startswith("ln "):
            _, _, target, link = one.text.split()
            (copy / link).symlink_to(target)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    copy = tmp_path_factory.mktemp("guides")
    for package in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / package, copy / package, symlinks=True, ignore=ignored)
    for guide in GUIDES:
        change(copy, guide)
    tiny_models.save("gpt2", copy / "BASE")
    articles = [{"id": i, "title": f"Page {i}", "text": "Anna Weber lives in Easton. " * 9} for i in range(6)]
    probes = {"unchanged": rows(UNCHANGED), "changed": rows(CHANGED)}
    months = {"diffset-1112": {"train": articles}, "probes-1112": probes}
    write_dataset(copy / "temporalwiki", {**months, "lighttuning-1112": {"unchanged": rows(LIGHT_TUNING)}})
    write_world(copy / "DUMPS", World(wiki="eowiki", people=30))
    environment = {"PYTHONPATH": str(copy / "src"), "OMP_NUM_THREADS": "1", "HF_HOME": str(copy / "home")}
    with Shell(copy, os.environ | environment) as shell:
        yield shell


@pytest.mark.parametrize("step", [one for guide in GUIDES for one in steps(guide)], ids=lambda one: one.place)
def test_each_step_works_as_it_is_written(step: Typed, shell: Shell) -> None:
    shell.type(step)


def test_the_method_trains_what_it_says(shell: Shell) -> None:
    run = json.loads((shell.folder / "runs" / "upper_layers-diffset-1112" / "training.json").read_text())
    whole = tiny_models.model("gpt2", len(tiny_models.tokenizer("gpt2")))
    [one] = [sum(p.numel() for p in layer.parameters()) for layer in whole.transformer.h[-1:]]
    assert run["parameters"]["trainable"] == one  # a quarter of four layers


def test_the_measure_is_in_the_result_with_its_interval(shell: Shell) -> None:
    [result] = (shell.folder / "results").rglob("*.json")
    score = json.loads(result.read_text())["scores"]["changed/first_word"]
    assert 0 <= score["low"] <= score["value"] <= score["high"] <= 100


def test_the_wiki_of_the_language_is_built(shell: Shell) -> None:
    [manifest] = (shell.folder / "temporalwiki-eo" / "manifests").iterdir()
    assert json.loads(manifest.read_text())["interval"]["language"] == "eo"


def test_the_copy_is_what_ran(shell: Shell) -> None:
    status, said = shell.run(["python", "-c", "import temporalwiki; print(temporalwiki.__file__)"])
    assert (status, Path(said.strip()).parent) == (0, shell.folder / "src" / "temporalwiki")
