"""``temporalwiki ckl``: build a config of Continual Knowledge Learning, from LAMA, news, KILT, or a month's changes.

Example:

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

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from temporalwiki.api.arguments import Arg
from temporalwiki.api.build import split_rows, work_folder
from temporalwiki.api.table import Table, tell
from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.options import from_mapping, option
from temporalwiki.builders.ckl.build_config import CklSources, build_configs, check_sources, options_of
from temporalwiki.builders.ckl.config import described, write
from temporalwiki.builders.ckl.schemas import CONFIGS, EASY, check_name
from temporalwiki.builders.ckl.text_model import RULES, TextModel
from temporalwiki.builders.dataset_folder import check_place
from temporalwiki.builders.inspection import describe_manifest
from temporalwiki.methods import needs
from temporalwiki.model_cards.folder_card import folder_card

REVIEWED = ("updatedlama", "newlama")
_Source = Annotated[str | os.PathLike[str], Arg("DIR", group="sources")]
_Sources = Annotated[Sequence[str | os.PathLike[str]], Arg("PATHS", nargs="+", group="sources")]


@dataclass(frozen=True)
class _Draw:
    seed: int = option(0, "seed of the draw")


def ckl(
    config: Annotated[str, Arg("CONFIG", positional=True, names=CONFIGS)],
    *,
    out: Annotated[str | os.PathLike[str], Arg("DIR")] = "ckl",
    work: Annotated[str | os.PathLike[str], Arg("DIR")] | None = None,
    jobs: Annotated[int, Arg("N")] = 1,
    probes: Annotated[Sequence[str | os.PathLike[str]], Arg("DIR", nargs="+", group="sources")] = (),
    lama: _Source | None = None,
    review: _Source | None = None,
    news: _Sources = (),
    past: _Sources = (),
    kilt: _Source | None = None,
    **options: Any,
) -> Table:
    """Write a config, or candidates for it, and return a row for each split.

    Args:
        config: name of a config; kilt for all of KILT; or a name with an interval, such as updatedlama-1112.
        out: the dataset folder.
        work: the folder that keeps costly results for a rerun; OUT.work by default.
        jobs: processes.
        probes: dataset folders of temporalwiki.
        lama: LAMA's data; with --probes, only its templates are used.
        review: candidates and the decisions on them.
        news: WARC files, saved pages, records, or folders of them.
        past: an older corpus: Parquet or JSONL, or folders of them.
        kilt: KILT's JSONL files.
        options: options of the config, such as ``seed=1``.

    Raises UsageError for a wrong argument or if a package is missing, and InputError for wrong sources.
    """
    check_name(config)
    if jobs < 1:
        raise UsageError(f"--jobs must be at least 1, not {jobs}")
    folder, kept = Path(out), work_folder(out, work)
    own = {name: value for name, value in options.items() if value is not None}
    sources = CklSources(
        lama=_path(lama),
        kilt=_path(kilt),
        news=tuple(map(Path, news)),
        past=tuple(map(Path, past)),
        probes=tuple(map(Path, probes)),
        review=_path(review),
        work=kept,
        jobs=jobs,
        seed=from_mapping(_Draw, {"seed": own["seed"]}, "--").seed if "seed" in own else 0,
        least_annotators=int(own.get("least_annotators", 1)),
    )
    check_sources(config, sources)
    if review is None and config in REVIEWED and (stray := next((name for name in own if name != "seed"), None)):
        raise UsageError(f"--{stray.replace('_', '-')} needs a folder of candidates and decisions: --review DIR")
    if "seed" in own and not (probes or news or past):
        raise UsageError("--seed needs --probes, --news or --past: nothing else is drawn at random")
    made = []
    with needs("news" if news else "train"):
        for manifest in _build(config, folder, sources, own):
            tell(describe_manifest(folder, manifest))
            made += split_rows(manifest)
    return Table(folder, made, "")


def own_options(config: str) -> type | None:
    """Return a dataclass of the options that only this config has, or None."""
    if config.startswith("kilt") or options_of(config) is not None:
        return options_of(config)
    if config not in REVIEWED:
        return _Draw
    from temporalwiki.builders.ckl.candidates import CandidateOptions

    @dataclass(frozen=True)
    class ReviewOptions(CandidateOptions):
        judge: str | None = option(None, 'a model that decides, by folder or Hub id, or "rules"')
        least_annotators: int = option(1, "annotators who must have decided on a candidate")

    return ReviewOptions


def _path(given: str | os.PathLike[str] | None) -> Path | None:
    return None if given is None else Path(given)


def _build(config: str, out: Path, sources: CklSources, own: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the manifest of each config that was written."""
    kind = own_options(config)
    options = from_mapping(kind, own, "") if kind is not None else None
    judge = getattr(options, "judge", None)
    # cheap checks first: nobody should wait for the news only to learn that a folder or model is wrong
    check_place(out, "CKL")
    for model in _models(config, sources, options):
        _open_model(model)
    if sources.review and sources.news:
        tell(_candidates(config, sources, options))
        if judge is None:
            return
    if judge is not None:
        from temporalwiki.builders.ckl.judge import judge as decide

        assert sources.review is not None
        tell(f"decisions: {decide(sources.review, None if judge == RULES else _open_model(judge))}")
    for built in build_configs(config, sources, options if options_of(config) else None, _open_model):
        yield write(built, out, folder_card)


def _candidates(config: str, sources: CklSources, options: Any) -> str:
    """Write candidates for annotators; return the next steps as a message."""
    from temporalwiki.builders.ckl.candidates import CandidateOptions, write_candidates
    from temporalwiki.builders.ckl.corpus_index import build_index
    from temporalwiki.builders.ckl.recentnews import NewsOptions, find_news

    review = sources.review
    own = CandidateOptions(**{f.name: getattr(options, f.name) for f in fields(CandidateOptions)})
    assert review is not None
    pages = find_news(list(sources.news), NewsOptions(language=own.language), sources.work, sources.jobs)
    with build_index(list(sources.past), sources.work / "past", own.language) as index:
        manifest = write_candidates(pages.rows(), index, review, own, described(pages.pages.inputs), _open_model)
    return (
        f"{review}: {manifest.counts.kept:,} candidates. Import tasks.json into a project of Label Studio with the "
        f"interface labels.xml, and export it as JSON into {review}/annotations. Then, or with --judge MODEL: "
        f"temporalwiki ckl {config} --review {review}"
    )


def _models(config: str, sources: CklSources, options: Any) -> Iterator[str]:
    """Yield the models that a command needs."""
    if getattr(options, "judge", None) not in (None, RULES):
        yield options.judge
    if config in EASY:
        from temporalwiki.builders.ckl.easy import MODELS

        yield from dict.fromkeys(model for name in MODELS if (model := getattr(options, name)) is not None)
    elif sources.review and sources.news:
        yield from (model for model in (options.question_model, options.answer_model) if model is not None)


def _open_model(reference: str) -> TextModel:
    """Open a language model; raise InputError if the model or a package that it needs is missing."""
    try:  # not imported at the top: the base install has no torch
        from temporalwiki.eval_harness.text_model import open_model
    except ModuleNotFoundError as error:
        raise InputError(
            f"{reference}: a model needs {error.name}, which is not installed: pip install 'temporalwiki[train]'"
        ) from None
    return open_model(reference)
