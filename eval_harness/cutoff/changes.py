"""The dated changes of a dataset: facts with a new and a gone object, and sentences that replaced others.

A change is a question with two answers. ``evidence`` lets a model with likelihoods choose, and asks a model behind an
interface.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby
from statistics import fmean
from typing import Any, Literal, NamedTuple

import numpy as np
import regex
from rapidfuzz.fuzz import ratio
from rapidfuzz.process import extractOne

from temporalwiki.base.errors import InputError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.builders.loading import config_names
from temporalwiki.builders.published import source_of
from temporalwiki.builders.wikipedia.words import UNSPACED
from temporalwiki.eval_harness.cutoff.estimator import ChangeEvidence
from temporalwiki.eval_harness.facts import COLUMNS, prompt_of, score_facts
from temporalwiki.eval_harness.models.model import REPLIES, Model
from temporalwiki.eval_harness.questions import question_about, read_replies
from temporalwiki.eval_harness.references import choices_of
from temporalwiki.eval_harness.scoring import Text
from temporalwiki.eval_harness.task import Row, check_columns
from temporalwiki.methods.training_data import load

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
TEXT = "text"  # the relation of sentences
UNKNOWN = "other"  # the class of a subject whose class is not in the dataset

_MOST = 400  # at most this many facts of an interval, and as many pairs of sentences
_ENOUGH = 200  # strict facts: with fewer in all intervals, the others are used too
_SHORTEST = 5  # words of a sentence, or characters in scripts without spaces
_MASK = "…"
_NAME = "|".join(f"{name[:3]}(?:{name[3:]}|\\.)?" if name != "May" else name for name in MONTHS)
_YEAR = r"[12]\d{3}"
_DATE = re.compile(
    rf"(?:\b\d{{1,2}}(?:st|nd|rd|th)? )?\b(?:{_NAME})(?!\w)(?: \d{{1,2}}\b(?!\d))?(?:,? {_YEAR}\b)?"
    rf"|\b{_YEAR}(?:[-/.]\d{{1,2}}){{0,2}}\b"
)
# in other languages: "3. Dezember 2021", "3 de diciembre de 2021", "2021年12月3日"
_OTHER_DATE = regex.compile(  # in which marks, such as vowel signs, are in words
    rf"\b\d{{1,2}}\.?(?: [^\W\d_]{{1,3}})? [^\W\d_]+\.?(?: [^\W\d_]{{1,3}})? {_YEAR}\b"
    rf"|(?<!\d){_YEAR} ?[年년](?: ?\d{{1,2}} ?[月월])?(?: ?\d{{1,2}} ?[日일])?"
)
_UNSPACED = re.compile(f"[{UNSPACED}]")
_INTERVAL = re.compile(r"(probes|diffset|deletions)-(\d{8})-(\d{8})")

Topics = Literal["none", "relation", "class"]


class Change(NamedTuple):
    """A dated change. A model is asked to go on from ``context`` with the new side or with one of the old ones."""

    month: int  # year * 12 + month - 1
    relation: str  # id of the relation, or TEXT
    cluster: str  # its page or subject
    topic: str
    context: str
    new: str
    old: tuple[str, ...]
    fact: Row | None = None  # its probe; None for sentences


def month_number(day: Any) -> int:
    """Return the number of a date's month, counted as in ``Change``."""
    return int(day.year * 12 + day.month - 1)


def read_changes(
    data: str, topics: Topics = "none", first: int | None = None, last: int | None = None
) -> list[Change]:
    """Return the changes of all intervals of a dataset, without those before ``first`` or after ``last``.

    ``data`` is a folder, a Hub id or id@revision. Raises InputError if it has no dated changes.
    """
    configs: dict[tuple[str, str], dict[str, str]] = {}
    for name in config_names(data):
        if found := _INTERVAL.fullmatch(name):
            configs.setdefault((found[2], found[3]), {})[found[1]] = name
    if not any("probes" in of or {"diffset", "deletions"} <= of.keys() for of in configs.values()):
        raise InputError(
            f"{data}: no config such as probes-20211101-20211201, or diffset and deletions of one interval: "
            "they say what changed in which month"
        )
    classes = _classes(data, configs.values()) if topics == "class" else {}
    language = _language(data, configs.values())
    facts: list[tuple[bool, Change]] = []
    texts: list[Change] = []
    for (_, recent), of in sorted(configs.items()):
        month = month_number(date(int(recent[:4]), int(recent[4:6]), int(recent[6:])) - timedelta(days=1))
        if "probes" in of:
            facts += _sampled([*_facts(data, of["probes"], month, topics, classes, language)])
        if {"diffset", "deletions"} <= of.keys():
            texts += _texts(data, of["deletions"], of["diffset"], month, topics, classes)
    inside = [(strict, fact) for strict, fact in facts if _inside(fact, first, last)]
    strict = [fact for is_strict, fact in inside if is_strict]
    chosen = strict if len(strict) >= _ENOUGH else [fact for _, fact in inside]
    found_changes = chosen + [text for text in texts if _inside(text, first, last)]
    if not found_changes:
        raise InputError(
            f"{data}: none of its facts has an object that was right before, and no sentence replaced another one"
            + ("" if first is last is None else ", in these months")
        )
    return found_changes


def evidence(model: Model, changes: Sequence[Change], panel: Sequence[tuple[Model, int]] = ()) -> list[ChangeEvidence]:
    """Return an item for each change that the model can score. Scores and replies are cached.

    The evidence is the old side's NLL per token minus the new side's; if a fact had several objects before, the
    likeliest counts. A model behind an interface is asked the facts: its evidence is 1 for the new answer, -1 for
    an old one, and 0 for both, neither or none.

    ``panel`` are reference models and the last month that each knows (year * 12 + month - 1). The difficulty of an
    item is the mean of their evidence; a change that all of them may know is left out.
    """
    items = _items(model, changes)
    if not panel:
        return [item for item in items if item is not None]
    judged = [(last, _items(reference, changes)) for reference, last in panel]
    found: list[ChangeEvidence] = []
    for i, item in enumerate(items):
        others = [of[i] for last, of in judged if changes[i].month > last]
        known = [other.evidence for other in others if other is not None]
        if item is not None and known:
            found.append(item._replace(difficulty=fmean(known)))
    return found


def _items(model: Model, changes: Sequence[Change]) -> list[ChangeEvidence | None]:
    """Return an item for each change, or None if the model cannot score it."""
    if REPLIES in model.can:
        return _asked(model, changes)
    items: list[ChangeEvidence | None] = []
    for is_text, some in groupby(changes, key=lambda change: change.relation == TEXT):
        part = list(some)
        pairs = [(change.context, side) for change in part for side in (change.new, *change.old)]
        scored = iter(_texts_scored(model, pairs) if is_text else _facts_scored(model, pairs))
        for change in part:
            new, *old = (next(scored) for _ in range(1 + len(change.old)))
            known = [side for side in old if side is not None]
            if new is None or not known:
                items.append(None)
                continue
            best, tokens = min(known)
            length = math.log(new[1] / tokens)
            items.append(ChangeEvidence(change.month, change.relation, change.cluster, best - new[0], length))
    return items


def _asked(model: Model, changes: Sequence[Change]) -> list[ChangeEvidence | None]:
    """Return an item for each fact. Raises InputError if there are only sentences."""
    facts = [change.fact for change in changes if change.fact is not None]
    if not facts:
        raise InputError(f"{model.name}: gives no likelihoods, and the data has only sentences, no facts to ask about")
    replies = iter(read_replies(model, [question_about(fact) for fact in facts], facts, "changed facts"))
    items: list[ChangeEvidence | None] = []
    for change in changes:
        if change.fact is None:
            items.append(None)
            continue
        reply = next(replies)
        items.append(ChangeEvidence(change.month, change.relation, change.cluster, reply["new"] - reply["old"]))
    return items


def _facts_scored(model: Model, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, int] | None]:
    found = score_facts(model, pairs, "facts, new and old")
    return [None if one is None else (one.object_nll / one.object_tokens, one.object_tokens) for one in found]


def _texts_scored(model: Model, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, int] | None]:
    found = model.score([Text(context, sentence) for context, sentence in pairs], "sentences, new and old")
    return [None if one is None or not len(one.nll) else (float(one.nll.mean()), len(one.nll)) for one in found]


def _inside(change: Change, first: int | None, last: int | None) -> bool:
    return (first is None or change.month >= first) and (last is None or change.month <= last)


def _sampled(facts: list[tuple[bool, Change]]) -> list[tuple[bool, Change]]:
    """Return at most _MOST facts, strict ones first, the same ones every time."""
    return sorted(facts, key=lambda fact: (not fact[0], fingerprint(fact[1].context, fact[1].new)))[:_MOST]


def _facts(
    data: str, config: str, month: int, topics: str, classes: Mapping[str, str], language: str
) -> Iterator[tuple[bool, Change]]:
    """Yield (whether the fact is strict, its change) for each changed fact that has a wrong object."""
    rows: Sequence[Row] = load(data, config, None).get("changed", ())
    check_columns(rows, (*COLUMNS, "previous_objects"), f"{data}, {config}, changed")
    for row in rows:
        if not all(isinstance(row[column], str) and row[column].strip() for column in COLUMNS):
            continue
        right, wrong = choices_of(row)
        if not right or not wrong:
            continue
        began = row.get("start_time") if row.get("dated") == "within" else None
        subject = row.get("subject_id") or row["subject"]
        topic = {"relation": row["relation"], "class": classes.get(subject, UNKNOWN)}.get(topics, "")
        page = row.get("page_id")
        yield (
            bool(row.get("strict")),
            Change(
                month if began is None else month_number(began),
                row.get("relation_id") or row["relation"],
                f"fact of {subject}" if page is None else f"page {page}",
                topic,
                prompt_of(row),
                row["object"],
                tuple(wrong),
                {**row, "language": language},
            ),
        )


def _texts(
    data: str, deletions: str, diffset: str, month: int, topics: str, classes: Mapping[str, str]
) -> list[Change]:
    """Return pairs of a removed sentence and the most similar new one of its page, dates masked; one for each page."""
    before, after = load(data, deletions, "train"), load(data, diffset, "train")
    for rows, config in ((before, deletions), (after, diffset)):
        check_columns(rows, ("id", "title", "text"), f"{data}, {config}")
    places = {page: place for place, page in enumerate(after["id"])}
    pages = [(place, page) for place, page in enumerate(before["id"]) if page in places]
    order = np.random.default_rng(0).permutation(len(pages))
    found: list[Change] = []
    for place, page in (pages[i] for i in order):
        removed, added = before[place], after[places[page]]
        pair = _pair(_sentences(removed), _sentences(added))
        if pair is None:
            continue
        topic = {"relation": TEXT, "class": classes.get(f"page {page}", UNKNOWN)}.get(topics, "")
        found.append(Change(month, TEXT, f"page {page}", topic, f"{added['title']}. ", pair[1], (pair[0],)))
        if len(found) == _MOST:
            break
    return found


def _sentences(row: Row) -> list[str]:
    from temporalwiki.builders.wikipedia.sentences import split_sentences  # with the whole wikitext parser

    host = re.match(r"https?://([a-z]{2,3})\.", row.get("url") or "")
    language = host[1] if host else "en"
    texts = [text for part in (row["text"] or "").split("\n\n") for text in split_sentences(part, language)]
    masked = [masked_dates(text.strip(), language) for text in texts]
    return [text for text in masked if len(_UNSPACED.sub(" x ", text).split()) >= _SHORTEST]


def masked_dates(sentence: str, language: str = "en") -> str:
    """Return a sentence with "…" for years and dates, which would show when it was written.

    In English, names of months are masked everywhere, in other languages only between a day and a year.
    """
    return _DATE.sub(_MASK, sentence if language == "en" else _OTHER_DATE.sub(_MASK, sentence))


def _pair(removed: Sequence[str], added: Sequence[str]) -> tuple[str, str] | None:
    """Return the most similar removed and new sentence; pairs that only their dates distinguish do not count."""
    from temporalwiki.builders.wikipedia.novelty import ALIKE  # with the wikitext parser

    best: tuple[float, str, str] | None = None
    kept = [text for text in added if text not in removed]
    for sentence in removed:
        if sentence in added or not kept:
            continue
        match = extractOne(sentence, kept, scorer=ratio, score_cutoff=max(ALIKE, best[0] if best else 0))
        if match is not None and (best is None or match[1] > best[0]):
            best = match[1], sentence, match[0]
    return None if best is None else best[1:]


def _language(data: str, intervals: Any) -> str:
    """Return the language in the manifest of one of the dataset's configs; "en" without a manifest."""
    config = next(name for of in intervals for name in of.values())
    return source_of(data, config, load(data, config, None)).language or "en"


def _classes(data: str, intervals: Any) -> dict[str, str]:
    """Return the class of subjects and of their pages: the object of "instance of", if the dataset has this fact."""
    found: dict[str, str] = {}
    for of in intervals:
        if "probes" not in of:
            continue
        for rows in load(data, of["probes"], None).values():
            if not {"relation_id", "subject_id", "object"} <= set(rows.column_names):
                continue
            for row in rows.filter(lambda relation: relation == "P31", input_columns="relation_id"):
                found.setdefault(row["subject_id"], row["object"])
                found.setdefault(f"page {row.get('page_id')}", row["object"])
    return found
