"""The card of the leaderboard's Space, made from the results that it shows."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from huggingface_hub import SpaceCardData

from temporalwiki.base.errors import in_one_line
from temporalwiki.base.markdown import code
from temporalwiki.eval_harness.leaderboard.figures import Plot
from temporalwiki.eval_harness.leaderboard.page import HERO
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.write import dataset_on_hub, is_hub_id
from temporalwiki.eval_harness.result_manifest import ResultManifest
from temporalwiki.eval_harness.results import COMMIT, Result
from temporalwiki.model_cards.edits import signed
from temporalwiki.model_cards.eval_results import with_interval
from temporalwiki.model_cards.template import fill


def space_card(
    title: str, results: Sequence[Result], rows: Sequence[Row] = (), figures: Mapping[str, Plot] | None = None
) -> str:
    """Return the card of the leaderboard's Space: its settings, picture, models and files, and the data.

    The Space is static. ``rows`` and ``figures`` are the leaderboard's. The card shows the first picture of its page.
    The order of results and rows does not matter.
    """
    models = {(result.manifest.model.name, result.manifest.model.revision) for result in results}
    settings = SpaceCardData(
        title=in_one_line(title.encode("utf-8", "replace").decode()),  # a lone surrogate is not UTF-8
        sdk="static",
        app_file="index.html",
        pinned=False,
        license="apache-2.0",
        short_description="Language models that are kept up to date, compared",
        tags=["leaderboard", "temporalwiki", "continual-learning", "knowledge"],
        models=sorted({name for name, revision in models if COMMIT.fullmatch(revision) and is_hub_id(name)}) or None,
        datasets=sorted({id for result in results if (id := dataset_on_hub(result))}) or None,
        # without this, `load_dataset` of the folder finds the figures
        configs=[{"config_name": "default", "data_files": "results.parquet"}],
    )
    hero = HERO if HERO in (figures or {}) else None
    config, known, missing = _newest(rows)
    body = fill(
        "space",
        hero=hero,
        picture=figures[hero] if figures and hero else None,
        config=config,
        known=known,
        missing=missing,
        counted=f"{_counted(len(results), 'result')} of {_counted(len(models), 'model')}",
        versions=sorted({version for result in results if (version := result.manifest.run.temporalwiki)}),
        evaluated=_evaluated(results),
    )
    return signed(f"---\n{settings.to_yaml()}\n---\n\n{body}\n")


def _newest(rows: Sequence[Row]) -> tuple[str, list[list[str]], list[str]]:
    """Return the config of the newest interval, a table of what each model knows of it, and methods without a line.

    Models that were trained on other intervals have no line. Runs of a model with other seeds are one.
    """
    scores = [row for row in rows if (row.task, row.test) == ("learned_and_forgotten", "all") and row.tested]
    newest = max((row.tested or "" for row in scores), key=lambda month: (month[-8:], month), default="")
    scores = [row for row in scores if row.tested == newest and row.month in (row.tested, None)]
    old = {(row.label, row.model): with_interval(row) for row in scores if row.measure == "old_known"}
    found = [row for row in scores if row.measure == "new_known"]
    found.sort(key=lambda row: (bool(_unranked(row)), -row.value, row.label, row.model))
    cells = [(with_interval(row), old.get((row.label, row.model), ""), _unranked(row)) for row in found]
    lines = [[code(row.label), str(row.runs), *of] for row, of in zip(found, cells, strict=True)]
    missing = sorted({row.label for row in rows} - {row.label for row in found})
    return (found[0].config if found else ""), lines, [code(label) for label in missing]


def _unranked(row: Row) -> str:
    """Return why a model is not compared with the others, or "" if it is."""
    why = "control" if row.control else "trained on test data" if row.trained_on_test else ""
    return why or ("" if row.competes else "no more than by chance")


def _evaluated(results: Sequence[Result]) -> list[list[str]]:
    """Return a row for each config and the data that it was read from."""
    by_data: dict[tuple[str, str, str], list[ResultManifest]] = {}
    for result in results:
        data = result.manifest.data
        by_data.setdefault((data.config, _without_path(data.dataset), data.hash), []).append(result.manifest)
    rows = []
    for (config, dataset, data_hash), group in sorted(by_data.items()):
        tasks = sorted({f"{one.scored} {one.task.version}" for one in group})
        count = len({(one.model.name, one.model.revision) for one in group})
        items = max(sum(one.data.rows.values()) for one in group)
        named = code(config), ", ".join(map(code, tasks)), code(dataset)
        rows.append([*named, f"{items:,}", code(data_hash), f"{count:,}"])
    return rows


def _without_path(dataset: str) -> str:
    """Return a dataset's id and revision, or the name of its folder: the card does not show this machine's paths."""
    name, at, revision = dataset.partition("@")
    return dataset if is_hub_id(name) and (not at or revision) else PurePosixPath(dataset).name or dataset


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
