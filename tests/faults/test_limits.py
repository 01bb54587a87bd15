"""What the system refuses, and too little memory: one line says what, and no incomplete file has a final name."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.base.files import whole_file
from temporalwiki.builders import sql
from temporalwiki.builders.dataset_folder import problems
from temporalwiki.builders.manifests import read_manifests
from temporalwiki.builders.parquet import read_rows
from temporalwiki.commands import main

import tiny_dumps
from faults.commands import Bench
from faults.one_line import error_of
from faults.struck import at_work

pytestmark = pytest.mark.slow

DATES = ("20211101", "20211201")
DIFFSET = "diffset-20211101-20211201"
LIMITED = """
import resource, sys
from pathlib import Path
import temporalwiki.builders.build, temporalwiki.api.build, temporalwiki.model_cards.dataset
from temporalwiki.commands import main
limit = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + (int(sys.argv[1]) << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
sys.exit(main(sys.argv[2:]))
"""


def build_limited(folder: Path, megabytes: int, texts: Callable[[str], dict[int, str]]) -> Any:
    """Build from pages, whose texts depend on the date, in a process with so much memory beside its libraries."""
    for date in DATES:
        pages = [
            tiny_dumps.page(i, f"Page {i}", text, revision_id=10 * i + DATES.index(date))
            for i, text in texts(date).items()
        ]
        tiny_dumps.multistream(tiny_dumps.articles_file(folder / "dumps", date), pages)
        # another label on the second date: a build refuses two equal dumps, and these may be of the same second
        entities = [tiny_dumps.item(i, {}, f"Page {i} {date}", f"Page {i}") for i in (1, 2)]
        tiny_dumps.write_wikidata(tiny_dumps.wikidata_file(folder / "dumps", date), entities)
    words = ["build", *DATES, "--dumps", str(folder / "dumps"), "--out", str(folder / "out"), "--jobs", "1"]
    return subprocess.run(
        [sys.executable, "-c", LIMITED, str(megabytes), *words],
        env=os.environ | {"OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.fault("limit of the system", "build: under ulimit -v", "one line says that memory is short")
def test_too_little_address_space(tmp_path: Path) -> None:
    # DuckDB needs more; with 70 MB or less, pyarrow may crash: a segmentation fault in its write_table
    ended = build_limited(tmp_path, 120, lambda date: {1: f"Easton is a town. {date}\n\nIt is old."})
    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("temporalwiki build: ")
    assert "(ulimit -v)" in ended.stderr
    assert not (tmp_path / "out").exists()


def test_duckdb_gets_no_more_than_half_of_the_address_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "_address_space", lambda: 2 << 30)
    with sql.database(tmp_path, 8 << 30) as db:
        assert db.execute("SELECT current_setting('memory_limit')").fetchone() == ("976.5 MiB",)  # 1,024 MB
    monkeypatch.setattr(sql, "_address_space", lambda: (1 << 30) - 1)
    with pytest.raises(InputError, match=r"only 1023 MB more \(ulimit -v\)"), sql.database(tmp_path, 8 << 30):
        raise AssertionError("it would crash")


# what libraries raise when memory is short
SHORT = {
    "Python": MemoryError(),
    "Arrow": pa.ArrowMemoryError("malloc of size 64 failed"),
    "an import": ImportError("/lib/_duckdb.so: failed to map segment from shared object"),
    "a thread": RuntimeError("can't start new thread"),
    "torch": RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes"),
}


@pytest.mark.parametrize("who", SHORT)
def test_memory_that_is_short_is_no_bug(
    who: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("temporalwiki.api.inspect.describe", raising(SHORT[who]))
    assert "out of memory (" in error_of(capsys, "inspect", "x")


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    for bug in (RuntimeError("a bug"), ValueError("a bug"), UnicodeEncodeError("ascii", "ä", 0, 1, "not in range")):
        monkeypatch.setattr("temporalwiki.api.inspect.describe", raising(bug))
        with pytest.raises(type(bug)):
            main(["inspect", "x"])


def raising(error: Exception) -> Callable[[Any], None]:
    def run(_arguments: Any) -> None:
        raise error

    return run


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.fault(
    "limit of the system", "a file grows larger than ulimit -f", "one line names it; it does not get its name"
)
def test_a_file_that_may_not_grow_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file"
    said = rf"^{path}: larger .*\(ulimit -f\)"
    with largest_file(1000), pytest.raises(InputError, match=said), whole_file(path) as part:
        part.write_bytes(bytes(1001))
    assert list(tmp_path.iterdir()) == []


NOT_UTF8 = "caf\udce9"  # as Python shows a name in Latin-1
LOOP = "loop"
ODD = {
    "the folder of dumps": ("build", *DATES, "--dumps", NOT_UTF8),
    "a result of build": ("build", *DATES, "--dumps", ".", "--out", NOT_UTF8),
    "the folder of a build's work": ("build", *DATES, "--dumps", ".", "--work", NOT_UTF8),
    "what is inspected": ("inspect", NOT_UTF8),
    "a folder of results": ("leaderboard", NOT_UTF8, "--out", "l"),
    "a loop of links: --out": ("build", *DATES, "--dumps", ".", "--out", LOOP),
    "a loop of links: --work": ("build", *DATES, "--dumps", ".", "--work", LOOP),
    "a loop of links: --dumps": ("build", *DATES, "--dumps", LOOP),
    "a loop of links: fetch": ("fetch", *DATES, "--dumps", f"{LOOP}/dumps", "--mirror", "http://127.0.0.1:9"),
    "a loop of links: import": ("import", LOOP, "--out", "o"),
    "a loop of links: inspect": ("inspect", LOOP),
}


@pytest.mark.fault(
    "odd paths and streams", "a path is not UTF-8, or a loop of links", "one line names it; nothing is written"
)
@pytest.mark.parametrize("case", ODD)
def test_odd_paths(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(LOOP).symlink_to("other")
    Path("other").symlink_to(LOOP)
    line = error_of(capsys, *ODD[case])
    assert ("caf\\udce9: a name that is not UTF-8; rename" if NOT_UTF8 in ODD[case] else LOOP) in line
    assert sorted(path.name for path in tmp_path.iterdir()) == [LOOP, "other"]


def test_a_working_folder_whose_name_is_not_utf8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / NOT_UTF8).mkdir()
    monkeypatch.chdir(tmp_path / NOT_UTF8)
    assert "a name that is not UTF-8" in error_of(capsys, "inspect", "x")


CLOSED = {
    "stderr": ("2>&-", "temporalwiki inspect: nowhere: no such file or folder\n", ""),
    "stdout": (">&-", "", "temporalwiki inspect: nowhere: no such file or folder\n"),
    "all": ("<&- >&- 2>&-", "", ""),
}


@pytest.mark.fault(
    "odd paths and streams",
    "standard output or error is closed",
    "the command works; if only standard error is closed, its last line is on standard output",
)
@pytest.mark.parametrize("closed", CLOSED)
def test_closed_streams(closed: str) -> None:
    how, out, err = CLOSED[closed]
    ended = subprocess.run(
        ["sh", "-c", f'exec "$0" -m temporalwiki inspect nowhere {how}', sys.executable],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, out, err)


def test_no_file_takes_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    """A library prints to descriptor 2, and so do other processes of the command."""
    code = (
        "import os, subprocess, sys\n"
        "from temporalwiki.base.terminal import open_closed_streams\n"
        "open_closed_streams()\n"
        f"with open({str(tmp_path / 'file')!r}, 'wb') as file:\n"
        "    os.write(2, b'noise')\n"
        "    subprocess.run([sys.executable, '-c', 'import os; os.write(2, b\"noise\")'], check=True)\n"
        "print('done')"
    )
    ended = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" <&- 2>&-', sys.executable, code], capture_output=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, b"done\n")
    assert (tmp_path / "file").read_bytes() == b""


# Memory


@pytest.mark.fault(
    "too little memory",
    "build: the system kills a worker because memory is short",
    "one line names the stage and suggests fewer --jobs; a rerun ends with the same bytes",
)
def test_a_worker_that_is_killed(bench: Bench) -> None:
    folder = bench.folder / "worker killed"
    name = "build in two processes"
    bench.prepare(name, folder)
    running = bench.start(name, folder)
    killed, pool = 0, set[int]()
    while at_work(running):
        # one worker of each pool, because a pool that has finished its tasks misses nobody
        if (workers := _workers_of(running)) and pool.isdisjoint(workers):
            pool = set(workers)
            with contextlib.suppress(ProcessLookupError):
                os.kill(workers[0], signal.SIGKILL)
                killed += 1
        time.sleep(0.005)
    assert killed
    ended = bench.struck.end(running)
    last = ended.err.splitlines()[-1]
    assert ended.status == 1
    assert last.startswith("temporalwiki build: ")
    assert "a worker process was killed (out of memory?); run the same command again" in last
    assert "fewer --jobs" in last
    assert not (folder / "temporalwiki").exists()
    bench.check_same("build", folder, "with fewer jobs")


def _workers_of(command: int) -> list[int]:
    """Return the workers of a command: children of its fork server."""
    return [worker for server in _children(command) for worker in _children(server)]


def _children(process: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


@pytest.mark.fault(
    "too little memory", "build: --memory below what one job needs", "refused in one line, with the smallest value"
)
@pytest.mark.parametrize("memory", ["1MB", "767MB", "0GB"])
def test_too_small_a_limit_is_refused(memory: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["build", *DATES, "--dumps", str(tmp_path), "--memory", memory, "--out", str(tmp_path / "out")])
    said = capsys.readouterr().err.splitlines()[-1]
    assert status == 2
    assert "at least 768MB for each job" in said
    assert list(tmp_path.iterdir()) == []


PARAGRAPH = "Easton is a town in Norland, where {} people live. It was founded in {}.\n\n"
HUGE: dict[str, str] = {
    "prose": "".join(PARAGRAPH.format(i, i % 1000) for i in range(29_000)),
    "one line": "Easton is a town in Norland. " * 75_000,
    "one word": "a" * (2 << 20),
    "a table": "{|\n" + "".join(f"|-\n| {i} || [[Town {i}]] || {{{{flag|{i}}}}}\n" for i in range(55_000)) + "|}\n",
    "references": "".join(f"Easton has {i} towns.<ref>{{{{cite web|url=http://{i}}}}}</ref>\n" for i in range(40_000)),
    "no white space but breaks": "x\u2028" * (1 << 19),
}


@pytest.mark.fault(
    "large page",
    "build: pages of 2 MB, in a process limited to 1.3 GB",
    "each is read or dropped by reason, and the counts add up",
)
def test_the_largest_pages_within_a_limit(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    """A process holds several forms of a page at once."""
    more = dict(zip(DATES, ("", "It is there."), strict=True))
    numbered = list(enumerate(HUGE.values(), 1))
    done = build_limited(tmp_path, 1300, lambda date: {i: f"{text}\n\nLast. {more[date]}" for i, text in numbered})
    assert done.returncode == 0, done.stderr
    [manifest] = read_manifests(tmp_path / "out")
    assert problems(tmp_path / "out", manifest) == []
    counts = manifest.content["counts"]["pages"]
    assert (counts["read"], counts["new"], counts["unchanged"]) == (len(HUGE), 0, 0)
    assert counts["updated"] + sum(counts["dropped"].values()) == len(HUGE)
    files = [
        tmp_path / "out" / file["path"] for file in manifest.content["configs"][DIFFSET]["splits"]["train"]["files"]
    ]
    texts = [row["text"] for row in read_rows(files)]
    assert len(texts) == counts["updated"]
    assert {text[-len("It is there.") :] for text in texts} == {"It is there."}
    record_property("cases", len(HUGE))
