"""Describe dataset folders, manifests and dumps in plain text."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from temporalwiki.base.errors import InputError
from temporalwiki.base.terminal import in_line, table
from temporalwiki.builders import manifests
from temporalwiki.builders.dataset_folder import problems, strays
from temporalwiki.builders.manifests import AnyManifest, BuiltManifest, CklManifest, Manifest, SplitCounts
from temporalwiki.builders.streams import compression, pieces
from temporalwiki.builders.wikidata import extract as wikidata_extract
from temporalwiki.builders.wikidata.entities import EntityReader, NotAnEntity
from temporalwiki.builders.wikipedia.xml_dump import DumpCounts, read_header, read_pages


def describe(path: Path) -> str:
    """Describe a dataset folder or a dump. Raises InputError for anything else."""
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    if path.is_dir():
        described = manifests.read_manifests(path)
        if not described:
            found = "".join(f"; {stray}" for stray in strays(path, ()))
            raise InputError(f"{manifests.not_a_dataset(path)}{found}; name one, or a file of a dump")
        return "\n\n".join(describe_manifest(path, manifest) for manifest in described)
    compression(path)
    start = next((piece.data for piece in pieces(path, allow_truncated=True)), b"").lstrip()
    if start.startswith((b"[", b"{")):
        return _describe_wikidata(path)
    if start.startswith(b"<"):
        return _describe_wikipedia(path)
    raise InputError(f"{path}: neither a dataset folder nor a Wikipedia or Wikidata dump")


def describe_problems(path: Path) -> list[str]:
    """Return a line for each fault of a dataset folder; no lines for a dump."""
    if not path.is_dir():
        return []
    described = manifests.read_manifests(path)
    return [*(one for manifest in described for one in problems(path, manifest)), *strays(path, described)]


def describe_manifest(folder: Path, manifest: AnyManifest) -> str:
    """Describe one interval or one CKL config of a dataset folder: its files, its counts and its warnings."""
    imported = ", imported from an archive" if manifest.imported else ""
    if isinstance(manifest, CklManifest):
        title = f"{manifest.config} of CKL, {', '.join(manifest.licences)}{imported}"
        counts = _ckl_counts(manifest.counts)
    else:
        interval = manifest.interval
        title = f"{interval.wiki} {interval.prev} to {interval.recent}{imported}"
        if isinstance(manifest, BuiltManifest):
            title += f", Wikidata {interval.wikidata_prev} to {interval.wikidata_recent}"
            counts = _build_counts(manifest)
        else:
            of_splits = [
                (f"{name} {split}", of) for name, splits in manifest.counts.items() for split, of in splits.items()
            ]
            counts = [_kept(*each) for each in of_splits]
    warnings = [f"warning: {in_line(text)}" for text in manifest.warnings]
    return "\n".join([f"{folder}: {title}", "", *_configs(manifest), "", *counts, *warnings])


def _build_counts(manifest: BuiltManifest) -> list[str]:
    pages = manifest.counts.pages
    steps = ("categorised", "sampled", "aligned", "filtered", "kept")
    facts: list[Sequence[str]] = [("facts", *steps)]
    for split, counts in manifest.counts.probes.by_split().items():
        facts.append((split, *(f"{getattr(counts, step):,}" for step in steps)))
    same, dropped = f"unchanged {pages.unchanged:,} + new {pages.new:,}", _dropped(pages.dropped)
    lines = [f"articles read {pages.read:,} = {same} + updated {pages.updated:,} + dropped {dropped}"]
    diffset = manifest.counts.diffset
    lines.append(f"words {diffset.words:,} = new {diffset.words_new:,} + reworded {diffset.words_reworded:,}")
    lines += ["", *table(facts)]
    if stages := manifest.run.stages:
        lines += ["", *table(_stages(stages))]
    return lines


def _stages(stages: Mapping[str, manifests.StageRun]) -> list[Sequence[str]]:
    rows: list[Sequence[str]] = [("stage", "tasks", "kept", "wall s", "CPU s", "MB read", "MB/s of CPU", "peak MB")]
    for name, run in sorted(stages.items(), key=lambda stage: stage[1].began):
        measured = (run.seconds, run.cpu_seconds, run.mb, run.mb_per_cpu_second)
        shown = ("" if number is None else f"{number:,.1f}" for number in measured)
        rows.append((name, f"{run.tasks:,}", f"{run.kept:,}" if run.kept else "", *shown, f"{run.peak_memory_mb:,}"))
    return rows


def _ckl_counts(counts: manifests.CklCounts) -> list[str]:
    lines = [_kept("rows", counts)]
    if counts.relations:
        rows = [("relation", "raw", "kept")]
        rows += [(name, f"{of.raw:,}", f"{of.kept:,}") for name, of in counts.relations.items()]
        lines += ["", *table(rows)]
    return lines


def _kept(what: str, counts: SplitCounts) -> str:
    return f"{in_line(what)} read {counts.read:,} = kept {counts.kept:,} + dropped {_dropped(counts.dropped)}"


def _dropped(dropped: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {in_line(reason)}" for reason, n in dropped.items()) or "0"


def _configs(manifest: Manifest) -> list[str]:
    rows = [("config", "short name", "split", "rows", "MB")]
    for name, config in manifest.configs.items():
        for split, written in config.splits.items():
            size = sum(file.size for file in written.files) / 1e6
            rows.append((name, config.short_name or "", split, f"{written.num_examples:,}", f"{size:,.2f}"))
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
    title = f"{path}: MediaWiki export {header.version} of {header.wiki or 'an unnamed wiki'}, {state}"
    sizes = f"page ids {first} to {last}, {counts.bytes / 1e6:,.1f} MB of XML"
    return "\n".join([title, sizes, "", *table(rows)])


def _describe_wikidata(path: Path) -> str:
    task = wikidata_extract.EntityExtractTask(0, str(path), 0, None, "enwiki", "en", allow_truncated=True)
    reader, kinds, facts, closed = EntityReader("enwiki", "en"), Counter[str](), 0, False
    bad: InputError | None = None  # the sample may end within a line
    for place, line in wikidata_extract.lines(task):
        if bad is not None:
            raise bad
        text = line.strip().removeprefix(b"[")
        closed = closed or text.endswith(b"]")  # on its own line, or after the last entity
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
