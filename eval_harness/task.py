"""What a task is: the rows that it reads, and what it asks a model about them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from temporalwiki.base.errors import InputError
from temporalwiki.base.options import did_you_mean
from temporalwiki.eval_harness.cached_model import CachedModel
from temporalwiki.eval_harness.results import Outcome

Row = Mapping[str, Any]
Rows = Mapping[str, Sequence[Row]]  # by split


@dataclass(frozen=True)
class Task(ABC):
    """A task; the fields of a subclass are its options, from which the command line and result files are made."""

    version: ClassVar[int] = 1  # a change that moves a score raises it
    configs: ClassVar[tuple[str, ...]] = ()  # beginnings of the names of the configs that it is defined on
    columns: ClassVar[tuple[str, ...]] = ()  # that it reads
    splits: ClassVar[tuple[str, ...]] = ()  # that it reads, of those that a config has; none named: all

    @property
    def max_rows(self) -> int | None:
        """Most rows of a split that it reads; None: all. Of more, as many are drawn, the same every time."""
        return None

    def recorded_options(self) -> dict[str, Any]:
        """Return the options as they stand in a result, which is another one where they differ."""
        return asdict(self)

    def extra_configs(self, config: str) -> Mapping[str, str]:
        """Return further configs that it reads, by the name under which ``run`` gets their splits' rows.

        Each is read where the dataset has it: ``{"light-tuning": "lighttuning-1112"}`` gives the splits
        ``light-tuning/unchanged`` and ``light-tuning/changed``.
        """
        return {}

    @abstractmethod
    def run(self, model: CachedModel, rows: Rows) -> Outcome:
        """Ask the model and return its scores."""


def check_columns(rows: Sequence[Row], wanted: Sequence[str], where: str) -> None:
    """Raise InputError where rows lack a column."""
    for column in wanted:
        if rows and column not in rows[0]:
            raise InputError(
                f"{where}: no column {column!r}{did_you_mean(column, rows[0])}; there are {', '.join(rows[0])}"
            )
