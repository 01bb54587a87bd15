"""FUAR as an `evaluate` module. definition.py computes it."""

from typing import Any

import datasets
import evaluate

from .definition import TASKS, fuar, read_scores


class Fuar(evaluate.Metric):
    """FUAR: what a model forgot for each point that it gained."""

    def _info(self) -> evaluate.MetricInfo:
        row = {task: datasets.Value("float64") for task in TASKS}
        return evaluate.MetricInfo(
            description="The points that a model loses on old knowledge for each point that it gains; see README.md.",
            citation="",
            license="apache-2.0",
            inputs_description="A row for each earlier corpus, with `invariant`, `updated` and `new`: scores of the "
            "newest model (predictions) and of the model right after that corpus (references).",
            features=datasets.Features({"predictions": row, "references": row}),
            reference_urls=["https://arxiv.org/abs/2110.03215"],
        )

    def add(self, *, prediction: Any = None, reference: Any = None) -> None:
        """Add the rows of one earlier corpus."""
        self.add_batch(predictions=[prediction], references=[reference])

    def add_batch(self, *, predictions: Any = None, references: Any = None) -> None:
        """Add rows. They are checked here because `evaluate` reads a missing key as None and drops an unknown one."""
        pairs = read_scores(predictions, references)
        super().add_batch(predictions=[after for after, _ in pairs], references=[before for _, before in pairs])

    def _compute(self, *, predictions: Any, references: Any) -> dict[str, float]:
        return fuar(predictions, references)
