"""Each metric's folder is an `evaluate` module that loads from a clone, and a Space with an app."""

import doctest
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import evaluate
import pytest
import yaml

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
METRICS = ROOT / "eval_harness" / "metrics"
COMMIT = "0" * 40
ALONE = ("fuar", "knowledge_match")  # need nothing of temporalwiki
NAMES = (*ALONE, "knowledge_perplexity")


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture
def fuar() -> Any:
    return evaluate.load("eval_harness/metrics/fuar")


@pytest.fixture
def match() -> Any:
    return evaluate.load("eval_harness/metrics/knowledge_match")


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folder of a tiny model; it and a tiny T5 are in the Hub's cache under the names in the cards."""
    from huggingface_hub.constants import HF_HUB_CACHE

    import tiny_models

    folder = tmp_path_factory.mktemp("models")
    cached = []
    for kind, name in (("gpt2", "openai-community--gpt2"), ("t5", "google-t5--t5-small")):
        cached.append(Path(HF_HUB_CACHE) / f"models--{name}")
        tiny_models.save(kind, cached[-1] / "snapshots" / COMMIT)
        (cached[-1] / "refs").mkdir()
        (cached[-1] / "refs" / "main").write_text(COMMIT)
    yield tiny_models.save("gpt2", folder / "gpt2")
    for place in cached:
        shutil.rmtree(place)


def row(invariant: Any, updated: Any, new: Any) -> dict[str, Any]:
    return {"invariant": invariant, "updated": updated, "new": new}


@pytest.mark.parametrize(
    ("predictions", "references", "expected"),
    [
        ([row(18, None, 6)], [row(24, None, 2)], 1.5),  # a key that is None everywhere
        ([row(18, None, 6), row(18, 4, 6)], [row(24, None, 2), row(24, 2, 2)], 1.2),  # first None, then a number
        ([row(18, 4, 6), row(None, None, None)], [row(24, 2, 2), row(None, None, None)], 1.0),
    ],
)
def test_a_task_that_is_not_defined_arrives_as_such(
    fuar: Any, predictions: list[Any], references: list[Any], expected: float
) -> None:
    assert fuar.compute(predictions=predictions, references=references)["fuar"] == expected


def test_fuar_of_rows_that_are_added(fuar: Any) -> None:
    fuar.add(prediction=row(6, 13, 6), reference=row(20, 1, 1))
    fuar.add_batch(predictions=[row(16, 13, 6)], references=[row(18, 3, 1)])
    assert fuar.compute() == {"fuar": 0.5, "no_gain": False, "forgotten": 16, "updated": 22, "acquired": 10}


@pytest.mark.parametrize(
    ("predictions", "references"),
    [
        (["1990", "x"], ["1990.", "y"]),
        (["1990", "x"], [["1991", "1990"], ["y"]]),
        ([["1990"], ["x"]], ["1990", "y"]),
        (["1990", ["x"]], [["1991", "1990"], "y"]),
        ([("1990",), "x"], ["1990", ("y", "z", "w")]),
    ],
)
def test_knowledge_match_of_the_contract_with_strings_lists_and_both(
    match: Any, predictions: list[Any], references: list[Any]
) -> None:
    result = match.compute(predictions=predictions, references=references)
    assert result == {"exact_match": 50, "f1": 50, "precision_at_k": {1: 50}}


def test_knowledge_match_of_rankings_that_are_added(match: Any) -> None:
    match.add(prediction=["a b", "x", "y", "z", "Oslo"], reference="oslo")
    match.add_batch(predictions=["Rome", ""], references=[["Rome", "Roma"], "Oslo"])
    result = match.compute()
    assert (result["exact_match"], result["f1"]) == pytest.approx((100 / 3, 100 / 3))
    assert result["precision_at_k"] == pytest.approx({1: 100 / 3, 5: 200 / 3})


@pytest.mark.parametrize(
    ("name", "predictions", "references", "message"),
    [
        ("fuar", [row(1, 2, 3), {"invariant": 1, "updated": 2, "nwe": 3}], [row(1, 2, 3)] * 2, r"\[1\]: the keys"),
        ("fuar", [row(1, 2, 3)], None, "references: expected a list"),
        ("fuar", [], [], "no row has an invariant task"),
        ("match", ["x", []], ["x", "y"], r"predictions\[1\]: the list is empty"),
        ("match", ["x", 1], ["x", "y"], r"predictions\[1\]: expected a string or a list of strings, not int"),
        ("match", ["x"], ["x", "y"], "1 predictions and 2 references"),
        ("match", [], [], "nothing to score"),
    ],
)
def test_a_metric_names_what_is_wrong_and_goes_on(
    name: str, predictions: Any, references: Any, message: str, request: pytest.FixtureRequest
) -> None:
    metric = request.getfixturevalue(name)
    with pytest.raises(ValueError, match=message):
        metric.compute(predictions=predictions, references=references)
    right: Any = {"fuar": ([row(18, 10, 6)], [row(24, 2, 2)], 0.5), "match": (["x"], ["x"], 100)}[name]
    found = metric.compute(predictions=right[0], references=right[1])
    assert found["fuar" if name == "fuar" else "exact_match"] == right[2]


def test_knowledge_perplexity_of_the_contract(gpt2: Path, tmp_path: Path) -> None:
    """It loads from a clone and from a copy of its folder: it needs the package, but no other files of the clone."""
    probes = ["Algeria shares border with Mauritania", "Algeria shares border with Iceland"]
    copy = shutil.copytree(METRICS / "knowledge_perplexity", tmp_path / "a" / "knowledge_perplexity")
    first, second = (
        evaluate.load(str(folder)).compute(predictions=probes, model=str(gpt2))
        for folder in ("eval_harness/metrics/knowledge_perplexity", copy)
    )
    assert list(first) == ["perplexity", "perplexity_instance_mean", "bits_per_byte", "perplexities", "n_tokens"]
    assert first == second


@pytest.mark.parametrize("name", NAMES)
def test_the_card_has_what_a_space_needs_and_its_examples_are_true(name: str, request: pytest.FixtureRequest) -> None:
    if name not in ALONE:
        request.getfixturevalue("gpt2")
    folder = METRICS / name
    header, text = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)[1:]
    card = yaml.safe_load(header)
    assert card["sdk"] == "gradio" and card["app_file"] == "app.py" and {"evaluate", "metric"} <= set(card["tags"])
    assert len(card["short_description"]) <= 60  # the Hub's limit
    assert isinstance(card["python_version"], str)  # 3.10 unquoted would be 3.1
    examples = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {}, name, None, None)
    assert len(test.examples) >= 4
    assert doctest.DocTestRunner().run(test).failed == 0


# Run where temporalwiki cannot be imported. (evaluate does without transformers, and starts ten seconds sooner.)
SCRIPT = """\
import json, sys
sys.modules |= {"temporalwiki": None, "transformers": None}
import evaluate
del sys.modules["transformers"]
for path, inputs in json.loads(sys.argv[1]):
    print(json.dumps(evaluate.load(path).compute(**inputs)))
"""
CALLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "fuar": (
        {"predictions": [row(18, None, 6)], "references": [row(24, None, 2)]},
        {"fuar": 1.5, "no_gain": False, "forgotten": 6, "updated": 0, "acquired": 4},
    ),
    "knowledge_match": (
        {"predictions": ["The x", ["y"]], "references": [["X"], "z"]},
        {"exact_match": 50, "f1": 50, "precision_at_k": {"1": 50}},
    ),
}


def test_the_folder_alone_is_enough(tmp_path: Path) -> None:
    """Copies of the folders load without temporalwiki; tests/push_scripts/test_metric.py loads them from Spaces."""
    for name in ALONE:
        shutil.copytree(METRICS / name, tmp_path / "copy" / name)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps([(f"copy/{name}", CALLS[name][0]) for name in ALONE])],
        cwd=tmp_path,
        env={"HF_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [CALLS[name][1] for name in ALONE]


# JSON as the browser sends it, and the app's result or a part of its error
FUAR_INPUTS: list[tuple[Any, Any]] = [
    (CALLS["fuar"][0], CALLS["fuar"][1]),
    (
        {"predictions": [row(18, 2, 1)], "references": [row(24, 2, 2)]},
        {"fuar": "inf", "no_gain": True, "forgotten": 6, "updated": 0, "acquired": 0},
    ),
    (
        {"predictions": [row("<b>", 2, 1)], "references": [row(24, 2, 2)]},
        "predictions[0]: invariant is '&lt;b&gt;'; it must be a finite number",
    ),
    ({"predictions": [], "references": []}, "no row has an invariant task"),
    ({"predictions": [row(1, 2, 3)]}, "references: expected a list"),
    ({"predictions": 3}, "object of type 'int' has no len()"),
    ({"predictions": [row(1, 2, 3)] * 1001, "references": []}, "more than 1000 predictions are too many"),
    ([], "write an object with predictions and references"),
    ({"predictions": [], "model": "ORG/x"}, "write an object with predictions and references"),
]
MATCH_INPUTS = [
    (CALLS["knowledge_match"][0], CALLS["knowledge_match"][1]),
    ({"predictions": [""], "references": [1]}, "references[0]: expected a string or a list of strings, not int"),
]


def load_app(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the module app.py, loaded in its folder as the Space does."""
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
    spec = importlib.util.spec_from_file_location(f"{name}_app", METRICS / name / "app.py")
    assert spec and spec.loader
    app = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(app)
    assert name == app.NAME
    return app


@pytest.mark.parametrize(("name", "inputs"), [("fuar", FUAR_INPUTS), ("knowledge_match", MATCH_INPUTS)])
def test_the_app_scores_json_and_says_what_is_wrong_with_it(
    name: str, inputs: list[tuple[Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gradio")
    from gradio_client.exceptions import AppError

    app = load_app(name, monkeypatch)
    with page(app) as ask:
        for given, expected in [*inputs, ("{", "Expecting property name enclosed in double quotes")]:
            text = given if isinstance(given, str) else json.dumps(given)
            if isinstance(expected, str):
                with pytest.raises(AppError, match=re.escape(expected)):
                    ask(text)
            else:
                assert ask(text) == expected


def test_the_app_scores_probes_with_models_of_the_hub_alone(gpt2: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("gradio")
    from gradio_client.exceptions import AppError

    app = load_app("knowledge_perplexity", monkeypatch)
    compute = app.METRIC.compute
    read: list[str] = []

    def watched(**inputs: Any) -> Any:
        read.append(inputs["model"])
        return compute(**inputs)

    monkeypatch.setattr(app.METRIC, "compute", watched)
    monkeypatch.chdir(gpt2.parent)  # a folder with the name of a model
    wanted = "this is not the id of a model on the Hub"
    refused: dict[Any, str] = dict.fromkeys(("gpt2", "./gpt2", str(gpt2), "/etc", "..", "~", "a/b/c", 3, None), wanted)
    refused |= {
        "package:torch": wanted,
        "<b>": "&lt;b&gt;: this is not the id",
        "acme/none": "acme/none: cannot load a model",
        "none.gguf": "none.gguf: no such file",
        "google-t5/t5-small": "an encoder-decoder model needs objects",
    }
    lines = ["Anna was born in Norland", "<b>Norland</b> is 大"]
    with page(app) as ask:
        for model, message in refused.items():
            with pytest.raises(AppError, match=re.escape(message)):
                ask(json.dumps({"predictions": lines, "model": model}))
        found = ask(json.dumps({"predictions": lines, "model": "openai-community/gpt2"}))
    assert set(read) == {"acme/none", "none.gguf", "google-t5/t5-small", "openai-community/gpt2"}
    assert found == compute(predictions=lines, model=str(gpt2))


@contextmanager
def page(app: ModuleType) -> Iterator[Callable[[str], Any]]:
    """Run the app, and yield a function that calls it."""
    from gradio_client import Client

    _, url, _ = app.demo.launch(prevent_thread_lock=True, quiet=True, server_name="127.0.0.1")
    try:
        client = Client(url, verbose=False, analytics_enabled=False)
        yield lambda given: client.predict(given, api_name="/score")
    finally:
        app.demo.close(verbose=False)
