"""Import the files that the authors of TemporalWiki and CKL released into the configs that a build makes.

Columns that a file lacks are null in the config. No archive came with a licence, so manifests are marked as
``imported`` and are never published.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import only_one
from temporalwiki.base.progress import Progress
from temporalwiki.builders.archive_members import CsvFile, Member, members, printable
from temporalwiki.builders.ckl.config import Config, Counts, unique_id, write
from temporalwiki.builders.ckl.templates import SENTINEL
from temporalwiki.builders.configs import names
from temporalwiki.builders.dataset_folder import Card, check_place, finish_install, install, write_split
from temporalwiki.builders.incremental import link
from temporalwiki.builders.manifests import CklManifest, ImportedManifest, checked_as, read_manifests
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.streams import digest

Row = dict[str, Any]

WIKI_FOLDER, CKL_FOLDER = Path("temporalwiki"), Path("ckl")
_FACT = ("subject", "relation", "object")
_LARGEST_ANSWERS = 256 << 20  # bytes; the file is read as a whole

# Files of TemporalWiki: the interval, config and split of each, and how many rows the released file has (Table 2)
_WIKI: dict[str, tuple[Interval, str, str, int | None]] = {}
for _prev, _recent, *_sizes in (
    ("0801", "0901", 6935, 1776),
    ("0901", "1001", 7340, 1982),
    ("1001", "1101", 7313, 1358),
    ("1101", "1201", 7293, 1951),
):
    _interval = Interval("enwiki", f"2021{_prev}", f"2021{_recent}")
    for _split, _rows in zip(("unchanged", "changed"), _sizes, strict=True):
        _WIKI[f"{_prev}-{_recent}_{_split}.csv"] = (_interval, "probes", _split, int(_rows))
    _WIKI[f"wikipedia_{_prev[:2]}{_recent[:2]}_gpt2.csv"] = (_interval, "diffset", "train", None)


@dataclass(frozen=True)
class _Benchmark:
    """A CKL config and the released file that it is made from."""

    file: str
    kind: str  # of columns, as in ckl.schemas
    columns: tuple[str, ...]  # id, cloze, and answer last
    about: str
    optional: tuple[str, ...] = ()
    answers: str | None = None  # the file with all accepted answers by id


_EASY = ("unique_id", "statement", "question", "answer")
_NEWS = ("masked-news", ("original",), "a piece of a news article, as the authors cut it", ("input", "output"))
CKL_FILES = {
    "invariantlama": _Benchmark(
        "invariantLAMA.csv", "invariant", ("id", "input", "output"), "a cloze about a fact that does not change"
    ),
    "updatedlama": _Benchmark(
        "updatedLAMA.csv", "annotated", ("unique_id", "statement", "new_answer"),
        "a cloze about a fact that changed, decided by annotators",
        ("question", "old_answer"), "updatedlama_val_answers.json",
    ),
    "newlama": _Benchmark(
        "newLAMA.csv", "annotated", ("unique_id", "statement", "answer"),
        "a cloze about a new fact, decided by annotators", ("question",), "recentlama_h_val_answers.json",
    ),
    "newlama-easy": _Benchmark(
        "newLAMA_easy.csv", "easy", _EASY, "a cloze about a new fact, made by machines",
        answers="recentlama_val_answers.json",
    ),
    "newquestions-easy": _Benchmark(
        "newLAMA_easy.csv", "easy", _EASY, "a question about a new fact, made by machines",
        answers="recentlama_val_answers.json",
    ),
    **{
        f"recentnews{part}": _Benchmark(f"recent_news_{file}.csv", *_NEWS)
        for part, file in {"": "full", "-small": "small", "-small-p1": "small1", "-small-p2": "small2"}.items()
    },
}  # fmt: skip
_NAMES = {
    *_WIKI,
    *(one.file for one in CKL_FILES.values()),
    *(one.answers for one in CKL_FILES.values() if one.answers),
}


def import_archives(paths: Sequence[Path], out: Path | None = None, card: Card | None = None) -> Iterator[str]:
    """Import the released files at ``paths`` into dataset folders, and yield a line for each config.

    TemporalWiki's files go to ``./temporalwiki`` and CKL's to ``./ckl``; ``out`` is for files of one kind. ``card``
    makes the text of README.md. An interval or config replaces what was imported before, never what was built.
    Raises UsageError for both kinds with one ``out``, and InputError for files and folders that cannot be used.
    """
    found, others = recognise(paths)
    intervals = sorted({_WIKI[name][0] for name in found if name in _WIKI}, key=lambda interval: interval.name)
    configs = [name for name, benchmark in CKL_FILES.items() if benchmark.file in found]
    if out is not None and intervals and configs:
        raise UsageError(
            "--out: these are files of TemporalWiki and of CKL, which need two dataset folders; import them one after "
            f"the other, or without --out into ./{WIKI_FOLDER} and ./{CKL_FOLDER}"
        )
    wiki, ckl = (out or WIKI_FOLDER).resolve(), (out or CKL_FOLDER).resolve()
    for folder, name in [*((wiki, interval.name) for interval in intervals), *((ckl, name) for name in configs)]:
        _imported_before(folder, name)
    for interval in intervals:
        yield from _import_interval(found, interval, wiki, card)
    for name in configs:
        yield _import_config(found, name, ckl, card)
    if others:
        more = f" and {len(others) - 8:,} more" if len(others) > 8 else ""
        yield f"not imported, unknown: {', '.join(printable(member.name) for member in others[:8])}{more}"


def recognise(paths: Sequence[Path]) -> tuple[dict[str, Member], list[Member]]:
    """Return the released files at ``paths`` by name, and all other files; check the headers.

    Raises InputError for no released file at all, different files of one name, and probes with one of two splits.
    """
    by_lower_case = {name.lower(): name for name in _NAMES}
    found: dict[str, Member] = {}
    others: list[Member] = []
    for member in members(paths):
        name = by_lower_case.get(member.name.lower())
        if name is None:
            others.append(member)
        elif found.setdefault(name, member).sha256() != member.sha256():
            raise InputError(f"{found[name].where} and {member.where}: two different {name}; name the one to import")
    named = [member for member in others if member.inside is None and member.path in paths]
    if named or not any(name.endswith(".csv") for name in found):
        near = [name for one in named or others for name in get_close_matches(one.name.lower(), by_lower_case, 1, 0.7)]
        hint = f"did you mean {by_lower_case[near[0]]}?" if near else "`temporalwiki import --help` names the files"
        where = named[0].where if named else ", ".join(map(str, paths))
        raise InputError(f"{where}: no CSV file of a released archive; {hint}")
    for name in found:
        other = name.replace("_unchanged", "_changed") if "_unchanged" in name else name.replace("_ch", "_unch")
        if name in _WIKI and other not in found:
            raise InputError(f"{found[name].where}: {other} is missing; probes are imported with both splits")
        if name in _WIKI:
            _wiki_file(found, name).header()
    for benchmark in CKL_FILES.values():
        if benchmark.file in found:
            CsvFile(found[benchmark.file], benchmark.columns).header()
    return found, others


def _wiki_file(found: dict[str, Member], name: str) -> CsvFile:
    return CsvFile(found[name], _FACT if _WIKI[name][1] == "probes" else ("text",))


def _imported_before(folder: Path, name: str) -> dict[str, Any] | None:
    """Return what was imported into a folder under a name. Raises InputError if it was built instead."""
    check_place(folder)
    for manifest in read_manifests(folder):
        if name == manifest.name:
            if manifest.imported:
                return manifest.content
            command = "ckl" if isinstance(manifest, CklManifest) else "build"
            raise InputError(f"{folder}: {name} was made by `temporalwiki {command}`; choose another --out")
    return None


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
    lines, seen = [], Counter[bytes]()  # how many splits have a fact
    with only_one(out, "import"):
        staged = out.with_name(f".{out.name}.import")
        shutil.rmtree(staged, ignore_errors=True)  # from an import that was killed
        finish_install(out)
        before = _imported_before(out, interval.name)
        try:
            for name, (its, kind, split, released) in _WIKI.items():
                if its != interval or name not in found:
                    continue
                file, counts, warnings = _wiki_file(found, name), Counts(), list[str]()
                config, short = names(kind, interval)
                rows = (
                    read_facts(file, config, split, counts, seen, warnings)
                    if released
                    else _read_texts(file, config, counts, warnings)
                )
                written = asdict(write_split(staged, config, split, rows))
                if released is not None and counts.read != released:
                    warnings.append(
                        f"{config}: {name}: {counts.read:,} rows, the released file has {released:,}: was it cut off?"
                    )
                content["configs"].setdefault(config, {"short_name": short, "splits": {}})["splits"][split] = written
                content["counts"].setdefault(config, {})[split] = counts.as_json()
                content["inputs"].append({"config": config, **_input(file.member)})
                content["warnings"] += warnings
                lines.append(f"{file.member.where}: {config} (in short {short}), split {split}: {_in_words(counts)}")
            if twice := sum(splits == 2 for splits in seen.values()):
                content["warnings"].append(f"{names('probes', interval)[0]}: {twice:,} facts are in both splits")
            if before is not None:
                _keep(before, content, out, staged)
            content["warnings"].sort()
            content["inputs"].sort(key=lambda one: (one["config"], one["file"], one["member"] or ""))
            install(staged, checked_as(ImportedManifest, content, interval.name), out, card)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    _warn(content["warnings"])
    yield from lines


def _keep(before: dict[str, Any], content: dict[str, Any], out: Path, staged: Path) -> None:
    """Add the configs of the interval that were imported before and are not imported now."""
    for config in before["configs"].keys() - content["configs"].keys():
        content["configs"][config] = before["configs"][config]
        content["counts"][config] = before["counts"][config]
        content["inputs"] += [one for one in before["inputs"] if one["config"] == config]
        content["warnings"] += [text for text in before["warnings"] if text.startswith(f"{config}: ")]
        for file in (out / "data" / config).iterdir():
            link(file, staged / "data" / config / file.name)


def _input(member: Member) -> Row:
    """Describe a file without its folder on this machine."""
    size, sha1 = member.path.stat().st_size, digest(member.path, "sha1")
    inside = member.inside and printable(member.inside)
    return {"file": printable(member.path.name), "member": inside, "size": size, "sha1": sha1}


def _rows_of(file: CsvFile, config: str, counts: Counts, warnings: list[str]) -> Iterator[dict[str, str]]:
    """Yield and count the rows of a file. Raises InputError at the end if none was kept."""
    of_file: list[str] = []
    with Progress(config, None, "row") as progress:
        for cells in file.rows(of_file):
            counts.read += 1
            progress.update()
            yield cells
    if not counts.kept:
        raise InputError(f"{file.member.where}: no rows to import: {_in_words(counts)}")
    warnings += [f"{config}: {warning}" for warning in of_file]


def read_facts(
    file: CsvFile, config: str, split: str, counts: Counts, seen: Counter[bytes], warnings: list[str]
) -> Iterator[Row]:
    """Yield the rows of probes, each fact once; ``seen`` counts the splits of each fact."""
    own = set()
    for cells in _rows_of(file, config, counts, warnings):
        key = _key(cells)
        if missing := next((name for name in _FACT if not cells[name].strip()), None):
            counts.drop(f"no {missing}")
        elif key in own:
            counts.drop("the same fact again")
        else:
            counts.kept += 1
            own.add(key)
            seen[key] += 1
            # the files do not say why a fact counts as changed
            yield {**cells, "kind": "unchanged" if split == "unchanged" else None, "previous_objects": []}


def _read_texts(file: CsvFile, config: str, counts: Counts, warnings: list[str]) -> Iterator[Row]:
    [column, *_] = file.columns
    for cells in _rows_of(file, config, counts, warnings):
        if cells[column].strip():
            counts.kept += 1
            yield dict(cells)
        else:
            counts.drop("no text")


def _import_config(found: dict[str, Member], name: str, out: Path, card: Card | None) -> str:
    benchmark, counts, warnings = CKL_FILES[name], Counts(), list[str]()
    file = CsvFile(found[benchmark.file], benchmark.columns, benchmark.optional)
    answers = found.get(benchmark.answers or "")
    kind, split, about = benchmark.kind, "test", benchmark.about
    if kind == "masked-news":
        split = "train"
        if len(file.header()) == 3:
            about += ", and with its salient spans masked"
        else:
            kind = "news"
        rows: Iterator[Row] = (
            {"id": str(counts.read), "text": row.pop("original"), **(row if kind == "masked-news" else {})}
            for row in _read_texts(file, name, counts, warnings)
        )
    else:
        if benchmark.answers and answers is None:
            warnings.append(f"{name}: no {benchmark.answers}: all answers are from {benchmark.file}")
        rows = read_clozes(file, name, read_answers(answers) if answers else {}, counts, warnings)
    config = Config(
        name=name,
        kind=kind,
        splits={split: rows},
        about=about,
        licences=("cc-by-nc-4.0",) if kind == "invariant" else ("unknown",),  # the licence of LAMA
        source="the archive that the authors of CKL (Jang et al., 2022) released; no licence came with it",
        inputs=list(dict.fromkeys(member.path for member in (file.member, answers) if member)),
        imported=True,
        options={"file": benchmark.file},
        counts=counts,
        warnings=warnings,
    )
    _warn(write(config, out, card).warnings)
    return f"{file.member.where}: {name}, split {split}: {_in_words(counts)}"


class Answers(NamedTuple):
    """The accepted answers of a row, now and before."""

    new: list[str]
    old: list[str]


def read_clozes(
    file: CsvFile, name: str, answers: dict[str, Answers], counts: Counts, warnings: list[str]
) -> Iterator[Row]:
    """Yield the rows of a CKL benchmark, with ``answers`` by id in addition to the answers of the file."""
    benchmark = CKL_FILES[name]
    id_column, statement, *_, answer = file.columns
    asked = "question" if name == "newquestions-easy" else statement
    seen, found = set[bytes](), set[str]()
    ids: dict[str, int] = {}
    notes: Counter[str] = Counter()
    for cells in _rows_of(file, name, counts, warnings):
        id, key = cells[id_column].strip(), _key(cells)
        repeated = id in found
        new = _distinct(cells[answer].split(";") if benchmark.kind == "easy" else [cells[answer]])
        old = _distinct([cells.get("old_answer", "")])
        if id in answers and not repeated:  # if two rows have an id, its answers belong to the first
            found.add(id)
            new, old = answers[id].new or new, answers[id].old or old
        dropped = (
            f"no {asked}" if not cells[asked].strip()
            else "no answer" if not new
            else "the same row again" if key in seen
            else None
        )  # fmt: skip
        if dropped:
            counts.drop(dropped)
            continue
        counts.kept += 1
        seen.add(key)
        if asked == statement and cells[statement].count(SENTINEL) != 1:
            notes[f"not exactly one {SENTINEL}, so they cannot be asked"] += 1
        if answers and id not in answers:
            notes[f"no answers in {benchmark.answers}, so those of {benchmark.file} count"] += 1
        if repeated:
            notes[f"the id of an earlier row, so the answers of {benchmark.file} count"] += 1
        row: Row = {"id": unique_id(id or str(counts.read), ids), "statement": cells[statement].strip() or None}
        if benchmark.kind == "invariant":
            yield row | {"object": new[0]}
        else:
            row |= {"question": cells.get("question", "").strip() or None, "answers": new}
            yield row | ({"old_answers": old} if benchmark.kind == "annotated" else {})
    warnings += [f"{name}: {number:,} rows have {what}" for what, number in sorted(notes.items())]
    if unused := len(answers.keys() - found):
        warnings.append(f"{name}: {unused:,} ids in {benchmark.answers} have no row in {benchmark.file}")


_Text = str | int | float


class _OldAndNew(msgspec.Struct):
    old: list[_Text] = []
    new: list[_Text] = []


def read_answers(member: Member) -> dict[str, Answers]:
    """Return the accepted answers by id, or raise InputError: a file has lists of answers or of old and new ones."""
    with member.open() as file:
        data = file.read(_LARGEST_ANSWERS).removeprefix(b"\xef\xbb\xbf")
    try:
        read = msgspec.json.decode(data, type=dict[str, list[_OldAndNew | _Text]])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{member.where}: not a file with answers by id: {error}") from None
    answers = {}
    for id, listed in read.items():
        new = [text for one in listed for text in (one.new if isinstance(one, _OldAndNew) else [one])]
        old = [text for one in listed if isinstance(one, _OldAndNew) for text in one.old]
        answers[id.strip()] = Answers(_distinct(new), _distinct(old))
    return answers


def _distinct(texts: Sequence[_Text]) -> list[str]:
    return [text for text in dict.fromkeys(str(text).strip() for text in texts) if text]


def _key(cells: dict[str, str]) -> bytes:
    """Return a digest of a row: a set of digests takes less memory than one of rows."""
    return hashlib.blake2b(msgspec.msgpack.encode(list(cells.values())), digest_size=16).digest()


def _in_words(counts: Counts) -> str:
    dropped = "".join(f", dropped {number:,}: {reason}" for reason, number in sorted(counts.dropped.items()))
    return f"{counts.kept:,} of {counts.read:,} rows{dropped}"


def _warn(warnings: list[str]) -> None:
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
