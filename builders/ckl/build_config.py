"""From the name of a config and what it is made of to its rows: what ``temporalwiki ckl`` and ``CKL`` share."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import UsageError
from temporalwiki.base.options import did_you_mean
from temporalwiki.builders.ckl.config import Config
from temporalwiki.builders.ckl.kilt import NAMES as KILT
from temporalwiki.builders.ckl.text_model import OpenModel, no_models

NEWS = ("recentnews", "recentnews-small", "recentnews-small-p1", "recentnews-small-p2")
EASY = ("newlama-easy", "newquestions-easy")
LAMA = ("invariantlama", "updatedlama", "newlama")
CONFIGS = (*LAMA, *EASY, *NEWS, *(f"kilt-{name}" for name in KILT))
# What each is made of, as options of the command: one set of these, and no more.
_WAYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "invariantlama": (("lama",), ("probes",), ("probes", "lama")),
    "updatedlama": (("probes",), ("probes", "lama"), ("review",), ("review", "news")),
    "newlama": (("probes",), ("probes", "lama"), ("review",), ("review", "news")),
    **dict.fromkeys((*EASY, *NEWS), (("news",),)),
    "kilt": (("kilt",),),
}
_LIVE = re.compile(rf"({'|'.join(LAMA)})-([0-9]{{4}}|[0-9]{{8}}-[0-9]{{8}})")  # with an interval: updatedlama-1112


@dataclass(frozen=True)
class Sources:
    """What a config is made of, and where and with how many processes."""

    lama: Path | None = None  # LAMA's relations.jsonl and TREx/
    kilt: Path | None = None  # KILT's JSONL files
    news: tuple[Path, ...] = ()  # WARC files, saved pages, records; files and folders
    probes: tuple[Path, ...] = ()  # dataset folders of temporalwiki
    review: Path | None = None  # candidates and decisions upon them
    work: Path = Path("ckl.work")  # what is costly is kept here
    jobs: int = 1
    seed: int = 0
    least_annotators: int = 1
    on_drop: Callable[[Any, str], None] | None = None  # called with each row of LAMA that is left out, and its rule


def check_name(name: str) -> None:
    """Raise UsageError unless there is such a config: one of CONFIGS, "kilt" for all of KILT, or a live one."""
    if name not in (*CONFIGS, "kilt") and not _LIVE.fullmatch(name):
        live = ", ".join(f"{kind}-1112" for kind in LAMA)
        raise UsageError(
            f"there is no config {name!r}{did_you_mean(name, (*CONFIGS, 'kilt'))}; there are {', '.join(CONFIGS)}, "
            f"and with an interval {live}"
        )


def check_sources(name: str, sources: object) -> None:
    """Raise UsageError unless a config can be made of the ``sources`` that are given, as fields of Sources."""
    given = [source for source in ("probes", "lama", "review", "news", "kilt") if getattr(sources, source)]
    live = _LIVE.fullmatch(name)
    ways = _WAYS[live[1] if live else "kilt" if name.startswith("kilt") else name]
    if live:
        ways = tuple(way for way in ways if "probes" in way)
    if set(given) not in [set(way) for way in ways]:
        told = ", or ".join(" with ".join(f"--{source}" for source in way) for way in ways)
        made = " and ".join(f"--{source}" for source in given)
        raise UsageError(f"{name} is made of {told}{f'; not of {made}' if made else ': name what it is made of'}")


def options_of(name: str) -> type | None:
    """Return the dataclass of the options that decide the rows of a config, where it has such."""
    if name in NEWS:
        from temporalwiki.builders.ckl.recentnews import NewsOptions

        return NewsOptions
    if name in EASY:
        from temporalwiki.builders.ckl.easy import EasyOptions

        return EasyOptions
    return None


def make(name: str, sources: Sources, options: Any = None, open_model: OpenModel = no_models) -> list[Config]:
    """Return a config, and those that come of the same step; ``options`` are of the class ``options_of(name)``,
    and ``open_model`` opens the models that they name.

    ``recentnews`` comes with its parts, the two easy ones and the two that are decided upon with each other, and
    ``kilt`` stands for all of KILT.
    Raises UsageError for an unknown name, or where what it is made of is not named, InputError for what cannot be
    used.
    """
    check_name(name)
    check_sources(name, sources)
    if name in NEWS:
        from temporalwiki.builders.ckl.recentnews import recentnews

        made = recentnews(list(sources.news), options or _default(name), sources.work, sources.jobs)
        return [config for config in made if config.name.startswith(name)]
    if name in EASY:
        from temporalwiki.builders.ckl.easy import easy
        from temporalwiki.builders.ckl.recentnews import NewsOptions, find_news

        news = find_news(list(sources.news), NewsOptions(), sources.work, sources.jobs)
        return easy(news.rows(), options or _default(name), news.pages.inputs, open_model)
    if name.startswith("kilt"):
        from temporalwiki.builders.ckl.kilt import kilt

        assert sources.kilt is not None
        return kilt(sources.kilt, name.removeprefix("kilt").removeprefix("-") or None)
    return _lama(name, sources)


def _lama(name: str, sources: Sources) -> list[Config]:
    kind, _, interval = name.partition("-")
    if sources.probes:
        from temporalwiki.builders.ckl.invariantlama import read_templates
        from temporalwiki.builders.ckl.live import live

        templates = read_templates(sources.lama) if sources.lama else None
        made = live(kind, sources.probes, interval or None, templates, sources.seed, work=sources.work)
        if sources.lama:
            for config in made:
                config.inputs.append(sources.lama / "relations.jsonl")
        return made
    if kind == "invariantlama":
        from temporalwiki.builders.ckl.invariantlama import invariantlama

        assert sources.lama is not None
        return [invariantlama(sources.lama, sources.on_drop)]
    from temporalwiki.builders.ckl.decisions import decided

    assert sources.review is not None
    return decided(sources.review, sources.least_annotators)


def _default(name: str) -> Any:
    options = options_of(name)
    return options() if options is not None else None
