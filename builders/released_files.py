"""What was released of TemporalWiki and CKL: the configs, the names and columns of their files, and which are there.

The probes and diffsets that were released are of 2021, with the months in the names of their files. CKL's files are
one a benchmark or corpus, with more answers in JSON beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from temporalwiki.base.errors import InputError
from temporalwiki.builders.archive_members import CsvFile, Member, members
from temporalwiki.builders.snapshot import Interval

_INTERVALS = (("0801", "0901"), ("0901", "1001"), ("1001", "1101"), ("1101", "1201"))  # that were released, of 2021
SPLITS_OF_PROBES = ("unchanged", "changed")
# Rows of the released probes by the names of their files (Table 2): cut off between two rows, a file is still CSV.
ROWS = {
    f"{prev}-{recent}_{split}.csv": rows
    for (prev, recent), of in zip(_INTERVALS, ((6935, 1776), (7340, 1982), (7313, 1358), (7293, 1951)), strict=True)
    for split, rows in zip(SPLITS_OF_PROBES, of, strict=True)
}


@dataclass(frozen=True)
class Released:
    """A config, and the released file that it is made of."""

    config: str
    file: str
    kind: str  # of the config's columns, in builders/ckl/schemas.py
    split: str
    columns: tuple[str, ...]
    optional: tuple[str, ...] = ()
    answers: str | None = None  # the file with all accepted answers, by the rows' ids
    about: str = ""


_EASY = ("unique_id", "statement", "question", "answer")
_PIECE = "a piece of a news article, as the authors cut it"
RELEASED = (
    Released(
        "invariantlama", "invariantLAMA.csv", "invariant", "test", ("id", "input", "output"),
        about="a cloze about a fact that does not change",
    ),
    Released(
        "updatedlama", "updatedLAMA.csv", "annotated", "test", ("unique_id", "statement", "new_answer"),
        ("question", "old_answer"), "updatedlama_val_answers.json",
        about="a cloze about a fact that was another one before, decided upon by annotators",
    ),
    Released(
        "newlama", "newLAMA.csv", "annotated", "test", ("unique_id", "statement", "answer"),
        ("question",), "recentlama_h_val_answers.json",
        about="a cloze about a fact that is new, decided upon by annotators",
    ),
    Released(
        "newlama-easy", "newLAMA_easy.csv", "easy", "test", _EASY, answers="recentlama_val_answers.json",
        about="a cloze about a fact that is new, made by machines",
    ),
    Released(
        "newquestions-easy", "newLAMA_easy.csv", "easy", "test", _EASY, answers="recentlama_val_answers.json",
        about="a question about a fact that is new, made by machines",
    ),
    *(
        Released(config, f"{file}.csv", "masked-news", "train", ("original",), ("input", "output"), about=_PIECE)
        for config, file in (
            ("recentnews", "recent_news_full"),
            ("recentnews-small", "recent_news_small"),
            ("recentnews-small-p1", "recent_news_small1"),
            ("recentnews-small-p2", "recent_news_small2"),
        )
    ),
)  # fmt: skip

_PROBES = {
    f"{prev}-{recent}_{split}.csv": (Interval("enwiki", f"2021{prev}", f"2021{recent}"), split)
    for prev, recent in _INTERVALS
    for split in SPLITS_OF_PROBES
}
_DIFFSETS = {
    f"wikipedia_{prev[:2]}{recent[:2]}_gpt2.csv": Interval("enwiki", f"2021{prev}", f"2021{recent}")
    for prev, recent in _INTERVALS
}
NAMES = {
    name.lower(): name
    for name in (*_PROBES, *_DIFFSETS, *(one.file for one in RELEASED), *(one.answers for one in RELEASED))
    if name
}


@dataclass
class Found:
    """Files of released archives, by the names that they were released under."""

    files: dict[str, Member] = field(default_factory=dict)
    others: list[Member] = field(default_factory=list)  # that are none of them

    @property
    def intervals(self) -> list[Interval]:
        """The intervals of which there is something, oldest first."""
        there = [_PROBES[name][0] for name in self.files if name in _PROBES]
        there += [_DIFFSETS[name] for name in self.files if name in _DIFFSETS]
        return sorted(set(there), key=lambda interval: interval.name)

    @property
    def ckl(self) -> list[Released]:
        """CKL's configs of which the file is there."""
        return [one for one in RELEASED if one.file in self.files]

    def probes(self, interval: Interval) -> dict[str, CsvFile]:
        """The probes of an interval by split."""
        columns = ("subject", "relation", "object")
        of = {split: name for name, (its, split) in _PROBES.items() if its == interval and name in self.files}
        return {split: CsvFile(self.files[of[split]], columns) for split in SPLITS_OF_PROBES if split in of}

    def diffset(self, interval: Interval) -> CsvFile | None:
        """The diffset of an interval."""
        of = [name for name, its in _DIFFSETS.items() if its == interval and name in self.files]
        return CsvFile(self.files[of[0]], ("text",)) if of else None

    def rows(self, released: Released) -> CsvFile:
        """The rows of one of CKL's configs."""
        return CsvFile(self.files[released.file], released.columns, released.optional)


def recognise(paths: Sequence[Path]) -> Found:
    """Find the released files at ``paths`` (files, folders at any depth, zips) by their names, and read their headers.

    Raises InputError for a named file that is none of them, where there is none at all, one is there twice, has other
    columns or cannot be read, and where an interval's probes lack one of their two splits.
    """
    found = Found()
    for member in members(paths):
        name = NAMES.get(member.name.lower())
        if name is None:
            if member.inside is None and member.path in paths:
                raise InputError(f"{member.where}: not a file of a released archive{_nearest([member.name])}")
            found.others.append(member)
        elif name in found.files and not found.files[name].same(member):
            raise InputError(
                f"{found.files[name].where} and {member.where}: two {name} that differ; give the one to import"
            )
        else:
            found.files[name] = member
    if not found.intervals and not found.ckl:
        where = ", ".join(map(str, paths))
        if found.files:
            raise InputError(f"{where}: answers without their questions: a csv file of CKL's belongs to them")
        near = _nearest([member.name for member in found.others])
        raise InputError(f"{where}: no file of a released archive there{near}")
    for name, (interval, split) in _PROBES.items():
        have = found.probes(interval)
        if have and split not in have:
            [other] = have.values()
            raise InputError(f"{other.member.where}: {name} is missing; probes are imported with both splits")
    for interval in found.intervals:
        for file in (*found.probes(interval).values(), found.diffset(interval)):
            if file is not None:
                file.header()
    for released in found.ckl:
        found.rows(released).header()
    return found


def _nearest(known: Sequence[str]) -> str:
    """Return a hint at the released file whose name is nearest to one of these."""
    for name in known:
        if near := get_close_matches(name.lower(), NAMES, n=1, cutoff=0.7):
            return f"; did you mean {NAMES[near[0]]}?"
    return "; known are 0801-0901_changed.csv, wikipedia_0809_gpt2.csv and the like, and CKL's csv files"
