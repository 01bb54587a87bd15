"""Multiple choice: the compared objects, the measures, and excluded facts."""

from typing import Any

import pytest

from temporalwiki.eval_harness.models.model import FactScore
from temporalwiki.eval_harness.results import Outcome
from temporalwiki.eval_harness.tasks import multiple_choice
from temporalwiki.eval_harness.tasks.multiple_choice import MultipleChoice


def row(label: str, previous: list[str] | None, subject: str = "Norland") -> dict[str, Any]:
    ids = {"subject_id": f"Q{subject}", "relation_id": "P6", "object_id": f"Q{label}"}
    return {"subject": subject, "relation": "head", "object": label, "previous_objects": previous, **ids}


def run(monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]], nll: dict[str, float | None]) -> Outcome:
    """Run the task with a model that gives objects this NLL (None: too long)."""
    asked: list[tuple[str, str]] = []

    def score_facts(model: Any, pairs: list[tuple[str, str]], *_: Any) -> list[FactScore | None]:
        asked.extend(pairs)
        found = [nll[label] for _, label in pairs]
        return [None if value is None else FactScore(99.0, 9, value, 3, 30) for value in found]

    monkeypatch.setattr(multiple_choice, "score_facts", score_facts)
    outcome = MultipleChoice().run(None, {"changed": rows})  # type: ignore[arg-type]
    assert all(prompt.endswith(" head") for prompt, _ in asked)
    return outcome


def values(outcome: Outcome) -> dict[str, float]:
    return {name.removeprefix("changed/"): score.value for name, score in outcome.scores.items()}


def test_scores_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three facts, the last with three choices. Log-likelihoods, and in brackets per byte:

    Ann -2 (-2/3)     against Bertha -3 (-3/6): more likely in total, not per byte; margin 1
    Christopher -8 (-8/11) against Dee -6 (-6/3): more likely per byte, not in total; margin -2
    日本 -3 (-3/6) against Easton -3.5 (-3.5/6) and Ann -2 (-2/3): margin -1; in characters it would be -3/2
    """
    rows = [row("Ann", ["Bertha"], "A"), row("Christopher", ["Dee"], "B"), row("日本", ["Easton", "Ann"], "C")]
    nll = {"Ann": 2.0, "Bertha": 3.0, "Christopher": 8.0, "Dee": 6.0, "日本": 3.0, "Easton": 3.5}
    outcome = run(monkeypatch, rows, dict(nll))
    assert values(outcome) == pytest.approx(
        {"acc": 100 / 3, "acc_norm": 200 / 3, "chance": 100 * (1 / 2 + 1 / 2 + 1 / 3) / 3, "margin": (1 - 2 - 1) / 3}
    )
    assert outcome.items[2]["choices"] == ["日本", "Easton", "Ann"]
    assert outcome.items[2]["log_likelihoods"] == [-3.0, -3.5, -2.0]
    assert not outcome.excluded


def test_several_right_choices_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bob -1, Cid -2, Ann -3, Dee -4. Ann and Bob are right, Dee and Cid are not: a right choice is the likeliest.

    In the second fact, Dee is an alias of Ann, and Cid the only wrong choice, likelier than Ann.
    """
    more = {"objects": ["Bob", "Ann"], "aliases": ["Dee"], "gone_objects": ["Cid"]}
    rows = [
        row("Ann", ["Bob", "Cid", "Dee"], "A") | more | {"aliases": [], "gone_objects": ["Dee", "Cid"]},
        row("Ann", ["Cid", "Dee"], "B") | more | {"objects": ["Ann"], "gone_objects": ["Cid", "Dee"]},
    ]
    outcome = run(monkeypatch, rows, {"Ann": 3.0, "Bob": 1.0, "Cid": 2.0, "Dee": 4.0})
    assert [item["choices"] for item in outcome.items] == [["Ann", "Bob", "Dee", "Cid"], ["Ann", "Cid"]]
    assert [item["right"] for item in outcome.items] == [2, 1]
    assert values(outcome) == {"acc": 50, "acc_norm": 50, "chance": 50, "margin": 0}  # margins 1 and -1


def test_a_tie_is_no_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = run(monkeypatch, [row("Ann", ["Bob"], "A"), row("Ann", ["Bob"], "B")], {"Ann": 2.0, "Bob": 2.0})
    assert values(outcome) == {"acc": 0, "acc_norm": 0, "chance": 50, "margin": 0}


def test_intervals_are_drawn_over_subjects(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many facts about one subject are one observation."""
    nll = {"Ann": 2.0, "Bob": 3.0, "Cid": 4.0}
    rows = [row("Ann", ["Bob"]) | {"relation_id": f"P{i}"} for i in range(50)] + [row("Cid", ["Bob"])]
    assert run(monkeypatch, rows, dict(nll)).scores["changed/acc"].low is None
    found = run(monkeypatch, [*rows, row("Cid", ["Bob"], "Weston")], dict(nll)).scores["changed/acc"]
    assert (found.items, found.clusters) == (52, 2)
    assert found.low is not None and found.high is not None and found.low < 1 and found.high > 99


NO_OTHER, TOO_LONG = "changed: no previous object that is wrong now", "changed: a choice is longer than the context"
EXCLUDED = {
    "no previous object": (row("Ann", []), NO_OTHER),
    "null": (row("Ann", None), NO_OTHER),
    "without a name": (row("Ann", [""]), NO_OTHER),
    "the same name": (row("Ann", ["Ann"]), NO_OTHER),
    "the same name but for an article": (row("Who", ["The Who!"]), NO_OTHER),
    "the new one too long": (row("long", ["Ann"]), TOO_LONG),
    "an old one too long": (row("Ann", ["Bob", "long"]), TOO_LONG),
    "nothing to ask": (row(" ", ["Ann"]), "changed: no object"),
    "the old one is still right": (row("Ann", ["Bob"]) | {"objects": ["Ann", "Bob"], "gone_objects": []}, NO_OTHER),
    "the new one is over already": (
        row("Ann", ["Bob"]) | {"current": False, "objects": [], "gone_objects": ["Bob"]},
        "changed: not right any more",
    ),
}


@pytest.mark.parametrize("case", EXCLUDED)
def test_facts_without_a_choice_are_counted(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fact, reason = EXCLUDED[case]
    nll = {"Ann": 2.0, "Bob": 3.0, "Who": 2.0, "long": None}
    outcome = run(monkeypatch, [fact, row("Ann", ["Bob"], "Other")], nll)
    [(found, count)] = outcome.excluded.items()
    assert (found[: len(reason)], count) == (reason, 1)
    assert [item["cluster"] for item in outcome.items] == ["QOther"]
