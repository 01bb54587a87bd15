"""``temporalwiki build``: two snapshots into a dataset folder."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from temporalwiki.base.terminal import print_result
from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.estimate import describe_plan, estimate
from temporalwiki.builders.executors import EXECUTORS
from temporalwiki.builders.finish import INCLUDE
from temporalwiki.builders.inspection import describe_manifest
from temporalwiki.builders.machine import find_machine
from temporalwiki.builders.snapshot import Interval, read_date
from temporalwiki.builders.wikidata.probes import Caps
from temporalwiki.model_cards.folder_card import folder_card

_EXAMPLE = """\
example:
  temporalwiki build 20211101 20211201 --dumps dumps --out temporalwiki
  python -c 'from datasets import load_dataset; print(load_dataset("temporalwiki", "diffset-1112"))'
"""


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the arguments of the subcommand."""
    options = BuildOptions()
    parser.epilog = _EXAMPLE
    add_interval(parser)
    add_folders(parser, "temporalwiki", "the folder that keeps extracts for a rerun and for next month")
    parser.add_argument(
        "--include",
        default="",
        metavar="CONFIG,...",
        help=f"configs to build; of {', '.join(INCLUDE)}, all but wikipedia are always built",
    )
    add_machine(parser)
    parser.add_argument(
        "--plan",
        action="store_true",
        help="print the estimated time and disk for --jobs (default: the cores here), and stop",
    )
    parser.add_argument("--seed", type=int, default=options.seed, metavar="N", help="seed of all samples (default: 0)")
    parser.add_argument(
        "--unchanged-fraction",
        type=float,
        default=options.unchanged_fraction,
        metavar="X",
        help="share of the unchanged facts to sample (default: %(default)s)",
    )
    parser.add_argument(
        "--compare",
        default=options.compare,
        metavar="RULE",
        help="which sentences count as the same: folded, those that differ only in case, punctuation, quotes, dashes "
        "and white space; exact, as in the paper, only in white space (default: %(default)s)",
    )
    parser.add_argument(
        "--caps",
        type=caps,
        default=options.caps,
        metavar="S,R,O",
        help="the largest shares of the probes of a split with one subject, one relation and one object, or none to "
        "keep all aligned facts (default: 0.01,0.05,0.05)",
    )
    parser.add_argument(
        "--allow-truncated",
        action="store_true",
        help="read dumps that were cut off, and record it in the manifest",
    )
    parser.add_argument(
        "--accept-dates",
        action="store_true",
        help="build from text whose newest revision is older than the other snapshot's, or long before its own date",
    )


def add_interval(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for an interval and its dumps."""
    parser.add_argument(
        "prev", metavar="PREV", help="date of the earlier Wikipedia dump, such as 20211101 or 2021-11-01"
    )
    parser.add_argument("recent", metavar="RECENT", help="date of the later dump")
    parser.add_argument("--wiki", default="enwiki", help="database name of the wiki (default: %(default)s)")
    parser.add_argument("--dumps", type=Path, required=True, metavar="DIR", help="folder of dumps, as Wikimedia's")
    parser.add_argument(
        "--wikidata",
        nargs=2,
        metavar=("DATE_PREV", "DATE_RECENT"),
        help="dates of the Wikidata dumps (default: the newest at or before each snapshot)",
    )


def read_interval(arguments: argparse.Namespace) -> tuple[Interval, tuple[str, str] | None]:
    """Return the interval, and the dates of --wikidata. Raises UsageError for a wrong date."""
    interval = Interval(arguments.wiki, read_date(arguments.prev), read_date(arguments.recent))
    if arguments.wikidata is None:
        return interval, None
    prev, recent = map(read_date, arguments.wikidata)
    return interval, (prev, recent)


def add_folders(parser: argparse.ArgumentParser, out: str, work: str) -> None:
    """Add --out, the dataset folder, and --work, with ``work`` as its help."""
    parser.add_argument(
        "--out", type=Path, default=Path(out), metavar="DIR", help="the dataset folder (default: %(default)s)"
    )
    parser.add_argument("--work", type=Path, metavar="DIR", help=f"{work} (default: OUT.work)")


def work_folder(arguments: argparse.Namespace) -> Path:
    """Return the folder of --work, by default the name of --out and ".work"."""
    out: Path = arguments.out.resolve()  # "." and ".." have no names
    return arguments.work or out.with_name(f"{out.name}.work")


def add_machine(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the machine that runs tasks."""
    parser.add_argument(
        "--engine",
        choices=EXECUTORS,
        default="local",
        help="where tasks run (default: %(default)s). ray: on the cluster of RAY_ADDRESS, or on one of this machine. "
        "slurm: as job arrays, with partition, account and time limit from SBATCH_PARTITION and so on. For both, "
        "--dumps and --work must be on storage that all nodes share",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="tasks at once (default: the cores here or in the Ray cluster; 100 with slurm)",
    )
    parser.add_argument(
        "--memory",
        type=size_in_bytes,
        metavar="SIZE",
        help="memory of all jobs together (default: 8GB, or 1GB a job if that is more, but no more than there is)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Build an interval, or print the estimate of --plan."""
    # check the arguments before any work
    machine = find_machine("local", arguments.jobs, arguments.memory)
    interval, wikidata = read_interval(arguments)
    options = BuildOptions(
        include=tuple(sorted({name for name in arguments.include.split(",") if name})),
        seed=arguments.seed,
        unchanged_fraction=arguments.unchanged_fraction,
        allow_truncated=arguments.allow_truncated,
        compare=arguments.compare,
        caps=arguments.caps,
    )
    sources = find_sources(arguments.dumps, interval, wikidata)
    work = work_folder(arguments)
    if arguments.plan:
        print_result(describe_plan(estimate(sources, arguments.out, work, options), machine, arguments.out, work))
        return
    if arguments.engine != "local":
        machine = find_machine(arguments.engine, arguments.jobs, arguments.memory)
    manifest = build(sources, arguments.out, work, options, machine, folder_card, arguments.accept_dates)
    print_result(describe_manifest(arguments.out, manifest))


def caps(text: str) -> Caps | None:
    """Return the shares of --caps, or None for "none"."""
    if text == "none":
        return None
    try:
        subject, relation, object = map(float, text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not three shares: write 0.01,0.05,0.05 or none") from None
    return subject, relation, object


def size_in_bytes(text: str) -> int:
    """Return the bytes of a size such as 8GB or 500MB."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size: write 8GB or 500MB")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))
