"""`temporalwiki inspect ORG/NAME@TAG`: a published dataset against its manifests, with the real clients."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from temporalwiki.push_scripts.dataset import publish_dataset

from a_month import add_month, article, probe
from loopback_hub import LoopbackHub

REPO = "ORG/temporalwiki"
DIFFSET = "data/diffset-20211101-20211201/train-00000-of-00001.parquet"
STRAY = DIFFSET.replace("00000-of-00001", "00001-of-00002")
MANIFEST = "manifests/20211101-20211201.json"
INSPECT = """
import contextlib, io, json, sys
from temporalwiki.commands import main
found = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["inspect", *words])
    found.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(found))
"""
Inspect = Callable[..., list[tuple[int, str, str]]]


@pytest.fixture
def inspect(hub: LoopbackHub, tmp_path: Path) -> Inspect:
    """Run the command on each list of words, in one process; return status, stdout and stderr of each."""

    def inspect(*cases: list[str]) -> list[tuple[int, str, str]]:
        code = f"import sys; sys.argv[1:] = [{json.dumps(cases)!r}]\n{INSPECT}"
        return list(map(tuple, json.loads(hub.python(code, tmp_path / "home").stdout)))

    return inspect


def publish(tmp_path: Path, *months: tuple[str, str]) -> None:
    """Publish months; the first has one article, the second two."""
    for number, (prev, recent) in enumerate(months, 1):
        add_month(tmp_path / "temporalwiki", prev, recent, [article(number)] * number, [probe(1), probe(2)])
    list(publish_dataset(tmp_path / "temporalwiki", REPO, accept_jump=True))


def test_a_month_is_loaded_under_all_its_names(hub: LoopbackHub, tmp_path: Path, inspect: Inspect) -> None:
    publish(tmp_path, ("20211101", "20211201"), ("20221101", "20221201"))
    old, everything, as_json = inspect([f"{REPO}@2021.12"], [f"{REPO}@main"], [f"{REPO}@2022.12", "--json"])
    lines = [" ".join(line.split()) for line in old[1].splitlines()]
    assert (old[0], old[2]) == (0, "")
    assert lines[0].startswith(f"{REPO}@2021.12: enwiki 20211101 to 20211201")
    assert any(line.startswith("diffset-20211101-20211201 diffset-1112 train 1 ") for line in lines)
    assert lines[-1] == "all 8 names load with the rows and hashes of the manifests"
    # at main, each short name means the newer month
    assert everything[:1] == (0,)
    assert everything[1].splitlines()[-1] == "all 12 names load with the rows and hashes of the manifests"
    row = {"config": "diffset-20221101-20221201", "short_name": "diffset-1112", "split": "train", "rows": 2}
    assert row in json.loads(as_json[1])["rows"]


def test_of_other_months_the_listed_files_are_compared(hub: LoopbackHub, tmp_path: Path, inspect: Inspect) -> None:
    publish(tmp_path, ("20211001", "20211101"), ("20211101", "20211201"))
    [(status, out, _)] = inspect([f"{REPO}@2021.12"])
    assert status == 0
    assert out.splitlines()[-1] == (
        "all 8 names load with the rows and hashes of the manifests; the files of 1 other month are listed with theirs"
    )
    other = "data/diffset-20211001-20211101/train-00000-of-00001.parquet"
    hub.commit("dataset", REPO, {other: b"PAR1"})
    hub.repo("dataset", REPO).tags["2021.12"] = hub.repo("dataset", REPO).branches["main"]
    [(status, _, err)] = inspect([f"{REPO}@2021.12"])
    said = f"temporalwiki inspect: {REPO}@2021.12: {other}: not the file that the manifest describes\n"
    assert (status, err) == (1, said)


FAULTS = {
    "damaged": f"{DIFFSET}: not the file that the manifest describes\n",
    "cut": f"{DIFFSET}: not the file that the manifest describes\n",
    "gone": f"{DIFFSET}: missing\n",
    "stray": f"{STRAY}: no manifest lists it\n",
    "elsewhere": "diffset-1112: loads other files than the manifest lists\n",
    "unlisted": "diffset-1112: the card does not list it\n",
    "rows": "diffset-20211101-20211201: has {'train': 1} rows, but {'train': 3} in the manifest; ",
}


def test_each_fault_is_named(hub: LoopbackHub, tmp_path: Path, inspect: Inspect) -> None:
    publish(tmp_path, ("20211101", "20211201"))
    files = hub.repo("dataset", REPO).files()
    card, data, manifest = files["README.md"].decode(), files[DIFFSET], json.loads(files[MANIFEST])
    manifest["configs"]["diffset-20211101-20211201"]["splits"]["train"]["num_examples"] = 3
    alias = "- config_name: diffset-1112\n  data_files:\n  - {split: train, path: data/"
    for tag, changed in {
        "damaged": {DIFFSET: data.replace(b"Text.", b"Taxt.")},
        "cut": {DIFFSET: data[:-9]},
        "elsewhere": {"README.md": card.replace(f"{alias}diffset-", f"{alias}deletions-", 1).encode()},
        "unlisted": {"README.md": card.replace("config_name: diffset-1112", "config_name: x").encode()},
        "rows": {MANIFEST: json.dumps(manifest).encode()},
    }.items():
        assert all(files[path] != content for path, content in changed.items())
        hub.commit("dataset", REPO, {**files, **changed}, tag=tag)
    without = {path: content for path, content in files.items() if path != DIFFSET}
    hub.commit("dataset", REPO, without, remove=(DIFFSET,), tag="gone")
    hub.commit("dataset", REPO, {**files, STRAY: data}, tag="stray")
    del hub.repo("dataset", REPO).tags["2021.12"]
    found = inspect(*([f"{REPO}@{tag}"] for tag in FAULTS))
    for (status, out, err), (tag, fault) in zip(found, FAULTS.items(), strict=True):
        assert status == 1 and out.startswith(f"{REPO}@{tag}: enwiki 20211101 to 20211201")
        assert err.startswith(f"temporalwiki inspect: {REPO}@{tag}: {fault}") and len(err.splitlines()) == 1


def test_what_is_no_published_dataset_is_said_in_one_line(hub: LoopbackHub, inspect: Inspect) -> None:
    hub.commit("dataset", "ORG/other", {"README.md": b"# Other\n"}, tag="v1")
    cases = {
        "ORG/none@main": "datasets/ORG/none: the Hub has no such dataset, or you may not read it",
        "ORG/other@v1": "datasets/ORG/other: no manifests in it, so `temporalwiki publish` did not make it",
        "ORG/other@v2": "datasets/ORG/other: it has no branch or tag v2",
        f"ORG/other@{'0' * 40}": "datasets/ORG/other: ",
        "runs/none": "runs/none: no such file or folder",
    }
    for (status, out, err), said in zip(inspect(*([name] for name in cases)), cases.values(), strict=True):
        assert (status, out) == (1, "") and len(err.splitlines()) == 1
        assert err.startswith(f"temporalwiki inspect: {said}")
