"""The wording of Wikidata's relations: a cloze and a question for each, and how a model is asked the question.

A file such as templates_de.yaml has the wording of a language, which is this project's own. The blank comes last, so
that models that read from left to right can fill it. Facts about a relation that hold in every language are here.
docs/how_to/add_a_language.md explains how to add a language.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_FILES = {file.stem.partition("_")[2]: file for file in Path(__file__).parent.glob("templates_*.yaml")}
LANGUAGES = tuple(sorted(_FILES))
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
class Template:
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
) -> Template | None:
    """Return the template of a relation ("P6"), or None if it has no wording.

    The template is in English if ``language`` is not one of LANGUAGES. ``lama`` has LAMA's clozes by relation id,
    which replace our own. An English relation that is not in the file gets its wording from its label, if that is a
    noun phrase.
    """
    own = None if relation_id in _NEVER else templates(language).get(relation_id)
    if own is None and language == "en" and relation_id not in _NEVER:
        own = _from_label(relation_id, label)
    if own is None or lama is None or relation_id not in lama:
        return own
    return dataclasses.replace(own, cloze=lama[relation_id])


@functools.cache
def templates(language: str) -> dict[str, Template]:
    """Return the templates of a language by relation id; the English ones if it is not one of LANGUAGES."""
    found = {}
    for relation, wording in _file(language).items():
        if relation != _ASKING:
            cloze, question = wording.split(" | ")
            found[relation] = Template(cloze, question, relation in _LASTING, relation in _ENDS_WITH_LIFE)
    return found


@functools.cache
def asking(language: str) -> Asking:
    """Return how a model is asked in a language; in English if it is not one of LANGUAGES."""
    return Asking(**_file(language)[_ASKING])


@functools.cache
def _file(language: str) -> Any:
    return yaml.safe_load(_FILES.get(language, _FILES["en"]).read_text("utf-8"))


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
# Labels with a verb or a participle ("office held by", "record held", "set in period"), labels of pages rather than
# facts ("history of topic"), and labels about Wikidata and Wikimedia.
_NO_WORDS = re.compile(
    r"\b(?:has|have|is|are|this|subject|object|id|identifier|property|sandbox|topic|also|with|within|by|lists?"
    r"|deprecation|discography|filmography|bibliography|exception|constraint"
    r"|held|sent|made|lost|won|set|shown|born|built|given|known|found|written|taken|worn|said|led|run|put|sung"
    r"|spoken|drawn|driven|thrown|done|seen|sold|bought|brought|caught|taught|kept|left|met|paid|told|begun|chosen"
    r"|fallen|grown|hidden|ridden|eaten|beaten|cut|hit|shot|struck|hung|fed|fought|bound|sought|spent|laid|meant"
    r"|broken|forgotten|gone|lain|learnt|read|risen|shut|stolen|sworn|torn|understood|woken|withdrawn|overthrown"
    r"|\w{2,}[^e]ed)\b|wiki|categor|template|commons",
    re.IGNORECASE,
)
# Relations that no cloze asks for: private matters (sexual orientation, ethnic group, medical condition), parts of the
# subject's own name, and relations that describe another statement.
_NEVER = frozenset((
    "P91", "P172", "P1050",
    "P734", "P735", "P1950", "P2358", "P2359", "P2365", "P2366", "P453", "P405", "P459", "P517", "P654", "P805",
    "P812", "P1264", "P1353", "P1354", "P1534", "P1642", "P1643", "P1906", "P2184", "P2241", "P2309", "P2522", "P3005",
    "P4390", "P5054", "P5102", "P7367", "P7452", "P9215",
))  # fmt: skip
# Relations worded by their label whose value can change. For all others, later ones included, nobody has checked
# whether it can: a second value counts as an addition or a correction.
_MAY_CHANGE = frozenset((
    "P78", "P85", "P141", "P163", "P208", "P209", "P210", "P237", "P263", "P275", "P504", "P505", "P532", "P822",
    "P831", "P1192", "P1304", "P1387", "P1435", "P1454", "P1622", "P1640", "P1789", "P2094", "P2238", "P2499", "P2500",
    "P2541", "P2828", "P3033", "P3075", "P3320", "P3460", "P3975", "P4100", "P8047",
))  # fmt: skip

# Relations worded by their label whose values are people: "Who is the translator of", not "What is".
_PEOPLE = frozenset((
    "P87", "P110", "P185", "P210", "P344", "P417", "P505", "P631", "P655", "P823", "P943", "P1290", "P1591", "P1592",
    "P1593", "P1594", "P1598", "P1620", "P1640", "P1652", "P1779", "P1789", "P1809", "P2438", "P2515", "P2554",
    "P2679", "P2680", "P2828", "P3080", "P3092", "P3174", "P3300", "P3320", "P3448", "P3460", "P3975",
))  # fmt: skip


@functools.lru_cache(10_000)
def _from_label(relation_id: str, label: str) -> Template | None:
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
    return Template(
        f"The {label} of [X] is [Y].",
        f"{'Who' if relation_id in _PEOPLE else 'What'} is the {label} of [X]?",
        lasting=relation_id not in _MAY_CHANGE,
        ends_with_life=relation_id in _ENDS_WITH_LIFE,
    )


# Relations of the files whose facts never change.
_LASTING = frozenset((
    "P19", "P20", "P21", "P22", "P25", "P30", "P31", "P40", "P50", "P53", "P57", "P58", "P59", "P61", "P69", "P84",
    "P86", "P103", "P105", "P112", "P119", "P135", "P136", "P138", "P144", "P149", "P155", "P157", "P161", "P162",
    "P166", "P170", "P171", "P175", "P176", "P177", "P178", "P179", "P180", "P184", "P186", "P206", "P272", "P277",
    "P279", "P282", "P287", "P289", "P291", "P364", "P366", "P403", "P407", "P408", "P412", "P437", "P449", "P495",
    "P509", "P512", "P541", "P607", "P610", "P647", "P674", "P676", "P706", "P725", "P737", "P740", "P793", "P800",
    "P802", "P807", "P828", "P840", "P915", "P921", "P991", "P1027", "P1038", "P1040", "P1066", "P1196", "P1344",
    "P1346", "P1365", "P1399", "P1411", "P1431", "P1433", "P1441", "P1923", "P3373", "P4552", "P7937",
))  # fmt: skip
# Facts about people that end with their death. An occupation, a religion, a language, a citizenship or a rank do not.
_ENDS_WITH_LIFE = frozenset((
    "P26", "P39", "P54", "P102", "P108", "P118", "P263", "P413", "P451", "P463", "P551", "P859", "P937",
    "P1327", "P1416", "P1532", "P2632", "P4100", "P6087",
))  # fmt: skip
