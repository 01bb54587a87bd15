"""The monthly job: what is new on the dump server becomes a revision on the Hub, and then a month of the leaderboard.

Each step keeps what it has done, so the job has no state of its own: run again after a stop, it goes on; run again
when all is done, it does nothing.
"""

from __future__ import annotations

import datetime
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.dataset_folder import (
    SPLITS,
    Manifest,
    check_place,
    interval_name,
    manifest_path,
    names,
    problems,
    read_manifests,
)
from temporalwiki.builders.fetch import NoSuchDump, dates_of_wikidata, describe_plan, fetch, newest_interval, plan
from temporalwiki.builders.finish import ALWAYS
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.manifests import checked
from temporalwiki.builders.snapshot import Interval
from temporalwiki.methods import needs
from temporalwiki.methods.recipes import read_recipe
from temporalwiki.model_cards.folder_card import folder_card
from temporalwiki.push_scripts.ckl_folder import ckl_published
from temporalwiki.push_scripts.dataset import month_tag, publish_dataset, published
from temporalwiki.push_scripts.hub import Repository, ask
from temporalwiki.push_scripts.revision import Head


@dataclass(frozen=True)
class Job:
    """What is done every month, and where."""

    wiki: str
    repo_id: str  # of the dataset
    dumps: Path
    out: Path  # the dataset folder; months that it no longer holds stay on the Hub
    work: Path
    machine: Machine
    mirrors: tuple[str, ...]  # the first one says which months there are
    accept_jump: bool = False
    recipe: str | None = None  # of an experiment whose months go on
    leaderboard: str | None = None  # the Space that shows its results
    ckl: str | None = None  # the dataset with the live CKL of each month

    def __post_init__(self) -> None:
        language = Interval(self.wiki, "20010101", "20010201").language  # which refuses what is no wiki
        if self.ckl is not None and self.ckl.lower() == self.repo_id.lower():
            raise UsageError(f"--ckl: {self.ckl} is the dataset of months (--repo); CKL has one of its own")
        if self.ckl is not None and language != "en":
            raise UsageError(f"--ckl: clozes and questions are worded in English, and {self.wiki} is in {language!r}")

    @property
    def ckl_folder(self) -> Path:
        """Where the live CKL lies until it is published, and afterwards."""
        out = self.out.resolve()
        return out.with_name(f"{out.name}.ckl")

    @property
    def facts_folder(self) -> Path:
        """Where the facts of months lie that only the Hub has, a dataset folder each."""
        out = self.out.resolve()
        return out.with_name(f"{out.name}.facts")


def monthly(job: Job, dry_run: bool = False) -> Iterator[str]:
    """Publish the newest complete month, and those before it that the Hub lacks; yield what is done.

    Every step says what it does, and with ``dry_run`` what it would do: then only listings are read, and nothing is
    fetched, built, trained or sent. Raises InputError before anything costly where there is no right to write; where a
    dump is not there or cannot be used; where counts jump against the month before; and, when all else is done, where
    the dumps of a month before the newest are gone.
    """
    if job.recipe is not None:
        _check_goes_on(job.recipe)
    dataset = Repository(job.repo_id, "dataset")
    space = Repository(job.leaderboard, "space") if job.leaderboard is not None else None
    ckl = Repository(job.ckl, "dataset") if job.ckl is not None else None
    newest = Interval(job.wiki, *newest_interval(job.mirrors[0], job.wiki))
    head = dataset.head()
    there = published(head)
    if others := sorted({str(m["interval"]["wiki"]) for m in there} - {job.wiki}):
        raise InputError(f"{dataset.name}: holds {', '.join(others)}; a repository is of one wiki, name another")
    tagged = {interval_name(manifest): manifest["tag"] for manifest in there if manifest["tag"] in head.tags}
    wanted: list[Interval] = []
    new = f"the newest complete month on {job.mirrors[0]} is {job.wiki} {newest.prev} to {newest.recent}"
    if newest.name in tagged:
        yield f"{new}; {dataset.name} has it already, as {tagged[newest.name]}"
    elif there and there[-1]["interval"]["recent"] > newest.recent:
        yield f"{new}; {dataset.name} has a later one, {there[-1]['tag']}: nothing to do"
    else:
        yield new
        dataset.check_rights(head, dry_run)
        _check_folder(job)
        if there:
            yield f"{dataset.name}: its newest is {there[-1]['tag']} ({interval_name(there[-1])})"
        else:
            yield f"{dataset.name}: holds no month yet, so there is none to compare counts with"
        wanted = [*(months_between(there[-1]["interval"]["recent"], newest) if there else ()), newest]
    for other in (space, ckl):  # before days of building and training
        if other is not None:
            its_head = other.head()
            other.check_rights(its_head, dry_run)
            if other is ckl:
                _check_ckl(job, its_head)
    missed: list[Interval] = []
    for interval in wanted:
        if interval != newest and (why := _gone(job, interval, there)):
            missed.append(interval)
            yield from _missed(job, interval, why)
        else:
            yield from (_say if dry_run else _do)(job, interval, there)
            there = there if dry_run else published(dataset.head())
    if ckl is not None:
        yield from _live(job, dataset, ckl, wanted if dry_run else [], dry_run)
    if job.recipe is not None:
        yield from _leaderboard(job, newest, dry_run)
    if missed:  # nobody is told of what goes well, and no later run looks for them again
        names = ", ".join(interval.name for interval in missed)
        raise InputError(
            f"{dataset.name}: all else is done, but {names} could not be fetched: see above how to make it"
        )


def _do(job: Job, interval: Interval, there: Sequence[Manifest]) -> Iterator[str]:
    """Fetch, build and publish a month, with the options of those that are ``there``."""
    options = _options(there)
    if not _built(job.out, interval):
        files = fetch(interval, job.dumps, job.mirrors, _wikidata(interval, there))
        size = sum(file.stat().st_size for file in files)
        yield f"{interval.name}: {len(files)} files, {size / 1e9:,.2f} GB, are in {job.dumps}"
        sources = find_sources(job.dumps, interval, dates_of_wikidata(files))
        build(sources, job.out, job.work, options, job.machine, folder_card)
    yield f"{interval.name}: is built in {job.out}"
    yield from publish_dataset(job.out, job.repo_id, accept_jump=job.accept_jump, interval=interval.name)


def _say(job: Job, interval: Interval, there: Sequence[Manifest]) -> Iterator[str]:
    """Say what ``_do`` would do."""
    options = _options(there)
    if _built(job.out, interval):
        yield f"{interval.name}: is built in {job.out}"
        yield from publish_dataset(
            job.out, job.repo_id, accept_jump=job.accept_jump, interval=interval.name, dry_run=True
        )
        return
    yield f"{interval.name}: would fetch to {job.dumps}"
    yield describe_plan(job.dumps, plan(interval, job.dumps, job.mirrors, _wikidata(interval, there)))
    yield f"{interval.name}: would build in {job.out} with --jobs {job.machine.jobs}, keeping extracts in {job.work}"
    if there:
        yield f"{interval.name}: would compare its counts with those of the month before"
    yield f"{interval.name}: would publish to datasets/{job.repo_id}, in one commit"
    for kind in (*ALWAYS, *(kind for kind in options.include if kind not in ALWAYS)):
        for split in SPLITS[kind]:
            yield f"  + data/{names(kind, interval)[0]}/{split}-*.parquet"
    yield f"  + manifests/{interval.name}.json"
    yield "  ~ README.md, eval.yaml, of all months"
    yield f"  tag {month_tag({'interval': vars(interval)}, there)}"


def _live(job: Job, dataset: Repository, ckl: Repository, to_come: Sequence[Interval], dry_run: bool) -> Iterator[str]:
    """Make and publish the live CKL that the Hub lacks: of all months there, in the dataset folder, and ``to_come``.

    Facts of a month whose folder is gone are fetched from the dataset on the Hub.
    """
    from temporalwiki.builders.ckl.config import write
    from temporalwiki.builders.ckl.live import live

    head, months_there = ckl.head(), dataset.head()
    built = {interval_name(one) for one in read_manifests(job.out) if _has_facts(one)}
    gone = {interval_name(one): one for one in published(months_there) if _has_facts(one)}
    months = sorted({*built, *gone, *(interval.name for interval in to_come)}, key=lambda name: (name[9:], name))
    if not months:
        yield f"{ckl.name}: there is no month with facts to make live CKL of"
        return
    wanted = {f"{kind}-{month}": (kind, month) for month in months for kind in ("updatedlama", "newlama")}
    whole = f"{_first_of_chain(months)}-{months[-1][9:]}"
    wanted[f"invariantlama-{whole}"] = ("invariantlama", whole)
    lacking = {name: made for name, made in wanted.items() if f"manifests/{name}.json" not in head.files}
    if not lacking:
        yield f"{ckl.name}: has all of {months[-1]}"
        return
    of_all = any(kind == "invariantlama" for kind, _ in lacking.values())
    needed = [month for month in months if of_all or any(month == of for _, of in lacking.values())]
    folders = {month: job.facts_folder / month if month in gone.keys() - built else job.out for month in needed}
    to_fetch = [month for month, folder in folders.items() if folder != job.out]
    if dry_run:
        if to_fetch:
            yield f"{dataset.name}: would fetch the facts of {', '.join(to_fetch)} to {job.facts_folder}"
        yield f"{ckl.name}: would publish {', '.join(lacking)}, as far as they have rows"
        return
    for month in to_fetch:
        patterns = [manifest_path(gone[month]), f"data/{names('facts', Interval(job.wiki, *month.split('-')))[0]}/*"]
        _fetch(dataset, str(months_there.commit), patterns, folders[month])
        yield f"{month}: its facts are fetched from {dataset.name} to {folders[month]}"
    written = 0
    for kind, of in lacking.values():
        places = list(dict.fromkeys(folders.values())) if kind == "invariantlama" else [folders[of]]
        for config in live(kind, places, of, work=job.work):
            rows = iter(config.splits["test"])
            first = next(rows, None)
            if first is None:
                yield f"{config.name}: no rows of {config.counts.read:,} facts, so it is not published"
                continue
            manifest = write(
                replace(config, splits={"test": itertools.chain([first], rows)}), job.ckl_folder, folder_card
            )
            for warning in manifest.warnings:
                print(f"warning: {warning}", file=sys.stderr)
            counts, written = manifest.counts, written + 1
            yield f"{config.name}: {counts.kept:,} rows of {counts.read:,} facts, in {job.ckl_folder}"
    if written:
        tag = f"{months[-1][9:13]}.{months[-1][13:15]}"
        yield from publish_dataset(job.ckl_folder, ckl.repo_id, tag=None if tag in head.tags else tag)


def _check_ckl(job: Job, head: Head) -> None:
    """Refuse a repository that is not of CKL, or whose live configs, named by months alone, are of another wiki."""
    wikis = {manifest["options"].get("wiki", job.wiki) for manifest in ckl_published(head)}
    if others := sorted(map(str, wikis - {job.wiki})):
        raise InputError(f"datasets/{head.repo_id}: holds live CKL of {', '.join(others)}; name another with --ckl")


def _has_facts(manifest: Manifest) -> bool:
    return any(name.startswith("facts-") for name in manifest["configs"])


def _first_of_chain(months: Sequence[str]) -> str:
    """Return the first date from which intervals follow one another up to the last one's end."""
    reached = {months[-1][9:]}
    for month in reversed(months):  # latest end first
        if month[9:] in reached:
            reached.add(month[:8])
    return min(reached)


def _fetch(dataset: Repository, commit: str, patterns: list[str], folder: Path) -> None:
    """Fetch files of a commit to a folder; what is there already is not fetched again."""
    ask(
        dataset.name,
        lambda: dataset.api.snapshot_download(
            dataset.repo_id, repo_type="dataset", revision=commit, local_dir=folder, allow_patterns=patterns
        ),
    )


def _wikidata(interval: Interval, there: Sequence[Manifest]) -> tuple[str | None, str | None]:
    """Return the dates of Wikidata's dumps: facts go on from the dump with which the month before ended."""
    for manifest in there:
        if manifest["interval"]["recent"] == interval.prev:
            return str(manifest["interval"]["wikidata_recent"]), None
    return None, None


def _gone(job: Job, interval: Interval, there: Sequence[Manifest]) -> InputError | None:
    """Return why there are no dumps of a month; None where there are, here or there, or where they are not needed.

    Any other fault stops the job: a month that it passes by is not looked for again once a later one is published.
    """
    if _built(job.out, interval):
        return None
    try:
        plan(interval, job.dumps, job.mirrors, _wikidata(interval, there))
    except NoSuchDump as error:
        return error
    return None


def _missed(job: Job, interval: Interval, error: InputError) -> Iterator[str]:
    """Say that a month is missing, and how it can be made where its dumps lie elsewhere."""
    yield f"{interval.name}: is missing on the Hub and cannot be fetched: {error}"
    yield "  with its dumps from elsewhere, in the same layout (docs/publishing.md):"
    yield f"  temporalwiki build {interval.prev} {interval.recent} --wiki {interval.wiki} --dumps DIR --out {job.out}"
    yield f"  temporalwiki publish dataset {job.out} {job.repo_id}"


def months_between(last: str, newest: Interval) -> list[Interval]:
    """Return the months, oldest first, from the date ``last`` on until ``newest`` begins."""
    months: list[Interval] = []
    day = datetime.date.fromisoformat(newest.prev)
    while (before := (day - datetime.timedelta(days=1)).replace(day=1)).strftime("%Y%m%d") >= last:
        months.append(Interval(newest.wiki, before.strftime("%Y%m%d"), day.strftime("%Y%m%d")))
        day = before
    return months[::-1]


def _options(there: Sequence[Manifest]) -> BuildOptions:
    """Return the options of the month before, so that months can be compared; the usual ones where there is none."""
    if not there:
        return BuildOptions()
    options: Any = there[-1].get("options")
    try:
        return BuildOptions(
            include=tuple(options["include"]),
            seed=int(options["seed"]),
            unchanged_fraction=float(options["unchanged_fraction"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"the manifest of {interval_name(there[-1])} on the Hub has no options of a build: {error}"
        ) from None


def _check_folder(job: Job) -> None:
    """Refuse a dataset folder that a build would refuse after days of fetching."""
    check_place(job.out)
    if others := sorted({str(m["interval"]["wiki"]) for m in read_manifests(job.out)} - {job.wiki}):
        raise InputError(f"{job.out}: holds {', '.join(others)}; a folder is of one wiki, choose another --out")


def _built(out: Path, interval: Interval) -> bool:
    """Whether a month is whole in the dataset folder."""
    return any(
        interval_name(one) == interval.name and not problems(out, checked(one, "manifest"))
        for one in read_manifests(out)
    )


def _check_goes_on(recipe: str) -> None:
    """Refuse a recipe whose months end, before anything is done."""
    experiment = read_recipe(recipe, None).get("experiment")
    months = experiment.get("months") if isinstance(experiment, dict) else None
    if not isinstance(months, dict):
        raise UsageError(
            f'{recipe}: experiment: its months do not go on: write `months: {{since: "20211101-20211201"}}`, with the '
            "first interval that is trained on"
        )


def _leaderboard(job: Job, newest: Interval, dry_run: bool) -> Iterator[str]:
    """Train and score what the recipe lacks of its months, and publish its leaderboard."""
    assert job.recipe is not None
    if dry_run:
        yield f"{job.recipe}: would train and score what is missing up to {newest.name}"
        if job.leaderboard is not None:
            yield f"{job.recipe}: would publish its leaderboard to spaces/{job.leaderboard}"
        return
    with needs("eval"):
        from temporalwiki.eval_harness.experiment import read_experiment, run_experiment, show
        from temporalwiki.model_cards.space import space_card
        from temporalwiki.push_scripts.leaderboard import publish_leaderboard
    experiment = read_experiment(job.recipe)
    if newest.name not in experiment.months:
        raise InputError(
            f"{job.recipe}: experiment: its months, {', '.join(experiment.months)}, are without {newest.name}: its "
            f"data, {experiment.data}, must be {job.out} or {job.repo_id}"
        )
    progress = run_experiment(experiment)
    yield from show(experiment, progress, space_card)
    if failed := [one for one in progress if one.state == "failed"]:
        raise InputError(
            f"{len(failed)} of {len(progress)} cells failed, the first is {failed[0].cell.name}: {failed[0].why}; the "
            "leaderboard on the Hub stays as it is, and the same command tries them again"
        )
    if job.leaderboard is not None:
        yield from publish_leaderboard(experiment.output / "leaderboard", job.leaderboard)
