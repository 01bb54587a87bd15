"""`temporalwiki publish`: what it takes, and a month on the Hub by the command itself."""

from collections.abc import Callable
from pathlib import Path

from a_ckl_config import add, invariantlama
from a_month import add_month, article
from loopback_hub import LoopbackHub

Run = Callable[..., tuple[int, str, str]]


def test_a_month_is_shown_then_published(tmp_path: Path, hub: LoopbackHub, run: Run) -> None:
    folder = tmp_path / "temporalwiki"
    add_month(folder, "20211101", "20211201", [article(1)])
    status, out, _ = run("publish", "dataset", folder, "ORG/temporalwiki", "--dry-run")
    assert status == 0
    assert out.endswith("dry run, nothing was sent\n")
    assert "  + data/diffset-20211101-20211201/train-00000-of-00001.parquet" in out
    status, out, _ = run("publish", "dataset", folder, "ORG/temporalwiki")
    assert status == 0
    assert out.endswith("/datasets/ORG/temporalwiki/tree/2021.12\n")
    assert "2021.12" in hub.repo("dataset", "ORG/temporalwiki").tags


def test_lamas_clozes_are_refused_in_one_line_until_they_are_asked_for(
    tmp_path: Path, hub: LoopbackHub, run: Run
) -> None:
    add(tmp_path / "ckl", invariantlama())
    status, out, err = run("publish", "dataset", tmp_path / "ckl", "ORG/ckl")
    assert (status, out) == (1, "")
    assert err.count("\n") == 1
    assert "invariantlama; publish with --accept-noncommercial" in err
    assert hub.requests == []
    status, out, _ = run("publish", "dataset", tmp_path / "ckl", "ORG/ckl", "--accept-noncommercial")
    assert status == 0
    assert "data/invariantlama/test-00000-of-00001.parquet" in out
    assert "manifests/invariantlama.json" in hub.repo("dataset", "ORG/ckl").files("main")
