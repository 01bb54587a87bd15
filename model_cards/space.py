"""The card of the leaderboard's Space, made from the results that it shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from huggingface_hub import SpaceCardData
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from temporalwiki.eval_harness.results import COMMIT, Result

_IN_CODE = str.maketrans("`|\\", "'/∖")  # what ends the code or the cell, and what might keep them from ending


def space_card(title: str, results: Sequence[Result]) -> str:
    """Return the text of the card: the Space's settings, what was evaluated on which data, and what is in the folder.

    It is a static Space, whose page is the leaderboard's. The order of the results does not matter.
    """
    models = {(result.data["model"]["name"], result.data["model"]["revision"]) for result in results}
    settings = SpaceCardData(
        title=_one_line(title),
        sdk="static",
        app_file="index.html",
        pinned=False,
        license="apache-2.0",
        short_description="Language models that are kept up to date, compared",
        tags=["leaderboard", "temporalwiki", "continual-learning", "knowledge"],
        models=sorted({name for name, revision in models if COMMIT.fullmatch(revision) and _is_hub_id(name)}) or None,
        datasets=sorted({named for result in results if (named := _dataset_of(result))}) or None,
    )
    return f"""---
{settings.to_yaml()}
---

# Leaderboard

Scores of language models on what Wikipedia and Wikidata say now and said before, month by month, each with a 95 %
interval, and ranks that say which differences are more than chance. Made by `temporalwiki leaderboard`.

- `index.html`: the leaderboard. It opens from disk, too, and asks nothing of any network.
- `results.parquet`: all scores, one a row.
- `tables/`: tables as Markdown and CSV. `figures/`: figures as PNG and SVG.
{_evaluated(results, len(models))}"""


def _evaluated(results: Sequence[Result], models: int) -> str:
    """Return the table of what models were asked: a row a config and the data that it was read from."""
    asked: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for result in results:
        data = result.data["data"]
        asked.setdefault((data["config"], _shown(data["dataset"]), data["hash"]), []).append(result.data)
    if not asked:
        return ""
    rows = []
    for (config, dataset, rows_of_data), of in sorted(asked.items()):
        tasks = sorted({f"{one['task']['name']} {one['task']['version']}" for one in of})
        count = len({(one["model"]["name"], one["model"]["revision"]) for one in of})
        items = max(sum(one["data"]["rows"].values()) for one in of)
        cells = [_code(config), ", ".join(map(_code, tasks)), _code(dataset), f"{items:,}", _code(rows_of_data)]
        rows.append(f"| {' | '.join(cells)} | {count:,} |")
    versions = sorted({version for result in results if (version := result.data.get("run", {}).get("temporalwiki"))})
    made = f", by temporalwiki {', '.join(map(_code, versions))}" if versions else ""
    body = "\n".join(rows)
    return f"""
## What was evaluated

{_counted(len(results), "result")} of {_counted(models, "model")}{made}.
A task's number is its version; data with the same hash are the same rows.

| config | tasks | data | rows | hash | models |
|---|---|---|---:|---|---:|
{body}
"""


def _dataset_of(result: Result) -> str | None:
    """Return the id of a dataset on the Hub; without a revision it may be a folder as well."""
    name, at, revision = str(result.data["data"]["dataset"]).partition("@")
    return name if at and revision and _is_hub_id(name) and "/" in name else None


def _is_hub_id(name: str) -> bool:
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


def _shown(dataset: str) -> str:
    """Return a dataset's id and revision, or the name of its folder: where that was is nobody's business."""
    name, at, revision = dataset.partition("@")
    return dataset if _is_hub_id(name) and (not at or revision) else PurePosixPath(dataset).name or dataset


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _one_line(text: str) -> str:
    """Return a text without line breaks, and with ? for lone surrogates, which are no UTF-8."""
    return " ".join(text.encode("utf-8", "replace").decode().split())


def _code(text: str) -> str:
    """Return a text as code in a table: nothing in it is Markdown or HTML but what would end the code or the cell."""
    text = "".join(char if char.isprintable() else " " for char in _one_line(text)).strip()
    return f"`{text.translate(_IN_CODE)}`" if text else ""
