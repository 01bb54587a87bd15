"""`temporalwiki cutoff` as a command: what it prints and writes, and one clear line for each error."""

import json
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from an_interface import client

from temporalwiki.builders.after_cutoff import read_cutoff

import tiny_models
from a_completions_server import Completions
from a_dataset import write_dataset
from tiny_probes import forward_passes

Run = Callable[..., tuple[int, str, str]]

MONTHS = ["2021-02", "2021-03"]
UNKNOWN = {"cutoff": None, "low": None, "high": None, "verdict": "cannot tell"}


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model that has not read anything, and a dataset of two months with three changes each."""

    configs = {}
    for month in (2, 3):
        row = {"relation": "mayor", "object": "Anna Weber", "previous_objects": [f"Carl Ito {month}"]}
        rows = [{"subject": f"Town {number}", **row} for number in range(3)]
        configs[f"probes-20210{month}01-20210{month + 1}01"] = {"changed": rows}
    write_dataset(tmp_path / "data", configs)
    write_dataset(tmp_path / "other", {"news": {"train": [{"text": "x"}]}})
    tiny_models.save("gpt2", tmp_path / "gpt2")
    (tmp_path / "file").write_text("x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("temporalwiki.eval_harness.models.cache.cache_folder", lambda: tmp_path / "scores")
    return tmp_path


@pytest.mark.parametrize("models", [["ORG/m"], ["ORG/m", "other"]])
def test_graded_answers_of_one_model_or_several(models: list[str], run: Run, there: Path) -> None:
    lines = ["model,form,date,topic,grade,advertised"]
    for model, month, number, form in product(models, range(1, 13), range(8), ("open", "choice")):
        known = month <= 6 if number else month > 6
        lines.append(f"{model},{form},2024-{month:02}-01,{number % 2},{'right' if known else 'wrong'},2024-08")
    (there / "graded.csv").write_text("\n".join(lines) + "\n")
    status, out, _ = run("cutoff", "--answers", "graded.csv", "--output", "out")
    assert status == 0
    assert "ORG/m knows what changed up to June 2024 " in out.splitlines()[0]
    for model, name in zip(models, ("ORG--m", "other"), strict=False):
        folder = there / "out" / (name if len(models) > 1 else ".")
        written = json.loads((folder / "cutoff.json").read_text("utf-8"))
        assert (written["model"], written["overall"]["cutoff"]) == (model, "2024-06")
        assert written["advertised"] == "2024-08"
        items = (folder / "cutoff_items.csv").read_text().splitlines()
        assert items[0] == "month,form,topic,event,outcome"
        assert re.fullmatch(r"2024-01,open,0,row \d+,wrong", items[1])
        assert len(items) == 1 + 12 * 8 * 2
        assert list(written["forms"]) == ["choice", "open"]
        assert list(written["topics"]) == ["0", "1"]
        assert len(written["curve"]) == 12
    assert len(list((there / "out").rglob("cutoff.svg"))) == len(models)


def test_it_writes_the_cutoff_and_a_chart_and_says_them(run: Run, there: Path) -> None:
    status, out, _ = run("cutoff", "gpt2", "--data", "data", "--topics", "relation", "--output", "out")
    assert status == 0
    assert out.splitlines()[0].startswith("gpt2 cannot tell")
    assert out.splitlines()[1].startswith("  mayor: cannot tell")
    written = json.loads((there / "out" / "cutoff.json").read_text("utf-8"))
    assert list(written) == ["curve", "data", "evidence", "forms", "model", "overall", "topics"]
    assert written["forms"] == {"likelihoods": UNKNOWN}
    assert (written["data"], written["evidence"]) == ("data", {"facts": 6})
    assert (written["model"], written["overall"], written["topics"]) == ("gpt2", UNKNOWN, {"mayor": UNKNOWN})
    assert [point["month"] for point in written["curve"]] == MONTHS
    for point in written["curve"]:
        assert sorted(point) == ["high", "items", "known", "low", "month"]
        assert 0 <= point["low"] <= point["known"] <= point["high"] <= 1
        assert point["items"] == 3
    assert read_cutoff(there / "out" / "cutoff.json").overall.verdict == "cannot tell"
    before = (there / "out" / "cutoff.svg").read_bytes()
    assert before.startswith(b"<?xml")
    with forward_passes() as passes:  # the second run finds all scores
        assert run("cutoff", "gpt2", "--data", "data", "--topics", "relation", "--output", "out")[0] == 0
    assert passes == []
    assert (there / "out" / "cutoff.svg").read_bytes() == before


def test_only_some_months(run: Run, there: Path) -> None:
    assert run("cutoff", "gpt2", "--data", "data", "--from", "2021-03", "--to", "2021-03")[0] == 0
    written = json.loads((there / "cutoff" / "cutoff.json").read_text("utf-8"))
    assert [point["month"] for point in written["curve"]] == ["2021-03"]
    assert written["topics"] == {}


def test_a_panel_is_written_down(run: Run, there: Path) -> None:
    assert run("cutoff", "gpt2", "--data", "data", "--panel", "gpt2=2021-02")[0] == 0
    written = json.loads((there / "cutoff" / "cutoff.json").read_text("utf-8"))
    assert (written["panel"], written["evidence"]) == ({"gpt2": "2021-02"}, {"facts": 3})  # it may know February


def test_a_model_of_a_provider_is_asked(run: Run, there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = "temporalwiki.eval_harness.models.server.InterfaceModel._model"
    monkeypatch.setattr(asked, client(lambda _: "Anna Weber"))
    status, out, err = run("cutoff", "mockllm/model", "--data", "data")
    assert status == 0
    assert out.startswith("mockllm/model cannot tell")
    assert "3 requests" in err  # the towns of both months are the same
    assert json.loads((there / "cutoff" / "cutoff.json").read_text("utf-8"))["model"] == "mockllm/model"


def test_a_model_on_a_server_gives_likelihoods(run: Run, there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "vllm-completions/ORG/model"
    monkeypatch.setattr(
        "temporalwiki.eval_harness.models.completions.CompletionsModel._opened",
        lambda *_, **__: Completions().opened(name),
    )
    status, out, err = run("cutoff", name, "--data", "data")
    assert status == 0
    assert out.startswith(f"{name} cannot tell")
    assert "11 requests" in err  # three towns with the new mayor and two old ones, and the trial
    assert json.loads((there / "cutoff" / "cutoff.json").read_text("utf-8"))["evidence"] == {"facts": 6}
