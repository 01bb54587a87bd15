"""Sentences of news with one answer each, a name or a date: for NewLAMA-Easy, and for candidates for annotators."""

import hashlib
import heapq
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

import regex

from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import check_options, option
from temporalwiki.builders.ckl.config import Row, RowCounts
from temporalwiki.builders.ckl.salient_spans import Find, sentence_starts
from temporalwiki.builders.ckl.text_model import RULES
from temporalwiki.builders.ckl.text_steps import Passage, occurrences

_CONTEXT = 4000  # characters before a sentence that the steps may read
_CHARACTERS = 20  # the largest average length of a word
STRANGE = regex.compile(r"https?:|www\.|[@#|<>{}\[\]\\=_^~\x00-\x1f\x7f\ufffd\p{Cs}]|\.\.\.|…")


@dataclass(frozen=True)
class SentenceOptions:
    """The options that decide which sentences of news are drawn."""

    spans: str = option(RULES, "how to find names and dates: rules, or a spaCy pipeline (name or folder)")
    language: str = option("en", "language of the news, ISO 639-1")
    least_words: int = option(8, "words of the shortest sentence", at_least=1)
    most_words: int = option(50, "words of the longest sentence")
    per_page: int = option(3, "largest number of sentences per page", at_least=1)
    sentences: int = option(20_000, "largest number of sentences, drawn by the seed", at_least=1)
    seed: int = option(0, "seed of the draw")

    def __post_init__(self) -> None:
        """Raise UsageError for values out of range."""
        check_options(self)
        if self.least_words > self.most_words:
            raise UsageError(f"least_words {self.least_words}, most_words {self.most_words}: the first is larger")


class Drawn(NamedTuple):
    """A drawn sentence with its answer."""

    draw: bytes  # sentences are drawn in the order of these bytes
    url: str
    at: int  # its place in the page, in characters
    published: datetime
    passage: Passage


def draw_sentences(rows: Iterable[Row], options: SentenceOptions, find: Find, counts: RowCounts) -> list[Drawn]:
    """Return usable sentences, each with one answer, in the order of publishing.

    The seed draws ``options.per_page`` of each page, and ``options.sentences`` of these. ``counts`` counts all
    sentences, and the dropped ones by reason.
    """
    heap: list[tuple[int, str, int, Drawn]] = []  # the last one in the order of the seed is on top
    counts.more["pages"] = 0
    for row in rows:
        counts.more["pages"] += 1
        of_page = sorted(_of_page(row, options, find, counts), key=attrgetter("draw", "at"))
        counts.drop("more of its page than wanted", len(of_page[options.per_page :]))
        for one in of_page[: options.per_page]:
            entry = (-int.from_bytes(one.draw, "big"), one.url, one.at, one)
            if len(heap) < options.sentences:
                heapq.heappush(heap, entry)
            else:
                heapq.heappushpop(heap, entry)
                counts.drop("not drawn: more sentences than wanted")
    return sorted((entry[-1] for entry in heap), key=lambda one: (one.published, one.url, one.at))


_QUOTE = regex.compile(r"[\"“”„«»]|(?:^|\s)['‘](?!\d0s)|[\p{L}.,!?]['’](?=\s[^\p{Ll}]|$)(?<!s['’])")
_CUT = regex.compile(
    r"\b(?:Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov|Dec|No|vs|Mr|Mrs|Ms|Dr|St|Gen|Sen|Rep|Gov|Lt|Col|Sgt|Capt|Prof|\p{Lu})\.$"
)
_LIST = regex.compile(r"[:;•*]|^\p{Lu}+ ?[-–—]| - ")


def _of_page(row: Row, options: SentenceOptions, find: Find, counts: RowCounts) -> Iterator[Drawn]:
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
        if reason := reason_to_drop(sentence, options):
            counts.drop(reason)
            continue
        start = text.index(sentence, start)
        end = start + len(sentence)
        of_sentence = spans[bisect_left(spans, (start, 0)) : bisect_left(spans, (end, 0))]
        inside = [(a - start, b - start) for a, b in of_sentence if b <= end]
        usable = [(a, b) for a, b in inside if _is_whole_word(sentence, a, b)]
        usable = [(a, b) for a, b in usable if occurrences(sentence[a:b], sentence) == 1]
        if not usable:
            reason = "no name or date that stands once, as a word of its own"
            counts.drop(reason if inside else "no name or date")
            continue
        before = text[max(0, start - _CONTEXT) : start]
        passages = [Passage(sentence, sentence[a:b], a, title, before, published) for a, b in usable]
        key = hashlib.blake2b(f"{url}\0{sentence}".encode("utf-8", "surrogatepass"), key=b"%d" % options.seed).digest()
        chosen = passages[int.from_bytes(key[16:24], "big") % len(passages)]
        yield Drawn(key[:16], url, start, published, chosen)


def reason_to_drop(sentence: str, options: SentenceOptions) -> str | None:
    """Return why the form of a sentence makes it unusable; None if it is usable."""
    words = sentence.split()
    if len(words) < options.least_words:
        return "too short"
    if len(words) > options.most_words or len(sentence) > _CHARACTERS * options.most_words:
        return "too long"
    if STRANGE.search(sentence):
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
    return None


def _is_whole_word(sentence: str, start: int, end: int) -> bool:
    """Tell whether a span is a whole word, unlike "AI" in "AI-powered"."""
    return sentence[start - 1 : start] not in ("-", "–", "/", "&") and not regex.match(r"[-–/&]", sentence[end:])
