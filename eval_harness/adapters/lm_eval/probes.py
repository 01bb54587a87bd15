"""What a probe asks and how an answer is scored, for the YAMLs beside this file and for ``inspect_tasks``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.answers import answer
from temporalwiki.eval_harness.metrics.knowledge_match import exact_match, f1

if TYPE_CHECKING:
    from datasets import Dataset

Row = Mapping[str, Any]


def load_probes(
    data: str, config: str, tokenizer: str | None = None, pretrained: str | None = None, **others: Any
) -> dict[str, Dataset]:
    """Return the splits of a config of probes; ``data`` is a dataset folder, a Hub id, or ``id@revision``.

    lm_eval calls it with its ``--metadata`` and the model's arguments. Where these name a tokenizer (``tokenizer``, or
    that of ``pretrained``), rows say how many tokens they have, of which perplexity is made: columns ``tokens`` and
    ``object_tokens``. Raises InputError where the config has no probes.
    """
    # imported here: every command of inspect-ai imports its entry points, and these take seconds
    from transformers import AutoTokenizer

    from temporalwiki.methods.training_data import load

    splits: dict[str, Dataset] = load(data, config, None)
    if "changed" not in splits:
        raise InputError(f"{data}, {config}: holds no probes; name a config such as probes-1112")
    if tokenizer or pretrained:
        of_model = {name: others[name] for name in ("revision", "subfolder", "gguf_file") if name in others}
        read = AutoTokenizer.from_pretrained(tokenizer or pretrained, trust_remote_code=False, **of_model)

        def lengths(texts: list[str]) -> list[int]:
            return [len(ids) for ids in read(texts, add_special_tokens=False).input_ids] if texts else []

        for split, rows in splits.items():
            whole, before = lengths([statement(row) for row in rows]), lengths([prompt(row) for row in rows])
            of_object = [a - b for a, b in zip(whole, before, strict=True)]
            splits[split] = rows.add_column("tokens", whole).add_column("object_tokens", of_object)
    return splits


def not_empty(rows: Dataset) -> Dataset:
    """Return the rows; raises InputError where there are none, for which lm_eval has an IndexError."""
    if not len(rows):
        raise InputError("this split of the config holds no probes to evaluate; name another config or task")
    return rows


def contested(rows: Dataset) -> Dataset:
    """Return the rows whose object replaced one of another name."""
    return not_empty(rows.select([i for i, row in enumerate(rows) if len(statements(row)) > 1]))


def prompt(row: Row) -> str:
    """Return what an answer continues, "SUBJECT RELATION"."""
    return f"{row['subject']} {row['relation']}"


def statement(row: Row) -> str:
    """Return the whole probe, "SUBJECT RELATION OBJECT"."""
    return f"{prompt(row)} {row['object']}"


def statement_and_prompt(row: Row) -> list[str]:
    """Return the two texts whose log-likelihoods differ by that of the object."""
    return [statement(row), prompt(row)]


def statements(row: Row) -> list[str]:
    """Return the probe, then with each previous object of another name in the object's place."""
    from temporalwiki.eval_harness.tasks.multiple_choice import choices_of

    return [f"{prompt(row)} {choice}" for choice in choices_of(row)]


def score_statement(row: Row, results: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """Return (log-likelihood in nats, tokens, bytes or words) of the whole probe; lm_eval divides the sums of both."""
    ((log_likelihood, _),) = results
    text = statement(row)
    scores: dict[str, Any] = {
        "bits_per_byte": (log_likelihood, len(text.encode())),
        "byte_perplexity": (log_likelihood, len(text.encode())),
        "word_perplexity": (log_likelihood, len(text.split())),
    }
    if "tokens" in row:
        scores["perplexity"] = (log_likelihood, row["tokens"])
        scores["perplexity_instance_mean"] = math.exp(-log_likelihood / row["tokens"])
    return scores


def score_object(row: Row, results: Sequence[tuple[float, bool]]) -> dict[str, tuple[float, int]]:
    """Return (log-likelihood in nats, tokens or bytes) of " OBJECT" after the prompt."""
    (whole, _), (before, _) = results
    scores = {"bits_per_byte": (whole - before, len(statement(row).encode()) - len(prompt(row).encode()))}
    if "tokens" in row:
        scores["object_perplexity"] = (whole - before, row["object_tokens"])
    return scores


def score_answer(row: Row, results: Sequence[str]) -> dict[str, float]:
    """Return exact match and F1 of a generated continuation, 0 to 1."""
    (continuation,) = results
    said = answer(continuation)
    return {"exact_match": exact_match(said, [row["object"]]), "f1": f1(said, [row["object"]])}
