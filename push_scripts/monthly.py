"""The monthly job: publish the newest month of the dump server as a revision on the Hub, and update the leaderboard.

The job keeps no state of its own: each step finds out what is done already. If the job stops, run it again to go on.
If everything is done, it does nothing.
"""

import datetime
import functools
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import only_one
from temporalwiki.base.json_files import FINGERPRINT
from temporalwiki.base.terminal import say
from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.ckl.templates import LANGUAGES
from temporalwiki.builders.configs import SPLITS, names
from temporalwiki.builders.dataset_folder import check_place, problems
from temporalwiki.builders.fetch import NoSuchDump, NotYet, dates_of_wikidata, describe_plan
from temporalwiki.builders.finish import ALWAYS
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.manifests import BuiltManifest, DataFile, Manifest, read_intervals, read_manifests
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.stages import remove
from temporalwiki.methods import needs
from temporalwiki.methods.recipes import read_recipe
from temporalwiki.model_cards.folder_card import folder_card
from temporalwiki.push_scripts.ckl_dataset import has_rows, published_ckl
from temporalwiki.push_scripts.dataset import (
    check_copies,
    month_tag,
    publish_dataset,
    published_months,
    remember_published,
)
from temporalwiki.push_scripts.dataset_repository import damage
from temporalwiki.push_scripts.hub import Repository, ask
from temporalwiki.push_scripts.month_source import DumpServer, GitSource
from temporalwiki.push_scripts.repository_state import Head


@dataclass(frozen=True)
class MonthlyJob:
    """The options of the monthly job."""

    wiki: str
    repo_id: str  # of the dataset
    dumps: Path
    out: Path  # the dataset folder; the Hub keeps months that are deleted here
    work: Path
    machine: Machine
    source: DumpServer | GitSource
    accept_jump: bool = False
    accept_dates: bool = False
    recipe: str | None = None  # of an experiment that takes in each new month
    leaderboard: str | None = None  # the Space that shows its results
    ckl: str | None = None  # the dataset with the live CKL of each month

    def __post_init__(self) -> None:
        language = Interval(self.wiki, "20010101", "20010201").language  # raises UsageError for a wrong name
        if self.ckl is not None and self.ckl.lower() == self.repo_id.lower():
            raise UsageError(f"--ckl: {self.ckl} is the dataset of months (--repo); CKL needs its own repository")
        if self.ckl is not None and language not in LANGUAGES:
            known = " and ".join(LANGUAGES)
            raise UsageError(f"--ckl: there are clozes and questions in {known}, but {self.wiki} is in {language!r}")

    def beside(self, content: str) -> Path:
        """Return the folder next to ``out`` for live CKL ("ckl") or for facts of months only on the Hub ("facts")."""
        out = self.out.resolve()
        return out.with_name(f"{out.name}.{content}")


def monthly(job: MonthlyJob, dry_run: bool = False) -> Iterator[str]:
    """Publish the newest complete month and the earlier months that the Hub lacks; yield a line for each step.

    With ``dry_run`` the lines say what would be done: the job then only reads listings, and fetches, builds, trains
    and sends nothing.

    Raises UsageError for a recipe with a fixed list of months, and InputError if this user may not write, or if a
    published month is damaged on the Hub or in the folder, all before any costly step. Raises InputError at the end if
    a dump is unusable, if counts changed too much since the month before, if the dumps of an earlier month are gone,
    or if another step failed: the steps that do not need it have run.
    """
    if job.recipe is not None:
        _check_takes_new_months(job.recipe)
    dataset = Repository(job.repo_id, "dataset")
    space = Repository(job.leaderboard, "space") if job.leaderboard is not None else None
    ckl = Repository(job.ckl, "dataset") if job.ckl is not None else None
    head, newest = dataset.head(), None
    published = published_months(head)
    if others := sorted({month.interval.wiki for month in published} - {job.wiki}):
        raise InputError(f"{dataset.name}: it holds {', '.join(others)}; a repository has one wiki, choose another")
    if said := damage(head, published, job.out):  # the next month, CKL and the leaderboard would be made from it
        raise InputError(f"{dataset.name}: {said}")
    try:
        newest = Interval(job.wiki, *job.source.newest(job.wiki))
    except NotYet as error:
        yield f"pending: {error}"
    tags = {month.name: month.tag for month in published if month.tag in head.tags}
    wanted: list[Interval] = []
    if newest is not None:
        new = f"the newest complete month on {job.source.name} is {job.wiki} {newest.prev} to {newest.recent}"
        if newest.name in tags:
            yield f"{new}; {dataset.name} has it already, as {tags[newest.name]}"
        elif published and published[-1].interval.recent > newest.recent:
            yield f"{new}; {dataset.name} has a later one, {published[-1].tag}: nothing to do"
        else:
            yield new
            wanted = [*(months_between(published[-1].interval.recent, newest) if published else ()), newest]
    if wanted:
        dataset.check_rights(head, dry_run)
        check_place(job.out, job.wiki)  # a build would refuse the folder only after days of fetching
        if published:
            yield f"{dataset.name}: its newest month is {published[-1].tag} ({published[-1].name})"
        else:
            yield f"{dataset.name}: it has no month yet, so its counts have nothing to be compared with"
    for other in (space, ckl):  # before days of building and training
        if other is not None:
            other_head = other.head()
            other.check_rights(other_head, dry_run)
            if other is ckl:
                _check_ckl(job, other_head)
    if not dry_run and (wanted or job.recipe is not None):  # else nothing reads the months in the folder
        check_copies(job.out, head, read_manifests(job.out))
    if newest and (waiting := job.source.unfinished(job.wiki, newest.recent)):
        yield f"pending: {waiting}"
    failed: dict[str, Exception] = {}  # by step
    missed: list[str] = []
    for interval in wanted:
        if interval != newest and (why := _missing_dumps(job, interval, published)):
            missed.append(interval.name)
            yield from _describe_missed(job, interval, why)
            continue
        yield from _step(interval.name, _month(job, interval, published, dry_run), failed)
        if failed:  # later months are compared with this one, and no run looks for it once they are published
            break
        published = published if dry_run else published_months(dataset.head())
    if missed:  # an error, because a scheduler reports only errors and no later run looks for these months
        failed["missed months"] = InputError(
            f"{dataset.name}: {', '.join(missed)} could not be fetched: the lines above say how to build it"
        )
    if ckl is not None:
        yield from _step("CKL", _live_ckl(job, dataset, ckl, wanted if dry_run else [], dry_run), failed)
    if job.recipe is not None:
        last = newest if dry_run else published[-1].interval if published else None
        yield from _step("leaderboard", _leaderboard(job, dataset, last, dry_run), failed)
    if len(failed) == 1:
        raise next(iter(failed.values()))
    if failed:
        raise InputError(f"{len(failed)} steps failed: {'; '.join(f'{step}: {failed[step]}' for step in failed)}")


def _step(name: str, lines: Iterator[str], failed: dict[str, Exception]) -> Iterator[str]:
    """Yield the lines of a step, and keep its error in ``failed``: the next step may not need this one."""
    try:
        yield from lines
    except NotYet as error:
        yield f"pending: {name}: {error}"
    except UsageError:
        raise
    except InputError as error:
        failed[name] = error
    except Exception as error:  # noqa: BLE001 - a fault of ours: it keeps its traceback, and the other steps run
        sys.excepthook(type(error), error, error.__traceback__)
        failed[name] = InputError(f"{name}: {type(error).__name__}: {error} (the traceback is above)")


def _month(job: MonthlyJob, interval: Interval, published: Sequence[BuiltManifest], dry_run: bool) -> Iterator[str]:
    """Fetch, build and publish a month with the options of the published months; in a dry run, describe this.

    A month that waits in the folder, as after a jump, is built again if the server has made other dumps since.
    """
    options, dates = _options(published), _wikidata(interval, published)
    built = _built(job.out, interval)
    if built is not None and built.name not in {month.name for month in published}:
        try:
            listed = {file.name: file.sha1 for file in job.source.plan(interval, job.dumps, dates)}
        except InputError as error:
            listed = {}
            yield f"{interval.name}: its dumps cannot be compared with the source's: {error}"
        inputs = {Path(file.file).name: file.sha1 for file in built.inputs}
        if other := [name for name, sha1 in inputs.items() if listed.get(name, sha1) != sha1]:
            built = None
            yield f"{interval.name}: the source has made these dumps again, so it is built again: {', '.join(other)}"
    if built is None:
        if dry_run:
            yield f"{interval.name}: would get from {job.source.name} to {job.dumps}"
            yield describe_plan(job.dumps, job.source.plan(interval, job.dumps, dates))
            yield from _describe_build(job, interval, published, options)
            return
        files = job.source.get(interval, job.dumps, dates)
        size = sum(file.stat().st_size for file in files)
        yield f"{interval.name}: {len(files)} files, {size / 1e9:,.2f} GB, are in {job.dumps}"
        sources = find_sources(job.dumps, interval, dates_of_wikidata(files))
        build(sources, job.out, job.work, options, job.machine, folder_card, job.accept_dates)
    yield f"{interval.name}: is built in {job.out}"
    yield from publish_dataset(
        job.out, job.repo_id, accept_jump=job.accept_jump, interval=interval.name, dry_run=dry_run
    )
    if not dry_run:
        yield from _tidy(job, interval)


def _tidy(job: MonthlyJob, interval: Interval) -> Iterator[str]:
    """Delete what only months before the end of a published one read from the work folder, and name such dumps."""
    facts = next(month for month in read_intervals(job.out) if month.name == interval.name).interval.wikidata_recent
    ends = {  # of the folders in the work folder whose content later months do not read
        re.compile(rf"{job.wiki}-[0-9]{{8}}-([0-9]{{8}})-{FINGERPRINT}"): f"{interval.recent}~",
        re.compile(rf"{job.wiki}-([0-9]{{8}})-(page_props-)?{FINGERPRINT}"): interval.recent,
        re.compile(rf"wikidata-([0-9]{{8}})-{job.wiki}-{FINGERPRINT}"): facts,
    }
    with only_one(job.work, "build"):
        for folder in [*job.work.glob("*"), *(job.work / "extracts").glob("*")]:
            if any((of := name.fullmatch(folder.name)) and of[1] < end for name, end in ends.items()):
                remove(folder)
    folders = [*(job.dumps / job.wiki).glob("[0-9]" * 8), *(job.dumps / "wikidatawiki" / "entities").glob("[0-9]" * 8)]
    needed = {"entities": facts}  # from this date on
    if old := [path for path in sorted(folders) if path.name < needed.get(path.parent.name, interval.recent)]:
        size = sum(file.stat().st_size for path in old for file in path.rglob("*") if file.is_file())
        yield f"{size / 1e9:,.2f} GB of dumps are not needed any more: {', '.join(map(str, old))}"


def _describe_build(
    job: MonthlyJob, interval: Interval, published: Sequence[BuiltManifest], options: BuildOptions
) -> Iterator[str]:
    yield f"{interval.name}: would build in {job.out} with --jobs {job.machine.jobs}, keeping extracts in {job.work}"
    if published:
        yield f"{interval.name}: would compare its counts with the month before"
    yield f"{interval.name}: would publish to datasets/{job.repo_id}, in one commit"
    for kind in dict.fromkeys((*ALWAYS, *options.include)):
        for split in SPLITS[kind]:
            yield f"  + data/{names(kind, interval)[0]}/{split}-*.parquet"
    yield f"  + manifests/{interval.name}.json"
    yield "  ~ README.md, eval.yaml, for all months"
    yield f"  tag {month_tag(interval, published)}"


def _live_ckl(
    job: MonthlyJob, dataset: Repository, ckl: Repository, coming: Sequence[Interval], dry_run: bool
) -> Iterator[str]:
    """Make and publish the live CKL that the Hub lacks, for all months on the Hub and ``coming``.

    The facts of a month that the dataset folder does not have are fetched from the dataset on the Hub.
    """
    from temporalwiki.builders.ckl.config import write
    from temporalwiki.builders.ckl.live import live

    head, dataset_head = ckl.head(), dataset.head()
    on_hub = {month.name: month for month in published_months(dataset_head) if _facts(month)}
    months = sorted({*on_hub, *(interval.name for interval in coming)}, key=lambda name: (name[9:], name))
    if not months:
        yield f"{ckl.name}: no month has facts to make live CKL from"
        return
    configs = {f"{kind}-{month}": (kind, month) for month in months for kind in ("updatedlama", "newlama")}
    chain = f"{_start_of_chain(months)}-{months[-1][9:]}"
    configs[f"invariantlama-{chain}"] = ("invariantlama", chain)
    there = {path[10:-5] for path in head.files if path.startswith("manifests/")}
    there |= {made.name for made in read_manifests(job.beside("ckl")) if not has_rows(made)}
    missing = {name: config for name, config in configs.items() if name not in there}
    tag = f"{months[-1][9:13]}.{months[-1][13:15]}"
    if not missing and head.commit and tag not in head.tags and not dry_run:  # a run was killed before the tag
        ckl.tag(tag, head.commit)
        yield f"{ckl.name}: tag {tag}"
    if not missing:
        if said := damage(head, published_ckl(head), job.beside("ckl")):
            raise InputError(f"{ckl.name}: {said}")
        yield f"{ckl.name}: has all configs up to {months[-1]}"
        return
    all_months = any(kind == "invariantlama" for kind, _ in missing.values())
    needed = [month for month in months if all_months or any(month == span for _, span in missing.values())]
    built = {
        month.sha256: job.out
        for month in read_intervals(job.out)
        if not any(file.problem(job.out) for file in _facts(month))
    }
    folders = {
        month: built.get(on_hub[month].sha256, job.beside("facts") / month) if month in on_hub else job.out
        for month in needed
    }
    to_fetch = [month for month, folder in folders.items() if folder != job.out]
    if dry_run:
        if to_fetch:
            yield f"{dataset.name}: would fetch the facts of {', '.join(to_fetch)} to {job.beside('facts')}"
        yield f"{ckl.name}: would publish {', '.join(missing)}, except those without rows"
        return
    for month in to_fetch:
        download = functools.partial(
            dataset.api.snapshot_download,
            dataset.repo_id,
            repo_type="dataset",
            revision=dataset_head.commit,
            local_dir=folders[month],
            allow_patterns=[on_hub[month].path, *(file.path for file in _facts(on_hub[month]))],
        )
        ask(dataset.name, download)
        yield f"{month}: its facts are fetched from {dataset.name} to {folders[month]}"
    for kind, span in missing.values():
        places = list(dict.fromkeys(folders.values())) if kind == "invariantlama" else [folders[span]]
        for config in live(kind, places, span, work=job.work):
            manifest = write(config, job.beside("ckl"), folder_card)
            for warning in manifest.warnings:
                say(f"warning: {warning}")
            counts = manifest.counts
            yield f"{config.name}: {counts.kept:,} rows from {counts.read:,} facts, in {job.beside('ckl')}"
    yield from publish_dataset(job.beside("ckl"), ckl.repo_id, tag=None if tag in head.tags else tag)


def _check_ckl(job: MonthlyJob, head: Head) -> None:
    """Raise InputError unless a repository is of CKL and this wiki: live configs are named only by their months."""
    wikis = {str(manifest.options.get("wiki", job.wiki)) for manifest in published_ckl(head)}
    if others := sorted(wikis - {job.wiki}):
        raise InputError(f"datasets/{head.repo_id}: it holds live CKL of {', '.join(others)}; choose another --ckl")


def _facts(manifest: Manifest) -> list[DataFile]:
    return [file for file in manifest.files if file.path.startswith("data/facts-")]


def _start_of_chain(months: Sequence[str]) -> str:
    """Return the start of the last unbroken chain of intervals."""
    reached = {months[-1][9:]}
    for month in reversed(months):  # latest end first
        if month[9:] in reached:
            reached.add(month[:8])
    return min(reached)


def _wikidata(interval: Interval, published: Sequence[BuiltManifest]) -> tuple[str | None, str | None]:
    """Return the dates of Wikidata's dumps: the facts start with the dump that ended the month before."""
    for month in published:
        if month.interval.recent == interval.prev:
            return month.interval.wikidata_recent or None, None
    return None, None


def _missing_dumps(job: MonthlyJob, interval: Interval, published: Sequence[BuiltManifest]) -> InputError | None:
    """Return why the dumps of a month cannot be fetched, or None if they can or are not needed.

    Any other fault stops the job: a skipped month is not looked for again once a later one is published.
    """
    if _built(job.out, interval):
        return None
    try:
        job.source.plan(interval, job.dumps, _wikidata(interval, published))
    except NoSuchDump as error:
        return error
    return None


def _describe_missed(job: MonthlyJob, interval: Interval, error: InputError) -> Iterator[str]:
    """Say that a month is missing, and how to build it from dumps of another source."""
    yield f"{interval.name}: is missing on the Hub and cannot be fetched: {error}"
    yield "  with its dumps from elsewhere, in the same layout (docs/publishing.md):"
    yield f"  temporalwiki build {interval.prev} {interval.recent} --wiki {interval.wiki} --dumps DIR --out {job.out}"
    yield f"  temporalwiki publish dataset {job.out} {job.repo_id}"


def months_between(last: str, newest: Interval) -> list[Interval]:
    """Return the months, oldest first, from the date ``last`` to the beginning of ``newest``."""
    months: list[Interval] = []
    day = datetime.date.fromisoformat(newest.prev)
    while (before := (day - datetime.timedelta(days=1)).replace(day=1)).strftime("%Y%m%d") >= last:
        months.append(Interval(newest.wiki, before.strftime("%Y%m%d"), day.strftime("%Y%m%d")))
        day = before
    return months[::-1]


def _options(published: Sequence[BuiltManifest]) -> BuildOptions:
    """Return the options of the newest published month, so that months can be compared, or the defaults."""
    if not published:
        return BuildOptions()
    newest = published[-1]
    same = ("seed", "unchanged_fraction", "compare", "caps", "variant")
    options: dict[str, Any] = {name: getattr(newest.options, name) for name in same}
    try:
        return BuildOptions(include=tuple(map(str, newest.content["options"].get("include"))), **options)
    except (TypeError, ValueError) as error:
        raise InputError(f"the manifest of {newest.name} on the Hub has no options of a build: {error}") from None


def _built(out: Path, interval: Interval) -> Manifest | None:
    """Return the manifest of a month that is complete in the dataset folder, or None."""
    found = (month for month in read_intervals(out) if month.name == interval.name)
    return next((month for month in found if not problems(out, month)), None)


def _check_takes_new_months(recipe: str) -> None:
    """Raise UsageError for a recipe with a fixed list of months, before anything is done."""
    experiment = read_recipe(recipe, None).get("experiment")
    months = experiment.get("months") if isinstance(experiment, dict) else None
    if not isinstance(months, dict):
        raise UsageError(
            f'{recipe}: experiment: its list of months is fixed: write `months: {{since: "20211101-20211201"}}`, with '
            "the first interval to train on"
        )


def _leaderboard(job: MonthlyJob, dataset: Repository, newest: Interval | None, dry_run: bool) -> Iterator[str]:
    """Train and score the recipe's missing months up to ``newest``, and publish its leaderboard."""
    assert job.recipe is not None
    if newest is None:
        yield f"{job.recipe}: waits for the first month of {dataset.name}"
        return
    if dry_run:
        yield f"{job.recipe}: would train and score what is missing up to {newest.name}"
        if job.leaderboard is not None:
            yield f"{job.recipe}: would publish its leaderboard to spaces/{job.leaderboard}"
        return
    head = dataset.head()
    there = {month.name for month in published_months(head)}
    if waiting := [month.name for month in read_intervals(job.out) if month.name not in there]:
        yield f"{job.recipe}: waits until {', '.join(waiting)}, which is in {job.out}, is published"
        return
    remember_published(job.out, head)  # an earlier run may have been killed before it did
    with needs("eval"):
        from temporalwiki.eval_harness.experiment import read_experiment, run_experiment, show
        from temporalwiki.model_cards.space import space_card
        from temporalwiki.push_scripts.leaderboard import publish_leaderboard
    experiment = read_experiment(job.recipe)
    if newest.name not in experiment.months:
        raise InputError(
            f"{job.recipe}: experiment: its months, {', '.join(experiment.months)}, lack {newest.name}: its data, "
            f"{experiment.data}, must be {job.out} or {job.repo_id}"
        )
    progress = run_experiment(experiment)
    yield from show(experiment, progress, space_card)
    if failed := [one for one in progress if one.state == "failed"]:
        raise InputError(
            f"{len(failed)} of {len(progress)} cells failed, the first is {failed[0].cell.name}: {failed[0].why}; the "
            "leaderboard on the Hub stays unchanged, and the same command tries these cells again"
        )
    if job.leaderboard is not None:
        yield from publish_leaderboard(experiment.output / "leaderboard", job.leaderboard)
