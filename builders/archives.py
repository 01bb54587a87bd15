"""Released archives: the authors' files of TemporalWiki and CKL, imported to the configs that a build makes.

What a file does not say is null in the config. No archive came with a licence: manifests say ``imported``, and what
they describe is never published.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tqdm import tqdm

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import only_one
from temporalwiki.builders.archive_members import CsvFile, Member, shown
from temporalwiki.builders.ckl.config import Config, Counts, unique_id, write
from temporalwiki.builders.ckl.templates import SENTINEL
from temporalwiki.builders.configs import names
from temporalwiki.builders.dataset_folder import Card, check_place, finish_install, install, write_split
from temporalwiki.builders.incremental import link
from temporalwiki.builders.manifests import CklManifest, ImportedManifest, Manifest, checked_as, read_manifests
from temporalwiki.builders.released_files import NAMES, ROWS, SPLITS_OF_PROBES, Found, Released, recognise
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.streams import digest

Cells = dict[str, str]
Row = dict[str, Any]

WIKI_FOLDER, CKL_FOLDER = Path("temporalwiki"), Path("ckl")

_BOTH = "facts are in both splits"
_LARGEST_ANSWERS = 256 << 20  # bytes; the file is read whole


def import_archives(paths: Sequence[Path], out: Path | None = None, card: Card | None = None) -> Iterator[str]:
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
        yield from _import_interval(found, interval, wiki, card)
    for released in found.ckl:
        yield from _import_config(found, released, ckl, card)
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
        if name == manifest.name:
            if not manifest.imported:
                command = "ckl" if isinstance(manifest, CklManifest) else "build"
                raise InputError(
                    f"{folder}: {name} is there, made by `temporalwiki {command}`; it is not overwritten: choose "
                    "another --out"
                )
            return manifest
    return None


def _import_interval(found: Found, interval: Interval, out: Path, card: Card | None) -> Iterator[str]:
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
                _keep(before.content, manifest, {names(kind, interval)[0] for kind, *_ in sources}, out, staged)
            for kind, split, file, counts, warned, rows in sources:
                config, short = names(kind, interval)
                progress = tqdm(rows, desc=f"{config} {split}", unit="row", disable=not sys.stderr.isatty())
                written = asdict(write_split(staged, config, split, progress))
                manifest["configs"].setdefault(config, {"short_name": short, "splits": {}})["splits"][split] = written
                manifest["counts"].setdefault(config, {})[split] = counts.as_json()
                manifest["inputs"].append({"config": config, **_input(file.member)})
                manifest["warnings"] += [f"{config}: {warning}" for warning in warned]
            if both := sum(counts.more.get(_BOTH, 0) for *_, counts, _, _ in sources):
                manifest["warnings"].append(f"{names('probes', interval)[0]}: {both:,} {_BOTH}")
            manifest["warnings"].sort()
            manifest["inputs"].sort(key=lambda one: (one["config"], one["file"], one["member"] or ""))
            install(staged, checked_as(ImportedManifest, manifest, interval.name), out, card)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    _warn(manifest["warnings"])
    for kind, split, file, counts, *_ in sources:
        config, short = names(kind, interval)
        yield f"{file.member.where}: {config} (in short {short}), split {split}: {_in_words(counts)}"


def _warn(warnings: list[str]) -> None:
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def _empty_manifest(interval: Interval) -> dict[str, Any]:
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


def _keep(before: dict[str, Any], manifest: dict[str, Any], replaced: set[str], out: Path, staged: Path) -> None:
    """Take over the configs of the interval that were imported before and are not now."""
    interval = Interval(*(manifest["interval"][key] for key in ("wiki", "prev", "recent")))
    for kind in ("probes", "diffset"):
        config, _ = names(kind, interval)
        if config in before["configs"] and config not in replaced:
            manifest["configs"][config] = before["configs"][config]
            manifest["counts"][config] = before["counts"][config]
            manifest["inputs"] += [one for one in before["inputs"] if one["config"] == config]
            manifest["warnings"] += [text for text in before["warnings"] if text.startswith(f"{config}: ")]
            for file in (out / "data" / config).iterdir():
                link(file, staged / "data" / config / file.name)


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
        keys = {of: _key(of, *cells.values()) for of in SPLITS_OF_PROBES}
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
    name = NAMES[file.member.name.lower()]
    if counts.read != ROWS[name]:
        warnings.append(
            f"{name}: {counts.read:,} rows, and the released file has {ROWS[name]:,}: cut off, or another file?"
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


def _import_config(found: Found, released: Released, out: Path, card: Card | None) -> Iterator[str]:
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
    _warn(write(config, out, card).warnings)
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
    ids: dict[str, int] = {}
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
            if asked == statement and cells[statement].count(SENTINEL) != 1:
                notes[f"without exactly one {SENTINEL}, so that they cannot be asked"] += 1
            if answers and id not in answers:
                notes[f"without answers in {released.answers}, so that those of {released.file} count"] += 1
            if again:
                notes[f"with the id of a row before, so that the answers of {released.file} count"] += 1
            row: Row = {"id": unique_id(id or str(counts.read), ids), "statement": cells[statement].strip() or None}
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


def _key(*texts: str) -> bytes:
    """Return what equal texts have in common; some hundred bytes of memory in a set."""
    return hashlib.blake2b(msgspec.msgpack.encode(texts), digest_size=16).digest()


def _check_kept(file: CsvFile, counts: Counts) -> None:
    if not counts.kept:
        raise InputError(f"{file.member.where}: no rows to import in it: {_in_words(counts)}")


def _in_words(counts: Counts) -> str:
    dropped = "".join(f", dropped {number:,}: {reason}" for reason, number in sorted(counts.dropped.items()))
    return f"{counts.kept:,} of {counts.read:,} rows{dropped}"
