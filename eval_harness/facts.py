"""Facts: their text, their identity, and their likelihoods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from temporalwiki.base.errors import InputError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.eval_harness.cached_model import CachedModel
from temporalwiki.eval_harness.completions_model import CompletionsModel, check_border
from temporalwiki.eval_harness.provider_model import NoLikelihoodsError
from temporalwiki.eval_harness.scoring import Text
from temporalwiki.eval_harness.task import Row, check_columns

COLUMNS = ("subject", "relation", "object")
UNSCORED = "longer than the context, or nothing to predict"


class FactScore(NamedTuple):
    """The negative log-likelihood of "subject relation object", in nats, and of the object in it.

    An encoder-decoder model scores only the object, after ``<extra_id_0>``, so for it both are the same.
    """

    nll: float
    tokens: int
    object_nll: float
    object_tokens: int
    bytes: int  # of the scored text in UTF-8; without BOS, a model does not score the first token


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
    model: CachedModel | CompletionsModel,
    facts: Sequence[tuple[str, str]],
    what: str,
    before: Sequence[str] = (),
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
    has_bos = isinstance(model, CachedModel) and (  # for a server, the offsets of the scores tell
        model.encoder_decoder or model.loaded.tokenizer.bos_token_id is not None
    )
    found: list[FactScore | None] = []
    for (prompt, label), text, scores in zip(facts, texts, model.score(texts, what), strict=True):
        if scores is None:
            found.append(None)
            continue
        first = len(text.context)
        if isinstance(model, CompletionsModel):
            try:
                check_border(text.context + text.target, scores.offsets, first + len(prompt))
            except ValueError as error:
                raise NoLikelihoodsError(f"{model.reference}: {error}: {prompt!r} {label!r}") from None
        of_object = scores.nll if model.encoder_decoder else scores.nll[scores.offsets[:, 1] > first + len(prompt)]
        size = len(text.target[0 if has_bos or first else scores.offsets[0, 0] :].encode())
        score = FactScore(float(scores.nll.sum()), len(scores.nll), float(of_object.sum()), len(of_object), size)
        found.append(score if label.strip() and score.object_tokens else None)
    return found
