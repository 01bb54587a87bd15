"""Figures 6 and 7: shares computed by hand, the choice of the interval, folders without counts, and any labels."""

import json
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.leaderboard.figures import DATA_FIGURES, dataset, write_figures

from a_dataset import Types, write_dataset, write_probes
from a_figure import bars, check_texts
from a_folder import contents

MONTH, LATER = "20211101-20211201", "20211201-20220101"
PROBES = {"unchanged": ["r"], "changed": ["r"], "deleted": ["r"]}
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


def draw(data: Path | str, name: str = "relations") -> Figure | None:
    return DATA_FIGURES[name].draw(str(data))


def types(unchanged: dict[str, int], changed: dict[str, int]) -> Types:
    """Counts with the same types for both roles, and other types for deleted facts, which the figure does not show."""
    of = {"unchanged": unchanged, "changed": changed, "deleted": {"star": 7}}
    return {split: {"subject": counts, "object": counts} for split, counts in of.items()}


def with_types(folder: Path, of: Types) -> Figure:
    """Return the figure of entity types of a month with these counts."""
    return made(draw(write_probes(folder, {MONTH: PROBES}, {MONTH: of}), "entity_types"))


def made(figure: Figure | None) -> Figure:
    assert figure is not None
    return figure


# Entity types


def test_shares_are_of_each_split_and_role(tmp_path: Path) -> None:
    """Types are sorted by the mean of their shares; the unknown type comes last."""
    of = {
        "unchanged": {"subject": {"city": 3, "human": 1}, "object": {"country": 2, "unknown": 2}},
        "changed": {"subject": {"human": 2}, "object": {"country": 1, "award": 1}},
        "deleted": {"subject": {"star": 9}, "object": {"star": 9}},
    }
    figure = with_types(tmp_path, of)
    subjects, objects = figure.axes
    assert bars(subjects) == {
        "unchanged (4 probes)": {"human": 25.0, "city": 75.0},
        "changed (2 probes)": {"human": 100.0, "city": 0.0},
    }
    assert bars(objects) == {
        "unchanged (4 probes)": {"country": 50.0, "award": 0.0, "unknown": 50.0},
        "changed (2 probes)": {"country": 50.0, "award": 50.0, "unknown": 0.0},
    }
    assert list(bars(subjects)["unchanged (4 probes)"]) == ["human", "city"]
    assert list(bars(objects)["unchanged (4 probes)"]) == ["country", "award", "unknown"]
    assert subjects.get_xlim() == objects.get_xlim()
    assert subjects.get_xlim()[0] == 0
    texts = check_texts(figure)
    assert {f"Entity types of probes-{MONTH}", "subjects", "objects", "changed (2 probes)"} <= set(texts)


def test_types_after_the_tenth_are_put_together(tmp_path: Path) -> None:
    many = {f"type {i:02}": 20 - i for i in range(13)} | {"unknown": 1_000}
    total = sum(range(8, 21)) + 1_000
    found = bars(with_types(tmp_path, types(many, {"type 12": 1, "type 00": 1})).axes[0])
    expected = ["type 00", "type 12", *(f"type {i:02}" for i in range(1, 9)), "3 others", "unknown"]
    assert list(found["changed (2 probes)"]) == expected
    assert found["changed (2 probes)"]["3 others"] == 0
    assert found[f"unchanged ({total:,} probes)"]["3 others"] == pytest.approx(100 * (11 + 10 + 9) / total)


@pytest.mark.parametrize(("unchanged", "changed"), [({"human": 1}, {}), ({}, {"unknown": 1})])
def test_one_type_of_one_split(tmp_path: Path, unchanged: dict[str, int], changed: dict[str, int]) -> None:
    split, [name] = ("unchanged", unchanged) if unchanged else ("changed", changed)
    figure = with_types(tmp_path, types(unchanged, changed))
    assert [bars(axes) for axes in figure.axes] == [{f"{split} (1 probe)": {name: 100.0}}] * 2
    check_texts(figure)


def test_labels_of_every_kind_lie_apart(tmp_path: Path) -> None:
    more = ["w" * 299 + "x", "3 others"]
    figure = with_types(
        tmp_path, types(dict.fromkeys(HOSTILE[:7], 1), dict.fromkeys([*HOSTILE[:7], *more, "unknown"], 2))
    )
    check_texts(figure)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(set(labels)) == len(HOSTILE[:7]) + 3
    assert all((len(label) <= 40 and label.isprintable()) or "\u200d" in label for label in labels)


def test_the_newest_interval_counts(tmp_path: Path) -> None:
    old, new = types({"human": 1}, {"human": 1}), types({"city": 1}, {"city": 1})
    figure = made(
        draw(write_probes(tmp_path, {LATER: PROBES, MONTH: PROBES}, {LATER: new, MONTH: old}), "entity_types")
    )
    assert bars(figure.axes[0])["changed (1 probe)"] == {"city": 100.0}


WITHOUT: dict[str, dict[str, Types | None]] = {
    "counts of an earlier version": {MONTH: None},
    "no manifest of the newest interval": {"20201201-20210101": types({"human": 1}, {})},
    "no manifests": {},
    "no probes but deleted ones": {MONTH: types({}, {})},
}


@pytest.mark.parametrize("case", WITHOUT)
def test_without_counts_there_is_no_figure(tmp_path: Path, case: str) -> None:
    assert draw(write_probes(tmp_path, {MONTH: PROBES}, WITHOUT[case]), "entity_types") is None


def test_the_manifest_of_a_hub_repository_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(write_probes(tmp_path, {MONTH: PROBES}, {MONTH: types({"human": 1}, {})}))
    asked: list[Any] = []

    def fetch(repository: str, **options: Any) -> str:
        asked.append((repository, options))
        return str(folder)

    monkeypatch.setattr(dataset, "newest_probes", lambda data: f"probes-{MONTH}")
    monkeypatch.setattr(dataset, "snapshot_download", fetch)
    for data in ("org/temporalwiki", "org/temporalwiki@2021.12"):
        figure = made(draw(data, "entity_types"))
        assert bars(figure.axes[0]) == {"unchanged (1 probe)": {"human": 100.0}}
    wanted = {"repo_type": "dataset", "allow_patterns": f"manifests/{MONTH}.json"}
    assert asked == [
        ("org/temporalwiki", {**wanted, "revision": None}),
        ("org/temporalwiki", {**wanted, "revision": "2021.12"}),
    ]

    def fail(*_: Any, **__: Any) -> str:
        raise ConnectionError("no network\nat all")

    monkeypatch.setattr(dataset, "snapshot_download", fail)
    with pytest.raises(InputError, match=rf"org/temporalwiki: manifests/{MONTH}.json cannot be fetched: no network$"):
        draw("org/temporalwiki", "entity_types")


def test_a_broken_manifest_is_said(tmp_path: Path) -> None:
    data = write_probes(tmp_path, {MONTH: PROBES}, {MONTH: None})
    (tmp_path / "manifests" / f"{MONTH}.json").write_text(json.dumps({"configs": {}}), "utf-8")
    with pytest.raises(InputError, match="not a manifest of temporalwiki"):
        draw(data, "entity_types")


def test_both_figures_of_a_folder_have_the_same_bytes_every_time(tmp_path: Path) -> None:
    data = write_probes(tmp_path / "data", {MONTH: PROBES}, {MONTH: types({"human": 3, "city": 2}, {"city": 1})})
    written = []
    for name in ("a", "b"):
        assert list(write_figures([], tmp_path / name, data)) == ["entity_types", "relations"]
        written.append(contents(tmp_path / name))
    assert written[0] == written[1]
    endings = (".png", ".svg", "_narrow.svg")
    assert sorted(written[0]) == [f"{name}{ending}" for name in ("entity_types", "relations") for ending in endings]
    assert write_figures([], tmp_path / "a") == {}
    assert not list((tmp_path / "a").iterdir())


# Relations


def test_shares_are_of_each_split_and_the_most_frequent_comes_first(tmp_path: Path) -> None:
    """Relations are sorted by the mean of their shares: 60 and 0, 20 and 100, 20 and 0 percent."""
    splits = {
        "unchanged": ["capital"] * 3 + ["spouse", "employer"],
        "changed": ["spouse"] * 2,
        "deleted": ["head"] * 9,
    }
    figure = made(draw(write_probes(tmp_path, {MONTH: splits})))
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
    figure = made(draw(write_probes(tmp_path, {MONTH: {"unchanged": relations, "changed": relations[:40]}})))
    assert list(bars(figure.axes[0])["changed (40 probes)"]) == [f"relation {i:02}" for i in range(25)]
    assert f"Relations of probes-{MONTH}: the most frequent 25 of 30" in check_texts(figure)


def test_relations_of_the_newest_interval_count_and_of_the_one_that_begins_last(tmp_path: Path) -> None:
    """The newest interval is chosen by date: by short name, 12-01 would come before 11-12."""
    intervals = ("20211201-20220101", "20211101-20220101", "20211101-20211201", "20201201-20210101")
    figure = made(draw(write_probes(tmp_path, {name: {"changed": [name]} for name in intervals})))
    assert bars(figure.axes[0]) == {"changed (1 probe)": {"20211201-20220101": 100.0}}


def test_short_names_alone_do(tmp_path: Path) -> None:
    of = [{"subject": "s", "relation": "r", "object": "o"}]
    folder = write_dataset(tmp_path, {f"probes-{month}": {"changed": of} for month in ("1112", "1201", "1011")})
    figure = made(draw(folder))
    assert "Relations of probes-1201" in check_texts(figure)


@pytest.mark.parametrize("split", ["unchanged", "changed"])
def test_one_relation_of_one_split(tmp_path: Path, split: str) -> None:
    figure = made(draw(write_probes(tmp_path, {MONTH: {split: ["capital"]}})))
    assert bars(figure.axes[0]) == {f"{split} (1 probe)": {"capital": 100.0}}
    check_texts(figure)


def test_hostile_labels_lie_apart_each_on_a_line(tmp_path: Path) -> None:
    figure = made(draw(write_probes(tmp_path, {MONTH: {"unchanged": HOSTILE * 2, "changed": HOSTILE}})))
    check_texts(figure)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(set(labels)) == len(HOSTILE)
    assert all((len(label) <= 50 and label.isprintable()) or "\u200d" in label for label in labels)
    assert "$x_1$ and $\\frac{1}{2}" in labels


@pytest.mark.parametrize("splits", [{"deleted": ["head"]}, {}])
def test_without_probes_there_is_no_figure(tmp_path: Path, splits: dict[str, list[str]]) -> None:
    if splits:
        write_probes(tmp_path, {MONTH: splits})
    else:
        write_dataset(tmp_path, {"diffset-1112": {"train": [{"text": "t"}]}})
    assert draw(tmp_path) is None


def test_data_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot load a dataset"):
        draw(tmp_path / "nothing")
    folder = write_dataset(tmp_path, {"probes-1112": {"changed": [{"subject": "s", "predicate": "r"}]}})
    with pytest.raises(InputError, match=r"probes-1112, changed: no column 'relation'"):
        draw(folder)
