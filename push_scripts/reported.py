"""Read the scores that other people put on the Hub for a dataset's probes. Nothing in them is trusted."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, NamedTuple

from huggingface_hub import DatasetLeaderboardEntry, EvalResultEntry, HfApi
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.hf_api import RepoFile

from temporalwiki.base.errors import InputError
from temporalwiki.builders.loading import split_revision
from temporalwiki.eval_harness.leaderboard.rows import Row
from temporalwiki.eval_harness.leaderboard.write import is_hub_id
from temporalwiki.eval_harness.tasks import find_task
from temporalwiki.model_cards.eval_results import MEASURE, SPLITS, TASK
from temporalwiki.push_scripts.hub import Unreachable, ask

# at most: models that are asked for, scores read of a model, commits of the data that are looked at
_MODELS, _SCORES, _COMMITS = 200, 1_000, 50
_TASK_ID = re.compile(rf"probes-(\d{{8}}-\d{{8}})-({'|'.join(SPLITS)})")
_ADDRESS = re.compile(r"https?://[a-z0-9.:-]+(/[!-~]*)?", re.IGNORECASE)  # without a user's name
_LONGEST_ADDRESS = 300
# the columns of a score that do not depend on it, or that only its author knows
_REST: dict[str, Any] = dict.fromkeys(
    ("month", "method", "learning_rate", "trainable", "parameters", "tokens", "low", "high", "spread", "rank_best")
)
_REST |= dict.fromkeys(("base", "revision", "result"), "") | {"rank_worst": None, "items": 0, "clusters": 0, "runs": 1}
_REST |= {"task": TASK, "kind": "probes", "measure": MEASURE, "higher_is_better": True, "competes": False}


class Reported(NamedTuple):
    """Scores of others, and how many were left out for each reason."""

    rows: list[Row]
    left_out: Counter[str]


def reported_by_others(dataset: str, own: Collection[str]) -> Reported:
    """Return the scores on the probes of ``dataset`` that others put on the Hub.

    ``own`` are the models that the leaderboard scored itself. A score needs the version of the task, a commit of the
    data whose manifest of the month is the one on main, and a percentage. If a model has several scores of a task, a
    verified one counts, then the newest. Raises InputError if the Hub has no leaderboard of the dataset.
    """
    api, left_out = HfApi(library_name="temporalwiki"), Counter[str]()
    listed: dict[str, list[DatasetLeaderboardEntry]] = {}
    for entry in _leaderboard(api, dataset):
        listed.setdefault(str(entry.model_id), []).append(entry)
    states = {"main": _manifests(api, dataset, "main")}

    def manifests(commit: str) -> dict[str, str]:
        if commit not in states and len(states) <= _COMMITS:
            states[commit] = _manifests(api, dataset, commit)
        return states.get(commit, {})

    scored_here = {split_revision(name)[0] for name in own}
    found: dict[tuple[str, str], tuple[tuple[bool, str, float], Row]] = {}
    asked = 0
    for model, entries in listed.items():
        if model in scored_here:
            left_out["of models that the results hold"] += len(entries)
            continue
        if "/" not in model or not is_hub_id(model) or asked == _MODELS:
            left_out[f"of models after the first {_MODELS}, or without a valid id"] += len(entries)
            continue
        asked += 1
        try:
            waiting = _in_open_pulls(api, model, entries)
            scores = ask(model, partial(api.model_info, model, expand=["evalResults"])).eval_results or []
        except Unreachable:
            raise
        except (InputError, AttributeError, KeyError, TypeError):  # of somebody else's model; the others count
            left_out["that cannot be read"] += len(entries)
            continue
        left_out["in pull requests that are open"] += len(waiting)
        for score in [one for one in scores if one.dataset_id == dataset][:_SCORES]:
            same = [one for one in entries if (one.value, one.notes) == (score.value, score.notes)]
            if same and all(one in waiting for one in same):
                continue
            if (why := _why_not(score, manifests)) is not None:
                left_out[why] += 1
                continue
            verified = any(one.verified is True for one in same)
            row, key = _row(model, score, verified), (model, score.task_id)
            place = verified, str(score.date), row.value
            left_out["doubles"] += key in found
            if key not in found or place > found[key][0]:
                found[key] = place, row
    return Reported([found[key][1] for key in sorted(found)], +left_out)  # +: no reasons that count nothing


def _leaderboard(api: HfApi, dataset: str) -> list[DatasetLeaderboardEntry]:
    def call() -> list[DatasetLeaderboardEntry]:
        try:
            return api.get_dataset_leaderboard(dataset, base_model_only=False)
        except HfHubHTTPError as error:
            if error.response.status_code != 404 or isinstance(error, RepositoryNotFoundError):
                raise
            raise InputError(f"{dataset}: the Hub has no leaderboard of it; its owner can ask for one") from None

    return ask(f"datasets/{dataset}", call)


def _in_open_pulls(
    api: HfApi, model: str, entries: Sequence[DatasetLeaderboardEntry]
) -> list[DatasetLeaderboardEntry]:
    """Return the entries that the owner of the model has not accepted. An accepted one may name its pull request."""
    if all(one.pull_request is None for one in entries):
        return []
    listed = partial(api.get_repo_discussions, model, discussion_type="pull_request", discussion_status="open")
    numbers = [one.num for one in ask(model, lambda: list(listed()))]
    return [one for one in entries if one.pull_request in numbers]


def _manifests(api: HfApi, dataset: str, commit: str) -> dict[str, str]:
    """Return path -> hash of the dataset's manifests at a commit; none if the dataset lacks the commit."""

    def call() -> dict[str, str]:
        try:
            tree = api.list_repo_tree(dataset, "manifests", revision=commit, repo_type="dataset")
            return {file.path: file.blob_id for file in tree if isinstance(file, RepoFile)}
        except (EntryNotFoundError, RevisionNotFoundError):
            return {}

    return ask(f"datasets/{dataset}", call)


def _why_not(score: EvalResultEntry, manifests: Callable[[str], dict[str, str]]) -> str | None:
    """Return why a score is left out, or None."""
    task = _TASK_ID.fullmatch(score.task_id) if isinstance(score.task_id, str) else None
    month = f"manifests/{task[1]}.json" if task else ""
    if month not in manifests("main"):
        return "of a task that the dataset lacks"
    if isinstance(score.value, bool) or not isinstance(score.value, int | float) or not 0 <= score.value <= 100:
        return "not a percentage"
    if not str(score.notes).endswith(f"; temporalwiki {TASK} {find_task(TASK).version}"):
        return "of another program or version of the task"
    commit = str(score.dataset_revision)
    known = re.fullmatch("[0-9a-f]{40}", commit) and manifests(commit).get(month) == manifests("main")[month]
    return None if known else "on other data, or without the commit of their data"


def _row(model: str, score: EvalResultEntry, verified: bool) -> Row:
    _, month, split = _TASK_ID.split(score.task_id)[:3]
    given = score.source_url
    if not (isinstance(given, str) and len(given) <= _LONGEST_ADDRESS and _ADDRESS.fullmatch(given)):
        given = f"https://huggingface.co/{model}"
    return Row(
        label=f"{model} (reported by others)",
        model=model,
        version=find_task(TASK).version,
        config=f"probes-{month}",
        tested=month,
        test=split,
        value=float(score.value),
        reported=given,
        verified=verified,
        **_REST,
    )
