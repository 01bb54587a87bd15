"""What a build starts from: its options, the dumps of its interval, and the folders of its stages."""

import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import UsageError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.builders import snapshot
from temporalwiki.builders.finish import INCLUDE
from temporalwiki.builders.snapshot import Dump, Interval
from temporalwiki.builders.wikidata import align, labels
from temporalwiki.builders.wikidata import extract as wikidata_extract
from temporalwiki.builders.wikidata import fact_diff as wikidata_diff
from temporalwiki.builders.wikidata.probes import CAPS, Caps
from temporalwiki.builders.wikipedia import extract as wiki_extract
from temporalwiki.builders.wikipedia import page_props, sentences
from temporalwiki.builders.wikipedia import sentence_diff as wiki_diff
from temporalwiki.builders.wikipedia.novelty import COMPARISONS
from temporalwiki.builders.wikipedia.variants import variant_of

UNCHANGED_PAGES = 10_000  # articles whose text outside the diffset is sampled, for intrinsic evaluation


@dataclass(frozen=True)
class BuildOptions:
    """The options that, together with the dumps, decide the bytes of a build."""

    include: tuple[str, ...] = ()
    seed: int = 0
    unchanged_fraction: float = 0.001
    allow_truncated: bool = False
    compare: str = "folded"
    caps: Caps | None = CAPS
    variant: str | None = None

    def __post_init__(self) -> None:
        if self.compare not in COMPARISONS:
            raise UsageError(f"there is no comparison {self.compare!r}; there are {', '.join(COMPARISONS)}")
        for name in self.include:
            if name not in INCLUDE:
                raise UsageError(f"there is no config {name!r} to include; there are {', '.join(INCLUDE)}")
        if not 0 <= self.unchanged_fraction <= 1:
            raise UsageError(f"the fraction of unchanged facts must be from 0 to 1, not {self.unchanged_fraction}")
        if self.caps is not None and not (len(self.caps) == 3 and all(0 < share <= 1 for share in self.caps)):
            raise UsageError(f"the caps must be three shares above 0 and up to 1, or none, not {self.caps}")

    def language(self, interval: Interval) -> str:
        """Return the code of the language, or of its variant, that text and labels take. Raises UsageError."""
        known = variant_of(interval.language)
        if self.variant is not None and not (known and self.variant in known.of_language):
            there = f"there are {', '.join(known.of_language)}" if known else "its language has none"
            raise UsageError(f"there is no variant {self.variant!r} of {interval.wiki}; {there}")
        return self.variant or interval.language


@dataclass(frozen=True)
class Sources:
    """The dumps of one interval."""

    interval: Interval
    dumps: Path
    prev: Dump
    recent: Dump
    wikidata_prev: Dump
    wikidata_recent: Dump
    page_props: Path | None

    @property
    def files(self) -> list[Path]:
        """Every input file once, in order."""
        dumps = (self.prev, self.recent, self.wikidata_prev, self.wikidata_recent)
        files = [file for dump in dumps for file in dump.files]
        return list(dict.fromkeys([*files, *([self.page_props] if self.page_props else [])]))


def find_sources(dumps: Path, interval: Interval, wikidata: tuple[str, str] | None = None) -> Sources:
    """Find the four dumps of an interval, and its table of page properties if there is one.

    Raises InputError if a dump is missing or serves both snapshots, and UsageError if ``wikidata`` goes back in time.
    """
    dumps = dumps.absolute()  # workers may have another current folder
    prev = snapshot.wikipedia_dump(dumps, interval.wiki, interval.prev)
    recent = snapshot.wikipedia_dump(dumps, interval.wiki, interval.recent)
    exact = wikidata is not None
    dates = wikidata or (interval.prev, interval.recent)
    wikidata_prev = snapshot.wikidata_dump(dumps, snapshot.check_date(dates[0]), exact)
    wikidata_recent = snapshot.wikidata_dump(dumps, snapshot.check_date(dates[1]), exact)
    snapshot.check_pair(prev, recent, interval.wiki)
    snapshot.check_parts(prev, recent)
    snapshot.check_pair(wikidata_prev, wikidata_recent, "wikidata")
    if wikidata_prev.date > wikidata_recent.date:
        raise UsageError(f"the Wikidata dumps go back in time: {wikidata_prev.date}, then {wikidata_recent.date}")
    props = snapshot.page_props_file(dumps, interval.wiki, interval.recent)
    return Sources(interval, dumps, prev, recent, wikidata_prev, wikidata_recent, props)


@dataclass(frozen=True)
class WorkFolder:
    """The folders of a build's stages. The name of each contains a fingerprint of everything that decides its content.

    So a build finds what it can reuse by name, and never reuses the work of other dumps, options or versions.
    """

    path: Path
    sources: Sources
    options: BuildOptions
    sha1: Mapping[Path, str]  # of the sources' files

    def inputs(self, files: Sequence[Path]) -> list[dict[str, Any]]:
        """Return name, size and SHA-1 of some of the sources' files, for the manifest."""
        names = {file: file.relative_to(self.sources.dumps).as_posix() for file in files}
        return [{"file": names[file], "size": file.stat().st_size, "sha1": self.sha1[file]} for file in files]

    def articles(self, dump: Dump) -> Path:
        """Return the folder for the extract of a Wikipedia dump."""
        key = fingerprint(wiki_extract.VERSION, self.inputs(dump.files), dump.cut, self.options.allow_truncated)
        return self.path / "extracts" / f"{self.sources.interval.wiki}-{dump.date}-{key}"

    def facts(self, dump: Dump) -> Path:
        """Return the folder for the extract of a Wikidata dump."""
        wiki, language = self.sources.interval.wiki, self.options.language(self.sources.interval)
        with_labels = (wiki, language, self.options.allow_truncated)
        key = fingerprint(wikidata_extract.VERSION, self.inputs(dump.files), *with_labels)
        return self.path / "extracts" / f"wikidata-{dump.date}-{wiki}-{key}"

    def page_items(self, table: Path) -> Path:
        """Return the folder for the extract of the table of page properties."""
        interval = self.sources.interval
        key = fingerprint(page_props.VERSION, self.inputs((table,)))
        return self.path / "extracts" / f"{interval.wiki}-{interval.recent}-page_props-{key}"

    def interval(self) -> Path:
        """Return the folder for the stages after the extracts."""
        interval, sources = self.sources.interval, self.sources
        names = [self.articles(sources.prev).name, self.articles(sources.recent).name]
        names += [self.facts(sources.wikidata_prev).name, self.facts(sources.wikidata_recent).name]
        names += [self.page_items(sources.page_props).name] if sources.page_props else []
        text = (sentences.VERSION, *map(importlib.metadata.version, ("sentencex", "rapidfuzz")))
        versions = (text, wiki_diff.VERSION, labels.VERSION, wikidata_diff.VERSION, align.VERSION, UNCHANGED_PAGES)
        options = replace(self.options, caps=None)  # only stage finish, which every build runs, uses the caps
        return self.path / f"{interval.wiki}-{interval.name}-{fingerprint(names, versions, options)}"
