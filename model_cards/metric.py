"""The card of a metric's Space, made from what the metric's `evaluate` module says of itself."""

from __future__ import annotations

import inspect
import shlex
from pathlib import Path

import evaluate  # type: ignore[import-untyped]
from huggingface_hub import SpaceCardData

from temporalwiki.base.errors import InputError

GRADIO = "6.31.0"  # the version of a metric's Space, as in constraints.txt
_SHORT = 60  # characters of a short description, which the Hub takes


def metric_card(folder: Path, repo_id: str | None = None) -> str:
    """Return the text of the card of the metric in ``folder``, whose module is FOLDER/NAME.py, NAME the folder's name.

    The module is loaded as ``evaluate`` loads it, so its code runs: the folder is one's own. Its class's docstring is
    "TITLE: what it is in at most 60 characters."; the text is its description, inputs_description and citation.
    ``repo_id`` is the Space from which the card's example loads it; None: a clone of this project.

    Raises InputError where the folder has no module, or one that cannot be loaded or that says too much or too little.
    """
    folder = folder.resolve()
    name = folder.name
    metric = _load(folder)
    info = metric.info
    title, _, short = (inspect.getdoc(type(metric)) or "").partition("\n")[0].strip().rstrip(".").partition(": ")
    if not title or not short or len(short) > _SHORT:
        raise InputError(
            f"{folder / name}.py: the docstring of {type(metric).__name__} must begin with TITLE: WHAT IT IS, "
            f"of which the second is the Space's short description, at most {_SHORT} characters"
        )
    if not info.description.strip() or not info.inputs_description.strip():
        raise InputError(f"{folder / name}.py: its info lacks the description or inputs_description for the card")
    settings = SpaceCardData(
        title=title,
        sdk="gradio",
        sdk_version=GRADIO,
        python_version="3.11",
        app_file="app.py",
        pinned=False,
        license=info.license or None,
        short_description=short[:1].upper() + short[1:],
        tags=["evaluate", info.module_type, "temporalwiki"],
    )
    place = repo_id or f"eval_harness/metrics/{name}"
    features = "\n".join(f"| `{column}` | `{feature}` |" for column, feature in info.features.items())
    parts = [
        f"---\n{settings.to_yaml()}\n---\n",
        f"# {title}\n",
        f"{info.description.strip()}\n",
        f"## Use\n\n    pip install {_requirements(folder)}\n",
        f'```python\n>>> import evaluate\n>>> {name} = evaluate.load("{place}")\n```\n',
        f"{info.inputs_description.strip()}\n",
        f"## Features\n\n| column | as `datasets` stores it |\n|---|---|\n{features}\n",
    ]
    if info.citation.strip():
        parts.append(f"## Citation\n\n```bibtex\n{info.citation.strip()}\n```\n")
    if links := list(filter(None, [info.homepage, *info.reference_urls, *info.codebase_urls])):
        parts.append("## References\n\n" + "".join(f"- <{link}>\n" for link in links))
    return "\n".join(parts)


def _load(folder: Path) -> evaluate.EvaluationModule:
    path = folder / f"{folder.name}.py"
    if not path.is_file():
        raise InputError(f"{folder}: no metric in it: `evaluate` loads NAME/NAME.py, and there is no {path.name}")
    try:
        return evaluate.load(str(path), keep_in_memory=True)
    except Exception as error:  # the metric's own code ran, and raises what it likes
        raise InputError(f"{path}: evaluate cannot load it: {type(error).__name__}: {error}") from error


def _requirements(folder: Path) -> str:
    try:
        lines = (folder / "requirements.txt").read_text("utf-8").splitlines()
    except FileNotFoundError:
        raise InputError(f"{folder}: no requirements.txt; write what the metric needs into it") from None
    return shlex.join(line for line in map(str.strip, lines) if line and not line.startswith("#"))
