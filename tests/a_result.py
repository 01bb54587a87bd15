"""Result files of invented models, as `temporalwiki evaluate` writes them, for tests of code that reads results."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from temporalwiki.eval_harness.leaderboard.rows import read_items
from temporalwiki.eval_harness.measures import composition, scores
from temporalwiki.eval_harness.results import SCHEMA, Outcome, Result, check_result, path_of, read_result, write_result
from temporalwiki.eval_harness.statistics import estimate

Item = Mapping[str, Any]


def write_probes(folder: Path, config: str, splits: Mapping[str, Sequence[Item]], **model: Any) -> Result:
    """Write the perplexity of probes, with the average of unchanged and changed."""
    tests = {split: [of] for split, of in splits.items()}
    if set(splits) == {"unchanged", "changed"}:
        tests["average"] = [splits["unchanged"], splits["changed"]]
    return write(folder, "twiki_probes", config, splits, tests, ("perplexity",), **model)


def write_clozes(folder: Path, config: str, items: Sequence[Item], **model: Any) -> Result:
    """Write the exact match of clozes."""
    return write(folder, "lama", config, {"test": items}, {"test": [items]}, ("exact_match",), **model)


def write(
    folder: Path,
    task: str,
    config: str,
    splits: Mapping[str, Sequence[Item]],
    tests: Mapping[str, Sequence[Sequence[Item]]],
    measures: Sequence[str],
    rows: str = "",
    options: Mapping[str, Any] | None = None,
    name: str = "base",
    revision: str | None = None,
    **model: Any,
) -> Result:
    """Write a result. ``rows`` distinguishes data with the same config; ``model`` describes the model."""
    what = {
        "task": {"name": task, "version": 1, "options": options or {}},
        "model": {"name": name, "revision": revision or f"of {name}", "precision": "fp32"},
        "data": {"dataset": "data", "config": config, "rows": {}, "hash": config + rows},
    }
    path = path_of(folder, what)
    known = {"method": None, "trained_on": [], "base": "base", **model}
    items = [{**item, "split": split} for split, of in splits.items() for item in of]
    write_result(path, {**what, "model": what["model"] | known}, Outcome(scores(tests, measures), items, {}), {})
    return read_result(path)


def write_known(
    folder: Path,
    label: str,
    seed: int,
    known: int,
    old: int = 40,
    config: str = "probes-0910",
    subject: int = 0,
    cloze: tuple[int, int] | None = None,
    **model: Any,
) -> Result:
    """Write how many of 60 changed and 60 unchanged facts a run knows, from Qsubject on; by chance it would be 10.

    ``cloze`` says how many of both it knows if it is asked with clozes as well.
    """
    asked = {"name": (known, old)} | ({"cloze": cloze} if cloze else {})
    splits = {
        split: [
            {"id": f"{split}{i}/{form}", "cluster": f"Q{subject + i}", "known": float(i < counts[at]), "form": form}
            | {"relation": "P6", "chance": 1 / 6}
            for form, counts in asked.items()
            for i in range(60)
        ]
        for at, split in enumerate(("changed", "unchanged"))
    }
    model = {"name": f"{label}-{seed}", "label": label, "seed": seed, "recipe": label, **model}
    result = write(folder, "learned_and_forgotten", config, splits, {"all": []}, (), **model)
    columns = read_items(result)
    assert columns is not None
    made = {name: composition(columns, "all", name) for name in ("new_known", "old_known", "chance")}
    found = {f"all/{name}": asdict(estimate(of.groups, of.scale)) for name, of in made.items() if of}
    return changed(changed(result, "scores", **found), "task", version=2)


def from_content(path: Path, content: Mapping[str, Any]) -> Result:
    """Return a result from the parts of a file's content that matter to a test."""
    task = {"version": 1, "options": {}, **content["task"]}
    model = {"precision": "fp32", **content["model"]}
    data = {"dataset": "data", "rows": {}, **content["data"]}
    rest = {"schema": SCHEMA, "scores": {}, "excluded": {}, "run": {}}
    return check_result(path, {**rest, **content, "task": task, "model": model, "data": data})


def changed(result: Result, part: str, **values: Any) -> Result:
    """Return a result with other values in one part of its file ("model", "data" ...)."""
    return check_result(result.path, {**result.data, part: {**result.data[part], **values}})


def facts(*nlls: float, subjects: int | None = None, tokens: int = 2) -> list[Item]:
    """Return items with these NLLs per token, each about its own subject unless ``subjects`` is smaller."""
    return [
        {"id": f"f{i}", "cluster": f"Q{i % (subjects or len(nlls))}", "nll": nll * tokens, "tokens": tokens}
        for i, nll in enumerate(nlls)
    ]


def clozes(hits: int, of: int = 10) -> list[Item]:
    """Return clozes; the first ``hits`` are answered correctly."""
    return [{"id": f"c{i}", "cluster": f"Q{i}", "exact_match": float(i < hits)} for i in range(of)]
