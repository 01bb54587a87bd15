"""What a recipe of an experiment may contain, and one-line errors for everything else."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from temporalwiki.base.errors import UsageError
from temporalwiki.builders.ckl.kilt import NAMES as KILT
from temporalwiki.eval_harness.experiment.recipe import read_experiment
from temporalwiki.methods.recipes import names, read_recipe

from a_dataset import write_dataset

Write = Callable[..., Path]


def test_a_method_has_a_line_of_checkpoints_one_a_month(write: Write) -> None:
    recipe = write(
        **{
            "methods": {"recadam": {"gamma": 7.0}},
            "experiment/methods": {
                "initial": None,
                "full": None,
                "diff": None,
                "recadam": {"k": 0.1, "seed": 3},
                "adapters": {"method": "k_adapter", "k": 3, "past": "unchanged-0910"},
            },
        }
    )
    lines = {line.label: line for line in read_experiment(str(recipe)).lines}
    assert {label: line.configs for label, line in lines.items()} == {
        "initial": ("diffset-0910",),  # it trains nothing: one checkpoint for all months
        "full": ("wikipedia-10", "wikipedia-11"),  # a whole snapshot belongs to one month
        "diff": ("diffset-0910", "diffset-1011"),
        "recadam": ("diffset-0910", "diffset-1011"),
        "adapters": ("diffset-0910", "diffset-1011"),
    }
    assert {label: line.name for label, line in lines.items() if line.name != label} == {"adapters": "k_adapter"}
    recadam: Any = lines["recadam"].method
    assert (recadam.gamma, recadam.k, lines["recadam"].options.seed) == (7.0, 0.1, 3)
    assert (lines["diff"].options.seed, lines["diff"].options.learning_rate) == (0, 0.01)
    assert (lines["adapters"].past, lines["diff"].past) == ("unchanged-0910", None)


def test_seeds_are_runs_of_every_method_that_trains(write: Write) -> None:
    recipe = write(**{"experiment/seeds": [0, 7], "experiment/methods": {"initial": None, "diff": {"seed": 3}}})
    lines = [(line.label, line.run, line.options.seed) for line in read_experiment(str(recipe)).lines]
    assert lines == [("initial", "", 0), ("diff", "-seed0", 0), ("diff", "-seed7", 7)]


def test_phases_are_configs_of_any_name(write: Write) -> None:
    recipe = write(**{"experiment/months": None, "experiment/phases": ["recentnews-small-p1", "recentnews-small-p2"]})
    experiment = read_experiment(str(recipe))
    assert experiment.months == ()
    assert [line.configs for line in experiment.lines if line.label == "diff"] == [
        ("recentnews-small-p1", "recentnews-small-p2")
    ]


def test_a_long_interval_is_a_month(write: Write) -> None:
    recipe = write(**{"experiment/months": ["20210901-20211001"], "experiment/methods": {"diff": None, "full": None}})
    configs = [line.configs for line in read_experiment(str(recipe)).lines]
    assert configs == [("diffset-20210901-20211001",), ("wikipedia-20211001",)]


def test_months_that_go_on_are_those_that_the_data_has_by_now(write: Write, there: Path, tmp_path: Path) -> None:
    recipe = write(
        **{
            "experiment/data": str(tmp_path / "data"),
            "experiment/months": {"since": "20211101-20211201"},
            "experiment/methods": {"diff": None, "full": None},
        }
    )
    articles = [{"id": 1, "title": "Page", "text": "Text."}]
    kinds = ("diffset-20211001-20211101", "diffset-20211101-20211201", "diffset-1112", "wikipedia-20220101")
    later = ("diffset-20211201-20220101", "diffset-1201", "unchanged-20220101-20220201")
    for names_, months in (
        (kinds, ("20211101-20211201",)),
        (
            (*later, *kinds),
            ("20211101-20211201", "20211201-20220101"),
        ),  # in order of time, not in the order of the data
    ):
        write_dataset(tmp_path / "data", {name: {"train": articles} for name in names_})
        experiment = read_experiment(str(recipe))
        assert experiment.months == months
        assert [line.configs for line in experiment.lines] == [
            tuple(f"diffset-{month}" for month in months),
            tuple(f"wikipedia-{month[9:]}" for month in months),
        ]


def test_months_that_go_on_begin_with_one_that_is_there(write: Write, there: Path) -> None:
    with pytest.raises(UsageError, match=r"has no diffset-20211101-20211201 to begin with"):
        read_experiment(str(write(**{"experiment/months": {"since": "20211101-20211201"}})))


def test_the_phase_before_all_others(write: Write) -> None:
    start = read_experiment(
        str(write(**{"experiment/start": {"method": "full", "config": "wikipedia-09", "epochs": 4}}))
    ).start
    assert start is not None
    assert (start.name, start.configs, start.options.epochs, start.options.batch_size) == (
        "full",
        ("wikipedia-09",),
        4,
        2,
    )


def test_a_task_may_be_scored_on_data_of_its_own(write: Write) -> None:
    tasks = {"lama": {"data": "ckl", "configs": ["invariantlama"], "candidates": 0}, "twiki_probes": None}
    experiment = read_experiment(str(write(**{"experiment/tasks": tasks})))
    lama, probes = experiment.tasks
    assert (lama.name, lama.data, lama.configs, lama.task.candidates) == ("lama", "ckl", ("invariantlama",), 0)
    assert (probes.name, probes.data, probes.configs) == ("twiki_probes", experiment.data, ())


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no experiment": ({"experiment": None}, "no key `experiment`"),
    "a list": ({"experiment": [1]}, "no key `experiment`"),
    "unknown key": ({"experiment/month": ["1112"]}, "no key 'month' (did you mean months?)"),
    "no model": ({"model": None}, "model: Expected `str`, got `null`"),
    "a model that is a number": ({"model": 3}, "model: Expected `str`, got `int`"),
    "no data": ({"experiment/data": None}, "experiment: Object missing required field `data`"),
    "neither months nor phases": ({"experiment/months": None}, "either `months`"),
    "both": ({"experiment/phases": ["x"]}, "either `months`"),
    "a month that is a number": ({"experiment/months": [1112]}, "months: 1112 is not an interval"),
    "a month that YAML read as octal": ({"experiment/months": [0o112]}, "YAML reads 0112 as a number"),
    "a month of a path": ({"experiment/months": ["../x"]}, "'../x' is not an interval"),
    "a month twice": ({"experiment/months": ["1112", "1112"]}, "is listed twice"),
    "a seed twice": ({"experiment/seeds": [1, 1]}, "a seed is listed twice"),
    "no seeds": ({"experiment/seeds": []}, "Expected `array` of length >= 1 - at `seeds`"),
    "a seed that is too large": ({"experiment/seeds": [1 << 32]}, "Expected `int` <= 4294967295 - at `seeds[0]`"),
    "months are not a list": ({"experiment/months": "1112"}, "months: Expected `array | null`, got `str`"),
    "months since a short name": ({"experiment/months": {"since": "1112"}}, "long name of the first one"),
    "months since nothing": ({"experiment/months": {}}, "long name of the first one"),
    "months since and until": (
        {"experiment/months": {"since": "20211101-20211201", "until": "x"}},
        "long name of the first one",
    ),
    "no methods": ({"experiment/methods": {}}, "methods: the list is empty"),
    "methods that are a list": ({"experiment/methods": ["diff"]}, "Expected `object`, got `array` - at `methods`"),
    "unknown method": ({"experiment/methods": {"recadm": None}}, "no method 'recadm' (did you mean recadam?)"),
    "a label that leaves the folder": ({"experiment/methods": {"../x": {"method": "diff"}}}, "'../x' is not a name"),
    "a label that is taken": ({"experiment/methods": {"start": {"method": "diff"}}}, "'start' is not a name"),
    "the same twice": (
        {"experiment/methods": {"diff": None, "again": {"method": "diff"}}},
        "diff and again are the same",
    ),
    "unknown option of a method": (
        {"experiment/methods": {"lora": {"rnk": 2}}},
        "no option 'rnk' (did you mean rank?)",
    ),
    "option of another type": ({"experiment/methods": {"lora": {"rank": "x"}}}, "rank must be a whole number"),
    "unknown option of training": ({"lerning_rate": 1.0}, "no option 'lerning_rate' (did you mean learning_rate?)"),
    "a start without config": ({"experiment/start": {"method": "full"}}, "start: config: Expected `str`, got `null`"),
    "no tasks": ({"experiment/tasks": None}, "experiment: Object missing required field `tasks`"),
    "unknown task": ({"experiment/tasks": {"twiki_probs": {}}}, "no task 'twiki_probs' (did you mean twiki_probes?)"),
    "unknown option of a task": (
        {"experiment/tasks": {"lama": {"beam": 2}}},
        "no option 'beam' (did you mean beams?)",
    ),
    "a source of passages twice": ({"experiment/retrieve": ["evidence", "evidence"]}, "retrieve from is listed twice"),
    "a source is not a list": ({"experiment/retrieve": "evidence"}, "Expected `array`, got `str` - at `retrieve`"),
    "a method's source twice": (
        {"experiment/methods": {"diff": {"retrieve": ["evidence", "evidence"]}}},
        "retrieve from is listed twice",
    ),
    "a limit of nothing": ({"experiment/limit": 0}, "Expected `int` >= 1 - at `limit`"),
    "engines that are text": (
        {"experiment/engines": {"slurm": "gpu"}},
        "Expected `object | null`, got `str` - at `engines[...]`",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_used_is_said(write: Write, case: str) -> None:
    changes, said = BAD[case]
    recipe = write(**changes)
    with pytest.raises(UsageError) as raised:
        read_experiment(str(recipe))
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_recipe_that_is_no_mapping_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text("- 1\n")
    (tmp_path / "code.yaml").write_text("!!python/object/apply:os.system ['true']\n")
    for path in ("list.yaml", "code.yaml"):
        with pytest.raises(UsageError, match=path):
            read_experiment(str(tmp_path / path))
    with pytest.raises(UsageError, match="did you mean temporalwiki-gpt2-large"):
        read_experiment("temporalwiki-gpt2-larg")


@pytest.mark.parametrize("name", names())
def test_recipes_that_come_with_the_package_hold_an_experiment_that_can_be_read(name: str) -> None:
    if "experiment" in read_recipe(name, None):
        experiment = read_experiment(name)
        assert experiment.lines[0].label == "initial"
        assert experiment.tasks


def test_both_papers_have_their_experiment() -> None:
    paper = read_experiment("temporalwiki-gpt2-large")
    assert paper.months == ("0809", "0910", "1011", "1112")
    assert [line.label for line in paper.lines] == [
        "initial", "full", "diff", "recadam", "mix_review", "lora", "k_adapter",
    ]  # fmt: skip
    for line in paper.lines:
        assert (line.options.batch_size, line.options.sequence_length, line.options.learning_rate) == (64, 512, 1e-4)
    ckl = read_experiment("ckl-t5-large")
    assert [line.label for line in ckl.lines] == [
        "initial", "vanilla", "recadam", "mix_review", "lora", "k_adapter-2", "k_adapter-3", "modular",
    ]  # fmt: skip
    for line in ckl.lines:
        assert (line.options.batch_size, line.options.learning_rate, line.options.epochs) == (60, 1e-3, 4)
    two_phases = read_experiment("ckl-t5-large-small")  # table 3
    assert [(task.name, task.configs) for task in two_phases.tasks] == [
        ("lama", ("invariantlama", "newlama-easy-small-p1", "newlama-easy-small-p2"))
    ]
    kilt = read_experiment("ckl-t5-large-kilt")  # table 8, of the checkpoints of table 2
    assert (kilt.output, kilt.lines) == (ckl.output, ckl.lines)
    assert [(task.name, task.configs) for task in kilt.tasks] == [("kilt", tuple(f"kilt-{name}" for name in KILT))]
    tasks = read_experiment("ckl-gpt2-large").tasks  # light-tuned, and scored on these two
    assert [(task.name, task.configs) for task in tasks] == [
        ("lama", ("invariantlama",)), ("new_questions", ("newquestions-easy",)),
    ]  # fmt: skip
    assert all(task.task.recorded_options()["light_tuning"] == 5000 for task in tasks)


def test_ticlms_strongest_setting_lowers_the_rate_from_month_to_month_and_replays_half() -> None:
    lines = {line.label: line for line in read_experiment("ticlm-gpt2-large").lines}
    trained = [line for line in lines.values() if line.method.trains and not line.added]
    assert {line.label: (line.options.schedule, line.options.learning_rate) for line in trained} == {
        "cyclic": ("cosine", 1e-4),
        "autoregressive": ("cosine_ar", 3e-4),
        "rsqrt": ("rsqrt", 1e-3),
        "lwf": ("cosine", 1e-4),
        "replay": ("cosine_ar", 3e-4),
    }
    assert asdict(lines["replay"].method) == {"share": 0.5}


def test_the_methods_of_the_demo_are_trained_alike_in_both_of_its_recipes() -> None:
    demo, more = read_experiment("demo"), read_experiment("demo-methods")
    assert (demo.model, demo.data, demo.months) == (more.model, more.data, more.months)
    lines = {line.label: line for line in more.lines if line.options.seed == 0}
    for line in demo.lines:
        if line.options.seed == 0:
            assert replace(lines[line.label], run="", retrieve=()) == replace(line, run="", added=False)
