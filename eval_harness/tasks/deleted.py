"""Deleted facts: does a model let go of facts that are no longer true?"""

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
    """Perplexity of facts that were true in the earlier snapshot only. (Not in the papers.)

    The test ``deleted`` has all of these facts, and each other test has one kind of them. A high perplexity alone says
    little, because a model that forgets everything has it as well. Use ``over_unchanged``: the perplexity of the
    objects of deleted facts, divided by the perplexity of the objects of unchanged facts. It rises if an update makes
    a model let go of deleted facts, and stays the same if a model forgets all facts alike. Its value before an update
    depends on the facts. The task ``multiple_choice`` tells whether a model prefers the new object to the old one.
    """

    configs: ClassVar[tuple[str, ...]] = ("probes-",)
    columns: ClassVar[tuple[str, ...]] = (*COLUMNS, "kind")
    splits: ClassVar[tuple[str, ...]] = ("deleted", "unchanged")

    def run(self, model: CachedModel, rows: Rows) -> Outcome:
        """Score the deleted facts, and the unchanged ones for comparison."""
        if not rows.get("deleted"):
            return Outcome({}, [], {"facts in the split deleted": 0})
        excluded: Counter[str] = Counter()
        items: list[Item] = []
        for split in self.splits:
            of_split = complete(rows.get(split, []), split, excluded)
            texts = [(prompt_of(row), row["object"]) for row in of_split]
            for row, score in zip(of_split, score_facts(model, texts, f"{split}: perplexity"), strict=True):
                if score is None:
                    excluded[f"{split}: {UNSCORED}"] += 1
                else:
                    items.append({**identity(row), "split": split, "kind": row["kind"], **score._asdict()})
        deleted = [item for item in items if item["split"] == "deleted"]
        unchanged = [item for item in items if item["split"] == "unchanged"]
        tests = {"deleted": deleted} | {kind: [item for item in deleted if item["kind"] == kind] for kind in KINDS}
        found = scores({test: [facts] for test, facts in tests.items()}, ("perplexity", "object_perplexity"))
        for test, facts in tests.items():
            if facts and unchanged:
                found[f"{test}/{OVER_UNCHANGED}"] = over_unchanged(facts, unchanged)
        return Outcome(found, items, excluded)
