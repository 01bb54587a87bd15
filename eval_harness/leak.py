"""The leak check: how many changed facts does a model prefer before it could learn them?"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from temporalwiki.eval_harness.cutoff.changes import Change, evidence
from temporalwiki.eval_harness.facts import COLUMNS, complete, identity, prompt_of
from temporalwiki.eval_harness.models.model import LIKELIHOODS, Model
from temporalwiki.eval_harness.references import choices_of
from temporalwiki.eval_harness.result_manifest import ResultLeak
from temporalwiki.eval_harness.task import Row, Rows

_OLD = ("unchanged", "deleted")  # splits without new objects


def leak(model: Model, rows: Rows, items: Sequence[Mapping[str, Any]]) -> ResultLeak | None:
    """Return how many of the changed facts in ``rows`` a model prefers, or None if that cannot be known.

    The model is the start model, if there is one. It prefers a fact if its object has more likelihood per token than
    all objects that are gone. For a model behind an interface, this counts the replies in ``items`` that give the new
    answer.
    """
    replies = [item["new"] for item in items if "new" in item and item["split"] not in _OLD]
    if replies:
        return ResultLeak(model.name, len(replies), int(sum(replies)))
    asked = model.start if model.start is not None and LIKELIHOODS in model.start.can else model
    changes = [change for split, of in rows.items() if "/" not in split for change in _changes(split, of)]
    found = evidence(asked, changes) if LIKELIHOODS in asked.can else []
    return ResultLeak(asked.name, len(found), sum(item.evidence > 0 for item in found)) if found else None


def _changes(split: str, rows: Sequence[Row]) -> list[Change]:
    if split in _OLD or not rows or not set(COLUMNS) <= rows[0].keys():
        return []
    found = []
    for row in complete(rows, split, Counter()):
        # CKL names the objects that are gone "old_answers"
        right, wrong = choices_of({"previous_objects": row.get("old_answers"), **row})
        if right and wrong:
            known = identity(row)
            found.append(
                Change(0, known["relation"], known["cluster"], "", prompt_of(row), row["object"], tuple(wrong))
            )
    return found
