"""NewLAMA-Easy and NewQuestions-Easy: clozes and questions from recent sentences, without annotators.

This is the automatic part of CKL's Figure 4 (b). The answer is a name or date in a sentence. The sentence is rewritten
so that it can be understood without its page (decontextualisation) and paraphrased (back-translation). The answer must
survive both steps. It is then masked, and a question about it is generated.
"""

from __future__ import annotations

import hashlib
import heapq
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from temporalwiki.builders.ckl.salient_spans import Find, finder, sentence_starts
from temporalwiki.builders.ckl.templates import SENTINEL
from temporalwiki.builders.ckl.text_model import RULES, OpenModel, find_model, identity, no_models

_CONTEXT = 4000  # characters before a sentence that the steps may read
_CHARACTERS = 20  # the largest average length of a word


@dataclass(frozen=True)
class EasyOptions:
    """The options that decide which sentences become rows, and how the rows are worded."""

    spans: str = option(RULES, "what finds names and dates: rules, or a spaCy pipeline (name or folder)")
    decontextualization: str = option(
        RULES, "what rewrites sentences to be understood without their page: rules, or a model (folder or Hub id)"
    )
    there: str = option(RULES, "what translates into another language: rules (no translation), or a model")
    back: str = option(RULES, "what translates back: rules, or a model")
    questions: str = option(RULES, "what writes questions: rules, or a model (folder or Hub id)")
    least_words: int = option(8, "words of the shortest sentence")
    most_words: int = option(50, "words of the longest sentence")
    per_page: int = option(3, "largest number of sentences per page")
    sentences: int = option(20_000, "largest number of sentences, drawn by the seed")
    seed: int = option(0, "seed of the draw")

    def __post_init__(self) -> None:
        """Raise UsageError for values out of range."""
        if not 1 <= self.least_words <= self.most_words:
            raise UsageError(
                f"least_words {self.least_words}, most_words {self.most_words}: must be 1 <= least <= most"
            )
        if self.per_page < 1 or self.sentences < 1:
            raise UsageError("per_page and sentences must be at least 1")


class Drawn(NamedTuple):
    """A drawn sentence with its answer."""

    draw: bytes  # sentences are drawn in the order of these bytes
    url: str
    at: int  # its place in the page, in characters
    published: datetime
    passage: Passage
    askable: bool = False  # the rules have a question for it as it stands


@dataclass
class Cloze:
    """A sentence that passed all checks, with its question."""

    candidate: Drawn
    statement: str
    question: str | None
    why_none: str | None  # the reason for a missing question


def easy(
    rows: Iterable[Row], options: EasyOptions, inputs: Sequence[Path] = (), open_model: OpenModel = no_models
) -> list[Config]:
    """Return the configs newlama-easy and newquestions-easy of news rows (id, url, title, text, published).

    The rows of both have a cloze and its question. newlama-easy has all clozes, some with a null question;
    newquestions-easy has those with a question. ``rows`` is read once, when the first of the two configs
    is read. At most ``options.sentences`` sentences are in memory, and the order of the rows does not matter.
    ``inputs`` are the files of the rows. Raises InputError if a pipeline or model of the options is missing, and
    UsageError for only one model of back-translation.
    """
    named = {step: getattr(options, step) for step in ("decontextualization", "there", "back", "questions")}
    if (options.there == RULES) != (options.back == RULES):
        raise UsageError("back-translation needs two models, there and back, or none")
    find = finder(options.spans)
    recorded = asdict(options) | {step: identity(find_model(model, open_model)) for step, model in named.items()}
    recorded["spans"] = {"name": "rules" if options.spans == RULES else "spacy", "revision": find.key}
    work = _Work(rows, options, find, open_model)
    common: dict[str, Any] = {
        "kind": "easy",
        "licences": ("other",),
        "source": "news pages; their texts belong to their publishers",
        "inputs": list(inputs),
        "options": recorded,
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
    """Computes the clozes once, for both configs."""

    def __init__(self, rows: Iterable[Row], options: EasyOptions, find: Find, open_model: OpenModel) -> None:
        self._rows, self._options, self._find, self._open_model = rows, options, find, open_model
        self.counts = {"newlama-easy": Counts(), "newquestions-easy": Counts()}
        self._found: list[Cloze] | None = None

    def clozes(self) -> Iterator[Row]:
        """Yield the rows of newlama-easy."""
        counts = self.counts["newlama-easy"]
        for one in self._clozes():
            counts.kept += 1
            yield _row(one)

    def questions(self) -> Iterator[Row]:
        """Yield the rows of newquestions-easy."""
        counts = self.counts["newquestions-easy"]
        for one in self._clozes():
            if one.question is None:
                counts.drop(str(one.why_none))
            else:
                counts.kept += 1
                yield _row(one)

    def _clozes(self) -> list[Cloze]:
        if self._found is None:
            counts = Counts()
            candidates = draw_sentences(self._rows, self._options, self._find, counts)
            self._found = make_clozes(candidates, self._options, counts, self._open_model)
            for each in self.counts.values():  # up to here both configs drop the same sentences
                each.read, each.dropped = counts.read, dict(counts.dropped)
                each.more |= counts.more
        return self._found


def draw_sentences(rows: Iterable[Row], options: EasyOptions, find: Find, counts: Counts) -> list[Drawn]:
    """Return usable sentences, each with one answer, in the order of publishing.

    From each page, sentences that probably give a question are taken first, then sentences for clozes. The
    seed then draws ``options.sentences`` of all pages. ``counts`` counts all sentences, and the dropped ones by
    reason.
    """
    heap: list[tuple[int, str, int, Drawn]] = []  # the last one in the order of the seed is on top
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


def _of_page(row: Row, options: EasyOptions, find: Find, counts: Counts) -> Iterator[Drawn]:
    """Yield the usable sentences of a page, each with one answer drawn by the seed."""
    text, title, url = (str(row[column] or "") for column in ("text", "title", "url"))
    published: datetime | None = row["published"]
    if published is not None and published.tzinfo is None:
        published = published.replace(tzinfo=UTC)
    spans = list(find(text))
    for start, limit in pairwise([0, *sentence_starts(text), len(text)]):
        sentence = text[start:limit].strip()
        if not sentence:
            continue
        counts.read += 1
        if published is None:
            counts.drop("page without a date")
            continue
        if reason := _reason_to_drop(sentence, options):
            counts.drop(reason)
            continue
        start = text.index(sentence, start)
        end = start + len(sentence)
        of_sentence = spans[bisect_left(spans, (start, 0)) : bisect_left(spans, (end, 0))]
        inside = [(a - start, b - start) for a, b in of_sentence if b <= end]
        cut = opening(sentence)
        usable = [(a, b) for a, b in inside if a >= cut and _is_whole_word(sentence, a, b)]
        usable = [(a, b) for a, b in usable if occurrences(sentence[a:b], sentence) == 1]
        if not usable:
            reason = "no name or date that stands once, as a word of its own"
            counts.drop(reason if inside else "no name or date")
            continue
        before = text[max(0, start - _CONTEXT) : start]
        passages = [Passage(sentence, sentence[a:b], a, title, before, published) for a, b in usable]
        askable = []
        if options.questions == RULES:  # they have few questions: prefer the spans that have one
            askable = [one for one in passages if by_rules(_without_opening(one, cut))]
        passages = askable or passages
        key = hashlib.blake2b(f"{url}\0{sentence}".encode("utf-8", "surrogatepass"), key=b"%d" % options.seed).digest()
        chosen = passages[int.from_bytes(key[16:24], "big") % len(passages)]
        yield Drawn(key[:16], url, start, published, chosen, bool(askable))


def _best(of_page: Iterable[Drawn], options: EasyOptions) -> list[Drawn]:
    """Return the sentences of a page to use: sentences for questions first, then sentences for clozes.

    The rules are tried until there are enough sentences. Models would be too slow for every sentence of the news:
    this function assumes that they change nothing.
    """
    ordered = sorted(of_page, key=lambda one: (not one.askable, one.draw))
    if options.decontextualization != RULES:
        return ordered[: options.per_page]
    only_rules = replace(options, there=RULES, back=RULES, questions=RULES)
    asked: list[Drawn] = []
    clozes: list[Drawn] = []
    failed: list[Drawn] = []
    for one in ordered:
        if len(asked) + (0 if one.askable else len(clozes)) >= options.per_page:
            break
        found = make_clozes([one], only_rules, Counts())
        (failed if not found else asked if one.askable and found[0].question else clozes).append(one)
    return [*asked, *clozes, *failed][: options.per_page]


def _without_opening(passage: Passage, cut: int) -> Passage:
    """Return a passage without the first characters of its sentence."""
    sentence = passage.sentence[cut : cut + 1].upper() + passage.sentence[cut + 1 :]
    return passage._replace(sentence=sentence, start=passage.start - cut)


def _reason_to_drop(sentence: str, options: EasyOptions) -> str | None:
    """Return why the form of a sentence makes it unusable; None if it is usable."""
    words = sentence.split()
    if len(words) < options.least_words:
        return "too short"
    if len(words) > options.most_words or len(sentence) > _CHARACTERS * options.most_words:
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
    if not finite_verbs(words) and not any(
        a[0].isupper() and b.islower() and b.endswith("s") for a, b in pairwise(words)
    ):
        return "no verb"
    return None


def _is_whole_word(sentence: str, start: int, end: int) -> bool:
    """Tell whether a span is a whole word, unlike "AI" in "AI-powered"."""
    return sentence[start - 1 : start] not in ("-", "–", "/", "&") and not regex.match(r"[-–/&]", sentence[end:])


def make_clozes(
    candidates: Sequence[Drawn], options: EasyOptions, counts: Counts, open_model: OpenModel = no_models
) -> list[Cloze]:
    """Return the clozes of sentences, in order; ``counts`` counts dropped sentences by reason."""
    # each step opens its own model, so that no more models than needed are in memory
    passages = [one.passage for one in candidates]
    rewritten = decontextualize(passages, find_model(options.decontextualization, open_model))
    clear = []
    for one, text in zip(candidates, rewritten, strict=True):
        if text is None:
            counts.drop("cannot stand alone")
        elif reason := _lost(text, one.passage.answer, "decontextualisation"):
            counts.drop(reason)
        elif options.decontextualization != RULES and _invented(text, _known(one.passage)):
            counts.drop("names or numbers after decontextualisation that the text does not have")
        else:
            clear.append((one, text))
    there, back = (find_model(model, open_model) for model in (options.there, options.back))
    paraphrased = back_translate([text for _, text in clear], there, back)
    del there, back
    clozes: list[tuple[Drawn, Passage, str]] = []
    seen: set[str] = set()
    for (one, before), text in zip(clear, paraphrased, strict=True):
        answer = one.passage.answer
        if text is None:
            counts.drop("not translated")
        elif (reason := _lost(text, answer, "back-translation")) or (reason := _reason_to_drop(text, options)):
            counts.drop(reason)
        elif options.there != RULES and (_invented(text, before) or _invented(before, text)):
            counts.drop("other names or numbers after back-translation")
        else:
            at = text.index(answer)  # _lost has checked that it occurs once
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
        found.append(Cloze(one, statement, question, why))
    return found


def _lost(text: str, answer: str, step: str) -> str | None:
    """Return why an answer cannot be masked after a step; None if it can."""
    if _place(text, answer) is not None:
        return None
    return f"the answer stands more than once after {step}" if answer in text else f"the answer was lost in {step}"


def _place(text: str, answer: str) -> int | None:
    """Return the place of an answer, as whole words; None unless it occurs exactly once."""
    if occurrences(answer, text) != 1 or text.count(answer) != 1:
        return None
    return text.index(answer)


def _known(passage: Passage) -> str:
    day = "" if passage.published is None else written(passage.published)
    return "\n".join((passage.title, passage.context, passage.sentence, day))


def _invented(text: str, known: str) -> bool:
    """Tell whether a text has names or numbers that ``known`` does not have."""
    known_words = set(_NAME_OR_NUMBER.findall(known.casefold()))
    first = _NAME_OR_NUMBER.search(text)
    named = (match[0] for match in _NAME_OR_NUMBER.finditer(text, first.end() if first else 0))
    return any(word.casefold() not in known_words for word in named if not word.islower())


def _row(one: Cloze) -> Row:
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
