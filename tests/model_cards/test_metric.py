"""The card of a metric's Space is the README.md of its folder, with the name of the Space."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from temporalwiki.base.errors import InputError
from temporalwiki.model_cards.metric import metric_card

ROOT = Path(__file__).resolve().parents[2]
METRICS = ROOT / "eval_harness" / "metrics"
MODULE = """\
import datasets
import evaluate


class Size(evaluate.Metric):
    def _info(self):
        features = datasets.Features({"predictions": datasets.Value("string")})
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=features)

    def _compute(self, predictions):
        return {"size": sum(map(len, predictions))}
"""
SETTINGS = {"sdk": "gradio", "app_file": "app.py", "short_description": "How long texts are"}


def write(folder: Path, module: str = MODULE, readme: str | None = None, **settings: Any) -> Path:
    """Write the folder of a metric."""
    folder = folder / "size"
    folder.mkdir()
    card = f'---\n{yaml.safe_dump(SETTINGS | settings)}---\n\nevaluate.load("eval_harness/metrics/size")\n'
    files = {"size.py": module, "README.md": readme or card, "requirements.txt": "evaluate\n", "app.py": ""}
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return folder


@pytest.mark.parametrize("name", ["fuar", "knowledge_match", "knowledge_perplexity"])
def test_the_card_is_the_readme_with_the_name_of_the_space(name: str) -> None:
    stored = (METRICS / name / "README.md").read_text("utf-8")
    card = metric_card(METRICS / name, f"ORG/{name}")
    assert card == stored.replace(f"eval_harness/metrics/{name}", f"ORG/{name}") != stored
    settings = yaml.safe_load(card.split("---\n")[1])
    assert f"gradio=={settings['sdk_version']}" in (ROOT / "constraints.txt").read_text("utf-8").splitlines()


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
    "61 letters": ({"short_description": "x" * 61}, "a short_description of at most 60 characters"),
    "another kind of Space": ({"sdk": "static"}, r"README\.md: it must begin with the settings of a Space: sdk"),
    "no settings": ({"readme": "# Size\n"}, "it must begin with the settings of a Space"),
    "damaged settings": ({"readme": "---\n: [\n---\n"}, "it must begin with the settings of a Space"),
}


@pytest.mark.parametrize(("changes", "message"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_card_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        metric_card(write(tmp_path, **changes), "ORG/size")


def test_the_longest_description(tmp_path: Path) -> None:
    card = metric_card(write(tmp_path, short_description="x" * 60), "ORG/size")
    assert card.endswith('\nevaluate.load("ORG/size")\n')


@pytest.mark.parametrize("missing", ["size.py", "requirements.txt", "README.md", "app.py"])
def test_a_file_that_is_missing(tmp_path: Path, missing: str) -> None:
    folder = write(tmp_path)
    (folder / missing).unlink()
    with pytest.raises(InputError, match=missing.replace(".", r"\.")):
        metric_card(folder, "ORG/size")
