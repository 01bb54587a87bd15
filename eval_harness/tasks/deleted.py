"""Deleted facts: does a model let go of facts that are no longer true?"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

from temporalwiki.builders.configs import DELETED
from temporalwiki.eval_harness.facts import COLUMNS, complete, identity, scored_facts
from temporalwiki.eval_harness.measures import scores
from temporalwiki.eval_harness.models.model import LIKELIHOODS, STORED, Model
from temporalwiki.eval_harness.panel_items import known_items
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.task import Rows, Task

Item = dict[str, Any]


@dataclass(frozen=True)
class Deleted(Task):
    """Which facts a model let go of, of those that were true in the earlier snapshot only. (Not in the papers.)

    The test ``deleted`` has all of these facts, and each other test has the facts of one kind. Models are ranked only
    by ``let_go``: the share of the deleted facts that the start model knew (``--start``) and the model does not know
    any more, minus the same share of the unchanged facts, in points. Facts are known as in ``learned_and_forgotten``.
    A model that forgets everything gets 0. The other measures describe one model: ``over_unchanged``, the perplexity
    of the objects of deleted facts divided by that of unchanged facts, depends on the facts. The task
    ``multiple_choice`` shows whether a model prefers the new object to the old one.
    """

    version: ClassVar[int] = 3  # version 2 was in nats, which a model without the facts can gain as well
    configs: ClassVar[tuple[str, ...]] = ("probes-",)
    columns: ClassVar[tuple[str, ...]] = (*COLUMNS, "kind")
    query: ClassVar[tuple[str, ...]] = COLUMNS[:2]
    splits: ClassVar[tuple[str, ...]] = ("deleted", "unchanged")
    compared: ClassVar[tuple[str, ...]] = ("unchanged",)
    start: ClassVar[str] = "used"
    needs: ClassVar[frozenset[str]] = frozenset({LIKELIHOODS, STORED})

    def run(self, model: Model, rows: Rows) -> Outcome:
        """Score the deleted facts, and the unchanged ones for comparison."""
        if not rows.get("deleted"):
            return Outcome({}, [], {"facts in the split deleted": 0})
        excluded: Counter[str] = Counter()
        facts = {split: complete(rows.get(split, []), split, excluded) for split in self.splits}
        in_panel: dict[str, Item] = {}
        if model.start is not None:
            in_panel = {item["id"]: item for item in known_items(model, facts, ("name",), 0, excluded)}
        kinds = {identity(row)["id"]: row["kind"] for of_split in facts.values() for row in of_split}
        items = [
            item | {"kind": kinds[item["id"]], **_let_go(in_panel.get(item["id"], {}))}
            for item in scored_facts(model, facts, excluded)
        ]
        deleted = [item for item in items if item["split"] == "deleted"]
        unchanged = [item for item in items if item["split"] == "unchanged"]
        tests = {"deleted": deleted} | {kind: [item for item in deleted if item["kind"] == kind] for kind in DELETED}
        found = scores({test: [of_test] for test, of_test in tests.items()}, ("perplexity", "object_perplexity"))
        compared = {test: [of_test, unchanged] for test, of_test in tests.items()}
        return Outcome(found | scores(compared, ("over_unchanged", "let_go")), items, excluded)


def _let_go(item: Item) -> Item:
    """Return what became of a fact in a panel: "let_go" is None unless the start model knew it."""
    known = {name: item.get(name) for name in ("panel", "known", "start_known")}
    return known | {"let_go": 1 - item["known"] if item.get("start_known") == 1 else None}
