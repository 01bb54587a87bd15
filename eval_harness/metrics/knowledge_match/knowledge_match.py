"""Exact match, F1 and precision at k as an `evaluate` module."""

from typing import Any

import datasets
import evaluate

from .definition import knowledge_match, read_answers
from .normalization import normalize

# `evaluate` copies only the files that this one imports: `normalize` is here because definition.py needs it.
__all__ = ["KnowledgeMatch", "normalize"]


class KnowledgeMatch(evaluate.Metric):
    """Knowledge match: exact match, F1 and P@k of short answers."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description="Exact match, F1 and precision at k of short answers, in percent; see README.md.",
            citation="",
            license="apache-2.0",
            inputs_description="For each question an answer or a ranking, and a right answer or a list of them.",
            features=datasets.Features(
                {side: datasets.List(datasets.Value("string")) for side in ("predictions", "references")}
            ),
            reference_urls=["https://arxiv.org/abs/1606.05250", "https://arxiv.org/abs/1909.01066"],
        )

    def add(self, *, prediction: Any = None, reference: Any = None) -> None:
        """Add one question."""
        self.add_batch(predictions=[prediction], references=[reference])

    def add_batch(self, *, predictions: Any = None, references: Any = None) -> None:
        """Add questions. A string becomes a list with one entry, because a column of `datasets` has one type."""
        questions = read_answers(predictions, references)
        super().add_batch(
            predictions=[ranking for ranking, _ in questions], references=[all_ for _, all_ in questions]
        )

    def _compute(self, *, predictions: Any, references: Any) -> dict[str, Any]:
        return knowledge_match(predictions, references)
