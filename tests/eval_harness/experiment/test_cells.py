"""The cells of an experiment: their order, and keys that change exactly if a result can change."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.eval_harness.experiment.cells import Cell, plan_cells
from temporalwiki.eval_harness.experiment.recipe import read_experiment
from temporalwiki.eval_harness.task import NothingToScoreError

from a_dataset import write_dataset
from a_folder import contents
from loopback_hub import LoopbackHub
from tiny_probes import CHANGED, OF_A_PANEL, UNCHANGED, rows

Write = Callable[..., Path]


def plan(recipe: Path) -> dict[str, Cell]:
    return {cell.name: cell for cell in plan_cells(read_experiment(str(recipe)))}


def test_each_cell_comes_after_what_it_needs(write: Write) -> None:
    found = plan(write(**{"experiment/start": {"method": "full", "config": "wikipedia-10"}}))
    tested = ("twiki_probes/probes-0910", "twiki_probes/probes-1011")
    lines = [f"{label}/{month}" for label in ("diff", "lora") for month in ("0910", "1011")]
    wanted = ["start"]
    for model in ("initial", *lines):
        wanted += [model, *(f"{model}/{test}" for test in tested)]
    assert list(found) == wanted
    assert {name: cell.needs for name, cell in found.items() if "twiki" not in name} == {
        "start": None,
        "initial": "start",
        "diff/0910": "start",
        "diff/1011": "diff/0910",
        "lora/0910": "start",
        "lora/1011": "lora/0910",
    }
    assert found["diff/1011/twiki_probes/probes-0910"].needs == "diff/1011"
    assert found["diff/1011/twiki_probes/probes-0910"].group == "diff/1011/evaluate"
    assert len({cell.note_path for cell in found.values()}) == len(found)


# what a board of known facts needs next to the methods: here without ``shuffled``, because the data has no facts-*
CONTROLS = (("initial", " at temperature 1.25"), ("initial", " with evidence"), ("untrained", ""))


def test_facts_are_asked_of_the_start_as_well(write: Write) -> None:
    """Initial says what is known before any training; the other cells depend on what all methods start from."""
    tasks = {"experiment/tasks": {"learned_and_forgotten": {}, "deleted": {}}}
    found = plan(write(**tasks))
    learned = {name for name in found if "learned_and_forgotten" in name}
    assert learned == {
        f"{label}/{month}/learned_and_forgotten/probes-{tested}"
        for label in ("diff", "lora")
        for month in ("0910", "1011")
        for tested in ("0910", "1011")
    } | {
        f"{control}/learned_and_forgotten/probes-{tested}{how}"
        for tested in ("0910", "1011")
        for control, how in (("initial", ""), *CONTROLS)
    }
    assert any(name.startswith("initial/deleted") for name in found)


def test_every_model_is_also_asked_with_passages(write: Write) -> None:
    """It reads the text of the month of the questions. Initial is now unlike the start, which reads nothing."""
    tasks = {"experiment/tasks": {"learned_and_forgotten": {}}, "experiment/months": ["0910"]}
    before = plan(write(**tasks))
    after = plan(write(**tasks, **{"experiment/retrieve": ["unchanged", "evidence"]}))
    assert before.keys() <= after.keys()
    assert {before[name].note_path for name in before} == {after[name].note_path for name in before}
    assert after.keys() - before.keys() == {
        f"{model}/learned_and_forgotten/probes-0910 with {source}"
        for model in ("initial", "diff/0910", "lora/0910")
        for source in ("unchanged-0910", "evidence")
        if (model, source) != ("initial", "evidence")  # the ceiling, which is there without being named
    }


def test_a_method_names_its_own_sources_of_passages(write: Write) -> None:
    methods = {"initial": {"retrieve": ["diffset"]}, "diff": {"retrieve": []}, "lora": None}
    tasks = {"experiment/tasks": {"learned_and_forgotten": {}}, "experiment/months": ["0910"]}
    found = plan(write(**tasks, **{"experiment/methods": methods, "experiment/retrieve": ["unchanged"]}))
    assert {name for name in found if " with " in name} == {
        f"{model}/learned_and_forgotten/probes-0910 with {source}"
        for model, source in (
            ("initial", "diffset-0910"),
            ("initial", "evidence"),  # the ceiling, which is there without being named
            ("lora/0910", "unchanged-0910"),
        )
    }


def test_controls_that_a_recipe_does_not_name_are_added(write: Write, there: Path, tmp_path: Path) -> None:
    """Controls are scored on known facts alone, also those that the recipe names."""
    data = shutil.copytree(there / "data", tmp_path / "data")
    facts = {f"facts-{month}": {"changed": rows(CHANGED)} for month in ("0910", "1011")}
    card = (data / "README.md").read_text("utf-8")
    more = write_dataset(tmp_path / "more", facts)
    shutil.copytree(more / "data", data / "data", dirs_exist_ok=True)
    listed = (more / "README.md").read_text("utf-8").removeprefix("---\nconfigs:\n")
    (data / "README.md").write_text(card.removesuffix("---\n") + listed, "utf-8")
    tasks = {"learned_and_forgotten": {}, "twiki_probes": {"answers": False, "light_tuning": False}}
    methods = {"diff": {"seeds": [3, 4]}, "random": {"method": "untrained"}}
    recipe = {"data": str(data), "months": ["0910"], "methods": methods, "tasks": tasks}
    found = plan(write(**{f"experiment/{key}": value for key, value in recipe.items()}))
    learned = "learned_and_forgotten/probes-0910"
    assert [name for name in found if name.partition("/")[0] not in ("diff-seed3", "diff-seed4")] == [
        "random",
        f"random/{learned}",
        "initial",
        f"initial/{learned}",
        f"initial/{learned} at temperature 1.25",
        f"initial/{learned} with evidence",
        "shuffled/0910",
        f"shuffled/0910/{learned}",
    ]
    assert {"diff-seed3/0910", "diff-seed4/0910"} < found.keys()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("difset", "no config 'difset-0910' (did you mean diffset-0910?)"),
        ("probes", "--retrieve probes-0910: it has no column 'text'"),
    ],
)
def test_passages_come_from_text(write: Write, source: str, says: str) -> None:
    recipe = write(**{"experiment/retrieve": [source]})
    with pytest.raises(UsageError, match=re.escape(says)):
        plan(recipe)


def test_other_text_of_passages_changes_what_reads_it(write: Write, there: Path, tmp_path: Path) -> None:
    data = shutil.copytree(there / "data", tmp_path / "data")
    recipe = write(**{"experiment/retrieve": ["unchanged"], "experiment/data": str(data)})
    before = plan(recipe)
    article = [{"id": 1, "title": "Other", "text": "Another text."}]
    write_dataset(tmp_path / "other", {"x": {"train": article}})
    (tmp_path / "other" / "data" / "x" / "train.parquet").replace(data / "data" / "unchanged-0910" / "train.parquet")
    after = plan(recipe)
    other = {name for name in before if before[name].note_path != after[name].note_path}
    assert other == {name for name in before if name.endswith(" with unchanged-0910")} != set()


def test_runs_with_other_seeds_are_other_cells(write: Write) -> None:
    found = plan(write(**{"experiment/seeds": [0, 1], "experiment/months": ["0910"]}))
    assert {name for name in found if "twiki" not in name} == {
        "initial",
        *(f"{label}-seed{seed}/0910" for label in ("diff", "lora") for seed in (0, 1)),
    }
    assert len({cell.note_path for cell in found.values()}) == len(found)


TRAINED = {"initial", "diff/0910", "diff/1011", "lora/0910", "lora/1011"}
# change in a recipe -> the trainings that are new then, with all their evaluations
CHANGES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "nothing": ({}, set()),
    "an option of all": ({"learning_rate": 0.02}, TRAINED - {"lora/0910", "lora/1011"}),  # LoRA has its own
    "a method's option": ({"methods": {"lora": {"rank": 2}}}, {"lora/0910", "lora/1011"}),
    "what changes no number": ({"micro_batch_size": 1}, set()),
    "how often it is saved": ({"save_steps": 1}, set()),
    "a later month": ({"experiment/months": ["0910"]}, set()),
    "an earlier month": ({"experiment/months": ["1011"]}, {"diff/1011", "lora/1011"}),
    "a method more": ({"experiment/methods": {"initial": None, "merge": None, "diff": None}}, set()),
    "the phase before": ({"experiment/start": {"method": "full", "config": "wikipedia-10"}}, TRAINED),
    "the past that nothing reads": ({"experiment/past": "unchanged-0910"}, set()),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_key_changes_with_what_a_checkpoint_depends_on(write: Write, case: str) -> None:
    changes, other = CHANGES[case]
    before, after = plan(write()), plan(write("changed", **changes))
    common = before.keys() & after.keys()
    assert {name for name in common & TRAINED if before[name].note_path != after[name].note_path} == other & common
    for name in common - TRAINED:
        model = name.partition("/twiki")[0]
        assert (before[name].note_path != after[name].note_path) == (model in other)


def test_a_task_changes_evaluations_alone(write: Write) -> None:
    for changes in (
        {"experiment/limit": 3},
        {"experiment/tasks": {"twiki_probes": {"answers": True, "light_tuning": False}}},
    ):
        before, after = plan(write()), plan(write("changed", **changes))
        assert {name for name in before if before[name].note_path == after[name].note_path} == TRAINED


def test_changed_data_changes_what_reads_it(write: Write, there: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(there / "data", data)
    recipe = write(**{"experiment/data": str(data)})
    before = plan(recipe)
    (data / "data" / "diffset-1011" / "train.parquet").touch()  # another time stamp, the same bytes
    assert {name: cell.note_path for name, cell in plan(recipe).items()} == {
        name: cell.note_path for name, cell in before.items()
    }
    article = [{"id": 1, "title": "Other", "text": "Another text."}]
    write_dataset(tmp_path / "other", {"x": {"train": article}})
    shutil.copy(tmp_path / "other" / "data" / "x" / "train.parquet", data / "data" / "diffset-1011" / "train.parquet")
    after = plan(recipe)
    other = {name for name in before if before[name].note_path != after[name].note_path}
    assert other == {name for name in before if name.startswith(("diff/1011", "lora/1011"))}


def test_a_task_is_scored_on_the_months_and_on_what_is_of_no_month(write: Write, tmp_path: Path) -> None:
    facts = {"unchanged": rows(UNCHANGED), "changed": rows(CHANGED)}
    write_dataset(
        tmp_path / "more", {f"probes-{name}": facts for name in ("0910", "1112", "20210901-20211001", "all")}
    )
    tasks = {"twiki_probes": {"data": str(tmp_path / "more"), "answers": False}}
    found = plan(write(**{"experiment/tasks": tasks}))
    assert [name for name in found if name.startswith("initial/")] == [
        "initial/twiki_probes/probes-0910",
        "initial/twiki_probes/probes-all",
    ]
    named = {"twiki_probes": {**tasks["twiki_probes"], "configs": ["probes-1112"]}}
    found = plan(write(**{"experiment/tasks": named}))
    assert [name for name in found if name.startswith("initial/")] == ["initial/twiki_probes/probes-1112"]


def test_two_phases_of_one_month_have_names_of_their_own(write: Write) -> None:
    phases = ["diffset-0910", "unchanged-0910", "wikipedia-11"]
    found = plan(
        write(**{"experiment/months": None, "experiment/phases": phases, "experiment/methods": {"diff": None}})
    )
    trained = [name for name in found if name.count("/") == 1]
    assert trained == ["diff/diffset-0910", "diff/unchanged-0910", "diff/11"]
    assert [name for name in found if name.startswith("diff/11/")] == ["diff/11/twiki_probes/probes-0910"]


def test_who_plans_may_be_another_machine_than_who_scores(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = write()
    before = {name: cell.note_path for name, cell in plan(recipe).items()}
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda: True)
    assert {name: cell.note_path for name, cell in plan(recipe).items()} == before


def test_a_machine_that_lacks_the_model_of_the_recipe_brings_it(
    write: Write, there: Path, hub: LoopbackHub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A checkpoint in a folder downloads nothing, but the model that the recipe names is asked for."""
    hub.commit("model", "ORG/base", contents(there / "model"))
    recipe = write(model="ORG/base")
    for number, name in enumerate(("lora/0910", "lora/1011", "lora/0910/twiki_probes/probes-0910")):
        hub.online(monkeypatch, "hf_me", tmp_path / f"another machine {number}")
        assert plan(recipe)[name].run()
    start = {"experiment/start": {"method": "lora", "config": "wikipedia-10"}}
    probes = {"probes-0910": {split: rows(facts) for split, facts in OF_A_PANEL.items()}}
    tasks = {"learned_and_forgotten": {"data": str(write_dataset(tmp_path / "panels", probes))}}
    recipe = write("start", model="ORG/base", **start, **{"experiment/tasks": tasks})
    for number, name in enumerate(("start", "diff/0910", "diff/0910/learned_and_forgotten/probes-0910")):
        hub.online(monkeypatch, "hf_me", tmp_path / f"another machine {number} with a start")
        note = plan(recipe)[name].run()
    assert note["results"]


@pytest.mark.parametrize("task", ["learned_and_forgotten", "deleted"])
def test_a_start_model_that_cannot_be_read_fails_the_cell(
    task: str, write: Write, there: Path, tmp_path: Path
) -> None:
    """A finished cell is never run again, so it must not lack scores that a repaired start model would give."""
    model = Path(shutil.copytree(there / "model", tmp_path / "model"))
    recipe = write(model=str(model), **{"experiment/tasks": {task: {}}})
    planned = plan(recipe)
    planned["diff/0910"].run()
    shutil.rmtree(model)
    with pytest.raises(InputError, match=r"model: (no such folder|cannot load a model)") as raised:
        planned[f"diff/0910/{task}/probes-0910"].run()
    assert not isinstance(raised.value, NothingToScoreError)


BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no such data": ({"experiment/data": "no/such"}, InputError, "no/such"),
    "no such model": ({"model": "no/such"}, InputError, "no/such"),
    "no such month": ({"experiment/months": ["0911"]}, UsageError, "no config 'diffset-0911' (did you mean"),
    "no such snapshot": (
        {"experiment/start": {"method": "full", "config": "wikipedia-01"}},
        UsageError,
        "wikipedia-01",
    ),
    "no such past": ({"experiment/methods": {"mix_review": {"past": "unchanged-09"}}}, UsageError, "unchanged-09"),
    "no such test": ({"experiment/tasks": {"lama": {}}}, UsageError, "lama reads invariantlama*"),
    "a config twice": (
        {"experiment/tasks": {"twiki_probes": {"configs": ["probes-0910"] * 2}}},
        UsageError,
        "named twice",
    ),
    "no such config of a task": (
        {"experiment/tasks": {"twiki_probes": {"configs": ["x"]}}},
        UsageError,
        "no config 'x'",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_not_there_is_said_before_anything_runs(write: Write, case: str, tmp_path: Path) -> None:
    changes, error, said = BAD[case]
    with pytest.raises(error) as raised:
        plan(write(**changes))
    assert said in str(raised.value)
    assert not (tmp_path / "out").exists()
