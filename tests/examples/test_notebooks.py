"""Each notebook runs from first to last cell, offline, and shows the tables and pictures that it has stored."""

import json
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

pytest.importorskip("spacy", reason="spacy, which the notebooks' tiny model comes with, is not installed")

from documents import ROOT
from notebooks import data, html, run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick")]

FOLDER = ROOT / "examples" / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all notebooks, as a reader has it: each keeps the data that an earlier one built."""
    return tmp_path_factory.mktemp("notebooks")


def shown(name: str, there: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.chdir(there)
    monkeypatch.setattr("temporalwiki.eval_harness.models.cache.cache_folder", lambda: there / "scores")
    mpl.use("Agg")
    values = run(FOLDER / f"{name}.ipynb")
    assert [words(data(value)) for value in values] == [words(one) for one in stored(name)], (
        "python tests/notebooks.py"
    )
    return values


def stored(name: str) -> list[dict[str, Any]]:
    """Return what each cell of code that shows something has stored, by the type of its content."""
    notebook = json.loads((FOLDER / f"{name}.ipynb").read_text("utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    return [output["data"] for cell in code for output in cell["outputs"]]


def words(content: dict[str, Any]) -> tuple[set[str], list[str]]:
    """Return the types of an output, and the heads of its table: its numbers may differ on another processor."""
    return set(content), re.findall(r"<th[^>]*>([^<\d]*)<", "".join(content.get("text/html", "")))


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_stored_without_paths_of_a_machine(name: str) -> None:
    text = (FOLDER / f"{name}.ipynb").read_text("utf-8")
    assert len(text) < 500_000 and len(stored(name)) >= 5
    pictures = re.compile(r"base64,[^\"\\]*|\"image/png\": \"[^\"]*")
    assert not re.search(r"/(?:home|root|tmp|work|Users|usr|mnt)\b", pictures.sub("", text))


def test_publish_a_month(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built, diffset, probes, chart, sizes, steps = shown("publish_a_month", there, monkeypatch)
    rows = {(row["short_name"], row["split"]): row["rows"] for row in built.rows}
    assert len(diffset) == len(probes) == 5 < min(rows["diffset-1112", "train"], rows["probes-1112", "changed"])
    assert [bar.get_height() for bar in chart.containers[1]][-1] == rows["probes-1112", "changed"]
    assert list(sizes.index) == ["20211001", "20211101", "20211201"]
    assert sizes.loc["20211201", "articles"] == rows["diffset-1112", "train"]
    said = [row["step"].strip() for row in steps.rows]
    assert [line for line in said if line.startswith("tag ")] == ["tag 2021.10", "tag 2021.11", "tag 2021.12"]
    assert said[-1].endswith("dry run, nothing was sent")


def test_train_and_compare(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built, loss, scores, cells, table = shown("train_and_compare", there, monkeypatch)
    assert (there / "temporalwiki" / "README.md").is_file() and built.rows
    first, *_, last = loss.lines[0].get_ydata()
    assert last < first
    assert {"all/new_known", "all/old_known", "all/learned", "all/forgotten"} <= set(scores.scores)
    assert {row["state"] for row in cells.rows} == {"done"}
    assert html(cells).startswith('<img alt="learned_and_forgotten" src="data:image/png;base64,')
    labels = ("diff", "replay", "lora", "initial", "initial, temperature 1.25", "shuffled", "untrained")
    found = {(row.label, row.measure) for row in table.itertuples()}
    assert found >= {(label, measure) for label in labels for measure in ("new_known", "old_known")}


def test_score_a_model(there: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, found, chart, changed, known = shown("score_a_model", there, monkeypatch)
    assert changed == found.scores["changed/perplexity"]
    assert changed.low < changed.value < changed.high
    assert changed.value > found.scores["unchanged/perplexity"].value, "the model has not read what changed"
    assert len(chart.patches) == 3  # changed, unchanged and their average
    assert [row["month"] for row in known.rows] == ["2021-09", "2021-10", "2021-11"]  # between the snapshots
    assert html(known).startswith('<img alt="cutoff" src="data:image/svg+xml;base64,')
