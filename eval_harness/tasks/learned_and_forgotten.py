"""Learned and forgotten: which facts an update taught a model, and which it cost."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, ClassVar

from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import option
from temporalwiki.eval_harness.facts import COLUMNS, complete, identity
from temporalwiki.eval_harness.measures import SUBSETS, WORST, columns_of, composition
from temporalwiki.eval_harness.models.model import LIKELIHOODS, STORED, WEIGHTS, Model
from temporalwiki.eval_harness.panel_items import FORMS, SPELLING, check_forms, known_items
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.statistics import Estimate, estimate
from temporalwiki.eval_harness.task import NothingToScoreError, Rows, Task
from temporalwiki.methods.unread import is_unread

_MEASURES = ("new_known", "old_known", "learned", "forgotten", "corrected", "chance")
Item = dict[str, Any]


@dataclass(frozen=True)
class LearnedAndForgotten(Task):
    """Which changed and unchanged facts a model knows, and what that is since its start model. (Not in the papers.)

    Facts of a relation are compared in panels of six to ten (``eval_harness.known``). A fact is known if its subject
    prefers its object to each other object of the panel by more than the other subjects do. So neither a model that
    only knows which names are in use nor one with softer or sharper probabilities gains anything.

    - ``new_known``, ``old_known``: percentage of changed and of unchanged facts that are known
    - ``learned``: ``new_known`` minus that of the start model (``--start``), fact by fact, in points
    - ``forgotten``: ``old_known`` of the start model minus that of the model, in points
    - ``corrected``: percentage of changed facts with a gone object whose object is preferred to each gone one by more
      than other subjects do
    - ``chance``: what a model without knowledge gets, the mean of 1 / size of the panel

    The test ``all`` has all facts, ``stated`` those that a sentence states, and ``strict`` those that are stated or
    listed, still right and, if changed, really new. ``unread`` has the facts that the control ``unread`` does not
    read. With several forms, these are means over the forms; ``FORM/all`` is one form, and ``worst/all`` the lowest.
    ``spelling/all`` is a control without a model, by common letters of subject and object. Relations in which it knows
    more than twice as many facts as by chance are not in ``strict``.
    """

    version: ClassVar[int] = 2  # version 1 was the gain in likelihood, which also rewards names without their facts
    configs: ClassVar[tuple[str, ...]] = ("probes-",)
    columns: ClassVar[tuple[str, ...]] = COLUMNS
    query: ClassVar[tuple[str, ...]] = COLUMNS[:2]
    splits: ClassVar[tuple[str, ...]] = ("unchanged", "changed")
    compared: ClassVar[tuple[str, ...]] = ("unchanged",)
    start: ClassVar[str] = "used"
    needs: ClassVar[frozenset[str]] = frozenset({LIKELIHOODS, STORED})
    whole: ClassVar[bool] = True
    least: ClassVar[Mapping[str, int]] = {"seed": 0}
    later: ClassVar[frozenset[str]] = frozenset({"temperature"})

    forms: tuple[str, ...] = option(("name",), f"wordings of the facts, separated by commas: {', '.join(FORMS)}")
    seed: int = option(0, "of the panels")
    temperature: float = option(1.0, "divides the logits: a control, which must change nothing")

    def __post_init__(self) -> None:
        """Refuse unknown forms and a temperature that is not above 0."""
        super().__post_init__()
        check_forms(self.forms)
        if not self.temperature > 0:
            raise UsageError(f"temperature must be above 0, not {self.temperature}")

    def run(self, model: Model, rows: Rows) -> Outcome:
        """Score the panels with the model and with its start model."""
        excluded: Counter[str] = Counter()
        facts = {split: complete(rows.get(split, []), split, excluded) for split in self.splits}
        if self.temperature != 1:
            if WEIGHTS not in model.can:
                raise NothingToScoreError(f"{model.reference}: --temperature needs a model whose weights are here")
            model = model.softened(self.temperature)
        items = known_items(model, facts, self.forms, self.seed, excluded)
        guessed = _guessed(items)
        of_fact = {identity(row)["id"]: row for of_split in facts.values() for row in of_split}
        for item in items:
            row = of_fact[item["id"].partition("/")[0]]
            item |= {
                "stated": row.get("support") == "stated",
                "strict": bool(row.get("strict")) and item["relation"] not in guessed,
                "unread": is_unread(item["cluster"]),
            }
        for split in self.splits:
            if rows.get(split) and not any(item["split"] == split for item in items):
                excluded[f"{split}: without a panel, so nothing of this split is scored"] += 1
        for relation, why in guessed.items():
            excluded[f"relation {relation} (not in strict): {why}"] += 1
        return Outcome(_scores(items, self.forms), items, excluded)


def _scores(items: Sequence[Item], forms: Sequence[str]) -> dict[str, Estimate]:
    """Return the estimates of all tests that have items."""
    tests = [*SUBSETS, f"{SPELLING}/all"]
    if tuple(forms) != ("name",):
        tests += [f"{form}/all" for form in (*forms, WORST)]
    columns = columns_of(items)
    found = {}
    for test in tests:
        for measure in _MEASURES:
            made = composition(columns, test, measure) if items else None
            if made is not None:
                found[f"{test}/{measure}"] = estimate(made.groups, made.scale)
    return found


def _guessed(items: Sequence[Item]) -> dict[str, str]:
    """Return the relations in which the control by spelling knows more than twice as many facts as by chance."""
    of_relation = defaultdict(list)
    for item in items:
        if item["form"] == SPELLING:
            of_relation[item["relation"]].append(item)
    found = {}
    for relation, of in of_relation.items():
        right, chance = (100 * fmean(item[name] for item in of) for name in ("known", "chance"))
        if right > 2 * chance:
            found[relation] = f"spelling alone knows {right:.0f} % of {len(of)} facts, chance {chance:.0f} %"
    return found
