"""Released archives: the authors' files of TemporalWiki and CKL, imported to the configs that a build makes.

The probes and diffsets that were released are of 2021, with the months in the names of their files. CKL's files are
one a benchmark or corpus, with more answers in JSON beside them. What a file does not say is null in the config. No
archive came with a licence: manifests say ``imported``, and what they describe is never published.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tqdm import tqdm

from temporalwiki.builders.archive_members import CsvFile, Member, members, shown
from temporalwiki.builders.ckl.config import Config, Counts, write
from temporalwiki.builders.dataset_folder import (
    Manifest,
    check_place,
    finish_install,
    install,
    interval_name,
    is_ckl,
    names,
    read_manifests,
    write_split,
)
from temporalwiki.builders.engine import only_one
from temporalwiki.builders.errors import InputError, UsageError
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.streams import digest

Cells = dict[str, str]
Row = dict[str, Any]

WIKI_FOLDER, CKL_FOLDER = Path("temporalwiki"), Path("ckl")

_INTERVALS = (("0801", "0901"), ("0901", "1001"), ("1001", "1101"), ("1101", "1201"))  # that were released, of 2021
_SPLITS = ("unchanged", "changed")
# Rows of the released probes by the names of their files (Table 2): cut off between two rows, a file is still CSV.
_ROWS = {
    f"{prev}-{recent}_{split}.csv": rows
    for (prev, recent), of in zip(_INTERVALS, ((6935, 1776), (7340, 1982), (7313, 1358), (7293, 1951)), strict=True)
    for split, rows in zip(_SPLITS, of, strict=True)
}
_BOTH = "facts are in both splits"
_BLANK = "<extra_id_0>"
_LARGEST_ANSWERS = 256 << 20  # bytes; the file is read whole


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
    for split in _SPLITS
}
_DIFFSETS = {
    f"wikipedia_{prev[:2]}{recent[:2]}_gpt2.csv": Interval("enwiki", f"2021{prev}", f"2021{recent}")
    for prev, recent in _INTERVALS
}
_ALL = {
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
        return {split: CsvFile(self.files[of[split]], columns) for split in _SPLITS if split in of}

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
        name = _ALL.get(member.name.lower())
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
        if near := get_close_matches(name.lower(), _ALL, n=1, cutoff=0.7):
            return f"; did you mean {_ALL[near[0]]}?"
    return "; known are 0801-0901_changed.csv, wikipedia_0809_gpt2.csv and the like, and CKL's csv files"


def import_archives(paths: Sequence[Path], out: Path | None = None) -> Iterator[str]:
    """Import the released files at ``paths`` into dataset folders, and yield what is done, a line each.

    Probes and diffsets go to ``./temporalwiki``, CKL's files to ``./ckl``, or what is there of one kind to ``out``.
    Each interval and each of CKL's configs is written whole or not at all, beside those of earlier imports; what was
    built from dumps is never overwritten. Raises UsageError for both kinds with one ``out``, and InputError for what
    ``recognise`` refuses, a folder that is something else, and rows that cannot be read.
    """
    found = recognise(paths)
    if out is not None and found.intervals and found.ckl:
        raise UsageError(
            "--out: there are files of TemporalWiki and of CKL, which are two dataset folders: import them one after "
            f"the other, or leave --out away for ./{WIKI_FOLDER} and ./{CKL_FOLDER}"
        )
    wiki, ckl = (out or WIKI_FOLDER).resolve(), (out or CKL_FOLDER).resolve()
    for interval in found.intervals:
        _imported_before(wiki, interval.name)
    for released in found.ckl:
        _imported_before(ckl, released.config)
    for interval in found.intervals:
        yield from _import_interval(found, interval, wiki)
    for released in found.ckl:
        yield from _import_config(found, released, ckl)
    if found.others:
        named = ", ".join(shown(member.name) for member in found.others[:8])
        more = f" and {len(found.others) - 8:,} more" if len(found.others) > 8 else ""
        yield f"not imported, as no config is made of it: {named}{more}"


def _imported_before(folder: Path, name: str) -> Manifest | None:
    """Return the manifest of an interval, or of a config of CKL, that was imported into a folder before.

    Raises InputError where it was not imported but built, and where the folder is something else.
    """
    check_place(folder)
    for manifest in read_manifests(folder):
        if name == (manifest["config"] if is_ckl(manifest) else interval_name(manifest)):
            if not manifest.get("imported"):
                raise InputError(
                    f"{folder}: {name} is there, made by `temporalwiki {'ckl' if is_ckl(manifest) else 'build'}`; it "
                    "is not overwritten: choose another --out"
                )
            return manifest
    return None


def _import_interval(found: Found, interval: Interval, out: Path) -> Iterator[str]:
    seen: set[bytes] = set()
    sources = []
    for split, file in found.probes(interval).items():
        counts, warned = Counts(), list[str]()
        sources.append(("probes", split, file, counts, warned, _probes(file, split, counts, seen, warned)))
    if (diffset := found.diffset(interval)) is not None:
        counts, warned = Counts(), list[str]()
        sources.append(("diffset", "train", diffset, counts, warned, _articles(diffset, counts, warned)))
    manifest = _empty_manifest(interval)
    with only_one(out, "import"):
        staged = out.with_name(f".{out.name}.import")
        shutil.rmtree(staged, ignore_errors=True)  # of an import that was killed
        finish_install(out)
        before = _imported_before(out, interval.name)
        try:
            if before is not None:
                _keep(before, manifest, {names(kind, interval)[0] for kind, *_ in sources}, out, staged)
            for kind, split, file, counts, warned, rows in sources:
                config, short = names(kind, interval)
                progress = tqdm(rows, desc=f"{config} {split}", unit="row", disable=not sys.stderr.isatty())
                written = asdict(write_split(staged, config, split, progress))
                manifest["configs"].setdefault(config, {"short_name": short, "splits": {}})["splits"][split] = written
                manifest["counts"].setdefault(config, {})[split] = _as_json(counts)
                manifest["inputs"].append({"config": config, **_input(file.member)})
                manifest["warnings"] += [f"{config}: {warning}" for warning in warned]
            if both := sum(counts.more.get(_BOTH, 0) for *_, counts, _, _ in sources):
                manifest["warnings"].append(f"{names('probes', interval)[0]}: {both:,} {_BOTH}")
            manifest["warnings"].sort()
            manifest["inputs"].sort(key=lambda one: (one["config"], one["file"], one["member"] or ""))
            install(staged, manifest, out)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    _warn(manifest)
    for kind, split, file, counts, *_ in sources:
        config, short = names(kind, interval)
        yield f"{file.member.where}: {config} (in short {short}), split {split}: {_in_words(counts)}"


def _warn(manifest: Manifest) -> None:
    for warning in manifest["warnings"]:
        print(f"warning: {warning}", file=sys.stderr)


def _empty_manifest(interval: Interval) -> Manifest:
    return {
        "format": 1,
        "made_by": f"temporalwiki {importlib.metadata.version('temporalwiki')}",
        "imported": True,
        "interval": {
            "wiki": interval.wiki,
            "language": interval.language,
            "prev": interval.prev,
            "recent": interval.recent,
        },
        "inputs": [],
        "counts": {},  # by config and split
        "warnings": [],
        "configs": {},
    }


def _keep(before: Manifest, manifest: Manifest, replaced: set[str], out: Path, staged: Path) -> None:
    """Take over the configs of the interval that were imported before and are not now."""
    interval = Interval(*(manifest["interval"][key] for key in ("wiki", "prev", "recent")))
    for kind in ("probes", "diffset"):
        config, _ = names(kind, interval)
        if config in before["configs"] and config not in replaced:
            manifest["configs"][config] = before["configs"][config]
            manifest["counts"][config] = before["counts"][config]
            manifest["inputs"] += [one for one in before["inputs"] if one["config"] == config]
            manifest["warnings"] += [text for text in before["warnings"] if text.startswith(f"{config}: ")]
            shutil.copytree(out / "data" / config, staged / "data" / config, copy_function=_link)


def _link(source: str, target: str) -> None:
    """Give a file a second name, or copy it where the file system cannot."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _input(member: Member) -> Row:
    """Name a file without where it lay on this machine."""
    path = member.path
    return {
        "file": shown(path.name),
        "member": member.inside and shown(member.inside),
        "size": path.stat().st_size,
        "sha1": digest(path, "sha1"),
    }


def _probes(file: CsvFile, split: str, counts: Counts, seen: set[bytes], warnings: list[str]) -> Iterator[Row]:
    for cells in file.rows(warnings):
        counts.read += 1
        keys = {of: _key(of, *cells.values()) for of in _SPLITS}
        missing = next((name for name in file.columns if not cells[name].strip()), None)
        if missing is not None:
            counts.drop(f"no {missing}")
        elif keys[split] in seen:
            counts.drop("the same fact again")
        else:
            counts.kept += 1
            counts.more[_BOTH] = counts.more.get(_BOTH, 0) + (not seen.isdisjoint(keys.values()))
            seen.add(keys[split])
            # of what changed it is not said why: the subject, the relation or the object is new
            yield {**cells, "kind": "unchanged" if split == "unchanged" else None, "previous_objects": []}
    _check_kept(file, counts)
    name = _ALL[file.member.name.lower()]
    if counts.read != _ROWS[name]:
        warnings.append(
            f"{name}: {counts.read:,} rows, and the released file has {_ROWS[name]:,}: cut off, or another file?"
        )


def _articles(file: CsvFile, counts: Counts, warnings: list[str]) -> Iterator[Row]:
    for cells in file.rows(warnings):
        counts.read += 1
        if cells["text"].strip():
            counts.kept += 1
            yield dict(cells)
        else:
            counts.drop("no text")
    _check_kept(file, counts)


def _import_config(found: Found, released: Released, out: Path) -> Iterator[str]:
    file, counts = found.rows(released), Counts()
    answers = found.files.get(released.answers) if released.answers else None
    warnings: list[str] = []
    if released.answers and answers is None:
        warnings.append(f"{released.config}: no {released.answers} there: answers are those of {released.file} alone")
    if released.kind == "masked-news":
        kind = "masked-news" if set(released.optional) <= set(file.header()) else "news"
        rows = _pieces(file, released, counts, warnings)
    else:
        kind = released.kind
        rows = _clozes(file, released, _read_answers(answers) if answers else {}, counts, warnings)
    config = Config(
        name=released.config,
        kind=kind,
        splits={released.split: rows},
        about=released.about + (", and with its salient spans masked" if kind == "masked-news" else ""),
        licences=("cc-by-nc-4.0",) if kind == "invariant" else ("unknown",),  # the former is LAMA's
        source="the archive that the authors of CKL (Jang et al., 2022) released; no licence came with it",
        inputs=list(dict.fromkeys(member.path for member in (file.member, answers) if member)),
        imported=True,
        options={"file": released.file},
        counts=counts,
        warnings=warnings,
    )
    _warn(write(config, out))
    yield f"{file.member.where}: {config.name}, split {released.split}: {_in_words(counts)}"


def _pieces(file: CsvFile, released: Released, counts: Counts, warnings: list[str]) -> Iterator[Row]:
    of_file: list[str] = []
    for cells in file.rows(of_file):
        counts.read += 1
        if cells["original"].strip():
            counts.kept += 1
            # there is no id in the file: it is the row's number
            masked = {name: cells[name] for name in ("input", "output") if len(cells) == 3}
            yield {"id": str(counts.read), "text": cells["original"], **masked}
        else:
            counts.drop("no text")
    _check_kept(file, counts)
    warnings += [f"{released.config}: {warning}" for warning in of_file]


def _clozes(
    file: CsvFile, released: Released, answers: dict[str, _Answers], counts: Counts, warnings: list[str]
) -> Iterator[Row]:
    id_column, statement, *_, answer = released.columns
    asked = "question" if released.config == "newquestions-easy" else statement
    seen: set[bytes] = set()
    ids: set[str] = set()
    notes: Counter[str] = Counter()
    found: set[str] = set()
    of_file: list[str] = []
    for cells in file.rows(of_file):
        counts.read += 1
        id = cells[id_column].strip()
        accepted = _in_cells(cells, answer, released.kind)
        again = id in found
        if id in answers and not again:  # an id that two rows have is the first one's
            found.add(id)
            accepted = _Answers(answers[id].new or accepted.new, answers[id].old or accepted.old)
        key = _key(*cells.values())
        if not cells[asked].strip():
            counts.drop(f"no {asked}")
        elif not accepted.new:
            counts.drop("no answer")
        elif key in seen:
            counts.drop("the same row again")
        else:
            counts.kept += 1
            seen.add(key)
            if asked == statement and cells[statement].count(_BLANK) != 1:
                notes[f"without exactly one {_BLANK}, so that they cannot be asked"] += 1
            if answers and id not in answers:
                notes[f"without answers in {released.answers}, so that those of {released.file} count"] += 1
            if again:
                notes[f"with the id of a row before, so that the answers of {released.file} count"] += 1
            row: Row = {"id": _unique(id or str(counts.read), ids), "statement": cells[statement].strip() or None}
            if released.kind == "invariant":
                yield row | {"object": accepted.new[0]}
                continue
            row |= {"question": cells.get("question", "").strip() or None, "answers": accepted.new}
            yield row | ({"old_answers": accepted.old} if released.kind == "annotated" else {})
    _check_kept(file, counts)
    warnings += [f"{released.config}: {warning}" for warning in of_file]
    warnings += [f"{released.config}: rows {what}: {number:,}" for what, number in sorted(notes.items())]
    if unasked := len(answers.keys() - found):
        warnings.append(f"{released.config}: ids in {released.answers} of no row of {released.file}: {unasked:,}")


class _Answers(NamedTuple):
    """What is accepted: now, and before."""

    new: list[str]
    old: list[str]


_Text = str | int | float


class _OldAndNew(msgspec.Struct):
    old: list[_Text] = []
    new: list[_Text] = []


def _in_cells(cells: Cells, answer: str, kind: str) -> _Answers:
    """Return the answers that a row itself has; those of the easy files have a semicolon in between."""
    new = cells[answer].split(";") if kind == "easy" else [cells[answer]]
    return _Answers(_distinct(new), _distinct([cells.get("old_answer", "")]))


def _read_answers(member: Member) -> dict[str, _Answers]:
    """Return the accepted answers by the ids of rows: lists of them, or of lists of old and new ones."""
    data = member.read(_LARGEST_ANSWERS).removeprefix(b"\xef\xbb\xbf")
    try:
        read = msgspec.json.decode(data, type=dict[str, list[_OldAndNew | _Text]])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{member.where}: not a file with answers by id: {error}") from None
    answers = {}
    for id, listed in read.items():
        new = [text for one in listed for text in (one.new if isinstance(one, _OldAndNew) else [one])]
        old = [text for one in listed if isinstance(one, _OldAndNew) for text in one.old]
        answers[id.strip()] = _Answers(_distinct(new), _distinct(old))
    return answers


def _distinct(texts: Sequence[_Text]) -> list[str]:
    return [text for text in dict.fromkeys(str(text).strip() for text in texts) if text]


def _unique(id: str, taken: set[str]) -> str:
    """Return an id that no row before has: the first with it keeps it, others get a number."""
    made, number = id, 1
    while made in taken:
        number += 1
        made = f"{id}-{number}"
    taken.add(made)
    return made


def _key(*texts: str) -> bytes:
    """Return what equal texts have in common; some hundred bytes of memory in a set."""
    return hashlib.blake2b(msgspec.msgpack.encode(texts), digest_size=16).digest()


def _check_kept(file: CsvFile, counts: Counts) -> None:
    if not counts.kept:
        raise InputError(f"{file.member.where}: no rows to import in it: {_in_words(counts)}")


def _as_json(counts: Counts) -> Row:
    return {"read": counts.read, "kept": counts.kept, "dropped": dict(sorted(counts.dropped.items()))}


def _in_words(counts: Counts) -> str:
    dropped = "".join(f", dropped {number:,}: {reason}" for reason, number in sorted(counts.dropped.items()))
    return f"{counts.kept:,} of {counts.read:,} rows{dropped}"
