"""Unread, a control: train on the changed articles without those of half of the subjects."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from temporalwiki.base.json_files import fingerprint
from temporalwiki.base.normalization import normalize
from temporalwiki.builders.ckl.text_model import OpenModel, no_models
from temporalwiki.methods.method import Article, Fact, Method, Rewriter


@dataclass(frozen=True)
class Unread(Method):
    """``diff`` without the paragraphs about half of the subjects with changed facts.

    What the model learns about these facts, it learned from reading about others. A score that needs the facts must
    not rise on this half.
    """

    reads_facts: ClassVar[bool] = True

    def rewriter(
        self, facts: Mapping[str, Sequence[Fact]], language: str, open_model: OpenModel = no_models
    ) -> Rewriter:
        """Return a function that keeps the paragraphs that say nothing about the unread half, and its counts.

        A paragraph is left out if it is in the article of such a subject, or if it names the subject and a new object.
        """
        changed = facts.get("changed", ())
        hidden = [fact for fact in changed if is_unread(fact["subject_id"])]
        pages = {fact["page_id"] for fact in hidden}
        pairs = {(normalize(fact["subject"]), normalize(fact["object"])) for fact in hidden}
        counts = Counter({"facts": len(changed), "unread_facts": len(hidden), "paragraphs_left_out": 0})

        def rewrite(row: Article) -> list[str]:
            paragraphs = row["text"].split("\n\n")
            kept = [] if row["id"] in pages else [one for one in paragraphs if not _names(one, pairs)]
            counts["paragraphs_left_out"] += len(paragraphs) - len(kept)
            return ["\n\n".join(kept)] if kept else []

        return rewrite, counts


def is_unread(subject: str) -> bool:
    """Return whether a subject is in the half that ``unread`` does not read, the same in every month."""
    return int(fingerprint("unread", subject), 16) % 2 == 0


def _names(paragraph: str, pairs: set[tuple[str, str]]) -> bool:
    text = f" {normalize(paragraph)} "
    return any(f" {subject} " in text and f" {object} " in text for subject, object in pairs)
