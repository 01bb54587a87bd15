"""Tasks on a Ray cluster of two nodes, which these tests start: the same bytes, also if a worker or node dies."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.executors import ray as executor
from temporalwiki.builders.machine import Machine, find_machine
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.stages import run_stage, total
from temporalwiki.builders.world import World, write_world

import engine_tasks
from a_folder import without_manifests
from engine_tasks import (
    break_down_at_three,
    calls,
    die_at_three,
    die_twice_at_three,
    refuse_three,
    wait_for,
    wait_for_the_signal,
    write_square,
)

pytestmark = pytest.mark.slow

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # before it is imported
ray: Any = pytest.importorskip("ray", reason="Ray is not installed: pip install 'temporalwiki[ray]'")
cluster_utils: Any = pytest.importorskip("ray.cluster_utils")

RAY = Machine(2, 2 << 30, "ray")
NODE: dict[str, Any] = {"num_cpus": 1, "memory": 4 << 30, "object_store_memory": 80 << 20, "include_dashboard": False}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    # a short name, for the sockets in it
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="ray-") as place:
        patch.setenv("RAY_TMPDIR", place)
        patch.setenv("PYTHONPATH", str(Path(engine_tasks.__file__).parent), prepend=os.pathsep)  # of the workers
        cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=NODE)
        cluster.add_node(**NODE)
        patch.setenv("RAY_ADDRESS", cluster.address)
        yield cluster
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture(autouse=True)
def _cluster(cluster: Any) -> None:
    """All tests here use it."""


def squares(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("*.txt")}


def test_jobs_and_memory_are_by_default_those_that_the_cluster_has(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_machine("ray") == Machine(2, 8 << 30, "ray")
    assert find_machine("ray", memory=1 << 30) == Machine(1, 1 << 30, "ray")
    small = SimpleNamespace(cluster_resources=lambda: {"CPU": 2.0, "memory": float(3 << 30)})
    monkeypatch.setattr(executor, "_connect", lambda: small)
    assert find_machine("ray") == Machine(2, 3 << 30, "ray")


def test_every_task_runs_once_and_reports_come_in_order(tmp_path: Path) -> None:
    tasks = [5, 4, 3, 2, 1]
    reports = run_stage("square", write_square, tasks, tmp_path / "out", RAY)
    assert calls(tmp_path) == [1, 2, 3, 4, 5]
    assert total(reports, "count") == {"tasks": 5}
    assert all(report["run"]["peak_memory_mb"] > 1 for report in reports)
    run_stage("square", write_square, tasks, tmp_path / "out", RAY)
    run_stage("square", write_square, tasks, tmp_path / "out")  # another engine's work counts
    assert calls(tmp_path) == [1, 2, 3, 4, 5]
    assert list((tmp_path / "out").glob(".*")) == []


def test_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    run_stage("square", die_twice_at_three, [1, 2, 3, 4], tmp_path / "out", RAY)
    assert (tmp_path / "deaths").read_text() == "xx"
    assert calls(tmp_path) == [1, 2, 3, 4]
    assert list((tmp_path / "out").glob(".*")) == []


def test_a_worker_that_is_killed_again_and_again_is_an_error_and_the_rerun_goes_on(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"square: the worker of task 2 was killed 4 times .*--memory") as raised:
        run_stage("square", die_at_three, [1, 2, 3, 4], tmp_path / "out", RAY)
    assert "\n" not in str(raised.value)
    (tmp_path / "mended").touch()
    assert len(run_stage("square", die_at_three, [1, 2, 3, 4], tmp_path / "out", RAY)) == 4
    assert calls(tmp_path) == [1, 2, 3, 4]


def test_what_a_task_raises_comes_out(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        run_stage("square", refuse_three, [1, 2, 3, 4], tmp_path / "out", RAY)
    assert str(raised.value) == "three.xml: page 3 is bad"
    assert type(raised.value) is InputError
    with pytest.raises(KeyError, match="not a mistake of the input"):
        run_stage("square", break_down_at_three, [1, 2, 3, 4], tmp_path / "other", RAY)


def test_a_node_removed_in_the_middle_changes_nothing(tmp_path: Path, cluster: Any) -> None:
    doomed = cluster.add_node(**NODE)
    machine = Machine(3, 3 << 30, "ray")
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(
            lambda: run_stage("square", wait_for_the_signal, [1, 2, 3, 4], tmp_path / "out", machine)
        )
        where = dict(wait_for(lambda: nodes(tmp_path, 3)))
        [lost] = [task for task, node in where.items() if node == doomed.node_id]
        cluster.remove_node(doomed, allow_graceful=False)
        (tmp_path / "go.part").write_text(doomed.node_id)  # its worker may live on for a moment
        (tmp_path / "go.part").rename(tmp_path / "go")
        reports = running.result(60)
    assert total(reports, "count") == {"tasks": 4}
    assert squares(tmp_path / "out") == {"1.txt": "1", "2.txt": "4", "3.txt": "9", "4.txt": "16"}
    assert calls(tmp_path) == [1, 2, 3, 4]
    [_, again] = [node for task, node in nodes(tmp_path, 5) or [] if task == lost]
    assert again != doomed.node_id


def nodes(tmp_path: Path, many: int) -> list[tuple[str, str]] | None:
    """Return (task, node) for each started task when ``many`` have started, and None before."""
    try:
        lines = (tmp_path / "nodes").read_text().splitlines()
    except FileNotFoundError:
        return None
    return [(line.split()[0], line.split()[1]) for line in lines] if len(lines) == many else None


class Elsewhere:
    folder = Path("elsewhere")


def test_after_an_error_of_a_task_there_is_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Exception] = []
    monkeypatch.setattr("ray._private.worker._unhandled_error_handler", told.append)
    with pytest.raises(InputError, match="page 3 is bad"):
        run_stage("square", refuse_three, [3, *range(10, 20)], tmp_path / "out", RAY)
    worker = ray._private.worker.global_worker
    reference = ray.remote(refuse_three).remote(3, tmp_path)  # an error that nobody has asked for
    ray.wait([reference])
    unread = worker.core_worker.get_objects([reference], -1)
    worker.raise_errors(unread, [reference])
    assert told == []
    monkeypatch.delenv("RAY_IGNORE_UNHANDLED_ERRORS")
    worker.raise_errors(unread, [reference])
    assert len(told) == 1


def test_an_address_where_nobody_answers_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", address)
        executor._check_address()
    with pytest.raises(InputError, match=f"^Ray: nobody answers at {address}, which RAY_ADDRESS names .*"):
        executor._check_address()
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text(f"{address}\n")
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    for harmless in ("local", "auto", "ray://127.0.0.1:1"):
        monkeypatch.setenv("RAY_ADDRESS", harmless)
        executor._check_address()
    monkeypatch.delenv("RAY_ADDRESS")
    with pytest.raises(InputError, match=f"at {address}, which {tmp_path}/ray/ray_current_cluster names"):
        executor._check_address()


CLUSTER = f"""
from ray.cluster_utils import Cluster
cluster = Cluster(True, head_node_args={NODE | {"num_cpus": 3}})
print(cluster.address, flush=True)
input()
cluster.shutdown()
"""
JOBS = "from temporalwiki.builders.executors.ray import default_jobs; print(default_jobs())"


def test_a_cluster_that_asks_for_a_token_is_one_line_that_says_what_to_set(tmp_path: Path) -> None:
    token = "1" * 64
    there = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    there["HOME"] = str(tmp_path)
    with tempfile.TemporaryDirectory(prefix="ray-") as place:
        there["RAY_TMPDIR"] = place
        with subprocess.Popen(
            [sys.executable, "-c", CLUSTER],
            env=there | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as cluster:
            assert cluster.stdout is not None
            there["RAY_ADDRESS"] = cluster.stdout.readline().strip()

            def connect(settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
                return subprocess.run(
                    [sys.executable, "-c", JOBS], env=there | settings, capture_output=True, text=True
                )

            with ThreadPoolExecutor() as side_by_side:
                *refused, taken = side_by_side.map(
                    connect,
                    [
                        {},
                        {"RAY_AUTH_MODE": "token"},
                        {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "2" * 64},
                        {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token},
                    ],
                )
            cluster.communicate("\n")
    assert taken.stdout.split()[-1] == "3", taken.stderr
    for ended in refused:
        address = there["RAY_ADDRESS"]
        assert ended.stderr.splitlines()[-1].endswith(
            f"InputError: Ray: cannot connect to {address}: it asks for a token: set RAY_AUTH_MODE=token, and "
            "RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH if the cluster's token is not in ~/.ray/auth_token"
        )


NODES = [  # CPUs and gigabytes of each node, and the error
    ([(1, 1), (8, 0.5)], None),
    ([(0, 64)], "no node of the Ray cluster has a CPU"),
    ([(0.5, 64)], "no node of the Ray cluster has a CPU"),
    ([], "no node of the Ray cluster has a CPU"),
    ([(0, 64), (4, 0.5)], "may take 1024MB .* no node of the Ray cluster with a CPU has more than 512MB"),
]


@pytest.mark.parametrize(("nodes", "said"), NODES)
def test_a_cluster_that_could_never_run_a_task_is_refused(
    nodes: list[tuple[float, float]], said: str | None, tmp_path: Path
) -> None:
    there = [{"Alive": True, "Resources": {"CPU": cpus, "memory": size * (1 << 30)}} for cpus, size in nodes]
    gone = {"Alive": False, "Resources": {"CPU": 64, "memory": 1 << 40}}
    cluster = SimpleNamespace(nodes=lambda: [*there, gone])
    engine = executor.Executor("square", lambda *_: None, 1, Machine(1, 1 << 30, "ray"), tmp_path)
    if said is None:
        engine._check_nodes(cluster)
    else:
        with pytest.raises(UsageError, match=said):
            engine._check_nodes(cluster)


def test_a_node_that_cannot_take_part_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"elsewhere: the node \S+ does not see this folder: .* share"):
        executor._run(Elsewhere(), 0, str(tmp_path / "elsewhere" / ".x.part"), executor._libraries())
    other = executor._libraries() | {"duckdb": "0.0.1"}
    with pytest.raises(InputError, match=r"node \S+ has duckdb .*, this command 0\.0\.1"):
        executor._run(Elsewhere(), 0, str(tmp_path), other)


def test_memory_that_no_node_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"may take 5120MB .* with a CPU has more than 4096MB: give less --memory or more --jobs"
    ):
        run_stage("square", write_square, [1], tmp_path / "out", Machine(2, 10 << 30, "ray"))


SMALL_TASKS = {
    "wikipedia.extract.RANGE": 100_000,
    "wikipedia.sentence_diff.RANGE": 300_000,
    "wikidata.extract.RANGE": 50_000,
    "wikidata.fact_diff.FACTS_A_TASK": 300,
}


def test_a_build_gives_the_same_bytes_as_on_one_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The build on the cluster has many tasks. Only the manifest's "run" differs."""
    write_world(tmp_path / "dumps", World(people=40))
    sources = find_sources(tmp_path / "dumps", Interval("enwiki", "20211101", "20211201"))
    options = BuildOptions(include=("wikipedia",), unchanged_fraction=1.0)
    manifests = []
    for machine in (Machine(), RAY):
        if machine is RAY:
            for constant, value in SMALL_TASKS.items():
                monkeypatch.setattr(f"temporalwiki.builders.{constant}", value)
        out = tmp_path / machine.engine / "temporalwiki"
        manifest = build(sources, out, out.with_name("work"), options, machine).content
        manifests.append({key: value for key, value in manifest.items() if key != "run"})
        tasks = {name: stage["tasks"] for name, stage in manifest["run"]["stages"].items()}
    assert max(tasks.values()) > 3, tasks
    assert manifests[0] == manifests[1]
    found = without_manifests(tmp_path / "local" / "temporalwiki")
    assert sum(path.endswith(".parquet") for path in found) > 5
    assert found == without_manifests(tmp_path / "ray" / "temporalwiki")
