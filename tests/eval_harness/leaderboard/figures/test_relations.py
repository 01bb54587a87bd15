"""Figure 7: shares computed by hand, the choice of the interval, and labels of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.leaderboard.figures import DATA_FIGURES

from a_dataset import write_dataset, write_probes
from a_figure import bars, check_texts

MONTH = "20211101-20211201"
HOSTILE = [
    "</script><script>alert(1)</script>",
    "$x_1$ and $\\frac{1}{2}",
    "a\nb\tc",
    "‮desrever‬",
    "=cmd()|\"' &amp;",
    "../../etc",
    "👩‍🚀 " * 30,
    "w" * 300,
    "very long " * 40,
    "very long " * 39 + "indeed",
    "المملكة العربية",
    "%s {label}",
    "_hidden",
    " ",
]


def draw(data: Any) -> Figure | None:
    return DATA_FIGURES["relations"].draw(str(data))


def drawn(folder: Path, intervals: dict[str, Any]) -> Figure:
    figure = draw(write_probes(folder, intervals))
    assert figure is not None
    return figure


def test_shares_are_of_each_split_and_the_most_frequent_comes_first(tmp_path: Path) -> None:
    """Relations are sorted by the mean of their shares: 60 and 0, 20 and 100, 20 and 0 percent."""
    splits = {
        "unchanged": ["capital"] * 3 + ["spouse", "employer"],
        "changed": ["spouse"] * 2,
        "deleted": ["head"] * 9,
    }
    figure = drawn(tmp_path, {MONTH: splits})
    [axes] = figure.axes
    found = bars(axes)
    assert found == {
        "unchanged (5 probes)": {"spouse": 20.0, "capital": 60.0, "employer": 20.0},
        "changed (2 probes)": {"spouse": 100.0, "capital": 0.0, "employer": 0.0},
    }
    assert [list(of) for of in found.values()] == [["spouse", "capital", "employer"]] * 2
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # downwards
    assert axes.get_xlim()[0] == 0
    assert {f"Relations of probes-{MONTH}", *found} <= set(check_texts(figure))


def test_of_many_relations_25_are_shown_and_the_title_says_of_how_many(tmp_path: Path) -> None:
    relations = [f"relation {i:02}" for i in range(30) for _ in range(40 - i)]
    figure = drawn(tmp_path, {MONTH: {"unchanged": relations, "changed": relations[:40]}})
    assert list(bars(figure.axes[0])["changed (40 probes)"]) == [f"relation {i:02}" for i in range(25)]
    assert f"Relations of probes-{MONTH}: the most frequent 25 of 30" in check_texts(figure)


def test_the_newest_interval_counts_and_the_one_that_begins_last(tmp_path: Path) -> None:
    """The newest interval is chosen by date: by short name, 12-01 would come before 11-12."""
    intervals = ("20211201-20220101", "20211101-20220101", "20211101-20211201", "20201201-20210101")
    figure = drawn(tmp_path, {name: {"changed": [name]} for name in intervals})
    assert bars(figure.axes[0]) == {"changed (1 probe)": {"20211201-20220101": 100.0}}


def test_short_names_alone_do(tmp_path: Path) -> None:
    of = [{"subject": "s", "relation": "r", "object": "o"}]
    folder = write_dataset(tmp_path, {f"probes-{month}": {"changed": of} for month in ("1112", "1201", "1011")})
    figure = draw(str(folder))
    assert figure is not None
    assert "Relations of probes-1201" in check_texts(figure)


@pytest.mark.parametrize("split", ["unchanged", "changed"])
def test_one_relation_of_one_split(tmp_path: Path, split: str) -> None:
    figure = drawn(tmp_path, {MONTH: {split: ["capital"]}})
    assert bars(figure.axes[0]) == {f"{split} (1 probe)": {"capital": 100.0}}
    check_texts(figure)


def test_hostile_labels_lie_apart_each_on_a_line(tmp_path: Path) -> None:
    figure = drawn(tmp_path, {MONTH: {"unchanged": HOSTILE * 2, "changed": HOSTILE}})
    check_texts(figure)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(set(labels)) == len(HOSTILE)
    assert all((len(label) <= 50 and label.isprintable()) or "\u200d" in label for label in labels)
    assert "$x_1$ and $\\frac{1}{2}" in labels


@pytest.mark.parametrize("splits", [{"deleted": ["head"]}, {}])
def test_without_probes_there_is_no_figure(tmp_path: Path, splits: dict[str, list[str]]) -> None:
    of = [{"text": "t"}]
    configs = {"diffset-1112": {"train": of}}
    if splits:
        write_probes(tmp_path, {MONTH: splits})
    else:
        write_dataset(tmp_path, configs)
    assert draw(str(tmp_path)) is None


def test_data_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot load a dataset"):
        draw(str(tmp_path / "nothing"))
    folder = write_dataset(tmp_path, {"probes-1112": {"changed": [{"subject": "s", "predicate": "r"}]}})
    with pytest.raises(InputError, match=r"probes-1112, changed: no column 'relation'"):
        draw(str(folder))
