"""Cutoffs from graded answers: of one form, of forms that contradict each other, with controls, and wrong files."""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.cutoff.answers import Answer, judged_answers, read_answers
from temporalwiki.eval_harness.cutoff.estimator import Belief, ChangeEvidence, Cutoff, join

MAY = 2024 * 12 + 4


def graded(
    known: int, form: str = "open", topic: str = "", seed: int = 0, unknown: str = "wrong", each: int = 16
) -> list[Answer]:
    """Answers about eighteen months from January 2024: 90 % right up to month ``known`` of them, then 10 %."""
    generator, answers = random.Random(f"{seed} {form} {topic}"), []
    for month in range(18):
        for number in range(each):
            grade = "right" if generator.random() < (0.9 if month <= known else 0.1) else unknown
            topics = topic or ("deaths", "offices", "sports")[number % 3]
            evidence = ChangeEvidence(2024 * 12 + month, topics, f"e{month}-{number}", 1 if grade == "right" else -1)
            answers.append(Answer(form, topics, "change", grade, evidence))
    return answers


def weak(form: str) -> list[Answer]:
    """Few answers of a model that knows half of what happened up to September, and a tenth of the rest."""
    return graded(8, form, seed=1, each=2) + graded(-1, form, seed=2, each=2)


def controls(kind: str, grade: str, number: int = 12) -> list[Answer]:
    side = 1 if grade == "right" else -1
    return [Answer("open", kind, kind, grade, ChangeEvidence(MAY, kind, f"{kind}{i}", side)) for i in range(number)]


@pytest.mark.parametrize("unknown", ["wrong", "abstained"])
def test_one_form(unknown: str) -> None:
    """A model that abstains on what is new has the same cutoff as one that answers wrong."""
    found = judged_answers("m", graded(4, unknown=unknown), "file")
    assert (found.overall.verdict, found.overall.cutoff) == ("found", MAY)
    assert found.forms["open"].cutoff == MAY
    assert set(found.topics) == {"deaths", "offices", "sports"}
    assert all(topic.low <= MAY <= topic.high for topic in found.topics.values())  # type: ignore[operator]


@pytest.mark.parametrize(("one", "other"), [(4, 4), (4, 6), (4, 9)])
def test_intervals_of_two_forms_overlap_and_the_joint_one_meets_both(one: int, other: int) -> None:
    found = judged_answers("m", graded(one, "open") + graded(other, "choice"), "file")
    ends = [(form.low, form.high) for form in found.forms.values()]
    joint = found.overall
    assert max(low for low, _ in ends) <= min(high for _, high in ends)  # type: ignore[type-var,operator]
    assert all(low <= joint.high and high >= joint.low for low, high in ends)  # type: ignore[operator]
    assert joint.low <= joint.cutoff <= joint.high  # type: ignore[operator]
    assert MAY + one - 4 <= joint.cutoff <= MAY + other - 4  # type: ignore[operator]


def test_the_more_the_forms_differ_the_wider_is_the_joint_interval() -> None:
    widths = []
    for other in (4, 7, 10):
        joint = judged_answers("m", graded(4, "open") + graded(other, "choice"), "file").overall
        widths.append(joint.high - joint.low)  # type: ignore[operator]
    assert widths == sorted(set(widths))


def test_the_same_answers_under_other_names_of_forms_tell_no_more() -> None:
    one = graded(8, each=8)
    copies = [answer._replace(form=f"form {i}") for i in range(4) for answer in one]
    assert judged_answers("m", copies, "file").overall == judged_answers("m", one, "file").overall


def test_forms_that_say_the_opposite_tell_nothing() -> None:
    found = judged_answers("m", graded(-1, "open") + graded(18, "choice"), "file")
    assert [form.verdict for form in found.forms.values()] == ["after the data", "before the data"]
    assert found.overall.verdict == "cannot tell"


def test_forms_that_cannot_tell_have_bounds_together() -> None:
    found = judged_answers("m", weak("open") + weak("choice"), "file")
    assert {one.verdict for one in (found.overall, *found.forms.values())} == {"cannot tell"}
    assert all(one.low <= MAY + 4 <= one.high for one in (found.overall, *found.forms.values()))  # type: ignore[operator]
    assert "cannot tell where it ends: knows what changed at least up to " in next(found.lines())
    assert MAY + 4 in (month for month, _ in found.overall.likely)
    few, many = (judged_answers("m", graded(-1, each=each), "f").overall.shown for each in (6, 24))
    assert few[0] > many[0] > 0  # type: ignore[index]  # a smaller fall shows if there are more answers


def test_a_fall_in_one_of_two_forms_must_be_clearer_than_in_one_alone() -> None:
    form = Belief(Cutoff(5, 4, 6, "found"), np.array([4, 5, 6]), np.zeros(3), error=0.02)
    assert [join(forms)[0].verdict for forms in ([form], [form, Belief.of([])])] == ["found", "cannot tell"]


def test_a_topic_with_a_cutoff_of_its_own_is_named() -> None:
    found = judged_answers("m", graded(3, topic="deaths") + graded(12, topic="sports"), "file")
    assert (found.topics["deaths"].cutoff, found.topics["sports"].cutoff) == (MAY - 1, MAY + 8)


@pytest.mark.parametrize(("known", "verdict"), [(-1, "before the data"), (18, "after the data")])
def test_a_model_that_knows_nothing_or_everything(known: int, verdict: str) -> None:
    found = judged_answers("m", graded(known, unknown="abstained"), "file")
    assert found.overall.verdict == verdict
    assert found.forms["open"].verdict == verdict


def test_a_model_that_calls_everything_changed_knows_nothing_for_sure() -> None:
    found = judged_answers("m", graded(18) + controls("unchanged", "wrong") + controls("never", "right"), "file")
    assert (found.overall.verdict, found.controls) == ("cannot tell", {"unchanged": 0, "never": 100})
    assert {one.verdict for one in (*found.forms.values(), *found.topics.values())} == {"cannot tell"}
    found = judged_answers("m", graded(18) + controls("unchanged", "right"), "file")
    assert found.overall.verdict == "after the data"


def test_shuffled_months_have_no_cutoff() -> None:
    found = []
    for seed in range(20):
        answers = graded(8, "open", seed=seed) + graded(9, "choice", seed=seed)
        months = [one.item.month for one in answers]
        random.Random(seed).shuffle(months)
        mixed = [one._replace(item=one.item._replace(month=at)) for one, at in zip(answers, months, strict=True)]
        found.append(judged_answers("m", mixed, "file").overall.verdict)
    assert found.count("found") <= 1


def test_months_outside_the_asked_ones_do_not_count() -> None:
    found = judged_answers("m", graded(4), "file", MAY - 2, MAY + 6)
    assert {point.month for point in found.curve} == set(range(MAY - 2, MAY + 7))
    assert found.overall.cutoff == MAY


# Files


HEAD = "model,form,date,topic,grade"
GOOD = "m,open,2024-05-01,deaths,right"


def write(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_a_file_with_the_optional_columns(tmp_path: Path) -> None:
    rows = [f"{HEAD},event,kind,advertised", f"{GOOD},e1,,2025-01", "m,choice,2024-05,deaths,abstained,e1,never,"]
    [(model, answers)] = read_answers(write(tmp_path / "a.csv", rows)).items()
    assert model == "m"
    assert [(one.kind, one.item, one.advertised) for one in answers] == [
        ("change", ChangeEvidence(MAY, "deaths", "e1", 1.0), "2025-01"),
        ("never", ChangeEvidence(MAY, "deaths", "e1", -1.0), None),
    ]


def test_unreadable_answers_are_counted_and_left_out() -> None:
    bad = [one._replace(grade="unreadable") for one in graded(4, seed=1)[:7]]
    found = judged_answers("m", graded(4) + bad, "file")
    assert found.evidence == {"answers": 18 * 16, "unreadable": 7}


WRONG = {
    "a column less": (
        ["model,form,dates,topic,grade"],
        r"no column date \(did you mean dates\?\); it needs model, form, date",
    ),
    "no rows": ([HEAD], "no answers in it"),
    "a grade": ([HEAD, GOOD, "m,open,2024-05-01,deaths,rihgt"], r"row 3: no grade 'rihgt' \(did you mean right\?\)"),
    "a month": ([HEAD, "m,open,2024-13-01,deaths,right"], "row 2: '2024-13-01' is not a date: write YYYY-MM-DD"),
    "a kind": ([f"{HEAD},kind", f"{GOOD},changed"], r"row 2: no kind 'changed' \(did you mean change\?\)"),
    "an advertised day": (
        [f"{HEAD},advertised", f"{GOOD},2025-01-31"],
        "row 2: advertised '2025-01-31' is not a month: write YYYY-MM",
    ),
    "no model": ([HEAD, ",open,2024-05-01,deaths,right"], "row 2: no model"),
    "a cell less": ([HEAD, "m,open,2024-05-01,deaths"], "row 2: has not as many cells as the first row"),
    "a cell more": ([HEAD, f"{GOOD},x"], "row 2: has not as many cells as the first row"),
    "another table": (["\0"], "no column|cannot be read"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_answered_with_the_row(case: str, tmp_path: Path) -> None:
    lines, said = WRONG[case]
    with pytest.raises(InputError, match=said):
        read_answers(write(tmp_path / "a.csv", lines))


def test_too_few_answers() -> None:
    with pytest.raises(InputError, match=r"^a\.csv: m: 19 answers about changes; at least 20 are needed$"):
        judged_answers("m", graded(4)[:19], "a.csv")
