"""`monthly --status`: published, pending and missing months, and what a person must look at."""

import datetime
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from temporalwiki.base.errors import InputError
from temporalwiki.builders.fetch import unfinished_dump
from temporalwiki.builders.machine import Machine
from temporalwiki.commands import main
from temporalwiki.push_scripts.dataset import publish_dataset
from temporalwiki.push_scripts.month_source import DumpServer
from temporalwiki.push_scripts.monthly import MonthlyJob
from temporalwiki.push_scripts.status import status

from a_folder import rewrite
from a_month import add_month, article
from file_server import FileServer, lists_of
from loopback_hub import LoopbackHub

REPO = "ORG/temporalwiki"
NAME = f"datasets/{REPO}"
DECEMBER = datetime.date(2021, 12, 20)


def dumps(*dates: str, unfinished: tuple[str, ...] = ()) -> dict[str, bytes]:
    """Return the files of a dump server: articles of these dates, and some are in progress."""
    found: dict[str, bytes] = {}
    for date in dates:
        path = f"enwiki/{date}/enwiki-{date}-pages-articles-multistream.xml.bz2"
        state = {"articlesmultistreamdump": "in-progress"} if date in unfinished else {}
        found |= {path: b"x"} | lists_of({path: b"x"}, **state)
    return found


@pytest.fixture
def server(hub: LoopbackHub) -> Iterator[FileServer]:
    with FileServer(dumps("20211101", "20211201")) as server:
        yield server


@pytest.fixture
def job(server: FileServer, tmp_path: Path) -> MonthlyJob:
    folders = {"dumps": tmp_path / "dumps", "out": tmp_path / "temporalwiki", "work": tmp_path / "work"}
    return MonthlyJob("enwiki", REPO, **folders, machine=Machine(1, 1 << 30, "local"), source=DumpServer(server.url))


def fault(job: MonthlyJob, said: str, day: datetime.date = DECEMBER) -> None:
    with pytest.raises(InputError, match=said):
        list(status(job, day))


def publish(job: MonthlyJob, *months: tuple[str, str], empty: tuple[str, ...] = ()) -> None:
    """Publish months; those in ``empty`` get no probes of that split."""
    for prev, recent in months:
        add_month(job.out, prev, recent, [article(int(recent))])
        path = job.out / "manifests" / f"{prev}-{recent}.json"
        counts = json.loads(path.read_text())["counts"]
        for split in empty:
            counts["probes"][split] = {**counts["probes"][split], "kept": 0}
        rewrite(path, counts=counts)
    list(publish_dataset(job.out, REPO, accept_jump=True))


def test_all_is_well(hub: LoopbackHub, job: MonthlyJob) -> None:
    publish(job, ("20211001", "20211101"), ("20211101", "20211201"))
    hub.requests.clear()
    assert list(status(job, DECEMBER)) == [
        f"{NAME}: published: 2021.11, 2021.12",
        f"{NAME}: the newest is 2021.12, 20211101 to 20211201, 19 days old",
    ]
    assert {request.method for request in hub.requests} <= {"GET", "HEAD"}


def test_what_is_missing_and_pending_is_said(server: FileServer, job: MonthlyJob) -> None:
    publish(job, ("20210601", "20210701"), ("20210901", "20211001"))
    server.files = dumps("20211101", "20211201", "20220101", unfinished=("20220101",))
    assert list(status(job, datetime.date(2021, 11, 1)))[2:] == [
        "missing: 20210701-20210801, between published months",
        "missing: 20210801-20210901, between published months",
        "pending: 20211001-20211101, to be made by the next run if its dumps are there",
        "pending: 20211101-20211201, to be made by the next run if its dumps are there",
        "pending: enwiki 20220101 is not done: articlesmultistreamdump is in-progress since 2021-11-02 10:00:00",
    ]


@pytest.mark.parametrize(("day", "stale"), [("2022-01-15", False), ("2022-01-16", True)])
def test_a_newest_month_of_more_than_45_days_is_a_fault(day: str, stale: bool, job: MonthlyJob) -> None:
    publish(job, ("20211101", "20211201"))
    today = datetime.date.fromisoformat(day)
    if stale:
        fault(job, f"^{NAME}: the newest month, 2021.12, is 46 days old, more than 45$", today)
    else:
        assert len(list(status(job, today))) == 2


@pytest.mark.parametrize("empty", [("changed",), ("unchanged",), ("changed", "unchanged")])
def test_a_month_without_probes_of_a_split_is_a_fault(empty: tuple[str, ...], job: MonthlyJob) -> None:
    publish(job, ("20211101", "20211201"), empty=empty)
    expected = "; ".join(f"2021.12 has no {split} probes" for split in empty)
    fault(job, f"^{NAME}: {expected}$")


def test_a_month_whose_publisher_was_killed_before_its_tag_is_a_fault(hub: LoopbackHub, job: MonthlyJob) -> None:
    publish(job, ("20211101", "20211201"))
    del hub.repo("dataset", REPO).tags["2021.12"]
    fault(job, r"2021\.12 has no tag; run `temporalwiki monthly` to add it")


def test_nothing_published_is_a_fault(job: MonthlyJob) -> None:
    lines = status(job, DECEMBER)
    assert next(lines) == f"{NAME}: published: nothing"
    assert next(lines).startswith("pending: 20211101-20211201,")
    with pytest.raises(InputError, match="no month is published"):
        next(lines)


def test_without_a_dump_server_the_rest_is_said(server: FileServer, job: MonthlyJob) -> None:
    publish(job, ("20211101", "20211201"))
    server.files = {}
    lines = status(job, DECEMBER)
    assert next(lines) == f"{NAME}: published: 2021.12"
    with pytest.raises(InputError, match="the dump server cannot be read, so pending months are unknown: enwiki: "):
        list(lines)


def test_without_a_network_it_says_so_in_one_line(
    server: FileServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # nobody listens
    assert main(["monthly", "--repo", REPO, "--status", "--mirror", server.url]) == 1
    said = capsys.readouterr()
    assert said.out == "" and len(said.err.splitlines()) == 1
    assert said.err.startswith(f"temporalwiki monthly: {NAME}: ")


@pytest.mark.parametrize(
    ("updated", "since"), [("2021-12-02 03:04:05", "2021-12-02 03:04:05"), ("<b>", "2021-12-01"), (None, "2021-12-01")]
)
def test_since_when_a_dump_is_not_done(updated: str | None, since: str) -> None:
    files = dumps("20211101", "20211201", unfinished=("20211201",))
    path = "enwiki/20211201/dumpstatus.json"
    listed = json.loads(files[path])
    listed["jobs"]["articlesmultistreamdump"]["updated"] = updated
    with FileServer(files | {path: json.dumps(listed).encode()}) as server:
        found = unfinished_dump(server.url, "enwiki", "20211101")
        assert found == f"enwiki 20211201 is not done: articlesmultistreamdump is in-progress since {since}"
        assert unfinished_dump(server.url, "enwiki", "20211201") is None
