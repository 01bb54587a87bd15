"""Deleted facts: does a model let go of facts that are no longer true?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from temporalwiki.builders.configs import DELETED
from temporalwiki.eval_harness.cached_model import CachedModel
from temporalwiki.eval_harness.facts import COLUMNS, complete, identity
from temporalwiki.eval_harness.measures import scores
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.stored_scores import scored_facts
from temporalwiki.eval_harness.task import Rows, Task


@dataclass(frozen=True)
class Deleted(Task):
    """Perplexity of facts that were true in the earlier snapshot only. (Not in the papers.)

    The test ``deleted`` has all of these facts, and each other test has the facts of one kind. Models are ranked only
    by ``let_go``: how many nats per token the objects of deleted facts lost since the start model (``--start``),
    minus what unchanged facts of the same relations lost, with the weights of ``learned_and_forgotten``. The other
    measures describe one model: a model that forgets everything has a high perplexity as well, and
    ``over_unchanged``, the perplexity of the objects of deleted facts divided by that of unchanged facts, depends on
    the facts. The task ``multiple_choice`` shows whether a model prefers the new object to the old one.
    """

    version: ClassVar[int] = 2  # version 1 ignored relations: its intervals are too narrow
    configs: ClassVar[tuple[str, ...]] = ("probes-",)
    columns: ClassVar[tuple[str, ...]] = (*COLUMNS, "kind")
    query: ClassVar[tuple[str, ...]] = COLUMNS[:2]
    splits: ClassVar[tuple[str, ...]] = ("deleted", "unchanged")
    compared: ClassVar[tuple[str, ...]] = ("unchanged",)
    start: ClassVar[str] = "used"
    served: ClassVar[bool] = True

    def run(self, model: CachedModel, rows: Rows) -> Outcome:
        """Score the deleted facts, and the unchanged ones for comparison."""
        if not rows.get("deleted"):
            return Outcome({}, [], {"facts in the split deleted": 0})
        excluded: Counter[str] = Counter()
        facts = {split: complete(rows.get(split, []), split, excluded) for split in self.splits}
        kinds = {identity(row)["id"]: row["kind"] for of_split in facts.values() for row in of_split}
        items = [item | {"kind": kinds[item["id"]]} for item in scored_facts(model, facts, excluded)]
        deleted = [item for item in items if item["split"] == "deleted"]
        unchanged = [item for item in items if item["split"] == "unchanged"]
        tests = {"deleted": deleted} | {kind: [item for item in deleted if item["kind"] == kind] for kind in DELETED}
        found = scores({test: [of_test] for test, of_test in tests.items()}, ("perplexity", "object_perplexity"))
        compared = {test: [of_test, unchanged] for test, of_test in tests.items()}
        return Outcome(found | scores(compared, ("over_unchanged", "let_go")), items, excluded)
