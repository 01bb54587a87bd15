"""Study: read each new sentence in several wordings."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from temporalwiki.base.errors import UsageError
from temporalwiki.base.json_files import read_yaml
from temporalwiki.base.normalization import normalize
from temporalwiki.base.options import option
from temporalwiki.builders.ckl.salient_spans import Rules
from temporalwiki.builders.ckl.templates import fill, find_template, one_line
from temporalwiki.builders.ckl.text_model import OpenModel, no_models
from temporalwiki.builders.ckl.text_steps import occurs
from temporalwiki.builders.wikipedia.sentences import split_sentences
from temporalwiki.methods.method import Article, Fact, Method, Rewriter

_WORDS = read_yaml(Path(__file__).with_suffix(".yaml"))


@dataclass(frozen=True)
class Study(Method):
    """``diff`` on each new text and on ``ways`` further documents that say the same in other words.

    Synthetic continued pretraining (Yang et al. 2025, section 2) and active reading (Lin et al. 2025) train on texts
    written again. Without a writer, a document words again the facts of ``facts-*`` that a sentence of the text
    states; a writer words all sentences again. In both cases, wordings of the tests are left out.
    """

    reads_facts: ClassVar[bool] = True

    ways: int = option(4, "further wordings of each sentence", at_least=1, at_most=len(_WORDS["instructions"]))
    writer: str | None = option(None, "a language model that writes the sentences again; without one, fixed wordings")

    def rewriter(
        self, facts: Mapping[str, Sequence[Fact]], language: str, open_model: OpenModel = no_models
    ) -> Rewriter:
        """Return a function that adds documents to an article, and its counts of sentences by what became of them.

        Raises UsageError for a language without wordings.
        """
        if self.writer is None and language not in _WORDS["wordings"]:
            known = ", ".join(_WORDS["wordings"])
            raise UsageError(f"study: no wordings in the language {language!r}, only in {known}: name a --writer")
        writer = None if self.writer is None else open_model(self.writer)
        ways = (_WORDS["wordings"][language] if writer is None else _WORDS["instructions"])[: self.ways]
        of_page = defaultdict(list)
        for fact in (*facts.get("changed", ()), *facts.get("unchanged", ())):
            of_page[fact["page_id"]].append(fact)
        counts = Counter({"sentences": 0, "written": 0})

        def rewrite(row: Article) -> list[str]:
            stated = [fact for fact in of_page.get(row["id"], ()) if _states(row["text"], fact)]
            tests = {wording for fact in stated for wording in asked(fact, language)}
            sentences = [""] * len(stated)
            told: list[str | None] = [worded(fact, way) for fact in stated for way in ways]
            if writer is not None:
                sentences = [one for part in row["text"].split("\n\n") for one in split_sentences(part, language)]
                asks = [{"[title]": row["title"], "[sentence]": one, "[way]": w} for one in sentences for w in ways]
                told = writer.answers([fill(_WORDS["prompt"], blanks) for blanks in asks], "study", 128)
            counts["sentences"] += len(sentences)
            documents: list[list[str]] = [[] for _ in ways]
            for at, sentence in enumerate(sentences):
                wordings = told[at * len(ways) : (at + 1) * len(ways)]
                for way, text in enumerate(wordings):
                    why = useless(text, sentence, row["title"], [*wordings[:way], sentence], tests)
                    counts[why or "written"] += 1
                    documents[way] += [text] if text and not why else []
            return [row["text"], *(" ".join(one) for one in documents if one)]

        return rewrite, counts


def worded(fact: Fact, wording: str) -> str:
    """Return a fact in a wording."""
    names = {"[X]": "subject", "[Y]": "object", "[relation]": "relation"}
    return fill(wording, {blank: one_line(fact[name]) for blank, name in names.items()})


def asked(fact: Fact, language: str) -> set[str]:
    """Return a fact as tests word it, normalised: by its names, as a cloze in both directions, and as a question."""
    subject, object = (normalize(one_line(fact[name])) for name in ("subject", "object"))
    found = {normalize(f"{subject} {fact['relation']} {object}")}
    if template := find_template(str(fact["relation_id"]), one_line(fact["relation"]), language=language):
        cloze, question = normalize(worded(fact, template.cloze)), normalize(template.ask(one_line(fact["subject"])))
        found |= {cloze, question, f"{object} is {cloze.removesuffix(f' is {object}')}"}
    return found


def useless(text: str | None, sentence: str, title: str, others: Sequence[str | None], tests: set[str]) -> str:
    """Return why a text must not stand for a sentence, or "": it keeps all names and numbers, and adds none.

    It must not repeat one of the ``others``, nor have a wording of the ``tests``, which are normalised. A fixed
    wording has no sentence ("").
    """
    words = f" {normalize(text or '')} "
    if not words.strip():
        return "empty"
    if any(normalize(other or "") == words.strip() for other in others):
        return "a copy"
    if text is None or any(f" {wording} " in words for wording in tests):
        return "a wording of the tests"
    if not all(occurs(name, text) for name in _names(sentence)):
        return "a name or number lost"
    added = sentence and not all(occurs(name, f"{title}. {sentence}") for name in _names(text))
    return "a name or number added" if added else ""


def _names(text: str) -> list[str]:
    return [text[begin:end] for begin, end in Rules()(text)] + re.findall(r"\d+", text)


def _states(text: str, fact: Fact) -> bool:
    """Return whether the text has the sentence that states a fact, with the object's name."""
    return bool(fact["evidence"]) and fact["evidence"] in text and occurs(fact["object"], fact["evidence"])
