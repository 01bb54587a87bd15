"""The model card: hostile names are data in its header, and its text has the training and the scores."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from huggingface_hub import ModelCard, constants
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.builders.manifests import Dates, ImportedManifest, InputFile
from temporalwiki.eval_harness.results import Result
from temporalwiki.methods import METHODS
from temporalwiki.methods.manifest import TrainingManifest
from temporalwiki.model_cards.eval_results import HubDataset
from temporalwiki.model_cards.model import Base, Card, Kind, model_card

import a_result

CARD = Path(__file__).with_name("model_card.md")
RUN = {
    "method": "lora", "model": "gpt2", "data": "ORG/temporalwiki@2021.12", "config": "diffset-1112", "past": None,
    "lora.rank": 4, "batch_size": 64, "learning_rate": 1e-4, "max_steps": None, "gradient_checkpointing": False,
}  # fmt: skip
TRAINING: dict[str, Any] = {
    "run": RUN,
    "architecture": "decoder-only",
    "parameters": {"trainable": 1000, "total": 1234567},
    "versions": {"torch": "2.13.0", "peft": "0.21.2"},
    "data": {"new": {"config": "diffset-1112", "articles": 1234, "tokens": 56789, "of": "f1n6", "chunks": 111}},
    "steps": 5000,
    "precision": "bf16",
    "processes": 8,
    "device": "NVIDIA H100",
    "loss": {"first": 3.5, "last": 3.25},
    "log": [{"step": 1, "loss": 3.5}],
}
HISTORY: dict[str, Any] = {"method": "lora", "base": "gpt2", "learning_rate": 1e-4, "tokens": 9876543}
HISTORY |= {"trained_on": ["diffset-1011", "diffset-1112"], "parameters": TRAINING["parameters"]}
BASE = Base("ORG/gpt2", "b" * 40, {"license": "mit"})


def training(**changes: Any) -> TrainingManifest:
    content = TRAINING | changes
    return msgspec.convert(content | {"content": content}, TrainingManifest)


def interval(file: str, sha1: str) -> ImportedManifest:
    dates = Dates("enwiki", "20211101", "20211201")
    return ImportedManifest(imported=True, interval=dates, inputs=[InputFile(file, 5, sha1)], configs={}, counts={})


PLAIN = Card("ORG/lora-1112", None, "adapter", training(), HISTORY, BASE, None, ["en"], [], {})


def result(scores: dict[str, Any], config: str = "probes-1112", **more: Any) -> Result:
    data = {
        "task": {"name": "twiki_probes", "version": 1, "options": {}},
        "model": {"name": "m", "revision": "r", "precision": "fp32"},
        "data": {"dataset": "data", "config": config, "rows": {"changed": 9, "unchanged": 9}, "hash": "h1"},
        "scores": scores,
    }
    return a_result.from_content(Path("m", "a.json"), {**data, **more})


def estimate(value: float, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "items": 9, "clusters": 8}


SCORES = {
    "changed/perplexity": estimate(300.5, 280.0, 320.25),
    "changed/exact_match": estimate(10.0, 8.0, 12.0),
    "light-tuned/changed/f1": estimate(20.0),
    "changed/bits_per_byte": estimate(1.5),
}


def header(card: Card) -> dict[str, Any]:
    block = re.match(r"---\n(.*?)\n---\n", model_card(card), re.DOTALL)
    assert block
    return dict(yaml.safe_load(block[1]))


def cell(card: Card, name: str) -> str:
    """Return the value of a name in one of the card's tables with two columns."""
    [found] = re.findall(rf"^\| {re.escape(name)} \| (.*) \|$", model_card(card), re.MULTILINE)
    return str(found)


@pytest.mark.parametrize(
    ("kind", "library", "relation"),
    [("model", "transformers", "finetune"), ("adapter", "peft", "adapter"), ("expansion", "temporalwiki", "adapter")],
)
def test_each_kind_has_its_library(kind: Kind, library: str, relation: str) -> None:
    found = header(replace(PLAIN, kind=kind))
    assert (found["library_name"], found["base_model_relation"]) == (library, relation)


def test_what_is_not_known_is_left_out() -> None:
    local = training(run={**RUN, "data": "temporalwiki"})
    found = header(replace(PLAIN, base=None, languages=["no such language"], training=local, kind="model"))
    assert found.keys() == {"library_name", "pipeline_tag", "tags"}
    assert "Licence" not in model_card(replace(PLAIN, base=None))


def test_the_card_is_the_one_that_was_looked_at() -> None:
    """Its header, training, options, scores with intervals and directions, limits, licence and citation."""
    card = replace(PLAIN, results=[result(SCORES)], answers="## What it says")
    assert model_card(card) == CARD.read_text("utf-8")


def test_what_was_built_here_names_its_dumps() -> None:
    card = replace(PLAIN, data=interval("enwiki-20211101.xml.bz2", "a" * 40))
    assert cell(card, "its snapshots") == "enwiki, 20211101 and 20211201"
    assert cell(card, "its dump") == f"enwiki-20211101.xml.bz2, SHA-1 {'a' * 40}"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("diffset-20211101-20211201", "Its training ended with what changed from 1 November 2021 to 1 December 2021."),
        ("diffset-99999999-20211201", "Its training ended with what changed from 99999999 to 1 December 2021."),
        ("news", ""),
    ],
)
def test_the_last_day_of_its_data_is_in_words(config: str, said: str) -> None:
    card = replace(PLAIN, training=training(sources=[{"config": config}]))
    assert re.findall(r"^Its training ended.*$", model_card(card), re.MULTILINE) == ([said] if said else [])


def test_sources_name_the_dataset_the_commit_and_the_manifest() -> None:
    source = {"config": "diffset-20211101-20211201", "repository": "ORG/d", "commit": "c" * 40, "tag": "2021.12"}
    earlier = {"config": "diffset-20211001-20211101", "repository": "ORG/before"}
    found = training(sources=[source | {"manifest_sha256": "a" * 64}], earlier_sources=[earlier])
    card = replace(PLAIN, training=found)
    assert header(card)["datasets"] == ["ORG/before", "ORG/d"]
    assert cell(card, "data of the last phase") == "ORG/d@2021.12"
    assert cell(card, "its config") == f"diffset-20211101-20211201, commit {'c' * 40}, manifest {'a' * 64}"
    data, base = "[ORG/d@2021.12]({}/datasets/ORG/d/tree/2021.12)", "[ORG/gpt2]({}/ORG/gpt2)"
    links = f"\nIt read {data} and was made from {base}.\n".format(*[constants.ENDPOINT] * 2)
    assert links in model_card(card)
    assert "\nIt " not in model_card(replace(card, training=training(sources=[]), base=None))


def test_what_was_learned_and_forgotten_comes_before_all_scores() -> None:
    scores = {"all/learned": estimate(33, 25, 41), "all/forgotten": estimate(-1), "strict/learned": estimate(9)}
    scores |= {"all/new_known": estimate(61, 55, 67), "all/old_known": estimate(80)}
    start = {"name": "/home/ann/gpt2", "revision": "r", "precision": "fp32"}
    card = replace(PLAIN, results=[result(scores, start=start)])
    text, from_folder = model_card(card), replace(card, history=HISTORY | {"base": "/home/ann/gpt2"})
    line = "\n| probes-1112 | {} | 61.00 [55.00, 67.00] | 80.00 | 33.00 [25.00, 41.00] | -1.00 |\n"
    assert line.format("gpt2") in text
    assert line.format("ORG/gpt2") in model_card(from_folder)
    places = [text.index(f"## {title}") for title in ("What it knows, learned and forgot", "How to use it", "Scores")]
    assert places == sorted(places)
    assert "What it knows" not in model_card(replace(PLAIN, results=[result(SCORES, start=start)]))


def test_a_note_is_there_only_if_a_score_needs_it() -> None:
    text = model_card(replace(PLAIN, results=[result(SCORES)]))
    assert "are in percent" in text and "light-tuned score a copy" in text and "Brackets hold" in text
    text = model_card(replace(PLAIN, results=[result({"changed/perplexity": estimate(2)})]))
    assert "are in percent" not in text and "light-tuned score a copy" not in text and "Brackets hold" not in text


def test_limits_and_files_are_those_of_this_model() -> None:
    scored = model_card(replace(PLAIN, results=[result(SCORES)], answers="## What it says"))
    assert "Probes are short statements" in scored and ", and the log of the loss." in scored
    assert scored.index("## What it says") < scored.index("## How to use it")
    text = model_card(replace(PLAIN, training=training(log=[])))
    assert "Probes are short" not in text and "has all of it.\n" in text and "loss.png" not in text


def test_a_model_that_was_not_trained_has_a_card() -> None:
    initial = training(data={}, steps=None, loss=None, log=[])
    history = {**HISTORY, "method": "initial", "trained_on": [], "tokens": None, "learning_rate": None}
    text = model_card(replace(PLAIN, training=initial, history=history))
    assert "loss" not in text.split("## Hyperparameters")[0].replace("log of the loss", "")
    assert "trained on, oldest first" not in text


def test_a_model_that_was_trained_on_test_data_says_so_and_is_in_no_index() -> None:
    card = replace(PLAIN, results=[result(SCORES)])
    assert "trained on test data" not in model_card(card)
    assert "model-index" in header(card)
    card = replace(card, training=training(trained_on_test=["probes-1112"]))
    first = model_card(card).partition("## How to use it")[0]
    assert "**This model was trained on test data.** Its scores say what it was shown" in " ".join(first.split())
    assert cell(card, "test data among it") == "probes-1112"
    assert "model-index" not in header(card)


def test_the_index_has_the_scores_that_the_hub_knows() -> None:
    scored = result(SCORES, data={"dataset": "O/t@v", "config": "probes-1112", "rows": {"changed": 9}, "hash": "h"})
    card = replace(PLAIN, results=[scored], datasets={"O/t@v": HubDataset("O/t", "c" * 40, {})})
    found = ModelCard(model_card(card)).data.eval_results or []
    values = [(one.metric_type, one.metric_value, one.dataset_split) for one in found]
    assert values == [("perplexity", 300.5, "changed"), ("exact_match", 10.0, "changed"), ("f1", 20.0, None)]
    for one in found:
        assert (one.dataset_type, one.dataset_config, one.dataset_revision) == ("O/t", "probes-1112", "c" * 40)


def test_scores_without_older_rows_say_so_and_are_not_in_the_index() -> None:
    newer = {"day": "2021-10-31", "kept": {"changed": 9}, "dropped": {"changed": 1}}
    card = replace(PLAIN, results=[a_result.changed(result(SCORES), "data", newer=newer)])
    assert "| probes-1112 | twiki_probes after 2021-10-31 1 | changed | perplexity |" in model_card(card)
    assert "model-index" not in header(card)


def test_scores_that_are_no_numbers_are_not_in_the_index() -> None:
    card = replace(PLAIN, results=[result({"changed/perplexity": estimate(float("inf"))})])
    assert "model-index" not in header(card)


def test_where_data_were_on_a_machine_is_not_said() -> None:
    scored = result(SCORES, data={"dataset": "/home/ann/data", "config": "c", "rows": {}, "hash": "h1"})
    text = model_card(replace(PLAIN, results=[scored]))
    assert "/home" not in text
    assert "data (hash h1)" in text


@pytest.mark.parametrize(
    ("kind", "architecture", "tag", "auto_class", "line"),
    [
        ("model", "decoder-only", None, "AutoModelForCausalLM", ""),
        ("model", "encoder-decoder", "2021.12", "AutoModelForSeq2SeqLM", ""),
        ("adapter", "decoder-only", None, "AutoPeftModelForCausalLM", "from peft import AutoPeftModelForCausalLM"),
        (
            "expansion", "encoder-decoder", None, "AutoModelForSeq2SeqLM",
            "import temporalwiki.methods.auto_model  # pip install temporalwiki",
        ),
    ],
)  # fmt: skip
def test_it_says_how_to_load_it(kind: Kind, architecture: str, tag: str | None, auto_class: str, line: str) -> None:
    text = model_card(replace(PLAIN, kind=kind, tag=tag, training=training(architecture=architecture)))
    program = text.split("```python\n")[1].split("```")[0]
    revision = f', revision="{tag}"' if tag else ""
    assert f'model = {auto_class}.from_pretrained("ORG/lora-1112"{revision})' in program.splitlines()
    assert line in program
    compile(program, "card", "exec")


@pytest.mark.parametrize("method", METHODS)
def test_it_cites_the_benchmark_and_the_methods_paper(method: str) -> None:
    text = model_card(replace(PLAIN, training=training(run={**RUN, "method": method})))
    keys = re.findall(r"^@[a-z]+{(\w+),$", text.split("```bibtex\n")[1], re.MULTILINE)
    expected = {
        "recadam": ["chen2020"], "mix_review": ["he2021"], "replay": ["li2025"], "lora": ["hu2022"],
        "dora": ["liu2024"], "k_adapter": ["wang2021"], "ewc": ["kirkpatrick2017"], "lwf": ["li2016"],
        "merge": ["wortsman2022"], "o_lora": ["wang2023"], "osf": ["nayak2025"], "study": ["yang2025"],
        "sdft": ["shenfeld2026"], "sparse": ["lin2025"],
    }  # fmt: skip
    assert keys == ["jang2022temporalwiki", "jang2022towards", *expected.get(method, [])]
    assert text.count("{") == text.count("}")


def test_a_copy_of_the_base_is_said_to_be_one() -> None:
    assert "quantized copy" not in model_card(PLAIN)
    assert "quantized copy" in model_card(replace(PLAIN, base=replace(BASE, gguf="model.gguf")))


HOSTILE = [
    "a: b", "- a", "=1+1", "'", '"', "{a}", "[x](y)", "#c", "%d", "@x", "yes", "null", "1.0", "---", "\n---\n", "...",
    "\u2028", "\x85", "🦄", "../../etc/passwd", "</script><script>alert(1)</script>", "| a | b |", "a\tb", "a\n\n# b",
    "`", "```\n", "$x$", "&lt;", "\\", "",
]  # fmt: skip


def hostile(text: str) -> Card:
    run = {**RUN, "method": text, "model": text, "data": text, "config": text, "lora.rank": text, text: text}
    record = training(run=run, device=text, versions={text: text}, data={text: {text: text}})
    data = {"dataset": text, "config": text, "rows": {text: 9}, "hash": text}
    scored = result({f"{text}/perplexity": estimate(2.0, 1.0, 3.0)}, data=data)
    history = {**HISTORY, "trained_on": [text], "base": text}
    base = Base("ORG/gpt2", "b" * 40, {"license": "other", "license_name": text, "license_link": text}, text)
    datasets = {text: HubDataset("ORG/temporalwiki", text, {})}
    return Card("ORG/m", None, "model", record, history, base, interval(text, text), [text], [scored], datasets)


def check_is_data(text: str) -> None:
    card = hostile(text)
    written = model_card(card).encode().decode()  # valid UTF-8
    found = header(card)
    assert (found["license_name"], found["license_link"]) == (text, text)
    [index] = found["model-index"]
    [shown] = index["results"]
    assert shown["dataset"]["config"] == text
    assert shown["dataset"]["revision"] == text
    assert ModelCard(written).data.license_name == text
    # no name makes a line, a heading or a tag of its own, or more columns than there are
    body = written.split("\n---\n", 1)[1] if "\n---\n" in written else written
    plain = model_card(hostile("plain"))
    of_plain = plain.split("\n---\n", 1)[1]
    headings = [[line for line in one.splitlines() if line.startswith("#")] for one in (body, of_plain)]
    assert headings[0] == headings[1]
    assert not re.search(r"<\w|</", re.sub(r"```.*?```", "", body, flags=re.DOTALL))
    columns = [len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in body.split("\n") if line.startswith("|")]
    assert columns == [len(re.findall(r"\|", line)) for line in of_plain.split("\n") if line.startswith("|")]


@pytest.mark.fault("hostile titles", "names in cards of models", "valid YAML, and the same text")
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_stay_names(text: str) -> None:
    check_is_data(text)


@given(st.text())
def test_any_name_stays_a_name(text: str) -> None:
    check_is_data(text)
