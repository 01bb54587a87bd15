"""``datasets`` builders over the same steps as ``temporalwiki build`` and ``temporalwiki ckl``, for use in Python.

from temporalwiki.builders.datasets_builder import CKL, TemporalWiki

builder = TemporalWiki("diffset", dumps="dumps", prev="20211101", recent="20211201")
builder.download_and_prepare()
diffset = builder.as_dataset(split="train")

builder = CKL("invariantlama", lama="lama")
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.base.options import from_mapping
from temporalwiki.base.terminal import say
from temporalwiki.builders import checksums
from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.ckl.build_config import CklSources, build_configs, options_of
from temporalwiki.builders.ckl.config import write
from temporalwiki.builders.ckl.schemas import CONFIGS, check_name
from temporalwiki.builders.ckl.text_model import OpenModel, no_models
from temporalwiki.builders.configs import SCHEMAS
from temporalwiki.builders.finish import INCLUDE
from temporalwiki.builders.machine import find_machine
from temporalwiki.builders.manifests import Manifest
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.wikidata.probes import CAPS, Caps


@dataclass
class TemporalWikiConfig(datasets.BuilderConfig):  # type: ignore[misc]
    """One config (``name``: diffset, deletions, unchanged, wikipedia, probes, lighttuning or facts) of an interval."""

    dumps: str = ""
    prev: str = ""
    recent: str = ""
    wiki: str = "enwiki"
    wikidata: tuple[str, str] | None = None
    work: str = "temporalwiki.work"
    jobs: int = 1
    seed: int = 0
    unchanged_fraction: float = 0.001
    allow_truncated: bool = False
    compare: str = "folded"
    caps: Caps | None = CAPS
    variant: str | None = None
    accept_dates: bool = False


class TemporalWiki(datasets.ArrowBasedBuilder):  # type: ignore[misc]
    """Builds an interval from dumps when ``datasets`` prepares it, and keeps it in the cache of ``datasets``.

    Takes the fields of TemporalWikiConfig. The constructor already computes the checksums of the dumps. Raises
    InputError for dumps that cannot be used. A split without rows is left out, as ``datasets`` cannot load one.
    """

    BUILDER_CONFIG_CLASS = TemporalWikiConfig
    BUILDER_CONFIGS = [TemporalWikiConfig(name=name) for name in INCLUDE]  # noqa: RUF012  # as datasets defines it

    def __init__(self, config_name: str = "diffset", cache_dir: str | None = None, **fields: Any) -> None:
        if config_name not in INCLUDE:
            raise InputError(f"there is no config {config_name!r}; there are {', '.join(INCLUDE)}")
        config = TemporalWikiConfig(name=config_name, **fields)
        sources = find_sources(Path(config.dumps), Interval(config.wiki, config.prev, config.recent), config.wikidata)
        tasks = checksums.plan(sources.files)
        hashed = checksums.compute(tasks, Path(config.work) / "build" / "checksums")
        inputs = [(task.file, hashed[task]["sha1"]) for task in tasks]
        self._options = BuildOptions(
            include=(config_name,),
            **{one.name: getattr(config, one.name) for one in fields_of(BuildOptions) if one.name != "include"},
        )
        super().__init__(
            cache_dir=cache_dir,
            dataset_name="temporalwiki",
            config_name=config_name,
            # a class outside the Hub has no hash of its own: the cache would serve another build's rows
            hash=fingerprint(inputs, self._options),
            **fields,
        )
        self._sources = sources

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(features=datasets.Features.from_arrow_schema(SCHEMAS[self.config.name]))

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        config: TemporalWikiConfig = self.config
        folder, work = Path(config.work) / "dataset", Path(config.work) / "build"
        machine, accept = find_machine(jobs=config.jobs), config.accept_dates
        manifest = build(self._sources, folder, work, self._options, machine, accept_dates=accept)
        [name] = [name for name in manifest.configs if name.startswith(f"{config.name}-")]
        return _splits(folder, manifest, name)

    def _generate_tables(self, files: list[str]) -> Iterator[tuple[Any, pa.Table]]:
        return _tables(files)


@dataclass
class CKLConfig(datasets.BuilderConfig):  # type: ignore[misc]
    """The name and the sources of a CKL config. Each field has the name of an option of ``temporalwiki ckl``."""

    lama: str = ""
    kilt: str = ""
    news: str | Sequence[str] = ()
    past: str | Sequence[str] = ()
    probes: str | Sequence[str] = ()
    review: str = ""
    work: str = "ckl.work"
    jobs: int = 1
    seed: int = 0
    least_annotators: int = 1
    options: Mapping[str, Any] | None = None  # the fields of NewsOptions or EasyOptions


class CKL(datasets.ArrowBasedBuilder):  # type: ignore[misc]
    """Builds a CKL config when ``datasets`` prepares it, and keeps it in the cache of ``datasets``.

    Takes the fields of CKLConfig. The name may include an interval, as in ``updatedlama-1112``. ``open_model`` opens
    the models that options name: pass ``temporalwiki.eval_harness.text_model.open_model``. A split without rows is
    left out, as ``datasets`` cannot load one. Raises UsageError for an unknown name or option, InputError for sources
    that cannot be used or give no rows.
    """

    BUILDER_CONFIG_CLASS = CKLConfig
    BUILDER_CONFIGS = [CKLConfig(name=name) for name in CONFIGS]  # noqa: RUF012  # as datasets defines it

    def __init__(
        self,
        config_name: str = "invariantlama",
        cache_dir: str | None = None,
        open_model: OpenModel = no_models,
        **fields: Any,
    ) -> None:
        check_name(config_name)
        known = config_name in CONFIGS
        name, _, interval = (config_name, "", "") if known else config_name.partition("-")
        if name not in CONFIGS:  # all of KILT
            raise UsageError(f"{config_name} is several configs; name one of them: {', '.join(CONFIGS)}")
        config = CKLConfig(name=name, **fields)
        sources = CklSources(
            lama=Path(config.lama) if config.lama else None,
            kilt=Path(config.kilt) if config.kilt else None,
            news=_paths(config.news),
            past=_paths(config.past),
            probes=_paths(config.probes),
            review=Path(config.review) if config.review else None,
            work=Path(config.work),
            jobs=config.jobs,
            seed=config.seed,
            least_annotators=config.least_annotators,
        )
        named = [sources.lama, sources.kilt, *sources.news, *sources.past, *sources.probes, sources.review]
        super().__init__(
            cache_dir=cache_dir,
            dataset_name="ckl",
            config_name=name,
            # a class outside the Hub has no hash of its own: the cache would serve what other files gave
            hash=fingerprint([_as_they_are(path) for path in named if path is not None], interval),
            **fields,
        )
        self._sources, self._name, self._open_model = sources, config_name, open_model
        of = options_of(name)
        if config.options and of is None:
            raise UsageError(f"{name} has no options of its own")
        self._options = from_mapping(of, config.options or {}, f"{name}: ") if of is not None else None

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo()  # the columns depend on the rows

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        configs = build_configs(self._name, self._sources, self._options, self._open_model)
        config = next((one for one in configs if self._name in (one.name, one.short_name)), configs[0])
        folder = self._sources.work / "dataset"
        manifest = write(config, folder)
        for warning in manifest.warnings:
            say(f"warning: {warning}")
        if splits := _splits(folder, manifest, config.name):
            return splits
        raise InputError(f"{config.name}: no rows; of {config.counts.read:,} read, dropped: {config.counts.dropped}")

    def _generate_tables(self, files: list[str]) -> Iterator[tuple[Any, pa.Table]]:
        return _tables(files)


def _paths(given: str | Sequence[str]) -> tuple[Path, ...]:
    return tuple(map(Path, [given] if isinstance(given, str) else given))


def _as_they_are(path: Path) -> list[tuple[str, list[int]]]:
    """Return the name and state of a file, or of all files in a folder."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return [(str(file), checksums.state(file)) for file in files if file.exists()]


def _splits(folder: Path, manifest: Manifest, name: str) -> list[datasets.SplitGenerator]:
    return [
        datasets.SplitGenerator(name=split, gen_kwargs={"files": [str(folder / file.path) for file in written.files]})
        for split, written in manifest.configs[name].splits.items()
        if written.num_examples
    ]


def _tables(files: list[str]) -> Iterator[tuple[Any, pa.Table]]:
    for number, path in enumerate(files):
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                yield (number, group), file.read_row_group(group, use_threads=False)
