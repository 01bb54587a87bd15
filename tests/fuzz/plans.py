"""The plans that a stopped command leaves: of an install (.ready/plan.json), of a stage and of an extract.

A folder may be a stranger's. Each plan is refused in one line, or done, or begun again; nothing outside its folder is
read, written or deleted.
"""

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import InputError
from temporalwiki.builders import dataset_folder, stages
from temporalwiki.builders.wikidata import unchanged_items

from fuzz.files import folder
from fuzz.json_text import mutate as mutate

_SUM = "0" * 16
_ROWS = hashlib.blake2b(b"rows", digest_size=8).hexdigest()  # who sees comparisons, as a fuzzer does, finds it
_STAGE = {"plan": "1a2b3c4d1a2b3c4d", "tasks": 1}
_RUN = {"seconds": 1.5, "cpu_seconds": 1.25, "peak_memory_mb": 90}
_REPORT = {"run": _RUN, "files": {"rows.0": _SUM}, "pages": {"new": 3}}
_FINISHED = {"base": "wikidata-20211101-enwiki-1a2b"}
_ALL: dict[str, Any] = {"ready": {"ends": ["diffset-20211101-20211201"]}, "has": ["diffset-20211201-20220101"]}
_ALL |= {"stage": _STAGE, "report": _REPORT, "finished": _FINISHED}
SEEDS = tuple(
    json.dumps(one).encode()
    for one in (
        _ALL,
        _ALL | {"ready": {"ends": ["../../../victim"]}},
        _ALL | {"ready": {"ends": []}, "has": []},
        _ALL | {"report": _REPORT | {"files": {"../../victim/kept.json": _SUM}}},
        _ALL | {"report": _REPORT | {"files": {"/dev/zero": _SUM}}, "finished": {"base": None}},
        _ALL | {"report": {"run": {}, "files": {}}},
        _ALL | {"finished": {"base": "../victim"}},
        {"ready": None},
    )
)
WORDS = (b'"ends":', b"..", b"../", b"/dev/zero", b"\\u0000", b"\\ud800", b'"kept.json"', b'".."', b'""', b'"."')


def check(data: bytes) -> None:
    try:
        given = json.loads(data)
        named = {str(name) for name in given.get("has", ()) if _is_name(name)}
    except (ValueError, AttributeError, TypeError, RecursionError):
        return
    place = folder() / "plans"
    shutil.rmtree(place, ignore_errors=True)
    victim = place / "victim"
    victim.mkdir(parents=True)
    (victim / "kept.json").write_text("{}", "utf-8")
    (victim / "pipe").symlink_to("/dev/zero")  # who reads this never ends
    _check_install(place / "sets" / "dataset", given, named)
    _check_stage(place / "work" / "stage", given)
    _check_extract(place / "work" / "stage", given)
    assert sorted(path.name for path in victim.iterdir()) == ["kept.json", "pipe"], "something outside changed"


def _check_install(dataset: Path, given: dict[str, Any], named: set[str]) -> None:
    for name in {"diffset-20211101-20211201", "mine", *named}:
        _write(dataset / "data" / name / "old.parquet", "old")
    for name in named:
        _write(dataset / ".ready" / "data" / name / "new.parquet", "new")
    _write(dataset / "manifests" / "a.json", "{}")
    _write(dataset / ".ready" / "plan.json", json.dumps(given.get("ready")))
    (dataset / ".ready" / "data").mkdir(exist_ok=True)
    try:
        assert len(dataset_folder.strays(dataset, [])) >= 1
        dataset_folder.finish_install(dataset)
    except InputError as error:
        _one_line(error, dataset)
        return
    ends = given["ready"]["ends"]
    left = {path.name for path in (dataset / "data").iterdir()}
    assert left == ({"diffset-20211101-20211201", "mine"} - set(ends)) | named, "other configs than planned"
    assert all((dataset / "data" / name / "new.parquet").is_file() for name in named)
    assert not (dataset / ".ready").exists() and (dataset / "manifests" / "a.json").is_file()


def _check_stage(stage: Path, given: dict[str, Any]) -> None:
    _write(stage / "stage.json", json.dumps(given.get("stage")))
    _write(stage / "reports" / "00000.json", json.dumps(given.get("report")))
    _write(stage / "executor" / "completions" / "00000", "")
    _write(stage / "rows.0", "rows")
    tasks, done = stages.progress(stage)
    assert isinstance(tasks, int) and done in (0, 1)
    planned = given["stage"].get("plan") if isinstance(given.get("stage"), dict) else None
    assert stages._plan_of(stage).plan in (planned or "", "")
    if stages._lost(stage, 0) is None:  # the report counts
        assert given["report"]["files"].items() <= {"rows.0": _ROWS}.items(), "the checksum of another file"
        assert all(isinstance(given["report"]["run"][name], int | float) for name in _RUN), "a report without its cost"


def _check_extract(extract: Path, given: dict[str, Any]) -> None:
    _write(extract / "finished.json", json.dumps(given.get("finished")))
    finished = unchanged_items.finished(extract)
    assert finished is None or finished.base is None or "/" not in finished.base, "the base lies elsewhere"
    lost = unchanged_items.lost(extract)
    assert lost is None or extract in lost.parents, f"{lost} is looked at"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _is_name(name: Any) -> bool:
    """Return whether a folder can have the name, and one of a config would."""
    return isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,98}", name) is not None


def _one_line(error: InputError, where: Path) -> None:
    assert str(where) in str(error) and "\n" not in str(error), f"not one line with the place: {error}"
