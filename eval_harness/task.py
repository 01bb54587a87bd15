"""The base class of tasks: which rows a task reads, and how it scores a model on them."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.options import did_you_mean
from temporalwiki.eval_harness.models.model import WEIGHTS, Model
from temporalwiki.eval_harness.results import Outcome

Row = Mapping[str, Any]
Rows = Mapping[str, Sequence[Row]]  # by split


class NothingToScoreError(InputError):
    """A config without a row that the task can score, or a start model that the task cannot use."""


@dataclass(frozen=True)
class Task(ABC):
    """A task. The fields of a subclass are its options on the command line, in recipes and in result files."""

    version: ClassVar[int] = 1  # raise it with every change that moves a score
    configs: ClassVar[tuple[str, ...]] = ()  # prefixes of the configs that it reads, such as "probes-"
    columns: ClassVar[tuple[str, ...]] = ()  # columns that it needs
    splits: ClassVar[tuple[str, ...]] = ()  # splits that it reads; empty: all
    compared: ClassVar[tuple[str, ...]] = ()  # splits to compare with, which --after-cutoff does not filter
    needs: ClassVar[frozenset[str]] = frozenset({WEIGHTS})  # one of these abilities (``Model.can``) suffices
    query: ClassVar[tuple[str, ...]] = ()  # columns of a question, for --retrieve; empty: it cannot retrieve
    start: ClassVar[str] = ""  # "needed" or "used": it compares the model with the one that it started from
    whole: ClassVar[bool] = False  # it reads all rows: those that a limit leaves out have False in "scored"
    least: ClassVar[Mapping[str, int]] = {}  # lower bounds of options; the bound of other whole numbers is 1
    later: ClassVar[frozenset[str]] = frozenset()  # options that older results lack: recorded unless they are default

    def __post_init__(self) -> None:
        """Refuse values out of range."""
        for name, value in asdict(self).items():
            least = self.least.get(name, 1)
            if isinstance(value, int) and not isinstance(value, bool) and value < least:
                raise UsageError(f"{name} must be at least {least}, not {value}")

    @property
    def max_rows(self) -> int | None:
        """The most rows of a split, or None. A split with more rows is sampled with a fixed seed."""
        return None

    def recorded_options(self) -> dict[str, Any]:
        """Return the options that a result file records; results with other options are different results."""
        unused = {field.name for field in fields(self) if getattr(self, field.name) == field.default}
        return {name: value for name, value in asdict(self).items() if name not in self.later & unused}

    def extra_configs(self, config: str) -> Mapping[str, str]:
        """Return the other configs that the task reads if the dataset has them, with a prefix for their splits.

        With ``{"light-tuning": "lighttuning-1112"}``, ``run`` also gets the splits ``light-tuning/unchanged`` and
        ``light-tuning/changed``.
        """
        return {}

    @abstractmethod
    def run(self, model: Model, rows: Rows) -> Outcome:
        """Score the model on the rows."""


def check_columns(rows: Sequence[Row], wanted: Sequence[str], where: str) -> None:
    """Raise InputError if a column is missing; ``where`` begins the message."""
    for column in wanted:
        if rows and column not in rows[0]:
            raise InputError(
                f"{where}: no column {column!r}{did_you_mean(column, rows[0])}; there are {', '.join(rows[0])}"
            )
