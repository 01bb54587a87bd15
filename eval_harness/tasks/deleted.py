"""Deleted facts: does a model let go of what is no longer so?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

from temporalwiki.eval_harness.cached_model import CachedModel
from temporalwiki.eval_harness.facts import COLUMNS, UNSCORED, complete, identity, prompt_of, score_facts
from temporalwiki.eval_harness.measures import OVER_UNCHANGED, over_unchanged, scores
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.task import Rows, Task

KINDS = ("replaced", "ended", "removed")

Item = dict[str, Any]


@dataclass(frozen=True)
class Deleted(Task):
    """Perplexity of facts that were so in the earlier snapshot and are no more; beyond the papers.

    ``deleted`` is all of them, the other tests are their kinds. A model that forgets everything has a high perplexity
    here, too. So the score that tells is ``over_unchanged``: the perplexity of their objects divided by that of the
    objects of facts that were so and still are. What it is before an update depends on the facts; it rises with an
    update that lets go, and stays where all is forgotten alike. Whether the new object is preferred to the one that
    it replaced is the task ``multiple_choice``.
    """

    version: ClassVar[int] = 1
    configs: ClassVar[tuple[str, ...]] = ("probes-",)
    columns: ClassVar[tuple[str, ...]] = (*COLUMNS, "kind")
    splits: ClassVar[tuple[str, ...]] = ("deleted", "unchanged")

    def run(self, model: CachedModel, rows: Rows) -> Outcome:
        """Score the facts that are gone, and those that are not for comparison."""
        if not rows.get("deleted"):
            return Outcome({}, [], {"facts in the split deleted": 0})
        excluded: Counter[str] = Counter()
        items: list[Item] = []
        for split in self.splits:
            of_split = complete(rows.get(split, []), split, excluded)
            facts = [(prompt_of(row), row["object"]) for row in of_split]
            for row, score in zip(of_split, score_facts(model, facts, f"{split}: perplexity"), strict=True):
                if score is None:
                    excluded[f"{split}: {UNSCORED}"] += 1
                else:
                    items.append({**identity(row), "split": split, "kind": row["kind"], **score._asdict()})
        gone = [item for item in items if item["split"] == "deleted"]
        kept = [item for item in items if item["split"] == "unchanged"]
        tests = {"deleted": gone} | {kind: [item for item in gone if item["kind"] == kind] for kind in KINDS}
        found = scores({test: [those] for test, those in tests.items()}, ("perplexity", "object_perplexity"))
        for test, those in tests.items():
            if those and kept:
                found[f"{test}/{OVER_UNCHANGED}"] = over_unchanged(those, kept)
        return Outcome(found, items, excluded)
