"""What earlier runs have read need not be read again."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from temporalwiki.builders import checksums
from temporalwiki.builders.engine import run_stage, write_json


def test_reports_are_known_by_file_size_and_time(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a", "b")]
    for file in files:
        file.write_text(file.name)
    work = tmp_path / "work"
    assert checksums.known(work) == {}
    a, b = checksums.plan(files)
    for number, task in enumerate((a, b)):  # of two builds
        run_stage("checksums", checksums.run, [task], work / str(number))
    found = checksums.known(work)
    assert {task: report["sha1"] for task, report in found.items()} == {
        task: hashlib.sha1(name, usedforsecurity=False).hexdigest() for task, name in ((a, b"a"), (b, b"b"))
    }
    assert found[a]["run"]["began"] <= found[b]["run"]["began"]
    files[0].write_text("c")  # as long as before
    os.utime(files[0], ns=(0, a.modified + 1))
    again, same = checksums.plan(files)
    assert again not in found
    assert same in found


def test_reports_of_an_older_version_tell_nothing(tmp_path: Path) -> None:
    write_json(tmp_path / "work" / "x" / "reports" / "00000.json", {"sha1": "0" * 40, "run": {"seconds": 1}})
    assert checksums.known(tmp_path / "work") == {}
