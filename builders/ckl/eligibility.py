"""Which facts of an interval live CKL can ask about, and why it leaves out the others."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from temporalwiki.base.normalization import normalize
from temporalwiki.builders.ckl.templates import SENTINEL, RelationTemplate, one_line, unsafe_label
from temporalwiki.builders.wikidata.align import filtered, says
from temporalwiki.builders.wikipedia.words import plain

Row = Mapping[str, Any]

_KINDS_OF_FACTS = {
    "updatedlama": ("new_object",),
    "newlama": ("new_subject", "new_relation"),
    "invariantlama": ("unchanged",),
}


def reason_to_drop(row: Row, kind: str, template: RelationTemplate | None) -> str | None:
    """Return why the config ``kind`` leaves out a fact, as a key of its counts; None if it takes the fact.

    ``template`` words the fact's relation; None means that the relation has no wording.
    """
    if row["kind"] not in _KINDS_OF_FACTS[kind]:
        return f"kind_{row['kind']}"
    if not row["current"]:
        return "not_current"
    if kind != "invariantlama" and row["known_before"]:
        return "known_before_at_another_rank"
    if kind == "updatedlama" and (reason := _not_updated(row, template)):
        return reason
    return "relation_without_template" if template is None else _cannot_be_asked(row, template)


def _not_updated(row: Row, template: RelationTemplate | None) -> str | None:
    """Return why a new object does not mean that the world changed; None if it does."""
    right, right_before = ({normalize(label) for label in row[name]} for name in ("objects", "objects_before"))
    if not row["objects_before"]:
        return "nothing_held_before"
    if not row["gone_objects"]:
        # in the second case the old value has another rank now, ended long ago, or is not an item any more
        return "addition_to_what_still_holds" if right & right_before else "nothing_went_in_the_interval"
    if template is not None and template.lasting:
        return "correction_of_what_does_not_change"
    if right & right_before:
        return "an_answer_was_right_before"
    for old in row["gone_objects"]:
        for new in right_answers(row):
            a, b = normalize(old), normalize(new)
            if a == b or says(a, b) or says(b, a):
                return "old_and_new_answer_overlap"
    return None


_IDS = "QPL"  # first letters of Wikidata's ids; an item without a label is called by its id
_FIGURES = re.compile(rf"[{_IDS}]?[0-9\s.,:;/+()−–—-]+")


def _cannot_be_asked(row: Row, template: RelationTemplate) -> str | None:
    """Return why a fact makes no sound cloze; None if it makes one.

    TemporalWiki (section 3.3) demands that subject and object do not overlap. Here the subject must not overlap with
    any answer that is or was right. Only the fact's own object is limited to five words.
    """
    subject = row["subject"]
    answers = [*right_answers(row), *row["gone_objects"]]
    for label in (subject, *answers):
        if reason := unsafe_label(label):
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
    if _is_disambiguated(row["title"], subject):
        return "subject_ambiguous"
    if template.ends_with_life and row["dead"]:
        return "subject_is_dead"
    if any(filtered(subject, answer) == "subject_and_object_overlap" for answer in answers):
        return "answer_and_subject_overlap"
    texts = template.statement(subject).replace(SENTINEL, " "), template.ask(subject)
    return "answer_in_the_wording" if any(says(text, answer) for text in texts for answer in answers) else None


def _is_disambiguated(title: str, label: str) -> bool:
    """Return whether a title is the label and an addition: "Easton (band)" or "Easton, Ohio"."""
    title, label = (plain(one_line(text)).casefold() for text in (title, label))
    return title.startswith((f"{label} (", f"{label}, "))


def right_answers(row: Row) -> list[str]:
    """Return the labels of all right answers, the fact's own object first."""
    return distinct([row["object"], *row["objects"]])


def other_names(row: Row) -> list[str]:
    """Return the aliases of the right answers that name no answer and do not overlap with the subject."""
    names = {normalize(label) for label in right_answers(row)}
    return [
        alias
        for alias in distinct(map(one_line, row["aliases"]))
        if normalize(alias)
        and normalize(alias) not in names
        and not unsafe_label(alias)
        and filtered(row["subject"], alias) != "subject_and_object_overlap"
    ]


def wrong_answers(row: Row, objects: Iterable[str]) -> list[str]:
    """Return the answers that were right before, then other ``objects`` of the relation that are not right now."""
    names = {normalize(label) for label in (*right_answers(row), *row["aliases"])}
    labels = distinct([*row["gone_objects"], *objects])
    return [label for label in labels if normalize(label) and normalize(label) not in names]


def distinct(labels: Iterable[str]) -> list[str]:
    """Return the labels without duplicates; labels that are equal after normalisation count as one."""
    found: dict[str, str] = {}
    for label in labels:
        found.setdefault(normalize(label), label)
    return list(found.values())
