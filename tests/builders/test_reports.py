"""Small dumps that failed, made from public reports: what is right for each. The README of the data has the list."""

from __future__ import annotations

from pathlib import Path

import pytest

from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.parquet import read_rows
from temporalwiki.builders.snapshot import Interval

DATES = ("20211101", "20211201")
TEXTS = {
    "de": [
        "Die Burg wurde im 12. Jahrhundert. Der Verein stieg in die 3. Bundesliga. "
        "Sie starb in Berlin. 2018 wurde das Haus verkauft."
    ],
    "fr": ["Elle fut détruite en 146 av. J.-C. par les Romains."],
}
FACTS = {  # object: support, strict
    "hi_cue": {"राम": ("mentioned", False)},
    "he": {"נמל": ("stated", True)},
    "labels": dict.fromkeys(
        ("Newton\u200e", "Côte d'Or", "Port Dee", "Saint-Paul", "J.R. Ewing City"), ("stated", True)
    ),
}
WIKIS = {"labels": "enwiki", "hi_cue": "hiwiki"}


@pytest.mark.parametrize("report", [*TEXTS, *FACTS])
def test_a_report_is_right(report: str, shared_data: Path, tmp_path: Path) -> None:
    sources = find_sources(shared_data / "reports" / report, Interval(WIKIS.get(report, f"{report}wiki"), *DATES))
    options = BuildOptions(unchanged_fraction=1.0, caps=None)
    build(sources, tmp_path / "out", tmp_path / "work", options, accept_dates=True)
    diffset, facts = (tmp_path / "out" / "data" / f"{config}-{DATES[0]}-{DATES[1]}" for config in ("diffset", "facts"))
    texts = [row["text"] for row in read_rows(sorted(diffset.glob("*.parquet")))]
    for expected in TEXTS.get(report, ()):
        assert any(expected in text for text in texts), texts
    changed = read_rows(sorted(facts.glob("changed-*.parquet")))
    assert {row["object"]: (row["support"], row["strict"]) for row in changed} == FACTS.get(report, {})
