"""``temporalwiki publish``: publish a dataset, model, metric or leaderboard on the Hub.

Example:

    temporalwiki publish dataset temporalwiki ORG/temporalwiki --dry-run
    temporalwiki publish dataset temporalwiki ORG/temporalwiki         # a commit and a tag (2021.12) per interval
    temporalwiki publish dataset ckl ORG/ckl --accept-noncommercial    # all configs, also those made from LAMA
    temporalwiki publish model runs/lora-diffset-1112 ORG/lora-1112 --base openai-community/gpt2-large
    temporalwiki publish metric eval_harness/metrics/fuar ORG/fuar
    temporalwiki publish leaderboard leaderboard ORG/leaderboard
    temporalwiki publish results results --to somebody/model           # a pull request on the model's page

The token comes from `hf auth login`, HF_TOKEN or a trusted publisher (docs/publishing.md).
"""

import importlib
import os
from pathlib import Path
from typing import Annotated, Any

from temporalwiki.api.arguments import Arg
from temporalwiki.api.table import Table, tell
from temporalwiki.base.errors import UsageError
from temporalwiki.methods import needs

KINDS = ("dataset", "model", "metric", "leaderboard", "results")
_DATASETS, _MODELS = "options for datasets", "options for models"
DatasetFlag = Annotated[bool, Arg(group=_DATASETS)]


def publish(
    kind: Annotated[str, Arg("KIND", positional=True, names=KINDS)],
    path: Annotated[str | os.PathLike[str], Arg("PATH", positional=True)],
    repo_id: Annotated[str, Arg("REPO_ID", positional=True, nargs="?")] | None = None,
    *,
    to: Annotated[str, Arg("MODEL")] | None = None,
    tag: Annotated[str, Arg("TAG")] | None = None,
    dry_run: Annotated[bool, Arg()] = False,
    accept_jump: DatasetFlag = False,
    replace: DatasetFlag = False,
    mend: DatasetFlag = False,
    accept_noncommercial: DatasetFlag = False,
    base: Annotated[str, Arg("ID", group=_MODELS)] | None = None,
    dataset: Annotated[str, Arg("ORG/NAME@TAG", group=_MODELS)] | None = None,
    results: Annotated[str | os.PathLike[str], Arg("DIR", group=_MODELS)] | None = None,
) -> Table:
    """Publish a folder on the Hub, and return a row for each step. The arguments are the options of the command.

    Args:
        kind: what to publish: dataset, model, metric, leaderboard or results.
        path: folder to publish.
        repo_id: repository, ORG/NAME; created if it does not exist.
        to: for results: the model on whose page a pull request offers its scores.
        tag: tag of the commit; for datasets the month by default, such as 2021.12.
        dry_run: print what would be done; send nothing.
        accept_jump: publish even if counts jump since last month.
        replace: replace an interval, under a new tag.
        mend: put back files of published months that are missing or changed on the Hub.
        accept_noncommercial: publish configs with a licence like LAMA's (CC BY-NC).
        base: Hub id of the model that an adapter was trained on.
        dataset: if the model was trained on a local folder, the same dataset on the Hub.
        results: folder with results of `temporalwiki evaluate` for the card.

    Raises UsageError for a wrong argument, and InputError for a folder or a repository that cannot be used.
    """
    of_dataset = {"accept_jump": accept_jump, "replace": replace, "mend": mend}
    of_dataset["accept_noncommercial"] = accept_noncommercial
    of_model = {"base": base, "dataset": dataset, "results": None if results is None else Path(results)}
    if kind not in KINDS:
        raise UsageError(f"there is no kind {kind!r} to publish; there are {', '.join(KINDS)}")
    target = to if kind == "results" else repo_id
    if target is None or None not in (to, repo_id):
        needed = "--to MODEL, and no REPO_ID" if kind == "results" else "its REPO_ID, ORG/NAME"
        raise UsageError(f"publish {kind}: name {needed}")
    own: dict[str, Any] = {}
    for owner, options in (("dataset", of_dataset), ("model", of_model)):
        if kind == owner:
            own = dict(options)
        elif wrong := [name for name, value in options.items() if value]:
            raise UsageError(f"--{wrong[0].replace('_', '-')} is an option for a {owner}, not a {kind}")
    rows = []
    with needs("eval"):
        module = importlib.import_module(f"temporalwiki.push_scripts.{kind}")
        for line in getattr(module, f"publish_{kind}")(Path(path), target, tag=tag, dry_run=dry_run, **own):
            tell(line)
            rows.append({"step": line})
    return Table(Path(path), rows, "\n".join(row["step"] for row in rows))
