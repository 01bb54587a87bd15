"""Multiple choice between the right objects of now and of before."""

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from temporalwiki.eval_harness.facts import COLUMNS, UNSCORED, complete, identity, prompt_of, score_facts
from temporalwiki.eval_harness.measures import scores
from temporalwiki.eval_harness.models.model import LIKELIHOODS, Model
from temporalwiki.eval_harness.references import choices_of
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.retrieval import reading
from temporalwiki.eval_harness.task import Row, Rows, Task

_MEASURES = ("acc", "acc_norm", "chance", "margin")


@dataclass(frozen=True)
class MultipleChoice(Task):
    """Is an object that is right now more likely than all that were right before? (Not in the papers.)

    The right choices of a changed fact are its object and all others that are right. The wrong ones are the objects
    that were right before and no longer are (``gone_objects``), unless a right object has that name as its label or
    as an alias. In datasets without these columns, the object is the right choice, and ``previous_objects`` are the
    wrong ones. Facts that are not right any more (``current``) are left out. Each object is named by its label only:
    no aliases of wrong objects are known, and with more names, among them the shortest, a right object would win too
    often even for a model without knowledge.

    Each choice follows "subject relation"; for an encoder-decoder model it stands in the place of ``<extra_id_0>``.

    - ``acc``: percentage of facts where a right choice has the highest log-likelihood; a tie with a wrong one does
      not count
    - ``acc_norm``: the same with the log-likelihood per byte (acc_bytes of lm-evaluation-harness, whose acc_norm is
      per character)
    - ``chance``: the mean share of right choices, in percent
    - ``margin``: the mean difference in log-likelihood, in nats, between the likeliest right and wrong choice

    Objects whose names ``knowledge_match`` does not distinguish are one choice.
    """

    version: ClassVar[int] = 3  # version 2 counted all previous objects as wrong, even if still right
    configs: ClassVar[tuple[str, ...]] = ("probes-",)
    columns: ClassVar[tuple[str, ...]] = (*COLUMNS, "previous_objects")
    query: ClassVar[tuple[str, ...]] = COLUMNS[:2]
    splits: ClassVar[tuple[str, ...]] = ("changed",)
    needs: ClassVar[frozenset[str]] = frozenset({LIKELIHOODS})

    def run(self, model: Model, rows: Rows) -> Outcome:
        """Score each choice of every changed fact that has a wrong one."""
        excluded: Counter[str] = Counter()
        asked: list[tuple[Row, int, list[str]]] = []
        for row in complete(rows["changed"], "changed", excluded):
            right, wrong = choices_of(row)
            if right and wrong:
                asked.append((row, len(right), right + wrong))
            else:
                excluded[f"changed: {'no previous object that is wrong now' if right else 'not right any more'}"] += 1
        pairs = [(prompt_of(row), choice) for row, _, choices in asked for choice in choices]
        first = reading(model)
        before = [text for row, _, choices in asked for text in [first(row, prompt_of(row))] * len(choices)]
        scored = iter(score_facts(model, pairs, "changed: choices", before))
        items = []
        for row, right_ones, choices in asked:
            found = [next(scored) for _ in choices]
            likelihoods = [-score.object_nll for score in found if score is not None]
            if len(likelihoods) < len(choices):
                excluded[f"changed: a choice is {UNSCORED}"] += 1
                continue
            per_byte = [value / len(choice.encode()) for value, choice in zip(likelihoods, choices, strict=True)]
            margin = max(likelihoods[:right_ones]) - max(likelihoods[right_ones:])
            items.append(
                {
                    **identity(row),
                    "choices": choices,
                    "right": right_ones,  # the first of them
                    "log_likelihoods": likelihoods,
                    "acc": float(margin > 0),
                    "acc_norm": float(max(per_byte[:right_ones]) > max(per_byte[right_ones:])),
                    "chance": right_ones / len(choices),
                    "margin": margin,
                }
            )
        return Outcome(scores({"changed": [items]}, _MEASURES), items, excluded)
