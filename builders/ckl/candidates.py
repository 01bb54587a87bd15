"""Candidates of UpdatedLAMA and NewLAMA out of the news, as files that annotators decide upon (CKL, appendix B).

REVIEW/candidates.jsonl   a question, its answer, the sentence, and what a corpus of the past says of it; one a line
REVIEW/README.md          how to decide
REVIEW/candidates.json    how they were made, and what was left out by reason; written last
REVIEW/decisions/         one file an annotator: see ``decisions``
"""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tqdm import tqdm

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import only_one, whole_file
from temporalwiki.base.json_files import fingerprint, write_json
from temporalwiki.base.normalization import normalize
from temporalwiki.base.options import option
from temporalwiki.builders.ckl import json_lines
from temporalwiki.builders.ckl.config import Counts
from temporalwiki.builders.ckl.corpus_index import CorpusIndex, Past, plain
from temporalwiki.builders.ckl.question_generation import occurs
from temporalwiki.builders.ckl.templates import SENTINEL
from temporalwiki.builders.ckl.text_model import RULES, OpenModel, TextModel, find_model, identity, no_models
from temporalwiki.builders.streams import digest

CANDIDATES, ABOUT, README, DECISIONS = "candidates.jsonl", "candidates.json", "README.md", "decisions"

VERSION = 1  # of what is a candidate
_SENTENCE = range(6, 61)  # words
_DRAWN = 4  # spans of a page that a model is asked for, for each candidate that may come of it; rules cost little
_BATCH = 4096  # spans that are asked for together
_CONTEXT = 1000  # characters before a sentence that a question model may see
_SPACES = re.compile(r"\s+")


class Candidate(msgspec.Struct):
    """A line of candidates.jsonl."""

    id: str
    question: str
    answer: str
    statement: str  # the sentence with <extra_id_0> in the answer's place
    sentence: str
    title: str
    url: str
    published: datetime.datetime
    prediction: str | None  # of a model of the past, closed-book; null where none was asked
    past_evidence: list[Past]


@dataclass(frozen=True)
class CandidateOptions:
    """What decides which candidates there are."""

    spans: str = option(RULES, "what finds answers: rules, or a spaCy pipeline by name or folder")
    question_model: str = option(RULES, "what asks: rules, or a language model by folder or Hub id")
    answer_model: str | None = option(None, "a model of the past; what it answers rightly is left out")
    per_page: int = option(3, "most candidates of a page")
    passages: int = option(5, "of the past, shown with each candidate")
    seed: int = option(0, "of what is drawn from a page")

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        if self.per_page < 1 or self.passages < 1:
            raise UsageError("per_page and passages must be at least 1")


class _Span(NamedTuple):
    page: int
    row: Mapping[str, Any]
    before: str  # the text before the sentence, or its end
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
) -> dict[str, Any]:
    """Write candidates out of news (rows with url, title, text, published) into ``review``; return their manifest.

    A candidate is a name or date in a sentence, of which a question was generated. Left out by reason is what no one
    can decide upon (the answer stands in the question, ...) and what ``answer_model`` answers rightly without any
    text, by exact match after normalisation. ``inputs`` describe the files that the rows come from. Memory: the
    batch at hand and some 150 bytes a question.

    Raises InputError where nothing is left, and where decisions upon other candidates are in the folder.
    """
    review = review.resolve()
    counts = Counts()
    target = review / CANDIDATES
    question_model = find_model(options.question_model, open_model)
    answer_model = None if options.answer_model is None else open_model(options.answer_model)
    with only_one(review, "review"):
        about = {
            "format": 1,
            "made_by": f"temporalwiki {importlib.metadata.version('temporalwiki')}",
            "options": _recorded(options, question_model, answer_model),
            "inputs": list(inputs),
            "past": {key: past.about[key] for key in ("inputs", "documents", "passages")},
        }
        review.mkdir(parents=True, exist_ok=True)
        content = hashlib.sha256()
        with whole_file(target) as part:
            with part.open("wb") as file:
                for candidate in _candidates(rows, past, options, counts, question_model, answer_model):
                    line = msgspec.json.encode(candidate) + b"\n"
                    content.update(line)
                    file.write(line)
            if not counts.kept:
                raise InputError(f"{review}: no candidates in {counts.read:,} names and dates: {_told(counts)}")
            _check_decisions(review, content.hexdigest())
        about["counts"] = counts.as_json()
        about["sha256"] = content.hexdigest()
        with whole_file(review / README) as part:
            part.write_text(guide(), encoding="utf-8")
        (review / DECISIONS).mkdir(exist_ok=True)
        write_json(review / ABOUT, about)
    return about


def read_candidates(review: Path) -> Iterator[Candidate]:
    """Yield the candidates of a review; raise InputError, naming file and line, for what is none."""
    for _, candidate in json_lines.read(review / CANDIDATES, Candidate):
        yield candidate


def read_about(review: Path) -> dict[str, Any]:
    """Return the manifest of a review; raise InputError unless its candidates are whole and as they were written."""
    if not (review / CANDIDATES).is_file():
        raise InputError(f"{review}: not a review: no {CANDIDATES} there")
    try:
        about: dict[str, Any] = json.loads((review / ABOUT).read_text("utf-8"))
        wanted = str(about["sha256"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{review}: {ABOUT} is not there or not whole; {_AGAIN}") from None
    if digest(review / CANDIDATES, "sha256") != wanted:
        raise InputError(f"{review / CANDIDATES}: was changed since it was written; {_AGAIN}")
    return about


_AGAIN = "make the candidates again (what annotators mend belongs into their decisions)"


def _check_decisions(review: Path, content: str) -> None:
    made = sorted((review / DECISIONS).glob("*.jsonl"))
    if not made:
        return
    try:
        before = {json.loads((review / ABOUT).read_text("utf-8"))["sha256"]}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        before = set()
    if (review / CANDIDATES).is_file():  # a run was killed before it could write the other
        before.add(digest(review / CANDIDATES, "sha256"))
    if content not in before:
        raise InputError(f"{made[0]}: decides upon other candidates than these; take it away, or use another folder")


def _recorded(
    options: CandidateOptions, question_model: TextModel | None, answer_model: TextModel | None
) -> dict[str, Any]:
    recorded = {"version": VERSION, **asdict(options), "question_model": identity(question_model)}
    return recorded if answer_model is None else {**recorded, "answer_model": identity(answer_model)}


def _told(counts: Counts) -> str:
    return ", ".join(f"{n:,} {reason}" for reason, n in sorted(counts.dropped.items())) or "there are none"


def _candidates(
    rows: Iterable[Mapping[str, Any]],
    past: CorpusIndex,
    options: CandidateOptions,
    counts: Counts,
    question_model: TextModel | None,
    answer_model: TextModel | None,
) -> Iterator[Candidate]:
    seen: set[int] = set()
    for batch in _batches(_spans(tqdm(rows, desc="candidates", unit="page", disable=None), options, counts)):
        asked = [pair for pair in _asked(batch, options, counts, question_model) if _is_new(pair, seen, counts)]
        said: list[str | None] = [None] * len(asked)
        if answer_model is not None:
            said = answer_model.closed_book([question for _, question in asked], "predictions")
        for (span, question), prediction in zip(asked, said, strict=True):
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
    """Yield names and dates in sentences that a question may be asked about, at most so many of each page."""
    from temporalwiki.builders.ckl.salient_spans import finder, sentence_starts

    find = finder(options.spans)
    for page, row in enumerate(rows):
        text = plain(row["text"])
        starts = [0, *sentence_starts(text)]
        fit = []
        for start, end in find(text):
            counts.read += 1
            number = bisect_right(starts, start) - 1
            until = starts[number + 1] if number + 1 < len(starts) else len(text)
            if end > until:
                counts.drop("goes over the end of a sentence")
                continue
            before, answer, after = (
                _SPACES.sub(" ", part) for part in (text[starts[number] : start], text[start:end], text[end:until])
            )
            before, after = before.lstrip(), after.rstrip()
            context = text[max(0, starts[number] - _CONTEXT) : starts[number]]
            span = _Span(page, row, context, before + answer + after, len(before), answer)
            if reason := _unfit(span):
                counts.drop(reason)
            else:
                fit.append(span)
        drawn = sorted(fit, key=lambda span: fingerprint(options.seed, row["url"], span.statement, span.answer))
        most = len(drawn) if options.question_model == RULES else _DRAWN * options.per_page
        for _ in drawn[most:]:
            counts.drop("not drawn: enough of the page")
        yield from drawn[:most]


def _unfit(span: _Span) -> str | None:
    """Say why nothing can be asked about a name or date in its sentence; None where it can."""
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
    """Yield spans in batches that leave no page in two."""
    batch: list[_Span] = []
    for _, page in groupby(spans, attrgetter("page")):
        batch += page
        if len(batch) >= _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _asked(
    batch: list[_Span], options: CandidateOptions, counts: Counts, model: TextModel | None
) -> Iterator[tuple[_Span, str]]:
    """Yield spans with their questions: one a sentence, and so many a page, in the order in which they were drawn."""
    from temporalwiki.builders.ckl.question_generation import Passage, questions

    items = [
        Passage(span.sentence, span.answer, span.start, plain(span.row["title"]), span.before, span.row["published"])
        for span in batch
    ]
    taken: dict[int, set[str]] = {}
    for span, asked in zip(batch, questions(items, model), strict=True):
        question = " ".join(plain(asked or "").split())
        sentences = taken.setdefault(span.page, set())
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
    if keys & seen:  # with another answer it has no one answer
        counts.drop("asked before")
        return False
    seen |= keys
    return True


def _id(span: _Span) -> str:
    return fingerprint(span.row["url"], span.statement, span.answer)


def guide() -> str:
    """Return what annotators are told: REVIEW/README.md, in Markdown."""
    return _GUIDE


_GUIDE = """\
# How to decide

`candidates.jsonl` has one candidate a line: a `question` with its `answer`, both made by a program out of a `sentence`
of a news page (`title`, `url`, `published`). `statement` is that sentence with `<extra_id_0>` where the answer stood.
`past_evidence` are passages of a corpus that was written before the news, nearest first; `has_answer` says whether
the answer stands in one. `prediction` is what a model of the past answered, if one was asked.

Write your decisions into a file of your own, `decisions/YOUR-NAME.jsonl`, one line for each candidate, in any order.
Leave `candidates.jsonl` as it is: what is to be mended belongs into your decision.

1. **Is the question valid?** It asks for one thing, and can be understood without having read the page: no "he", no
   "the company", no "yesterday". If it can be mended, mend it: write a better `question`, and a better `statement`
   with exactly one `<extra_id_0>`. The statement must make sense alone, too. Else `"valid": false`, and you are done.
2. **Is the answer right** by the page? Else `"answer_right": false`, and you are done. `answers` lists all that should
   count as right, where it is more than the one; otherwise leave it null.
3. **What did the past say?** Read the passages; look further in sources from before `published` if you can.
   - `"past": "other"`: there was another answer, which is no longer right. Write it into `old_answers`, and where it
     stands into `old_evidence`: the `id` of a passage, or a sentence of your own source. The fact was *updated*.
   - `"past": "same"`: the same answer was right before. It is no news, and is left out.
   - `"past": "none"`: nothing was known of it. The fact is *new*.

Not sure? `"valid": null` leaves a candidate undecided.

| field | |
|---|---|
| `id` | of the candidate |
| `valid` | true, false, or null for undecided |
| `answer_right` | true or false; needed where `valid` is true |
| `past` | "other", "same" or "none"; needed where `answer_right` is true |
| `old_answers` | list; needed where `past` is "other", and empty or left out otherwise |
| `old_evidence` | text or null |
| `statement`, `question`, `answers` | mended ones; null or left out where the candidate's are good |
| `note` | anything you want to say; nothing reads it |

Example, one line each:

```json
{"id": "0123456789abcdef", "valid": true, "answer_right": true, "past": "other", "old_answers": ["Ann Weber"], \
"old_evidence": "Ann Weber is the mayor of Easton.", "statement": "The mayor of Easton is <extra_id_0>.", \
"question": "Who is the mayor of Easton?", "answers": ["Bo Lind", "B. Lind"]}
{"id": "123456789abcdef0", "valid": true, "answer_right": true, "past": "none"}
{"id": "23456789abcdef01", "valid": false, "note": "who is 'he'?"}
```

What becomes of a candidate, by all annotators together: more than half of those who decided must call the question
valid, more than half of these the answer right, and more than half of these must say the same of the past. Otherwise
it is left out. So is a statement without exactly one `<extra_id_0>`, an answer that stands in its own statement or
question, and an update whose old answer is the new one. Of several mended statements or questions that which most
wrote is taken; of as many, that of the annotator whose file comes first by its name.
"""
