"""A fact as a model reads it, and what its score says of the whole and of the object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from temporalwiki.base.errors import InputError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.eval_harness.cached_model import CachedModel
from temporalwiki.eval_harness.scoring import Text
from temporalwiki.eval_harness.task import Row, check_columns

COLUMNS = ("subject", "relation", "object")
UNSCORED = "longer than the context, or nothing to predict"


class FactScore(NamedTuple):
    """Negative log-likelihood, in nats, and number of tokens of "subject relation object" and of " object" in it.

    Of an encoder-decoder model both are those of the object after ``<extra_id_0>``. ``bytes`` (UTF-8) are those of the
    whole but for a first token that is not predicted, as there is no BOS.
    """

    nll: float
    tokens: int
    object_nll: float
    object_tokens: int
    bytes: int


def complete(rows: Sequence[Row], split: str, excluded: Counter[str]) -> list[Row]:
    """Return the facts with a subject, a relation and an object, each once; ``excluded`` counts the others.

    Raises InputError where a column is not there, or holds no text.
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
    """Return what an object continues, "subject relation"."""
    return f"{row['subject']} {row['relation']}"


def identity(row: Row) -> dict[str, Any]:
    """Return an item's "id", which facts of the same names do not share, and its "cluster", the subject."""
    ids = [row.get(name) for name in ("subject_id", "relation_id", "object_id")]
    return {
        "id": fingerprint(*ids, prompt_of(row), row["object"]),
        "cluster": row.get("subject_id") or row["subject"],
    }


def score_facts(model: CachedModel, facts: Sequence[tuple[str, str]], what: str) -> list[FactScore | None]:
    """Score (prompt, object) pairs; None where there is nothing to predict of an object, or a text is too long.

    A decoder-only model reads a fact whole, so that whatever asks for it next finds it in the store.
    """
    if model.encoder_decoder:
        texts = [Text(prompt, label) for prompt, label in facts]
    else:
        texts = [Text("", f"{prompt} {label}") for prompt, label in facts]
    all_predicted = model.encoder_decoder or model.loaded.tokenizer.bos_token_id is not None
    found: list[FactScore | None] = []
    for (prompt, label), text, scores in zip(facts, texts, model.score(texts, what), strict=True):
        if scores is None:
            found.append(None)
            continue
        of_object = scores.nll if model.encoder_decoder else scores.nll[scores.offsets[:, 1] > len(prompt)]
        size = len(text.target[0 if all_predicted else scores.offsets[0, 0] :].encode())
        score = FactScore(float(scores.nll.sum()), len(scores.nll), float(of_object.sum()), len(of_object), size)
        found.append(score if label.strip() and score.object_tokens else None)
    return found
