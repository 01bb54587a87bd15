"""The monthly job against a dump server that gains months and a Hub that may fail."""

import functools
import hashlib
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from dump_forms import write_page_props
from huggingface_hub import ModelCard

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import only_one
from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.sources import Sources
from temporalwiki.builders.world import World, write_world
from temporalwiki.commands import main
from temporalwiki.model_cards.folder_card import folder_card
from temporalwiki.push_scripts import monthly
from temporalwiki.push_scripts.dataset import publish_dataset
from temporalwiki.push_scripts.hub import WAITS
from temporalwiki.push_scripts.model import publish_model
from temporalwiki.push_scripts.monthly import months_between

import a_ckl_config
import tiny_models
from a_disk import disk
from a_fact import fact, month, new, same
from a_folder import contents, without_manifests
from a_month import add_month, article
from faults.rows import ONE_LINE
from file_server import Fault, FileServer, served
from loopback_hub import LoopbackHub, Repo

REPO, CKL, SPACE = "ORG/temporalwiki", "ORG/ckl", "ORG/board"
TRIES = len(WAITS) + 1
DATES = ("20210801", "20210901", "20211001", "20211101")
FIRST: dict[str, bytes] = {}  # the files of the first month on the Hub


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four months of a small world."""
    folder = tmp_path_factory.mktemp("dumps")
    write_page_props(folder, write_world(folder, World(people=30, dates=DATES, wikidata_dates=DATES)))
    return folder


@pytest.fixture(scope="module")
def everything(dumps: Path) -> dict[str, bytes]:
    return served(dumps)


@dataclass
class Job:
    """The command, between a dump server and a Hub."""

    hub: LoopbackHub
    server: FileServer
    everything: Mapping[str, bytes]
    place: Path
    capsys: pytest.CaptureFixture[str]

    def has(self, *dates: str) -> None:
        """Let the dump server have these dates and no others."""
        found = {path: of for path, of in self.everything.items() if any(f"/{date}/" in path for date in dates)}
        self.server.files = found
        self.server.requests.clear()

    def run(self, *words: str, place: Path | None = None) -> tuple[int, list[str], str]:
        """Return the exit status, the lines that it says, and what it says on stderr."""
        at = place or self.place
        where = ["--dumps", str(at / "dumps"), "--out", str(at / "temporalwiki"), "--mirror", self.server.url]
        status = main(["monthly", "--wiki", "enwiki", "--repo", REPO, "--jobs", "1", *where, *words])
        said = self.capsys.readouterr()
        return status, said.out.splitlines(), said.err

    def done(self, *words: str, place: Path | None = None) -> list[str]:
        """Return the lines of a run that goes well."""
        status, said, err = self.run(*words, place=place)
        assert status == 0, (said, err)
        return said

    def failed(self, *words: str, place: Path | None = None) -> str:
        """Return the last line on stderr of a run that fails."""
        status, _, err = self.run(*words, place=place)
        assert status == 1
        return err.splitlines()[-1]

    def fetched(self) -> set[str]:
        """Return the dump files that were asked for; listings do not count."""
        return {request.path for request in self.server.asked(r"\.(bz2|gz)$")}

    def sent(self) -> list[str]:
        """Return the paths of the requests that write."""
        return [request.path for request in self.hub.requests if request.method not in ("GET", "HEAD")]

    @property
    def months(self) -> Repo:
        """The dataset of months on the Hub."""
        return self.hub.repo("dataset", REPO)

    @property
    def ckl(self) -> Repo:
        """The dataset of live CKL on the Hub."""
        return self.hub.repo("dataset", CKL)

    def tags(self) -> list[str]:
        return sorted(self.months.tags)

    def manifest(self, name: str) -> dict[str, Any]:
        return dict(json.loads(self.months.files()[f"manifests/{name}.json"]))

    def publish_first(self) -> None:
        """Let the Hub hold the first month, as the job publishes it from another machine."""
        if not FIRST:
            self.has(*DATES[:2])
            self.done()
            FIRST.update(self.months.files())
        else:
            self.hub.commit("dataset", REPO, FIRST, tag="2021.09")

    def change_first(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Let the Hub hold another manifest of the first month."""
        found = self.manifest("20210801-20210901")
        change(found)
        self.hub.commit("dataset", REPO, {"manifests/20210801-20210901.json": json.dumps(found).encode()})


@pytest.fixture()
def job(
    hub: LoopbackHub, everything: Mapping[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Job]:
    with FileServer({}) as server:
        yield Job(hub, server, everything, tmp_path, capsys)


@pytest.fixture()
def all_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build with all unchanged facts, because the default fraction selects nothing in a small world."""
    monkeypatch.setattr(monthly, "BuildOptions", functools.partial(BuildOptions, unchanged_fraction=1.0))


@pytest.mark.parametrize("words", [(), ("--accept-dates",)])
def test_dates_are_accepted_if_asked(words: tuple[str, ...], job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    found = list[bool]()

    def stopped(*given: Any) -> None:
        found.append(given[-1])
        raise InputError("stopped")

    monkeypatch.setattr(monthly, "build", stopped)
    job.has(*DATES[:2])
    job.failed(*words)
    assert found == [bool(words)]


BUILT: dict[object, Path] = {}  # a first month's dumps and options -> its dataset folder


@pytest.fixture(autouse=True)
def built_once(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Build a first month once for all tests, except for those of faults, and copy its folder."""

    def built(sources: Sources, out: Path, work: Path, options: BuildOptions, *more: Any) -> None:
        dumps = tuple((file.name, file.stat().st_size) for file in sources.files)
        if list(out.glob("manifests/*")):
            build(sources, out, work, options, *more)
        elif (found := BUILT.get((dumps, options))) is not None:
            shutil.copytree(found, out, dirs_exist_ok=True)
        else:
            build(sources, out, work, options, *more)
            BUILT[dumps, options] = shutil.copytree(out, tmp_path_factory.mktemp("built") / "folder")

    if request.node.get_closest_marker("fault") is None:
        monkeypatch.setattr(monthly, "build", built)


@pytest.mark.usefixtures("all_unchanged")
def test_the_live_ckl_of_each_month_goes_to_a_dataset_of_its_own(job: Job) -> None:
    months = ["20210801-20210901", "20210901-20211001"]
    job.has(*DATES[:2])
    said = job.done("--ckl", CKL, "--dry-run")
    assert said[-1] == (
        f"datasets/ORG/ckl: would publish updatedlama-{months[0]}, newlama-{months[0]}, "
        f"invariantlama-{months[0]}, except those without rows"
    )
    assert job.sent() == []
    job.done("--ckl", CKL)
    job.has(*DATES[:3])
    job.done()  # a month without it, which the next run with it makes up for
    job.done("--ckl", CKL)
    wanted = {f"{kind}-{month}" for kind in ("updatedlama", "newlama") for month in months}
    wanted |= {f"invariantlama-{months[0]}", "invariantlama-20210801-20211001"}
    assert {path[10:-5] for path in job.ckl.files() if path.startswith("manifests/")} == wanted
    assert sorted(job.ckl.tags) == ["2021.09", "2021.10"]
    job.hub.requests.clear()
    assert job.done("--ckl", CKL)[-1] == f"datasets/ORG/ckl: has all configs up to {months[1]}"
    assert job.sent() == []
    before = dict(job.ckl.tags)
    del job.ckl.tags["2021.10"]  # as after a kill between the commit and its tag
    job.done("--ckl", CKL)
    assert job.ckl.tags == before


@pytest.mark.usefixtures("all_unchanged")
def test_live_ckl_of_months_whose_folder_is_gone_is_made_of_what_the_hub_has(job: Job, tmp_path: Path) -> None:
    months = ["20210801-20210901", "20210901-20211001", "20211001-20211101"]
    for last in (2, 3):
        job.has(*DATES[:last])
        job.done()
    job.done("--ckl", "ORG/wanted")  # with the folder
    shutil.rmtree(tmp_path / "temporalwiki")
    job.has(*DATES)
    job.done()  # the newest month is in the folder alone
    job.done("--ckl", "ORG/wanted")
    shutil.rmtree(tmp_path / "temporalwiki.ckl")
    shutil.rmtree(tmp_path / "temporalwiki.facts")
    said = job.done("--ckl", CKL, "--dry-run")
    assert said[-2] == (
        f"datasets/{REPO}: would fetch the facts of {months[0]}, {months[1]} to {tmp_path / 'temporalwiki.facts'}"
    )
    assert not (tmp_path / "temporalwiki.facts").exists()
    job.hub.requests.clear()
    job.done("--ckl", CKL)
    asked = [one.path for one in job.hub.requests if ".parquet" in one.path and f"/{REPO}/" in one.path]
    assert asked and all("/data/facts-" in path and months[2] not in path for path in asked)
    ckl, wanted = job.ckl.files(), job.hub.repo("dataset", "ORG/wanted").files()
    made = {f"{kind}-{month}" for kind in ("updatedlama", "newlama") for month in months}
    made.add("invariantlama-20210801-20211101")
    assert {path[10:-5] for path in ckl if path.startswith("manifests/")} == made
    shared = [path for path in ckl if path.startswith(("data/", "manifests/"))]
    assert {path: ckl[path] for path in shared} == {path: wanted[path] for path in shared}
    job.hub.requests.clear()
    assert job.done("--ckl", CKL)[-1] == f"datasets/ORG/ckl: has all configs up to {months[2]}"
    assert job.sent() == []


def test_a_repository_of_months_is_no_place_for_live_ckl(job: Job, tmp_path: Path) -> None:
    job.has(*DATES[:2])
    for words, said in (
        (["--ckl", REPO.lower()], "--ckl: org/temporalwiki is the dataset of months (--repo)"),
        (["--ckl", CKL, "--wiki", "kowiki"], "there are clozes and questions in de and en, but"),
    ):
        status, _, err = job.run(*words)
        assert (status, job.hub.requests, said in err) == (2, [], True)
    job.done()
    job.has(*DATES[:3])
    for options in ([], ["--dry-run"]):
        job.server.requests.clear()
        job.hub.requests.clear()
        said = job.failed("--repo", "ORG/another", "--ckl", REPO, *options, place=tmp_path / "x")
        assert f"datasets/{REPO}: manifests/20210801-20210901.json: not of CKL" in said
        assert (job.sent(), job.fetched()) == ([], set())
        assert not (tmp_path / "x").exists()


def test_live_ckl_of_another_wiki_is_not_taken_for_this_ones(job: Job, tmp_path: Path) -> None:
    other = a_ckl_config.config("newlama-20210801-20210901", options={"wiki": "simplewiki"})
    a_ckl_config.add(tmp_path / "ckl", other)
    list(publish_dataset(tmp_path / "ckl", CKL))
    job.has(*DATES[:2])
    job.hub.requests.clear()
    assert "datasets/ORG/ckl: it holds live CKL of simplewiki; choose another --ckl" in job.failed("--ckl", CKL)
    assert (job.sent(), job.fetched()) == ([], set())


def test_live_ckl_without_rows_is_not_published(job: Job, tmp_path: Path) -> None:
    job.has(*DATES[:2])
    said = job.done("--ckl", CKL)
    line = r"invariantlama-20210801-20210901: none of \d+ rows was kept, so it is not published"
    assert any(re.fullmatch(line, one) for one in said)
    manifests = sorted(path for path in job.ckl.files() if path.startswith("manifests/"))
    assert manifests == [f"manifests/{kind}-20210801-20210901.json" for kind in ("newlama", "updatedlama")]
    job.hub.requests.clear()
    assert job.run("--ckl", CKL)[1][-1] == "datasets/ORG/ckl: has all configs up to 20210801-20210901"
    assert job.sent() == []


UNDATED = {"dated": "undated", "newly_stated": False}  # for the split backfilled


@pytest.mark.fault(
    "unattended job",
    "monthly --ckl: facts that nothing dates, in all rows or in some",
    "both splits are published, with the bytes that `ckl` writes",
)
@pytest.mark.parametrize("dated", [(), (1, 2, 3)], ids=["all", "some"])
def test_live_ckl_has_the_bytes_that_the_command_ckl_writes(dated: tuple[int, ...], job: Job, tmp_path: Path) -> None:
    folder, name = tmp_path / "temporalwiki", "20211101-20211201"
    lands = [
        {"subject": f"Land {i} X", "subject_id": f"Q{i}", "obj": f"Ann {i}", "object_id": f"Q{i}0"}
        for i in range(1, 7)
    ]
    rows = [(fact if i % 2 else new)(**land, **({} if i in dated else UNDATED)) for i, land in enumerate(lands, 1)]
    month(folder, name, changed=rows, unchanged=[same(subject_id="Q99")])
    list(publish_dataset(folder, REPO))
    job.has(*DATES[:2])
    job.done("--ckl", CKL)
    for kind in ("updatedlama", "newlama", "invariantlama"):
        assert main(["ckl", kind, "--probes", str(folder), "--out", str(tmp_path / "ckl")]) == 0
    wanted = contents(tmp_path / "ckl")
    counts = json.loads(wanted[f"manifests/updatedlama-{name}.json"])["configs"][f"updatedlama-{name}"]["splits"]
    assert [counts[split]["num_examples"] > 0 for split in ("test", "backfilled")] == [bool(dated), True]
    found = job.ckl.files()
    assert {path: found[path] for path in wanted if path.startswith("data/")} == {
        path: data for path, data in wanted.items() if path.startswith("data/")
    }


# A step that fails


@pytest.mark.fault(
    "unattended job", "monthly: one step fails", "the steps that do not need it run; the last line names each failure"
)
@pytest.mark.parametrize("failing", ["CKL", "CKL, by a fault of the program", "leaderboard", "both"])
def test_the_other_steps_run_and_the_last_line_says_what_failed(
    failing: str, job: Job, tmp_path: Path, recipe: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the Hub has a later month than the server, so the job has only the steps after it
    month(tmp_path / "temporalwiki", changed=[fact(), new(subject_id="Q5")], unchanged=[same(subject_id="Q9")])
    list(publish_dataset(tmp_path / "temporalwiki", REPO))
    job.has(*DATES[:2])
    trained: list[str] = []

    def leaderboard(*_: Any) -> Iterator[str]:
        trained.append("")
        if failing in ("leaderboard", "both"):
            raise InputError("2 of 4 cells failed")
        yield "the page is up to date"

    def broken(*_: Any, **__: Any) -> None:
        raise AssertionError("22 rows written")

    monkeypatch.setattr(monthly, "_leaderboard", leaderboard)
    if failing == "CKL, by a fault of the program":
        monkeypatch.setattr("temporalwiki.builders.ckl.live.live", broken)
    elif failing in ("CKL", "both"):
        job.hub.fault("POST", r"ORG/ckl/commit/main$", status=400)
    status, _, err = job.run("--ckl", CKL, "--recipe", str(recipe()))
    assert (status, trained) == (1, [""])
    last = err.splitlines()[-1]
    expected = {
        "CKL": "temporalwiki monthly: datasets/ORG/ckl: the Hub answered 400 to ",
        "leaderboard": "temporalwiki monthly: 2 of 4 cells failed",
        "both": "temporalwiki monthly: 2 steps failed: CKL: datasets/ORG/ckl: the Hub answered 400 to ",
        "CKL, by a fault of the program": (
            "temporalwiki monthly: CKL: AssertionError: 22 rows written (the traceback is above)"
        ),
    }[failing]
    assert last.startswith(expected), last
    assert (failing != "both") or last.endswith("; leaderboard: 2 of 4 cells failed")
    assert ("Traceback" in err) == ("program" in failing)
    if failing == "leaderboard":
        assert list(job.ckl.tags) == ["2021.12"]


# A month that is not there yet

STATUS = "enwiki/20211001/dumpstatus.json"
NOT_YET = {
    "a late Wikidata dump": (
        lambda files: {path: data for path, data in files.items() if "entities/20211001/" not in path},
        "pending: 20210901-20211001: wikidata: no finished JSON dump after that of 20210901 and up to 20211001; try "
        "later",
    ),
    "a dump in progress": (
        lambda files: files | {STATUS: files[STATUS].replace(b'"done"', b'"in-progress"')},
        "pending: enwiki: no two finished dumps of consecutive months: 20211001: articlesmultistreamdump is "
        "in-progress",
    ),
}


@pytest.mark.fault(
    "unattended job",
    "monthly: a dump of Wikipedia or Wikidata comes later",
    "one line says `pending`, with status 0; other steps run, and the month is made when the dump is there",
)
@pytest.mark.parametrize("case", NOT_YET)
def test_a_month_that_is_not_there_yet_is_pending(case: str, job: Job) -> None:
    without, line = NOT_YET[case]
    job.has(*DATES[:2])
    job.done()
    job.has(*DATES[1:3])
    whole, job.server.files = job.server.files, without(job.server.files)
    for words in ([], ["--dry-run"], ["--ckl", CKL]):
        status, said, err = job.run(*words)
        assert (status, err.count("Traceback"), job.tags()) == (0, 0, ["2021.09"])
        assert line in said, said
    assert list(job.ckl.tags) == ["2021.09"]
    job.server.files = whole
    job.done()
    assert job.tags() == ["2021.09", "2021.10"]


@pytest.fixture(scope="module")
def faulty(everything: Mapping[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the server's files where the dumps of 2021-10-01 are of a world three times as large."""
    folder = tmp_path_factory.mktemp("faulty")
    write_page_props(folder, write_world(folder, World(people=90, dates=DATES, wikidata_dates=DATES)))
    large = served(folder)
    return {path: large.get(path, data) if "/20211001/" in path else data for path, data in everything.items()}


@pytest.mark.fault(
    "unattended job",
    "monthly: counts jump because of a faulty dump, which the server makes again",
    "the month is refused each day, and made from the new dumps; nothing of the refused month is published",
)
def test_a_refused_month_is_compared_with_the_server_the_next_day(
    job: Job, faulty: dict[str, bytes], tmp_path: Path
) -> None:
    job.publish_first()
    job.has(*DATES[:3])
    right, job.server.files = job.server.files, {path: faulty[path] for path in job.server.files}
    for _ in range(2):
        job.server.requests.clear()
        assert "counts jump: " in job.failed("--ckl", CKL)
        assert job.tags() == ["2021.09"]
        assert all("20211001" not in path for path in job.ckl.files())
    assert job.fetched() == set()
    job.server.files = right
    said = job.done("--ckl", CKL)
    [line] = [line for line in said if "made these dumps again" in line]
    assert "wikidata-20211001-all.json.gz" in line and "20210901-pages" not in line
    assert job.tags() == ["2021.09", "2021.10"]
    build(find_sources(tmp_path / "dumps", Interval("enwiki", *DATES[1:3])), tmp_path / "wanted", tmp_path / "x")
    wanted = contents(tmp_path / "wanted" / "data")
    found = job.months.files()
    assert {path: found[f"data/{path}"] for path in wanted} == wanted


@pytest.mark.parametrize("status", [403, 404])
def test_a_built_month_is_published_if_its_dumps_cannot_be_compared(status: int, job: Job) -> None:
    job.has(*DATES[:2])
    job.hub.fault("POST", r"/commit/main$", status=403)
    job.failed()
    job.server.fault("entities/20210901/", Fault(status=status), times=99)
    job.server.fault("wikidatawiki/20210901/", Fault(status=status), times=99)
    job.done()
    assert job.tags() == ["2021.09"]


def test_three_months_one_after_another(job: Job) -> None:
    names = ["20210801-20210901", "20210901-20211001", "20211001-20211101"]
    months = ["2021.09", "2021.10", "2021.11"]
    for number, name in enumerate(names):
        job.has(*DATES[: number + 2])
        said = job.done()
        newest = f"the newest complete month on {job.server.url} is enwiki {name[:8]} to {name[9:]}"
        assert said[0] == newest
        if number:
            assert said[1] == f"datasets/{REPO}: its newest month is {months[number - 1]} ({names[number - 1]})"
        else:
            assert said[1] == f"datasets/{REPO}: it has no month yet, so its counts have nothing to be compared with"
        assert job.tags() == months[: number + 1]
        # last month's dumps are there already
        assert all(("/20211101/" in path) or number < 2 for path in job.fetched())
        job.has(*DATES[: number + 2])
        before = len(job.sent())
        assert job.done() == [f"{newest}; datasets/{REPO} has it already, as {months[number]}"]
        assert len(job.sent()) == before and job.fetched() == set()


def test_a_dry_run_says_all_and_reads_listings_alone(job: Job, everything: dict[str, bytes], tmp_path: Path) -> None:
    job.has(*DATES[:2])
    said = job.done("--dry-run")
    assert job.fetched() == set() and job.sent() == []
    assert not (tmp_path / "dumps").exists() and not (tmp_path / "temporalwiki").exists()
    with pytest.raises(KeyError):
        job.hub.repo("dataset", REPO)
    text = "\n".join(said)
    listed = [path for path in job.server.files if path.endswith((".bz2", ".gz")) and "index" not in path]
    wanted = [path for path in listed if "page_props" not in path or "/20210901/" in path]
    for path in wanted:
        assert re.search(rf"{len(everything[path]) / 1e6:,.1f} MB .* {re.escape(path)}", text), path
    assert f"{len(wanted)} files" in text
    for path in ("data/diffset-20210801-20210901/train-*.parquet", "data/probes-20210801-20210901/deleted-*.parquet",
                 "manifests/20210801-20210901.json"):  # fmt: skip
        assert f"  + {path}" in said
    assert f"20210801-20210901: would publish to datasets/{REPO}, in one commit" in said
    assert "  tag 2021.09" in said
    assert "data/wikipedia-20210901" not in text


def test_a_dry_run_of_a_month_that_is_built_says_the_exact_operations(job: Job, tmp_path: Path) -> None:
    job.has(*DATES[:2])
    job.hub.fault("POST", r"/commit/main$", status=403, times=1)
    job.failed()
    before = len(job.sent())
    said = job.done("--dry-run")
    assert len(job.sent()) == before
    out = tmp_path / "temporalwiki"
    for file in out.rglob("*.parquet"):
        size = file.stat().st_size
        assert any(f"+ {file.relative_to(out)}  {size:,} bytes" in line for line in said), file
    assert "  tag 2021.09" in said


def test_what_was_done_before_a_fault_is_not_done_again(job: Job, tmp_path: Path) -> None:
    job.has(*DATES[:2])
    job.server.fault("wikidata-20210901-all", Fault(status=403), times=2)  # at both of its places
    assert "answers 403" in job.failed()
    job.hub.fault("POST", r"/commit/main$", status=503, times=TRIES)
    assert re.search("503.*run the same command again", job.failed())
    assert job.tags() == []
    built = {path: path.stat().st_mtime_ns for path in (tmp_path / "temporalwiki").rglob("*") if path.is_file()}
    job.server.requests.clear()
    job.done()
    assert job.fetched() == set()
    assert built == {path: path.stat().st_mtime_ns for path in built}
    assert job.tags() == ["2021.09"]


@pytest.mark.slow
@pytest.mark.fault(
    "kill -9",
    "monthly: between the commit and its tag",
    "a rerun fetches nothing again and tags that commit",
)
def test_a_job_that_is_killed_goes_on(job: Job, tmp_path: Path) -> None:
    job.has(*DATES[:2])
    where = ["--dumps", tmp_path / "dumps", "--out", tmp_path / "temporalwiki", "--mirror", job.server.url]
    words = [sys.executable, "-m", "temporalwiki", "monthly", "--repo", REPO, *map(str, where)]
    with subprocess.Popen(words, env=job.hub.environment(tmp_path, "hf_me"), stdout=subprocess.DEVNULL) as run:
        job.hub.when("POST", r"/commit/main$", run.kill, after=True)
        assert run.wait() == -signal.SIGKILL
    commit = job.months.branches["main"]  # which has the month; its tag is missing
    assert job.tags() == []
    job.server.requests.clear()
    job.done()
    assert job.fetched() == set()
    assert job.months.tags == {"2021.09": commit}
    assert list(job.months.branches) == ["main"]


@pytest.mark.fault("full disk", "monthly: --out", ONE_LINE)
def test_a_full_disk_stops_it_before_anything_is_sent(job: Job, dumps: Path, tmp_path: Path) -> None:
    job.has(*DATES[:2])
    with disk(tmp_path / "temporalwiki", "100k") as resize:
        last = job.failed()
        assert last.startswith(f"temporalwiki monthly: {tmp_path / 'temporalwiki'}/"), last
        assert "no space left on the disk; free some and run the same command again" in last
        assert job.sent() == []
        assert not any(path.is_file() for path in (tmp_path / "temporalwiki").rglob("*"))
        resize("10m")
        job.server.requests.clear()
        job.done()
        assert (job.fetched(), job.tags()) == (set(), ["2021.09"])
        sources = find_sources(dumps, Interval("enwiki", *DATES[:2]))
        build(sources, tmp_path / "wanted", tmp_path / "work", card=folder_card)
        (tmp_path / "temporalwiki" / "published.json").unlink()  # which only a publish writes
        assert without_manifests(tmp_path / "temporalwiki") == without_manifests(tmp_path / "wanted")


@pytest.mark.fault(
    "two at once", "monthly: another fetch or build uses its folders", "refused in one line; nothing is sent"
)
@pytest.mark.parametrize(("place", "what"), [("dumps/wikidatawiki", "fetch"), ("temporalwiki", "build")])
def test_nobody_works_in_its_folders_beside_it(job: Job, tmp_path: Path, place: str, what: str) -> None:
    job.has(*DATES[:2])
    with only_one(tmp_path / place, what):
        assert f"{tmp_path / place}: another {what} is at work here; wait for it" in job.failed()
    assert job.sent() == []


def test_what_cannot_be_built_into_is_refused_before_anything_is_fetched(job: Job, tmp_path: Path) -> None:
    job.has(*DATES[:2])
    manifests = tmp_path / "temporalwiki" / "manifests"
    add_month(manifests.parent, *DATES[:2], [])
    other = (manifests / "20210801-20210901.json").read_text().replace('"enwiki"', '"simplewiki"')
    shutil.rmtree(manifests.parent)
    manifests.mkdir(parents=True)
    for text, said in ((other, "holds simplewiki"), ("{}", "not a manifest")):
        (manifests / "20210801-20210901.json").write_text(text)
        assert said in job.failed()
    (manifests / "20210801-20210901.json").unlink()
    manifests.rmdir()
    (tmp_path / "temporalwiki" / "thesis.tex").touch()
    job.failed()
    assert job.fetched() == set() and job.sent() == []


@pytest.mark.parametrize("token", [None, "hf_reader"])
def test_without_the_right_to_write_nothing_is_fetched(
    job: Job, token: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.has(*DATES[:2])
    job.hub.add_user("reader", "hf_reader", orgs={"ORG": "read"})
    monkeypatch.delenv("HF_TOKEN")
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    status, _, err = job.run()
    assert status == 1
    assert len(err.strip().splitlines()) == 1
    assert "no token" in err if token is None else "right to write" in err
    assert job.fetched() == set() and job.sent() == []


def test_a_jump_stops_the_job_until_it_is_accepted(job: Job) -> None:
    job.publish_first()
    now = job.manifest("20210801-20210901")["counts"]["diffset"]["words"]
    job.change_first(lambda found: found["counts"]["diffset"].update(words=50 * now))
    job.has(*DATES[:3])
    commit, before = job.months.branches["main"], len(job.sent())
    for _ in range(2):  # the next day as well
        line = job.failed()
        assert "words in the diffset: " in line and f"{50 * now:,} in 20210801-20210901" in line
        assert "--accept-jump" in line
        assert job.months.branches["main"] == commit and len(job.sent()) == before
    job.done("--accept-jump")
    assert job.tags() == ["2021.09", "2021.10"]


def test_months_that_were_missed_are_made_while_their_dumps_are_there(job: Job, tmp_path: Path) -> None:
    job.publish_first()
    job.has(*DATES)
    said = job.done("--dry-run")
    assert [line for line in said if line.startswith("  tag")] == ["  tag 2021.10", "  tag 2021.11"]
    job.done(place=tmp_path / "another machine")
    assert job.tags() == ["2021.09", "2021.10", "2021.11"]
    at = job.months
    assert "manifests/20211001-20211101.json" not in at.files("2021.10")  # one after the other
    assert {"manifests/20210901-20211001.json", "manifests/20211001-20211101.json"} <= at.files("2021.11").keys()


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_months_that_were_missed_and_are_gone_are_said(job: Job, tmp_path: Path, dry: tuple[str, ...]) -> None:
    job.publish_first()
    job.has(*DATES[2:])
    place = tmp_path / "another machine"
    status, said, err = job.run(*dry, place=place)
    # cron mails only failures, and no later run looks for this month
    assert (status, "20210901-20211001 could not be fetched: " in err) == (1, True)
    at = next(i for i, line in enumerate(said) if line.startswith("20210901-20211001: is missing"))
    assert "no such dump" in said[at]
    out = place / "temporalwiki"
    assert said[at + 2 : at + 4] == [
        f"  temporalwiki build 20210901 20211001 --wiki enwiki --dumps DIR --out {out}",
        f"  temporalwiki publish dataset {out} {REPO}",
    ]
    assert job.tags() == (["2021.09"] if dry else ["2021.09", "2021.11"])
    if not dry:
        job.done(place=place)  # the newest is there


def test_a_month_between_that_was_never_finished_stops_no_later_one(job: Job) -> None:
    job.publish_first()
    job.has(*DATES)
    path = "enwiki/20210901/dumpstatus.json"
    job.server.files[path] = job.server.files[path].replace(b'"done"', b'"failed"')
    code, said, err = job.run()
    assert code == 1 and "20210901-20211001 could not be fetched" in err
    assert any("articlesmultistreamdump is failed" in line for line in said) or "2021.10" in job.tags()
    assert "2021.11" in job.tags()


def test_dumps_that_the_server_has_removed_since_count_where_they_were_fetched(job: Job) -> None:
    """Wikidata's are there for 70 days."""
    job.has(*DATES[:2])
    job.done()
    job.has(*DATES[:3])
    job.server.files = {path: data for path, data in job.server.files.items() if "entities/20210901/" not in path}
    job.done()
    assert job.tags() == ["2021.09", "2021.10"]


def test_facts_go_on_from_the_dump_with_which_the_month_before_ended(job: Job, everything: dict[str, bytes]) -> None:
    """Though a later one of before the snapshot is there by now."""
    job.has(*DATES[:2])
    job.server.files = {path: data for path, data in job.server.files.items() if "entities/20210901/" not in path}
    for path, data in everything.items():  # the dump of the 1st is a week old at first
        if "entities/20210901/" in path:
            job.server.files[path.replace("20210901", "20210825")] = data.replace(b"20210901", b"20210825")
    job.done()
    assert job.manifest("20210801-20210901")["interval"]["wikidata_recent"] == "20210825"
    earlier = {path: data for path, data in job.server.files.items() if "20210825" in path}
    job.has(*DATES[:3])
    job.server.files |= earlier
    job.done()
    assert job.manifest("20210901-20211001")["interval"]["wikidata_prev"] == "20210825"


@pytest.mark.parametrize(
    ("file", "times", "named"),
    [("wikidata-20211001-all", 2, "wikidata-20211001-all"), ("wikidata-20211001-sha1sums", 1, "wikidata 20211001")],
)
def test_a_missed_month_whose_download_or_listing_fails_is_not_skipped(
    job: Job, file: str, times: int, named: str
) -> None:
    job.publish_first()
    job.has(*DATES)
    job.server.fault(file, Fault(status=403), times=times)
    assert named in job.failed()
    assert job.tags() == ["2021.09"]
    job.done()
    assert job.tags() == ["2021.09", "2021.10", "2021.11"]


def test_a_server_that_is_behind_the_hub_is_nothing_to_do(job: Job) -> None:
    job.has(*DATES[1:3])
    job.done()
    job.has(*DATES[:2])
    [said] = job.done()
    assert said.endswith(f"; datasets/{REPO} has a later one, 2021.10: nothing to do")
    assert job.fetched() == set()


def test_a_month_is_built_with_the_options_of_the_one_before(job: Job) -> None:
    job.publish_first()
    options = {"include": ["wikipedia"], "seed": 7, "compare": "exact", "caps": None}
    job.change_first(lambda found: found["options"].update(options))
    job.has(*DATES[:3])
    assert "  + data/wikipedia-20211001/train-*.parquet" in job.done("--dry-run")
    job.done()
    made = job.manifest("20210901-20211001")
    assert made["options"].items() >= options.items()
    assert "wikipedia-20211001" in made["configs"]


OTHER = {
    "of another wiki": (lambda m: m["interval"].update(wiki="simplewiki"), "holds simplewiki"),
    "without options": (lambda m: m.pop("options"), "manifests/20210801-20210901.json: not a manifest"),
    "with another config": (lambda m: m["options"].update(include=["../x"]), "has no options of a build"),
    "with a text": (lambda m: m["options"].update(seed="x\ny"), "not a manifest of temporalwiki (Expected `int`"),
}


@pytest.mark.parametrize("case", OTHER)
def test_what_the_hub_holds_cannot_be_gone_on_with(case: str, job: Job) -> None:
    job.publish_first()
    change, said = OTHER[case]
    job.change_first(change)
    job.has(*DATES[:3])
    status, _, err = job.run()
    assert (status, len(err.strip().splitlines())) == (1, 1)
    assert said in err
    assert job.fetched() == set()


def test_a_wrong_month_is_published_again_under_another_tag(
    job: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str], dumps: Path
) -> None:
    """As docs/publishing.md says it; the old tag keeps its month."""
    job.publish_first()
    name = "20210801-20210901"
    mended = str(tmp_path / "mended")
    words = [*name.split("-"), "--dumps", str(dumps), "--out", mended, "--unchanged-fraction", "1"]
    assert main(["build", *words]) == 0
    publish = ["publish", "dataset", mended, REPO, "--tag", "2021.09.1"]
    assert main(publish) == 1
    assert "published already (tag 2021.09)" in capsys.readouterr().err
    at = job.months
    before = at.files("2021.09")
    wrong = [path for path in before if path == f"manifests/{name}.json" or fnmatch(path, f"data/*-{name}/*")]
    job.hub.commit("dataset", REPO, {}, remove=tuple(wrong))
    assert main(publish) == 0
    assert at.files("2021.09") == before == FIRST
    probes = [path for path in before if path.startswith(f"data/probes-{name}/unchanged-")]
    assert all(at.files("2021.09.1")[path] != before[path] for path in probes)
    assert at.files() == at.files("2021.09.1")
    capsys.readouterr()
    job.has(*DATES[:2])
    [said] = job.done()
    assert said.endswith(f"; datasets/{REPO} has it already, as 2021.09.1")


# after the end of the Hub's newest, the newest of the server: the months between
BETWEEN = {
    "nothing": ("20211101", "20211101-20211201", []),
    "one": ("20211001", "20211101-20211201", ["20211001-20211101"]),
    "over the new year": (
        "20211101", "20220201-20220301", ["20211101-20211201", "20211201-20220101", "20220101-20220201"],
    ),
    "part of a month, by hand": ("20211020", "20211201-20220101", ["20211101-20211201"]),
    "an interval that ends within the newest": ("20211120", "20211101-20211201", []),
    "the newest itself": ("20211201", "20211101-20211201", []),
}  # fmt: skip


@pytest.mark.parametrize("case", BETWEEN)
def test_the_months_between(case: str) -> None:
    last, newest, expected = BETWEEN[case]
    found = months_between(last, Interval("enwiki", *newest.split("-")))
    assert [interval.name for interval in found] == expected


# The leaderboard


@pytest.fixture()
def recipe(tmp_path: Path) -> Callable[..., Path]:
    def written(**changes: Any) -> Path:
        wanted = {
            "model": str(tmp_path / "model"),
            "batch_size": 2,
            "sequence_length": 16,
            "max_steps": 1,
            "precision": "fp32",
            "experiment": {
                "data": str(tmp_path / "temporalwiki"),
                "months": {"since": "20210801-20210901"},
                "methods": {"initial": None, "diff": None},
                "tasks": {"twiki_probes": {"answers": False, "light_tuning": False}},
                "limit": 4,
                "output": str(tmp_path / "experiment"),
            }
            | changes,
        }
        path = tmp_path / "monthly.yaml"
        path.write_text(yaml.safe_dump(wanted), "utf-8")
        return path

    return written


def test_a_recipe_goes_on_with_the_new_month_and_its_leaderboard_is_published(
    job: Job, recipe: Callable[..., Path], tmp_path: Path, quick: None
) -> None:
    tiny_models.save("gpt2", tmp_path / "model")
    words = ("--recipe", str(recipe()), "--leaderboard", SPACE)
    job.has(*DATES[:2])
    said = job.done("--dry-run", *words)
    assert job.sent() == []
    assert said[-2:] == [
        f"{words[1]}: would train and score what is missing up to 20210801-20210901",
        f"{words[1]}: would publish its leaderboard to spaces/{SPACE}",
    ]
    job.done(*words)
    assert job.tags() == ["2021.09"]
    page = job.hub.repo("space", SPACE).files()["index.html"]
    assert b"20210801-20210901" in page and b"20210901-20211001" not in page
    assert f"{REPO}@2021.09" in job.hub.repo("space", SPACE).files()["README.md"].decode()
    trained = _trainings(tmp_path)
    job.has(*DATES[:3])
    job.done(*words)
    assert trained.items() < _trainings(tmp_path).items()  # the first month is not trained again
    assert b"20210901-20211001" in job.hub.repo("space", SPACE).files()["index.html"]
    before = len(job.sent())
    job.done(*words)  # the next day
    assert len(job.sent()) == before
    # a cell that fails leaves the leaderboard as it is
    (tmp_path / "model" / "config.json").write_text("{}")
    job.failed(*words)
    assert len(job.sent()) == before


@pytest.mark.parametrize("killed", [False, True], ids=["at once", "after a run that was killed before the experiment"])
def test_a_model_of_the_recipe_names_the_month_on_the_hub(
    killed: bool, job: Job, recipe: Callable[..., Path], tmp_path: Path, quick: None
) -> None:
    tiny_models.save("gpt2", tmp_path / "model")
    job.hub.commit("model", "ORG/base", {"README.md": b"---\nlicense: mit\n---\n", **contents(tmp_path / "model")})
    job.has(*DATES[:2])
    if killed:
        job.done()
        (tmp_path / "temporalwiki" / "published.json").unlink()
    words = ("--recipe", str(recipe(tasks={"twiki_probes": {"light_tuning": False}})))
    job.done(*words)
    [trained] = [path.parent for path in _trainings(tmp_path) if '"diff"' in path.read_text("utf-8")]
    list(publish_model(trained, "ORG/diff", base="ORG/base", results=tmp_path / "experiment" / "results"))
    month, files = job.months, job.hub.repo("model", "ORG/diff").files()
    card = ModelCard(files["README.md"].decode()).data
    assert (card.datasets, card.base_model) == ([REPO], "ORG/base")
    text = files["README.md"].decode()
    assert (
        f"It read [{REPO}@2021.09]({job.hub.endpoint}/datasets/{REPO}/tree/2021.09) and was made from [ORG/base]("
        in text
    )
    assert "## What it says" in text
    [entry] = yaml.safe_load(files[".eval_results/temporalwiki.yaml"])
    assert entry["dataset"] == {
        "id": REPO, "task_id": "probes-20210801-20210901-changed", "revision": month.tags["2021.09"]
    }  # fmt: skip
    published = json.loads(month.files()["manifests/20210801-20210901.json"])
    del published["tag"]
    assert json.loads(files["training.json"])["sources"] == [
        {
            "config": "diffset-20210801-20210901",
            "repository": REPO,
            "commit": month.tags["2021.09"],
            "tag": "2021.09",
            "manifest_sha256": hashlib.sha256(json.dumps(published, sort_keys=True).encode()).hexdigest(),
        }
    ]


def _trainings(folder: Path) -> dict[Path, int]:
    """Return the finished checkpoints and when each was written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("training.json")}


def test_a_recipe_on_other_data_than_the_months_is_refused_when_they_are_there(
    job: Job, recipe: Callable[..., Path], tmp_path: Path
) -> None:
    job.has(*DATES[:2])
    job.done()
    (tmp_path / "temporalwiki").rename(tmp_path / "other")
    job.has(*DATES[:3])
    words = ("--recipe", str(recipe(data=str(tmp_path / "other"))))
    assert "lack 20210901-20211001" in job.failed(*words)
    assert job.tags() == ["2021.09", "2021.10"]  # the dataset is not held up


def test_a_damaged_copy_of_a_published_month_stops_the_job_before_it_fetches(job: Job, tmp_path: Path) -> None:
    folder = tmp_path / "temporalwiki"
    add_month(folder, "20210801", "20210901", [article(1)])
    list(publish_dataset(folder, REPO))
    job.has("20210801", "20210901")
    file = folder / "data" / "diffset-20210801-20210901" / "train-00000-of-00001.parquet"
    file.write_bytes(file.read_bytes()[:-1])
    job.done()  # there is no work, and nothing reads the file
    job.has("20210801", "20210901", "20211001")
    assert "train-00000-of-00001.parquet: not the file that the manifest describes; `hf download" in job.failed()
    assert job.fetched() == set() and job.tags() == ["2021.09"]
