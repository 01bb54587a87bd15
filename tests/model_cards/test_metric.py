"""The card of a metric's Space is made from its module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from temporalwiki.base.errors import InputError
from temporalwiki.model_cards.metric import GRADIO, metric_card

ROOT = Path(__file__).resolve().parents[2]
METRICS = ROOT / "eval_harness" / "metrics"
MODULE = """\
import datasets
import evaluate


class Size(evaluate.{kind}):
    {doc!r}

    def _info(self):
        return evaluate.{kind}Info(
            description={description!r},
            citation={citation!r},
            inputs_description={usage!r},
            features=datasets.Features({{"predictions": datasets.Value("string")}}),
            homepage="https://example.org/size",
            reference_urls=["https://example.org/paper"],
        )

    def _compute(self, predictions):
        return {{"size": sum(map(len, predictions))}}
"""
PLAIN = {
    "kind": "Metric",
    "doc": "Size: how long texts are.\n\nMore of it.",
    "description": "\nHow many letters.\n",
    "citation": "",
    "usage": "## Inputs\n\nTexts.",
}


def write(folder: Path, module: str | None = None, **changes: str) -> Path:
    """Write the folder of a metric that differs in some texts, or has another module."""
    folder = folder / "size"
    folder.mkdir()
    (folder / "size.py").write_text(MODULE.format(**PLAIN | changes) if module is None else module, "utf-8")
    (folder / "requirements.txt").write_text("# for all\nevaluate>=0.4.6\n\n  x; python_version < '4'\n")
    return folder


def header(card: str) -> dict[str, Any]:
    settings: dict[str, Any] = yaml.safe_load(card.split("\n---\n")[0])
    return settings


@pytest.mark.parametrize("name", ["fuar", "knowledge_match", "knowledge_perplexity"])
def test_the_stored_cards_are_those_of_their_modules(name: str) -> None:
    stored = (METRICS / name / "README.md").read_bytes()
    assert stored == metric_card(METRICS / name).encode(), "write metric_card(folder) into README.md"


def test_what_it_says(tmp_path: Path) -> None:
    folder = write(tmp_path, citation="@misc{size}\n")
    settings, body = metric_card(folder, "ORG/size").split("\n---\n\n")
    assert yaml.safe_load(settings.removeprefix("---\n")) == {
        "title": "Size",
        "sdk": "gradio",
        "sdk_version": GRADIO,
        "python_version": "3.11",
        "app_file": "app.py",
        "pinned": False,
        "short_description": "How long texts are",
        "tags": ["evaluate", "metric", "temporalwiki"],
    }
    assert (
        body
        == """\
# Size

How many letters.

## Use

    pip install 'evaluate>=0.4.6' 'x; python_version < '"'"'4'"'"''

```python
>>> import evaluate
>>> size = evaluate.load("ORG/size")
```

## Inputs

Texts.

## Features

| column | as `datasets` stores it |
|---|---|
| `predictions` | `Value('string')` |

## Citation

```bibtex
@misc{size}
```

## References

- <https://example.org/size>
- <https://example.org/paper>
"""
    )


def test_the_kind_of_module_is_a_tag(tmp_path: Path) -> None:
    card = metric_card(write(tmp_path, kind="Measurement", doc=f"Size: {'x' * 60}."))
    assert header(card)["tags"][1] == "measurement"
    assert len(header(card)["short_description"]) == 60
    assert "## Citation" not in card


@pytest.mark.parametrize("title", ["yes", "- x", "a # b", "'\"{[", "</script>", "😀 名", "---", "=cmd()", "1.0"])
def test_the_title_is_data(tmp_path: Path, title: str) -> None:
    settings = header(metric_card(write(tmp_path, doc=f"{title}: {title * 2}")))
    assert settings["title"] == title
    assert settings["short_description"].lower() == title.lower() * 2
    assert settings["sdk"] == "gradio"


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no class": ({"module": "import evaluate\n"}, r"size\.py: evaluate cannot load it"),
    "no Python": ({"module": "class"}, r"size\.py: evaluate cannot load it: SyntaxError"),
    "a package that is not there": (
        {"module": "import evaluate\nimport no_such_package_of_size\n"},
        r"size\.py: evaluate cannot load it: ImportError.*no_such_package_of_size",
    ),
    "a module that is not there": (
        {"module": "import evaluate\nfrom .definition import size\n"},
        r"size\.py: evaluate cannot load it: FileNotFoundError.*definition\.py",
    ),
    "a module that stops": ({"module": "import evaluate\nraise KeyError('x')\n"}, "cannot load it: KeyError"),
    "no docstring": ({"doc": ""}, "must begin with TITLE: SHORT DESCRIPTION"),
    "no title": ({"doc": ": how long"}, "must begin with TITLE: SHORT DESCRIPTION"),
    "nothing short": ({"doc": "Size"}, "must begin with TITLE: SHORT DESCRIPTION"),
    "61 letters": ({"doc": f"Size: {'x' * 61}."}, "at most 60 characters"),
    "no description": ({"description": "\n"}, "lacks the description"),
    "no usage": ({"usage": ""}, "lacks the description or inputs_description"),
}


@pytest.mark.parametrize(("changes", "message"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_card_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        metric_card(write(tmp_path, **changes))


@pytest.mark.parametrize("missing", ["size.py", "requirements.txt"])
def test_a_file_that_is_missing(tmp_path: Path, missing: str) -> None:
    folder = write(tmp_path)
    (folder / missing).unlink()
    with pytest.raises(InputError, match=missing.replace(".", r"\.")):
        metric_card(folder)


def test_the_version_of_gradio_is_the_one_that_the_tests_use() -> None:
    assert f"gradio=={GRADIO}" in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
