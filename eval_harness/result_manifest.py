"""Result files: what `temporalwiki evaluate` has scored, on which data, and how."""

import math
from typing import Annotated, Any

import msgspec

from temporalwiki.builders.manifests import Count
from temporalwiki.builders.published import DataSource
from temporalwiki.methods.manifest import Parameters

Day = Annotated[str, msgspec.Meta(pattern=r"\A[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}\Z")]

_MOST = 1e150  # the largest score: its square is a number as well


class ResultScore(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A score with its confidence interval. Both ends are None if all items belong to one cluster."""

    value: float
    low: float | None
    high: float | None
    items: Count
    clusters: Count
    relations: float | None = None  # as many equal relations would count as much; None: not known

    def __post_init__(self) -> None:
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval with one end")
        if any(_MOST < abs(end or 0) < math.inf for end in (self.value, self.low, self.high)):
            raise ValueError(f"a score or an end of its interval beyond {_MOST:.0e}")


class ResultTask(msgspec.Struct, frozen=True):
    """The task that was run."""

    name: str
    version: Count
    options: dict[str, Any]


class ResultModel(msgspec.Struct, frozen=True):
    """The model that was scored."""

    name: str
    revision: str
    precision: str
    label: str | None = None
    method: str | None = None
    trained_on: list[str] = []
    trained_on_test: list[str] = []  # the test configs that its training read
    base: str | None = None
    learning_rate: float | None = None
    recipe: str | None = None  # the same for runs that differ by their seed only
    seed: int | None = None
    parameters: Parameters | None = None
    tokens: Count | None = None

    def __post_init__(self) -> None:
        if self.learning_rate is not None and not math.isfinite(self.learning_rate):
            raise ValueError("an infinite learning rate")

    def marked(self, name: str) -> str:
        """Return a name of the model, with a mark if its training read test data."""
        return f"{name} (trained on test data)" if self.trained_on_test else name


class ResultStart(msgspec.Struct, frozen=True):
    """The model that the scored model is compared with."""

    name: str
    revision: str
    precision: str = ""


class ResultNewer(msgspec.Struct, frozen=True):
    """The filter of ``--after-cutoff``, and the rows that it kept and dropped, by split."""

    day: Day
    kept: dict[str, Count]
    dropped: dict[str, Count]
    model: str | None = None  # the model whose cutoff the day is


class ResultRetrieved(msgspec.Struct, frozen=True):
    """What ``--retrieve`` let the model read before each question."""

    source: str  # a config, or "evidence"
    version: Count
    top_k: Count | None = None  # None: the evidence
    hash: str | None = None  # of the config
    found: dict[str, Count] = {}  # rows with a passage, by split
    facts: dict[str, dict[str, Count]] = {}  # facts whose passage was "right", and "current", by split

    def __str__(self) -> str:
        return self.source if self.top_k is None else f"top {self.top_k} of {self.source}"


class ResultData(msgspec.Struct, frozen=True):
    """The config that the model was scored on."""

    dataset: str
    config: str
    rows: dict[str, Count]
    hash: str
    source: DataSource | None = None  # None for data in memory
    newer: ResultNewer | None = None
    retrieved: ResultRetrieved | None = None


class ResultLeak(msgspec.Struct, frozen=True):
    """How many changed facts a model prefers already: the new object to the old ones, or a new answer."""

    model: str
    facts: Count
    new: Count


class ResultRun(msgspec.Struct, frozen=True):
    """The part of a result that may differ when it is computed again."""

    temporalwiki: str | None = None  # its version
    training_seconds: float | None = None  # of all phases of the model


class ResultManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A result file of `temporalwiki evaluate`."""

    task: ResultTask
    model: ResultModel
    data: ResultData
    start: ResultStart | None = None  # of tasks that compare a model with the one that it started from
    scores: dict[str, ResultScore]  # such as "unchanged/perplexity"
    excluded: dict[str, Count]  # items that were not scored, by reason
    leak: ResultLeak | None = None
    run: ResultRun
    content: dict[str, Any] = {}

    @property
    def asked(self) -> str:
        """The name of the task, with the day after which its rows begin if others were dropped."""
        return self.task.name + (f" after {self.data.newer.day}" if self.data.newer else "")

    @property
    def scored(self) -> str:
        """The name of the task as in ``asked``, with the source of passages if there is one."""
        return self.asked + (f" with {self.data.retrieved}" if self.data.retrieved else "")
