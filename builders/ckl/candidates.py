"""Candidates for UpdatedLAMA and NewLAMA from the news, as a project for Label Studio (CKL, appendix B).

REVIEW/tasks.json     a question, its answer, the sentence, and passages of an older corpus, one candidate a task
REVIEW/labels.xml     the labelling interface, with instructions for annotators
REVIEW/review.json    the manifest: options, inputs, and counts of dropped candidates by reason; written last
REVIEW/annotations/   exports of Label Studio, and the files of judges
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import re
import shutil
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import make_folder, only_one, whole_file
from temporalwiki.base.json_files import fingerprint, read_json, write_json
from temporalwiki.base.normalization import normalize
from temporalwiki.base.options import option
from temporalwiki.base.progress import Progress
from temporalwiki.builders.ckl.config import Counts
from temporalwiki.builders.ckl.corpus_index import CorpusIndex, plain
from temporalwiki.builders.ckl.label_studio import LABELS, Candidate, as_list, encode_task, read_tasks
from temporalwiki.builders.ckl.question_generation import occurs
from temporalwiki.builders.ckl.templates import SENTINEL
from temporalwiki.builders.ckl.text_model import RULES, WRITER, OpenModel, TextModel, no_models
from temporalwiki.builders.streams import digest

TASKS, INTERFACE, ABOUT, ANNOTATIONS = "tasks.json", "labels.xml", "review.json", "annotations"

VERSION = 1  # of the candidates; recorded in their manifest
_SENTENCE = range(6, 61)  # words
_DRAWN = 4  # spans of a page that the question model tries, per candidate of the page
_BATCH = 4096  # spans that a model gets at once
_CONTEXT = 1000  # characters before a sentence that a question model may read
_SPACES = re.compile(r"\s+")


class _ReviewCounts(msgspec.Struct):
    read: int  # spans
    kept: int
    dropped: dict[str, int]


class ReviewManifest(msgspec.Struct):
    """The content of review.json."""

    made_by: str
    options: dict[str, Any]
    inputs: list[dict[str, Any]]
    past: dict[str, Any]
    counts: _ReviewCounts
    sha256: str  # of tasks.json
    format: int = 1


@dataclass(frozen=True)
class CandidateOptions:
    """The options that decide which candidates there are."""

    spans: str = option(RULES, "what finds answers: rules, or a spaCy pipeline by name or folder")
    question_model: str = option(WRITER, "a language model that writes questions, by folder or Hub id")
    answer_model: str | None = option(None, "a model of the past; questions that it answers correctly are left out")
    per_page: int = option(3, "largest number of candidates of a page")
    passages: int = option(5, "passages of the past that are shown with each candidate")
    seed: int = option(0, "seed of the draw from each page")

    def __post_init__(self) -> None:
        """Raise UsageError for values out of range."""
        if self.per_page < 1 or self.passages < 1:
            raise UsageError("per_page and passages must be at least 1")


class _Span(NamedTuple):
    page: int
    row: Mapping[str, Any]
    before: str  # the end of the text before the sentence
    sentence: str
    start: int
    answer: str

    @property
    def statement(self) -> str:
        return self.sentence[: self.start] + SENTINEL + self.sentence[self.start + len(self.answer) :]


def write_candidates(
    rows: Iterable[Mapping[str, Any]],
    past: CorpusIndex,
    review: Path,
    options: CandidateOptions,
    inputs: Sequence[Mapping[str, Any]] = (),
    open_model: OpenModel = no_models,
) -> ReviewManifest:
    """Write candidates from news (rows with url, title, text, published) into ``review``; return their manifest.

    A candidate is a name or date in a sentence, with a generated question about it. Candidates that nobody can decide
    on (the answer is part of the question, ...) are dropped. So are questions that ``answer_model`` answers correctly
    without any text (exact match after normalisation). ``inputs`` describe the files of the rows. One batch and
    about 150 bytes for each question are in memory at once.

    Raises InputError if no candidate is left, or if the folder has decisions on other candidates.
    """
    review = review.resolve()
    counts = Counts()
    question_model = open_model(options.question_model)
    answer_model = None if options.answer_model is None else open_model(options.answer_model)
    with only_one(review, "review"):
        content = hashlib.sha256()
        with whole_file(review / TASKS) as part:
            with part.open("wb") as file, Progress("candidates", None, "page") as progress:
                found = _candidates(progress.each(rows), past, options, counts, question_model, answer_model)
                for part_of_list in as_list(map(encode_task, found)):
                    content.update(part_of_list)
                    file.write(part_of_list)
            if not counts.kept:
                reasons = ", ".join(f"{n:,} {reason}" for reason, n in sorted(counts.dropped.items()))
                raise InputError(f"{review}: no candidates in {counts.read:,} names and dates: {reasons}")
            _check_annotations(review, content.hexdigest())
        manifest = ReviewManifest(
            made_by=f"temporalwiki {importlib.metadata.version('temporalwiki')}",
            options=_recorded(options, question_model, answer_model),
            inputs=[dict(one) for one in inputs],
            past={key: past.about[key] for key in ("inputs", "documents", "passages")},
            counts=_ReviewCounts(**counts.as_json()),
            sha256=content.hexdigest(),
        )
        with whole_file(review / INTERFACE) as part:
            shutil.copyfile(LABELS, part)
        make_folder(review / ANNOTATIONS)
        write_json(review / ABOUT, msgspec.to_builtins(manifest))
    return manifest


def read_candidates(review: Path) -> list[Candidate]:
    """Return the candidates of a review; raise InputError if they are damaged."""
    return read_tasks(review / TASKS, "make the candidates again")


def read_review(review: Path) -> ReviewManifest:
    """Return the manifest of a review; raise InputError if it is damaged, or if its candidates were changed."""
    if not (review / TASKS).is_file():
        raise InputError(f"{review}: not a review: it has no {TASKS}")
    manifest = read_json(review / ABOUT, ReviewManifest, "the whole manifest of a review; make the candidates again")
    if digest(review / TASKS, "sha256") != manifest.sha256:
        raise InputError(
            f"{review / TASKS}: was changed after it was written; make the candidates again (corrections belong into "
            "Label Studio)"
        )
    return manifest


def _check_annotations(review: Path, content: str) -> None:
    annotations = sorted((review / ANNOTATIONS).glob("*.json"))
    if not annotations:
        return
    known = set()
    with contextlib.suppress(InputError):
        known.add(read_json(review / ABOUT, ReviewManifest).sha256)
    if (review / TASKS).is_file():  # a killed run may have written it without its manifest
        known.add(digest(review / TASKS, "sha256"))
    if content not in known:
        raise InputError(f"{annotations[0]}: has decisions on other candidates; remove it, or use another folder")


def _recorded(options: CandidateOptions, question_model: TextModel, answer_model: TextModel | None) -> dict[str, Any]:
    recorded = {"version": VERSION, **asdict(options), "question_model": dict(question_model.identity)}
    return recorded if answer_model is None else {**recorded, "answer_model": dict(answer_model.identity)}


def _candidates(
    rows: Iterable[Mapping[str, Any]],
    past: CorpusIndex,
    options: CandidateOptions,
    counts: Counts,
    question_model: TextModel,
    answer_model: TextModel | None,
) -> Iterator[Candidate]:
    seen: set[int] = set()
    for batch in _batches(_spans(rows, options, counts)):
        asked = [pair for pair in _questions(batch, options, counts, question_model) if _is_new(pair, seen, counts)]
        predictions: list[str | None] = [None] * len(asked)
        if answer_model is not None:
            predictions = answer_model.closed_book([question for _, question in asked], "predictions")
        for (span, question), prediction in zip(asked, predictions, strict=True):
            if prediction is not None and normalize(prediction) == normalize(span.answer):
                counts.drop("the model of the past knows the answer")
                continue
            counts.kept += 1
            yield Candidate(
                id=_id(span),
                question=question,
                answer=span.answer,
                statement=span.statement,
                sentence=span.sentence,
                title=plain(span.row["title"]),
                url=plain(span.row["url"]),
                published=span.row["published"],
                prediction=prediction,
                past_evidence=past.search(question, span.answer, options.passages),
            )


def _spans(rows: Iterable[Mapping[str, Any]], options: CandidateOptions, counts: Counts) -> Iterator[_Span]:
    """Yield the names and dates that a question may be asked about, a limited number per page."""
    from temporalwiki.builders.ckl.salient_spans import finder, sentence_starts

    find = finder(options.spans)
    for page, row in enumerate(rows):
        text = plain(row["text"])
        starts = [0, *sentence_starts(text)]
        usable = []
        for start, end in find(text):
            counts.read += 1
            number = bisect_right(starts, start) - 1
            sentence_end = starts[number + 1] if number + 1 < len(starts) else len(text)
            if end > sentence_end:
                counts.drop("goes over the end of a sentence")
                continue
            before, answer, after = (
                _SPACES.sub(" ", part)
                for part in (text[starts[number] : start], text[start:end], text[end:sentence_end])
            )
            before, after = before.lstrip(), after.rstrip()
            context = text[max(0, starts[number] - _CONTEXT) : starts[number]]
            span = _Span(page, row, context, before + answer + after, len(before), answer)
            if reason := _reason_to_drop(span):
                counts.drop(reason)
            else:
                usable.append(span)
        drawn = sorted(usable, key=lambda span: fingerprint(options.seed, row["url"], span.statement, span.answer))
        for _ in drawn[_DRAWN * options.per_page :]:
            counts.drop("not drawn: enough of the page")
        yield from drawn[: _DRAWN * options.per_page]


def _reason_to_drop(span: _Span) -> str | None:
    """Return why no question can be asked about a name or date; None if one can."""
    if "<extra_id_" in span.sentence:
        return "a sentinel in the sentence"
    if len(span.sentence.split()) not in _SENTENCE:
        return f"a sentence of less than {_SENTENCE[0]} or more than {_SENTENCE[-1]} words"
    if not normalize(span.answer):
        return "nothing left of the answer"
    if occurs(span.answer, span.statement.replace(SENTINEL, " ")):
        return "the answer more than once in the sentence"
    if span.sentence.count('"') % 2 or span.sentence.count("“") != span.sentence.count("”"):
        return "a part of a quotation"
    return None


def _batches(spans: Iterator[_Span]) -> Iterator[list[_Span]]:
    """Yield spans in batches; all spans of a page are in one batch."""
    batch: list[_Span] = []
    for _, page in groupby(spans, attrgetter("page")):
        batch += page
        if len(batch) >= _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _questions(
    batch: list[_Span], options: CandidateOptions, counts: Counts, model: TextModel
) -> Iterator[tuple[_Span, str]]:
    """Yield spans, in the order of ``batch``, with their questions: one per sentence, a limited number per page."""
    from temporalwiki.builders.ckl.question_generation import Passage, questions

    passages = [
        Passage(span.sentence, span.answer, span.start, plain(span.row["title"]), span.before, span.row["published"])
        for span in batch
    ]
    used: dict[int, set[str]] = {}  # sentences by page
    for span, raw in zip(batch, questions(passages, model), strict=True):
        question = " ".join(plain(raw or "").split())
        sentences = used.setdefault(span.page, set())
        if not question:
            counts.drop("no question")
        elif occurs(span.answer, question):
            counts.drop("the answer in the question")
        elif span.sentence in sentences or len(sentences) == options.per_page:
            counts.drop("not drawn: enough of the page")
        else:
            sentences.add(span.sentence)
            yield span, question


def _is_new(asked: tuple[_Span, str], seen: set[int], counts: Counts) -> bool:
    span, question = asked
    keys = {int(_id(span), 16), int(fingerprint(normalize(question)), 16)}
    if keys & seen:  # a question with two answers has no right one
        counts.drop("asked before")
        return False
    seen |= keys
    return True


def _id(span: _Span) -> str:
    return fingerprint(span.row["url"], span.statement, span.answer)
