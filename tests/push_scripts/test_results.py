"""Scores that are offered on somebody else's model: one pull request, and the same one only once."""

import json
from pathlib import Path

import pytest
import yaml
from huggingface_hub import HfApi

from temporalwiki.api.leaderboard import leaderboard
from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.eval_harness.leaderboard.rows import read_parquet
from temporalwiki.eval_harness.tasks.twiki_probes import TwikiProbes
from temporalwiki.model_cards.eval_results import PATH
from temporalwiki.push_scripts.dataset import publish_dataset
from temporalwiki.push_scripts.leaderboard import publish_leaderboard
from temporalwiki.push_scripts.results import publish_results

import a_result
from a_folder import contents
from a_month import add_month, article, probe
from loopback_hub import LoopbackHub

MODEL, DATA = "somebody/model", "ORG/temporalwiki"


@pytest.fixture
def results(hub: LoopbackHub, tmp_path: Path) -> Path:
    """Results of somebody's model and of another one, on a dataset that is on the Hub."""
    add_month(tmp_path / "month", "20211101", "20211201", [article(1)], [probe(1)])
    list(publish_dataset(tmp_path / "month", DATA))
    commit = hub.commit("model", MODEL, {"config.json": b"{}"})
    items = [dict(item) for item in a_result.facts(*range(1, 11))]
    # somebody's model, a model in memory that came from it, and another one
    for name, revision in ((f"{MODEL}@{commit}", commit), (MODEL, "memory"), ("other/model", "r")):
        splits = dict.fromkeys(("unchanged", "changed"), items)
        made = a_result.write_probes(tmp_path / "results", "probes-1112", splits, name=name, revision=revision)
        content = json.loads(made.path.read_text())
        content["data"]["dataset"] = f"{DATA}@2021.12"
        content["task"]["version"] = TwikiProbes.version
        score = {"value": 30.0, "low": 25.0, "high": 35.0, "items": 10, "clusters": 9}
        content["scores"] |= {f"{split}/exact_match": score for split in splits}
        made.path.write_text(json.dumps(content))
    return tmp_path / "results"


def test_a_pull_request_has_the_scores_with_their_date_source_and_data(hub: LoopbackHub, results: Path) -> None:
    [line] = publish_results(results, MODEL)
    assert line.endswith(f"/{MODEL}/discussions/1")
    repo = hub.repo("model", MODEL)
    assert PATH not in repo.files("main")
    entries = yaml.safe_load(repo.files("refs/pr/1")[PATH])
    assert [entry["dataset"]["task_id"][-9:] for entry in entries] == ["1-changed", "unchanged"]
    for entry in entries:
        assert entry["value"] == 30.0
        assert entry["dataset"]["revision"] == hub.repo("dataset", DATA).tags["2021.12"]
        assert len(entry["date"]) == 10
        assert entry["source"]["name"] == "temporalwiki"
        assert entry["source"]["url"].endswith(f"/datasets/{DATA}")


def test_the_same_scores_are_offered_once(hub: LoopbackHub, results: Path) -> None:
    list(publish_results(results, MODEL))
    [line] = publish_results(results, MODEL)
    assert line.startswith(f"{MODEL}: offered already, in ")
    repo = hub.repo("model", MODEL)
    assert [name for name in repo.branches if name.startswith("refs/pr/")] == ["refs/pr/1"]
    for path in results.rglob("*.json"):  # corrected scores are another offer
        content = json.loads(path.read_text())
        content["scores"]["changed/exact_match"]["value"] = 31.0
        path.write_text(json.dumps(content))
    assert "/discussions/2" in next(publish_results(results, MODEL))


def test_merged_scores_are_not_offered_again(hub: LoopbackHub, results: Path) -> None:
    [line] = publish_results(results, MODEL, dry_run=True)
    head = hub.commit("model", MODEL, {PATH: line.partition(":\n")[2].encode()})
    for path in results.rglob("*.json"):  # scored at the new commit, with the same scores
        content = json.loads(path.read_text())
        if content["model"]["revision"] not in ("memory", "r"):
            content["model"] |= {"name": f"{MODEL}@{head}", "revision": head}
            path.write_text(json.dumps(content))
    assert list(publish_results(results, MODEL)) == [f"{MODEL}: it has these 2 scores"]


def test_a_merged_pull_request_makes_a_board_of_two_authors(hub: LoopbackHub, results: Path, tmp_path: Path) -> None:
    hub.add_user("somebody", "hf_somebody")
    list(publish_results(results, MODEL))
    for path in results.rglob("*.json"):  # our own results are of another model
        if json.loads(path.read_text())["model"]["name"] != "other/model":
            path.unlink()
    leaderboard(results, tmp_path / "alone")
    said = leaderboard(results, tmp_path / "board", others=DATA).text
    assert said.endswith(f"0 scores reported by others on {DATA}; left out: 2 in pull requests that are open")
    ours = contents(tmp_path / "alone")
    assert contents(tmp_path / "board") == ours

    HfApi().merge_pull_request(MODEL, 1, token="hf_somebody")
    said = leaderboard(results, tmp_path / "board", others=DATA).text
    assert said.endswith(f"2 scores reported by others on {DATA}; left out: none")
    both, rows = contents(tmp_path / "board"), read_parquet(tmp_path / "board" / "results.parquet")
    assert both.keys() - ours.keys() == {f"tables/reported_by_others.{ending}" for ending in ("md", "csv")}
    assert {name for name in ours if ours[name] != both[name]} == {"index.html", "results.parquet"}
    assert [row for row in rows if not row.reported] == read_parquet(tmp_path / "alone" / "results.parquet")
    theirs = [row for row in rows if row.reported]
    assert [(row.config, row.test, row.value) for row in theirs] == [
        ("probes-20211101-20211201", split, 30.0) for split in ("changed", "unchanged")
    ]
    for row in theirs:
        assert (row.label, row.tested) == (f"{MODEL} (reported by others)", "1112")  # the month's name in our rows
        assert (row.low, row.rank_best, row.competes, row.verified) == (None, None, False, False)
        assert row.reported.endswith(f"/datasets/{DATA}")
    list(publish_leaderboard(tmp_path / "board", "ORG/leaderboard"))
    assert "tables/reported_by_others.csv" in hub.repo("space", "ORG/leaderboard").files()


def test_a_dry_run_sends_nothing(hub: LoopbackHub, results: Path) -> None:
    [line] = publish_results(results, MODEL, dry_run=True)
    assert "would open a pull request, 'Scores on facts that changed (probes-1112, " in line
    assert "value: 30.0" in line
    assert list(hub.repo("model", MODEL).branches) == ["main"]


def test_what_cannot_be_offered(hub: LoopbackHub, results: Path, tmp_path: Path) -> None:
    hub.commit("model", "somebody/else", {"config.json": b"{}"})
    with pytest.raises(InputError, match=r"no results of somebody/else at its .* it has other/model at r, "):
        list(publish_results(results, "somebody/else"))
    with pytest.raises(InputError, match="a/b"):
        list(publish_results(results, "a/b"))
    for path in results.rglob("*.json"):  # only the model in memory is left
        if json.loads(path.read_text())["model"]["revision"] not in ("memory", "r"):
            path.rename(tmp_path / path.name)
            scored = path
    with pytest.raises(InputError, match=f"no results of {MODEL} at .* has other/model at r, {MODEL} at memory"):
        list(publish_results(results, MODEL))
    (tmp_path / scored.name).rename(scored)
    with pytest.raises(UsageError, match="a pull request has no tag"):
        list(publish_results(results, MODEL, tag="1"))
    for path in results.rglob("*.json"):
        content = json.loads(path.read_text())
        content["data"]["dataset"] = "data"
        path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=f"no scores of {MODEL} on probes-\\* of a dataset on the Hub"):
        list(publish_results(results, MODEL))
