"""``temporalwiki build``: two snapshots into a dataset folder."""

from __future__ import annotations

import argparse
from inspect import signature
from pathlib import Path

from temporalwiki.api.build import build
from temporalwiki.api.table import Table
from temporalwiki.builders.build import BuildOptions
from temporalwiki.builders.executors import EXECUTORS
from temporalwiki.builders.finish import INCLUDE
from temporalwiki.builders.snapshot import Interval, read_date

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
        help=f"more configs to build; of {', '.join(INCLUDE)}, all but wikipedia are always built",
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
        help="which sentences count as the same: folded ignores case, punctuation, quotes, dashes and white space; "
        "exact ignores only white space, as in the paper (default: %(default)s)",
    )
    parser.add_argument(
        "--caps",
        default="0.01,0.05,0.05",
        metavar="S,R,O",
        help="at most these shares of a split's probes may have the same subject, relation and object; none keeps all "
        "aligned facts (default: %(default)s)",
    )
    parser.add_argument(
        "--allow-truncated",
        action="store_true",
        help="read dumps that were cut off, and record it in the manifest",
    )
    parser.add_argument(
        "--accept-dates",
        action="store_true",
        help="build even if a dump's newest revision does not fit the date of its snapshot",
    )


def add_interval(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for an interval and its dumps."""
    parser.add_argument(
        "prev", metavar="PREV", help="date of the earlier Wikipedia dump, such as 20211101 or 2021-11-01"
    )
    parser.add_argument("recent", metavar="RECENT", help="date of the later dump")
    parser.add_argument("--wiki", default="enwiki", help="database name of the wiki (default: %(default)s)")
    parser.add_argument(
        "--dumps", type=Path, required=True, metavar="DIR", help="folder of dumps, laid out as on Wikimedia's server"
    )
    parser.add_argument(
        "--wikidata",
        nargs=2,
        metavar=("DATE_PREV", "DATE_RECENT"),
        help="dates of the Wikidata dumps (default: the newest at or before each snapshot)",
    )


def read_interval(arguments: argparse.Namespace) -> tuple[Interval, tuple[str, str] | None]:
    """Return the interval, and the dates of --wikidata or None. Raises UsageError for a wrong date."""
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
        metavar="SIZE",
        help="memory of all jobs together, such as 16GB (default: 8GB, or 1GB a job if that is more, but no more than "
        "there is)",
    )


def run(arguments: argparse.Namespace) -> Table:
    """Build an interval, or estimate it with --plan."""
    named = {name: value for name, value in vars(arguments).items() if name in signature(build).parameters}
    return build(**named)
