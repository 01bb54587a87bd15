"""Build a CKL config by name: the code that ``temporalwiki ckl`` and the builder ``CKL`` share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import UsageError
from temporalwiki.builders.ckl.config import CklConfig
from temporalwiki.builders.ckl.schemas import EASY, LIVE, NEWS, PAST, check_name
from temporalwiki.builders.ckl.text_model import OpenModel, no_models

# The sources of each config, as options of the command: exactly one of these sets.
_WAYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "invariantlama": (("lama",), ("probes",), ("probes", "lama")),
    "updatedlama": (("probes",), ("probes", "lama"), ("review",), ("review", "news", "past")),
    "newlama": (("probes",), ("probes", "lama"), ("review",), ("review", "news", "past")),
    **dict.fromkeys(EASY, (("news",), ("news", "past"))),
    **dict.fromkeys(NEWS, (("news",),)),
    **dict.fromkeys(PAST, (("past",),)),
    "kilt": (("kilt",),),
}


@dataclass(frozen=True)
class CklSources:
    """The sources of a config, and where and with how many processes it is built."""

    lama: Path | None = None  # LAMA's relations.jsonl and TREx/
    kilt: Path | None = None  # KILT's JSONL files
    news: tuple[Path, ...] = ()  # files or folders of WARC files, saved pages and records
    past: tuple[Path, ...] = ()  # an older corpus: files or folders
    probes: tuple[Path, ...] = ()  # dataset folders of temporalwiki
    review: Path | None = None  # candidates and decisions on them
    work: Path = Path("ckl.work")  # keeps results that are costly to compute
    jobs: int = 1
    seed: int = 0
    least_annotators: int = 1


def check_sources(name: str, sources: object) -> None:
    """Raise UsageError unless a config can be built from ``sources``, an object with the attributes of CklSources."""
    given = [source for source in ("probes", "lama", "review", "news", "past", "kilt") if getattr(sources, source)]
    live = LIVE.fullmatch(name)
    ways = _WAYS[live[1] if live else "kilt" if name.startswith("kilt") else name]
    if live:
        ways = tuple(way for way in ways if "probes" in way)
    if set(given) not in [set(way) for way in ways]:
        needed = ", or ".join(" with ".join(f"--{source}" for source in way) for way in ways)
        others = " and ".join(f"--{source}" for source in given)
        raise UsageError(f"{name} needs {needed}{f'; it cannot be built from {others}' if others else ''}")


def options_of(name: str) -> type | None:
    """Return the dataclass of a config's own options, or None."""
    from temporalwiki.builders.ckl.easy import EasyOptions
    from temporalwiki.builders.ckl.recentnews import NewsOptions

    return NewsOptions if name in NEWS else EasyOptions if name in EASY else None


def build_configs(
    name: str, sources: CklSources, options: Any = None, open_model: OpenModel = no_models
) -> list[CklConfig]:
    """Return a config by name, and the configs that the same step makes.

    ``recentnews``, ``newlama-easy`` and ``wikipedia`` come with their parts; newlama-easy also comes with
    newquestions-easy, and updatedlama with newlama from a review; ``kilt`` is all of KILT. ``options`` are of the
    class ``options_of(name)``; ``open_model`` opens the models that they name. Raises UsageError for an unknown name
    or missing sources, InputError for sources that cannot be used.
    """
    check_name(name)
    check_sources(name, sources)
    if options is None and (kind := options_of(name)) is not None:
        options = kind()
    if name in NEWS:
        from temporalwiki.builders.ckl.recentnews import recentnews

        configs = recentnews(list(sources.news), options, sources.work, sources.jobs)
        return [config for config in configs if config.name.startswith(name)]
    if name in EASY:
        from temporalwiki.builders.ckl.easy import easy
        from temporalwiki.builders.ckl.recentnews import NewsOptions, find_news

        news = find_news(list(sources.news), NewsOptions(language=options.language), sources.work, sources.jobs)
        configs = easy(news.rows(), options, news.pages.inputs, open_model, sources.past, sources.work)
        return configs if name in EASY[:2] else [config for config in configs if config.name.startswith(name)]
    if name in PAST:
        from temporalwiki.builders.ckl.past_corpus import past_corpus

        return [config for config in past_corpus(sources.past, sources.seed) if config.name.startswith(name)]
    if name.startswith("kilt"):
        from temporalwiki.builders.ckl.kilt import kilt

        assert sources.kilt is not None
        return kilt(sources.kilt, name.removeprefix("kilt").removeprefix("-") or None)
    return _lama(name, sources)


def _lama(name: str, sources: CklSources) -> list[CklConfig]:
    kind, _, interval = name.partition("-")
    if sources.probes:
        from temporalwiki.builders.ckl.invariantlama import read_templates
        from temporalwiki.builders.ckl.live import live

        templates = read_templates(sources.lama) if sources.lama else None
        configs = live(kind, sources.probes, interval or None, templates, sources.seed, work=sources.work)
        if sources.lama:
            for config in configs:
                config.inputs.append(sources.lama / "relations.jsonl")
        return configs
    if kind == "invariantlama":
        from temporalwiki.builders.ckl.invariantlama import invariantlama

        assert sources.lama is not None
        return [invariantlama(sources.lama)]
    from temporalwiki.builders.ckl.decisions import configs_from_decisions

    assert sources.review is not None
    return configs_from_decisions(sources.review, sources.least_annotators)
