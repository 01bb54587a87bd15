"""Shuffled, a control: train on the changed articles with the objects of their new facts exchanged."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import regex

from temporalwiki.base.json_files import fingerprint
from temporalwiki.base.normalization import normalize
from temporalwiki.builders.ckl.text_model import OpenModel, no_models
from temporalwiki.methods.method import Article, Fact, Method, Rewriter

_SHORT = 2  # characters: "US" must not match "us"


@dataclass(frozen=True)
class Shuffled(Method):
    """``diff`` on the same text, in which each new object belongs to another subject of the same relation.

    What such a model gains on the true facts, it gained without them: from the names in use, not from what is said of
    a subject. Every occurrence of a name of a new object in its subject's article is replaced by an object of another
    subject for which it neither is nor was right. Where there is no such object, and where no name of the object is
    found, the sentence is left out. A score that needs the facts must not rise.
    """

    reads_facts: ClassVar[bool] = True

    def rewriter(
        self, facts: Mapping[str, Sequence[Fact]], language: str, open_model: OpenModel = no_models
    ) -> Rewriter:
        """Return a function that exchanges an article's objects, and its counts of facts by what became of them."""
        changed = list(facts.get("changed", ()))
        new_object = _replacements(changed, [fact for of in facts.values() for fact in of])
        of_page = defaultdict(list)
        for fact, other in zip(changed, new_object, strict=True):
            of_page[fact["page_id"]].append((fact, other))
        # a fact whose article is not in the text stays left out
        counts = Counter({"exchanged": 0, "left_out": len(changed), "untouched": 0})

        def rewrite(row: Article) -> list[str]:
            text, exchanged = exchange(row["text"], of_page.get(row["id"], ()), language)
            untouched = sum(_states(text, fact) for fact, _ in of_page.get(row["id"], ()))
            counts["untouched"] += untouched
            counts["exchanged"] += exchanged - untouched
            counts["left_out"] -= exchanged
            return [text] if text else []

        return rewrite, counts


def exchange(text: str, facts: Sequence[tuple[Fact, str | None]], language: str) -> tuple[str, int]:
    """Return an article's text with the objects of ``facts`` replaced, each by the label next to it.

    Sentences that name an object without a replacement are left out. So is the evidence of a fact whose object's names
    are not in the text (a link has another text), or the whole article if it has no such sentence. The number counts
    the facts whose object was replaced.
    """
    text = unicodedata.normalize("NFC", text)
    new: dict[str, str | None] = {}
    for fact, other in facts:
        for name in _names(fact):
            new.setdefault(name, other)
    exchanged = 0
    for fact, other in facts:
        pattern = _pattern(_names(fact))
        if pattern.search(text) is None:
            text = _without_evidence(text, fact["evidence"] or "")
        elif other is None:
            text = _without(text, pattern, language)
        else:
            exchanged += 1
    if new:
        folded = {name.casefold(): other for name, other in reversed(new.items())} | new
        text = _pattern(new).sub(lambda at: folded.get(at[0], folded.get(at[0].casefold())) or "", text)
    return text, exchanged


def _states(text: str, fact: Fact) -> bool:
    """Return whether the text still has the evidence of a fact, with its object."""
    evidence = unicodedata.normalize("NFC", fact["evidence"] or "").strip()
    return bool(evidence) and evidence in text


def _replacements(changed: Sequence[Fact], known: Sequence[Fact]) -> list[str | None]:
    """Return the label of another subject's object for each changed fact, or None if there is none.

    An object that an article has in several facts gets one replacement, which is wrong for all of them. Objects go
    round among the changed facts of a relation, so that each stays about as frequent as it was.
    """
    order = sorted(range(len(changed)), key=lambda i: _key(changed[i]))
    round_of, others = defaultdict(list), defaultdict(list)
    for i in order:
        round_of[changed[i]["relation_id"]].append(i)
    for fact in sorted(known, key=_key):
        others[fact["relation_id"]].append(fact)
    together = defaultdict(list)  # facts of an article about the same object
    for i in order:
        together[changed[i]["page_id"], normalize(changed[i]["object"])].append(i)
    found: list[str | None] = [None] * len(changed)
    for same in together.values():
        first = changed[same[0]]
        ring = round_of[first["relation_id"]]
        at = ring.index(same[0])
        candidates = [changed[i] for i in ring[at + 1 :] + ring[:at]] + others[first["relation_id"]]
        wrong_for = [_ever(changed[i]) for i in same]
        for candidate in candidates:
            name = normalize(candidate["object"])
            if candidate["subject_id"] != first["subject_id"] and all(name not in ever for ever in wrong_for):
                for i in same:
                    found[i] = candidate["object"]
                break
    return found


def _key(fact: Fact) -> str:
    return fingerprint(fact["subject_id"], fact["relation_id"], fact["object_id"])


def _ever(fact: Fact) -> set[str]:
    columns = ("objects", "aliases", "gone_objects", "previous_objects")
    return {normalize(name) for name in [fact["object"], *(n for column in columns for n in fact.get(column) or ())]}


def _names(fact: Fact) -> list[str]:
    """Return the names of a fact's object. The aliases of its row are those of all right objects."""
    others = {label for label in fact.get("objects") or () if label != fact["object"]}
    names = [fact["object"], *(alias for alias in fact.get("aliases") or () if alias not in others)]
    return [name for name in dict.fromkeys(unicodedata.normalize("NFC", name) for name in names) if name.strip()]


def _pattern(names: Iterable[str]) -> regex.Pattern[str]:
    """Return a pattern of the names as whole words and numbers, the longest first; case counts in short ones only."""
    parts = []
    for name in sorted(names, key=lambda name: (-len(name), name)):
        part = re.escape(name) if len(name) <= _SHORT else f"(?i:{re.escape(name)})"
        before, after = r"(?<!\d[.,+-])" * name[0].isdecimal(), r"(?![.,+-]\d)" * name[-1].isdecimal()
        parts.append(before + part + after)
    return regex.compile(rf"(?<!\w)(?:{'|'.join(parts)})(?!\w)")  # in which marks, such as vowel signs, are in words


def _without(text: str, pattern: regex.Pattern[str], language: str) -> str:
    """Return the text without the sentences in which the pattern is found."""
    kept = [
        "".join(one for one in _sentences(line, language) if not pattern.search(one)).strip()
        for line in text.split("\n")
    ]
    return _tidy("\n".join(kept))


def _without_evidence(text: str, evidence: str) -> str:
    """Return the text without the evidence, or "" if the evidence is not in it."""
    evidence = unicodedata.normalize("NFC", evidence).strip()
    return _tidy(text.replace(evidence, "")) if evidence and evidence in text else ""


def _tidy(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _sentences(line: str, language: str) -> list[str]:
    """Return the sentences of a line, with the blanks between them: joined, they are the line."""
    import sentencex

    found, at = [], 0
    for sentence in sentencex.segment(language, line):
        end = line.index(sentence, at) + len(sentence)
        found.append(line[at:end])
        at = end
    return [*found, line[at:]]
