"""inspect-ai gives our exact match and F1 for our probes, and reads the dataset's eval.yaml."""

import asyncio
import shutil
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
import yaml
from plain_transformers import continuation, load

from temporalwiki.base.errors import UsageError
from temporalwiki.eval_harness.answers import answer
from temporalwiki.eval_harness.metrics import knowledge_match
from temporalwiki.eval_harness.tasks.twiki_probes import TwikiProbes
from temporalwiki.model_cards.eval_yaml import eval_yaml

from .conftest import EXACT_MATCH, F1, KINDS, PROBES, RIGHT_AND_GONE, write_probes

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")

from inspect_ai import eval as inspect_eval
from inspect_ai._eval.task.hf import HFTask
from inspect_ai._util.registry import registry_info
from inspect_ai.model import Model, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Target, exact, f1, value_to_float

from temporalwiki.builders.manifests import Config, Manifest, Split
from temporalwiki.eval_harness.adapters.inspect_tasks import twiki_probes

SPLITS = ("unchanged", "changed")
_CONFIG = Config("probes-1112", {name: Split(len(of), 0, []) for name, of in PROBES.items()})
EVAL_YAML = eval_yaml([Manifest(configs={"probes-20211101-20211201": _CONFIG}, inputs=[])]) or ""


def says(texts: Sequence[str]) -> Model:
    """A model that answers with a list of texts, one after the other."""
    outputs = [ModelOutput.from_content("mockllm", text) for text in texts]
    for output in outputs:  # else they are counted by a tokenizer from the network
        output.usage = ModelUsage()
    return get_model("mockllm/model", custom_outputs=outputs, memoize=False)


def run(task: Any, model: Model, folder: Path) -> list[Any]:
    """Evaluate in order, one sample at a time."""
    logs = inspect_eval(task, model=model, log_dir=str(folder), display="none", max_samples=1, max_connections=1)
    assert [log.status for log in logs] == ["success"] * len(logs), [log.error for log in logs]
    return logs


def scores(log: Any) -> dict[str, dict[str, float]]:
    """Return the means by score and split."""
    return {
        score.name: {metric.name: metric.value for metric in score.metrics.values() if metric.group == "grouped"}
        for score in log.results.scores
    }


def test_the_entry_point_has_the_task() -> None:
    (point,) = entry_points(group="inspect_ai", name="temporalwiki") or [None]
    if point is None:
        pytest.skip("temporalwiki was installed before it had an entry point for inspect-ai")
    assert point.load().twiki_probes is twiki_probes


def test_the_task_has_the_packages_name() -> None:
    assert registry_info(twiki_probes).name == "temporalwiki/twiki_probes"


def test_items(month: Path) -> None:
    samples = list(twiki_probes(data=str(month)).dataset)
    facts = [(split, fact) for split in SPLITS for fact in PROBES[split]]
    assert [s.input for s in samples] == [f"{subject} {relation}" for _, (subject, relation, *_) in facts]
    assert [s.target for s in samples] == [[o] for _, (_, _, o, *_) in facts]
    assert [s.metadata["split"] for s in samples] == [split for split, _ in facts]
    assert [s.metadata["subject"] for s in samples] == [f"Q{subject}" for _, (subject, *_) in facts]
    assert len({s.id for s in samples}) == len(samples)


def test_scores_are_ours(month: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(month.parent)  # the defaults are the folder of that name, and its config
    facts = [fact for split in SPLITS for fact in PROBES[split]]
    said = [text for *_, text in facts]
    (log,) = run(twiki_probes(), says(said), tmp_path)
    by_hand = {"exact_match": EXACT_MATCH, "f1": F1}
    means = {name: [sum(of[split]) / len(of[split]) for split in SPLITS] for name, of in by_hand.items()}
    assert scores(log) == {
        name: pytest.approx({"unchanged": one, "changed": two, "average": (one + two) / 2})
        for name, (one, two) in means.items()
    }
    for number, split in enumerate(SPLITS):
        pairs = [(answer(text), o) for _, _, o, _, text in PROBES[split]]
        ours = knowledge_match.knowledge_match(*map(list, zip(*pairs, strict=True)))
        assert {name: 100 * mean[number] for name, mean in means.items()} == pytest.approx(
            {name: ours[name] for name in means}
        )


def test_all_that_is_right_is_accepted(tmp_path: Path) -> None:
    folder = write_probes(tmp_path / "temporalwiki", RIGHT_AND_GONE, changed=PROBES["changed"])
    (log,) = run(
        twiki_probes(data=str(folder), splits="changed"),
        says(["Ben Ito. He", "Sixty-one.", "Carl", "Easton"]),
        tmp_path / "logs",
    )
    assert [sample.target for sample in log.samples] == [
        ["Anna Weber", "Ben Ito"],
        ["1961", "sixty-one"],
        ["[Ito]", "Easton Ito", "Carl Ito of Easton"],
        ["日本"],
    ]
    assert [sample.scores["knowledge_match"].value["exact_match"] for sample in log.samples] == [1, 1, 0, 0]


def test_the_standard_error_is_clustered_by_subject(month: Path, tmp_path: Path) -> None:
    # hits 1, 1 of one subject and 0 of two others, mean 1/2: deviations by subject 1, -1/2, -1/2;
    # variance (1 + 1/4 + 1/4) / 4^2, times 3/2 for three subjects
    facts = [
        ("Norland", "capital", "Easton"),
        ("Norland", "mayor", "Ito"),
        ("Anna", "born", "1961"),
        ("Ben", "is", "x"),
    ]
    folder = write_probes(tmp_path / "temporalwiki", changed=[(*fact, [], "") for fact in facts])
    said = ["Easton", "Ito", "1962", "y"]
    (log,) = run(twiki_probes(data=str(folder), splits="changed"), says(said), tmp_path / "logs")
    (error,) = [m for m in log.results.scores[0].metrics.values() if "clustered_stderr" in m.group]
    assert (error.name, error.value) == ("changed", pytest.approx((1.5 / 16 * 3 / 2) ** 0.5))


def test_a_split_that_is_not_there(month: Path) -> None:
    with pytest.raises(UsageError, match=r"splits: no 'change' \(did you mean changed\?\); there are unch"):
        twiki_probes(data=str(month), splits="unchanged,change")


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[2]])
def test_a_local_model_goes_on_as_in_plain_transformers(
    month: Path, models: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    model = get_model(
        "hf/local",
        model_path=str(models[kind]),
        device="cpu",
        do_sample=False,
        chat_template="{{ bos_token }}{{ messages[0].content }}",
        tokenizer_call_args={"add_special_tokens": False},
        memoize=False,
    )
    (log,) = inspect_eval(twiki_probes(data=str(month)), model=model, log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    plain = load(models[kind])
    for sample in log.samples:
        assert sample.output.completion == continuation(*plain, sample.input, TwikiProbes().max_new_tokens)
    assert scores(log)["f1"]["changed"] == pytest.approx(sum(F1["changed"]) / 4)


def test_eval_yaml_makes_the_dataset_a_benchmark() -> None:
    """The fields that the Hub documents for eval.yaml; inspect-ai refuses unknown ones in a task."""
    benchmark = yaml.safe_load(EVAL_YAML)
    assert benchmark.keys() == {"name", "description", "evaluation_framework", "tasks"}
    assert benchmark["evaluation_framework"] == "inspect-ai"
    tasks = [HFTask.model_validate(task) for task in benchmark["tasks"]]
    assert [(task.id, task.config, task.split) for task in tasks] == [
        (f"probes-20211101-20211201-{split}", "probes-20211101-20211201", split) for split in SPLITS
    ]


def test_eval_yaml_in_a_dataset_repository(month: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = tmp_path / "org" / "temporalwiki"
    shutil.copytree(month, repository)
    card = repository / "README.md"
    card.write_text(card.read_text("utf-8").replace('"probes-1112"', "probes-20211101-20211201"), "utf-8")
    (repository / "eval.yaml").write_text(EVAL_YAML, "utf-8")
    monkeypatch.chdir(tmp_path)  # where a repository's id is the folder's path
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda repo_id, filename, **_: f"{repo_id}/{filename}")
    said = [answer(text) for split in SPLITS for *_, text in PROBES[split]]
    logs = run("hf/org/temporalwiki", says(said), tmp_path / "logs")
    for log, split in zip(logs, SPLITS, strict=True):
        asked = [sample.messages[0].text for sample in log.samples]
        assert [text.rpartition("\n")[2] for text in asked] == [f"{s} {r}" for s, r, *_ in PROBES[split]]
        found = {score.name: score.metrics["mean"].value for score in log.results.scores}
        n = len(asked)
        assert found == pytest.approx({"exact": sum(EXACT_MATCH[split]) / n, "f1": sum(F1[split]) / n})


# (answer, object, our exact match, inspect-ai's exact(), its f1())
BUILT_IN = {
    "the same": ("the Easton!", "Easton", 1, 1, 1),
    "punctuation of Unicode stays": ("“Easton”", "Easton", 1, 0, 0),
    "a hyphen parts words": ("Saint-Denis", "Saint Denis", 0, 1, 1),
    "so it does not vanish": ("SaintDenis", "Saint-Denis", 1, 0, 0),
    "a number is its value": ("1961.0", "1961", 0, 1, 1),
    "the point is kept in it": ("314", "3.14", 1, 0, 0),
    "an object that is an article": ("The The", "The The", 1, 0, 0),
    "decomposed letters": ("e\u0301cole", "école", 1, 0, 0),
    "F1 is rounded": ("10 km", "10", 0, 0, 0.67),
}


@pytest.mark.parametrize(("said", "object_", "ours", "of_exact", "of_f1"), BUILT_IN.values(), ids=BUILT_IN)
def test_where_the_built_in_scorers_differ(
    said: str, object_: str, ours: float, of_exact: float, of_f1: float
) -> None:
    state: Any = SimpleNamespace(output=SimpleNamespace(completion=said))
    built_in = [value_to_float()(asyncio.run(scorer(state, Target(object_))).value) for scorer in (exact(), f1())]
    assert knowledge_match.exact_match(said, [object_]) == ours
    assert built_in == [of_exact, of_f1]
