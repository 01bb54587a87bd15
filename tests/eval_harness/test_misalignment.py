"""The matrix of models and months: its order and errors, transfer computed by hand, and the months of a model."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.builders.configs import SCHEMAS
from temporalwiki.eval_harness.misalignment import matrix, table, transfer
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.results import Result
from temporalwiki.eval_harness.runner import Evaluation, evaluate
from temporalwiki.eval_harness.statistics import Estimate, Transfer
from temporalwiki.eval_harness.tasks.multiple_choice import MultipleChoice

import a_result
import tiny_models
from a_dataset import write_dataset

SCORE = "average/perplexity"


def result(
    config: str,
    value: float | None,
    model: str = "base",
    method: str | None = None,
    trained_on: tuple[str, ...] = (),
    rows: str = "",
    **task: Any,
) -> Result:
    """Return a result; ``rows`` distinguishes data with the same config."""
    estimate = {"value": value, "low": None, "high": None, "items": 3, "clusters": 1}
    data = {
        "task": {"name": "twiki_probes", "version": 1, "options": {}, **task},
        "model": {"name": model, "revision": f"of {model}", "method": method, "trained_on": list(trained_on)},
        "data": {"config": config, "hash": config + rows},
        "scores": {} if value is None else {SCORE: estimate},
        "excluded": {},
    }
    return a_result.from_content(Path(f"{model}/{config}{rows}.json"), data)


def diff(month: str, config: str, value: float | None) -> Result:
    """Return the result of a model that was trained on a month."""
    return result(config, value, f"runs/diff/{month}", "diff", (f"diffset-{month}",))


# three months, and the model before them
VALUES = {
    "base": (100.0, 110.0, 120.0),
    "0809": (50.0, 90.0, 96.0),
    "0910": (60.0, 45.0, 80.0),
    "1011": (70, 54.0, 40),
}
MONTHS = ("0809", "0910", "1011")
RESULTS = [
    result(f"probes-{tested}", value) if name == "base" else diff(name, f"probes-{tested}", value)
    for name, values in VALUES.items()
    for tested, value in zip(MONTHS, values, strict=True)
]


def test_rows_are_in_the_order_of_training_and_columns_in_that_of_the_months() -> None:
    for seed in range(5):
        results = random.Random(seed).sample(RESULTS, len(RESULTS))
        found = matrix(results, "twiki_probes", SCORE)
        assert found.columns == MONTHS
        assert [row.model for row in found.rows] == ["base", *(f"runs/diff/{month}" for month in MONTHS)]
        assert [(row.method, row.month) for row in found.rows] == [
            (None, None),
            *(("diff", month) for month in MONTHS),
        ]
        assert [[cell and cell.value for cell in values] for values in found.values] == [
            list(v) for v in VALUES.values()
        ]
        assert found.values[0][0] == Estimate(100.0, None, None, items=3, clusters=1)
        assert found.methods == ["diff"]


ORDERS = {
    "around new year": ["1011", "1112", "1201", "0102"],
    "with a month left out": ["1112", "0102", "0203"],
    "months of several years": ["20201201-20210101", "20211101-20211201", "20211201-20220101", "20211201-20221201"],
    "several years and a short name": [
        "20190816-20191009",
        "20191009-20200408",
        "0809",  # of 2020
        "20200408-20210122",
    ],
    "a short name before all others": ["0809", "20200930-20201101", "20201101-20210122"],
    "a short name after all others": ["20200930-20201101", "20201101-20210122", "0102"],
    "long and short names": ["20211001-20211101", "1112", "20211201-20220101"],
}


@pytest.mark.parametrize("case", ORDERS)
def test_months_are_in_order(case: str) -> None:
    months = ORDERS[case]
    results = [diff(month, f"probes-{month}", 1.0) for month in sorted(months)]
    found = matrix(results, "twiki_probes", SCORE)
    assert list(found.columns) == months
    assert [row.month for row in found.rows] == months


# the description of a model -> its month; probes-0910 is one of the columns
TRAINED: dict[str, tuple[dict[str, Any], str | None]] = {
    "the last of several": ({"method": "lora", "trained_on": ("diffset-0809", "diffset-0910")}, "0910"),
    "by its long name": ({"method": "lora", "trained_on": ("diffset-20210901-20211001",)}, "0910"),
    "a whole snapshot": ({"method": "full", "trained_on": ("wikipedia-10",)}, "0910"),
    "and light-tuned": ({"method": "light_tuning", "trained_on": ("diffset-0910", "lighttuning-0910")}, "0910"),
    "a month without a column": ({"method": "lora", "trained_on": ("diffset-1112",)}, "1112"),
    "text of no month": ({"method": "diff", "trained_on": ("diffset-0910", "default")}, "0910"),
    "initial, whatever its folder is called": ({"model": "runs/initial-diffset-0910", "method": "initial"}, None),
    "initial, that others began with": ({"method": "initial", "trained_on": ("wikipedia-08",)}, None),
    "from the Hub, by its name": ({"model": "someone/gpt2-diffset-0910-lora"}, "0910"),
    "from the Hub": ({"model": "someone/gpt2"}, None),
    "a year in its name": ({"model": "someone/wikipedia-2022"}, None),
    "a month above it in its path": ({"model": "/diffset-0910/gpt2"}, None),
    "clozes": ({"method": "lora", "trained_on": ("updatedlama-0910",)}, "0910"),
    "easy clozes": ({"method": "lora", "trained_on": ("newlama-easy-20210901-20211001",)}, "0910"),
}


@pytest.mark.parametrize("case", TRAINED)
def test_the_month_of_a_model(case: str) -> None:
    known, month = TRAINED[case]
    found = matrix([result("probes-0910", 1.0, **known)], "twiki_probes", SCORE)
    assert [row.month for row in found.rows] == [month]
    assert found.methods == ([known["method"]] if "method" in known and month == "0910" else [])


def test_what_was_not_measured_is_none() -> None:
    results = [result("probes-0809", 1.0), result("probes-0910", None), diff("0809", "probes-0910", 2.0)]
    found = matrix(results, "twiki_probes", SCORE)
    assert [[cell and cell.value for cell in values] for values in found.values] == [[1.0, None], [None, 2.0]]


def test_models_of_one_name_are_two_rows() -> None:
    again = result("probes-0809", 3.0)
    again = a_result.changed(again, "model", revision="trained again")
    found = matrix([*RESULTS, again], "twiki_probes", SCORE)
    assert len(found.rows) == 5
    with pytest.raises(InputError, match="2 models named 'base'"):
        transfer(found, "diff", "base", higher_is_better=False)


REFUSED: dict[str, tuple[list[Result], str]] = {
    "two configs of a month": (
        [result("diffset-0809", 1.0), result("unchanged-0809", 1.0)],
        "base/diffset-0809.json, base/unchanged-0809.json: both are of base and 0809",
    ),
    "no such task": ([], "no results of twiki_probes (did you mean twiki_probs?); there are lama, twiki_probs"),
    "no such score": ([result("probes-0809", None)], "twiki_probes has no score 'average/perplexity'"),
    "no month": ([result("updated", 1.0)], "base/updated.json: the config updated has no month in its name"),
    "a model twice": (
        [result("probes-0809", 1.0), result("probes-20210801-20210901", 1.0)],
        "base/probes-0809.json, base/probes-20210801-20210901.json: both are of base and 2021",
    ),
    "other rows": (
        [result("probes-0809", 1.0), result("probes-0809", 1.0, "other", rows="-limit")],
        "base/probes-0809.json, other/probes-0809-limit.json: not the same questions about 0809",
    ),
    "another version": (
        [result("probes-0809", 1.0), result("probes-0809", 1.0, "b", version=2)],
        "not the same quest",
    ),
    "other options": (
        [result("probes-0809", 1.0), result("probes-0809", 1.0, "b", options={"beams": 2})],
        "not the same questions",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_arranged_is_named(case: str) -> None:
    results, said = REFUSED[case]
    others = [result("probes-0809", 1.0, name=name) for name in ("twiki_probs", "lama")]
    with pytest.raises(InputError) as error:
        matrix([*results, *others], "twiki_probes", SCORE)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_transfer_by_hand() -> None:
    """Lower is better. Backward: 50 - 70 and 45 - 54. Forward: 110 - 90 and 120 - 80. Best before: 50 and 45."""
    found = matrix(RESULTS, "twiki_probes", SCORE)
    diagonal, of = transfer(found, "diff", "base", higher_is_better=False)
    assert diagonal == (50 + 45 + 40) / 3
    assert of == Transfer((-20 - 9) / 2, (20 + 40) / 2, (20 + 9) / 2)
    _, of = transfer(found, "diff", "base", higher_is_better=True)
    assert (of.backward, of.forward) == ((20 + 9) / 2, (-20 - 40) / 2)
    _, of = transfer(found, "diff", higher_is_better=False)
    assert (of.forward, of.backward) == (None, -14.5)


def test_transfer_reads_the_months_that_a_method_was_trained_on() -> None:
    """Transfer with missing cells: the model of 0910 is missing, and 1011 has no score on probes-1112."""
    results = [r for r in RESULTS if r.data["model"]["name"] != "runs/diff/0910"]
    results += [diff(month, "probes-1112", 7.0) for month in ("0809", "1011")]
    diagonal, of = transfer(matrix(results, "twiki_probes", SCORE), "diff", "base", higher_is_better=False)
    assert (diagonal, of.backward, of.forward) == (45, -20, 120 - 96)


def test_transfer_says_what_it_lacks() -> None:
    found = matrix(RESULTS, "twiki_probes", SCORE)
    with pytest.raises(InputError, match="lora: no model of the months 0809, 0910, 1011"):
        transfer(found, "lora", higher_is_better=False)
    with pytest.raises(InputError, match="0 models named 'initial'"):
        transfer(found, "diff", "initial", higher_is_better=False)
    again = result("probes-0809", 1.0, "runs/again", "diff", ("diffset-0809",))
    with pytest.raises(InputError, match="diff: two models of 0809, one of them runs/diff/0809"):
        transfer(matrix([*RESULTS, again], "twiki_probes", SCORE), "diff", higher_is_better=False)


def test_the_table() -> None:
    results = [result("probes-0809", 1234.5678), *RESULTS[1:3], diff("0910", "probes-0910", 45.0)]
    assert table(matrix(results, "twiki_probes", SCORE)).splitlines() == [
        "model           method  month      0809    0910    1011",
        "base                           1,234.57  110.00  120.00",
        "runs/diff/0910  diff    0910              45.00",
    ]


# The months that a model was trained on


def manifest(folder: Path, model: Path | str, config: str, method: str = "lora", steps: int | None = 3) -> Path:
    """Write a checkpoint's training.json."""
    folder.mkdir(parents=True, exist_ok=True)
    run = {"method": method, "model": str(model), "data": "data", "config": config}
    content = {"run": run, "architecture": "decoder-only"} | ({"steps": steps} if steps else {})
    (folder / "training.json").write_text(json.dumps(content))
    return folder


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset folder with one month of probes."""
    schema = SCHEMAS["probes"]
    facts = [("Norland", "Anna Weber", ["Ben Ito"]), ("Easton", "Carl", ["Dee", "Ben Ito"]), ("Weston", "Dee", [])]
    rows = [
        dict.fromkeys(schema.names)
        | {"subject": s, "relation": "head", "object": o, "previous_objects": previous, "subject_id": f"Q{i}"}
        for i, (s, o, previous) in enumerate(facts)
    ]
    table = pa.Table.from_pylist(rows, schema=schema)
    return write_dataset(tmp_path_factory.mktemp("data") / "temporalwiki", {"probes-1112": {"changed": table}})


def test_a_result_says_what_its_model_was_trained_on(probes: Path, tmp_path: Path) -> None:
    """A result is found again after the training manifests are removed: they are not part of its key."""
    folder = tiny_models.save("gpt2", tmp_path / "model")
    manifest(folder, manifest(tmp_path / "before", "gpt2", "diffset-1011"), "diffset-1112", "recadam")

    def evaluated() -> Result:
        model = CachedModel(str(folder), tmp_path / "scores")
        tasks = {"multiple_choice": MultipleChoice()}
        [found] = evaluate(Evaluation(str(folder), str(probes), tasks, (), tmp_path / "results", None), model)
        return found

    found = evaluated()
    assert found.data["model"]["method"] == "recadam"
    assert found.data["model"]["trained_on"] == ["diffset-1011", "diffset-1112"]
    assert found.data["excluded"] == {"changed: no previous object that is wrong now": 1}
    assert [len(item["choices"]) for item in found.items()] == [2, 3]
    [row] = matrix([found], "multiple_choice", "changed/acc").rows
    assert row == (str(folder), found.data["model"]["revision"], "recadam", "1112")
    (tmp_path / "before" / "training.json").unlink()
    assert evaluated() == found
