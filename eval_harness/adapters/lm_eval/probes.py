"""The prompts of probes and the scores of answers, for the YAML tasks of this folder and for ``inspect_tasks``."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from temporalwiki.base.errors import InputError
from temporalwiki.base.terminal import say
from temporalwiki.eval_harness.answers import answer
from temporalwiki.eval_harness.known import Matrix, known
from temporalwiki.eval_harness.metrics.knowledge_match import exact_match, f1
from temporalwiki.eval_harness.references import choices_of, right_answers

if TYPE_CHECKING:
    from datasets import Dataset

Row = Mapping[str, Any]


def load_probes(
    data: str, config: str, tokenizer: str | None = None, pretrained: str | None = None, **others: Any
) -> dict[str, Dataset]:
    """Return the splits of a config of probes; ``data`` is a dataset folder, a Hub id, or ``id@revision``.

    lm_eval calls this with its ``--metadata`` and the arguments of the model. If they name a tokenizer (``tokenizer``,
    or that of ``pretrained``), the rows get the columns ``tokens`` and ``object_tokens``, which perplexity needs.
    Raises InputError if the config holds no probes.
    """
    # imported here because every command of inspect-ai imports this module, and these imports take seconds
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


def load_panels(data: str, config: str, **others: Any) -> dict[str, Dataset]:
    """Return the facts of the panels in which ``learned_and_forgotten`` compares them, by the split that is scored.

    A row has the "panel", the fact's "place" in it, "scored" (False for a fact that only fills the panel), and the
    "choices": "SUBJECT RELATION" with the object of each fact of the panel. What is left out is printed, with counts.
    Raises InputError for no probes.
    """
    from datasets import Dataset

    from temporalwiki.eval_harness.facts import complete
    from temporalwiki.eval_harness.panel_items import asked_panels

    splits, left_out = load_probes(data, config), Counter[str]()
    facts = {split: complete(list(splits[split]), split, left_out) for split in ("unchanged", "changed")}
    rows: dict[str, list[Row]] = {split: [] for split in facts}
    for asked in asked_panels(facts, "name", 0, left_out):
        for i, (prompt, _) in enumerate(asked.wordings):
            choices = [f"{prompt} {label}" for label in asked.answers]
            row = {"panel": asked.panel.name, "place": i, "scored": i in asked.panel.scored, "choices": choices}
            rows[asked.panel.split].append(row)
    for reason, count in left_out.items():
        say(f"left out, {reason}: {count:,}")
    return {split: Dataset.from_list(of) for split, of in rows.items()}


def not_empty(rows: Dataset) -> Dataset:
    """Return the rows. Raises InputError for an empty split, where lm_eval would raise an IndexError."""
    if not len(rows):
        raise InputError("this split of the config holds no probes to evaluate; name another config or task")
    return rows


def contested(rows: Dataset) -> Dataset:
    """Return the rows with a right and a wrong choice."""
    return not_empty(rows.select([i for i, row in enumerate(rows) if all(choices_of(row))]))


def prompt(row: Row) -> str:
    """Return the prompt, "SUBJECT RELATION"."""
    return f"{row['subject']} {row['relation']}"


def statement(row: Row) -> str:
    """Return the whole probe, "SUBJECT RELATION OBJECT"."""
    return f"{prompt(row)} {row['object']}"


def statement_and_prompt(row: Row) -> list[str]:
    """Return the probe and its prompt: the difference of their log-likelihoods is the object's log-likelihood."""
    return [statement(row), prompt(row)]


def statements(row: Row) -> list[str]:
    """Return the probe with each choice, the right ones first."""
    return [f"{prompt(row)} {choice}" for choices in choices_of(row) for choice in choices]


def right_places(row: Row) -> list[int]:
    """Return the places of the right choices in ``statements``."""
    return list(range(len(choices_of(row)[0])))


def score_statement(row: Row, results: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """Return the scores of a probe by name.

    Most are pairs (log-likelihood in nats, number of tokens, bytes or words), whose sums lm_eval divides.
    ``perplexity_instance_mean`` is the perplexity of this probe, and lm_eval takes the mean.
    """
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
    """Return (log-likelihood in nats, number of tokens or bytes) of " OBJECT" after the prompt."""
    (whole, _), (before, _) = results
    scores = {"bits_per_byte": (whole - before, len(statement(row).encode()) - len(prompt(row).encode()))}
    if "tokens" in row:
        scores["object_perplexity"] = (whole - before, row["object_tokens"])
    return scores


def score_answer(row: Row, results: Sequence[str]) -> dict[str, float]:
    """Return exact match and F1 of a generated continuation, from 0 to 1."""
    (continuation,) = results
    sentence, right = answer(continuation), right_answers(row)
    return {"exact_match": exact_match(sentence, right), "f1": f1(sentence, right)}


def score_choices(row: Row, results: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """Return what ``share_known`` and ``chance`` need of a fact: its place, and the log-likelihoods of its choices."""
    of_fact = (row["panel"], row["place"], row["scored"], [log_likelihood for log_likelihood, _ in results])
    return {"known": of_fact, "chance": of_fact}


def share_known(facts: Sequence[tuple[str, int, bool, list[float]]]) -> float:
    """Return the share of facts that are known, from 0 to 1 (``eval_harness.known``)."""
    right = [known(cells)[scored] for cells, scored in _cells(facts)]
    return float(np.concatenate(right).mean())


def chance(facts: Sequence[tuple[str, int, bool, list[float]]]) -> float:
    """Return the share of facts that a model without knowledge knows."""
    return float(np.mean([1 / len(cells) for cells, scored in _cells(facts) for _ in scored]))


def _cells(facts: Sequence[tuple[str, int, bool, list[float]]]) -> list[tuple[Matrix, list[int]]]:
    """Return the log-likelihoods of each panel and the places to score. Raises InputError for a part of one."""
    panels: dict[str, dict[int, tuple[bool, list[float]]]] = defaultdict(dict)
    for panel, place, scored, of_fact in facts:
        panels[panel][place] = scored, of_fact
    found = []
    for name, rows in panels.items():
        if sorted(rows) != list(range(len(rows[min(rows)][1]))):
            raise InputError(f"panel {name}: only {len(rows)} of its facts were asked; run without --limit")
        found.append((np.array([rows[i][1] for i in sorted(rows)]), [i for i in sorted(rows) if rows[i][0]]))
    return found
