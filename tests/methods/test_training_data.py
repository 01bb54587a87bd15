"""Which configs a run reads when it is not told."""

import pytest

from temporalwiki.base.errors import UsageError
from temporalwiki.methods.training_data import check_config, past_config

ALL = ["diffset-20211101-20211201", "diffset-1112", "unchanged-20211101-20211201", "unchanged-1112", "probes-1112"]
SNAPSHOTS = ["wikipedia-20211101", "wikipedia-11", "wikipedia-20211201", "wikipedia-12"]

PAST = {
    "the earlier snapshot, by its long name": ("diffset-20211101-20211201", ALL + SNAPSHOTS, "wikipedia-20211101"),
    "the earlier snapshot, by its short name": ("diffset-1112", ALL + SNAPSHOTS, "wikipedia-11"),
    "what did not change, where the snapshot is not there": ("diffset-1112", ALL, "unchanged-1112"),
    "never the later snapshot": ("diffset-1112", ["diffset-1112", "wikipedia-12", "unchanged-1112"], "unchanged-1112"),
}


@pytest.mark.parametrize("case", PAST)
def test_past_data_of_an_interval_is(case: str) -> None:
    config, configs, expected = PAST[case]
    assert past_config("replay", "temporalwiki", config, configs) == expected


@pytest.mark.parametrize("config", ["recentnews", "wikipedia-12", "diffset-1112"])
def test_past_data_must_be_named_where_nothing_tells_it(config: str) -> None:
    with pytest.raises(UsageError, match=r"replay needs past data: name a config of ckl with --past: recentnews"):
        past_config("replay", "ckl", config, ["recentnews", "wikipedia-12", "diffset-1112"])


def test_of_many_configs_a_few_are_named() -> None:
    with pytest.raises(UsageError, match="and 88 more"):
        check_config("temporalwiki", "x", [f"diffset-{month:04}" for month in range(100)])
