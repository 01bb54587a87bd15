"""Multiple choice between the new object of a fact and its previous objects."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from temporalwiki.base.normalization import normalize
from temporalwiki.eval_harness.cached_model import CachedModel
from temporalwiki.eval_harness.facts import COLUMNS, UNSCORED, complete, identity, prompt_of, score_facts
from temporalwiki.eval_harness.measures import scores
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.task import Row, Rows, Task

_MEASURES = ("acc", "acc_norm", "chance", "margin")


@dataclass(frozen=True)
class MultipleChoice(Task):
    """Is the new object of a changed fact more likely than each previous one? (Not in the papers.)

    Each choice follows "subject relation"; for an encoder-decoder model it stands in the place of ``<extra_id_0>``.

    - ``acc``: percentage of facts whose new object has the highest log-likelihood; a tie does not count
    - ``acc_norm``: the same with the log-likelihood per byte (acc_bytes of lm-evaluation-harness, whose acc_norm is
      per character)
    - ``chance``: the mean of 1 / (number of choices), in percent
    - ``margin``: the mean difference in log-likelihood, in nats, between the new object and the most likely old one

    Objects whose names ``knowledge_match`` does not distinguish are one choice.
    """

    version: ClassVar[int] = 2  # version 1 did not know relations: its intervals are too narrow
    configs: ClassVar[tuple[str, ...]] = ("probes-",)
    columns: ClassVar[tuple[str, ...]] = (*COLUMNS, "previous_objects")
    splits: ClassVar[tuple[str, ...]] = ("changed",)

    def run(self, model: CachedModel, rows: Rows) -> Outcome:
        """Score each choice of every changed fact that has a previous object."""
        excluded: Counter[str] = Counter()
        asked: list[tuple[Row, list[str]]] = []
        for row in complete(rows["changed"], "changed", excluded):
            choices = choices_of(row)
            if len(choices) > 1:
                asked.append((row, choices))
            else:
                excluded["changed: no previous object of another name"] += 1
        texts = [(prompt_of(row), choice) for row, choices in asked for choice in choices]
        scored = iter(score_facts(model, texts, "changed: choices"))
        items = []
        for row, choices in asked:
            found = [next(scored) for _ in choices]
            likelihoods = [-score.object_nll for score in found if score is not None]
            if len(likelihoods) < len(choices):
                excluded[f"changed: a choice is {UNSCORED}"] += 1
                continue
            per_byte = [value / len(choice.encode()) for value, choice in zip(likelihoods, choices, strict=True)]
            margin = likelihoods[0] - max(likelihoods[1:])
            items.append(
                {
                    **identity(row),
                    "choices": choices,
                    "log_likelihoods": likelihoods,
                    "acc": float(margin > 0),
                    "acc_norm": float(per_byte[0] > max(per_byte[1:])),
                    "chance": 1 / len(choices),
                    "margin": margin,
                }
            )
        return Outcome(scores({"changed": [items]}, _MEASURES), items, excluded)


def choices_of(row: Row) -> list[str]:
    """Return the object of a fact, then its previous objects; objects of the same name count once."""
    named: dict[str, str] = {}
    for label in filter(None, (row["object"], *(row["previous_objects"] or ()))):
        named.setdefault(normalize(label) or label, label)
    return list(named.values())
