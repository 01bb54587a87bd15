"""``temporalwiki ckl``: build the configs of Continual Knowledge Learning (CKL)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from temporalwiki.api.build import split_rows, work_folder
from temporalwiki.api.table import Table, tell
from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.ckl.build_config import (
    CONFIGS,
    EASY,
    LAMA,
    CklSources,
    build_configs,
    check_name,
    check_sources,
    options_of,
)
from temporalwiki.builders.ckl.config import described, write
from temporalwiki.builders.ckl.text_model import RULES, TextModel
from temporalwiki.builders.dataset_folder import check_place
from temporalwiki.builders.inspection import describe_manifest
from temporalwiki.builders.manifests import CklManifest
from temporalwiki.commands.build import add_folders
from temporalwiki.commands.train import add_options, given_options
from temporalwiki.methods import needs
from temporalwiki.model_cards.folder_card import folder_card

_EXAMPLE = """\
example:
  temporalwiki ckl invariantlama --lama LAMA                     # relations.jsonl and TREx/, CC BY-NC 4.0
  temporalwiki ckl updatedlama --probes temporalwiki             # the newest interval
  temporalwiki ckl updatedlama-1112 --probes temporalwiki        # November to December
  temporalwiki ckl newlama --probes temporalwiki
  temporalwiki ckl invariantlama --probes temporalwiki           # facts that no interval of the folder changed
  temporalwiki ckl recentnews --news crawl/*.warc.gz --jobs 8    # with its small parts
  temporalwiki ckl newlama-easy --news crawl/*.warc.gz           # with its small parts, and newquestions-easy
  temporalwiki ckl wikipedia --past wikipedia-2019               # what Mix-Review mixes in
  temporalwiki ckl kilt --kilt KILT
  temporalwiki ckl recentnews --help                             # the options of a config

updatedlama and newlama as in the paper, from the decisions of people in Label Studio or of a judge model:
  temporalwiki ckl updatedlama --news crawl --past wikipedia-2019 --review review   # write tasks for Label Studio
  temporalwiki ckl updatedlama --review review --judge MODEL                        # let a model decide
  temporalwiki ckl updatedlama --review review                                      # build from the decisions
"""


def add_arguments(parser: argparse.ArgumentParser, argv: list[str]) -> None:
    """Add the arguments of all configs, and of the config that ``argv`` names."""
    parser.epilog = _EXAMPLE
    _add_common(parser)
    name = _config_in(argv)
    if not name:
        return
    own = parser.add_argument_group(f"options of {name}")
    if (options := options_of(name)) is not None:
        add_options(own, options)
    elif not name.startswith("kilt"):
        own.add_argument("--seed", type=int, metavar="N", help="seed of the draw (default: 0)")
        if name in ("updatedlama", "newlama"):
            _add_review(own)


def _add_common(parser: argparse.ArgumentParser, nargs: str | None = None) -> None:
    parser.add_argument(
        "config",
        nargs=nargs,
        metavar="CONFIG",
        help=f"one of {', '.join(CONFIGS)}; kilt for all of KILT; or a name with an interval, such as {LAMA[1]}-1112",
    )
    add_folders(parser, "ckl", "the folder that keeps costly results for a rerun")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default: %(default)s)")
    sources = parser.add_argument_group("sources")
    sources.add_argument("--probes", type=Path, nargs="+", metavar="DIR", help="dataset folders of temporalwiki")
    sources.add_argument(
        "--lama", type=Path, metavar="DIR", help="LAMA's data; with --probes, only its templates are used"
    )
    sources.add_argument("--review", type=Path, metavar="DIR", help="candidates and the decisions on them")
    sources.add_argument(
        "--news", type=Path, nargs="+", metavar="PATHS", help="WARC files, saved pages, records, or folders of them"
    )
    sources.add_argument(
        "--past", type=Path, nargs="+", metavar="PATHS", help="an older corpus: Parquet or JSONL, or folders of them"
    )
    sources.add_argument("--kilt", type=Path, metavar="DIR", help="KILT's JSONL files")


def _config_in(argv: list[str]) -> str:
    """Return the config that the arguments name; "" if they name none."""
    first = argparse.ArgumentParser(add_help=False, exit_on_error=False, allow_abbrev=False)
    _add_common(first, "?")
    words = argv[argv.index("ckl") + 1 :] if "ckl" in argv else argv
    try:
        found, _ = first.parse_known_args([word for word in words if word not in ("-h", "--help", "--debug")])
        if found.config:
            check_name(found.config)
    except (argparse.ArgumentError, UsageError):
        return ""  # the real parser reports it
    return found.config or ""


def _add_review(group: Any) -> None:
    from temporalwiki.builders.ckl.candidates import CandidateOptions

    group.add_argument("--judge", metavar="MODEL", help='a model that decides, by folder or Hub id, or "rules"')
    group.add_argument(
        "--least-annotators",
        type=int,
        metavar="N",
        help="annotators who must have decided on a candidate (default: 1)",
    )
    add_options(group, CandidateOptions, ("seed",))


def run(arguments: argparse.Namespace) -> Table:
    """Write the config, or candidates for it, print the counts, and return a row for each split.

    Raises UsageError if a package is missing.
    """
    check_name(arguments.config)
    rows: list[dict[str, Any]] = []
    with needs("news" if arguments.news else "train"):
        for made in _run(arguments):
            if isinstance(made, str):
                tell(made, arguments.json)
            else:
                tell(describe_manifest(arguments.out, made), arguments.json)
                rows += split_rows(made)
    return Table(arguments.out, rows, "")


def _run(arguments: argparse.Namespace) -> Iterator[str | CklManifest]:
    """Yield messages, and the manifest of each config that was written."""
    work = work_folder(arguments.out, arguments.work)
    if arguments.jobs < 1:
        raise UsageError(f"--jobs must be at least 1, not {arguments.jobs}")
    check_sources(arguments.config, arguments)
    from_review = arguments.config in ("updatedlama", "newlama")
    names = ("judge", "least_annotators", *_candidate_options()) if from_review else ()
    of_review = {name: getattr(arguments, name) for name in names}
    if arguments.review is None and (stray := next((name for name in of_review if of_review[name] is not None), None)):
        raise UsageError(f"--{stray.replace('_', '-')} needs a folder of candidates and decisions: --review DIR")
    if getattr(arguments, "seed", None) is not None and not (arguments.probes or arguments.news or arguments.past):
        raise UsageError("--seed needs --probes, --news or --past: nothing else is drawn at random")
    # cheap checks first: nobody should wait for the news only to learn that a folder or model is wrong
    check_place(arguments.out, "CKL")
    for model in _models(arguments):
        _open_model(model)
    if arguments.review and arguments.news:
        yield _candidates(arguments, work)
        if not arguments.judge:
            return
    if of_review.get("judge"):
        from temporalwiki.builders.ckl.judge import judge

        yield f"decisions: {judge(arguments.review, _judge(arguments.judge))}"
    options = options_of(arguments.config)
    sources = CklSources(
        lama=arguments.lama,
        kilt=arguments.kilt,
        news=tuple(arguments.news or ()),
        past=tuple(arguments.past or ()),
        probes=tuple(arguments.probes or ()),
        review=arguments.review,
        work=work,
        jobs=arguments.jobs,
        seed=getattr(arguments, "seed", None) or 0,
        least_annotators=1 if of_review.get("least_annotators") is None else of_review["least_annotators"],
    )
    own = given_options(options, arguments) if options else None
    for config in build_configs(arguments.config, sources, own, _open_model):
        yield write(config, arguments.out, folder_card)


def _candidate_options() -> Iterator[str]:
    from temporalwiki.builders.ckl.candidates import CandidateOptions

    return (field.name for field in fields(CandidateOptions) if field.name != "seed")


def _candidates(arguments: argparse.Namespace, work: Path) -> str:
    """Write candidates for annotators; return the next steps as a message."""
    from temporalwiki.builders.ckl.candidates import CandidateOptions, write_candidates
    from temporalwiki.builders.ckl.corpus_index import build_index
    from temporalwiki.builders.ckl.recentnews import NewsOptions, find_news

    review, past, news = arguments.review, arguments.past, arguments.news
    options = given_options(CandidateOptions, arguments)
    pages = find_news(news, NewsOptions(language=options.language), work, arguments.jobs)
    with build_index(past, work / "past", options.language) as index:
        manifest = write_candidates(pages.rows(), index, review, options, described(pages.pages.inputs), _open_model)
    number = manifest.counts.kept
    return (
        f"{review}: {number:,} candidates. Import tasks.json into a project of Label Studio with the interface "
        f"labels.xml, and export it as JSON into {review}/annotations. Then, or with --judge MODEL: "
        f"temporalwiki ckl {arguments.config} --review {review}"
    )


def _models(arguments: argparse.Namespace) -> Iterator[str]:
    """Yield the models that a command needs."""
    if getattr(arguments, "judge", None) not in (None, RULES):
        yield arguments.judge
    if arguments.config in EASY:
        from temporalwiki.builders.ckl.easy import MODELS, EasyOptions

        easy = given_options(EasyOptions, arguments)
        yield from dict.fromkeys(model for name in MODELS if (model := getattr(easy, name)) is not None)
    elif arguments.review and arguments.news:
        from temporalwiki.builders.ckl.candidates import CandidateOptions

        options = given_options(CandidateOptions, arguments)
        yield from (model for model in (options.question_model, options.answer_model) if model is not None)


def _judge(name: str) -> TextModel | None:
    return None if name == RULES else _open_model(name)


def _open_model(reference: str) -> TextModel:
    """Open a language model; raise InputError if the model or a package that it needs is missing."""
    try:  # not imported at the top: the base install has no torch
        from temporalwiki.eval_harness.text_model import open_model
    except ModuleNotFoundError as error:
        raise InputError(
            f"{reference}: a model needs {error.name}, which is not installed: pip install 'temporalwiki[train]'"
        ) from None
    return open_model(reference)
