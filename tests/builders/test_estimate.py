"""What a build will take: against builds, and by hand."""

from __future__ import annotations

import bz2
import gzip
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from dump_forms import write_page_props

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders import estimate as module
from temporalwiki.builders.build import BuildOptions, Sources, build, find_sources
from temporalwiki.builders.estimate import Estimate, Stage, describe_plan, estimate
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
WORLD = World(
    people=150,
    dates=("20211101", "20211201", "20220101"),
    wikidata_dates=("20211101", "20211129", "20220101"),
)


@pytest.fixture(scope="module", autouse=True)
def _small() -> Iterator[None]:
    """Cut dumps of a few hundred kilobytes into several tasks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("temporalwiki.builders.wikipedia.extract.RANGE", 60_000)
        yield


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dumps")
    write_page_props(folder, write_world(folder, WORLD))
    return folder


class Built(NamedTuple):
    """A build, and what was planned before it."""

    plan: Estimate
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


def written(folder: Path) -> int:
    """Bytes on disk: a file with several names counts once."""
    files = [path.stat() for path in folder.rglob("*.parquet") if path.is_file()]
    return sum({file.st_ino: file.st_size for file in files}.values())


def stages(plan: Estimate) -> dict[str, Stage]:
    return {stage.name: stage for stage in plan.stages}


def test_a_plan_is_what_the_build_then_does(built: Built) -> None:
    plan, ran = built.plan, built.manifest.content["run"]["stages"]
    assert [(stage.name, stage.tasks) for stage in plan.stages] == [(name, of["tasks"]) for name, of in ran.items()]
    assert ran["wiki-extract prev"]["tasks"] > 1
    assert {stage.name: stage.read / 1e6 for stage in plan.stages if stage.read is not None} == pytest.approx(
        {name: of["mb"] for name, of in ran.items() if "mb" in of}, abs=1e-3
    )
    assert all(stage.kept == 0 and stage.longest <= stage.cpu + 1e-9 for stage in plan.stages)
    assert plan.total("work") / 3 < written(built.work) < plan.total("work") * 3
    assert plan.total("out") / 4 < written(built.out) < plan.total("out") * 4


def test_what_an_earlier_build_did_costs_nothing(dumps: Path, built: Built) -> None:
    month, out, work = find_sources(dumps, MONTH), built.out, built.work
    again = estimate(month, out, work)
    assert {stage.name for stage in again.stages if stage.kept < stage.tasks} == {"finish", "install"}
    assert sum(stage.cpu + stage.work for stage in again.stages if stage.kept) == 0
    own = {"wiki-diff", "wikidata-labels", "wikidata-diff", "align"}
    seeded = estimate(month, out, work, BuildOptions(seed=1))
    assert {stage.name for stage in seeded.stages if stage.kept < stage.tasks} == {*own, "finish", "install"}
    later = stages(estimate(find_sources(dumps, NEXT), out, work))
    assert {name for name, stage in later.items() if stage.kept == stage.tasks} == {
        "wiki-extract prev",
        "wikidata-extract prev",
        "wikidata-carry prev",
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
    stage, whole = (stages(plan)["wiki-extract prev"] for plan in (estimate(sources, built.out, work), built.plan))
    assert (stage.tasks, stage.kept) == (len(markers), 1)
    assert stage.work == pytest.approx(whole.work * (1 - 1 / len(markers)))
    (folder / "stage.json").write_text("{", "utf-8")
    assert stages(estimate(sources, built.out, work))["wiki-extract prev"].kept == 0


def test_the_whole_text_costs_more(dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNCHANGED_PAGES", 10)
    sources = find_sources(dumps, MONTH)
    plain, whole = (
        stages(estimate(sources, tmp_path / "out", tmp_path / "work", BuildOptions(include=include)))
        for include in ((), ("wikipedia",))
    )
    assert whole["install"].out > 3 * plain["install"].out
    assert whole["wiki-diff"].cpu > 3 * plain["wiki-diff"].cpu


def one_stream(folder: Path) -> Sources:
    """A content export: one bz2 stream a file, all namespaces, no index."""
    for date in ("20211101", "20211201"):
        place = folder / "enwiki" / date
        iso = f"{date[:4]}-{date[4:6]}-{date[6:]}"
        text = header() + page(1, "A", "A is here.") + page(2, "Talk:A", "No.", ns=1) + page(12, "B", "So it is.")
        write_bz2(place / f"enwiki-{iso}-p1p99.xml.bz2", text + FOOTER)
    return facts_beside(folder)


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
    for date in ("20211101", "20211201"):
        text = header() + page(1, "Talk:A", "No.", ns=1) + page(2, "A", "#REDIRECT [[B]]", redirect=True) + FOOTER
        write_bz2(articles_file(folder, date), text)
    return facts_beside(folder)


def not_compressed(folder: Path) -> Sources:
    for date in ("20211101", "20211201"):
        path = folder / "enwiki" / date / f"enwiki-{date}-pages-articles.xml"
        path.parent.mkdir(parents=True)
        path.write_text(header() + page(1, "A", "A is here.") + FOOTER, "utf-8")
    return facts_beside(folder)


def cut_off(folder: Path) -> Sources:
    for date in ("20211101", "20211201"):
        multistream(articles_file(folder, date), [page(i, f"A{i}", "A is here.") for i in range(1, 9)])
    sources = facts_beside(folder)
    for file in (*sources.prev.files, *sources.wikidata_prev.files):
        file.write_bytes(file.read_bytes()[:-60])
    return sources


def facts_beside(folder: Path) -> Sources:
    for date in ("20211101", "20211129"):
        write_wikidata(wikidata_file(folder, date), [item(1), item(2)])
    return find_sources(folder, MONTH)


def no_whole_line(folder: Path) -> Sources:
    """An entity that is longer than a sample."""
    sources = one_stream(folder)
    for file in (*sources.wikidata_prev.files, *sources.wikidata_recent.files):
        file.write_bytes(gzip.compress(b"[\n" + b'{"type":"item","id":"Q1","labels":"' + b"x" * 100_000))
    return sources


@pytest.mark.parametrize("make", [one_stream, a_history, no_articles, not_compressed, cut_off, no_whole_line])
def test_every_kind_of_dump_has_a_plan(make: Any, tmp_path: Path) -> None:
    plan = estimate(make(tmp_path / "dumps"), tmp_path / "out", tmp_path / "work")
    assert 0 <= plan.total("longest") - 1e-9 <= plan.total("cpu") < 10
    assert plan.wall >= plan.total("longest")
    assert "\nwiki-extract recent      20211201  0.0" in describe_plan(plan)


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


def test_the_real_pair(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("temporalwiki.builders.wikipedia.extract.RANGE", 64 << 20)
    monkeypatch.setattr(module, "CHANGED", 1.0)  # a year and a half lies between them
    sources = find_sources(shared_data / "dumps", Interval("enwiki", "20141106", "20160501"), ("20141201", "20170330"))
    plan = estimate(sources, tmp_path / "out", tmp_path / "work", BuildOptions(unchanged_fraction=1.0))
    manifest = build(sources, tmp_path / "out", tmp_path / "work", BuildOptions(unchanged_fraction=1.0))
    assert list(stages(plan)) == list(manifest.content["run"]["stages"])
    extracts = written(tmp_path / "work" / "extracts")
    planned = sum(stage.work for stage in plan.stages if "extract" in stage.name or "carry" in stage.name)
    assert planned / 2 < extracts < planned * 2


BYTES = random.Random(0).randbytes(300_000)
COMPRESSED = {
    "one bz2 stream": (bz2.compress(BYTES), "bz2", BYTES),
    "two bz2 streams": (bz2.compress(BYTES[:9]) + bz2.compress(BYTES[9:]), "bz2", BYTES),
    "two gzip members": (gzip.compress(BYTES[:9]) + gzip.compress(BYTES[9:]), "gz", BYTES),
    "padding after a member": (gzip.compress(BYTES) + b"\0" * 9, "gz", BYTES),
    "nothing packed": (BYTES, "plain", BYTES),
    "nothing": (b"", "bz2", b""),
    "no stream": (b"x" * 99, "gz", b""),
}


@pytest.mark.parametrize("case", COMPRESSED)
def test_streams_are_decompressed_up_to_the_first_damage(case: str) -> None:
    data, kind, expected = COMPRESSED[case]
    used, text = module.decompressed(data, kind)
    assert text == expected
    assert 0 <= used <= len(data)


@pytest.mark.fault(
    "bomb", "build --plan: a dump of a few bytes that become hundreds of MB", "reading stops after its first part"
)
@pytest.mark.parametrize(("pack", "kind"), [(bz2.compress, "bz2"), (gzip.compress, "gz")])
def test_a_bomb_is_left_after_its_first_part(pack: Any, kind: str) -> None:
    _, text = module.decompressed(pack(bytes(100 << 20)), kind)
    assert module._LARGEST <= len(text) < module._LARGEST + (4 << 20)


@pytest.mark.fault("hostile XML", "tags that never close, again and again, for --plan", "the time is linear")
def test_tags_that_never_close_are_passed_over(tmp_path: Path) -> None:
    """Time that grows with the square of their number would be hours."""
    sources = one_stream(tmp_path / "dumps")
    sources.recent.files[0].write_bytes(bz2.compress(header().encode() + b"<page><text " * 1_000_000))
    assert estimate(sources, tmp_path / "out", tmp_path / "work").total("cpu") < 60


def test_a_bz2_block_that_is_cut_does_not_count() -> None:
    data = bz2.compress(random.Random(1).randbytes(400_000), 1)  # four blocks of 100 kB
    used, text = module.decompressed(data[: len(data) * 3 // 8], "bz2")
    assert len(text) == pytest.approx(100_000, abs=1000)
    assert used == pytest.approx(len(data) / 4, abs=16 << 10)


def test_rates_come_from_the_last_manifest(dumps: Path, built: Built, tmp_path: Path) -> None:
    plan = stages(estimate(find_sources(dumps, MONTH), built.out, tmp_path / "work"))
    ran = built.manifest.run.stages
    assert {name: stage.cpu for name, stage in plan.items() if name != "checksums"} == pytest.approx(
        {name: of.cpu_seconds for name, of in ran.items() if name != "checksums"}, rel=0.02
    )


WALL = [  # tasks, CPU seconds, longest task, jobs, seconds
    (1, 8.0, 8.0, 1, 8.0),
    (1, 8.0, 8.0, 4, 8.0),
    (4, 8.0, 2.0, 1, 8.0),
    (4, 8.0, 2.0, 2, 4.0),
    (4, 8.0, 2.0, 64, 2.0),
    (4, 8.0, 5.0, 4, 5.0),
    (0, 0.0, 0.0, 4, 0.0),
]


@pytest.mark.parametrize(("tasks", "cpu", "longest", "jobs", "seconds"), WALL)
def test_a_stage_takes_as_long_as_its_longest_task(
    tasks: int, cpu: float, longest: float, jobs: int, seconds: float
) -> None:
    assert Stage("x", tasks, 0, cpu, longest).wall(jobs) == seconds


def plan_of(free_work: int, free_out: int, one_disk: bool) -> Estimate:
    work, out = Path("/a/work"), Path("/b/out")
    made = (
        Stage("wiki-extract prev", 40, 40, 0, 0, dump="20211101", read=2_000_000_000),
        Stage("wiki-extract recent", 40, 10, 7200, 300, work=3e9, dump="20211201", read=2_000_000_000),
        Stage("install", 1, 0, 6, 6, out=1e9),
    )
    return Estimate(made, 16, out, work, {work: free_work, out: free_out}, one_disk)


ROOM = [  # free in work, free in out, one disk, what is said
    (5 * 10**9, 5 * 10**9, True, []),
    (3 * 10**9, 10**9, False, []),
    (3 * 10**9, 3 * 10**9, True, ["/a/work and /b/out"]),
    (2 * 10**9, 10**9, False, ["/a/work"]),
    (3 * 10**9, 1000, False, ["/b/out"]),
]


@pytest.mark.parametrize(("work", "out", "one_disk", "said"), ROOM)
@pytest.mark.fault("full disk", "build --plan: the disk is too small", "the plan says so")
def test_a_disk_that_is_too_small_is_told_of(work: int, out: int, one_disk: bool, said: list[str]) -> None:
    *_, last = describe_plan(plan_of(work, out, one_disk)).splitlines()
    assert last.startswith("warning: ") == bool(said)
    if said:
        assert last == f"warning: too little room in {said[0]}"


def test_a_plan_as_text() -> None:
    assert describe_plan(plan_of(5 * 10**9, 5 * 10**9, one_disk=True)).splitlines() == [
        "stage                dump      MB       tasks  kept  CPU    time   MB in work  MB in out",
        "wiki-extract prev    20211101  2,000.0     40    40  0.0 s  0.0 s",
        "wiki-extract recent  20211201  2,000.0     40    10  2.0 h  8 min     3,000.0",
        "install                                     1        6.0 s  6.0 s                1,000.0",
        "all                                                  2.0 h  8 min     3,000.0    1,000.0",
        "",
        "time: with --jobs 16, if the disks keep up; 5 min on any number of cores",
        "assumed: 5% of the pages and of the items have changed",
        "/a/work and /b/out: 4,000.0 MB will be written, 5,000.0 MB are free",
    ]
    assert describe_plan(plan_of(5 * 10**9, 2 * 10**9, one_disk=False)).splitlines()[-2:] == [
        "/a/work: 3,000.0 MB will be written, 5,000.0 MB are free",
        "/b/out: 1,000.0 MB will be written, 2,000.0 MB are free",
    ]
