"""The task deleted: perplexity of deleted facts by kind, and relative to unchanged facts."""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from temporalwiki.eval_harness import facts as module
from temporalwiki.eval_harness.facts import identity
from temporalwiki.eval_harness.models.model import FactScore
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.tasks import deleted
from temporalwiki.eval_harness.tasks.deleted import Deleted


def row(subject: str, label: str, kind: str) -> dict[str, Any]:
    ids = {"subject_id": f"Q{subject}", "relation_id": "P6", "object_id": f"Q{label}"}
    return {"subject": subject, "relation": "head", "object": label, "kind": kind, **ids}


def run(
    monkeypatch: pytest.MonkeyPatch,
    rows: dict[str, list[Any]],
    scored: dict[str, FactScore | None],
    in_panels: Sequence[dict[str, Any]] = (),
) -> Outcome:
    """Run the task with a model that gives the objects these scores, and these items of facts in panels."""

    def score_facts(model: Any, pairs: list[tuple[str, str]], *_: Any) -> list[FactScore | None]:
        return [model.scored[label] for _, label in pairs]

    monkeypatch.setattr(module, "score_facts", score_facts)
    monkeypatch.setattr(deleted, "known_items", lambda *_: in_panels)
    model = SimpleNamespace(scored=scored, reference="model", start=in_panels or None, can={"likelihoods"})
    return Deleted().run(model, rows)  # type: ignore[arg-type]


ROWS = {
    "deleted": [
        row("A", "a", "replaced"),
        row("B", "b", "replaced"),
        row("C", "c", "ended"),
        row("D", "d", "removed"),
    ],
    "unchanged": [row("E", "e", "unchanged"), row("F", "f", "unchanged")],
}
# NLL and tokens of the whole fact and of the object, and bytes of the whole fact
SCORED: dict[str, FactScore | None] = {
    "a": FactScore(20.0, 5, 6.0, 1, 30),
    "b": FactScore(10.0, 5, 3.0, 2, 30),
    "c": FactScore(14.0, 4, 8.0, 2, 30),
    "d": FactScore(6.0, 2, 1.0, 1, 30),
    "e": FactScore(12.0, 6, 2.0, 1, 30),
    "f": FactScore(9.0, 3, 4.0, 2, 30),
}


def test_scores_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = run(monkeypatch, ROWS, dict(SCORED))
    logs = {name: math.log(score.value) for name, score in outcome.scores.items()}
    control = (2 + 4) / (1 + 2)
    assert logs == pytest.approx(
        {
            "deleted/perplexity": (20 + 10 + 14 + 6) / (5 + 5 + 4 + 2),
            "replaced/perplexity": (20 + 10) / (5 + 5),
            "ended/perplexity": 14 / 4,
            "removed/perplexity": 6 / 2,
            "deleted/object_perplexity": (6 + 3 + 8 + 1) / (1 + 2 + 2 + 1),
            "replaced/object_perplexity": (6 + 3) / (1 + 2),
            "ended/object_perplexity": 8 / 2,
            "removed/object_perplexity": 1 / 1,
            "deleted/over_unchanged": 18 / 6 - control,
            "replaced/over_unchanged": 9 / 3 - control,
            "ended/over_unchanged": 8 / 2 - control,
            "removed/over_unchanged": 1 / 1 - control,
        }
    )
    sizes = {
        name.split("/")[0]: (score.items, score.clusters)
        for name, score in outcome.scores.items()
        if not name.endswith("over_unchanged")
    }
    assert sizes == {"deleted": (4, 4), "replaced": (2, 2), "ended": (1, 1), "removed": (1, 1)}
    assert [item["split"] for item in outcome.items] == ["deleted"] * 4 + ["unchanged"] * 2


def many(generator: np.random.Generator, split: str, level: float) -> tuple[list[Any], dict[str, FactScore | None]]:
    rows, scored = [], {}
    for i in range(60):
        label, tokens = f"{split}{i}", int(generator.integers(1, 4))
        nll = float(tokens * (level + generator.normal(scale=0.3)))
        rows.append(row(f"{split} {i // 2}", label, "ended" if split == "deleted" else "unchanged"))
        scored[label] = FactScore(nll + 5, tokens + 4, nll, tokens, 30)
    return rows, scored


def test_what_is_forgotten_alike_does_not_count_as_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """One nat more on all facts keeps the ratio; one nat more only on deleted facts multiplies it by e."""

    def score(**more: float) -> Any:
        generator = np.random.default_rng(0)
        parts = {split: many(generator, split, 3 + more.get(split, 0)) for split in ("deleted", "unchanged")}
        rows = {split: rows for split, (rows, _) in parts.items()}
        scored = {label: score for _, of in parts.values() for label, score in of.items()}
        return run(monkeypatch, rows, scored).scores

    before, forgotten, let_go = score(), score(deleted=1, unchanged=1), score(deleted=1)
    assert forgotten["deleted/over_unchanged"].value == pytest.approx(before["deleted/over_unchanged"].value)
    assert let_go["deleted/over_unchanged"].value == pytest.approx(math.e * before["deleted/over_unchanged"].value)
    for found in (before, forgotten, let_go):
        estimate = found["deleted/over_unchanged"]
        assert estimate.low < estimate.value < estimate.high
    assert forgotten["deleted/perplexity"].value == pytest.approx(let_go["deleted/perplexity"].value)


def test_let_go_is_what_deleted_facts_lost_more_than_unchanged_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start model knew a, b, c, e and f; the model knows b and f of these, and d, which does not count."""
    known = {"a": (1, 0), "b": (1, 1), "c": (1, 0), "d": (0, 1), "e": (1, 0), "f": (1, 1)}
    ids = {one["object"]: identity(one)["id"] for of in ROWS.values() for one in of}
    items = [{"id": ids[name], "panel": "p", "start_known": s, "known": k} for name, (s, k) in known.items()]
    found = run(monkeypatch, ROWS, dict(SCORED), items).scores
    let_go = {name.split("/")[0]: score.value for name, score in found.items() if name.endswith("let_go")}
    assert let_go == pytest.approx({"deleted": 100 * (2 / 3 - 1 / 2), "replaced": 0, "ended": 50})
    assert not [name for name in run(monkeypatch, ROWS, dict(SCORED)).scores if "let_go" in name]


def test_a_model_that_forgets_everything_lets_go_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    items = [{"id": identity(one)["id"], "start_known": 1, "known": 0} for of in ROWS.values() for one in of]
    found = run(monkeypatch, ROWS, dict(SCORED), items).scores["deleted/let_go"]
    assert found.value == 0
    assert found.low is not None and found.high is not None and found.low < 0 < found.high


def test_without_unchanged_facts_there_is_nothing_to_compare_with(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = run(monkeypatch, {"deleted": ROWS["deleted"]}, dict(SCORED))
    assert "deleted/perplexity" in outcome.scores
    assert not [name for name in outcome.scores if "unchanged" in name]


def test_kinds_that_did_not_happen_have_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = run(monkeypatch, {**ROWS, "deleted": ROWS["deleted"][:2]}, dict(SCORED))
    assert {name.split("/")[0] for name in outcome.scores} == {"deleted", "replaced"}


def test_what_cannot_be_scored_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {**ROWS, "deleted": [*ROWS["deleted"], row("G", "", "ended")]}
    outcome = run(monkeypatch, rows, {**SCORED, "a": None, "e": None, "f": None})
    reason = "longer than the context, or nothing to predict"
    assert outcome.excluded == {f"deleted: {reason}": 1, f"unchanged: {reason}": 2, "deleted: no object": 1}
    assert outcome.scores["replaced/object_perplexity"].value == pytest.approx(math.exp(3 / 2))


def test_no_deleted_facts_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without deleted facts there is nothing to score, and no model is asked."""
    outcome = run(monkeypatch, {"deleted": [], "unchanged": ROWS["unchanged"]}, {})
    assert (outcome.scores, outcome.items) == ({}, [])
    assert outcome.excluded == {"facts in the split deleted": 0}
