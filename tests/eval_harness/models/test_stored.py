"""What stands behind a name that `evaluate` gets: a model, its results, or a log; why it cannot be read is said."""

from pathlib import Path

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.facts import identity
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.models.model import FactScore
from temporalwiki.eval_harness.models.stored import StoredScores, _LeftOut, open_scores
from temporalwiki.eval_harness.task import NothingToScoreError

import a_result


def opened(path: str) -> object:
    return open_scores(path, Path("cache"), "fp32")


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_a_damaged_result_is_named(tmp_path: Path) -> None:
    result = a_result.write_probes(tmp_path, "probes-1112", {"unchanged": a_result.facts(1), "changed": []})
    half(result.path)
    for path in (result.path, result.path.parent, tmp_path):
        with pytest.raises(InputError) as error:
            opened(str(path))
        assert str(error.value).startswith(f"{result.path}: not a result file of temporalwiki")


def test_results_of_another_task_are_said_to_be_so(tmp_path: Path) -> None:
    a_result.write_clozes(tmp_path, "newlama-1112", a_result.clozes(1))
    with pytest.raises(InputError, match="holds no results of twiki_probes, learned_and_forgotten, deleted"):
        opened(str(tmp_path))


@pytest.mark.parametrize("log", ["log.eval", "log.json", "samples_twiki_answers_changed_2026.jsonl"])
def test_a_damaged_log_is_named(log: str, tmp_path: Path) -> None:
    (tmp_path / log).write_text('{"version": 2, "eval": {\n')
    with pytest.raises(InputError, match=rf"{log}(:|, line 1:) not a (log of inspect-ai|sample of twiki_answers)"):
        opened(str(tmp_path if log.endswith("l") and "samples" in log else tmp_path / log))


@pytest.mark.parametrize("name", ["ORG/model", "gpt2", "ORG/model@main", "missing folder"])
def test_other_names_are_models(name: str) -> None:
    assert isinstance(opened(name), CachedModel)


@pytest.mark.parametrize(("asked", "split"), [(2, "unchanged"), (3, "changed")])
def test_facts_are_unscored_only_if_the_result_left_out_as_many(asked: int, split: str) -> None:
    """Other missing facts are of other data, and the result cannot stand for the model there."""
    rows = [{"subject": f"S{i}", "relation": "r", "object": "o"} for i in range(3)]
    score = FactScore(1.0, 2, 1.0, 1, 9)
    ids = [identity(row)["id"] for row in rows]
    stored = StoredScores.__new__(StoredScores)
    stored.__dict__ |= {"reference": "results", "name": "m"}
    stored.__dict__["_read"] = ({ids[0]: score}, [_LeftOut("changed", frozenset(ids[:1]), 1)])
    assert stored.stored(rows[:2], "changed") == [score, None]
    with pytest.raises(NothingToScoreError, match="are not in it, such as S1 r 'o'"):
        stored.stored(rows[:asked], split)
