"""``temporalwiki ckl``: the configs of Continual Knowledge Learning, old and live."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from temporalwiki.builders.ckl.config import described, write
from temporalwiki.builders.ckl.make import CONFIGS, LAMA, NEWS, Sources, check_name, make, options_of
from temporalwiki.builders.engine import whole_file
from temporalwiki.builders.errors import UsageError
from temporalwiki.builders.inspection import describe_manifest
from temporalwiki.commands.train import add_options
from temporalwiki.methods import not_installed
from temporalwiki.methods.options import from_mapping

_EXAMPLE = """\
example:
  temporalwiki ckl invariantlama --lama LAMA                     # relations.jsonl and TREx/, CC BY-NC 4.0
  temporalwiki ckl updatedlama --probes temporalwiki             # of the newest interval; updatedlama-1112 of another
  temporalwiki ckl newlama --probes temporalwiki
  temporalwiki ckl invariantlama --probes temporalwiki           # what no interval of the folder changed
  temporalwiki ckl recentnews --news crawl/*.warc.gz --jobs 8    # and its small parts
  temporalwiki ckl newlama-easy --news crawl/*.warc.gz
  temporalwiki ckl kilt --kilt KILT
  temporalwiki ckl recentnews --help                             # with the options of a config

The paper's way to updatedlama and newlama, by people or a judge model:
  temporalwiki ckl updatedlama --news crawl --past wikipedia-2019 --review review   # candidates to decide upon
  temporalwiki ckl updatedlama --review review --judge MODEL                        # decisions of a model
  temporalwiki ckl updatedlama --review review                                      # what they make of it
"""


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments: those of all configs, and those of the one that is asked for."""
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "config", metavar="CONFIG", help=f"one of {', '.join(CONFIGS)}; kilt; with an interval, such as {LAMA[1]}-1112"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("ckl"), metavar="DIR", help="the dataset folder (default: %(default)s)"
    )
    parser.add_argument(
        "--work", type=Path, metavar="DIR", help="where what is costly is kept for a rerun (default: OUT.work)"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default: %(default)s)")
    sources = parser.add_argument_group("what it is made of")
    sources.add_argument("--lama", type=Path, metavar="DIR", help="LAMA's data; with --probes its templates alone")
    sources.add_argument("--probes", type=Path, nargs="+", metavar="DIR", help="dataset folders of temporalwiki")
    sources.add_argument(
        "--news", type=Path, nargs="+", metavar="PATHS", help="WARC files, saved pages, records, or folders of them"
    )
    sources.add_argument("--kilt", type=Path, metavar="DIR", help="KILT's JSONL files")
    sources.add_argument("--review", type=Path, metavar="DIR", help="candidates, and decisions upon them")
    name = next((word for word in argv[1:] if not word.startswith("-")), "")
    own = parser.add_argument_group(f"options of {name}") if name else None
    if own is not None and name.startswith(LAMA) and name not in CONFIGS[len(LAMA) :]:
        own.add_argument("--seed", type=int, default=0, metavar="N", help="of what is drawn (default: %(default)s)")
        if name.startswith("invariantlama"):
            own.add_argument(
                "--dropped", type=Path, metavar="FILE", help="write LAMA's rows that are left out, as JSONL"
            )
        else:
            _add_review(own)
    elif own is not None and (options := options_of(name)) is not None:
        add_options(own, options)


def _add_review(group: Any) -> None:
    from temporalwiki.builders.ckl.candidates import CandidateOptions

    group.add_argument(
        "--past", type=Path, nargs="+", metavar="PATHS", help="the corpus in which old answers are found"
    )
    group.add_argument("--judge", metavar="MODEL", help='a model that decides, by folder or Hub id, or "rules"')
    group.add_argument(
        "--least-annotators", type=int, default=1, metavar="N", help="that a decision needs (default: %(default)s)"
    )
    add_options(group, CandidateOptions, ("seed",))


def run(arguments: argparse.Namespace) -> None:
    """Write the config, or candidates for it, and say what became of the rows."""
    check_name(arguments.config)
    try:
        for line in _run(arguments):
            print(line, flush=True)
    except ModuleNotFoundError as error:
        extra = "news" if arguments.config in NEWS or arguments.news else "eval"
        raise not_installed(error, extra) from None


def _run(arguments: argparse.Namespace) -> Iterator[str]:
    out = arguments.out.resolve()  # so that "." and ".." have names, too
    work = arguments.work or out.with_name(f"{out.name}.work")
    if arguments.jobs < 1:
        raise UsageError(f"--jobs must be at least 1, not {arguments.jobs}")
    if getattr(arguments, "past", None) or (arguments.review and arguments.news):
        yield _candidates(arguments, work)
        return
    if getattr(arguments, "judge", None):
        from temporalwiki.builders.ckl.judge import judge

        if arguments.review is None:
            raise UsageError("--judge decides upon candidates: name them with --review DIR")
        yield f"decisions: {judge(arguments.review, arguments.judge)}"
    options = options_of(arguments.config)
    with ExitStack() as stack:
        dropped = getattr(arguments, "dropped", None)
        sources = Sources(
            lama=arguments.lama,
            kilt=arguments.kilt,
            news=tuple(arguments.news or ()),
            probes=tuple(arguments.probes or ()),
            review=arguments.review,
            work=work,
            jobs=arguments.jobs,
            seed=getattr(arguments, "seed", 0),
            least_annotators=getattr(arguments, "least_annotators", 1),
            on_drop=stack.enter_context(_drops(dropped)) if dropped else None,
        )
        for config in make(arguments.config, sources, _given(options, arguments) if options else None):
            yield describe_manifest(arguments.out, write(config, out))


@contextmanager
def _drops(path: Path) -> Iterator[Callable[[Any, str], None]]:
    """Write rows that are left out, each with its rule, as JSONL."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as part, part.open("w", encoding="utf-8") as file:
        yield lambda row, rule: print(json.dumps({"rule": rule, **row}, ensure_ascii=False), file=file)


def _candidates(arguments: argparse.Namespace, work: Path) -> str:
    """Write candidates for annotators, and say what is to be done with them."""
    from temporalwiki.builders.ckl.candidates import CandidateOptions, write_candidates
    from temporalwiki.builders.ckl.corpus_index import build_index
    from temporalwiki.builders.ckl.recentnews import NewsOptions, find_news

    review, past, news = arguments.review, arguments.past, arguments.news
    if not (review and past and news):
        raise UsageError(
            "candidates are made of news (--news PATHS) and a corpus of the past (--past PATHS), for --review DIR"
        )
    pages = find_news(news, NewsOptions(), work, arguments.jobs)
    with build_index(past, work / "past") as index:
        options = _given(CandidateOptions, arguments)
        about = write_candidates(pages.rows(), index, review, options, described(pages.pages.inputs))
    number = about["counts"]["kept"]
    return (
        f"{review}: {number:,} candidates; {review}/README.md says how they are decided upon. "
        f"Then, or with --judge MODEL: temporalwiki ckl {arguments.config} --review {review}"
    )


def _given(of: type, arguments: argparse.Namespace) -> Any:
    """Return options as they were given, the others by default."""
    values = {f.name: getattr(arguments, f.name, None) for f in fields(of)}
    return from_mapping(of, {name: value for name, value in values.items() if value is not None}, "")
