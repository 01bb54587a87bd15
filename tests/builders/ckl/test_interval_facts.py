"""Facts of intervals: by name, in chains, and the files that are refused."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.ckl.live import live
from temporalwiki.builders.configs import SPLITS

from a_fact import SECOND, fact, made, month, months, new

YEAR = ("20201101-20201201", "20211001-20211101", "20211101-20211201", "20211201-20220101")
# By name: the interval of the year, and the chain
NAMED: dict[str | None, tuple[str | None, list[str] | None]] = {
    None: ("20211201-20220101", list(YEAR[1:])),
    "1112": ("20211101-20211201", ["20211101-20211201"]),
    "20201101-20201201": ("20201101-20201201", ["20201101-20201201"]),
    "1012": (None, list(YEAR[1:3])),
    "20211001-20220101": (None, list(YEAR[1:])),
    "20201101-20220101": (None, None),  # there is a gap
    "1313": (None, None),
    "": (None, None),
    "../x": (None, None),
}


@pytest.mark.parametrize("name", NAMED)
def test_which_interval_is_meant(tmp_path: Path, name: str | None) -> None:
    months(tmp_path, *YEAR)
    for kind, expected in zip(("newlama", "invariantlama"), NAMED[name], strict=True):
        if expected is None:
            with pytest.raises(InputError, match=re.escape(f"no interval {name!r}; there are facts of {YEAR[0]}, ")):
                live(kind, [tmp_path], name)
        else:
            config, rows = made(kind, tmp_path, interval=name)
            intervals = [expected] if isinstance(expected, str) else expected
            assert config.options["intervals"] == intervals
            assert config.name == f"{kind}-{intervals[0][:8]}-{intervals[-1][9:]}"
            assert len(rows) == 1
            assert len(config.inputs) == 3 * len(intervals)


# Existing intervals, the requested one, and the chain
CHAINS: list[tuple[list[str], str | None, list[str] | None]] = [
    # two end at 1101: the one with an interval before it makes the longer chain
    (["0801-1101", "1001-1101", "1101-1201", "0701-0801"], None, ["0701-0801", "0801-1101", "1101-1201"]),
    (["0801-1101", "1001-1101", "1101-1201"], "20210801-20211201", ["0801-1101", "1101-1201"]),
    (["0801-1101", "1001-1101", "1101-1201"], "20211001-20211201", ["1001-1101", "1101-1201"]),
    (["0801-1101", "1001-1101", "1101-1201"], "1012", ["1001-1101", "1101-1201"]),
    (["0801-1101", "1001-1101", "1101-1201"], "20210801-20211001", None),
    (["0901-1101", "0901-1001", "1001-1101", "1101-1201"], None, ["0901-1001", "1001-1101", "1101-1201"]),
    (["0901-1101", "0901-1001", "1001-1101", "1101-1201"], "0911", ["0901-1001", "1001-1101"]),
    (["0901-1001", "0901-1101", "1001-1201", "1101-1201"], None, ["0901-1101", "1101-1201"]),
    (["0801-0901", "0901-1001", "1001-1201", "0801-1101", "1101-1201"], None, ["0801-0901", "0901-1001", "1001-1201"]),
]


@pytest.mark.parametrize(("there", "asked", "chain"), CHAINS)
def test_chains_of_overlapping_intervals(
    tmp_path: Path, there: list[str], asked: str | None, chain: list[str] | None
) -> None:
    def full(interval: str) -> str:
        return "2021{}-2021{}".format(*interval.split("-"))

    months(tmp_path, *map(full, there))
    if chain is None:
        with pytest.raises(InputError, match="no interval"):
            live("invariantlama", [tmp_path], asked)
        return
    config, _ = made("invariantlama", tmp_path, interval=asked)
    assert config.options["intervals"] == [*map(full, chain)]
    left = sorted(full(interval) for interval in there if interval not in chain) if asked is None else []
    assert [warning for warning in config.warnings if "left out" in warning] == [
        f"no part of the intervals that follow one another from {full(chain[0])[:8]} to 20211201, "
        f"so left out: {', '.join(left)}"
    ] * bool(left)


def test_many_intervals_that_cross_are_one_chain(tmp_path: Path) -> None:
    """All pairs of eleven dates: of a thousand chains from the first to the last, the longest counts."""
    dates = [f"2021{month:02}01" for month in range(1, 12)]
    months(tmp_path, *(f"{a}-{b}" for i, a in enumerate(dates) for b in dates[i + 1 :]))
    [config] = live("invariantlama", [tmp_path])
    assert config.options["intervals"] == [f"{a}-{b}" for a, b in pairwise(dates)]


def refused(said: str, *folders: Path, kind: str = "newlama") -> None:
    with pytest.raises(InputError, match=said) as caught:
        live(kind, list(folders))
    assert "\n" not in str(caught.value)


def test_unusable_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no live config 'lama'; there are updatedlama, newlama, invariantlama"):
        live("lama", [tmp_path])
    (tmp_path / "empty").mkdir()
    refused("empty: not a dataset folder", tmp_path / "empty")
    refused("not here: not a dataset folder", tmp_path / "not here")
    korean = month(tmp_path / "ko", wiki="kowiki", language="ko", changed=[new()])
    refused(
        "kowiki has labels in 'ko'; there are clozes and questions in de and en: docs/how_to/add_a_language", korean
    )
    english = months(tmp_path / "en", SECOND)
    simple = month(tmp_path / "simple", wiki="simplewiki", changed=[new()])
    refused("simplewiki.*enwiki; use one wiki", english, simple)
    refused(f"has {SECOND}, and so has .*en; give one", english, months(tmp_path / "again", SECOND))
    assert made("newlama", english, english)[1]  # the same folder twice counts once


@pytest.mark.parametrize("damage", ["cut", "gone", "other"])
def test_files_that_are_not_the_manifests_are_refused(tmp_path: Path, damage: str) -> None:
    folder = months(tmp_path, SECOND)
    [path] = (folder / "data" / f"facts-{SECOND}").glob("unchanged-*")
    if damage == "gone":
        path.unlink()
    else:
        data = path.read_bytes()
        path.write_bytes(data[:-9] if damage == "cut" else data[:50] + bytes([data[50] ^ 1]) + data[51:])
    refused("unchanged-00000-of-00001.parquet: not the file that the manifest describes", folder)


def without_files(split: str) -> Callable[[dict[str, Any]], object]:
    return lambda facts: facts["splits"][split].update(files=[])


# A change of the manifest's entry of its facts, and the message
MANIFESTS: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    *((without_files(split), f"{SECOND}.json: names no files of {split} facts") for split in SPLITS["facts"]),
    (lambda facts: facts["splits"].pop("deleted"), f"{SECOND}.json: names no files of deleted facts; build its month"),
    (lambda facts: facts["splits"].clear(), f"{SECOND}.json: names no files of unchanged, changed, deleted facts"),
    (lambda facts: facts["splits"]["changed"]["files"][0].update(path="../../etc/passwd"), "etc/passwd"),
]


@pytest.mark.parametrize(("change", "said"), MANIFESTS)
def test_a_manifest_without_facts_or_with_others_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    folder = months(tmp_path, SECOND)
    path = folder / "manifests" / f"{SECOND}.json"
    manifest = json.loads(path.read_text("utf-8"))
    change(manifest["configs"][f"facts-{SECOND}"])
    path.write_text(json.dumps(manifest), "utf-8")
    refused(said, folder)
    del manifest["configs"][f"facts-{SECOND}"]
    path.write_text(json.dumps(manifest), "utf-8")
    refused(r"has no config facts-\*", folder)


BAD_ROWS: list[tuple[dict[str, Any], str]] = [
    ({"subject_id": "Qx"}, "subject_id 'Qx'"),
    ({"subject_id": "Q1; DROP TABLE candidates"}, "subject_id 'Q1; DROP"),
    ({"subject_id": "L1"}, "subject_id 'L1'"),
    ({"subject_id": "Q0"}, "subject_id 'Q0'"),
    ({"subject_id": "Q1\n"}, r"subject_id 'Q1\\n'"),
    ({"subject_id": None}, "subject_id 'None'"),
    ({"object_id": "Q" + "9" * 30}, "object_id 'Q999"),
    ({"relation_id": "6"}, "relation_id '6'"),
    ({"relation_id": None}, "relation_id 'None'"),
    *(({name: None}, "subject_id 'Q1'") for name in ("subject", "relation", "object", "title", "evidence")),
    *(({name: None}, "subject_id 'Q1'") for name in ("objects", "objects_before", "gone_objects")),
    *(({name: ["A", None]}, "subject_id 'Q1'") for name in ("objects", "objects_before", "gone_objects")),
    *(({name: None}, "subject_id 'Q1'") for name in ("current", "known_before", "dead")),
]


@pytest.mark.parametrize(
    ("split", "bad", "said"),
    [*(("changed", *bad) for bad in BAD_ROWS), ("unchanged", *BAD_ROWS[0]), ("deleted", *BAD_ROWS[0])],
)
def test_invalid_rows_are_refused(tmp_path: Path, split: str, bad: dict[str, Any], said: str) -> None:
    rows: dict[str, Any] = {split: [fact(), fact() | bad]}
    problem = f"{split}-00000-of-00001.parquet: row 2 is not a complete fact.*{said}.*build its month again"
    refused(problem, month(tmp_path, **rows))


@pytest.mark.parametrize("how", ["without a column", "of another type", "no Parquet"])
def test_other_columns_than_those_of_facts_are_refused(tmp_path: Path, how: str) -> None:
    folder = month(tmp_path, changed=[new()])
    [path] = (folder / "data" / f"facts-{SECOND}").glob("changed-*")
    table = pq.read_table(path)
    if how == "no Parquet":
        path.write_bytes(b"PAR1")
    elif how == "of another type":
        column = table.column_names.index("dead")
        pq.write_table(table.set_column(column, "dead", pa.array(["no"])), path)
    else:
        pq.write_table(table.drop_columns(["dead"]), path)
    manifest = folder / "manifests" / f"{SECOND}.json"
    content = json.loads(manifest.read_text("utf-8"))
    content["configs"][f"facts-{SECOND}"]["splits"]["changed"]["files"][0] |= {
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "size": path.stat().st_size,
    }
    manifest.write_text(json.dumps(content), "utf-8")
    refused("changed-.*build its month again" if how == "no Parquet" else r"columns of facts \(dead\)", folder)
