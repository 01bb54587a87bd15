"""Facts of intervals: by name, in chains, and the files that are refused."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.ckl.interval_facts import Facts, consecutive
from temporalwiki.builders.ckl.live import live
from temporalwiki.builders.configs import SPLITS
from temporalwiki.builders.snapshot import Interval

from a_fact import SECOND, made, month, months, new

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


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return months(tmp_path_factory.mktemp("year"), *YEAR)


@pytest.mark.parametrize("name", NAMED)
def test_which_interval_is_meant(year: Path, name: str | None) -> None:
    for kind, expected in zip(("newlama", "invariantlama"), NAMED[name], strict=True):
        if expected is None:
            with pytest.raises(InputError, match=re.escape(f"no interval {name!r}; there are facts of {YEAR[0]}, ")):
                live(kind, [year], name)
        else:
            [config] = live(kind, [year], name)
            intervals = [expected] if isinstance(expected, str) else expected
            assert config.options["intervals"] == intervals
            assert config.name == f"{kind}-{intervals[0][:8]}-{intervals[-1][9:]}"
            assert len(config.inputs) == 3 * len(intervals)
    left = f"no part of the intervals that follow one another from 20211001 to 20220101, so left out: {YEAR[0]}"
    assert live("invariantlama", [year])[0].warnings == [left]


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


def chain_of(pairs: Iterable[tuple[str, str]], asked: str | None = None) -> list[str]:
    """Return the intervals of the chain that is found among intervals without files."""
    facts = [Facts(Path(), Interval("enwiki", *pair), {}, {}) for pair in sorted(pairs, key=lambda pair: pair[::-1])]
    return [one.interval.name for one in consecutive(facts, asked)]


@pytest.mark.parametrize(("there", "asked", "chain"), CHAINS)
def test_chains_of_overlapping_intervals(there: list[str], asked: str | None, chain: list[str] | None) -> None:
    pairs = [(f"2021{one[:4]}", f"2021{one[5:]}") for one in there]
    if chain is None:
        with pytest.raises(InputError, match="no interval"):
            chain_of(pairs, asked)
    else:
        assert chain_of(pairs, asked) == [f"2021{one[:4]}-2021{one[5:]}" for one in chain]


def test_many_intervals_that_cross_are_one_chain() -> None:
    """All pairs of eleven dates: of a thousand chains from the first to the last, the longest counts."""
    dates = [f"2021{month:02}01" for month in range(1, 12)]
    assert chain_of(combinations(dates, 2)) == [f"{a}-{b}" for a, b in pairwise(dates)]


def refused(said: str, *folders: Path, kind: str = "newlama") -> None:
    with pytest.raises(InputError, match=said) as caught:
        live(kind, list(folders))
    assert "\n" not in str(caught.value)


def test_unusable_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no live config 'lama'; there are updatedlama, newlama, invariantlama"):
        live("lama", [tmp_path])
    (tmp_path / "empty").mkdir()
    refused("empty: no manifests in it, so it is no dataset folder; build its months", tmp_path / "empty")
    refused("not here: no manifests in it", tmp_path / "not here")
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


def test_ids_of_another_form_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not facts: .*'1; DROP TABLE candidates'.*; build their month again"):
        made("newlama", month(tmp_path, changed=[new(subject_id="Q1; DROP TABLE candidates")]))


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
