"""What is newer than a date or than the cutoff of a model: how the option is read, and which rows count."""

import datetime
import json
from pathlib import Path
from typing import Any

import datasets
import pytest

import temporalwiki
from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.after_cutoff import After, Filter, read_after

from a_dataset import write_dataset

Date = datetime.date


def time(year: int, month: int, day: int = 1) -> datetime.datetime:
    return datetime.datetime(year, month, day, tzinfo=datetime.UTC)


def write_cutoff(folder: Path, model: str = "gpt2", **overall: str | None) -> Path:
    """Write a result of `temporalwiki cutoff`: found, March 2021 [January, May], unless ``overall`` says otherwise."""
    found = {"verdict": "found", "cutoff": "2021-03", "low": "2021-01", "high": "2021-05"} | overall
    folder.mkdir(parents=True)
    content = {"model": model, "overall": found, "topics": {}, "curve": [{"month": "2021-01"}]}
    (folder / "cutoff.json").write_text(json.dumps(content))
    return folder / "cutoff.json"


DAYS = {
    "20211101": Date(2021, 11, 1),
    "2021-11-01": Date(2021, 11, 1),
    "2021-11": Date(2021, 11, 30),  # a month is over on its last day
    "2020-02": Date(2020, 2, 29),
    "9999-12": Date(9999, 12, 31),
}


@pytest.mark.parametrize("text", DAYS)
def test_a_date(text: str) -> None:
    assert read_after(text) == After(DAYS[text])


@pytest.mark.parametrize("text", ["2021", "2021-13", "2021-02-30", "20210230", "0000-01", "2021-1101", "-", "1-1"])
def test_no_date(text: str) -> None:
    with pytest.raises(UsageError, match=f"after-cutoff '{text}': there is no such day or month; a date is written"):
        read_after(text)


def test_the_upper_end_of_a_cutoff_counts_wherever_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_cutoff(Path("results/of-gpt2"))
    write_cutoff(Path("results/other"), "org/other", verdict="before the data", cutoff=None, low=None, high="2019-12")
    Path("gpt2").mkdir()  # the model's folder, which holds no cutoff
    write_cutoff(Path("bound"), "m", verdict="cannot tell", cutoff=None, low=None, high="2020-02")
    assert read_after("bound") == After(Date(2020, 2, 29), "m")
    expected = After(Date(2021, 5, 31), "gpt2")
    for text in ("results/of-gpt2/cutoff.json", "results/of-gpt2", "gpt2"):
        assert read_after(text, Path("results")) == expected
    assert read_after("org/other", Path("results")) == After(Date(2019, 12, 31), "org/other")
    assert str(expected) == "2021-05-31 (the cutoff of gpt2)"


NO_CUTOFF: dict[str, tuple[str, str]] = {
    "cannot tell": ("unsure", "the cutoff of org/unsure has no upper end (cannot tell); name a date instead"),
    "the end is not in the data": ("late", "the cutoff of org/late has no upper end (knows all months of the data)"),
    "no such model": ("org/nobody", "org/nobody: not a result of `temporalwiki cutoff`, and no result"),
    "two results": ("org/twice", "org/twice: has 2 cutoffs; name one of them: "),
    "another JSON file": ("other.json", "other.json: not a result of `temporalwiki cutoff`; run the command again"),
    "months that contradict each other": ("wrong", "wrong/cutoff.json: not a result of `temporalwiki cutoff`"),
    "not a path": ("a\0b", "not a result of"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line"), NO_CUTOFF.values(), ids=NO_CUTOFF)
def test_a_cutoff_that_says_no_date(text: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    none: dict[str, str | None] = dict.fromkeys(("cutoff", "low", "high"))
    write_cutoff(Path("unsure"), "org/unsure", **none | {"verdict": "cannot tell"})
    write_cutoff(Path("late"), "org/late", **none | {"verdict": "after the data", "low": "2021-04"})
    write_cutoff(Path("wrong"), "org/wrong", low="2021-06")
    for name in ("a", "b"):
        write_cutoff(Path("results", name), "org/twice")
    Path("other.json").write_text('{"model": 3}')
    with pytest.raises(InputError) as caught:
        read_after(text, Path("results"))
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


# Which rows count: the interval is 1 November to 1 December 2021; the last day that counts as known -> kept

OCTOBER, NOVEMBER, LONG_AGO = Date(2021, 10, 31), Date(2021, 11, 9), Date(2019, 5, 1)
FIRST, TENTH = Date(2021, 11, 1), Date(2021, 11, 10)
BORN = {"start_time": time(1990, 1)}
CONFIG = "probes-20211101-20211201"
FACTS: dict[str, tuple[str, dict[str, Any], dict[datetime.date, bool]]] = {
    "undated: by the first date": ("changed", {}, {OCTOBER: True, FIRST: False, NOVEMBER: False, LONG_AGO: True}),
    "by the day on which it began": ("changed", {"start_time": time(2021, 11, 10)}, {NOVEMBER: True, TENTH: False}),
    "older than its interval": ("changed", {"start_time": time(2021, 1)}, {OCTOBER: False, LONG_AGO: True}),
    "announced in the interval": ("changed", {"start_time": time(2022, 6)}, {OCTOBER: True, NOVEMBER: False}),
    "unchanged: began before the interval": ("unchanged", {"start_time": None}, {OCTOBER: False, LONG_AGO: False}),
    "unchanged, with a start": ("unchanged", {"start_time": time(2021, 1)}, {OCTOBER: False, LONG_AGO: True}),
    "unchanged, and was announced": ("unchanged", {"start_time": time(2022, 1)}, {LONG_AGO: False}),
    "unchanged, in another split": ("test", {"kind": "unchanged", "start_time": None}, {LONG_AGO: False}),
    "gone: by its end": ("deleted", BORN | {"end_time": time(2021, 11, 10)}, {NOVEMBER: True, TENTH: False}),
    "gone without an end": ("deleted", BORN | {"end_time": None}, {OCTOBER: True, NOVEMBER: False}),
    "gone, in another split": ("test", BORN | {"kind": "replaced", "end_time": None}, {OCTOBER: True}),
}
NEW = {"kind": "new", "timestamp": time(2021, 11, 20)}
ROWS: dict[str, tuple[str, str, dict[str, Any], dict[datetime.date, bool]]] = {
    **{case: (CONFIG, *row) for case, row in FACTS.items()},
    "new text, by the interval": ("diffset-20211101-20211201", "train", NEW, {OCTOBER: True, NOVEMBER: False}),
    "removed text": ("deletions-20211101-20211201", "train", {"kind": "deleted"}, {OCTOBER: True, NOVEMBER: False}),
    "unchanged text": ("unchanged-20211101-20211201", "train", {}, {LONG_AGO: False}),
    "a short name: the newest": ("probes-1112", "changed", {}, {Date(2022, 10, 31): True, Date(2022, 11, 1): False}),
    "a cloze": ("updatedlama-20211101-20211201", "test", {"kind": "new_object", "start_time": None}, {OCTOBER: True}),
    "a cloze of what stays": ("invariantlama-20211101-20211201", "test", {"start_time": None}, {LONG_AGO: False}),
    "published": ("newlama-easy", "test", {"published": time(2021, 11, 10)}, {NOVEMBER: True, TENTH: False}),
    "no date of publication": ("newlama-easy", "test", {"published": None}, {LONG_AGO: False}),
}
AVAILABLE = [CONFIG, "probes-20221101-20221201", "probes-1112", "facts-20231101-20231201"]


def rows_of(row: dict[str, Any]) -> datasets.Dataset:
    kinds = dict.fromkeys(("published", "start_time", "end_time", "timestamp"), datasets.Value("timestamp[s, tz=UTC]"))
    features = {name: kinds.get(name, datasets.Value("string")) for name in (*row, "text")}
    return datasets.Dataset.from_list([{**row, "text": "x"}], datasets.Features(features))


@pytest.mark.parametrize(("config", "split", "row", "expected"), ROWS.values(), ids=ROWS)
def test_which_rows_are_newer(config: Any, split: str, row: dict[str, Any], expected: dict[str, Any]) -> None:
    rows = rows_of(row)
    for day, kept in expected.items():
        newer = Filter.of(After(day), config, AVAILABLE)
        assert newer.kept(rows, split)["text"][:] == ["x"] * kept, day
        assert [one["text"] for one in newer.kept(rows.to_iterable_dataset(), split)] == ["x"] * kept, day


UNDATED = {
    "a snapshot": ("wikipedia-20211201", {}, "wikipedia-20211201: does not say when its rows appeared"),
    "a short name without a long one": ("probes-0809", {}, "probes-0809: does not say when its rows appeared"),
    "a column of texts": (CONFIG, {"start_time": "2021"}, "start_time is '2021'; a column of times is needed"),
}


@pytest.mark.parametrize(("config", "row", "line"), UNDATED.values(), ids=UNDATED)
def test_rows_that_nothing_dates(config: Any, row: dict[str, Any], line: str) -> None:
    rows = datasets.Dataset.from_list([{"text": "x", **row}])
    with pytest.raises(InputError, match=line):
        Filter.of(After(OCTOBER), config, AVAILABLE).kept(rows, "train")


# load_dataset


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset with a short and a long name of one interval: three changed facts, and one of them began early."""
    starts = [None, time(2021, 11, 10), time(2020, 1)]
    changed = [{"subject": f"s{i}", "start_time": start} for i, start in enumerate(starts)]
    probes = {"changed": changed, "unchanged": [{"subject": "u", "start_time": None}]}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    return write_dataset(tmp_path / "data", {CONFIG: probes, "probes-1112": probes})


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("name", [CONFIG, "probes-1112"])
@pytest.mark.parametrize(
    ("after", "kept"),
    [("2021-10", ["s0", "s1"]), (Date(2021, 11, 5), ["s1"]), ("results/a", []), (None, ["s0", "s1", "s2"])],
)
def test_it_loads_what_is_newer(after: Any, kept: list[str], name: str, streaming: bool, folder: Path) -> None:
    write_cutoff(Path("results/a"), high="2021-12")
    loaded = temporalwiki.load_dataset("data", name, streaming=streaming, after_cutoff=after)
    assert [row["subject"] for row in loaded["changed"]] == kept
    assert [row["subject"] for row in loaded["unchanged"]] == (["u"] if after is None else [])
    one = temporalwiki.load_dataset("data", name, split="changed", streaming=streaming, after_cutoff=after)
    assert [row["subject"] for row in one] == kept


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no date": ({"after_cutoff": "2021-13"}, UsageError, "there is no such day or month"),
    "the name of a model": ({"after_cutoff": "org/model"}, InputError, "not a result of `temporalwiki cut"),
    "no config": ({"name": None}, UsageError, "data: after_cutoff needs the name of a config, such as probes-1112"),
    "two splits at once": ({"split": "changed+unchanged"}, UsageError, "'changed.unchanged': name one split"),
}


@pytest.mark.parametrize(("changed", "error", "line"), WRONG.values(), ids=WRONG)
def test_what_it_cannot_load(changed: dict[str, Any], error: Any, line: str, folder: Path) -> None:
    with pytest.raises(error, match=line):
        temporalwiki.load_dataset("data", **{"name": CONFIG, "after_cutoff": "2021-10", **changed})
