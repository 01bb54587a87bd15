"""``temporalwiki inspect`` of dataset folders and of Wikidata's dumps."""

import contextlib
import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.builders.archives import import_archives
from temporalwiki.builders.inspection import describe, describe_manifest
from temporalwiki.builders.manifests import checked
from temporalwiki.commands import main
from temporalwiki.model_cards.folder_card import folder_card

from a_ckl_config import add, config, invariantlama, live
from a_month import article, stage_month
from a_stop import Killed, Stop


def test_configs_counts_and_relations_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "ckl"
    splits = {"test": [live(1)], "validation": []}
    add(folder, invariantlama(), config("newlama-20211101-20211201", splits, short_name="newlama-1112"))
    assert main(["inspect", str(folder)]) == 0
    shown = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert f"{folder}: invariantlama of CKL, cc-by-nc-4.0" in lines
    assert "rows read 3 = kept 2 + dropped 1 object_in_subject" in lines
    assert "P19 3 2" in lines
    assert lines[-1] == "all files are as the manifests say"
    for start in (
        "newlama-20211101-20211201 newlama-1112 test 1 0.0",
        "newlama-20211101-20211201 newlama-1112 validation 0 0.0",
        "warning: newlama-20211101-20211201: no rows in the split validation",
    ):
        assert any(line.startswith(start) for line in lines)


def test_an_interval_that_was_imported_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for split, subjects in (("changed", "ab"), ("unchanged", "c")):
        rows = "".join(f"{subject},plays for,Roma\n" for subject in subjects)
        (tmp_path / f"0801-0901_{split}.csv").write_text(f"subject,relation,object\n{rows}", "utf-8")
    folder = tmp_path / "temporalwiki"
    list(import_archives([tmp_path], folder, folder_card))
    assert main(["inspect", str(folder)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == f"{folder}: enwiki 20210801 to 20210901, imported from an archive"
    assert "probes-20210801-20210901 changed read 2 = kept 2 + dropped 0" in lines
    assert "probes-20210801-20210901 unchanged read 1 = kept 1 + dropped 0" in lines
    assert lines[-1] == "all files are as the manifests say"


def test_data_without_a_manifest_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "ckl"
    add(folder, invariantlama(), config("newlama"))
    (folder / "manifests" / "newlama.json").unlink()
    assert main(["inspect", str(folder)]) == 1
    said = capsys.readouterr()
    assert said.err.strip().endswith(f"{folder}: data/newlama: no manifest describes it")
    assert "invariantlama of CKL" in said.out
    (folder / "manifests" / "invariantlama.json").unlink()
    assert main(["inspect", str(folder)]) == 1
    assert "no manifests in it, so it is no dataset folder; data/invariantlama: no" in capsys.readouterr().err


def test_a_folder_of_dumps_is_refused_with_what_to_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "enwiki" / "20211101").mkdir(parents=True)
    assert main(["inspect", str(tmp_path)]) == 1
    assert capsys.readouterr().err.endswith("so it is no dataset folder; name one, or a file of a dump\n")


def test_a_write_that_was_stopped_is_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "ckl"
    add(folder, config("newlama"), config("updatedlama"))
    for nth in itertools.count(1):
        with contextlib.suppress(Killed), Stop(nth):
            add(folder, config("newlama", {"test": [live(1), live(2)]}))
        if not (folder / "manifests" / "newlama.json").exists():
            break
    assert main(["inspect", str(folder)]) == 1
    err = capsys.readouterr().err
    assert "the last write was stopped before its end: run its command again" in err
    assert err.count("\n") == 1
    add(folder, config("kilt-fever"))
    assert main(["inspect", str(folder)]) == 0


def test_what_is_wrong_is_said_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "ckl"
    add(folder, invariantlama())
    data = folder / "data/invariantlama/test-00000-of-00001.parquet"
    data.write_bytes(b"PAR1")
    assert main(["inspect", str(folder)]) == 1
    assert "not the file that the manifest describes" in capsys.readouterr().err
    path = folder / "manifests" / "invariantlama.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"counts": {}}), "utf-8")
    assert main(["inspect", str(folder)]) == 1
    err = capsys.readouterr().err
    assert "manifests/invariantlama.json: not a manifest of temporalwiki" in err
    assert err.count("\n") == 1


Q1, Q2 = '{"type":"item","id":"Q1"}', '{"type":"item","id":"Q2"}'
WIKIDATA: dict[str, tuple[str, str, dict[str, str] | str]] = {  # a dump's text -> its description, or the error
    "closed on a line of its own": (f"[\n{Q1},\n{Q2}\n]\n", "complete", {"items": "2"}),
    "closed on the last line": (f"[\n{Q1},\n{Q2}]\n", "complete", {"items": "2"}),
    "all on one line": (f"[{Q1}]", "complete", {"items": "1"}),
    "never closed": (f"[\n{Q1},\n{Q2}\n", "no closing ] at its end", {"items": "2"}),
    "cut at the end": (f"[\n{Q1},\n{Q2[:9]}", "no closing ] at its end", {"dropped: cut_line": "1", "items": "1"}),
    "damaged before its last line": (f"[\n{Q1[:9]},\n{Q2},\n", "", "line at byte 2: not JSON"),
    "damaged in its last line": (f"[\n{Q1},\n{Q2[:9]}]\n", "", "line at byte 29: not JSON"),
    "cut in its only line": (f"[\n{Q1[:9]}", "", "line at byte 2: not JSON"),
    "no entity": ("[\n]\n", "", "JSON, but no Wikidata entities"),
}


@pytest.mark.parametrize("case", WIKIDATA)
def test_every_dump_of_wikidata_that_can_be_built_from_is_described(tmp_path: Path, case: str) -> None:
    text, state, told = WIKIDATA[case]
    path = tmp_path / "wikidata-20211101-all.json.gz"
    path.write_bytes(gzip.compress(text.encode()))
    if isinstance(told, str):
        with pytest.raises(InputError, match=told):
            describe(path)
        return
    first, _, *rows = describe(path).splitlines()
    assert first == f"{path}: Wikidata JSON, {state}"
    assert dict(row.rsplit(None, 1) for row in rows) == told | {"facts": "0"}


NOW = {"tasks": 40, "kept": 12, "began": 1e9, "seconds": 1234.5678, "cpu_seconds": 9876.54, "peak_memory_mb": 1024}
NOW |= {"mb": 20000.123, "mb_per_cpu_second": 2.0}
STAGES: dict[str, tuple[Any, list[str]]] = {  # run of a manifest -> rows of the table
    "all that there is": ({"stages": {"x": NOW}}, ["x 40 12 1,234.6 9,876.5 20,000.1 2.0 1,024"]),
    "no dumps read, no task kept": (
        {"stages": {"x": {**{key: NOW[key] for key in NOW if not key.startswith("mb")}, "kept": 0}}},
        ["x 40 1,234.6 9,876.5 1,024"],
    ),
    "in the order of running": (
        {"stages": {"a": NOW, "b": NOW | {"began": 1e8}}},
        ["b 40 12 1,234.6 9,876.5 20,000.1 2.0 1,024", "a 40 12 1,234.6 9,876.5 20,000.1 2.0 1,024"],
    ),
    "no rate": ({"stages": {"x": NOW | {"mb_per_cpu_second": None}}}, ["x 40 12 1,234.6 9,876.5 20,000.1 1,024"]),
    "of an older version": (
        {"jobs": 1, "stages": {"x": {"tasks": 1, "cpu_seconds": 0.5, "longest_task_seconds": 1, "peak_memory_mb": 9}}},
        ["x 1 0.5 9"],
    ),
    "from the Hub": (None, []),
    "without stages": ({"jobs": 7}, []),
}


@pytest.mark.parametrize(("ran", "expected"), STAGES.values(), ids=STAGES)
def test_what_a_build_took_is_shown(tmp_path: Path, ran: dict[str, Any] | None, expected: list[str]) -> None:
    manifest = stage_month(tmp_path / "staged", "20211101", "20211201", [article(1)], [])
    described = describe_manifest(tmp_path, checked(manifest | ({} if ran is None else {"run": ran}), "manifest"))
    head = "stage tasks kept wall s CPU s MB read MB/s of CPU peak MB"
    _, *found = "\n".join(" ".join(line.split()) for line in described.splitlines()).split(f"\n{head}\n")
    assert [rows.splitlines()[: len(expected)] for rows in found] == [expected] * bool(expected)
