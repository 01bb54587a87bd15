"""Import the files that the authors of TemporalWiki and CKL released into the configs that a build makes.

Columns that a file lacks are null in the config. No archive came with a licence, so manifests are marked as
``imported`` and are never published.
"""

from __future__ import annotations

import importlib.metadata
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import only_one
from temporalwiki.base.json_files import read_yaml
from temporalwiki.base.options import did_you_mean
from temporalwiki.base.terminal import say
from temporalwiki.builders.archive_members import Member, members, printable, read_csv
from temporalwiki.builders.ckl.config import CklConfig, RowCounts, described, unique_id, write
from temporalwiki.builders.ckl.templates import ANY_SENTINEL, SENTINEL
from temporalwiki.builders.configs import names
from temporalwiki.builders.dataset_folder import (
    Card,
    check_place,
    finish_install,
    install,
    problems,
    warn_of_damage,
    write_split,
)
from temporalwiki.builders.manifests import ImportedManifest, Manifest, checked_as, read_manifests
from temporalwiki.builders.snapshot import Interval

WIKI_FOLDER, CKL_FOLDER = Path("temporalwiki"), Path("ckl")
_LARGEST_ANSWERS = 256 << 20  # bytes; the file is read as a whole

FACT, TEXT = ("subject", "relation", "object"), ("text",)


class WikiFile(NamedTuple):
    """A released file of TemporalWiki, as a split of a config."""

    interval: Interval
    kind: str  # kind of the config, such as "probes"
    split: str
    columns: tuple[str, ...]
    rows: int | None  # rows of the released file; None if the paper does not say


class Source(NamedTuple):
    """A released file of CKL, as the source of a config; released_files.yaml explains the fields."""

    file: str
    kind: str
    columns: list[str]
    about: str
    optional: Sequence[str] = ()
    answers: str | None = None


_FILES = read_yaml(Path(__file__).with_name("released_files.yaml"))
WIKI_FILES = {
    name: WikiFile(Interval("enwiki", f"2021{prev}", f"2021{recent}"), kind, split, columns, rows)
    for prev, recent, unchanged, changed in _FILES["wiki"]
    for name, kind, split, columns, rows in (
        (f"{prev}-{recent}_unchanged.csv", "probes", "unchanged", FACT, unchanged),
        (f"{prev}-{recent}_changed.csv", "probes", "changed", FACT, changed),
        (f"wikipedia_{prev[:2]}{recent[:2]}_gpt2.csv", "diffset", "train", TEXT, None),
    )
}
CKL_FILES = {name: Source(**source) for name, source in _FILES["ckl"].items()}


def import_archives(paths: Sequence[Path], out: Path | None = None, card: Card | None = None) -> Iterator[str]:
    """Import the released files at ``paths`` into dataset folders, and yield a line for each split.

    TemporalWiki's files go to ``./temporalwiki`` and CKL's to ``./ckl``, or all of them to ``out`` if they are of one
    kind. ``card`` makes the text of README.md. A config of the same name is replaced if it was imported, but never if
    it was built.

    Raises UsageError if ``out`` is given for files of both kinds, and InputError for files that cannot be imported.
    """
    found, unknown = recognise(paths)
    intervals = dict.fromkeys(file.interval for name, file in WIKI_FILES.items() if name in found)
    configs = [name for name, source in CKL_FILES.items() if source.file in found]
    if out is not None and intervals and configs:
        raise UsageError("--out: files of TemporalWiki and CKL need two dataset folders; import one after the other")
    for interval in intervals:
        yield from _import_interval(found, interval, (out or WIKI_FOLDER).resolve(), card)
    for name in configs:
        yield _import_ckl(found, name, out or CKL_FOLDER, card)
    if unknown:
        yield f"not imported, unknown: {printable(', '.join(member.name for member in unknown))[:400]}"


def recognise(paths: Sequence[Path]) -> tuple[dict[str, Member], list[Member]]:
    """Return the released files at ``paths`` by name, and all other files. Raises InputError for a wrong header."""
    columns: dict[str, Sequence[str]] = {name: file.columns for name, file in WIKI_FILES.items()}
    columns |= {source.file: source.columns for source in CKL_FILES.values()}
    known = {name.lower(): name for name in (*columns, *(one.answers for one in CKL_FILES.values() if one.answers))}
    found: dict[str, Member] = {}
    unknown: list[Member] = []
    for member in members(paths):
        name = known.get(member.name.lower())
        if name is None:
            unknown.append(member)
        elif found.setdefault(name, member).sha256() != member.sha256():
            raise InputError(f"{found[name].where} and {member.where}: two different {name}; name the one to import")
    for member in unknown:
        if member.path in paths and member.inside is None:
            near = did_you_mean(member.name, known.values())
            raise InputError(f"{member.where}: no file of a released archive{near}")
    if not columns.keys() & found.keys():
        where = ", ".join(map(str, paths))
        raise InputError(f"{where}: no CSV file of a released archive; `temporalwiki import --help` names the files")
    for name in columns.keys() & found.keys():
        other = name.replace("_unch", "_ch") if "_unch" in name else name.replace("_ch", "_unch")
        if name in WIKI_FILES and other not in found:
            raise InputError(f"{found[name].where}: {other} is missing; probes are imported with both splits")
        next(read_csv(found[name], columns[name]))
    return found, unknown


def _import_interval(found: dict[str, Member], interval: Interval, out: Path, card: Card | None) -> Iterator[str]:
    content: dict[str, Any] = {
        "format": 1,
        "made_by": f"temporalwiki {importlib.metadata.version('temporalwiki')}",
        "imported": True,
        "interval": {key: getattr(interval, key) for key in ("wiki", "language", "prev", "recent")},
        "inputs": [],
        "counts": {},
        "warnings": [],
        "configs": {},
    }
    lines = dict[str, RowCounts]()
    check_place(out)
    staged = out.with_name(f".{out.name}.import")
    with only_one(out, "import"):
        shutil.rmtree(staged, ignore_errors=True)  # from an import that was killed
        finish_install(out)
        warn_of_damage(out, interval.name)
        there = next((one for one in read_manifests(out) if one.name == interval.name), None)
        if there is not None and not there.imported:
            raise InputError(f"{out}: {interval.name} was made by `temporalwiki build`; choose another --out")
        try:
            for name, file in WIKI_FILES.items():
                if file.interval != interval or name not in found:
                    continue
                config, short = names(file.kind, interval)
                counted, warnings, inside = RowCounts(), list[str](), found[name].inside
                if file.kind == "probes":
                    rows = read_facts(found[name], file.split, counted, warnings)
                else:  # texts without their pages
                    rows = _rows_of(found[name], Source(name, "diffset", [*TEXT], ""), TEXT, counted, warnings)
                written = asdict(write_split(staged, config, file.split, rows))
                if file.rows not in (None, counted.read):
                    cut = f"{counted.read:,} rows, the released file has {file.rows:,}: was it cut off?"
                    warnings.append(f"{name}: {cut}")
                lines[f"{found[name].where}: {config} (in short {short}), split {file.split}"] = counted
                of_config = content["configs"].setdefault(config, {"short_name": short, "splits": {}})
                of_config["splits"][file.split] = written
                content["counts"].setdefault(config, {})[file.split] = counted.as_json()
                content["warnings"] += [f"{config}: {warning}" for warning in warnings]
                content["inputs"] += [
                    one | {"config": config, "file": printable(one["file"]), "member": inside and printable(inside)}
                    for one in described([found[name].path])
                ]
            if there is not None:
                _keep(there, content, out, staged)
            content["inputs"].sort(key=lambda one: (one["config"], one["file"], one["member"] or ""))
            content["warnings"].sort()
            manifest = checked_as(ImportedManifest, content, interval.name)
            install(staged, manifest, out, card)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    yield from _told(manifest.warnings, lines)


def _keep(before: Manifest, content: dict[str, Any], out: Path, staged: Path) -> None:
    """Add the configs of an earlier import of the interval, such as probes when a diffset is imported."""
    for config in before.configs.keys() - content["configs"].keys():
        if damage := [line for line in problems(out, before) if line.startswith(f"data/{config}/")]:
            raise InputError(f"{out}: {damage[0]}; import the files of {config} together with these")
        for split in before.configs[config].splits.values():
            for file in split.files:
                (staged / file.path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(out / file.path, staged / file.path)
        content["configs"][config] = before.content["configs"][config]
        content["counts"][config] = before.content["counts"][config]
        content["inputs"] += [one for one in before.content["inputs"] if one.get("config") == config]
        content["warnings"] += [text for text in before.warnings if text.startswith(f"{config}: ")]


def _told(warnings: Sequence[str], counts: Mapping[str, RowCounts]) -> Iterator[str]:
    """Print warnings, and yield a line for each split."""
    for warning in warnings:
        say(f"warning: {warning}")
    for split, counted in counts.items():
        dropped = "".join(f", dropped {number:,}: {reason}" for reason, number in sorted(counted.dropped.items()))
        yield f"{split}: {counted.kept:,} of {counted.read:,} rows{dropped}"


def _rows_of(
    member: Member, source: Source, needed: Sequence[str], counts: RowCounts, warnings: list[str]
) -> Iterator[dict[str, str]]:
    """Yield each row that has the ``needed`` columns, once. Raises InputError if no row has them."""
    seen = set()
    separator = ";" if source.kind == "easy" else " "  # of a list of answers
    rows = read_csv(member, source.columns, source.optional, warnings)
    next(rows)  # the header
    for cells in rows:
        counts.read += 1
        row = tuple(cells.values())
        if missing := next((name for name in needed if not cells[name].replace(separator, " ").strip()), None):
            counts.drop(f"no {missing}")
        elif row in seen:
            counts.drop("the same row again")
        else:
            counts.kept += 1
            if source.kind not in ("news", "diffset"):  # gigabytes of articles, and each article counts
                seen.add(row)
            yield cells
    if not counts.kept:
        raise InputError(f"{member.where}: no rows to import of {counts.read:,}")


def read_facts(member: Member, split: str, counts: RowCounts, warnings: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of probes, each fact once. Changed facts have no ``kind``: the files do not say why."""
    kind = "unchanged" if split == "unchanged" else None
    for cells in _rows_of(member, Source(member.name, "probes", [*FACT], ""), FACT, counts, warnings):
        yield {**cells, "kind": kind, "previous_objects": []}


def _import_ckl(found: dict[str, Member], name: str, out: Path, card: Card | None) -> str:
    source, counts, warnings = CKL_FILES[name], RowCounts(), list[str]()
    member, answers = found[source.file], found.get(source.answers or "")
    kind, about = source.kind, source.about
    split = "train" if source.kind == "news" or name.startswith("lighttuning") else "test"
    if kind == "news":
        if "input" in next(read_csv(member, source.columns, source.optional)):
            kind, about = "masked-news", f"{about}, and with its salient spans masked"
        cells = _rows_of(member, source, source.columns[:1], counts, warnings)
        rows: Iterator[dict[str, Any]] = (
            {"id": str(counts.read), "text": row.pop("original", "") or _filled(row["input"], row["output"]), **row}
            for row in cells
        )
    else:
        rows = read_clozes(member, name, read_answers(answers) if answers else {}, counts, warnings)
        if source.answers and answers is None:
            warnings.append(f"{name}: no {source.answers}: all answers are from {source.file}")
    config = CklConfig(
        name=name,
        kind=kind,
        splits={split: rows},
        about=about,
        licences=("cc-by-nc-4.0",) if kind == "invariant" else ("unknown",),  # the licence of LAMA
        source="the archive that the authors of CKL (Jang et al., 2022) released; no licence came with it",
        inputs=list(dict.fromkeys(one.path for one in (member, answers) if one)),
        imported=True,
        options={"file": source.file},
        counts=counts,
        warnings=warnings,
    )
    manifest = write(config, out, card)
    return next(_told(manifest.warnings, {f"{member.where}: {name}, split {split}": counts}))


def _filled(masked: str, output: str) -> str:
    """Return a text with its masked spans filled in: the full corpus of Wikipedia has no column with the text."""
    parts = re.split(f"({ANY_SENTINEL.pattern})", output)
    spans = dict(zip(parts[1::2], map(str.strip, parts[2::2]), strict=True))
    return ANY_SENTINEL.sub(lambda match: spans.get(match[0], ""), masked)


def read_clozes(
    member: Member, name: str, answers: Mapping[str, Answers], counts: RowCounts, warnings: list[str]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a CKL benchmark; ``answers`` by id replace the answer in the row."""
    source = CKL_FILES[name]
    id_column, statement, *_, answer = source.columns
    asked = "question" if name.endswith("newquestions-easy") else statement
    ids: dict[str, int] = {}
    notes = Counter[str]()
    for cells in _rows_of(member, source, (asked, answer), counts, warnings):
        id = cells[id_column].strip()
        accepted = None if id in ids else answers.get(id)  # if two rows have an id, its answers belong to the first
        new = _distinct(cells[answer].split(";") if source.kind == "easy" else [cells[answer]])
        old = _distinct([cells.get("old_answer", "")])
        if asked == statement and cells[statement].count(SENTINEL) != 1:
            notes[f"not exactly one {SENTINEL}, so they cannot be asked"] += 1
        if answers and accepted is None:
            notes[f"no answers in {source.answers}, so the answers in {source.file} count"] += 1
        row: dict[str, Any] = {
            "id": unique_id(id or str(counts.read), ids),
            "statement": cells[statement].strip() or None,
        }
        if source.kind == "invariant":
            yield row | {"object": new[0]}
            continue
        row["question"] = cells.get("question", "").strip() or None
        row["answers"] = (accepted and accepted.new) or new
        yield row | ({"old_answers": (accepted and accepted.old) or old} if source.kind == "annotated" else {})
    warnings += [f"{name}: {number:,} rows have {note}" for note, number in sorted(notes.items())]


class Answers(msgspec.Struct):
    """The answers to a row that count as right now (``new``) and before the change (``old``)."""

    new: Sequence[str | int | float] = ()
    old: Sequence[str | int | float] = ()


def read_answers(member: Member) -> dict[str, Answers]:
    """Return the accepted answers by id. A file lists either plain answers or pairs of new and old answers.

    Raises InputError for any other content.
    """
    with member.open() as file:
        data = file.read(_LARGEST_ANSWERS).removeprefix(b"\xef\xbb\xbf")
    try:
        read = msgspec.json.decode(data, type=dict[str, list[Answers | str | int | float]])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{member.where}: not a file with answers by id: {error}") from None
    answers = {}
    for id, listed in read.items():
        each = [one if isinstance(one, Answers) else Answers([one]) for one in listed]
        new, old = ([text for one in each for text in getattr(one, side)] for side in ("new", "old"))
        answers[id.strip()] = Answers(_distinct(new), _distinct(old))
    return answers


def _distinct(texts: Sequence[str | int | float]) -> list[str]:
    return [text for text in dict.fromkeys(str(text).strip() for text in texts) if text]
