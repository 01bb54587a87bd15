"""Models that know nothing lead no board."""

from typing import Any

import pytest
import torch

from temporalwiki.eval_harness.leaderboard.headline import leaders, months
from temporalwiki.eval_harness.leaderboard.rows import Row, rows
from temporalwiki.eval_harness.leaderboard.tables import TABLES
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.results import read_results
from temporalwiki.eval_harness.runner import Evaluation, evaluate
from temporalwiki.eval_harness.tasks import find_task

import tiny_models
from a_dataset import write_dataset
from tiny_probes import teach

pytestmark = pytest.mark.usefixtures("quick")
NOTHING = ("random", "untrained", "shuffled")
RELATIONS = ("capital", "mayor", "river", "port", "anthem", "bridge")  # fewer relations tell nothing apart
NAMES = ("Easton", "Weston", "Norton", "Sutton", "Anna", "Weber", "Carl", "Ito")
TASKS = ("learned_and_forgotten", "twiki_probes", "deleted", "multiple_choice", "lama", "new_questions")


def a_fact(i: int, shift: int = 0) -> dict[str, Any]:
    place, relation = i % 48, i % 3 + i // 48 * 3
    label = NAMES[(3 * place + place // 8 + shift) % len(NAMES)]
    about = {"relation": RELATIONS[relation], "relation_id": f"P{relation}"}
    return {"subject": f"Norland {place // 3}", "object": label, **about}


# The start model knows the unchanged facts and the old objects of the others.
UNCHANGED = [a_fact(i) for i in range(96) if i % 4 < 2]
CHANGED = [a_fact(i, 3) | {"previous_objects": [a_fact(i)["object"]]} for i in range(96) if i % 4 == 2]
GONE = [a_fact(i) | {"kind": "removed"} for i in range(96) if i % 4 == 3]
OLD = [a_fact(i) for i in range(96)]


def clozes(facts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        row
        | {
            "statement": f"{row['subject']} {row['relation']} <extra_id_0>",
            "question": f"{row['subject']} {row['relation']}?",
            "answers": [row["object"]],
            "old_answers": row.get("previous_objects", []),
        }
        for row in facts
    ]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """The rows of a start model, an updated one, and three that know nothing."""
    folder = tmp_path_factory.mktemp("board")
    probes: dict[str, list[dict[str, Any]]] = {
        "unchanged": [row | {"previous_objects": [row["object"]], "kind": "unchanged"} for row in UNCHANGED],
        "changed": [row | {"kind": "new_object"} for row in CHANGED],
        "deleted": [row | {"previous_objects": [row["object"]]} for row in GONE],
    }
    configs = {"updatedlama": {"test": clozes(CHANGED)}, "newquestions": {"test": clozes(CHANGED)}}
    write_dataset(folder / "data", {"probes-1112": probes, **configs})
    tokenizer = tiny_models.tokenizer("gpt2")

    def save(name: str, model: Any) -> None:
        model.eval().save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)

    model = tiny_models.model("gpt2", len(tokenizer)).eval()  # no dropout
    save("untrained", model)
    for name, facts in (("start", OLD), ("updated", UNCHANGED + CHANGED)):
        texts = [f"{row['subject']} {row['relation']} {row['object']}." for row in facts]
        save(name, teach(model, tokenizer, texts, 150, 5e-3))
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        for weights in model.parameters():
            weights.copy_(weights.flatten()[torch.randperm(weights.numel())].reshape(weights.shape))
        save("shuffled", model)
        for weights in model.parameters():
            weights.normal_()
        save("random", model)
    tasks = {name: find_task(name)() for name in TASKS}
    tasks["twiki_probes"] = find_task("twiki_probes")(light_tuning=False)  # type: ignore[call-arg]
    for name in ("start", "updated", *NOTHING):
        wanted = Evaluation(
            str(folder / name), str(folder / "data"), tasks, (), folder / "results", None, name, str(folder / "start")
        )
        evaluate(wanted, CachedModel(str(folder / name), folder / "kept"))
    return rows(read_results(folder / "results"), folder / "results")


def boards(found: list[Row]) -> dict[tuple[str, ...], list[Row]]:
    of_board: dict[tuple[str, ...], list[Row]] = {}
    for row in found:
        of_board.setdefault((row.task, row.config, row.test, row.measure), []).append(row)
    return of_board


def test_a_model_that_knows_nothing_leads_no_board(found: list[Row]) -> None:
    leading = {
        board: row.label
        for board, of_board in boards(found).items()
        for row in of_board
        if row.label in NOTHING and row.rank_best == 1 and row.rank_worst != len(of_board)
    }
    assert leading == {}
    assert {row.label for row in found} == {"start", "updated", *NOTHING}


def test_the_updated_model_leads_where_knowledge_counts(found: list[Row]) -> None:
    for board in (
        ("learned_and_forgotten", "probes-1112", "all", "new_known"),
        ("twiki_probes", "probes-1112", "changed", "object_perplexity"),
        ("multiple_choice", "probes-1112", "changed", "margin"),
    ):
        of_board = {row.label: row for row in boards(found)[board]}
        assert of_board["updated"].rank_best == 1, board


def test_models_that_know_nothing_are_at_chance_and_do_not_compete(found: list[Row]) -> None:
    known = {row.label: row for row in boards(found)["learned_and_forgotten", "probes-1112", "all", "new_known"]}
    chance = boards(found)["learned_and_forgotten", "probes-1112", "all", "chance"][0].value
    assert known["updated"].low is not None and known["updated"].low > chance
    for label in NOTHING:
        assert not known[label].competes
        assert known[label].low is not None and known[label].low <= chance


def test_none_of_them_is_above_the_others_on_the_page(found: list[Row]) -> None:
    for board, of_board in boards(found).items():
        if of_board[0].higher_is_better is not None:
            sign = 1 if of_board[0].higher_is_better else -1
            best = {True: -float("inf"), False: -float("inf")}
            for row in of_board:
                if row.competes:
                    best[row.label in NOTHING] = max(best[row.label in NOTHING], sign * row.value)
            assert best[True] <= best[False], board
    [month] = months(found)
    assert month.entries[0].line.label == "updated"
    assert [entry.line.label for entry in leaders(month.able)] == ["updated"]
    table = TABLES["learned_and_forgotten"](found)
    assert table is not None and table.lines[0][0] == "updated"


def test_absolute_measures_of_deleted_facts_and_chance_have_no_ranks(found: list[Row]) -> None:
    """A random model finds deleted facts unlikely, and chance depends on the choices only."""
    absolute = [row for row in found if row.task == "deleted" and row.measure != "let_go"]
    absolute += [row for row in found if row.measure in ("chance", "old_exact_match")]
    assert {row.measure for row in absolute} >= {"perplexity", "over_unchanged", "chance", "old_exact_match"}
    assert {(row.rank_best, row.higher_is_better, row.competes) for row in absolute} == {(None, None, False)}
    of_board = {row.label: row.value for row in boards(found)["deleted", "probes-1112", "deleted", "perplexity"]}
    assert max(of_board, key=lambda label: of_board[label]) in NOTHING  # who would lead
