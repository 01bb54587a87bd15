"""lm-evaluation-harness gives the same numbers for our probes as plain `transformers`."""

import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from plain_transformers import continuation, load, nlls

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness import adapters
from temporalwiki.eval_harness.answers import answer
from temporalwiki.eval_harness.models.local import CachedModel
from temporalwiki.eval_harness.tasks.deleted import Deleted
from temporalwiki.eval_harness.tasks.learned_and_forgotten import LearnedAndForgotten
from temporalwiki.eval_harness.tasks.multiple_choice import MultipleChoice
from temporalwiki.eval_harness.tasks.twiki_probes import TwikiProbes

from .conftest import EXACT_MATCH, F1, KINDS, PROBES, RIGHT_AND_GONE, write_probes

pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed")

from lm_eval.evaluator import evaluate
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager

TASKS = Path(adapters.__file__).parent / "lm_eval"
SPLITS = ("unchanged", "changed")
ALL = ["twiki_probes", "twiki_objects", "twiki_answers", "twiki_deleted", "twiki_multiple_choice"]


def manager(metadata: dict[str, Any]) -> TaskManager:
    return TaskManager(include_path=str(TASKS), include_defaults=False, metadata=metadata)


def run(model: Path, tasks: list[str], metadata: dict[str, Any], **options: Any) -> dict[str, Any]:
    lm = HFLM(pretrained=str(model), dtype="float32", device="cpu", batch_size=3, **options)
    # the command line adds the model's arguments to --metadata
    loaded = manager({"pretrained": str(model), **options, **metadata}).load(tasks)
    return evaluate(lm, loaded, bootstrap_iters=0)


def of_samples(results: dict[str, Any], task: str) -> list[tuple[list[Any], list[Any]]]:
    """Return (arguments, responses) of each item, in the order of the items."""
    samples = sorted(results["samples"][task], key=lambda sample: sample["doc_id"])
    return [(sample["arguments"], [response for (response,) in sample["resps"]]) for sample in samples]


# results of lm_eval, the folder of the model, and the model and its tokenizer in plain transformers
Case = tuple[dict[str, Any], Path, tuple[Any, Any]]


@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest, month: Path, models: dict[str, Path]) -> Case:
    folder = models[request.param]
    data = {"data": str(month), "config": "probes-1112"}
    return run(folder, ALL, data, add_bos_token=True), folder, load(folder)


def scores(results: dict[str, Any], task: str) -> dict[str, float]:
    found = results["results"][task].items()
    return {
        name.removesuffix(",none"): value for name, value in found if name.endswith(",none") and "_std" not in name
    }


@pytest.mark.parametrize(
    ("task", "split"),
    [("twiki_probes_unchanged", "unchanged"), ("twiki_probes_changed", "changed"), ("twiki_deleted", "deleted")],
)
def test_whole_probes(case: Case, task: str, split: str) -> None:
    results, _, plain = case
    texts = [f"{s} {r} {o}" for s, r, o, *_ in PROBES[split]]
    found = [nlls(*plain, "", text) for text in texts]
    expected, tokens = [-sum(nll) for nll in found], [len(nll) for nll in found]
    assert [arguments for arguments, _ in of_samples(results, task)] == [[("", text)] for text in texts]
    assert [r[0][0] for _, r in of_samples(results, task)] == pytest.approx(expected, rel=1e-5)
    nats, size = -sum(expected), sum(len(text.encode()) for text in texts)
    assert scores(results, task) == pytest.approx(
        {
            "perplexity": math.exp(nats / sum(tokens)),
            "perplexity_instance_mean": sum(math.exp(-ll / n) for ll, n in zip(expected, tokens, strict=True))
            / len(texts),
            "bits_per_byte": nats / size / math.log(2),
            "byte_perplexity": math.exp(nats / size),
            "word_perplexity": math.exp(nats / sum(len(text.split(" ")) for text in texts)),
        },
        rel=1e-5,
    )


@pytest.mark.parametrize("split", SPLITS)
def test_objects_given_their_prompts(case: Case, split: str) -> None:
    results, _, plain = case
    pairs = [(f"{s} {r}", f" {o}") for s, r, o, *_ in PROBES[split]]
    objects = [nlls(*plain, *pair) for pair in pairs]
    expected = [-sum(nll) for nll in objects]
    items = of_samples(results, f"twiki_objects_{split}")
    assert [arguments for arguments, _ in items] == [[("", prompt + o), ("", prompt)] for prompt, o in pairs]
    found = [whole[0] - prompt[0] for _, (whole, prompt) in items]
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)
    bits = -sum(expected) / sum(len(o.encode()) for _, o in pairs) / math.log(2)
    tokens = sum(map(len, objects))
    assert scores(results, f"twiki_objects_{split}") == pytest.approx(
        {"object_perplexity": math.exp(-sum(expected) / tokens), "bits_per_byte": bits}, rel=1e-4
    )


@pytest.mark.parametrize("split", SPLITS)
def test_answers(case: Case, split: str) -> None:
    results, _, plain = case
    prompts = [f"{s} {r}" for s, r, *_ in PROBES[split]]
    task = f"twiki_answers_{split}"
    settings = {"until": [], "max_gen_toks": TwikiProbes().max_new_tokens, "do_sample": False}
    assert [arguments for arguments, _ in of_samples(results, task)] == [[(prompt, settings)] for prompt in prompts]
    said = [response for _, (response,) in of_samples(results, task)]
    assert [answer(text) for text in said] == [answer(continuation(*plain, prompt, 20)) for prompt in prompts]
    n = len(prompts)
    assert scores(results, task) == pytest.approx(
        {"exact_match": sum(EXACT_MATCH[split]) / n, "f1": sum(F1[split]) / n}
    )


def test_the_new_object_against_the_old(case: Case) -> None:
    results, _, plain = case
    texts = {  # not the fact without a previous object, nor a previous object of the same name
        "Norland head of government": ["Anna Weber", "Ben Ito"],
        "Easton {{mayor}}": ["[Ito]", "Carl"],
        "東京 country": ["日本", "Easton"],
    }
    items = of_samples(results, "twiki_multiple_choice")
    assert [a for a, _ in items] == [[("", f"{prompt} {o}") for o in objects] for prompt, objects in texts.items()]
    for (arguments, responses), (prompt, objects) in zip(items, texts.items(), strict=True):
        expected = [-sum(nlls(*plain, "", text)) for _, text in arguments]
        assert [value for value, _ in responses] == pytest.approx(expected, rel=1e-5)
        alone = [-sum(nlls(*plain, prompt, f" {o}")) for o in objects]
        assert expected.index(max(expected)) == alone.index(max(alone))
    assert scores(results, "twiki_multiple_choice") == pytest.approx(
        {"acc": 1 / 3}
    )  # the new country alone was taught


def test_the_numbers_are_those_of_our_tasks(case: Case, month: Path, tmp_path: Path) -> None:
    results, folder, _ = case
    rows = {split: pq.read_table(month / f"data/probes-1112/{split}.parquet").to_pylist() for split in PROBES}
    model = CachedModel(str(folder), tmp_path)
    ours = TwikiProbes(light_tuning=False).run(model, rows).scores
    ours |= {
        **Deleted().run(model, rows).scores,
        "multiple choice": MultipleChoice().run(model, rows).scores["changed/acc"],
    }
    theirs = {"multiple choice": 100 * scores(results, "twiki_multiple_choice")["acc"]}
    theirs["deleted/perplexity"] = scores(results, "twiki_deleted")["perplexity"]
    for place, suffix in {"unchanged": "_unchanged", "changed": "_changed", "average": ""}.items():
        whole, of_object, said = (
            scores(results, f"twiki_{name}{suffix}") for name in ("probes", "objects", "answers")
        )
        theirs |= {f"{place}/{n}": whole[n] for n in ("perplexity", "perplexity_instance_mean", "bits_per_byte")}
        theirs |= {f"{place}/{name}": 100 * said[name] for name in ("exact_match", "f1")}
        theirs[f"{place}/object_perplexity"] = of_object["object_perplexity"]
    assert theirs == pytest.approx({name: ours[name].value for name in theirs}, rel=1e-4)


def test_all_that_is_right_is_accepted_and_only_what_is_gone_is_wrong(models: dict[str, Path], tmp_path: Path) -> None:
    """The model says "Ben Ito", "1961", "Carl Ito of Easton" and "日本"."""
    folder = write_probes(tmp_path / "temporalwiki", RIGHT_AND_GONE, changed=PROBES["changed"])
    tasks = ["twiki_answers_changed", "twiki_multiple_choice"]
    results = run(models["gpt2"], tasks, {"data": str(folder), "config": "probes-1112"}, add_bos_token=True)
    assert scores(results, "twiki_answers_changed") == {"exact_match": 1, "f1": 1}
    asked = [[text for _, text in arguments] for arguments, _ in of_samples(results, "twiki_multiple_choice")]
    assert asked == [
        ["Anna Weber born 1961", "Anna Weber born 1962"],
        [f"Easton {{{{mayor}}}} {name}" for name in ("[Ito]", "Easton Ito", "Dee", "Carl")],
    ]
    rows = {"changed": pq.read_table(folder / "data/probes-1112/changed.parquet").to_pylist()}
    ours = MultipleChoice().run(CachedModel(str(models["gpt2"]), tmp_path / "cache"), rows)
    assert ours.excluded == {"changed: no previous object that is wrong now": 1, "changed: not right any more": 1}
    # "Carl", which is wrong, is the likeliest: the model learned "Carl Ito of Easton", so it also knows its beginning
    assert [item["acc"] for item in ours.items] == [1, 0]
    assert scores(results, "twiki_multiple_choice") == {"acc": 0.5}


@pytest.fixture(scope="module")
def panels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven changed facts and twelve unchanged ones of a relation; two more are of a relation without a panel."""
    of = {"changed": 7, "unchanged": 12}
    rows = {
        s: [(f"Norland {s} {i}", "mayor", f"Ito {i} {s}", [f"Dee {i}"], "") for i in range(n)] for s, n in of.items()
    }
    rows["unchanged"] += [("Easton", "anthem", "Weber", [], ""), ("Norland", "anthem", "Carl", [], "")]
    return write_probes(tmp_path_factory.mktemp("panels") / "temporalwiki", **rows)


def test_known_facts_are_those_of_our_task(
    panels: Path, models: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    results = run(models["gpt2"], ["twiki_known"], {"data": str(panels), "config": "probes-1112"})
    rows = {split: pq.read_table(panels / f"data/probes-1112/{split}.parquet").to_pylist() for split in SPLITS}
    ours = LearnedAndForgotten().run(CachedModel(str(models["gpt2"]), tmp_path), rows).scores
    theirs = {split: scores(results, f"twiki_known_{split}") for split in SPLITS}
    assert "left out, unchanged: in a panel of fewer than 6 facts of the relation: 2" in capfd.readouterr().err
    assert [len(results["samples"][f"twiki_known_{split}"]) for split in SPLITS] == [12, 7]
    assert theirs["changed"] == pytest.approx({"known": ours["all/new_known"].value / 100, "chance": 1 / 7})
    assert theirs["unchanged"] == pytest.approx({"known": ours["all/old_known"].value / 100, "chance": 1 / 6})
    assert 0 < theirs["unchanged"]["known"] < 1


def test_a_part_of_a_panel_is_refused(panels: Path, models: dict[str, Path]) -> None:
    lm = HFLM(pretrained=str(models["gpt2"]), dtype="float32", device="cpu", batch_size=3)
    tasks = manager({"data": str(panels), "config": "probes-1112"}).load(["twiki_known_changed"])
    with pytest.raises(
        InputError, match=r"panel mayor/changed/0: only 3 of its facts were asked; run without --limit"
    ):
        evaluate(lm, tasks, bootstrap_iters=0, limit=3)


@pytest.mark.parametrize("group", ["twiki_probes", "twiki_objects", "twiki_answers"])
def test_a_group_has_the_mean_of_its_splits(case: Case, group: str) -> None:
    results, *_ = case
    one, two = (scores(results, f"{group}_{split}") for split in SPLITS)
    assert scores(results, group) == pytest.approx({name: (one[name] + two[name]) / 2 for name in one})


def test_likelihoods_do_not_depend_on_whether_the_tokenizer_adds_bos(month: Path, models: dict[str, Path]) -> None:
    tasks, data = ["twiki_probes_changed", "twiki_objects_changed"], {"data": str(month), "config": "probes-1112"}
    runs = [
        scores(run(models[kind], tasks, data, **options), task)
        for kind, options in [("llama", {}), (KINDS[2], {}), (KINDS[2], {"add_bos_token": False})]
        for task in tasks
    ]
    assert runs[0:2] == runs[2:4] == runs[4:6]


def test_another_prefix_gives_other_numbers(month: Path, models: dict[str, Path]) -> None:
    (model, tokenizer), data = load(models["llama"]), {"data": str(month), "config": "probes-1112"}
    results = run(models["llama"], ["twiki_probes_changed"], data, prefix_token_id=tokenizer.eos_token_id)
    found = [response[0][0] for _, response in of_samples(results, "twiki_probes_changed")]
    texts = [f"{s} {r} {o}" for s, r, o, *_ in PROBES["changed"]]
    after_bos = [-sum(nlls(model, tokenizer, "", text)) for text in texts]
    tokenizer.bos_token = tokenizer.eos_token
    assert found == pytest.approx([-sum(nlls(model, tokenizer, "", text)) for text in texts], rel=1e-5)
    assert not any(math.isclose(a, b, rel_tol=1e-3) for a, b in zip(found, after_bos, strict=True))


def test_without_a_tokenizer_there_is_no_number_per_token(month: Path, models: dict[str, Path]) -> None:
    data = {"data": str(month), "config": "probes-1112", "pretrained": None}
    results = run(models["gpt2"], ["twiki_probes_changed", "twiki_objects_changed"], data)
    assert scores(results, "twiki_probes_changed").keys() == {"bits_per_byte", "byte_perplexity", "word_perplexity"}
    assert scores(results, "twiki_objects_changed").keys() == {"bits_per_byte"}


def test_without_metadata_the_folder_here_is_read(
    month: Path, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(month.parent)
    results = run(models["gpt2"], ["twiki_deleted"], {"revision": "main"})
    assert results["n-samples"]["twiki_deleted"]["effective"] == 1
    assert (
        results["configs"]["twiki_deleted"]["metadata"] | {"data": "temporalwiki", "config": "probes-1112"}
        == (results["configs"]["twiki_deleted"]["metadata"])
    )


@pytest.mark.parametrize(
    ("splits", "task", "message"),
    [
        ({"train": PROBES["changed"]}, "twiki_probes_changed", "holds no probes; name a config such as probes-1112"),
        (
            {"changed": [("Anna Weber", "born", "1961", None, "")]},
            "twiki_multiple_choice",
            "this split of the config holds no probes to evaluate",
        ),
    ],
)
def test_nothing_to_evaluate(tmp_path: Path, splits: dict[str, Any], task: str, message: str) -> None:
    folder = write_probes(tmp_path / "temporalwiki", **splits)
    with pytest.raises(InputError, match=message):
        manager({"data": str(folder), "config": "probes-1112"}).load([task])


def test_a_revision_is_taken_off_the_data() -> None:
    with pytest.raises(InputError, match=r"org/data: revision '2021\.12' cannot be checked offline"):
        manager({"data": "org/data@2021.12", "config": "probes-1112"}).load(["twiki_deleted"])
