"""Of which facts live CKL asks: why one is not new, no update of the world, or nothing that can be asked."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from temporalwiki.base.normalization import normalize
from temporalwiki.builders.ckl.templates import SENTINEL, Template, one_line, unsound
from temporalwiki.builders.wikidata.align import filtered, says

Row = Mapping[str, Any]

_KINDS_OF_FACTS = {
    "updatedlama": ("new_object",),
    "newlama": ("new_subject", "new_relation"),
    "invariantlama": ("unchanged",),
}


def unfit(row: Row, kind: str, how: Template | None) -> str | None:
    """Return why a fact is no row of the config ``kind``, a reason to count by; None if it is.

    ``how`` is what its relation is asked with; None: there are no words for it.
    """
    if row["kind"] not in _KINDS_OF_FACTS[kind]:
        return f"kind_{row['kind']}"
    if not row["current"]:
        return "not_current"
    if kind != "invariantlama" and row["known_before"]:
        return "known_before_at_another_rank"
    if kind == "updatedlama" and (reason := _not_updated(row, how)):
        return reason
    return "relation_without_template" if how is None else _cannot_be_asked(row, how)


def _not_updated(row: Row, how: Template | None) -> str | None:
    """Why a new object is no update of the world."""
    right, right_before = ({normalize(label) for label in row[name]} for name in ("objects", "objects_before"))
    if not row["objects_before"]:
        return "nothing_held_before"
    if not row["gone_objects"]:
        # otherwise what held is stated at another rank, ended long ago, or is no item any more
        return "addition_to_what_still_holds" if right & right_before else "nothing_went_in_the_interval"
    if how is not None and how.lasting:
        return "correction_of_what_does_not_change"
    if right & right_before:
        return "an_answer_was_right_before"
    for old in row["gone_objects"]:
        for new in right_answers(row):
            a, b = normalize(old), normalize(new)
            if a == b or says(a, b) or says(b, a):
                return "old_and_new_answer_overlap"
    return None


_IDS = "QPL"  # what Wikidata's begin with; one is there for a label where an item has none
_FIGURES = re.compile(rf"[{_IDS}]?[0-9\s.,:;/+()−–—-]+")


def _cannot_be_asked(row: Row, how: Template) -> str | None:
    """Return why a fact makes no cloze that is sound; None if it does.

    That no label is part of another, which section 3.3 asks of a subject and its object, is asked of the subject and
    all that is right, and that was. The other objects may have more words than the five that a fact's own may have.
    """
    subject = row["subject"]
    answers = [*right_answers(row), *row["gone_objects"]]
    for label in (subject, *answers):
        if reason := unsound(label):
            return reason
        if _FIGURES.fullmatch(label) and re.search("[0-9]", label):
            return "label_is_an_id" if label[0] in _IDS else "label_is_a_number"
    for answer in answers:
        if not normalize(answer):
            return "answer_without_words"
        if sum(map(str.isalnum, normalize(answer))) < 2:
            return "answer_of_one_letter"
    if row["ambiguous"]:
        return "another_subject_of_this_label"
    if _says_which(row["title"], subject):
        return "subject_ambiguous"
    if how.ends_with_life and row["dead"]:
        return "subject_is_dead"
    if any(filtered(subject, answer) == "subject_and_object_overlap" for answer in answers):
        return "answer_and_subject_overlap"
    said = how.statement(subject).replace(SENTINEL, " "), how.ask(subject)
    return "answer_in_the_wording" if any(says(text, answer) for text in said for answer in answers) else None


def _says_which(title: str, label: str) -> bool:
    """Whether a title tells its subject from others of the same label: "Easton (band)", "Easton, Ohio"."""
    whole, part = (unicodedata.normalize("NFC", one_line(text)).casefold() for text in (title, label))
    return whole.startswith((f"{part} (", f"{part}, "))


def right_answers(row: Row) -> list[str]:
    """What is right, the fact's own object first."""
    return distinct([row["object"], *row["objects"]])


def distinct(labels: Iterable[str]) -> list[str]:
    """Labels, but once what an exact match takes for the same."""
    found: dict[str, str] = {}
    for label in labels:
        found.setdefault(normalize(label), label)
    return list(found.values())
