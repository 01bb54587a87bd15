"""NewLAMA-Easy and NewQuestions-Easy: clozes and questions out of recent sentences, without annotators.

The automatic part of CKL's Figure 4 (b): a name or a date of a sentence is the answer; the sentence is made to stand
alone (decontextualisation) and said in other words (back-translation); the answer must survive both; it is masked, and
asked for by a generated question.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import regex

from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import option
from temporalwiki.builders.ckl.back_translation import back_translate
from temporalwiki.builders.ckl.config import Config, Counts, Row
from temporalwiki.builders.ckl.decontextualization import decontextualize, full_name, opening, written
from temporalwiki.builders.ckl.question_generation import (
    Passage,
    by_rules,
    finite_verbs,
    occurrences,
    occurs,
    questions,
)
from temporalwiki.builders.ckl.salient_spans import finder, sentence_starts
from temporalwiki.builders.ckl.templates import SENTINEL
from temporalwiki.builders.ckl.text_model import RULES, OpenModel, find_model, identity, no_models

_CONTEXT = 4000  # characters before a sentence that are kept with it
_CHARACTERS = 20  # of a word, at most, on average


@dataclass(frozen=True)
class EasyOptions:
    """What decides the rows besides the news."""

    spans: str = option(RULES, "what finds names and dates: rules, or a spaCy pipeline by name or folder")
    decontextualization: str = option(
        RULES, "what makes a sentence stand alone: rules, or a model by folder or Hub id"
    )
    there: str = option(RULES, "back-translation: rules, or a model into another language")
    back: str = option(RULES, "and a model back from it")
    questions: str = option(RULES, "what asks: rules, or a model by folder or Hub id")
    least_words: int = option(8, "shortest sentence")
    most_words: int = option(50, "longest sentence")
    per_page: int = option(3, "most sentences of a page")
    sentences: int = option(20_000, "most sentences that the models are asked about, drawn by seed")
    seed: int = option(0, "of what is drawn")

    def __post_init__(self) -> None:
        """Refuse numbers that leave nothing; raise UsageError."""
        if not 1 <= self.least_words <= self.most_words:
            raise UsageError(
                f"least_words {self.least_words}, most_words {self.most_words}: 1 <= least <= most is wanted"
            )
        if self.per_page < 1 or self.sentences < 1:
            raise UsageError("per_page and sentences must be at least 1")


class Drawn(NamedTuple):
    """A sentence that was drawn, with its answer."""

    draw: bytes  # its place in the order of the seed
    url: str
    at: int  # in the page's text, in characters
    published: datetime
    passage: Passage
    hopeful: bool = False  # the rules can ask for it as it stands


@dataclass
class Made:
    """A sentence that the checks let pass, and its question where there is one."""

    candidate: Drawn
    statement: str
    question: str | None
    why_none: str | None  # why it has no question


def easy(
    rows: Iterable[Row], options: EasyOptions, inputs: Sequence[Path] = (), open_model: OpenModel = no_models
) -> list[Config]:
    """Return the configs newlama-easy and newquestions-easy of news rows (id, url, title, text, published).

    Both hold a cloze and its question; newlama-easy has a row for each cloze, its question null where none could be
    made, newquestions-easy those with a question. The rows are read when the first of the two is. At most
    ``options.sentences`` sentences are in memory, whatever the number of rows, and their order is of no matter.
    ``inputs``: the files that the rows were read from.
    Raises InputError where a pipeline or model that the options name is not there.
    """
    named = {step: getattr(options, step) for step in ("decontextualization", "there", "back", "questions")}
    if (options.there == RULES) != (options.back == RULES):
        raise UsageError("back-translation needs two models, there and back, or none")
    find = finder(options.spans)
    said = asdict(options) | {step: identity(find_model(model, open_model)) for step, model in named.items()}
    said["spans"] = {"name": "rules" if options.spans == RULES else "spacy", "revision": find.key}
    work = _Work(rows, options, find, open_model)
    common: dict[str, Any] = {
        "kind": "easy",
        "licences": ("other",),
        "source": "news pages; their texts belong to their publishers",
        "inputs": list(inputs),
        "options": said,
        "warnings": _warnings(named, options.spans),
    }
    return [
        Config(
            name="newlama-easy",
            splits={"test": work.clozes()},
            about="a sentence of a recent news page that stands alone, with a name or date masked (CKL, Figure 4 b)",
            counts=work.counts["newlama-easy"],
            **common,
        ),
        Config(
            name="newquestions-easy",
            splits={"test": work.questions()},
            about="a question about a name or date in a sentence of a recent news page (CKL, Figure 4 b)",
            counts=work.counts["newquestions-easy"],
            **common,
        ),
    ]


def _warnings(named: Mapping[str, str], spans: str) -> list[str]:
    by_rules = [step for step, model in {**named, "spans": spans}.items() if model == RULES]
    if not by_rules:
        return []
    return [f"made by rules, which are coarse: {', '.join(by_rules)}; models for them are better (see the options)"]


class _Work:
    """Makes the rows once, for both configs."""

    def __init__(
        self,
        rows: Iterable[Row],
        options: EasyOptions,
        find: Callable[[str], Sequence[tuple[int, int]]],
        open_model: OpenModel,
    ) -> None:
        self._rows, self._options, self._find, self._open_model = rows, options, find, open_model
        self.counts = {"newlama-easy": Counts(), "newquestions-easy": Counts()}
        self._made: list[Made] | None = None

    def clozes(self) -> Iterator[Row]:
        """Yield the rows of newlama-easy."""
        counts = self.counts["newlama-easy"]
        made = self._once()
        for one in made:
            counts.kept += 1
            yield _row(one)

    def questions(self) -> Iterator[Row]:
        """Yield the rows of newquestions-easy."""
        counts = self.counts["newquestions-easy"]
        for one in self._once():
            if one.question is None:
                counts.drop(str(one.why_none))
            else:
                counts.kept += 1
                yield _row(one)

    def _once(self) -> list[Made]:
        if self._made is None:
            counts = Counts()
            candidates = drawn(self._rows, self._options, self._find, counts)
            self._made = made(candidates, self._options, counts, self._open_model)
            for each in self.counts.values():  # what was dropped before there was a cloze is the same for both
                each.read, each.dropped = counts.read, dict(counts.dropped)
                each.more |= counts.more
        return self._made


def drawn(
    rows: Iterable[Row], options: EasyOptions, find: Callable[[str], Sequence[tuple[int, int]]], counts: Counts
) -> list[Drawn]:
    """Return the sentences that are worth a try, each with one answer, in the order of publishing.

    Of each page those are drawn first of which, by what the rules tell, a question or else a cloze will come: a draw
    of what comes to nothing is lost. ``counts`` takes all sentences read and why the others are none.
    """
    heap: list[tuple[int, str, int, Drawn]] = []  # the last of the order of the seed first
    pages = 0
    for row in rows:
        pages += 1
        of_page = list(_of_page(row, options, find, counts))
        best = _best(of_page, options)
        for _ in of_page[len(best) :]:
            counts.drop("more of its page than wanted")
        for one in best:
            entry = (-int.from_bytes(one.draw, "big"), one.url, one.at, one)
            if len(heap) < options.sentences:
                heapq.heappush(heap, entry)
            else:
                heapq.heappushpop(heap, entry)
                counts.drop("not drawn: more sentences than wanted")
    counts.more["pages"] = pages
    return sorted((entry[-1] for entry in heap), key=lambda one: (one.published, one.url, one.at))


_QUOTE = regex.compile(r"[\"“”„«»]|(?:^|\s)['‘](?!\d0s)|[\p{L}.,!?]['’](?=\s[^\p{Ll}]|$)(?<!s['’])")
_STRANGE = regex.compile(r"https?:|www\.|[@#|<>{}\[\]\\=_^~\x00-\x1f\x7f\ufffd\p{Cs}]|\.\.\.|…")
_CUT = regex.compile(
    r"\b(?:Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov|Dec|No|vs|Mr|Mrs|Ms|Dr|St|Gen|Sen|Rep|Gov|Lt|Col|Sgt|Capt|Prof|\p{Lu})\.$"
)
_NAME_OR_NUMBER = regex.compile(r"[\p{L}\p{M}\p{N}]+")
_LIST = regex.compile(r"[:;•*]|^\p{Lu}+ ?[-–—]| - ")


def _of_page(
    row: Row, options: EasyOptions, find: Callable[[str], Sequence[tuple[int, int]]], counts: Counts
) -> Iterator[Drawn]:
    text, title, url = (str(row[column] or "") for column in ("text", "title", "url"))
    published: datetime | None = row["published"]
    if published is not None and published.tzinfo is None:
        published = published.replace(tzinfo=UTC)
    spans = list(find(text))
    starts = [0, *sentence_starts(text), len(text)]
    at_span = 0
    for start, limit in pairwise(starts):
        sentence = text[start:limit].strip()
        if not sentence:
            continue
        counts.read += 1
        start = text.index(sentence, start)
        end = start + len(sentence)
        while at_span < len(spans) and spans[at_span][0] < start:
            at_span += 1
        inside = []
        for a, b in spans[at_span:]:
            if a >= end:
                break
            if b <= end:
                inside.append((a - start, b - start))
        reason = _unfit(sentence, options)
        if published is None:
            counts.drop("page without a date")
            continue
        if reason is None:
            cut = opening(sentence)
            once = [(a, b) for a, b in inside if a >= cut and _whole(sentence, a, b)]
            once = [(a, b) for a, b in once if occurrences(sentence[a:b], sentence) == 1]
            if not inside:
                reason = "no name or date"
            elif not once:
                reason = "no name or date that stands once, as a word of its own"
            else:
                key = hashlib.blake2b(f"{url}\0{sentence}".encode("utf-8", "surrogatepass"), key=b"%d" % options.seed)
                draw = key.digest()[:16]
                before = text[max(0, start - _CONTEXT) : start]
                passages = [Passage(sentence, sentence[a:b], a, title, before, published) for a, b in once]
                asked = []
                if options.questions == RULES:  # they can ask for few: for those rather than for none
                    asked = [one for one in passages if by_rules(_opened(one, cut))]
                passages = asked or passages
                chosen = passages[int.from_bytes(key.digest()[16:24], "big") % len(passages)]
                yield Drawn(draw, url, start, published, chosen, bool(asked))
                continue
        counts.drop(reason)


def _best(of_page: Iterable[Drawn], options: EasyOptions) -> list[Drawn]:
    """Return the sentences of a page that are taken: those of which a question comes, then those that make a cloze.

    Rules tell what comes of them, and are asked until there are enough. Models are not asked for every sentence of
    the news: what they do is taken to change nothing.
    """
    ordered = sorted(of_page, key=lambda one: (not one.hopeful, one.draw))
    if options.decontextualization != RULES:
        return ordered[: options.per_page]
    by_rules_alone = replace(options, there=RULES, back=RULES, questions=RULES)
    asked: list[Drawn] = []
    clozes: list[Drawn] = []
    failed: list[Drawn] = []
    for one in ordered:
        if len(asked) + (0 if one.hopeful else len(clozes)) >= options.per_page:
            break
        found = made([one], by_rules_alone, Counts())
        (failed if not found else asked if one.hopeful and found[0].question else clozes).append(one)
    return [*asked, *clozes, *failed][: options.per_page]


def _opened(passage: Passage, cut: int) -> Passage:
    """Return a passage without the first characters of its sentence."""
    sentence = passage.sentence[cut : cut + 1].upper() + passage.sentence[cut + 1 :]
    return passage._replace(sentence=sentence, start=passage.start - cut)


def _unfit(sentence: str, options: EasyOptions) -> str | None:
    """Return why a sentence is none that can stand alone by its looks; None for one that may."""
    told = sentence.split()
    if len(told) < options.least_words:
        return "too short"
    if len(told) > options.most_words or len(sentence) > _CHARACTERS * options.most_words:
        return "too long"
    if _STRANGE.search(sentence):
        return "holds an address, a mark-up or control character, or an ellipsis"
    if _QUOTE.search(sentence):
        return "holds a quotation"
    if sentence_starts(sentence):
        return "is more than one sentence"
    if not sentence.endswith("."):
        return "does not end with a full stop"
    if _CUT.search(sentence):
        return "ends with an abbreviation: cut in its middle"
    if not sentence[:1].isupper():
        return "does not begin with a capital letter"
    if _LIST.search(sentence) or sentence.count("(") != sentence.count(")"):
        return "is a list or a caption by its marks"
    if not finite_verbs(told) and not any(
        a[0].isupper() and b.islower() and b.endswith("s") for a, b in pairwise(told)
    ):
        return "no verb"
    return None


def _whole(sentence: str, start: int, end: int) -> bool:
    """Tell whether a span is no part of a longer word: "AI" of "AI-powered"."""
    return sentence[start - 1 : start] not in ("-", "–", "/", "&") and not regex.match(r"[-–/&]", sentence[end:])


def made(
    candidates: Sequence[Drawn], options: EasyOptions, counts: Counts, open_model: OpenModel = no_models
) -> list[Made]:
    """Return what becomes of sentences, in their order; ``counts`` takes why the others became nothing."""
    # each model is opened where it is asked: one at a time is in memory
    passages = [one.passage for one in candidates]
    alone = decontextualize(passages, find_model(options.decontextualization, open_model))
    left = []
    for one, text in zip(candidates, alone, strict=True):
        if text is None:
            counts.drop("cannot stand alone")
        elif reason := _lost(text, one.passage.answer, "decontextualisation"):
            counts.drop(reason)
        elif options.decontextualization != RULES and _invented(text, _known(one.passage)):
            counts.drop("names or numbers after decontextualisation that the text does not have")
        else:
            left.append((one, text))
    there, back = (find_model(model, open_model) for model in (options.there, options.back))
    said = back_translate([text for _, text in left], there, back)
    del there, back
    clozes: list[tuple[Drawn, Passage, str]] = []
    seen: set[str] = set()
    for (one, before), text in zip(left, said, strict=True):
        answer = one.passage.answer
        if text is None:
            counts.drop("not translated")
        elif (reason := _lost(text, answer, "back-translation")) or (reason := _unfit(text, options)):
            counts.drop(reason)
        elif options.there != RULES and (_invented(text, before) or _invented(before, text)):
            counts.drop("other names or numbers after back-translation")
        else:
            at = text.index(answer)  # once, by _lost
            statement = f"{text[:at]}{SENTINEL}{text[at + len(answer) :]}"
            if statement in seen:
                counts.drop("the same cloze as another sentence's")
                continue
            seen.add(statement)
            clozes.append((one, one.passage._replace(sentence=text, start=at), statement))
    asked = questions([passage for _, passage, _ in clozes], find_model(options.questions, open_model))
    found = []
    for (one, passage, statement), question in zip(clozes, asked, strict=True):
        why = None
        if question is None:
            why = "no question"
        elif occurs(passage.answer, question):
            question, why = None, "the question holds the answer"
        elif _STRANGE.search(question):
            question, why = None, "the question holds an address, a mark-up or control character"
        found.append(Made(one, statement, question, why))
    return found


def _lost(text: str, answer: str, step: str) -> str | None:
    """Return why an answer cannot be masked in what a step made of a sentence; None where it can."""
    if _place(text, answer) is not None:
        return None
    return f"the answer stands more than once after {step}" if answer in text else f"the answer was lost in {step}"


def _place(text: str, answer: str) -> int | None:
    """Return where an answer stands, as words of their own; None where that is nowhere, or not once."""
    if occurrences(answer, text) != 1 or text.count(answer) != 1:
        return None
    return text.index(answer)


def _known(passage: Passage) -> str:
    day = "" if passage.published is None else written(passage.published)
    return "\n".join((passage.title, passage.context, passage.sentence, day))


def _invented(text: str, known: str) -> bool:
    """Tell whether a text has names or numbers that ``known`` has not: what a model made up, or lost."""
    there = set(_NAME_OR_NUMBER.findall(known.casefold()))
    first = _NAME_OR_NUMBER.search(text)
    named = (match[0] for match in _NAME_OR_NUMBER.finditer(text, first.end() if first else 0))
    return any(word.casefold() not in there for word in named if not word.islower())


def _row(one: Made) -> Row:
    candidate, passage = one.candidate, one.candidate.passage
    full = full_name(passage.answer, f"{passage.title}\n{passage.context}", passage.sentence)
    name = hashlib.blake2b(f"{candidate.url}\0{one.statement}".encode("utf-8", "surrogatepass"), digest_size=8)
    return {
        "id": name.hexdigest(),
        "statement": one.statement,
        "question": one.question,
        "answers": [passage.answer] if full is None else [passage.answer, full],
        "evidence": passage.sentence,
        "title": passage.title,
        "url": candidate.url,
        "published": candidate.published,
    }
