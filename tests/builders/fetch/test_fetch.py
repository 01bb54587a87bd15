"""Fetching from a server that does not behave: the same bytes in the end, or one clear line."""

import dataclasses
import errno
import hashlib
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from dump_forms import split_dump, write_page_props
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.base.files import only_one
from temporalwiki.base.progress import Progress
from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.fetch import connection, describe_plan, fetch, left, newest_interval, plan
from temporalwiki.builders.fetch.download import _Part, download
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.world import World, write_world

from a_folder import contents
from faults.rows import ONE_LINE, REFUSED
from file_server import Fault, FileServer, lists_of, served

DOWNLOAD = import_module("temporalwiki.builders.fetch.download")  # its package has a function of this name
MONTH = Interval("enwiki", "20211101", "20211201")
PROPS = "enwiki/20211201/enwiki-20211201-page_props.sql.gz"


def part(date: str, number: int, pages: str) -> str:
    return f"enwiki/{date}/enwiki-{date}-pages-articles-multistream{number}.xml-{pages}.bz2"


def entities(date: str, suffix: str = "gz") -> str:
    return f"wikidatawiki/entities/{date}/wikidata-{date}-all.json.{suffix}"


def some_bytes(path: str, size: int) -> bytes:
    return random.Random(path).randbytes(size)


SIZES = {
    part("20211101", 1, "p1p99"): 200_000,
    part("20211101", 2, "p100p300"): 3_000,
    part("20211201", 1, "p1p99"): 400_000,  # BIG
    part("20211201", 2, "p100p310"): 5_000,
    entities("20211101"): 30_000,
    entities("20211129"): 31_000,
    PROPS: 2_000,
}
BIG = part("20211201", 1, "p1p99")
FILES = {path: some_bytes(path, size) for path, size in SIZES.items()}
# files on the server that are not needed
OTHERS = {
    path: some_bytes(path, 100)
    for path in (
        "enwiki/20211101/enwiki-20211101-pages-articles-multistream.xml.bz2",
        "enwiki/20211101/enwiki-20211101-pages-articles-multistream-index1.txt-p1p99.bz2",
        "enwiki/20211201/enwiki-20211201-pages-articles-multistream.xml.bz2",
        "enwiki/20211101/enwiki-20211101-page_props.sql.gz",
        entities("20211101", "bz2"),
        entities("20211206"),
        "wikidatawiki/entities/20211201/wikidata-20211201-truthy-BETA.nt.gz",
    )
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "BACKOFF", 0.001)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer(FILES | OTHERS | lists_of(FILES | OTHERS)) as server:
        yield server


def dumps_in(folder: Path) -> dict[str, bytes]:
    """Everything in a folder of dumps but notes and lists."""
    found = contents(folder).items()
    return {name: data for name, data in found if not name.endswith(".fetched.json") and "sha1sums" not in name}


def fetch_all(dumps: Path, *servers: FileServer) -> None:
    """Fetch, and find exactly the files of the interval, with their bytes."""
    fetch(MONTH, dumps, [server.url for server in servers])
    assert dumps_in(dumps) == FILES


def test_what_is_fetched_is_what_a_build_reads(server: FileServer, tmp_path: Path) -> None:
    files = fetch(MONTH, tmp_path, [server.url])
    assert files == [tmp_path / path for path in FILES]
    assert dumps_in(tmp_path) == FILES  # nothing else, and no part or lock left
    found = find_sources(tmp_path, MONTH)
    assert found.files == files
    assert found.page_props == tmp_path / PROPS
    check = ["-execdir", "sha1sum", "--strict", "-c", "{}", "+"]
    checked = subprocess.run(["find", ".", "-name", "*sha1sums*.txt", *check], cwd=tmp_path, capture_output=True)
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.count(b": OK\n") == len(FILES)


def test_every_request_says_who_asks_and_three_come_at_once_at_most(server: FileServer, tmp_path: Path) -> None:
    server.fault(r"\.(bz2|gz)$", Fault(delay=0.002), times=99)
    fetch(MONTH, tmp_path, [server.url])
    assert {request.headers["User-Agent"].split("/")[0] for request in server.requests} == {"temporalwiki"}
    assert {request.headers["Accept-Encoding"] for request in server.requests} == {"identity"}
    assert server.most_at_once in (2, 3)


def test_a_second_fetch_takes_nothing_and_reads_nothing_again(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch(MONTH, tmp_path, [server.url])
    server.requests.clear()
    opened: list[Path] = []
    real = Path.open

    def watched(path: Path, *arguments: object, **options: object) -> object:
        opened.append(path)
        return real(path, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", watched)
    fetch(MONTH, tmp_path, [server.url])
    assert not server.asked(r"\.(bz2|gz)$")
    assert not [path for path in opened if path.suffix in (".gz", ".bz2")]
    os.utime(tmp_path / BIG)  # touched: read again
    fetch(MONTH, tmp_path, [server.url])
    assert [path for path in opened if path.suffix in (".gz", ".bz2")] == [tmp_path / BIG]


def test_a_file_from_elsewhere_is_kept_if_it_is_the_one_listed(server: FileServer, tmp_path: Path) -> None:
    for path, data in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    (tmp_path / PROPS).write_bytes(b"x" * len(FILES[PROPS]))  # same size, other bytes
    (tmp_path / BIG).write_bytes(FILES[BIG][:-1])
    fetch_all(tmp_path, server)
    assert {request.path for request in server.asked(r"\.(bz2|gz)$")} == {PROPS, BIG}


HTTP_DATE_PAST = "Mon, 01 Nov 2021 00:00:00 GMT"
# faults of one file, in turn -> how often it is asked for, and the messages
MENDED: dict[str, tuple[list[Fault], int, str]] = {
    "cut in the middle": ([Fault(cut=150_000)], 2, "next try in"),
    "cut at once": ([Fault(cut=0)], 2, "next try in"),
    "cut again and again, always further": ([Fault(cut=70_000)] * 5, 6, "next try in"),
    "cut after the last byte": ([Fault(cut=400_000)], 1, ""),
    "ends too early, by its own word well": ([Fault(body=FILES[BIG][:9_000], chunked=True)], 2, "ends after 9,000"),
    "cut, then Range ignored": ([Fault(cut=150_000), Fault(ignore_range=True)], 2, "next try"),
    "cut, then Range ignored and cut": ([Fault(cut=150_000), Fault(ignore_range=True, cut=9), Fault()], 3, "next"),
    "no length": ([Fault(chunked=True)], 1, ""),
    "too long, without a length": ([Fault(body=FILES[BIG] + b"more", chunked=True)], 1, ""),
    "never ends": ([Fault(endless=True, chunked=True)], 1, ""),
    "throttled, in seconds": ([Fault(status=429, headers={"Retry-After": "0"})] * 3, 4, "answers 429"),
    "throttled, with a date": ([Fault(status=503, headers={"Retry-After": HTTP_DATE_PAST})], 2, "answers 503"),
    "throttled, with nonsense": ([Fault(status=429, headers={"Retry-After": "soon"})], 2, "answers 429"),
    "errors of the server": ([Fault(status=500), Fault(status=502), Fault(status=504)], 4, "answers 504"),
    "wrong bytes once": ([Fault(body=bytes(400_000))], 2, "gave wrong bytes: SHA-1"),
    "another version once": ([Fault(body=bytes(400_001))], 2, "gave wrong bytes: has 400,001 bytes"),
    "cut, then another version once": ([Fault(cut=9_000), Fault(body=bytes(9_001))], 3, "wrong bytes: has 9,001"),
    "cut, then zeros for the rest": ([Fault(cut=99_000), Fault(body=FILES[BIG][:99_000] + bytes(301_000))], 3, "next"),
    "cut, then another piece than asked": ([Fault(cut=99_000), Fault(range_at=98_000)], 3, "a wrong range of bytes"),
    "cut, then 416": ([Fault(cut=99_000), Fault(status=416)], 3, "nothing after"),
    "416 at once": ([Fault(status=416)], 2, "nothing after"),
    "a byte of another encoding": ([Fault(headers={"Content-Encoding": "gzip"})], 1, ""),
}


@pytest.mark.fault(
    "server that misbehaves",
    "fetch: cut off, 429, 5xx, Range ignored or the wrong piece sent, wrong bytes once",
    "every retry is reported, and the right bytes arrive in the end",
)
@pytest.mark.parametrize("case", MENDED)
def test_faults_that_mend(case: str, server: FileServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    faults, asked, said = MENDED[case]
    for fault in faults:
        server.fault(re.escape(BIG), fault)
    fetch_all(tmp_path, server)
    assert len(server.asked(re.escape(BIG))) == asked
    assert said in capsys.readouterr().err


# a fault of one file that stays -> what the error says
FATAL: dict[str, tuple[Fault, str]] = {
    "not there": (Fault(status=404), "answers 404"),
    "forbidden": (Fault(status=403), "answers 403"),
    "always cut at the same place": (Fault(cut=150_000, ignore_range=True), "given up after 10 tries"),
    "always cut at once": (Fault(cut=0), "given up after 10 tries"),
    "a few bytes at a time": (Fault(cut=10), "given up after 10 tries"),
    "wrong bytes": (Fault(body=bytes(400_000)), "twice: SHA-1 [0-9a-f]{40}, not"),
    "too many bytes": (Fault(body=bytes(400_001)), "400,001 bytes, but the list of the dump says 400,000"),
    "too few bytes": (Fault(body=FILES[BIG][:-1]), "has 399,999 bytes, but"),
    "never ends, wrong": (Fault(body=bytes(100_000), endless=True, chunked=True), "twice: SHA-1"),
    "claims to be longer": (Fault(length=400_001), "400,001 bytes, but"),
    "claims to be shorter": (Fault(length=10), "10 bytes, but"),
    "throttled for good": (Fault(status=429, headers={"Retry-After": "0"}), "429; given up after 10 tries"),
    "throttled for a day": (Fault(status=429, headers={"Retry-After": "86400"}), "come back in 1440 minutes"),
    "416 for good": (Fault(status=416), "given up after 10 tries"),
    "a redirect to itself": (Fault(status=302, headers={"Location": f"/{BIG}"}), "leads on more than 5 times"),
    "a redirect to a file": (Fault(status=302, headers={"Location": "file:///etc/passwd"}), "leads from http to"),
}


@pytest.mark.fault(
    "server that misbehaves",
    "fetch: permanent 404, 403 or 429, wrong size or SHA-1, endless redirects or one to a file",
    "one line names the file and the address; no dump gets its final name",
)
@pytest.mark.parametrize("case", FATAL)
def test_faults_that_stay(case: str, server: FileServer, tmp_path: Path) -> None:
    fault, said = FATAL[case]
    server.fault(re.escape(BIG), fault, times=99)
    with pytest.raises(InputError, match=said) as caught:
        fetch(MONTH, tmp_path, [server.url])
    name = BIG.rpartition("/")[2]
    assert name in str(caught.value)
    assert server.url in str(caught.value)
    assert not (tmp_path / BIG).exists()
    assert server.sent < 32 << 20  # endless is not taken to the end
    with pytest.raises(InputError, match=r"missing|no such|no enwiki"):
        find_sources(tmp_path, MONTH)  # what is there is not taken for whole
    server._faults.clear()
    fetch_all(tmp_path, server)


# its bytes before all of them are there
PART = Path(BIG).with_name(f".{Path(BIG).name}.{hashlib.sha1(FILES[BIG]).hexdigest()}.part")


def stopped_fetch(server: FileServer, dumps: Path) -> None:
    """A fetch that ends with the first 150,000 bytes of BIG.

    It asks a server of its own: a request that the failure cut off may be recorded after the fetch has ended.
    """
    with FileServer(server.files) as failing:
        failing.fault(re.escape(BIG), Fault(cut=150_000))
        failing.fault(re.escape(BIG), Fault(status=403))
        with pytest.raises(InputError, match="403"):
            fetch(MONTH, dumps, [failing.url])
    assert (dumps / PART).stat().st_size == 150_000


def test_another_run_goes_on_where_one_was_stopped(server: FileServer, tmp_path: Path) -> None:
    stopped_fetch(server, tmp_path)
    (tmp_path / BIG).with_name("..fetched.json.0123abcd.part").touch()  # as a kill leaves behind
    fetch(MONTH, tmp_path, [server.url])
    (request,) = server.asked(re.escape(BIG))
    assert request.headers["Range"] == "bytes=150000-"
    assert dumps_in(tmp_path) == FILES


def test_a_part_of_another_version_is_not_continued(server: FileServer, tmp_path: Path) -> None:
    """The file and its list change on the server after the part came."""
    stopped_fetch(server, tmp_path)
    new = some_bytes("new", 400_000)
    server.files[BIG] = new
    server.files |= lists_of(FILES | OTHERS | {BIG: new})
    fetch(MONTH, tmp_path, [server.url])
    assert (tmp_path / BIG).read_bytes() == new
    (request,) = server.asked(re.escape(BIG))
    assert "Range" not in request.headers
    assert not (tmp_path / PART).exists()


def test_a_part_that_is_too_long_is_thrown_away(
    server: FileServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / PART).parent.mkdir(parents=True)
    (tmp_path / PART).write_bytes(FILES[BIG] + b"more")
    fetch_all(tmp_path, server)
    assert "wrong bytes" not in capsys.readouterr().err  # the server is not to blame


def test_a_file_that_changes_while_it_comes_is_fetched_again(
    server: FileServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.fault(re.escape(BIG), Fault(body=some_bytes("old", 400_000), cut=150_000))
    fetch_all(tmp_path, server)
    assert ["Range" in request.headers for request in server.asked(re.escape(BIG))] == [False, True, False]
    assert re.search("gave wrong bytes: SHA-1 [0-9a-f]{40}, not .*; trying once more", capsys.readouterr().err)


def test_a_part_of_one_mirror_goes_on_at_another(server: FileServer, tmp_path: Path) -> None:
    with FileServer(FILES) as mirror:
        server.fault(re.escape(BIG), Fault(cut=150_000))
        server.fault(re.escape(BIG), Fault(status=403))
        fetch_all(tmp_path, server, mirror)
        (request,) = mirror.asked("")
    assert request.headers["Range"] == "bytes=150000-"


def test_a_mirror_without_the_lists_gives_the_files(server: FileServer, tmp_path: Path) -> None:
    """As mirrors are: Wikidata lies in another folder, and an index of wikis is not there."""
    moved = ("wikidatawiki/entities", "other/wikibase/wikidatawiki")
    elsewhere = {path.replace(*moved): data for path, data in FILES.items()}
    server.fault(r"\.(bz2|gz)$", Fault(status=403), times=99)
    with FileServer(elsewhere) as mirror:
        fetch_all(tmp_path, server, mirror)


def test_a_mirror_cannot_vouch_for_its_own_lies(server: FileServer, tmp_path: Path) -> None:
    lies = {path: bytes(len(data)) for path, data in FILES.items()}
    with FileServer(lies | lists_of(lies)) as liar:
        fetch_all(tmp_path, server, liar)
        shutil.rmtree(tmp_path)
        server.fault(r"\.(bz2|gz)$", Fault(status=403), times=99)
        with pytest.raises(InputError, match=f"403; {liar.url}/.*twice"):
            fetch(MONTH, tmp_path, [server.url, liar.url])


def test_the_next_mirror_is_asked_where_one_does_not_answer(
    server: FileServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FileServer({}) as gone:
        pass
    fetch_all(tmp_path, gone, server)
    assert capsys.readouterr().err.count(f"{gone.url}/") == 4  # waited for once, not for every file


# what comes a byte at a time, and how
SLOW: Mapping[str, tuple[str, str, Fault]] = {
    "a file, from its first byte": (re.escape(BIG), "GET", Fault(drip_after=300)),
    "a file, after a while": (re.escape(BIG), "GET", Fault(drip_after=9_000)),
    "the heads of a file's chunks": (re.escape(BIG), "GET", Fault(drip_after=300, chunked=True)),
    "the head of an answer": (re.escape(BIG), "GET", Fault(drip_after=0)),
    "the head of a refusal": (re.escape(BIG), "GET", Fault(drip_after=0, status=503)),
    "a list": ("20211201/dumpstatus.json", "GET", Fault(drip_after=400)),
    "an index": ("entities/$", "GET", Fault(drip_after=0)),
    "the size of a file": ("all.json.gz", "HEAD", Fault(drip_after=0)),
}


@pytest.mark.fault(
    "server that misbehaves",
    "fetch: the head, a list or a file comes a byte at a time",
    "the request is cut and tried again, and then the next mirror gives the file",
)
@pytest.mark.parametrize("case", SLOW)
def test_a_server_that_is_too_slow_holds_nobody(
    case: str, server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connection, "TIMEOUT", 0.4)
    monkeypatch.setattr(connection, "TRIES_OF_A_PAGE", 2)
    monkeypatch.setattr(DOWNLOAD, "TRIES_OF_A_FILE", 2)
    path, method, fault = SLOW[case]
    with FileServer(server.files) as slow:
        slow.fault(path, fault, times=99, method=method)
        fetch_all(tmp_path, slow, server)
    assert "gives less than 10 kB a second; next try" in capsys.readouterr().err
    assert [request for request in server.requests if re.search(path, request.path)]  # the next mirror


def test_pieces_that_come_in_time_but_seldom_are_no_progress(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server could give a piece, then nothing until it is cut, again and again, and hold the lock for months."""
    monkeypatch.setattr(connection, "TIMEOUT", 0.2)
    monkeypatch.setattr(connection, "LEAST_RATE", 500_000)
    monkeypatch.setattr(DOWNLOAD, "LEAST_RATE", 500_000)
    monkeypatch.setattr(DOWNLOAD, "TRIES_OF_A_FILE", 3)
    server.fault(re.escape(BIG), Fault(drip_after=70_000), times=99)
    with pytest.raises(InputError, match="less than 500 kB a second; given up after 3 tries"):
        fetch(MONTH, tmp_path, [server.url])


def test_a_server_that_always_asks_to_wait_is_left(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LONGEST_WAITS", 0.5)
    server.fault(re.escape(BIG), Fault(status=503, headers={"Retry-After": "1"}), times=99)
    with pytest.raises(InputError, match="503; waited for more than 0 hours in all; try again later"):
        fetch(MONTH, tmp_path, [server.url])


def test_redirects_are_followed(server: FileServer, tmp_path: Path) -> None:
    with FileServer(FILES) as other:
        server.fault(re.escape(BIG), Fault(status=302, headers={"Location": f"{other.url}/{BIG}"}), times=99)
        other.fault(re.escape(BIG), Fault(cut=150_000))
        fetch_all(tmp_path, server)
        assert other.asked("")[-1].headers["Range"] == "bytes=150000-"


def test_it_waits_as_long_as_it_is_asked_to(
    server: FileServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.fault(re.escape(BIG), Fault(status=429, headers={"Retry-After": "1"}))
    begun = time.monotonic()
    fetch(MONTH, tmp_path, [server.url])
    assert time.monotonic() - begun >= 1
    assert "answers 429; next try in 1 s, as it asks" in capsys.readouterr().err


def test_lists_are_asked_for_again_too(server: FileServer, tmp_path: Path) -> None:
    for path in ("enwiki/20211101/dumpstatus.json", "sha1sums.txt", "entities/$"):
        server.fault(path, Fault(status=503, headers={"Retry-After": "0"}))
        server.fault(path, Fault(cut=5))
    server.fault("all.json.gz", Fault(status=503), method="HEAD")
    fetch_all(tmp_path, server)


def test_a_page_that_never_ends_is_not_taken_to_its_end(server: FileServer, tmp_path: Path) -> None:
    server.fault("dumpstatus.json", Fault(body=b" " * 100_000, endless=True, chunked=True))
    with pytest.raises(InputError, match="sends more than 16 MB instead of a small page"):
        fetch(MONTH, tmp_path, [server.url])
    assert server.sent < 40 << 20


@pytest.mark.fault(
    "full disk", "fetch: the files are larger than the free space", "an error before anything is fetched"
)
def test_too_small_a_disk_is_said_before(server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = sum(SIZES.values())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=missing - 1))
    with pytest.raises(InputError, match="GB are free; make room"):
        fetch(MONTH, tmp_path, [server.url])
    assert not server.asked(r"\.(bz2|gz)$")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=missing))
    fetch(MONTH, tmp_path, [server.url])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    fetch(MONTH, tmp_path, [server.url])  # all is there


@pytest.mark.fault("full disk", "fetch: in the middle of a file", ONE_LINE)
def test_a_full_disk_is_one_clear_line(server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(_Part, "write", full)
        with pytest.raises(InputError, match="no space left on the disk; free some"):
            fetch(MONTH, tmp_path, [server.url])
    fetch_all(tmp_path, server)


def test_what_was_fetched_counts_when_the_server_has_removed_it(server: FileServer, tmp_path: Path) -> None:
    files = fetch(MONTH, tmp_path, [server.url])
    gone = ("enwiki/20211101/", "wikidatawiki/entities/20211101/", "enwiki/20211201/dumpstatus.json")
    server.files = {path: data for path, data in server.files.items() if not path.startswith(gone)}
    assert fetch(MONTH, tmp_path, [server.url]) == files
    with (tmp_path / entities("20211101")).open("ab") as file:  # it is not what was checked any more
        file.write(b"x")
    with pytest.raises(InputError, match="wikidata: no finished JSON dump at or before 20211101"):
        fetch(MONTH, tmp_path, [server.url])


def test_a_dump_without_page_props_is_fetched_without(server: FileServer, tmp_path: Path) -> None:
    files = {path: data for path, data in FILES.items() if path != PROPS}
    server.files = files | lists_of(files)
    assert fetch(MONTH, tmp_path, [server.url]) == [tmp_path / path for path in files]


def test_a_server_without_an_index_has_wikidata_of_the_very_dates(server: FileServer, tmp_path: Path) -> None:
    moved = {path.replace("20211129", "20211201"): data for path, data in FILES.items()}
    server.files = moved | lists_of(moved)
    for index in ("wikidatawiki/entities/", "other/wikibase/wikidatawiki/"):
        server.fault(f"{index}$", Fault(status=404), times=9)
    assert fetch(MONTH, tmp_path, [server.url]) == [tmp_path / path for path in moved]


@pytest.mark.fault("two at once", "two runs of fetch in one folder", REFUSED)
def test_two_fetches_into_one_folder_are_refused(server: FileServer, tmp_path: Path) -> None:
    with only_one(tmp_path / "wikidatawiki", "fetch"), pytest.raises(InputError, match="another fetch is at work"):
        fetch(MONTH, tmp_path, [server.url])


IN_THE_WAY: Mapping[str, str] = {
    "a part of other pages": part("20211101", 2, "p100p299"),
    "one file beside parts": "enwiki/20211101/enwiki-20211101-pages-articles-multistream.xml.bz2",
    "an unpacked one": "enwiki/20211201/enwiki-20211201-pages-articles-multistream.xml",
    "a newer dump of Wikidata than the server's": entities("20211201"),
}


@pytest.mark.parametrize("case", IN_THE_WAY)
def test_what_a_build_would_read_instead_is_refused_before(case: str, server: FileServer, tmp_path: Path) -> None:
    other = tmp_path / IN_THE_WAY[case]
    other.parent.mkdir(parents=True)
    other.write_bytes(b"something else")
    with pytest.raises(InputError, match=f"^{re.escape(str(other))}: "):
        fetch(MONTH, tmp_path, [server.url])
    assert not server.asked(r"\.(bz2|gz)$")


def test_one_file_that_is_there_already_is_not_fetched_in_parts(server: FileServer, tmp_path: Path) -> None:
    whole = "enwiki/20211201/enwiki-20211201-pages-articles-multistream.xml.bz2"
    (tmp_path / whole).parent.mkdir(parents=True)
    (tmp_path / whole).write_bytes(OTHERS[whole])
    fetch(MONTH, tmp_path, [server.url])
    assert not server.asked("20211201-pages-articles")
    assert find_sources(tmp_path, MONTH).recent.files == (tmp_path / whole,)


def test_other_months_lists_are_left_alone(server: FileServer, tmp_path: Path) -> None:
    fetch(MONTH, tmp_path, [server.url])
    files = {re.sub("20211201|20211129", "20220101", path): data for path, data in FILES.items()}
    files = FILES | {path: data for path, data in files.items() if "20220101" in path}
    with FileServer(files | lists_of(files)) as next_month:
        fetch(Interval("enwiki", "20211201", "20220101"), tmp_path, [next_month.url])
        assert {request.path.split("/")[-2] for request in next_month.asked(r"\.(bz2|gz)$")} == {"20220101"}
    names = {path.name.partition("sums-")[2] for path in (tmp_path / "enwiki" / "20211201").glob("*sha1sums*")}
    assert names == {"pages-articles-multistream.txt", "page_props.txt"}


def test_a_plan_says_what_is_left(server: FileServer, tmp_path: Path) -> None:
    stopped_fetch(server, tmp_path)
    wanted = plan(MONTH, tmp_path, [server.url])
    assert {file.path: left(tmp_path, file) for file in wanted}[BIG] == 250_000
    (line,) = [line for line in describe_plan(tmp_path, wanted).splitlines() if line.endswith(BIG)]
    assert line.split() == ["0.4", "MB", "0.2", "to", "fetch", BIG]
    assert [file.path for file in wanted] == list(FILES)
    assert not server.asked(r"\.(bz2|gz)$")


def test_named_wikidata_dates(server: FileServer, tmp_path: Path) -> None:
    files = fetch(MONTH, tmp_path, [server.url], ("20211101", "20211206"))
    assert tmp_path / entities("20211206") in files
    for dates, said in {
        ("20211101", "20211102"): "no finished JSON dump of 20211102 .*20211129, 20211201, 20211206",
        ("20211129", "20211101"): "forward in time",
        ("20211101", "20211301"): "no such day",
    }.items():
        with pytest.raises(InputError, match=said):
            fetch(MONTH, tmp_path, [server.url], dates)


@pytest.mark.parametrize(
    "mirror", ["", "dumps.wikimedia.org", "ftp://x/", "https://", "https://u:p@x/", "http://x/?q", "http://[", "a b"]
)
def test_what_is_no_mirror(mirror: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a mirror"):
        fetch(MONTH, tmp_path, [mirror])


def test_a_build_of_what_was_fetched(tmp_path: Path) -> None:
    """A generated world in numbered parts: the same dataset as from the dumps themselves."""
    write_page_props(tmp_path / "origin", write_world(tmp_path / "origin", World(people=30)))
    for date in World().dates:
        split_dump(tmp_path / "origin" / "enwiki" / date, 2)
    with FileServer(served(tmp_path / "origin")) as server:
        fetch(MONTH, tmp_path / "dumps", [server.url])
    manifests = []
    for name in ("origin", "dumps"):
        sources = find_sources(tmp_path / name, MONTH)
        assert len(sources.recent.files) == 2
        manifest = build(sources, tmp_path / f"{name}.out", tmp_path / f"{name}.work", BuildOptions()).content
        took = manifest["run"]["stages"]["checksums"]
        assert (took["tasks"], took["kept"]) == (7, 7 if name == "dumps" else 0)  # fetch has read them all
        assert (took["mb"] == 0) == (name == "dumps")  # and a build nothing
        manifests.append({key: value for key, value in manifest.items() if key != "run"})
    assert manifests[0] == manifests[1]


@pytest.mark.fault(
    "kill -9",
    "fetch: in the middle of a file",
    "no dump has its final name before it is complete, and a rerun continues after the bytes on disk",
)
def test_killed_at_any_moment_a_rerun_completes(server: FileServer, tmp_path: Path) -> None:
    server.fault(r"\.(bz2|gz)$", Fault(delay=0.02), times=10_000)
    code = (
        "from pathlib import Path; from temporalwiki.builders.fetch import fetch\n"
        "from temporalwiki.builders.snapshot import Interval\n"
        f"fetch(Interval('enwiki', '20211101', '20211201'), Path({str(tmp_path)!r}), [{server.url!r}])\n"
    )
    growing = tmp_path / PART
    for _ in range(3):
        least = 20_000 + (growing.stat().st_size if growing.exists() else 0)
        running = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
        try:
            while running.poll() is None:
                if growing.is_file() and growing.stat().st_size >= least:
                    break
                time.sleep(0.005)
            assert running.poll() is None
        finally:
            running.kill()
            running.wait()
        assert not (tmp_path / BIG).exists()
        with pytest.raises(InputError):
            find_sources(tmp_path, MONTH)
    server._faults.clear()
    fetch_all(tmp_path, server)
    starts = [int(request.headers.get("Range", "bytes=0-")[6:-1]) for request in server.asked(re.escape(BIG))]
    assert starts == sorted(starts)
    assert len(set(starts)) == len(starts) == 4  # each went on from further


def test_ctrl_c_ends_it_at_once_and_a_rerun_completes(server: FileServer, tmp_path: Path) -> None:
    server.fault(r"\.(bz2|gz)$", Fault(status=503, headers={"Retry-After": "600"}), times=10_000)
    arguments = ["fetch", "20211101", "20211201", "--dumps", str(tmp_path), "--mirror", server.url]
    # a shell that starts the tests in its background has them, and all that they start, ignore the signal
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heard}; import sys; from temporalwiki.commands import main; sys.exit(main({arguments!r}))"
    running = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    try:
        assert running.stderr is not None
        waiting = (line for line in running.stderr if "503; next try in 600 s, as it asks" in line)
        assert len(list(itertools.islice(waiting, 3))) == 3
        running.send_signal(signal.SIGINT)
        _, err = running.communicate()
    finally:
        running.kill()
    assert running.returncode == 1
    assert err.endswith("temporalwiki fetch: interrupted; run the same command again to continue\n")
    server._faults.clear()
    fetch_all(tmp_path, server)


@pytest.mark.parametrize("way", ["silent", "a byte at a time"])
def test_ctrl_c_does_not_wait_for_a_server(
    way: str, server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server.fault(re.escape(BIG), Fault(drip_after=0) if way == "a byte at a time" else Fault(delay=3600))
    noted: list[str] = []

    def note(file: Path, *_: object) -> None:
        noted.append(file.name)
        if len(noted) == len(FILES) - 1:  # all but BIG
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("temporalwiki.builders.checksums.note", note)
    with pytest.raises(KeyboardInterrupt):
        fetch(MONTH, tmp_path, [server.url])
    assert Path(BIG).name not in noted
    assert "next try" not in capsys.readouterr().err


@dataclasses.dataclass
class Counted:
    """Instead of a bar."""

    total: int = 0

    def update(self, size: int) -> None:
        self.total += size


STEPS = st.one_of(
    st.builds(Fault, cut=st.integers(0, 70_000), ignore_range=st.booleans(), chunked=st.booleans()),
    st.builds(Fault, status=st.sampled_from([408, 429, 500, 503]), headers=st.just({"Retry-After": "0"})),
    st.builds(Fault, body=st.binary(min_size=1, max_size=50), chunked=st.just(True)),
    st.builds(Fault, range_at=st.integers(0, 69_999)),
)


@pytest.mark.fault(
    "server that misbehaves",
    "fetch: such faults in any order, drawn at random",
    "right bytes or one clear line, and a rerun completes",
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=6), again=st.lists(STEPS, max_size=3))
def test_any_faults_in_any_order(
    steps: list[Fault], again: list[Fault], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Fewer faults than tries: the file comes, or its bytes were wrong twice; and what counted is its size."""
    data = some_bytes("any", 70_000)
    target = tmp_path_factory.mktemp("any") / "file"
    with FileServer({"file": data}) as server, connection.Connection(lambda _: None) as connected:
        for faults in (steps, again):
            for fault in faults:
                server.fault("file", fault)
            counted = Counted()
            target.unlink(missing_ok=True)
            try:
                bar: Progress = counted  # type: ignore[assignment]
                sha1 = hashlib.sha1(data).hexdigest()
                connected.run(download(connected, [f"{server.url}/file"], target, 70_000, sha1, bar))
            except InputError as error:
                assert "gave wrong bytes twice" in str(error)
                assert not target.exists()
            else:
                assert target.read_bytes() == data
                assert counted.total == 70_000
                assert [path.name for path in target.parent.iterdir()] == ["file"]
            server._faults.clear()


def months(*dates: str, status: Mapping[str, Mapping[str, str]] = {}) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for date in dates:
        of_date = {
            f"enwiki/{date}/enwiki-{date}-pages-articles-multistream.xml.bz2": b"a",
            f"enwiki/{date}/enwiki-{date}-page_props.sql.gz": b"b",
        }
        files |= of_date | lists_of(of_date, **status.get(date, {}))
    return files


@pytest.mark.parametrize(
    ("dates", "unfinished", "newest"),
    [
        ("20210801 20211001 20211020 20211101 20211120 20211201 20211220", "", ("20211101", "20211201")),
        ("20211001 20211101 20211201", "articlesmultistreamdump", ("20211001", "20211101")),
        ("20211001 20211101 20211201", "pagepropstable", ("20211001", "20211101")),
        ("20211201 20220101", "", ("20211201", "20220101")),
    ],
)
def test_the_newest_interval(dates: str, unfinished: str, newest: tuple[str, str]) -> None:
    status = {"20211201": {unfinished: "waiting"}} if unfinished else {}
    with FileServer(months(*dates.split(), status=status)) as server:
        assert newest_interval(f"{server.url}/", "enwiki") == newest


def test_what_is_missing_for_an_interval_is_said() -> None:
    failed = {"20211101": {"pagepropstable": "failed"}}
    said = r"consecutive months: 20211101: pagepropstable is failed; 20211201: no such dump"
    with FileServer(months("20211101", "20211201", status=failed)) as server:
        server.fault("20211201/dumpstatus.json", Fault(status=404), times=9)
        with pytest.raises(InputError, match=said):
            newest_interval(server.url, "enwiki")
    with FileServer(months("20211101", "20211120", "20220101")) as server:
        with pytest.raises(InputError, match="two consecutive months; there are 20211101, 20211120, 20220101"):
            newest_interval(server.url, "enwiki")
        with pytest.raises(InputError, match=r"frwiki: .*answers 404"):
            newest_interval(server.url, "frwiki")
