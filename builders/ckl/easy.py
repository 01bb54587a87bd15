"""NewLAMA-Easy and NewQuestions-Easy: clozes and questions from recent sentences, without annotators.

This is the automatic part of CKL's Figure 4 (b). The answer is a name or date in a sentence. Models rewrite the
sentence so that it can be understood without its page (decontextualisation), paraphrase it (back-translation) and ask
a question. The answer must survive each step, and another model must find it again with the question.
"""

import functools
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import regex

from temporalwiki.base.normalization import normalize
from temporalwiki.base.options import option
from temporalwiki.builders.ckl.config import CklConfig, Row, RowCounts
from temporalwiki.builders.ckl.corpus_index import CorpusIndex, build_index
from temporalwiki.builders.ckl.news_sentences import STRANGE, Drawn, SentenceOptions, draw_sentences, reason_to_drop
from temporalwiki.builders.ckl.recentnews import reason_to_leave_out, seconds
from temporalwiki.builders.ckl.salient_spans import finder
from temporalwiki.builders.ckl.text_model import READER, RULES, WRITER, OpenModel, no_models
from temporalwiki.builders.ckl.text_steps import (
    Passage,
    are_answered,
    back_translate,
    decontextualize,
    occurrences,
    occurs,
    questions,
    written,
)
from temporalwiki.builders.wikipedia.novelty import folded_key
from temporalwiki.builders.wikipedia.sentences import split_sentences

# the options that name models
MODELS = ("decontextualization", "there", "back", "questions", "reader", "closed_book")
_KEPT = 0.6  # the least share of a sentence's words that a rewritten one keeps: only pronouns and the like change
_PASSAGES = 5  # passages of the past that are compared with a sentence
_CLOZE = "a sentence of a recent news page, clear without it, with a name or date masked (CKL, Figure 4 b)"
_ABOUT = {
    "newlama-easy": _CLOZE,
    "newlama-easy-small": f"{_CLOZE}, of the pages of recentnews-small",
    "newlama-easy-small-p1": f"{_CLOZE}, of the pages of recentnews-small-p1",
    "newlama-easy-small-p2": f"{_CLOZE}, of the pages of recentnews-small-p2",
    "newquestions-easy": "a question about a name or date in a sentence of a recent news page (CKL, Figure 4 b)",
}


@dataclass(frozen=True)
class EasyOptions(SentenceOptions):
    """The options that decide which sentences become rows, and how the rows are worded."""

    decontextualization: str = option(WRITER, "a model that rewrites sentences to be understood without their page")
    there: str = option(WRITER, "a model that translates into another language")
    back: str = option(WRITER, "a model that translates back")
    questions: str = option(WRITER, "a model that writes questions")
    reader: str = option(READER, "another model, which must find the answer with the question and the sentence")
    closed_book: str | None = option(None, "a model to test; questions that it answers without a text are left out")
    small_share: float = option(
        0.1, "share of the pages whose rows are in the small set, as in recentnews-small", above=0, at_most=1
    )
    phase_two: str = option("2020-11-01", "first day of the second phase of the small set, as in recentnews-small")

    def __post_init__(self) -> None:
        """Raise UsageError for values out of range."""
        super().__post_init__()
        seconds("phase_two", self.phase_two)


class EasyCloze(NamedTuple):
    """A sentence that passed all checks, with its question."""

    candidate: Drawn
    passage: Passage  # the rewritten sentence
    question: str


def easy(
    rows: Iterable[Row],
    options: EasyOptions,
    inputs: Sequence[Path] = (),
    open_model: OpenModel = no_models,
    past: Sequence[Path] = (),
    work: Path = Path("ckl.work"),
) -> list[CklConfig]:
    """Return the configs newlama-easy, with its small parts, and newquestions-easy of news rows.

    News rows have id, url, title, text and published. newlama-easy and newquestions-easy have the same rows: a cloze
    and its question. newlama-easy-small has the rows from the pages of recentnews-small; its parts split them by
    phase. ``rows`` is read once, when the first config is read. At most ``options.sentences`` sentences are
    in memory, and the order of the rows does not matter. ``inputs`` are the files of the rows. ``past`` are files of
    an older corpus, whose sentences are left out; its index is kept in ``work``. Raises InputError if a pipeline or
    model of the options, or the corpus, is missing.
    """
    find = finder(options.spans)
    recorded = asdict(options) | {
        step: dict(open_model(model).identity) for step in MODELS if (model := getattr(options, step)) is not None
    }
    recorded["spans"] = {"name": "rules" if options.spans == RULES else "spacy", "revision": find.key}
    if past:
        with build_index(past, work / "past", options.language) as index:
            recorded["past"] = {key: index.about[key] for key in ("inputs", "documents", "passages")}
    counts = {name: RowCounts() for name in _ABOUT}

    @functools.cache  # once for all configs
    def clozes() -> list[EasyCloze]:
        of_all = RowCounts()
        candidates = draw_sentences(rows, options, find, of_all)
        if past:
            with build_index(past, work / "past", options.language) as index:
                candidates = _new(candidates, index, options.language, of_all)
        found = make_clozes(candidates, options, of_all, open_model)
        for each in counts.values():
            each.read, each.dropped = of_all.read, dict(of_all.dropped)
            each.more |= of_all.more
        return found

    def rows_of(name: str) -> Iterator[Row]:
        for one in clozes():
            page = one.candidate
            drawn_by = options.small_share, options.phase_two, options.seed
            if reason := reason_to_leave_out(name, page.url, page.published, *drawn_by):
                counts[name].drop(reason)
            else:
                counts[name].kept += 1
                yield _row(one)

    return [
        CklConfig(
            name=name,
            kind="easy",
            splits={"test": rows_of(name)},
            about=about,
            licences=("other",),
            source="news pages; their texts belong to their publishers",
            inputs=list(inputs),
            options=recorded,
            counts=counts[name],
            language=options.language,
        )
        for name, about in _ABOUT.items()
    ]


def _new(candidates: Sequence[Drawn], past: CorpusIndex, language: str, counts: RowCounts) -> list[Drawn]:
    """Return the sentences that an older corpus does not have, in any typography."""
    new = []
    for one in candidates:
        sentence = one.passage.sentence
        passages = past.search(sentence, "", _PASSAGES)
        known = {folded_key(text) for passage in passages for text in split_sentences(passage.text, language)}
        if folded_key(sentence) in known:
            counts.drop("a sentence of the past")
        else:
            new.append(one)
    return new


_NAME_OR_NUMBER = regex.compile(r"[\p{L}\p{M}\p{N}]+")


def make_clozes(
    candidates: Sequence[Drawn], options: EasyOptions, counts: RowCounts, open_model: OpenModel = no_models
) -> list[EasyCloze]:
    """Return the clozes of sentences, in order; ``counts`` counts dropped sentences by reason."""
    # each step opens its own model, so that no more models than needed are in memory
    passages = [one.passage for one in candidates]
    rewritten = decontextualize(passages, open_model(options.decontextualization))
    clear = []
    for one, text in zip(candidates, rewritten, strict=True):
        if text is None:
            counts.drop("cannot stand alone")
        elif reason := _lost(text, one.passage.answer, "decontextualisation"):
            counts.drop(reason)
        elif _says_something_else(text, one.passage.sentence):
            counts.drop("another sentence after decontextualisation")
        elif _invented(text, _known(one.passage)):
            counts.drop("names or numbers after decontextualisation that the text does not have")
        else:
            clear.append((one, text))
    there, back = open_model(options.there), open_model(options.back)
    paraphrased = back_translate([text for _, text in clear], there, back, options.language)
    del there, back
    found: list[tuple[Drawn, Passage]] = []
    for (one, before), text in zip(clear, paraphrased, strict=True):
        answer = one.passage.answer
        if text is None:
            counts.drop("not translated")
        elif reason := _lost(text, answer, "back-translation"):
            counts.drop(reason)
        elif reason := reason_to_drop(text, options):
            counts.drop(f"{reason} after back-translation")
        elif _invented(text, before) or _invented(before, text):
            counts.drop("other names or numbers after back-translation")
        else:  # _lost has checked that the answer occurs once
            found.append((one, one.passage._replace(sentence=text, start=text.index(answer))))
    asked = questions([passage for _, passage in found], open_model(options.questions))
    clozes: dict[str, EasyCloze] = {}
    for (one, passage), question in zip(found, asked, strict=True):
        if question is None:
            counts.drop("no question")
        elif occurs(passage.answer, question):
            counts.drop("the question holds the answer")
        elif STRANGE.search(question):
            counts.drop("the question holds an address, a mark-up or control character")
        elif passage.statement in clozes:
            counts.drop("the same cloze as another sentence's")
        else:
            clozes[passage.statement] = EasyCloze(one, passage, question)
    return _checked(list(clozes.values()), options, counts, open_model)


def _checked(
    clozes: list[EasyCloze], options: EasyOptions, counts: RowCounts, open_model: OpenModel
) -> list[EasyCloze]:
    """Return the clozes whose question leads back to the answer, with the sentence but not without it."""
    passages, asked = [one.passage for one in clozes], [one.question for one in clozes]
    found = []
    for one, answered in zip(clozes, are_answered(passages, asked, open_model(options.reader)), strict=True):
        if answered:
            found.append(one)
        else:
            counts.drop("the reader does not answer the question with the answer")
    if options.closed_book is None:
        return found
    said = open_model(options.closed_book).closed_book([one.question for one in found], "closed book")
    unknown = []
    for one, answer in zip(found, said, strict=True):
        if normalize(answer or "") == normalize(one.passage.answer):
            counts.drop("the model under test knows the answer")
        else:
            unknown.append(one)
    return unknown


def _lost(text: str, answer: str, step: str) -> str | None:
    """Return why an answer cannot be masked after a step; None if it stands there once, as whole words."""
    if occurrences(answer, text) == text.count(answer) == 1:
        return None
    return f"the answer stands more than once after {step}" if answer in text else f"the answer was lost in {step}"


def _known(passage: Passage) -> str:
    day = "" if passage.published is None else written(passage.published)
    return "\n".join((passage.title, passage.context, passage.sentence, day))


def _invented(text: str, known: str) -> bool:
    """Tell whether a text has names or numbers that ``known`` does not have."""
    known_words = set(_NAME_OR_NUMBER.findall(known.casefold()))
    first = _NAME_OR_NUMBER.search(text)
    named = (match[0] for match in _NAME_OR_NUMBER.finditer(text, first.end() if first else 0))
    return any(word.casefold() not in known_words for word in named if not word.islower())


def _says_something_else(text: str, sentence: str) -> bool:
    """Tell whether a rewritten text lacks too many of a sentence's words.

    Small models sometimes rewrite the first sentence of the page in place of the one that they are given.
    """
    words, found = (Counter(_NAME_OR_NUMBER.findall(part.casefold())) for part in (sentence, text))
    return (words & found).total() < _KEPT * words.total()


def _row(one: EasyCloze) -> Row:
    candidate, passage = one.candidate, one.candidate.passage
    statement = one.passage.statement
    name = hashlib.blake2b(f"{candidate.url}\0{statement}".encode("utf-8", "surrogatepass"), digest_size=8)
    return {
        "id": name.hexdigest(),
        "statement": statement,
        "question": one.question,
        "answers": [passage.answer],
        "evidence": passage.sentence,
        "title": passage.title,
        "url": candidate.url,
        "published": candidate.published,
    }
