"""Too little memory: killed workers, limits that are too small, and the largest pages within a limit."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from temporalwiki.builders.dataset_folder import problems
from temporalwiki.builders.manifests import read_manifests
from temporalwiki.builders.parquet import read_rows
from temporalwiki.commands import main

import tiny_dumps
from faults.commands import Bench

pytestmark = pytest.mark.slow

DATES = ("20211101", "20211201")
DIFFSET = "diffset-20211101-20211201"
MB = 1 << 20


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
    end = time.monotonic() + 120
    while _at_work(running) and time.monotonic() < end:
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


def _at_work(command: int) -> bool:
    """Return whether a command runs; one that has ended stays as a zombie until its parent asks."""
    return Path(f"/proc/{command}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


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


# The memory of a process in addition to Python and its libraries. It holds several forms of a page at once.
ROOM = 1200 * MB
LIMITED = """
import resource, sys
from pathlib import Path
import temporalwiki.builders.build, temporalwiki.api.build, temporalwiki.model_cards.dataset
from temporalwiki.commands import main
from temporalwiki.builders.manifests import read_manifests
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
sys.exit(main(sys.argv[2:]))
"""
PARAGRAPH = "Easton is a town in Norland, where {} people live. It was founded in {}.\n\n"
HUGE: dict[str, str] = {
    "prose": "".join(PARAGRAPH.format(i, i % 1000) for i in range(29_000)),
    "one line": "Easton is a town in Norland. " * 75_000,
    "one word": "a" * (2 * MB),
    "a table": "{|\n" + "".join(f"|-\n| {i} || [[Town {i}]] || {{{{flag|{i}}}}}\n" for i in range(55_000)) + "|}\n",
    "references": "".join(f"Easton has {i} towns.<ref>{{{{cite web|url=http://{i}}}}}</ref>\n" for i in range(40_000)),
    "no white space but breaks": "x\u2028" * (MB // 2),
}


@pytest.mark.fault(
    "large page",
    "build: pages of 2 MB, in a process limited to 1.2 GB",
    "each is read or dropped by reason, and the counts add up",
)
def test_the_largest_pages_within_a_limit(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    dumps = tmp_path / "dumps"
    for date, more in zip(DATES, ("", "It is there."), strict=True):
        pages = [
            tiny_dumps.page(i, f"Page {i}", f"{text}\n\nLast. {more}", revision_id=10 * i + len(more))
            for i, text in enumerate(HUGE.values(), 1)
        ]
        tiny_dumps.multistream(tiny_dumps.articles_file(dumps, date), pages)
        # another label on the second date: a build refuses two equal dumps, and these may be of the same second
        entities = [tiny_dumps.item(i, {}, f"Page {i} {more}", f"Page {i}") for i in (1, 2)]
        tiny_dumps.write_wikidata(tiny_dumps.wikidata_file(dumps, date), entities)
    words = ["build", *DATES, "--dumps", str(dumps), "--out", str(tmp_path / "out"), "--jobs", "1"]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(ROOM), *words],
        env=os.environ | {"OMP_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
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
