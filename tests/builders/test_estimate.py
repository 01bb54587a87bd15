"""What a build will take: against builds, and by hand."""

import bz2
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from dump_forms import write_page_props

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders import estimate as module
from temporalwiki.builders.build import BuildOptions, Sources, build, find_sources
from temporalwiki.builders.estimate import Stage, describe_plan, estimate
from temporalwiki.builders.machine import Machine
from temporalwiki.builders.manifests import BuiltManifest
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.world import World, write_world

from tiny_dumps import (
    FOOTER,
    articles_file,
    header,
    item,
    multistream,
    page,
    revision,
    wikidata_file,
    write_bz2,
    write_wikidata,
)

MONTH = Interval("enwiki", "20211101", "20211201")
NEXT = Interval("enwiki", "20211201", "20220101")
DATES = (MONTH.prev, MONTH.recent, NEXT.recent)
WORLD = World(people=60, dates=DATES, wikidata_dates=("20211101", "20211129", "20220101"))


@pytest.fixture(scope="module", autouse=True)
def _small() -> Iterator[None]:
    """Cut small dumps into several tasks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("temporalwiki.builders.wikipedia.extract.RANGE", 25_000)
        yield


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dumps")
    write_page_props(folder, write_world(folder, WORLD))
    return folder


class Built(NamedTuple):
    """A build, and the plan before it."""

    plan: list[Stage]
    manifest: BuiltManifest
    out: Path
    work: Path


@pytest.fixture(scope="module")
def built(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    sources, out, work = find_sources(dumps, MONTH), folder / "out", folder / "work"
    plan = estimate(sources, out, work)
    assert list(folder.iterdir()) == []
    return Built(plan, build(sources, out, work), out, work)


def by_name(plan: list[Stage]) -> dict[str, Stage]:
    return {stage.name: stage for stage in plan}


def test_a_plan_has_the_stages_and_the_dumps_of_the_build(built: Built) -> None:
    ran = built.manifest.content["run"]["stages"]
    short = {"wikidata-index", "wikidata-copy recent"}
    assert [stage.name for stage in built.plan] == [name for name in ran if name not in short]
    of_dumps = {stage.name: stage for stage in built.plan if stage.read is not None}
    assert {name: stage.tasks for name, stage in of_dumps.items()} == {name: ran[name]["tasks"] for name in of_dumps}
    assert ran["wiki-extract prev"]["tasks"] > 1
    assert {name: stage.read for name, stage in of_dumps.items()} == pytest.approx(
        {name: ran[name]["mb"] for name in of_dumps}, abs=1e-3
    )
    assert not any(stage.kept for stage in built.plan)


def test_what_an_earlier_build_did_costs_nothing(dumps: Path, built: Built) -> None:
    month, out, work = find_sources(dumps, MONTH), built.out, built.work
    again = estimate(month, out, work)
    assert {stage.name for stage in again if stage.kept < stage.tasks} == {"finish", "install"}
    assert sum(stage.cpu + stage.work for stage in again if stage.kept) == 0
    own = {"wiki-diff", "wikidata-labels", "wikidata-diff", "align"}
    seeded = estimate(month, out, work, BuildOptions(seed=1))
    assert {stage.name for stage in seeded if stage.kept < stage.tasks} == {*own, "finish", "install"}
    later = by_name(estimate(find_sources(dumps, NEXT), out, work))
    assert {name for name, stage in later.items() if stage.kept == stage.tasks} == {
        "wiki-extract prev",
        "wikidata-extract prev",
    }
    assert (later["checksums"].tasks, later["checksums"].kept) == (5, 2)
    assert later["wiki-extract recent"].cpu > later["wiki-extract prev"].cpu == later["wiki-extract prev"].work == 0


def test_an_extract_that_was_stopped_costs_what_is_left_of_it(dumps: Path, built: Built, tmp_path: Path) -> None:
    work = tmp_path / "work"
    shutil.copytree(built.work, work)
    sources = find_sources(dumps, MONTH)
    folder = next(f for f in (work / "extracts").glob("enwiki-20211101-*") if "page_props" not in f.name)
    markers = sorted((folder / "executor" / "completions").iterdir())
    for marker in markers[1:]:
        marker.unlink()
    stage, whole = (by_name(plan)["wiki-extract prev"] for plan in (estimate(sources, built.out, work), built.plan))
    assert (stage.tasks, stage.kept) == (len(markers), 1)
    assert stage.work == pytest.approx(whole.work * (1 - 1 / len(markers)))
    (folder / "stage.json").write_text("{", "utf-8")
    assert by_name(estimate(sources, built.out, work))["wiki-extract prev"].kept == 0


def test_the_whole_text_costs_more(dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNCHANGED_PAGES", 1)
    sources = find_sources(dumps, MONTH)
    plain, whole = (
        by_name(estimate(sources, tmp_path / "out", tmp_path / "work", BuildOptions(include=include)))
        for include in ((), ("wikipedia",))
    )
    assert whole["install"].out > 3 * plain["install"].out
    assert whole["wiki-diff"].cpu > 3 * plain["wiki-diff"].cpu


def dumps_of(folder: Path, name: str, text: str) -> Sources:
    """The same text for both dates, and facts."""
    for date in MONTH.prev, MONTH.recent:
        path = folder / "enwiki" / date / name.format(date, f"{date[:4]}-{date[4:6]}-{date[6:]}")
        path.parent.mkdir(parents=True)
        path.write_bytes(bz2.compress(text.encode()) if path.suffix == ".bz2" else text.encode())
    return facts_beside(folder)


def one_stream(folder: Path) -> Sources:
    """A content export: one bz2 stream a file, all namespaces, no index."""
    text = header() + page(1, "A", "A is here.") + page(2, "Talk:A", "No.", ns=1) + page(12, "B", "So it is.")
    return dumps_of(folder, "enwiki-{1}-p1p99.xml.bz2", text + FOOTER)


def a_history(folder: Path) -> Sources:
    """Both snapshots are cut from one file."""
    revisions = [
        revision("It was small.", 1, at="2021-10-05T00:00:00Z"),
        revision("It was small. It grew.", 2, 1, at="2021-11-05T00:00:00Z"),
    ]
    path = folder / "enwiki" / "20220101" / "enwiki-20220101-pages-meta-history1.xml-p1p99.bz2"
    write_bz2(path, header() + page(1, "Grows", revisions=revisions) + FOOTER)
    return facts_beside(folder)


def no_articles(folder: Path) -> Sources:
    text = header() + page(1, "Talk:A", "No.", ns=1) + page(2, "A", "#REDIRECT [[B]]", redirect=True) + FOOTER
    return dumps_of(folder, "enwiki-{0}-pages-articles-multistream.xml.bz2", text)


def not_compressed(folder: Path) -> Sources:
    return dumps_of(folder, "enwiki-{0}-pages-articles.xml", header() + page(1, "A", "A is here.") + FOOTER)


def cut_off(folder: Path) -> Sources:
    for date in (MONTH.prev, MONTH.recent):
        multistream(articles_file(folder, date), [page(i, f"A{i}", "A is here.") for i in range(1, 9)])
    sources = facts_beside(folder)
    for file in (*sources.prev.files, *sources.wikidata_prev.files):
        file.write_bytes(file.read_bytes()[:-60])
    return sources


def facts_beside(folder: Path) -> Sources:
    for date in ("20211101", "20211129"):
        write_wikidata(wikidata_file(folder, date), [item(1), item(2)])
    return find_sources(folder, MONTH)


@pytest.mark.parametrize("make", [one_stream, a_history, no_articles, not_compressed, cut_off])
def test_every_kind_of_dump_has_a_plan(make: Any, tmp_path: Path) -> None:
    out, work = tmp_path / "out", tmp_path / "work"
    plan = estimate(make(tmp_path / "dumps"), out, work)
    assert 0 < sum(stage.cpu for stage in plan) < 10
    assert "\nwiki-extract recent      0.0" in describe_plan(plan, Machine(), out, work)


def test_what_is_no_dump_is_told_of(tmp_path: Path) -> None:
    sources = one_stream(tmp_path / "dumps")
    sources.recent.files[0].write_bytes(b"not compressed")
    with pytest.raises(InputError, match="not a bz2 file"):
        estimate(sources, tmp_path / "out", tmp_path / "work")


def test_folders_that_a_build_refuses_are_refused(tmp_path: Path) -> None:
    sources = one_stream(tmp_path / "dumps")
    with pytest.raises(UsageError, match="cannot be the work folder or lie in it"):
        estimate(sources, tmp_path / "work" / "out", tmp_path / "work")
    with pytest.raises(InputError, match="not a dataset folder"):
        estimate(sources, tmp_path / "dumps", tmp_path / "work")


def test_the_real_pair(shared_data: Path, tmp_path: Path) -> None:
    """The CPU time is right up to a factor of four, though the dumps are small and a year and a half apart."""
    sources = find_sources(shared_data / "dumps", Interval("enwiki", "20141106", "20160501"), ("20141201", "20170330"))
    plan = estimate(sources, tmp_path / "out", tmp_path / "work", BuildOptions(unchanged_fraction=1.0))
    manifest = build(sources, tmp_path / "out", tmp_path / "work", BuildOptions(unchanged_fraction=1.0))
    cpu = sum(stage.cpu_seconds for stage in manifest.run.stages.values())
    assert cpu / 4 < sum(stage.cpu for stage in plan) < cpu * 4


@pytest.mark.fault(
    "bomb", "build --plan: a dump of a few bytes that become hundreds of MB", "the plan does not decompress it"
)
def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = one_stream(tmp_path / "dumps")
    bomb = bz2.compress((header() + page(1, "A", "A is here.")).encode() + b" " * (100 << 20))
    sources.recent.files[0].write_bytes(bomb)
    began = time.process_time()
    estimate(sources, tmp_path / "out", tmp_path / "work")
    assert time.process_time() - began < 2  # to unpack it takes longer


@pytest.mark.fault("hostile XML", "tags that never close, again and again, for --plan", "the time is linear")
def test_tags_that_never_close_are_passed_over(tmp_path: Path) -> None:
    """Time that grows with the square of their number would be hours."""
    sources = one_stream(tmp_path / "dumps")
    sources.recent.files[0].write_bytes(bz2.compress(header().encode() + b"<page><text " * 1_000_000))
    assert sum(stage.cpu for stage in estimate(sources, tmp_path / "out", tmp_path / "work")) < 60


def test_times_come_from_the_last_manifest(dumps: Path, built: Built, tmp_path: Path) -> None:
    plan = by_name(estimate(find_sources(dumps, MONTH), built.out, tmp_path / "work"))
    ran = built.manifest.run.stages
    assert {name: stage.cpu for name, stage in plan.items() if name != "checksums"} == pytest.approx(
        {name: ran[name].cpu_seconds for name in plan if name != "checksums"}, rel=0.02
    )


@pytest.mark.parametrize(
    ("tasks", "kept", "cpu", "jobs", "seconds"),  # CPU seconds of the tasks that are not kept
    [(1, 0, 8.0, 1, 8.0), (1, 0, 8.0, 4, 8.0), (4, 0, 8.0, 2, 4.0), (4, 0, 8.0, 64, 2.0), (4, 3, 2.0, 64, 2.0)],
)
def test_a_stage_runs_no_more_jobs_than_it_has_tasks(
    tasks: int, kept: int, cpu: float, jobs: int, seconds: float
) -> None:
    assert Stage("x", tasks, kept, cpu).wall(jobs) == seconds
    assert Stage("x", tasks, tasks, 0.0).wall(jobs) == 0.0


STAGES = [
    Stage("wiki-extract prev", 40, 40, 0, read=2000),
    Stage("wiki-extract recent", 40, 10, 7200, work=3000, read=2000),
    Stage("install", 1, 0, 6, out=1000),
]


def text_of(folder: Path, monkeypatch: pytest.MonkeyPatch, free_mb: int) -> list[str]:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(0, 0, free_mb * 10**6))  # type: ignore[attr-defined]
    return describe_plan(STAGES, Machine(16, 16 << 30), folder / "out", folder / "work").splitlines()


def test_a_plan_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert text_of(tmp_path, monkeypatch, 5000) == [
        "stage                MB       tasks  kept  CPU    time   MB in work  MB in out",
        "wiki-extract prev    2,000.0     40    40  0.0 s  0.0 s",
        "wiki-extract recent  2,000.0     40    10  2.0 h  8 min     3,000.0",
        "install                           1        6.0 s  6.0 s                1,000.0",
        "all                                        2.0 h  8 min     3,000.0    1,000.0",
        "",
        "time: with --jobs 16, if the disks keep up and 5 % of the pages change",
        f"{tmp_path}/work and {tmp_path}/out: 4,000.0 MB will be written, 5,000.0 MB are free",
    ]


@pytest.mark.parametrize(("free_mb", "warned"), [(4000, False), (3999, True)])
@pytest.mark.fault("full disk", "build --plan: the disk is too small", "the plan says so")
def test_a_disk_that_is_too_small_is_told_of(
    free_mb: int, warned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = text_of(tmp_path, monkeypatch, free_mb)[-1]
    assert (last == f"warning: too little room in {tmp_path}/work and {tmp_path}/out") == warned
