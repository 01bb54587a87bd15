"""The card of a metric's Space, made from the description in the metric's `evaluate` module."""

from __future__ import annotations

import inspect
import shlex
from pathlib import Path

import evaluate
from huggingface_hub import SpaceCardData

from temporalwiki.base.errors import InputError
from temporalwiki.model_cards.template import fill

GRADIO = "6.31.0"  # the version of a metric's Space, as in constraints.txt
_LONGEST = 60  # characters that the Hub accepts as a short description


def metric_card(folder: Path, repo_id: str | None = None) -> str:
    """Return the card of the metric in ``folder``, which has the module FOLDER/NAME.py, named like the folder.

    ``evaluate`` loads the module, which runs its code, so use it only for your own metrics. The class's docstring must
    begin with "TITLE: SHORT DESCRIPTION." The card's text comes from the module's description, inputs_description and
    citation. ``repo_id`` is the Space that the card's example loads; None means a clone of this project.

    Raises InputError if the module is missing, cannot be loaded, or lacks a text.
    """
    folder = folder.resolve()
    name = folder.name
    metric = _load(folder)
    info = metric.info
    title, _, short = (inspect.getdoc(type(metric)) or "").partition("\n")[0].strip().rstrip(".").partition(": ")
    if not title or not short or len(short) > _LONGEST:
        raise InputError(
            f"{folder / name}.py: the docstring of {type(metric).__name__} must begin with TITLE: SHORT DESCRIPTION; "
            f"the description is shown with the Space and has at most {_LONGEST} characters"
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
    body = fill(
        "metric",
        title=title,
        description=info.description.strip(),
        requirements=_requirements(folder),
        name=name,
        place=repo_id or f"eval_harness/metrics/{name}",
        usage=info.inputs_description.strip(),
        features=info.features,
        citation=info.citation.strip(),
        links=list(filter(None, [info.homepage, *info.reference_urls, *info.codebase_urls])),
    )
    return f"---\n{settings.to_yaml()}\n---\n\n{body}\n"


def _load(folder: Path) -> evaluate.EvaluationModule:
    path = folder / f"{folder.name}.py"
    if not path.is_file():
        raise InputError(f"{folder}: no metric in it: `evaluate` loads NAME/NAME.py, and {path.name} is missing")
    try:
        return evaluate.load(str(path), keep_in_memory=True)
    except Exception as error:  # the metric's own code ran and can raise anything
        raise InputError(f"{path}: evaluate cannot load it: {type(error).__name__}: {error}") from error


def _requirements(folder: Path) -> str:
    try:
        lines = (folder / "requirements.txt").read_text("utf-8").splitlines()
    except FileNotFoundError:
        raise InputError(f"{folder}: no requirements.txt; list the packages that the metric needs in it") from None
    return shlex.join(line for line in map(str.strip, lines) if line and not line.startswith("#"))
