"""The leaderboard's rows: every score of every result, one a row, as tables, figures and the page read them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A score of a model on a test.

    ``label`` is what people call the model's line of checkpoints: the name that an experiment gave it, else its
    method, else its own name. ``month`` and ``tested`` are named as configs name them, such as "1112". ``rank_best``
    and ``rank_worst`` are the ends of a 95 % confidence set of its rank among the models that were asked the same.
    """

    label: str
    month: str | None  # the last that it was trained on; None: before any, or none is known
    method: str | None  # None: not trained by temporalwiki, as far as is known
    base: str  # the checkpoint that its first phase began from; itself where it was not trained
    model: str  # as it was named to whoever evaluated it
    revision: str
    learning_rate: float | None
    trainable: int | None  # parameters
    parameters: int | None
    tokens: int | None  # read in training, over all phases
    task: str
    version: int
    config: str  # such as "probes-1112"
    kind: str  # of the config, such as "probes"
    tested: str | None  # the config's month
    test: str  # such as "changed", "light-tuned/average"; "" where a task has one
    measure: str  # such as "perplexity"
    higher_is_better: bool
    value: float
    low: float | None  # of the 95 % interval; None where it cannot be known
    high: float | None
    items: int
    clusters: int
    rank_best: int | None  # None: not ranked
    rank_worst: int | None
    result: str  # the result file, relative to the folder of results
