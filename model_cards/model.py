"""The model card: the README.md of a published checkpoint, made from its training.json and its results."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

import yaml
from huggingface_hub import EvalResult, ModelCardData

from temporalwiki.builders.dataset_folder import Manifest
from temporalwiki.eval_harness.leaderboard.tables import Score, Table, to_markdown
from temporalwiki.eval_harness.leaderboard.tables.table import Cell
from temporalwiki.eval_harness.measures import higher_is_better
from temporalwiki.eval_harness.results import Result, place_of_measure, place_of_test
from temporalwiki.methods import METHODS
from temporalwiki.model_cards.citations import CKL, TEMPORALWIKI
from temporalwiki.model_cards.dataset_header import languages
from temporalwiki.model_cards.eval_results import HubDataset

Kind = Literal["model", "adapter", "expansion"]  # whole, of peft, of K-Adapter or Modular

_LIBRARY: dict[Kind, str] = {"model": "transformers", "adapter": "peft", "expansion": "temporalwiki"}
_INDEXED = ("perplexity", "exact_match", "f1")  # measures that are metrics on the Hub, too
_ID = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")
_OF_RUN = ("method", "model", "data", "config", "past")  # of a manifest's "run"; all else are options

# method -> first author, title, where, year of the paper that it is from; others are TemporalWiki's or CKL's own
_OF_METHOD = {
    "recadam": ("Chen, Sanyuan", "Recall and Learn: Fine-tuning Deep Pretrained Language Models with Less Forgetting",
                "EMNLP", 2020),
    "mix_review": ("He, Tianxing", "Analyzing the Forgetting Problem in Pretrain-Finetuning of Open-domain Dialogue "
                   "Response Models", "EACL", 2021),
    "replay": ("Li, Jeffrey", "TiC-LM: A Web-Scale Benchmark for Time-Continual LLM Pretraining", "ACL", 2025),
    "lora": ("Hu, Edward J.", "LoRA: Low-Rank Adaptation of Large Language Models", "ICLR", 2022),
    "dora": ("Liu, Shih-Yang", "DoRA: Weight-Decomposed Low-Rank Adaptation", "ICML", 2024),
    "k_adapter": ("Wang, Ruize", "K-Adapter: Infusing Knowledge into Pre-Trained Models with Adapters",
                  "Findings of ACL-IJCNLP", 2021),
    "ewc": ("Kirkpatrick, James", "Overcoming Catastrophic Forgetting in Neural Networks", "PNAS", 2017),
    "lwf": ("Li, Zhizhong", "Learning without Forgetting", "ECCV", 2016),
    "merge": ("Wortsman, Mitchell", "Robust Fine-Tuning of Zero-Shot Models", "CVPR", 2022),
}  # fmt: skip


@dataclass(frozen=True)
class Base:
    """The model on the Hub that a checkpoint was made from."""

    id: str
    commit: str
    licence: Mapping[str, Any]  # what its card says: license, license_name, license_link
    copy: str | None = None  # the name of the file that was read instead of the Hub's weights, a GGUF


@dataclass(frozen=True)
class Card:
    """What a model card is made of."""

    repo_id: str
    tag: str | None
    kind: Kind
    training: Mapping[str, Any]  # training.json as it is published
    history: Mapping[str, Any]  # of all phases, as ``evaluated.training`` tells it
    base: Base | None  # None: it is not on the Hub
    data: Manifest | None  # of the interval that the last phase read, where it is at hand
    languages: Sequence[str]
    results: Sequence[Result]  # of this very checkpoint
    datasets: Mapping[str, HubDataset]  # those that results name and that are on the Hub


def model_card(card: Card) -> str:
    """Return the text of the card: YAML header and Markdown."""
    run, name = card.training["run"], card.repo_id.rpartition("/")[2]
    source, task = _source(run), _task(card)
    index = _index(card, task)
    header = ModelCardData(
        base_model=card.base.id if card.base else None,
        datasets=[source[0]] if source else None,
        eval_results=index or None,
        language=sorted({code for language in card.languages for code in languages(language) or ()}) or None,
        library_name=_LIBRARY[card.kind],
        model_name=name if index else None,
        pipeline_tag=task,
        tags=["temporalwiki", "continual-learning", "knowledge", _plain_method(run["method"])],
        base_model_relation=("finetune" if card.kind == "model" else "adapter") if card.base else None,
        **(card.base.licence if card.base else {}),
    )
    parts = [
        f"# {name}",
        _summary(card),
        "## How to load it",
        _loading(card),
        _training(card),
        _options(card),
        _scores(card),
        "## Limits",
        _limits(card),
        _licence(card),
        "## Citation",
        f"```bibtex\n{_citation(run['method'])}\n```",
    ]
    # all but ASCII is escaped: some characters that the library writes as they are come back as others (U+0085)
    shown = yaml.safe_dump(header.to_dict(), sort_keys=False)  # type: ignore[no-untyped-call]
    return f"---\n{shown}---\n\n" + "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _task(card: Card) -> str:
    return "text-generation" if card.training["architecture"] == "decoder-only" else "text2text-generation"


def _source(run: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the id and revision of the training data, if they are on the Hub."""
    id, _, revision = str(run["data"]).partition("@")
    return (id, revision) if _ID.fullmatch(id) else None


def _plain_method(method: str) -> str:
    """Return the method's name, for a tag."""
    return method if method in METHODS else "other"


def _summary(card: Card) -> str:
    what = {
        "model": "The whole model, as safetensors.",
        "adapter": "A `peft` adapter, as safetensors; its base model is loaded with it.",
        "expansion": "Layers that are built into a base model, which is loaded with them; as safetensors.",
    }[card.kind]
    return f"""A language model that is kept up to date with what changes in Wikipedia, and its scores on facts that
changed and facts that did not. Made by `temporalwiki train`.

{what}"""


def _loading(card: Card) -> str:
    at = f', revision="{card.tag}"' if card.tag else ""
    of = "Seq2SeqLM" if card.training["architecture"] == "encoder-decoder" else "CausalLM"
    auto, more = f"AutoModelFor{of}", ""
    if card.kind == "adapter":
        auto = f"AutoPeftModelFor{of}"
        lines = f"from peft import {auto}\nfrom transformers import AutoTokenizer"
        more = (
            "The adapter names its base model and the commit of it; `peft`'s Auto classes load both. Those of\n"
            "`transformers` take the base model's newest commit instead, which may be another model by then.\n"
        )
    else:
        lines = f"from transformers import {auto}, AutoTokenizer"
    if card.kind == "expansion":
        lines = f"import temporalwiki.methods.auto_model  # pip install temporalwiki\n{lines}"
        more = (
            "No code comes from this repository: the import teaches `transformers` the model type. Without it\n"
            "`transformers` says that it does not know the type.\n"
        )
    return f"""```python
{lines}

model = {auto}.from_pretrained("{card.repo_id}"{at})
tokenizer = AutoTokenizer.from_pretrained("{card.repo_id}"{at})
```

{more}"""


def _training(card: Card) -> str:
    training, run, history = card.training, card.training["run"], card.history
    base = f"{card.base.id} at commit {card.base.commit}" if card.base else str(run["model"])
    if not card.base and history["base"]:
        base = str(history["base"])
    lines: list[tuple[Cell, ...]] = [("method", str(run["method"])), ("base model", base)]
    if history["trained_on"]:
        lines.append(("trained on, oldest first", ", ".join(map(str, history["trained_on"]))))
    lines.append(("data of the last phase", str(run["data"])))
    if card.data:
        interval = card.data["interval"]
        lines.append(("its snapshots", f"{interval['wiki']}, {interval['prev']} and {interval['recent']}"))
        lines += [("its dump", f"{source['file']}, SHA-1 {source['sha1']}") for source in card.data["inputs"]]
    for part, counts in _described(training.get("data")).items():
        counted = [
            f"{value:,} {name}" if isinstance(value, int) else f"{name} {value}"
            for name, value in sorted(counts.items(), key=lambda one: isinstance(one[1], int))
            if name != "of" and isinstance(value, int | str)
        ]
        lines.append((f"what was read, {part}" if part else "what was read", ", ".join(counted)))
    parameters = training.get("parameters")
    if isinstance(parameters, Mapping):
        for name in ("trainable", "total"):
            if isinstance(parameters.get(name), int):
                lines.append((f"parameters, {name}", f"{parameters[name]:,}"))
    if isinstance(history["tokens"], int):
        lines.append(("tokens read over all phases, at most", f"{history['tokens']:,}"))
    if isinstance(training.get("steps"), int):
        lines.append(("optimizer steps of the last phase", f"{training['steps']:,}"))
    if isinstance(loss := training.get("loss"), Mapping):
        lines.append(("loss, first and last", f"{_number(loss.get('first'))}, {_number(loss.get('last'))}"))
    where = [str(training[key]) for key in ("device", "precision") if key in training]
    if where:
        lines.append(("computed on", f"{', '.join(where)}, processes: {training.get('processes', 1)}"))
    versions = training.get("versions")
    if isinstance(versions, Mapping):
        lines.append(("versions", ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))))
    caption = "All of it, with the log of the loss, stands in training.json."
    table = "#" + to_markdown(Table("Training", caption, ("what", "value"), tuple(lines)))
    return f"{table}\n![loss](loss.png)" if training.get("log") else table


def _described(data: Any) -> dict[str, Mapping[str, Any]]:
    """Return the counts of what was read by its part, "new" or "past", or "" where it has none."""
    if not isinstance(data, Mapping):
        return {}
    parts = {name: counts for name, counts in data.items() if isinstance(counts, Mapping)}
    return parts or {"": data}


def _options(card: Card) -> str:
    run = card.training["run"]
    options = tuple((name, _value(value)) for name, value in sorted(run.items()) if name not in _OF_RUN)
    caption = "Of the last phase."
    return "#" + to_markdown(Table("Hyperparameters", caption, ("option", "value"), options)) if options else ""


def _value(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(_value, value)) if isinstance(value, list | tuple) else str(value)


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else "not known"


def _in_order(results: Sequence[Result]) -> list[Result]:
    def place(result: Result) -> tuple[Any, ...]:
        task, data = result.data["task"], result.data["data"]
        return data["config"], task["name"], -task["version"], result.data["model"]["precision"], result.path.name

    return sorted(results, key=place)


def _tests(result: Result) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Return a result's scores as (test, measure, score), in the order of tests and then of measures."""
    named = [(*score.rpartition("/")[::2], of) for score, of in result.data["scores"].items()]
    return sorted(named, key=lambda one: (place_of_test(one[0]), place_of_measure(one[1])))


def _scores(card: Card) -> str:
    if not card.results:
        return "## Scores\n\nNot evaluated."
    lines: list[tuple[Cell, ...]] = []
    for result in _in_order(card.results):
        task, data = result.data["task"], result.data["data"]
        for test, measure, score in _tests(result):
            better = "higher" if higher_is_better(task["name"], measure) else "lower"
            shown = Score(score["value"], score["low"], score["high"])
            named = f"{task['name']} {task['version']}"
            lines.append((data["config"], named, test, measure, shown, score["items"], better))
    data_read = sorted({_dataset(card, result) for result in card.results})
    precisions = sorted({str(result.data["model"]["precision"]) for result in card.results})
    caption = (
        "In brackets 95 % intervals, by bootstrap over subjects; EM, F1 and accuracies are in percent. Likelihoods in "
        f"{', '.join(precisions)}. Data: {', '.join(data_read)}. Tests that begin with light-tuned are of a copy of "
        "this model that was light-tuned on other facts."
    )
    columns = ("data", "task and version", "test", "measure", "score", "items", "better")
    return "#" + to_markdown(Table("Scores", caption, columns, tuple(lines)))


def _dataset(card: Card, result: Result) -> str:
    """Return what a result's data are called: an id with its commit, or the name of a folder without its path."""
    named = str(result.data["data"]["dataset"])
    if on_hub := card.datasets.get(named):
        return f"{named} (commit {on_hub.commit})" if on_hub.commit else named
    return f"{PurePath(named).name} (hash {result.data['data']['hash']})"


def _index(card: Card, task: str) -> list[EvalResult]:
    """Return the scores that fit the Hub's model-index."""
    found = []
    for result in _in_order(card.results):
        data = result.data["data"]
        on_hub = card.datasets.get(str(data["dataset"]))
        for test, measure, score in _tests(result):
            if measure in _INDEXED and math.isfinite(score["value"]):
                found.append(
                    EvalResult(
                        task_type=task,
                        task_name=result.data["task"]["name"],
                        dataset_type=on_hub.id if on_hub else "temporalwiki",
                        dataset_name=f"{on_hub.id if on_hub else 'temporalwiki'} {data['config']}",
                        dataset_config=data["config"],
                        dataset_split=test if test in data["rows"] else None,
                        dataset_revision=on_hub.commit if on_hub else None,
                        metric_type=measure,
                        metric_value=score["value"],
                        metric_name=f"{result.data['task']['name']}: {measure}, {test}" if test else measure,
                    )
                )
    return found


def _limits(card: Card) -> str:
    limits = [
        "It says what Wikipedia said at the dates of the snapshots, with its errors and its biases, and what its base "
        "model learnt before; it may state facts that are no longer so, or never were.",
        "It completes text. It was not trained to follow instructions, to be safe, or to say that it does not know.",
        "Probes are short statements made from Wikidata. A score on them is no measure of all that the model knows.",
    ]
    if card.training["run"].get("max_steps"):
        limits.append("Training was given a number of steps, which may be less than all of the data.")
    if card.base and card.base.copy:
        limits.append(
            "It was trained, and where there are scores evaluated, on a quantized copy of the base model. On the base "
            "model itself, as it loads from here, it answers a little differently."
        )
    return "\n".join(f"- {limit}" for limit in limits)


def _licence(card: Card) -> str:
    if card.base and card.base.licence:
        return "## Licence\n\nThat of its base model. The texts that it was trained on are under CC BY-SA 4.0."
    return ""


def _citation(method: str) -> str:
    entries = [TEMPORALWIKI.rstrip(), CKL.rstrip()]
    if method in _OF_METHOD:
        author, title, where, year = _OF_METHOD[method]
        key = f"{author.split(',')[0].lower()}{year}"
        entries.append(
            f"@inproceedings{{{key},\n  title = {{{title}}},\n  author = {{{author} and others}},\n"
            f"  booktitle = {{{where}}},\n  year = {{{year}}}\n}}"
        )
    return "\n\n".join(entries)
