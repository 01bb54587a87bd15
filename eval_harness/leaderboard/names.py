"""Names for people: of methods, and of months."""

import re
from collections.abc import Sequence

from temporalwiki.eval_harness.cutoff.changes import MONTHS
from temporalwiki.methods import CONTROLS, METHODS


def method_name(label: str) -> str:
    """Return a label with its method's name as the paper writes it: "Mix-Review, gpt2" for "mix_review, gpt2"."""
    method, mark = re.match(r"(\w*)(, | \(|$)?", label).groups()  # type: ignore[union-attr]
    entry = (METHODS | CONTROLS).get(method)
    return entry.name + label[len(method) :] if entry and mark is not None else label


def month_name(month: str) -> str:
    """Return a month of a config in words: "October to November 2021" for "20211001-20211101".

    A name without a year, such as "1112", gets none. Text that is not a month is returned unchanged.
    """
    dates = _dates(month)
    with_year = {year: i for i, (year, _) in enumerate(dates)}  # a year is written once, after its last month
    parts = [name + (f" {year}" if year and with_year[year] == i else "") for i, (year, name) in enumerate(dates)]
    return " to ".join(parts) or month


def short_month(month: str, between: str = "\n") -> str:
    """Return a month of a config for the axis of a figure: "Oct–Nov", and "2021" on a second line.

    Whole years are "Jan", and "2021–2023".
    """
    dates = _dates(month)
    names = list(dict.fromkeys(re.sub(r"([A-Z]..)[a-z]*", r"\1", name) for _, name in dates))
    if len(names) < len(dates) and dates[0][0] < dates[-1][0]:
        return f"{names[0]}{between}{dates[0][0]}–{dates[-1][0]}"
    return f"{'–'.join(names)}{between}{dates[-1][0]}".rstrip() if dates else month


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence: "A", "A and B" or "A, B and C"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _dates(month: str) -> list[tuple[str, str]]:
    """Return (year, month's name) of each date in the name of a month, with the day if it is not the first."""
    if not re.fullmatch(r"\d{8}(-\d{8})?|(\d\d){1,2}", month):
        return []
    found = []
    for digits in re.findall(r"\d{8}" if len(month) >= 8 else r"\d\d", month):
        year, number, day = (digits[:4], digits[4:6], digits[6:]) if len(digits) == 8 else ("", digits, "01")
        if not 1 <= int(number) <= 12:
            return []
        name = MONTHS[int(number) - 1]
        found.append((year, name if day == "01" else f"{int(day)} {name}"))
    return found
