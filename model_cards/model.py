"""The model card: the README.md of a published checkpoint, made from its training.json and its results."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal

import yaml
from huggingface_hub import EvalResult, ModelCardData, constants

from temporalwiki.base.markdown import escaped
from temporalwiki.builders.manifests import BuiltManifest, ImportedManifest
from temporalwiki.eval_harness.measures import MEASURES, higher_is_better
from temporalwiki.eval_harness.result_manifest import ResultScore
from temporalwiki.eval_harness.results import Result, place_of_measure, place_of_test
from temporalwiki.methods import METHODS
from temporalwiki.methods.manifest import TrainingManifest
from temporalwiki.model_cards.dataset_header import languages
from temporalwiki.model_cards.edits import signed
from temporalwiki.model_cards.eval_results import HubDataset, with_interval
from temporalwiki.model_cards.template import fill, in_words

Kind = Literal["model", "adapter", "expansion"]  # a whole model; a peft adapter; K-Adapter or Modular

_LIBRARY: dict[Kind, str] = {"model": "transformers", "adapter": "peft", "expansion": "temporalwiki"}
_INDEXED = ("perplexity", "exact_match", "f1")  # measures that the Hub has as metrics
_DATES = re.compile(r"-([0-9]{8})-([0-9]{8})\Z")
_ID = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")
_NOT_OPTIONS = ("method", "model", "data", "config", "past")  # in a manifest's "run"; the rest are options
# methods whose paper is neither TemporalWiki's nor CKL's, and the paper's key in papers.bib
_PAPERS = {
    "recadam": "chen2020",
    "mix_review": "he2021",
    "replay": "li2025",
    "lora": "hu2022",
    "dora": "liu2024",
    "o_lora": "wang2023",
    "osf": "nayak2025",
    "k_adapter": "wang2021",
    "ewc": "kirkpatrick2017",
    "lwf": "li2016",
    "merge": "wortsman2022",
    "study": "yang2025",
    "sdft": "shenfeld2026",
    "sparse": "lin2025",
}


@dataclass(frozen=True)
class Base:
    """The model on the Hub that a checkpoint was made from."""

    id: str
    commit: str
    licence: Mapping[str, Any]  # license, license_name and license_link in its card
    gguf: str | None = None  # the GGUF file that was trained instead of the Hub's weights


@dataclass(frozen=True)
class Card:
    """Everything that a model card is made from."""

    repo_id: str
    tag: str | None
    kind: Kind
    training: TrainingManifest  # as it is published
    history: Mapping[str, Any]  # of all phases, from ``local.training``
    base: Base | None  # None if it is not on the Hub
    data: BuiltManifest | ImportedManifest | None  # the interval that the last phase read, if its folder is here
    languages: Sequence[str]
    results: Sequence[Result]  # of this checkpoint
    datasets: Mapping[str, HubDataset]  # the results' datasets that are on the Hub, by the names in the results
    answers: str = ""  # the section of ``model_answers``


def model_card(card: Card) -> str:
    """Return the text of the card: YAML header and Markdown."""
    run, name = card.training.run, card.repo_id.rpartition("/")[2]
    sources = (*card.training.earlier_sources, *card.training.sources)
    datasets = {source.repository for source in sources if source.repository}
    if not sources and _ID.fullmatch(name_of_data := str(run.data).partition("@")[0]):  # an older record
        datasets = {name_of_data}
    decoder = card.training.architecture == "decoder-only"
    task = "text-generation" if decoder else "text2text-generation"
    index = _index(card, task)
    header = ModelCardData(
        base_model=card.base.id if card.base else None,
        datasets=sorted(datasets) or None,
        eval_results=index or None,
        language=sorted({code for language in card.languages for code in languages(language) or ()}) or None,
        library_name=_LIBRARY[card.kind],
        model_name=name if index else None,
        pipeline_tag=task,
        tags=["temporalwiki", "continual-learning", "knowledge", run.method if run.method in METHODS else "other"],
        base_model_relation=("finetune" if card.kind == "model" else "adapter") if card.base else None,
        **(card.base.licence if card.base else {}),
    )
    auto_class = f"Auto{'Peft' * (card.kind == 'adapter')}ModelFor{'CausalLM' if decoder else 'Seq2SeqLM'}"
    probed = any(result.manifest.data.config.startswith("probes") for result in card.results)
    limits = {"probes": probed, "steps": bool(run.max_steps), "gguf": bool(card.base and card.base.gguf)}
    scored = [(result, *score) for result in _sorted(card.results) for score in _tests(result)]
    known = [MEASURES[measure] for _, _, measure, _ in scored if measure in MEASURES]
    notes = {
        "intervals": any(score.low is not None for *_, score in scored),
        "percent": any(measure.sign == "%" for measure in known),
    }
    body = fill(
        "model",
        card=card,
        name=name,
        auto_class=auto_class,
        revision=f', revision="{card.tag}"' if card.tag else "",
        prompt="The president of France is" + ("" if decoder else " <extra_id_0>."),
        as_of=_as_of(card),
        links=_links(card),
        headline=_headline(card),
        training=_training(card),
        options=[
            (name, _value(of)) for name, of in sorted(card.training.content["run"].items()) if name not in _NOT_OPTIONS
        ],
        scores=[_score_row(*score) for score in scored],
        notes=[name for name, applies in notes.items() if applies],
        tuned=any(test.startswith("light-tuned") for _, test, _, _ in scored),
        precisions=", ".join(sorted({result.manifest.model.precision for result in card.results})),
        data=", ".join(sorted({_dataset(card, result) for result in card.results})),
        limits=[name for name, applies in limits.items() if applies],
        papers=["jang2022temporalwiki", "jang2022towards", *([_PAPERS[run.method]] if run.method in _PAPERS else [])],
    )
    # YAML in ASCII: huggingface_hub writes some characters unescaped that are read back as others (U+0085)
    settings = yaml.safe_dump(header.to_dict(), sort_keys=False)  # type: ignore[no-untyped-call]
    return signed(f"---\n{settings}---\n\n{body}\n")


def _training(card: Card) -> Iterator[tuple[str, str]]:
    """Yield the names and values of the table of the training."""
    training, run, history = card.training, card.training.run, card.history
    yield "method", run.method
    on_hub = f"{card.base.id} at commit {card.base.commit}" if card.base else ""
    yield "base model", on_hub or str(history["base"] or run.model)
    if history["trained_on"]:
        yield "trained on, oldest first", ", ".join(map(str, history["trained_on"]))
    if training.trained_on_test:
        yield "test data among it", ", ".join(training.trained_on_test)
    yield "data of the last phase", next((source.id for source in training.sources if source.id), run.data)
    for source in training.sources:
        found = (
            source.commit and f"commit {source.commit}",
            source.manifest_sha256 and f"manifest {source.manifest_sha256}",
        )
        yield "its config", ", ".join([source.config, *filter(None, found)])
    if card.data:
        interval = card.data.interval
        yield "its snapshots", f"{interval.wiki}, {interval.prev} and {interval.recent}"
        for file in card.data.inputs:
            yield "its dump", f"{file.file}, SHA-1 {file.sha1}"
    for part, counts in _data_read(training.data):
        named = [f"{name} {text}" for name, text in counts.items() if isinstance(text, str) and name != "of"]
        counted = [f"{count:,} {name}" for name, count in counts.items() if isinstance(count, int)]
        yield f"data read, {part}".removesuffix(", "), ", ".join([*named, *counted])
    for name in ("trainable", "total"):
        if (count := getattr(training.parameters, name, None)) is not None:
            yield f"parameters, {name}", f"{count:,}"
    if isinstance(history["tokens"], int):
        yield "tokens read in all phases, at most", f"{history['tokens']:,}"
    if training.steps is not None:
        yield "optimizer steps of the last phase", f"{training.steps:,}"
    if training.loss:
        yield "loss, first and last", f"{training.loss.first:.4g}, {training.loss.last:.4g}"
    machine = training.content
    if where := [str(machine[key]) for key in ("device", "precision") if key in machine]:
        yield "computed on", f"{', '.join(where)}, processes: {machine.get('processes', 1)}"
    if training.versions:
        yield "versions", ", ".join(f"{name} {version}" for name, version in sorted(training.versions.items()))


def _as_of(card: Card) -> str:
    """Return a sentence with the dates of the data that the last phase read, if they are known."""
    names = [source.config for source in card.training.sources]
    dates = next((found for name in names if (found := _DATES.search(name))), None)
    if card.data is not None:
        prev, recent = card.data.interval.prev, card.data.interval.recent
    elif dates is not None:
        prev, recent = dates[1], dates[2]
    else:
        return ""
    return f"Its training ended with what changed from {in_words(prev)} to {in_words(recent)}."


def _links(card: Card) -> str:
    """Return a sentence with links to the data of the last phase and to the base model, if the Hub has them."""
    parts = []
    if source := next((source for source in card.training.sources if source.repository), None):
        revision = source.tag or source.commit
        url = f"{constants.ENDPOINT}/datasets/{source.repository}" + (f"/tree/{revision}" if revision else "")
        parts.append(f"read [{escaped(source.id or str(source.repository))}]({url})")
    if card.base:
        parts.append(f"was made from [{escaped(card.base.id)}]({constants.ENDPOINT}/{card.base.id})")
    return f"It {' and '.join(parts)}." if parts else ""


def _headline(card: Card) -> list[list[str]]:
    """Return the table of facts known, learned and forgotten; empty if they were not measured."""
    rows = []
    for result in _sorted(card.results):
        scores, start = result.manifest.scores, result.manifest.start
        found = [scores.get(f"all/{name}") for name in ("new_known", "old_known", "learned", "forgotten")]
        if start is not None and all(found):
            compared = PurePath(start.name).name if PurePath(start.name).is_absolute() else start.name
            if card.base and start.name == str(card.history["base"]):
                compared = card.base.id  # also if it was trained from a folder
            named = escaped(result.manifest.data.config), escaped(compared)
            rows.append([*named, *(with_interval(score) for score in found if score)])
    return rows


def _data_read(data: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the counts of the data by part, "new" or "past"; the part is "" for data without parts."""
    parts = [(name, counts) for name, counts in data.items() if isinstance(counts, Mapping)]
    return parts or ([("", data)] if data else [])


def _value(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(_value, value)) if isinstance(value, list | tuple) else str(value)


def _sorted(results: Sequence[Result]) -> list[Result]:
    def place(result: Result) -> tuple[Any, ...]:
        found = result.manifest
        return found.data.config, found.scored, -found.task.version, found.model.precision, result.path.name

    return sorted(results, key=place)


def _tests(result: Result) -> list[tuple[str, str, ResultScore]]:
    """Return a result's scores as (test, measure, score), in the order of tests and then of measures."""
    named = [(*score.rpartition("/")[::2], value) for score, value in result.manifest.scores.items()]
    return sorted(named, key=lambda one: (place_of_test(one[0]), place_of_measure(one[1])))


def _score_row(result: Result, test: str, measure: str, score: ResultScore) -> list[str]:
    task = result.manifest.task
    named = (result.manifest.data.config, f"{result.manifest.scored} {task.version}", test, measure)
    better = {True: "higher", False: "lower", None: ""}[higher_is_better(task.name, measure)]
    return [*map(escaped, named), with_interval(score), f"{score.items:,}", better]


def _dataset(card: Card, result: Result) -> str:
    """Return the name of a result's dataset: its id with its commit, or the name of its folder without the path."""
    named = result.manifest.data.dataset
    if on_hub := card.datasets.get(named):
        return f"{named} (commit {on_hub.commit})" if on_hub.commit else named
    return f"{PurePath(named).name} (hash {result.manifest.data.hash})"


def _index(card: Card, task: str) -> list[EvalResult]:
    """Return the scores that fit the Hub's model-index, unless the model was trained on test data."""
    found = []
    for result in _sorted(card.results) if not card.training.trained_on_test else ():
        if result.manifest.scored != result.manifest.task.name:
            continue  # the index names datasets and splits: it cannot say that rows were dropped or passages read
        task_name, data = result.manifest.task.name, result.manifest.data
        on_hub = card.datasets.get(data.dataset)
        for test, measure, score in _tests(result):
            if measure in _INDEXED and math.isfinite(score.value):
                found.append(
                    EvalResult(
                        task_type=task,
                        task_name=task_name,
                        dataset_type=on_hub.id if on_hub else "temporalwiki",
                        dataset_name=f"{on_hub.id if on_hub else 'temporalwiki'} {data.config}",
                        dataset_config=data.config,
                        dataset_split=test if test in data.rows else None,
                        dataset_revision=on_hub.commit if on_hub else None,
                        metric_type=measure,
                        metric_value=score.value,
                        metric_name=f"{task_name}: {measure}, {test}" if test else measure,
                    )
                )
    return found
