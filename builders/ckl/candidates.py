"""Make the candidates of a review from the news: a name or date in a sentence, and a generated question about it."""

import filecmp
import importlib.metadata
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import make_folder, only_one, whole_file
from temporalwiki.base.json_files import fingerprint, write_json
from temporalwiki.base.normalization import normalize
from temporalwiki.base.options import option
from temporalwiki.base.progress import Progress
from temporalwiki.builders.ckl.config import RowCounts
from temporalwiki.builders.ckl.corpus_index import CorpusIndex, plain
from temporalwiki.builders.ckl.news_sentences import Drawn, SentenceOptions, draw_sentences
from temporalwiki.builders.ckl.review import (
    ABOUT,
    ANNOTATIONS,
    INTERFACE,
    LABELS,
    TASKS,
    Candidate,
    ReviewManifest,
    encoded,
)
from temporalwiki.builders.ckl.salient_spans import finder
from temporalwiki.builders.ckl.text_model import WRITER, OpenModel, TextModel, no_models
from temporalwiki.builders.ckl.text_steps import occurs, questions

VERSION = 3  # increase it when the candidates change; their manifest records it


@dataclass(frozen=True)
class CandidateOptions(SentenceOptions):
    """The options that decide which candidates there are."""

    question_model: str = option(WRITER, "a language model that writes questions, by folder or Hub id")
    answer_model: str | None = option(None, "a model of the past; questions that it answers correctly are left out")
    passages: int = option(5, "passages of the past that are shown with each candidate", at_least=1)


def write_candidates(
    rows: Iterable[Mapping[str, Any]],
    past: CorpusIndex,
    review: Path,
    options: CandidateOptions,
    inputs: Sequence[Mapping[str, Any]] = (),
    open_model: OpenModel = no_models,
) -> ReviewManifest:
    """Write candidates from news (rows with url, title, text, published) into ``review``; return their manifest.

    Candidates that nobody can decide on (the answer is part of the question, ...) are dropped. So are questions that
    ``answer_model`` answers correctly without any text (exact match after normalisation). ``inputs`` describe the
    files of the rows. At most ``options.sentences`` sentences are in memory.

    Raises InputError if no candidate is left, or if the folder has decisions on other candidates.
    """
    review = review.resolve()
    counts = RowCounts()
    named = {name: getattr(options, name) for name in ("question_model", "answer_model")}
    models = {name: open_model(model) for name, model in named.items() if model is not None}
    with only_one(review, "review"):
        with whole_file(review / TASKS) as part:
            with part.open("wb") as file, Progress("candidates", None, "page") as progress:
                found = _candidates(progress.each(rows), past, options, counts, models)
                file.writelines(encoded({"data": one} for one in found))
            if not counts.kept:
                reasons = ", ".join(f"{n:,} {reason}" for reason, n in sorted(counts.dropped.items()))
                raise InputError(f"{review}: no candidates in {counts.read:,} sentences: {reasons}")
            decided = sorted((review / ANNOTATIONS).glob("*.json"))
            if decided and not ((review / TASKS).is_file() and filecmp.cmp(review / TASKS, part, shallow=False)):
                raise InputError(f"{decided[0]}: has decisions on other candidates; remove it, or use another folder")
        manifest = ReviewManifest(
            made_by=f"temporalwiki {importlib.metadata.version('temporalwiki')}",
            options={"version": VERSION, **asdict(options)}
            | {name: dict(model.identity) for name, model in models.items()},
            inputs=[dict(one) for one in inputs],
            past={key: past.about[key] for key in ("inputs", "documents", "passages")},
            counts=counts,
        )
        with whole_file(review / INTERFACE) as part:
            shutil.copyfile(LABELS, part)
        make_folder(review / ANNOTATIONS)
        write_json(review / ABOUT, msgspec.to_builtins(manifest) | {"counts": counts.as_json()})
    return manifest


def _candidates(
    rows: Iterable[Mapping[str, Any]],
    past: CorpusIndex,
    options: CandidateOptions,
    counts: RowCounts,
    models: Mapping[str, TextModel],
) -> Iterator[Candidate]:
    drawn = draw_sentences(rows, options, finder(options.spans), counts)
    asked = list(_asked(drawn, counts, models["question_model"]))
    predictions: list[str | None] = [None] * len(asked)
    if "answer_model" in models:
        predictions = models["answer_model"].closed_book([question for _, question in asked], "predictions")
    for (one, question), prediction in zip(asked, predictions, strict=True):
        passage = one.passage
        if prediction is not None and normalize(prediction) == normalize(passage.answer):
            counts.drop("the model of the past knows the answer")
            continue
        counts.kept += 1
        yield Candidate(
            id=fingerprint(one.url, passage.statement, passage.answer),
            question=question,
            answer=passage.answer,
            statement=passage.statement,
            sentence=passage.sentence,
            title=plain(passage.title),
            url=plain(one.url),
            published=one.published,
            prediction=prediction,
            past_evidence=past.search(question, passage.answer, options.passages),
        )


def _asked(drawn: Sequence[Drawn], counts: RowCounts, model: TextModel) -> Iterator[tuple[Drawn, str]]:
    """Yield sentences with their questions, each question once: one with two answers would have no right answer."""
    seen = set()
    for one, raw in zip(drawn, questions([one.passage for one in drawn], model), strict=True):
        question = " ".join(plain(raw or "").split())
        if not question:
            counts.drop("no question")
        elif occurs(one.passage.answer, question):
            counts.drop("the answer in the question")
        elif (key := normalize(question)) in seen:
            counts.drop("asked before")
        else:
            seen.add(key)
            yield one, question
