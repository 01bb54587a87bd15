"""A ``datasets`` builder over the same steps as ``temporalwiki build``, for those who want one in Python.

from temporalwiki.builders.datasets_builder import TemporalWiki

builder = TemporalWiki("diffset", dumps="dumps", prev="20211101", recent="20211201")
builder.download_and_prepare()
diffset = builder.as_dataset(split="train")
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq

from temporalwiki.builders.build import BuildOptions, Machine, build, find_sources
from temporalwiki.builders.dataset_folder import SCHEMAS
from temporalwiki.builders.engine import fingerprint
from temporalwiki.builders.errors import InputError
from temporalwiki.builders.finish import INCLUDE
from temporalwiki.builders.snapshot import Interval


@dataclass
class TemporalWikiConfig(datasets.BuilderConfig):  # type: ignore[misc]
    """One config (``name``: diffset, deletions, unchanged, wikipedia, probes or lighttuning) of one interval."""

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


class TemporalWiki(datasets.ArrowBasedBuilder):  # type: ignore[misc]
    """Builds an interval from dumps when it is prepared, and keeps it in the cache of ``datasets``.

    Takes the fields of TemporalWikiConfig; raises InputError for dumps that cannot be used. A split without rows
    is left out, as ``datasets`` cannot load one.
    """

    BUILDER_CONFIG_CLASS = TemporalWikiConfig
    BUILDER_CONFIGS = [TemporalWikiConfig(name=name) for name in INCLUDE]  # noqa: RUF012  # as datasets defines it

    def __init__(self, config_name: str = "diffset", cache_dir: str | None = None, **fields: Any) -> None:
        if config_name not in INCLUDE:
            raise InputError(f"there is no config {config_name!r}; there are {', '.join(INCLUDE)}")
        config = TemporalWikiConfig(name=config_name, **fields)
        sources = find_sources(Path(config.dumps), Interval(config.wiki, config.prev, config.recent), config.wikidata)
        inputs = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in sources.files]
        options = (config.seed, config.unchanged_fraction, config.allow_truncated)
        super().__init__(
            cache_dir=cache_dir,
            dataset_name="temporalwiki",
            config_name=config_name,
            # a class outside the Hub has no hash of its own: the cache would serve another build's rows
            hash=fingerprint(inputs, options),
            **fields,
        )
        self._sources = sources

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(features=datasets.Features.from_arrow_schema(SCHEMAS[self.config.name]))

    def _split_generators(self, dl_manager: datasets.DownloadManager) -> list[datasets.SplitGenerator]:
        config: TemporalWikiConfig = self.config
        options = BuildOptions(
            include=(config.name,),
            seed=config.seed,
            unchanged_fraction=config.unchanged_fraction,
            allow_truncated=config.allow_truncated,
        )
        work = Path(config.work)
        folder = work / "dataset"
        manifest = build(self._sources, folder, work / "build", options, Machine(jobs=config.jobs))
        [built] = [c for name, c in manifest["configs"].items() if name.startswith(f"{config.name}-")]
        return [
            datasets.SplitGenerator(
                name=split, gen_kwargs={"files": [str(folder / file["path"]) for file in written["files"]]}
            )
            for split, written in built["splits"].items()
            if written["num_examples"]
        ]

    def _generate_tables(self, files: list[str]) -> Iterator[tuple[Any, pa.Table]]:
        for number, path in enumerate(files):
            with pq.ParquetFile(path) as file:
                for group in range(file.num_row_groups):
                    yield (number, group), file.read_row_group(group)
