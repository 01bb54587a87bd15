"""``temporalwiki build``: build a dataset folder from two snapshots of Wikipedia and Wikidata.

Example:

    temporalwiki build 20211101 20211201 --dumps dumps --out temporalwiki
    python -c 'from datasets import load_dataset; print(load_dataset("temporalwiki", "diffset-1112"))'
"""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from temporalwiki.api.arguments import Arg, Count, Flag, Folder
from temporalwiki.api.table import Table
from temporalwiki.base.errors import UsageError
from temporalwiki.builders import build as builder
from temporalwiki.builders.build import BuildOptions, find_sources
from temporalwiki.builders.estimate import describe_plan, estimate
from temporalwiki.builders.executors import EXECUTORS
from temporalwiki.builders.finish import INCLUDE
from temporalwiki.builders.inspection import describe_manifest
from temporalwiki.builders.machine import find_machine
from temporalwiki.builders.manifests import BuiltManifest, Manifest
from temporalwiki.builders.snapshot import Interval, read_date
from temporalwiki.builders.wikidata.probes import CAPS, Caps
from temporalwiki.model_cards.folder_card import folder_card

_DEFAULTS = BuildOptions()
Engine = Annotated[str, Arg(choices=EXECUTORS)]


@dataclass(frozen=True, repr=False)
class Built(Table):
    """An interval of a dataset folder: a row for each split of each config, and the manifest with all counts.

    With ``plan=True`` there is a row for each stage, and no manifest.
    """

    manifest: BuiltManifest | None


def build(
    prev: Annotated[str, Arg("PREV", positional=True)],
    recent: Annotated[str, Arg("RECENT", positional=True)],
    *,
    dumps: Folder,
    out: Folder = "temporalwiki",
    work: Folder | None = None,
    wiki: Annotated[str, Arg()] = "enwiki",
    wikidata: Annotated[Sequence[str], Arg(("DATE_PREV", "DATE_RECENT"), nargs=2)] | None = None,
    include: Annotated[str | Sequence[str], Arg("CONFIG,...", names=INCLUDE)] = (),
    seed: Count = _DEFAULTS.seed,
    unchanged_fraction: Annotated[float, Arg("X")] = _DEFAULTS.unchanged_fraction,
    compare: Annotated[str, Arg("RULE")] = _DEFAULTS.compare,
    caps: Annotated[str | Caps, Arg("S,R,O")] | None = CAPS,
    variant: Annotated[str, Arg("CODE")] | None = _DEFAULTS.variant,
    allow_truncated: Flag = False,
    accept_dates: Flag = False,
    engine: Engine = "local",
    jobs: Count | None = None,
    memory: Annotated[str | int, Arg("SIZE")] | None = None,
    plan: Flag = False,
) -> Built:
    """Build an interval into the dataset folder ``out``. The arguments are the options of ``temporalwiki build``.

    A rerun continues where a build stopped, and gives the same bytes. With ``plan``, the rows are the estimated costs
    of the stages, and nothing is built.

    Args:
        prev: date of the earlier Wikipedia dump, such as 20211101 or 2021-11-01.
        recent: date of the later dump.
        dumps: folder of dumps, laid out as on Wikimedia's server.
        out: the dataset folder.
        work: the folder that keeps extracts for a rerun and for next month; OUT.work by default.
        wiki: database name of the wiki.
        wikidata: dates of the two Wikidata dumps; by default the newest at or before each snapshot.
        include: more configs to build, such as wikipedia and deletions, separated by commas.
        seed: seed of all samples.
        unchanged_fraction: share of the unchanged facts to sample.
        compare: which sentences count as the same: folded ignores case, punctuation, quotes, dashes and white space;
            exact ignores only white space, as in the paper.
        caps: at most these shares of a split's probes may have the same subject, relation and object; none keeps all
            aligned facts. In Python, also three numbers or None.
        variant: variant of the language for text with several and for labels, such as zh-tw or sr-el; by default what
            readers see who chose none.
        allow_truncated: read dumps that were cut off, and record it in the manifest.
        accept_dates: build even if a dump's newest revision does not fit the date of its snapshot.
        engine: where tasks run. ray: on the cluster of RAY_ADDRESS, or on one of this machine. slurm: as job arrays,
            with partition, account and time limit from SBATCH_PARTITION and so on. For both, the dumps and the work
            folder must be on storage that all nodes share.
        jobs: tasks at once; by default the cores here or in the Ray cluster, and 100 with slurm.
        memory: memory of all jobs together, such as 16GB; by default 8GB, or 1GB a job if that is more, but no more
            than there is. In Python, also a number of bytes.
        plan: print the estimated time and disk for the number of jobs, and stop.

    Raises UsageError for a wrong argument, and InputError for dumps or folders that cannot be used.
    """
    # check the arguments before any work
    machine = find_machine("local", jobs, memory)
    interval, dates = read_interval(wiki, prev, recent, wikidata)
    options = BuildOptions(
        include=tuple(
            sorted({name for name in (include.split(",") if isinstance(include, str) else include) if name})
        ),
        seed=seed,
        unchanged_fraction=unchanged_fraction,
        allow_truncated=allow_truncated,
        compare=compare,
        caps=_caps(caps) if isinstance(caps, str) else caps,
        variant=variant,
    )
    sources = find_sources(Path(dumps), interval, dates)
    folder, kept = Path(out), work_folder(out, work)
    if plan:
        stages = estimate(sources, folder, kept, options)
        return Built(folder, [asdict(stage) for stage in stages], describe_plan(stages, machine, folder, kept), None)
    if engine != "local":
        machine = find_machine(engine, jobs, memory)
    manifest = builder.build(sources, folder, kept, options, machine, folder_card, accept_dates)
    return Built(folder, split_rows(manifest), describe_manifest(folder, manifest), manifest)


def read_interval(
    wiki: str, prev: str, recent: str, wikidata: Sequence[str] | None
) -> tuple[Interval, tuple[str, str] | None]:
    """Return the interval, and the dates of the Wikidata dumps or None. Raises UsageError for a wrong date."""
    interval = Interval(wiki, read_date(str(prev)), read_date(str(recent)))
    if wikidata is None:
        return interval, None
    of_prev, of_recent = map(read_date, wikidata)
    return interval, (of_prev, of_recent)


def split_rows(manifest: Manifest) -> list[dict[str, Any]]:
    """Return a row for each split of each config."""
    return [
        {"config": name, "short_name": config.short_name, "split": split, "rows": written.num_examples}
        for name, config in sorted(manifest.configs.items())
        for split, written in sorted(config.splits.items())
    ]


def work_folder(out: str | os.PathLike[str], work: str | os.PathLike[str] | None) -> Path:
    """Return ``work``, or else the default work folder of a dataset folder: its name with ".work" added."""
    if work is not None:
        return Path(work)
    folder = Path(out).resolve()  # "." and ".." have no names
    return folder.with_name(f"{folder.name}.work")


def _caps(text: str) -> Caps | None:
    """Return the shares of --caps, or None for "none"."""
    if text == "none":
        return None
    try:
        subject, relation, object = map(float, text.split(","))
    except ValueError:
        raise UsageError(f"--caps: {text!r} is not three shares: write 0.01,0.05,0.05 or none") from None
    return subject, relation, object
