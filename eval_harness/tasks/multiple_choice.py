"""Multiple choice between the object that a fact has now and those that it had before."""

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
    """Whether the new object of a changed fact is likelier than every previous one; beyond the papers.

    Choices follow "subject relation" (of an encoder-decoder model: in the place of ``<extra_id_0>``). ``acc`` is the
    percentage of facts whose new object has the highest log-likelihood, ``acc_norm`` that with the highest a byte
    (what lm-evaluation-harness has as acc_bytes; its acc_norm is per character), ``chance`` the mean of
    1 / (number of choices), and ``margin`` the mean log-likelihood of the new object minus that of the likeliest
    previous one, in nats. A tie is no hit. Objects of the same name, as ``knowledge_match`` compares names, are one.
    """

    version: ClassVar[int] = 1
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
    """Return a fact's object, then its previous objects; of those that have the same name, the first."""
    named: dict[str, str] = {}
    for label in filter(None, (row["object"], *(row["previous_objects"] or ()))):
        named.setdefault(normalize(label) or label, label)
    return list(named.values())
