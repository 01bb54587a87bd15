"""What a dataset folder, a manifest or a dump holds, as text for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl.manifest import check_ckl_manifest
from temporalwiki.builders.dataset_folder import Manifest, is_ckl, manifest_path, problems, read_manifests, strays
from temporalwiki.builders.streams import compression, pieces
from temporalwiki.builders.wikidata import extract as wikidata_extract
from temporalwiki.builders.wikidata.entities import EntityReader, NotAnEntity
from temporalwiki.builders.wikipedia.xml_dump import DumpCounts, read_header, read_pages


def describe(path: Path) -> str:
    """Describe whatever lies at ``path``. Raises InputError if it is nothing that temporalwiki knows."""
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    if path.is_dir():
        manifests = read_manifests(path)
        if not manifests:
            found = "".join(f"; {stray}" for stray in strays(path, ()))
            raise InputError(f"{path}: no manifests in it, so it is no dataset folder{found}")
        return "\n\n".join(_described(path, manifest) for manifest in manifests)
    compression(path)
    start = next((piece.data for piece in pieces(path, allow_truncated=True)), b"").lstrip()
    if start.startswith((b"[", b"{")):
        return _describe_wikidata(path)
    if start.startswith(b"<"):
        return _describe_wikipedia(path)
    raise InputError(f"{path}: neither a dataset folder nor a Wikipedia or Wikidata dump")


def describe_problems(path: Path) -> list[str]:
    """What is wrong with a dataset folder, a line each; nothing for a dump."""
    if not path.is_dir():
        return []
    manifests = read_manifests(path)
    return [*(one for manifest in manifests for one in problems(path, manifest)), *strays(path, manifests)]


def _described(folder: Path, manifest: Manifest) -> str:
    try:
        return describe_manifest(folder, manifest)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        where = folder / manifest_path(manifest)
        raise InputError(f"{where}: not a manifest of temporalwiki: its counts are not what a build writes") from None


def describe_manifest(folder: Path, manifest: Manifest) -> str:
    """One interval of a dataset folder, or one config of CKL's: its files, and its counts down to the rows."""
    if is_ckl(manifest):
        check_ckl_manifest(manifest, str(folder / manifest_path(manifest)))
        return _describe_ckl(folder, manifest)
    if manifest.get("imported"):
        return _describe_imported(folder, manifest)
    interval, counts = manifest["interval"], manifest["counts"]
    lines = [
        f"{folder}: {interval['wiki']} {interval['prev']} to {interval['recent']}, "
        f"Wikidata {interval['wikidata_prev']} to {interval['wikidata_recent']}",
        "",
    ]
    lines += [*_configs(manifest), ""]
    pages = counts["pages"]
    dropped = ", ".join(f"{n:,} {reason}" for reason, n in pages["dropped"].items()) or "0"
    lines.append(
        f"articles read {pages['read']:,} = unchanged {pages['unchanged']:,} + new {pages['new']:,} "
        f"+ updated {pages['updated']:,} + dropped {dropped}"
    )
    facts = [("facts", "categorised", "sampled", "aligned", "filtered", "kept")]
    for split, c in counts["probes"].items():
        facts.append((split, *(f"{c[n]:,}" for n in ("categorised", "sampled", "aligned", "filtered", "kept"))))
    lines += ["", *table(facts)]
    if stages := _stages(manifest):
        lines += ["", *table(stages)]
    lines += [f"warning: {text}" for text in manifest["warnings"]]
    return "\n".join(lines)


class _Took(msgspec.Struct):
    """What a stage took; older manifests say less of it."""

    tasks: int
    cpu_seconds: float
    peak_memory_mb: int
    began: float = 0.0
    kept: int | None = None
    seconds: float | None = None
    mb: float | None = None
    mb_per_cpu_second: float | None = None


def _stages(manifest: Manifest) -> list[Sequence[str]]:
    """Rows that tell what the stages took; none where the manifest is from the Hub, which does not say it."""
    try:
        stages = msgspec.convert(manifest["run"]["stages"], dict[str, _Took])
    except (KeyError, TypeError, msgspec.ValidationError):
        return []
    rows: list[Sequence[str]] = [("stage", "tasks", "kept", "s", "CPU s", "MB read", "MB/s of CPU", "peak MB")]
    for name, took in sorted(stages.items(), key=lambda stage: stage[1].began):
        measured = (took.seconds, took.cpu_seconds, took.mb, took.mb_per_cpu_second)
        shown = ("" if number is None else f"{number:,.1f}" for number in measured)
        rows.append(
            (name, f"{took.tasks:,}", f"{took.kept:,}" if took.kept else "", *shown, f"{took.peak_memory_mb:,}")
        )
    return rows


def _describe_ckl(folder: Path, manifest: Manifest) -> str:
    counts = manifest["counts"]
    imported = ", imported from an archive" if manifest.get("imported") else ""
    lines = [
        f"{folder}: {manifest['config']} of CKL, {', '.join(manifest['licences'])}{imported}",
        "",
        *_configs(manifest),
        "",
        _kept("rows", counts),
    ]
    if relations := counts.get("relations"):
        rows = [("relation", "raw", "kept")]
        rows += [(name, f"{of['raw']:,}", f"{of['kept']:,}") for name, of in relations.items()]
        lines += ["", *table(rows)]
    return "\n".join([*lines, *(f"warning: {text}" for text in manifest["warnings"])])


def _describe_imported(folder: Path, manifest: Manifest) -> str:
    interval = manifest["interval"]
    lines = [
        f"{folder}: {interval['wiki']} {interval['prev']} to {interval['recent']}, imported from an archive",
        "",
        *_configs(manifest),
        "",
    ]
    for config, splits in manifest["counts"].items():
        lines += [_kept(f"{config} {split}", counts) for split, counts in splits.items()]
    return "\n".join([*lines, *(f"warning: {text}" for text in manifest["warnings"])])


def _kept(what: str, counts: Mapping[str, Any]) -> str:
    dropped = ", ".join(f"{n:,} {reason}" for reason, n in counts["dropped"].items()) or "0"
    return f"{what} read {counts['read']:,} = kept {counts['kept']:,} + dropped {dropped}"


def _configs(manifest: Manifest) -> list[str]:
    rows = [("config", "short name", "split", "rows", "MB")]
    for name, config in manifest["configs"].items():
        for split, files in config["splits"].items():
            size = sum(file["size"] for file in files["files"]) / 1e6
            rows.append((name, config["short_name"] or "", split, f"{files['num_examples']:,}", f"{size:,.2f}"))
    return table(rows)


def _describe_wikipedia(path: Path) -> str:
    header, counts = read_header(path), DumpCounts()
    kinds: Counter[str] = Counter()
    first = last = 0
    for page in read_pages(path, header, counts, allow_truncated=True):
        kind = "other namespaces" if page.namespace != 0 else "redirects" if page.redirect else "articles"
        kinds[f"{kind} ({page.missing})" if page.missing else kind] += 1
        first, last = min(first or page.page_id, page.page_id), max(last, page.page_id)
    rows = [("pages", f"{counts.pages:,}"), *((kind, f"{n:,}") for kind, n in sorted(kinds.items()))]
    rows += [(f"dropped: {reason}", f"{n:,}") for reason, n in counts.dropped.items()]
    state = "complete" if counts.complete else "CUT OFF: no </mediawiki> at its end"
    return "\n".join(
        [
            f"{path}: MediaWiki export {header.version} of {header.wiki or 'an unnamed wiki'}, {state}",
            f"page ids {first} to {last}, {counts.bytes / 1e6:,.1f} MB of XML",
            "",
            *table(rows),
        ]
    )


def _describe_wikidata(path: Path) -> str:
    task = wikidata_extract.ExtractTask(0, str(path), 0, None, "enwiki", "en", allow_truncated=True)
    reader, kinds, facts, closed = EntityReader("enwiki", "en"), Counter[str](), 0, False
    bad: InputError | None = None  # the last line of all can be cut
    for place, line in wikidata_extract.lines(task):
        if bad is not None:
            raise bad
        text = line.strip().removeprefix(b"[")
        closed = closed or text.endswith(b"]")  # on a line of its own, or behind the last entity
        text = text.removesuffix(b"]").removesuffix(b",").strip()
        if not text:
            continue
        try:
            entity = reader.read(text)
        except NotAnEntity as problem:
            kinds[f"dropped: {problem.reason}"] += 1
            continue
        except msgspec.DecodeError as error:
            bad = InputError(f"{path}: line at byte {place}: not JSON: {error}")
            continue
        kinds[{"item": "items", "property": "properties"}[entity.kind]] += 1
        facts += sum(statement.best for statement in entity.statements)
    if not kinds["items"] + kinds["properties"]:
        raise bad or InputError(f"{path}: JSON, but no Wikidata entities, one a line, in it")
    if bad is not None:
        if closed:
            raise bad
        kinds["dropped: cut_line"] += 1
    state = "complete" if closed else "no closing ] at its end"
    rows = [*((kind, f"{n:,}") for kind, n in sorted(kinds.items())), ("facts", f"{facts:,}")]
    return "\n".join([f"{path}: Wikidata JSON, {state}", "", *table(rows)])


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: numbers to the right, all else to the left."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if cell[:1].isdigit() else cell.ljust(width)
            for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
