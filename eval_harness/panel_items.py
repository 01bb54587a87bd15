"""Ask a model about panels of facts (``known``), in one or several wordings, and return an item for each fact."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from temporalwiki.base.errors import UsageError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.base.normalization import normalize
from temporalwiki.base.options import did_you_mean
from temporalwiki.builders.ckl.templates import find_template, one_line, unsafe_label
from temporalwiki.eval_harness.facts import UNSCORED, identity, prompt_of, score_facts
from temporalwiki.eval_harness.known import (
    FEWEST,
    Panel,
    PanelFact,
    binding,
    by_spelling,
    complete_places,
    corrected,
    known,
    margins,
    panels,
)
from temporalwiki.eval_harness.models.model import LIKELIHOODS, STORED, FactScore, Model
from temporalwiki.eval_harness.references import choices_of, language_of
from temporalwiki.eval_harness.retrieval import reading
from temporalwiki.eval_harness.scoring import SENTINEL
from temporalwiki.eval_harness.task import NothingToScoreError, Row

Item = dict[str, Any]

FORMS = ("name", "cloze", "question", "reverse")
SPELLING = "spelling"  # the form of the control without a model
STATEMENT = "statement"  # the form of CKL's clozes, in the rows' column of that name
# "The head of state of [X] is [Y]." asks for [X] as "[Y] is the head of state of [X]."
_TURNED = re.compile(r"(The|An?) (.*\[X\].*) is \[Y\]\.")


class Wording(NamedTuple):
    """A fact in a form: the text before the answer, and the text after it."""

    prompt: str
    tail: str = ""


class AskedPanel(NamedTuple):
    """A panel in a form, and what is asked: the answer of each fact, and the gone objects of some."""

    panel: Panel
    wordings: list[Wording]
    answers: list[str]
    gone: dict[int, list[str]]  # by place

    @property
    def members(self) -> str:
        """The identity of the panel."""
        return fingerprint([fact.id for fact in self.panel.facts])


def check_forms(forms: Sequence[str]) -> None:
    """Raise UsageError for an unknown form, none, or one that is named twice."""
    for form in forms:
        if form not in FORMS:
            raise UsageError(f"--forms: no form {form!r}{did_you_mean(form, FORMS)}; there are {', '.join(FORMS)}")
    if not forms or len(set(forms)) < len(forms):
        raise UsageError(f"--forms: name each form once: {', '.join(FORMS)}")


def wording(row: Row, form: str) -> Wording | None:
    """Return a fact in a form, or None if its relation has no such wording."""
    if form == "name":
        return Wording(prompt_of(row))
    if form == STATEMENT:  # the space before the answer is part of it
        before, _, after = row[STATEMENT].partition(SENTINEL)
        return Wording(before.strip(), after) if before[-1:].isspace() else None
    subject, relation = one_line(row["subject"]), one_line(row["relation"])
    template = find_template(str(row.get("relation_id")), relation, language=language_of(row))
    if template is None or unsafe_label(subject) or unsafe_label(one_line(row["object"])):
        return None
    if form == "question":
        return Wording(f"Question: {template.ask(subject)} Answer:")
    before, _, after = template.cloze.partition("[Y]")
    if form == "cloze":
        return Wording(before.replace("[X]", subject).rstrip(), after.replace("[X]", subject))
    if (turned := _TURNED.fullmatch(template.cloze)) is None:
        return None
    before, _, after = f"{turned[1].lower()} {turned[2]}.".partition("[X]")
    return Wording(f"{one_line(row['object'])} is {before}".rstrip(), after)


def known_items(
    model: Model, facts: Mapping[str, Sequence[Row]], forms: Sequence[str], seed: int, excluded: Counter[str]
) -> list[Item]:
    """Return an item for each scored fact (by split) and form, and one in the form ``SPELLING``.

    An item has "known" (0 or 1), "chance", "panel", "binding" in nats, "corrected" (None without a gone object), the
    texts "prompt", "object" and "answer", the figures of ``FactScore`` and, if the model has a start model,
    "start_known". ``excluded`` counts the facts that are left out. Raises NothingToScoreError if the start model's
    results are of other panels.
    """
    items: list[Item] = []
    for form in forms:
        asked = asked_panels(facts, form, seed, excluded)
        if form == forms[0]:
            items += _spelling(asked_panels(facts, "name", seed, Counter()))
        after = _found(model, asked, form, "facts")
        before = None if model.start is None else _found(model.start, asked, form, "facts, start model")
        for one in asked:
            for i in one.panel.scored:
                fact = one.panel.facts[i]
                item, first = after.get(fact.id), {} if before is None else before.get(fact.id)
                if item is None or first is None:
                    excluded[f"{fact.split}: {UNSCORED}"] += 1
                    continue
                items.append(_labelled(fact, form, item | (_since(first, item) if before is not None else {})))
    return items


def asked_panels(facts: Mapping[str, Sequence[Row]], form: str, seed: int, excluded: Counter[str]) -> list[AskedPanel]:
    """Return the panels with a fact to score, and what is asked in them; ``facts`` are by split."""
    of_relation: dict[str, list[PanelFact]] = defaultdict(list)
    subjects: dict[tuple[str, str], set[str]] = defaultdict(set)
    for split, rows in facts.items():
        for row in rows:
            who = identity(row)
            subjects[who["relation"], normalize(row["object"])].add(who["cluster"])
            of_relation[who["relation"]].append(PanelFact.of(who["id"], who["cluster"], split, row))
    asked = []
    for relation, of in sorted(of_relation.items()):
        worded = {fact.id: wording(fact.row, form) for fact in of}
        fit = []
        for fact in of:
            several = form == "reverse" and len(subjects[relation, normalize(fact.row["object"])]) > 1
            if worded[fact.id] is None or several:
                why = "several subjects have the object" if several else f"no wording as {form}"
                excluded[f"{fact.split}: {why}"] += fact.scored
            else:
                fit.append(fact)
        for panel in panels(fit, relation, excluded, seed):
            if panel.scored:
                rows = [fact.row for fact in panel.facts]
                wordings = [cast(Wording, worded[fact.id]) for fact in panel.facts]
                answers = [str(row["subject" if form == "reverse" else "object"]) for row in rows]
                gone = {i: choices_of(rows[i])[1] for i in panel.scored} if form != "reverse" else {}
                changed = {i: labels for i, labels in gone.items() if labels and panel.split == "changed"}
                asked.append(AskedPanel(panel, wordings, answers, changed))
    return asked


def _found(model: Model, asked: Sequence[AskedPanel], form: str, what: str) -> dict[str, Item]:
    """Return an item without labels for each scored fact that the model could score, by its id."""
    if STORED in model.can:
        return _stored(model, asked, form)
    if LIKELIHOODS not in model.can:  # the start model; ``evaluate`` has refused others
        raise NothingToScoreError(f"{model.reference}: has no likelihoods of other objects")
    passages = reading(model)  # for a model on a server, rows have no passages
    pairs: list[tuple[str, str]] = []
    before: list[str] = []
    for one in asked:
        for fact, worded in zip(one.panel.facts, one.wordings, strict=True):
            prompt, tail = worded
            if model.encoder_decoder and tail:
                prompt, tail = f"{prompt} {SENTINEL}{tail}", ""
            labels = [*one.answers, *(label for labels in one.gone.values() for label in labels)]
            pairs += [(prompt, f"{label}{tail}") for label in labels]
            reads = passages(fact.row, prompt) if what == "facts" else ""
            before += [reads] * len(labels)
    scores = iter(score_facts(model, pairs, f"{form}: {what}", before))
    items: dict[str, Item] = {}
    for one in asked:
        size = len(one.panel.facts)
        wide = size + sum(map(len, one.gone.values()))
        items |= _items(one, [[next(scores) for _ in range(wide)] for _ in range(size)])
    return items


def _items(asked: AskedPanel, scores: Sequence[Sequence[FactScore | None]]) -> dict[str, Item]:
    """Return the items of a panel from the scores of its cells: answers first, then gone objects."""
    facts = asked.panel.facts
    likelihoods = np.array([[np.nan if one is None else -one.object_nll for one in row] for row in scores])
    kept = complete_places(likelihoods[:, : len(facts)])
    if len(kept) < FEWEST:
        return {}
    cells = likelihoods[np.ix_(kept, kept)]
    right, bound, won = known(cells), binding(cells), margins(cells)
    begins, at = {}, len(facts)
    for place, labels in asked.gone.items():
        begins[place] = at
        at += len(labels)
    items = {}
    for place in asked.panel.scored:
        if place not in kept:
            continue
        i = kept.index(place)
        chosen = place if right[i] else kept[int(np.nanargmin(won[i]))]  # the object that wins by most
        item: Item = {
            "prompt": asked.wordings[place].prompt,
            "object": asked.answers[place],
            "answer": asked.answers[chosen],
            "panel": asked.members,
            "chance": 1 / len(kept),
            "known": float(right[i]),
            "binding": float(bound[i]),
            "corrected": None,
        }
        if place in begins:
            labels = asked.gone[place]
            gone = likelihoods[kept, begins[place] : begins[place] + len(labels)]
            wrong = [[(normalize(label) or label) not in facts[k].ever for label in labels] for k in kept]
            found = corrected(cells, i, gone, np.array(wrong) & ~np.isnan(gone))
            item["corrected"] = None if found is None else float(found)
        items[facts[place].id] = item | cast(FactScore, scores[place][place])._asdict()
    return items


def _stored(model: Model, asked: Sequence[AskedPanel], form: str) -> dict[str, Item]:
    """Return the items of stored results. Raises NothingToScoreError if they are of other panels."""
    known_before = model.known_items()
    found: dict[str, Item] = {}
    for one in asked:
        for i in one.panel.scored:
            fact = one.panel.facts[i]
            item = known_before.get(_name(fact, form))
            if item is not None and item["panel"] != one.members:
                raise NothingToScoreError(
                    f"{model.reference}: its facts stand in other panels; evaluate {model.name} on this data"
                )
            if item is not None:
                found[fact.id] = item
    if asked and not found:
        raise NothingToScoreError(
            f"{model.reference}: holds no known facts of this data as {form}; evaluate {model.name} with "
            "--tasks learned_and_forgotten"
        )
    return found


def _since(before: Item, after: Item) -> Item:
    """Return what has changed since the start model; a gain in nats only if both have the same tokens."""
    found: Item = {"start_known": before["known"], "start_nll": None, "gain": None}
    if before["object_tokens"] == after["object_tokens"]:
        gain = (before["object_nll"] - after["object_nll"]) / after["object_tokens"]
        found |= {"start_nll": before["object_nll"], "gain": gain}
    return found


def _spelling(asked: Sequence[AskedPanel]) -> list[Item]:
    items = []
    for one in asked:
        facts = one.panel.facts
        right = known(by_spelling(facts))
        for i in one.panel.scored:
            item = {"panel": one.members, "chance": 1 / len(facts), "known": float(right[i])}
            items.append(_labelled(facts[i], SPELLING, item))
    return items


def _labelled(fact: PanelFact, form: str, item: Item) -> Item:
    who = identity(fact.row)
    return {**who, "id": _name(fact, form), "split": fact.split, "form": form, **item}


def _name(fact: PanelFact, form: str) -> str:
    return fact.id if form == "name" else f"{fact.id}/{form}"
