"""Which answers are right: the one definition for exact match, F1, P@k, multiple choice and the adapters."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from temporalwiki.base.normalization import normalize
from temporalwiki.builders.configs import DELETED

_ID = re.compile(r"Q[1-9][0-9]*")  # stands for an object without a label

Row = Mapping[str, Any]


def right_answers(row: Row) -> list[str]:
    """Return the right answers to the prompt of a fact: its object, and all right objects with their aliases.

    A name that is also a name of the subject is left out: a model that repeats the subject knows nothing. A deleted
    fact has only its own object, the answer of its time. So has every fact of a dataset without the columns
    ``objects`` and ``aliases``.
    """
    more = () if row.get("kind") in DELETED else answers_in(row, ("objects", "aliases"))
    subject = normalize(row["subject"])
    return list(dict.fromkeys([row["object"], *(name for name in more if normalize(name) != subject)]))


def choices_of(row: Row) -> tuple[list[str], list[str]]:
    """Return the right choices of a changed fact, its object first, and the wrong ones; each name is one choice.

    Objects that are no longer right are wrong choices, unless one has the name of a right one. If the dataset does not
    say which objects these are, all previous objects are wrong. A fact that is no longer right has no choices.
    """
    if row.get("current") is False:
        return [], []
    gone = "previous_objects" if row.get("gone_objects") is None else "gone_objects"
    right = _by_name([row["object"], *_labels(row, "objects")])
    names = right.keys() | _by_name(right_answers(row)).keys()
    wrong = _by_name(_labels(row, gone))
    return list(right.values()), [label for name, label in wrong.items() if name not in names]


def language_of(row: Row) -> str:
    """Return the language of a row's labels, which ``evaluate`` adds to rows of data that is not English."""
    return str(row.get("language") or "en")


def answers_in(row: Row, columns: Sequence[str]) -> list[str]:
    """Return the distinct texts of columns, except texts that normalise to nothing, which no answer can match."""
    return [text for text in _texts(row, columns) if normalize(text)]


def _labels(row: Row, column: str) -> list[str]:
    return [label for label in _texts(row, (column,)) if not _ID.fullmatch(label)]


def _texts(row: Row, columns: Sequence[str]) -> list[str]:
    """Return the distinct texts of columns with text or lists of text, stripped; columns may be missing."""
    cells = [row.get(column) for column in columns]
    all_texts = [text for cell in cells for text in (cell if isinstance(cell, list) else [cell])]
    return [text for text in dict.fromkeys(str(text).strip() for text in all_texts if text is not None) if text]


def _by_name(labels: Sequence[str]) -> dict[str, str]:
    """Return the first label of each name, by the name."""
    named: dict[str, str] = {}
    for label in labels:
        named.setdefault(normalize(label) or label, label)
    return named
