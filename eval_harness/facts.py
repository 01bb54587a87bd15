"""Facts: their text, their identity, and their likelihoods."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from temporalwiki.base.errors import InputError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.eval_harness.models.model import LIKELIHOODS, FactScore, Model
from temporalwiki.eval_harness.retrieval import reading
from temporalwiki.eval_harness.scoring import Text
from temporalwiki.eval_harness.task import Row, check_columns

COLUMNS = ("subject", "relation", "object")
UNSCORED = "longer than the context, or nothing to predict"


def complete(rows: Sequence[Row], split: str, excluded: Counter[str]) -> list[Row]:
    """Return the facts that have a subject, a relation and an object, each once; ``excluded`` counts the others.

    Raises InputError if a column is missing or does not hold text.
    """
    check_columns(rows, COLUMNS, split)
    found: dict[str, Row] = {}
    for row in rows:
        for column in COLUMNS:
            if row[column] is not None and not isinstance(row[column], str):
                raise InputError(f"{split}: {column} is {row[column]!r}; a column of text is needed")
        if missing := next((column for column in COLUMNS if not (row[column] or "").strip()), None):
            excluded[f"{split}: no {missing}"] += 1
        elif found.setdefault(identity(row)["id"], row) is not row:
            excluded[f"{split}: the same fact as another"] += 1
    return list(found.values())


def prompt_of(row: Row) -> str:
    """Return the text before the object, "subject relation"."""
    return f"{row['subject']} {row['relation']}"


def identity(row: Row) -> dict[str, Any]:
    """Return the "id", the "cluster" (the subject) and the "relation" of a fact.

    Facts that read the same but have different Wikidata ids have different "id" values.
    """
    ids = [row.get(name) for name in ("subject_id", "relation_id", "object_id")]
    return {
        "id": fingerprint(*ids, prompt_of(row), row["object"]),
        "cluster": row.get("subject_id") or row["subject"],
        "relation": row.get("relation_id") or row["relation"],
    }


def score_facts(
    model: Model, facts: Sequence[tuple[str, str]], what: str, before: Sequence[str] = ()
) -> list[FactScore | None]:
    """Score (prompt, object) pairs; the score is None if an object has no scored token or a text is too long.

    A decoder-only model scores the whole fact, not only the object: one cache entry then serves all tasks. It reads
    the texts ``before`` the facts, which are not scored. Raises NoLikelihoodsError if a token of a server lies across
    the beginning of an object.
    """
    before = before or [""] * len(facts)
    if model.encoder_decoder:
        texts = [Text(first + prompt, label) for first, (prompt, label) in zip(before, facts, strict=True)]
    else:
        texts = [Text(first, f"{prompt} {label}") for first, (prompt, label) in zip(before, facts, strict=True)]
    found: list[FactScore | None] = []
    for (prompt, label), text, scores in zip(facts, texts, model.score(texts, what), strict=True):
        if scores is None:
            found.append(None)
            continue
        first = len(text.context)
        model.check_border(text, scores, first + len(prompt))
        of_object = scores.nll if model.encoder_decoder else scores.nll[scores.offsets[:, 1] > first + len(prompt)]
        size = len(text.target[0 if model.has_bos or first else scores.offsets[0, 0] :].encode())
        score = FactScore(float(scores.nll.sum()), len(scores.nll), float(of_object.sum()), len(of_object), size)
        found.append(score if label.strip() and score.object_tokens else None)
    return found


def scored_facts(model: Model, facts: Mapping[str, Sequence[Row]], excluded: Counter[str]) -> list[dict[str, Any]]:
    """Return an item for each fact (by split); ``excluded`` counts facts that cannot be scored."""
    items: list[dict[str, Any]] = []
    for split, rows in facts.items():
        if LIKELIHOODS in model.can:
            passages = reading(model)  # for a model on a server, rows have no passages
            before = [passages(row, prompt_of(row)) for row in rows]
            scores = score_facts(model, [(prompt_of(row), row["object"]) for row in rows], f"{split}: facts", before)
        else:
            scores = model.stored(rows, split)
        for row, score in zip(rows, scores, strict=True):
            if score is None:
                excluded[f"{split}: {UNSCORED}"] += 1
            else:
                items.append({**identity(row), "split": split, **score._asdict()})
    return items
