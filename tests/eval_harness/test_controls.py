"""What must not learn learns nothing: exchanged objects, unread articles, random weights, other temperatures."""

from pathlib import Path
from typing import Any

import pytest

from temporalwiki.commands import main
from temporalwiki.eval_harness.demo import tiny_model
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.runner import Evaluation, evaluate
from temporalwiki.eval_harness.statistics import Estimate
from temporalwiki.eval_harness.tasks import find_task
from temporalwiki.methods.unread import is_unread

from a_dataset import write_dataset

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick")]
RELATIONS = ("mayor", "river", "anthem", "port", "bridge", "stadium")
WORDINGS = ("{s} {r} {o}.", "The {r} of {s} is {o}.", "{o} is now the {r} of {s}.", "As {r}, {s} has {o}.")
Scores = dict[str, Estimate]


def facts(split: str) -> list[dict[str, Any]]:
    """Ten facts of each relation, and an article for each; no two subjects share an object."""
    rows = []
    for i in range(10 * len(RELATIONS)):
        relation, place = divmod(i, 10)
        number = (i * 37 + (split == "changed") * 500) % 1000
        columns = {
            "page_id": i,
            "subject_id": f"Q{i}{split}",
            "relation_id": f"P{relation}",
            "object_id": f"Q9{number}",
        }
        label, gone = f"N{number}", [f"G{i}"] if split == "changed" else []
        columns |= {
            "subject": f"{split} {chr(65 + place)}{relation}",
            "relation": RELATIONS[relation],
            "object": label,
        }
        rows.append(columns | {"objects": [label], "gone_objects": gone, "evidence": "", "aliases": []})
    return rows


CHANGED, UNCHANGED = facts("changed"), facts("unchanged")


def articles(rows: list[dict[str, Any]], column: str = "object") -> list[dict[str, Any]]:
    return [
        {
            "id": row["page_id"],
            "title": row["subject"],
            "text": " ".join(
                words.format(s=row["subject"], r=row["relation"], o=label)
                for label in ([row["object"]] if column == "object" else row[column])
                for words in WORDINGS
            ),
        }
        for row in rows
    ]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A start model that read the facts of one month, and models that read the text of the next, or a control's."""
    folder = tmp_path_factory.mktemp("controls")
    before = [*articles(UNCHANGED), *articles(CHANGED, "gone_objects")]
    probes = {"changed": CHANGED, "unchanged": UNCHANGED}
    configs = {"wikipedia-11": before, "diffset-1112": articles(CHANGED), "facts-1112": probes, "probes-1112": probes}
    write_dataset(folder / "data", configs)
    for part in tiny_model([row["text"] for row in (*before, *articles(CHANGED))], 600):
        part.save_pretrained(folder / "random")
    train(folder, "full", "random", "start", "wikipedia-11", "--epochs", "40")
    for method in ("diff", "shuffled", "unread", "untrained"):
        train(folder, method, "start", method, "diffset-1112", "--epochs", "30")
    return folder


def train(folder: Path, method: str, model: str, output: str, config: str, *more: str) -> None:
    where = ("--model", f"{folder / model}", "--data", f"{folder / 'data'}", "--output", f"{folder / output}")
    options = ("--batch-size", "8", "--sequence-length", "64", "--learning-rate", "4e-3", *more)
    assert main(["train", "--method", method, *where, "--config", config, *options]) == 0


def scores(models: Path, out: Path, name: str, start: str = "start", temperature: float = 1.0) -> Scores:
    task = find_task("learned_and_forgotten")(temperature=temperature)  # type: ignore[call-arg]
    data, before = str(models / "data"), str(models / start)
    wanted = Evaluation(str(models / name), data, {"learned_and_forgotten": task}, (), out, None, start=before)
    [result] = evaluate(wanted, CachedModel(str(models / name), out / "kept"))
    return dict(result.manifest.scores)  # type: ignore[arg-type]


def holds(score: Estimate, value: float) -> bool:
    return score.low is not None and score.high is not None and score.low <= value <= score.high


def test_diff_learns_and_a_text_with_exchanged_objects_teaches_nothing(models: Path, tmp_path: Path) -> None:
    diff, shuffled = (scores(models, tmp_path, name) for name in ("diff", "shuffled"))
    assert diff["all/learned"].low is not None and diff["all/learned"].low > 20
    assert shuffled["all/learned"].low is not None and shuffled["all/learned"].low <= 0
    assert shuffled["all/new_known"].value <= shuffled["all/chance"].value  # below: it learned the wrong objects


def test_reading_about_some_subjects_teaches_nothing_about_the_others(models: Path, tmp_path: Path) -> None:
    diff, unread = (scores(models, tmp_path, name) for name in ("diff", "unread"))
    assert 20 < sum(is_unread(row["subject_id"]) for row in CHANGED) < 40
    assert holds(unread["unread/learned"], 0)
    assert diff["unread/learned"].low is not None and diff["unread/learned"].low > 0
    assert unread["all/learned"].value > 0  # it learned the half that it read


def test_an_untrained_model_is_at_chance(models: Path, tmp_path: Path) -> None:
    untrained = scores(models, tmp_path, "untrained")
    for measure in ("new_known", "old_known"):
        assert holds(untrained[f"all/{measure}"], untrained["all/chance"].value)


@pytest.mark.parametrize("temperature", [0.5, 0.8, 1.25, 2.0])
@pytest.mark.parametrize("name", ["start", "diff"])
def test_a_temperature_teaches_nothing_and_costs_nothing(
    models: Path, tmp_path: Path, name: str, temperature: float
) -> None:
    soft = scores(models, tmp_path, name, name, temperature)
    for measure, rows in (("learned", CHANGED), ("forgotten", UNCHANGED)):
        assert abs(soft[f"all/{measure}"].value) <= max(2, 100 * 3 / len(rows))
        assert holds(soft[f"all/{measure}"], 0)
