"""Rows that are newer than what a model can know: facts that began, and text that appeared, after a day."""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import read_json
from temporalwiki.builders.configs import DELETED
from temporalwiki.builders.manifests import Count
from temporalwiki.builders.snapshot import read_date

Month = Annotated[str, msgspec.Meta(pattern=r"\A[1-9][0-9]{3}-(0[1-9]|1[0-2])\Z")]

CUTOFF = "cutoff.json"
CUTOFF_ITEMS = "cutoff_items.csv"
_LONG = re.compile(r"(.+)-(\d{8})-(\d{8})")
_COLUMNS = ("published", "kind", "start_time", "end_time")  # they date a row
_TEXTS = ("diffset-", "deletions-")  # their interval dates all rows
_UNCHANGED = ("unchanged-", "invariantlama")
_DATES = "a date is written 20211101, 2021-11-01 or 2021-11"


class CutoffMonths(msgspec.Struct, frozen=True):
    """The last month whose changes a model knows, with the ends of its 95 % interval."""

    verdict: Literal["found", "before the data", "after the data", "cannot tell"]
    cutoff: Month | None
    low: Month | None
    high: Month | None

    def __post_init__(self) -> None:
        months = [month for month in (self.low, self.cutoff, self.high) if month is not None]
        known = {
            "found": [self.low, self.cutoff, self.high],
            "before the data": [self.high],
            "after the data": [self.low],
            "cannot tell": [month for month in (self.low, self.high) if month is not None],
        }[self.verdict]
        if known != months or months != sorted(months):
            raise ValueError(f"the months do not fit {self.verdict!r}")


class CutoffPoint(msgspec.Struct, frozen=True):
    """A month with changes, and the share of them that the model knows."""

    month: Month
    known: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0


class CutoffManifest(msgspec.Struct, frozen=True):
    """A result file of `temporalwiki cutoff`."""

    model: str
    overall: CutoffMonths
    curve: list[CutoffPoint]
    forms: dict[str, CutoffMonths] = {}
    advertised: Month | None = None
    data: str | None = None
    evidence: dict[Literal["facts", "text", "answers", "unreadable"], Count] = {}


def cutoff_files(folder: Path) -> list[Path]:
    """Return the results of `temporalwiki cutoff` in a folder and in its folders, sorted."""
    return sorted(path for path in (folder / CUTOFF, *folder.glob(f"*/{CUTOFF}")) if path.is_file())


def read_cutoff(path: Path) -> CutoffManifest:
    """Return a result of `temporalwiki cutoff`. Raises InputError for any other file."""
    return read_json(path, CutoffManifest, "a result of `temporalwiki cutoff`; run the command again")


@dataclass(frozen=True)
class After:
    """The last day that a model can know, and the model whose cutoff it is, if it was named."""

    day: datetime.date
    model: str | None = None

    def __str__(self) -> str:
        return f"{self.day}" + (f" (the cutoff of {self.model})" if self.model else "")


def read_after(text: str, results: Path | None = None) -> After:
    """Return the last day that a model can know, from the value of ``--after-cutoff``.

    The value is a date, a month (its last day counts), a result of ``temporalwiki cutoff`` or its folder, or the name
    of a model with such a result in the folder ``results``. The upper end of the cutoff's interval counts. Raises
    UsageError for a wrong date, and InputError if the result is missing or has no upper end.
    """
    if re.fullmatch(r"[0-9-]+", text):
        try:
            if re.fullmatch(r"[0-9]{4}-[0-9]{2}", text):
                return After(_last_day(_day(read_date(f"{text}-01"))))
            return After(_day(read_date(text)))
        except UsageError:
            raise UsageError(f"after-cutoff {text!r}: there is no such day or month; {_DATES}") from None
    path, found = _result_of(text, results)
    high = found.overall.high
    if high is None:
        why = "knows all months of the data" if found.overall.verdict == "after the data" else found.overall.verdict
        raise InputError(f"{path}: the cutoff of {found.model} has no upper end ({why}); name a date instead")
    return After(_last_day(_day(f"{high}-01".replace("-", ""))), found.model)


@dataclass(frozen=True)
class Filter:
    """Which rows of a config are newer than a day.

    A row with a date of publication counts by it, a fact by its start, a fact that is gone by its end, and everything
    else by the first date of the interval. An unchanged fact counts only if it has a start before the interval.
    """

    day: datetime.date
    config: str
    interval: tuple[datetime.date, datetime.date] | None  # its first and last date

    @classmethod
    def of(cls, after: After, config: str, available: Iterable[str]) -> Filter:
        """Return the filter for a config; ``available`` are all configs, for the years of a short name."""
        kind, _, months = config.rpartition("-")
        long = [found for name in available if (found := _LONG.fullmatch(name)) and found[1] == kind]
        same = [found[0] for found in long if found[2][4:6] + found[3][4:6] == months]
        named = _LONG.fullmatch(max(same, default=config))
        return cls(after.day, config, (_day(named[2]), _day(named[3])) if named else None)

    def kept(self, rows: Any, split: str) -> Any:
        """Return the newer rows of a split, in the form of ``rows``: a dataset of `datasets`, streamed or not.

        Raises InputError if nothing dates the rows.
        """
        names = rows.column_names or list(next(iter(rows), {}))
        columns = [name for name in _COLUMNS if name in names and not self.config.startswith(_TEXTS)]
        if "published" not in columns and self.interval is None:
            lacks = (
                "no column 'published', and no config names its months with years, as probes-20211101-20211201 does"
            )
            raise InputError(f"{self.config}: does not say when its rows appeared: it has {lacks}")
        if "+" in split and "kind" not in columns:
            raise UsageError(f"{self.config}: {split!r}: name one split; these rows do not say which split is theirs")
        if not columns:
            return rows if self._keeps(split) else rows.take(0)
        return rows.filter(
            lambda *cells: self._keeps(split, **dict(zip(columns, cells, strict=True))), input_columns=columns
        )

    def _keeps(self, split: str, kind: str | None = None, **dates: Any) -> bool:
        known = {name: self._date(name, value) for name, value in dates.items()}
        if self.interval is None or "published" in known:
            published = known["published"]
            return published is not None and published > self.day
        first, last = self.interval
        gone = split.startswith("deleted") or kind in DELETED
        date = known.get("end_time" if gone else "start_time")
        # Both snapshots have what is unchanged, and what is to begin later was known before.
        if kind == "unchanged" or split.startswith("unchanged") or self.config.startswith(_UNCHANGED):
            return date is not None and self.day < date < first
        return (first if date is None or date >= last else date) > self.day

    def _date(self, column: str, value: Any) -> datetime.date | None:
        if value is None or isinstance(value, datetime.datetime):
            return value and value.date()
        raise InputError(f"{self.config}: {column} is {value!r}; a column of times is needed")


def _result_of(text: str, results: Path | None) -> tuple[Path, CutoffManifest]:
    path = Path(text)
    try:
        named = [file for file in (path, path / CUTOFF) if file.is_file()]
    except (OSError, ValueError):  # the name of a model may not be a path
        named = []
    if named:
        return named[0], read_cutoff(named[0])
    read = [(file, read_cutoff(file)) for file in cutoff_files(results)] if results else []
    found = [(file, cutoff) for file, cutoff in read if cutoff.model == text]
    if len(found) > 1:
        files = ", ".join(str(file) for file, _ in found)
        raise InputError(f"{text}: has {len(found)} cutoffs; name one of them: {files}")
    if not found:
        where = f", and no result of `temporalwiki cutoff` in {results} is of such a model" if results else ""
        raise InputError(f"{text}: not a result of `temporalwiki cutoff`{where}; {_DATES}")
    return found[0]


def _day(date: str) -> datetime.date:
    return datetime.date(int(date[:4]), int(date[4:6]), int(date[6:]))


def _last_day(day: datetime.date) -> datetime.date:
    return day.replace(day=calendar.monthrange(day.year, day.month)[1])
