"""``temporalwiki ckl``: the configs of Continual Knowledge Learning, old and live."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import whole_file
from temporalwiki.base.options import from_mapping
from temporalwiki.builders.ckl.build_config import CONFIGS, LAMA, Sources, check_name, check_sources, make, options_of
from temporalwiki.builders.ckl.config import described, write
from temporalwiki.builders.ckl.text_model import RULES, TextModel, find_model
from temporalwiki.builders.inspection import describe_manifest
from temporalwiki.commands.build import add_folders, work_folder
from temporalwiki.commands.train import add_options
from temporalwiki.methods import needs
from temporalwiki.model_cards.folder_card import folder_card

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
_CANDIDATES = ("spans", "question_model", "answer_model", "per_page", "passages")  # options of candidates


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the subcommand's arguments: those of all configs, and those of the one that is asked for."""
    parser.epilog = _EXAMPLE
    _add_common(parser)
    name = _config_in(argv)
    if not name:
        return
    own = parser.add_argument_group(f"options of {name}")
    if (options := options_of(name)) is not None:
        add_options(own, options)
    elif not name.startswith("kilt"):
        own.add_argument("--seed", type=int, metavar="N", help="of what is drawn of --probes or --news (default: 0)")
        if name == "invariantlama":
            own.add_argument(
                "--dropped", type=Path, metavar="FILE", help="with --lama: write its rows that are left out, as JSONL"
            )
        elif name in ("updatedlama", "newlama"):
            _add_review(own)


def _add_common(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    parser.add_argument(
        "config",
        nargs=nargs,
        metavar="CONFIG",
        help=f"one of {', '.join(CONFIGS)}; kilt; with an interval, such as {LAMA[1]}-1112",
    )
    add_folders(parser, "ckl", "what is costly is kept for a rerun")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default: %(default)s)")
    sources = parser.add_argument_group("what it is made of")
    sources.add_argument("--probes", type=Path, nargs="+", metavar="DIR", help="dataset folders of temporalwiki")
    sources.add_argument("--lama", type=Path, metavar="DIR", help="LAMA's data; with --probes its templates alone")
    sources.add_argument("--review", type=Path, metavar="DIR", help="candidates, and decisions upon them")
    sources.add_argument(
        "--news", type=Path, nargs="+", metavar="PATHS", help="WARC files, saved pages, records, or folders of them"
    )
    sources.add_argument("--kilt", type=Path, metavar="DIR", help="KILT's JSONL files")


def _config_in(argv: list[str]) -> str:
    """Return the config that is asked for, wherever it stands; nothing where there is none."""
    first = argparse.ArgumentParser(add_help=False, exit_on_error=False, allow_abbrev=False)
    _add_common(first, "?")
    words = argv[argv.index("ckl") + 1 :] if "ckl" in argv else argv
    try:
        found, _ = first.parse_known_args([word for word in words if word not in ("-h", "--help", "--debug")])
        if found.config:
            check_name(found.config)
    except (argparse.ArgumentError, UsageError):
        return ""  # said when they are read in earnest
    return found.config or ""


def _add_review(group: Any) -> None:
    from temporalwiki.builders.ckl.candidates import CandidateOptions

    group.add_argument(
        "--past", type=Path, nargs="+", metavar="PATHS", help="the corpus in which old answers are found"
    )
    group.add_argument("--judge", metavar="MODEL", help='a model that decides, by folder or Hub id, or "rules"')
    group.add_argument("--least-annotators", type=int, metavar="N", help="that a decision needs (default: 1)")
    add_options(group, CandidateOptions, ("seed",))


def run(arguments: argparse.Namespace) -> None:
    """Write the config, or candidates for it, and say what became of the rows.

    Raises UsageError where a package is missing.
    """
    check_name(arguments.config)
    with needs("news" if arguments.news else "train"):
        for line in _run(arguments):
            print(line, flush=True)


def _run(arguments: argparse.Namespace) -> Iterator[str]:
    work = work_folder(arguments)
    if arguments.jobs < 1:
        raise UsageError(f"--jobs must be at least 1, not {arguments.jobs}")
    check_sources(arguments.config, arguments)
    decided = arguments.config in ("updatedlama", "newlama")
    names = ("past", "judge", "least_annotators", *_CANDIDATES) if decided else ()
    of_review = {name: getattr(arguments, name) for name in names}
    if arguments.review is None and (stray := next((name for name in of_review if of_review[name] is not None), None)):
        raise UsageError(f"--{stray.replace('_', '-')} is of candidates and decisions upon them: --review DIR")
    if getattr(arguments, "seed", None) is not None and not (arguments.probes or arguments.news):
        raise UsageError("--seed is of what is drawn of --probes or --news; here nothing is drawn")
    if arguments.probes and getattr(arguments, "dropped", None):
        raise UsageError("--dropped is of LAMA's rows; those of --probes are counted by reason in the manifest")
    if arguments.review and (arguments.news or arguments.past):
        yield _candidates(arguments, work)
        if not arguments.judge:
            return
    if of_review.get("judge"):
        from temporalwiki.builders.ckl.judge import judge

        yield f"decisions: {judge(arguments.review, find_model(arguments.judge, _open_model))}"
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
            seed=getattr(arguments, "seed", None) or 0,
            least_annotators=1 if of_review.get("least_annotators") is None else of_review["least_annotators"],
            on_drop=stack.enter_context(_drops(dropped)) if dropped else None,
        )
        for config in make(arguments.config, sources, _given(options, arguments) if options else None, _open_model):
            yield describe_manifest(arguments.out, write(config, arguments.out, folder_card))


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
    if not (past and news):
        raise UsageError("candidates are made of news, --news PATHS, and of a corpus of the past, --past PATHS")
    pages = find_news(news, NewsOptions(), work, arguments.jobs)
    with build_index(past, work / "past") as index:
        options = _given(CandidateOptions, arguments)
        about = write_candidates(pages.rows(), index, review, options, described(pages.pages.inputs), _open_model)
    number = about["counts"]["kept"]
    return (
        f"{review}: {number:,} candidates; {review}/README.md says how they are decided upon. "
        f"Then, or with --judge MODEL: temporalwiki ckl {arguments.config} --review {review}"
    )


def _open_model(reference: str) -> TextModel:
    """Open a language model; raise InputError if it, or a package that it needs, is missing."""
    try:  # here and not above: the base install has no torch
        from temporalwiki.eval_harness.text_model import open_model
    except ModuleNotFoundError as error:
        raise InputError(
            f"{reference}: a model needs {error.name}, which is not installed: pip install 'temporalwiki[train]', "
            f"or use {RULES}"
        ) from None
    return open_model(reference)


def _given(of: type, arguments: argparse.Namespace) -> Any:
    """Return options as they were given, the others by default."""
    values = {f.name: getattr(arguments, f.name, None) for f in fields(of)}
    return from_mapping(of, {name: value for name, value in values.items() if value is not None}, "")
