"""Files that earlier runs have hashed are not read again."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.base.json_files import write_json
from temporalwiki.builders import checksums
from temporalwiki.builders.stages import run_stage


def test_reports_are_known_by_file_size_and_time(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a", "b")]
    for file in files:
        file.write_text(file.name)
    work = tmp_path / "work"
    assert checksums.known(work, []) == {}
    a, b = checksums.plan(files)
    for number, task in enumerate((a, b)):  # two builds
        run_stage("checksums", checksums.run, [task], work / str(number))
    found = checksums.known(work, [])
    assert {task: report["sha1"] for task, report in found.items()} == {
        task: hashlib.sha1(name, usedforsecurity=False).hexdigest() for task, name in ((a, b"a"), (b, b"b"))
    }
    assert found[a]["run"]["began"] <= found[b]["run"]["began"]
    files[0].write_text("c")  # as long as before
    os.utime(files[0], ns=(0, a.modified + 1))
    again, same = checksums.plan(files)
    assert again not in found
    assert same in found
    time = files[1].stat()
    files[1].write_text("d")
    os.utime(files[1], ns=(time.st_atime_ns, time.st_mtime_ns))  # as `cp -p` and `touch -r` do
    assert checksums.plan(files)[1] not in found


@pytest.mark.parametrize(
    "spoil",
    [
        lambda report: {"sha1": report["sha1"], "run": report["run"]},  # an older version's
        lambda report: {key: value for key, value in report.items() if key != "changed"},
        lambda report: {**report, "sha1": None},
        lambda report: {key: value for key, value in report.items() if key != "run"},
        lambda report: [report],
        lambda report: None,
    ],
)
def test_reports_of_another_form_are_ignored(tmp_path: Path, spoil: Callable[[Any], Any]) -> None:
    (tmp_path / "a").write_text("a")
    run_stage("checksums", checksums.run, checksums.plan([tmp_path / "a"]), tmp_path / "work" / "x")
    assert len(checksums.known(tmp_path / "work", [])) == 1
    file = tmp_path / "work" / "x" / "reports" / "00000.json"
    write_json(file, spoil(json.loads(file.read_text())))
    assert checksums.known(tmp_path / "work", []) == {}
    for text in ("{", "[" * 100_000):
        file.write_text(text)
        assert checksums.known(tmp_path / "work", []) == {}


def right(file: Path) -> list[Any]:
    return [*checksums.state(file), hashlib.sha1(file.read_bytes(), usedforsecurity=False).hexdigest()]


# the notes in the folder of dumps -> whether the file is known
NOTES: dict[str, tuple[Callable[[Path], Any], bool]] = {
    "as it was noted": (lambda file: {"a": right(file)}, True),
    "one note of several": (lambda file: {"b": None, "a": right(file), "c": 1}, True),
    "nothing": (lambda _: {}, False),
    "of another file": (lambda file: {"b": right(file)}, False),
    "before it changed": (lambda file: {"a": [right(file)[0] - 1, *right(file)[1:]]}, False),
    "before it was written again": (lambda file: {"a": [right(file)[0], 1, *right(file)[2:]]}, False),
    "before it was copied, times and all": (lambda file: {"a": [*right(file)[:2], 1, right(file)[3]]}, False),
    "an older version's": (lambda file: {"a": [*right(file)[:2], right(file)[3]]}, False),
    "no checksum": (lambda file: {"a": [*checksums.state(file), "0" * 41]}, False),
    "no text": (lambda file: {"a": [*checksums.state(file), 1]}, False),
    "no list": (lambda file: {"a": {"0": right(file)}}, False),
    "no names": (lambda file: [right(file)], False),
}


@pytest.mark.parametrize(("noted", "is_known"), NOTES.values(), ids=NOTES)
def test_a_file_that_fetch_noted_is_known_while_it_is_unchanged(noted: Any, is_known: bool, tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("a")
    (tmp_path / ".fetched.json").write_text(json.dumps(noted(file)))
    [task] = checksums.plan([file])
    found = checksums.known(tmp_path / "work", [task])
    assert list(found) == [task] * is_known
    for report in found.values():
        again = checksums.run(task, tmp_path)
        assert {name: report[name] for name in again} == json.loads(json.dumps(again)) | {"algorithms": ("sha1",)}
        assert report["run"]["kept"]
    (tmp_path / ".fetched.json").write_text("{")
    assert checksums.known(tmp_path / "work", [task]) == {}


def test_a_note_of_one_checksum_is_not_enough_if_a_list_has_another(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("a")
    *before, sha1 = right(file)
    checksums.note(file, before, sha1)
    assert len(checksums.known(tmp_path / "work", checksums.plan([file]))) == 1
    (tmp_path / "SHA256SUMS").write_text(f"{hashlib.sha256(b'a').hexdigest()}  a\n")
    assert checksums.known(tmp_path / "work", checksums.plan([file])) == {}


LISTS = {  # a list next to the file -> the algorithms that are computed, and the error
    "enwiki-20211101-sha1sums.txt": (("sha1",), "sha1 enwiki-20211101-sha1sums.txt"),
    "SHA256SUMS": (("sha1", "sha256"), "sha256 SHA256SUMS"),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_file_must_have_the_checksum_in_a_list(tmp_path: Path, name: str) -> None:
    algorithms, said = LISTS[name]
    path = tmp_path / "a.xml.bz2"
    path.write_bytes(b"a")
    good = hashlib.new(algorithms[-1], b"a").hexdigest()
    for sum, right in ((good.upper(), True), ("0" * len(good), False)):
        (tmp_path / name).write_text(f"{'1' * len(good)}  b.xml.bz2\n{sum} *a.xml.bz2\n")
        [task] = checksums.plan([path])
        assert task.algorithms == algorithms
        report = checksums.run(task, tmp_path)
        path.write_bytes(b"not read again")
        if right:
            checksums.compare(path, report)
        else:
            with pytest.raises(InputError, match=f"not the file whose {said} has"):
                checksums.compare(path, report)
        path.write_bytes(b"a")
