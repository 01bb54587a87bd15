"""The wording of Wikidata's relations: a cloze and a question for each, and how a model is asked the question.

A file such as templates_de.yaml has the wording of a language, which is this project's own. The blank comes last, so
that models that read from left to right can fill it. relations.yaml has what holds of a relation in every language.
docs/how_to/add_a_language.md explains how to add a language.
"""

import dataclasses
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalwiki.base.json_files import read_yaml

_FILES = {file.stem.partition("_")[2]: file for file in Path(__file__).parent.glob("templates_*.yaml")}
LANGUAGES = tuple(sorted(_FILES))
_ENGLISH, _RELATIONS = (read_yaml(Path(__file__).with_name(name)) for name in ("english_words.yaml", "relations.yaml"))
_ASKING = "asking"  # the one key of a file that does not name a relation
SENTINEL = "<extra_id_0>"  # stands for the object
ANY_SENTINEL = re.compile(r"<extra_id_[0-9]+>")
# control characters and marks of direction, which models read but people cannot see
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def one_line(text: str) -> str:
    """Return a label with each run of white space, line breaks included, as one space."""
    return " ".join(text.split())


def unsafe_label(label: str) -> str | None:
    """Return why a label must not stand in a cloze, as a key of counts; None if it may."""
    if ANY_SENTINEL.search(label):
        return "label_with_sentinel"
    return "label_with_control_character" if _INVISIBLE.search(label) else None


@dataclass(frozen=True)
class RelationTemplate:
    """The wording of a relation's facts: [X] stands for the subject, [Y] for the object."""

    cloze: str
    question: str
    # Facts never change: a place of birth, an award. A new value only corrects or completes Wikidata.
    lasting: bool = False
    # Facts end with the subject's death, though Wikidata may have no end time: an employer, a spouse.
    ends_with_life: bool = False

    def statement(self, subject: str) -> str:
        """Return the cloze about ``subject``, with <extra_id_0> for the object."""
        return fill(self.cloze, {"[X]": subject, "[Y]": SENTINEL})

    def ask(self, subject: str) -> str:
        """Return the question about ``subject``."""
        return fill(self.question, {"[X]": subject})


@dataclass(frozen=True)
class Asking:
    """How a model is asked about any fact: texts with blanks in square brackets, for ``fill``."""

    question: str  # about a relation without a template: [X] stands for the subject, [relation] for its label
    dated: str  # [question] as of [date]
    prompt: str  # [question], and what a reply may be; [unknown] stands for the next text
    unknown: str  # the reply of a model that does not know the answer


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return a text with values for its blanks ("[X]"). A value that looks like a blank stays as it is."""
    return "".join(values.get(part, part) for part in _parts(text))


def find_template(
    relation_id: str, label: str, lama: Mapping[str, str] | None = None, language: str = "en"
) -> RelationTemplate | None:
    """Return the template of a relation ("P6"), or None if it has no wording.

    The template is in English if ``language`` is not one of LANGUAGES. ``lama`` has LAMA's clozes by relation id,
    which replace our own. An English relation that is not in the file gets its wording from its label, if that is a
    noun phrase.
    """
    if relation_id in _RELATIONS["never"]:
        return None
    own = templates(language).get(relation_id)
    if own is None and language == "en":
        own = _from_label(relation_id, label)
    if own is None or lama is None or relation_id not in lama:
        return own
    return dataclasses.replace(own, cloze=lama[relation_id])


@functools.cache
def templates(language: str) -> dict[str, RelationTemplate]:
    """Return the templates of a language by relation id; the English ones if it is not one of LANGUAGES."""
    found = {}
    for relation, wording in _file(language).items():
        if relation != _ASKING:
            cloze, question = wording.split(" | ")
            lasting, ends_with_life = (relation in _RELATIONS[name] for name in ("lasting", "ends_with_life"))
            found[relation] = RelationTemplate(cloze, question, lasting, ends_with_life)
    return found


@functools.cache
def asking(language: str) -> Asking:
    """Return how a model is asked in a language; in English if it is not one of LANGUAGES."""
    return Asking(**_file(language)[_ASKING])


@functools.cache
def _file(language: str) -> Any:
    return read_yaml(_FILES.get(language, _FILES["en"]))


@functools.lru_cache
def _parts(text: str) -> list[str]:
    return re.split(r"(\[[A-Za-z]+\])", text)


# A label must be a noun phrase in the singular ("head of government", "military unit"). Labels that begin or end with
# these words are not: "located in", "has effect", "capital of", "different from".
_PREPOSITION = r"(?:of|in|on|at|by|for|from|to|with|within|as|after|before|into|than|over|about|between|per|near)"
_NO_START = re.compile(
    rf"(?:{_PREPOSITION}|an?|the|is|are|was|has|have|had|does|do|can|said|found|\w+ing$)\b", re.IGNORECASE
)
_NO_END = re.compile(rf"\b{_PREPOSITION}$", re.IGNORECASE)
_OF = re.compile(rf" {_PREPOSITION} ", re.IGNORECASE)
_NOT_A_NOUN = re.compile(r"\w+(?:[^e]ed|[^suia]s)", re.IGNORECASE)  # "owned", "follows", "characters"
_NO_WORDS = re.compile(
    rf"\b(?:{'|'.join(_ENGLISH['not_in_labels'].split())})\b|wiki|categor|template|commons", re.IGNORECASE
)


@functools.lru_cache(10_000)
def _from_label(relation_id: str, label: str) -> RelationTemplate | None:
    """Return a template worded by a relation's label; None if the label is not a plain noun phrase."""
    words = label.split(" ")
    head = _OF.split(label)[0].split(" ")
    if (
        not re.fullmatch(r"[A-Za-z][A-Za-z-]*(?: [A-Za-z][A-Za-z-]*){0,5}", label)
        or _NO_START.match(label)
        or _NO_END.search(label)
        or _NOT_A_NOUN.fullmatch(words[0])
        or _NOT_A_NOUN.fullmatch(head[-1])
        or _NO_WORDS.search(label)
    ):
        return None
    return RelationTemplate(
        f"The {label} of [X] is [Y].",
        f"{'Who' if relation_id in _RELATIONS['people'] else 'What'} is the {label} of [X]?",
        lasting=relation_id not in _RELATIONS["may_change"],
        ends_with_life=relation_id in _RELATIONS["ends_with_life"],
    )
