"""Learned and forgotten: what an update taught a model, and what it cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from temporalwiki.eval_harness.cached_model import CachedModel
from temporalwiki.eval_harness.facts import COLUMNS, complete, identity
from temporalwiki.eval_harness.measures import SUBSETS, scores
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.statistics import Estimate
from temporalwiki.eval_harness.stored_scores import scored_facts
from temporalwiki.eval_harness.task import Rows, Task


@dataclass(frozen=True)
class LearnedAndForgotten(Task):
    """What a model learned and forgot since its start model, in nats per token. (Not in the papers.)

    The gain of a fact is the start model's NLL per token of its object, given "SUBJECT RELATION", minus the model's.

    - ``learned``: the mean gain of changed facts minus that of unchanged facts of the same relation, over all
      relations that have both. A relation with c changed and u unchanged facts has the weight c * u / (c + u). So the
      effect of the form of the probes cancels out
    - ``forgotten``: minus the mean gain of all unchanged facts

    The test ``all`` has all facts. If the data has the columns ``support`` and ``strict``, the test ``stated`` has the
    facts that a sentence states, and the test ``strict`` has the facts that are stated or listed, still right and, if
    changed, really new. ``--start`` names the start model.
    """

    configs: ClassVar[tuple[str, ...]] = ("probes-",)
    columns: ClassVar[tuple[str, ...]] = COLUMNS
    query: ClassVar[tuple[str, ...]] = COLUMNS[:2]
    splits: ClassVar[tuple[str, ...]] = ("unchanged", "changed")
    compared: ClassVar[tuple[str, ...]] = ("unchanged",)
    start: ClassVar[str] = "needed"
    served: ClassVar[bool] = True

    def run(self, model: CachedModel, rows: Rows) -> Outcome:
        """Score all facts with both models."""
        excluded: Counter[str] = Counter()
        facts = {split: complete(rows.get(split, []), split, excluded) for split in self.splits}
        known = {
            identity(row)["id"]: {"stated": row.get("support") == "stated", "strict": row.get("strict")}
            for of_split in facts.values()
            for row in of_split
        }
        items = [item | known[item["id"]] for item in scored_facts(model, facts, excluded)]
        found: dict[str, Estimate] = {}
        for test in SUBSETS:
            chosen = [item for item in items if test == "all" or item[test]]
            unchanged, changed = ([item for item in chosen if item["split"] == split] for split in self.splits)
            found |= scores({test: [changed, unchanged]}, ("learned",)) | scores({test: [unchanged]}, ("forgotten",))
        of_split = {split: {item["relation"] for item in items if item["split"] == split} for split in self.splits}
        for split, other in (self.splits, self.splits[::-1]):
            excluded[f"relations (not facts) with {split} facts only: not in learned"] = len(
                of_split[split] - of_split[other]
            )
        return Outcome(found, items, excluded)
