"""eval.yaml: two tasks for each interval that has rows, under names that mean the same for ever."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.builders.manifests import BuiltManifest, Config, Manifest, Split, checked_as
from temporalwiki.model_cards.dataset import dataset_card
from temporalwiki.model_cards.eval_yaml import eval_yaml

from a_month import probe, stage_month


def manifest(prev: str, recent: str, **rows: int) -> Manifest:
    """Return a manifest with probes and configs of other kinds."""
    name = f"{prev}-{recent}"
    splits = {split: Split(count, 0, []) for split, count in rows.items()}
    configs = {"diffset": {"train": Split(5, 0, [])}, "probes": splits, "lighttuning": splits}
    return Manifest(configs={f"{kind}-{name}": Config(None, of_kind) for kind, of_kind in configs.items()}, inputs=[])


def tasks(manifests: list[Manifest]) -> list[tuple[str, str, str]]:
    text = eval_yaml(manifests)
    return [(task["id"], task["config"], task["split"]) for task in yaml.safe_load(text)["tasks"]] if text else []


def named(config: str, *splits: str) -> list[tuple[str, str, str]]:
    return [(f"{config}-{split}", config, split) for split in splits]


OLD, NEW = "probes-20211101-20211201", "probes-20211201-20220101"
ALL = {"unchanged": 3, "changed": 2, "deleted": 1}
CASES: dict[str, tuple[list[Manifest], list[tuple[str, str, str]]]] = {
    "the order of splits is ours": (
        [manifest("20211101", "20211201", deleted=1, changed=2, unchanged=3)],
        named(OLD, "unchanged", "changed"),
    ),
    "several, oldest first": (
        [manifest("20211101", "20211201", **ALL), manifest("20211201", "20220101", **ALL)],
        named(OLD, "unchanged", "changed") + named(NEW, "unchanged", "changed"),
    ),
    "a split without rows": (
        [manifest("20211101", "20211201", **ALL | {"changed": 0})],
        named(OLD, "unchanged"),
    ),
    "deleted facts alone": ([manifest("20211101", "20211201", unchanged=0, changed=0, deleted=1)], []),
    "no splits": ([manifest("20211101", "20211201")], []),
    "the same months of another year": (
        [manifest("20211101", "20211201", **ALL), manifest("20221101", "20221201", changed=1)],
        named(OLD, "unchanged", "changed") + named("probes-20221101-20221201", "changed"),
    ),
    "no interval": ([], []),
}


@pytest.mark.parametrize(("manifests", "expected"), CASES.values(), ids=CASES)
def test_tasks(manifests: list[Manifest], expected: list[tuple[str, str, str]]) -> None:
    assert tasks(manifests) == expected
    assert (eval_yaml(manifests) is None) == (not expected)


MONTHS = ["20201201", "20210101", "20210120", "20210201", "20211201", "20220101", "20220201"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([(a, b) for a in MONTHS for b in MONTHS if a < b]),
            st.fixed_dictionaries({split: st.integers(0, 2) for split in ALL}),
        ),
        unique_by=lambda pair: pair[0],
    )
)
def test_each_interval_with_rows_has_tasks_of_its_own(intervals: list[tuple[tuple[str, str], dict[str, int]]]) -> None:
    intervals = sorted(intervals, key=lambda pair: pair[0][::-1])
    found = tasks([manifest(*dates, **rows) for dates, rows in intervals])
    assert len({task for task, _, _ in found}) == len(found)
    assert len(found) == sum(rows[split] > 0 for _, rows in intervals for split in ("unchanged", "changed"))


def test_all_tasks_are_in_the_card(tmp_path: Path) -> None:
    dates = [("20211101", "20211201"), ("20211201", "20220101"), ("20221101", "20221201")]
    months = [
        checked_as(BuiltManifest, stage_month(tmp_path, *interval, [], [probe(1), probe(2)]), "manifest")
        for interval in dates
    ]
    card = yaml.safe_load(dataset_card(months).split("---\n")[1])
    splits = {config["config_name"]: {file["split"] for file in config["data_files"]} for config in card["configs"]}
    found = tasks(months)
    assert len(found) == 6
    assert all(split in splits[config] for _, config, split in found)


def test_the_text_is_plain_yaml() -> None:
    text = eval_yaml([manifest("20211101", "20211201", **ALL), manifest("20211201", "20220101", **ALL)])
    assert text is not None
    assert not any(isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) for event in yaml.parse(text))
    benchmark = yaml.safe_load(text)
    assert benchmark.keys() == {"name", "description", "evaluation_framework", "tasks"}
    prompt = benchmark["tasks"][0]["solvers"][0]["args"]["template"]
    assert prompt.format(prompt="Easton", relation="country").endswith("\n\nEaston country")
