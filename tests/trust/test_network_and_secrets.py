"""Commands contact only the servers that the user names, and never print or write a secret.

The commands run in one process with secrets in its environment. The process and its children exit when they open an
unexpected connection. Packets from native code are counted if the machine can give a process its own network.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("spacy", reason="the demo's text is scored with spaCy, which is not installed")

from temporalwiki.builders import slurm as slurm_commands
from temporalwiki.builders.executors import slurm
from temporalwiki.commands import COMMANDS, main

import a_result
import engine_tasks
import fake_slurm
import tiny_models
import watched
from a_folder import contents
from a_month import add_month, article
from file_server import FileServer, lists_of
from loopback_hub import LoopbackHub

SHORT = ("--batch-size", 2, "--micro-batch-size", 2, "--sequence-length", 32, "--max-steps", 1)
FACTS = ("--no-light-tuning", "--no-answers", "--limit", 3)
MONTH = ("20210801", "20210901", "--dumps", "demo/dumps", "--wikidata", "20210726", "20210830")

# words of a command that has no business with a network -> its status. They use what those before them made.
SILENT: dict[tuple[object, ...], int] = {
    ("import-all",): 0,
    ("small-demo", "demo"): 0,
    ("build", *MONTH, "--out", "built", "--jobs", 2): 0,
    ("build", *MONTH, "--out", "built", "--plan"): 0,
    ("build", "20200101", "20200201", "--dumps", "demo/dumps", "--debug"): 1,
    ("ckl", "updatedlama", "--probes", "demo/temporalwiki"): 0,
    ("ckl", "updatedlama", "--probes", "nowhere"): 1,
    ("import", "newLAMA.csv", "--out", "imported"): 0,
    ("import", "cut/newLAMA.csv", "--out", "imported"): 1,
    ("train", "--method", "lora", "--model", "demo/model", "--data", "built", "--config", "diffset-0809", *SHORT): 0,
    ("train", "--method", "lora", "--model", "./nowhere", "--data", "built", "--config", "diffset-0809", "--debug"): 1,
    ("evaluate", "--model", "demo/model", "--data", "built", "--tasks", "twiki_probes", *FACTS): 0,
    ("evaluate", "--model", "demo/dumps", "--data", "built", "--tasks", "twiki_probes", "--debug"): 1,
    ("experiment", "demo/experiment.yaml"): 0,
    ("experiment", "hostile.yaml"): 2,
    ("leaderboard", "results", "--out", "board"): 0,
    ("leaderboard", "nowhere", "--out", "board"): 1,
    ("inspect", "built"): 0,
    ("inspect", "results"): 0,
    ("inspect", "nowhere"): 1,
    **{(name, "--help"): 0 for name in COMMANDS},
}


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, watched.Done]:
    folder = tmp_path_factory.mktemp("silent")
    (folder / "newLAMA.csv").write_text("unique_id,statement,answer\n0,<extra_id_0> is a town,a\n", "utf-8")
    (folder / "cut").mkdir()
    (folder / "cut" / "newLAMA.csv").write_text('unique_id,statement,answer\n0,"a', "utf-8")
    (folder / "hostile.yaml").write_text("a: !!python/object/apply:os.system ['touch owned']", "utf-8")
    return folder, watched.run(folder, [*SILENT])


@pytest.mark.fault(
    "unrequested connections",
    "build, ckl, import, inspect, leaderboard, demo; train, evaluate, experiment on local files; every --help",
    "no connection is opened, by them or by their child processes",
)
def test_what_has_no_business_with_a_network_does_not_ask_for_one(silent: tuple[Path, watched.Done]) -> None:
    folder, done = silent
    done.check(SILENT.values())
    assert not (folder / "owned").exists()


def test_no_native_code_asks_for_a_network_either(silent: tuple[Path, watched.Done]) -> None:
    _, done = silent
    if done.sent is None:
        pytest.skip("this machine gives no process a network of its own")
    assert done.sent == 0


@pytest.mark.fault(
    "secrets",
    "build, ckl, import, inspect, leaderboard, demo, train, evaluate, experiment in an environment full of secrets",
    "none is printed or written, even if the command fails",
)
def test_no_secret_is_said_or_written(silent: tuple[Path, watched.Done]) -> None:
    folder, done = silent
    assert watched.leaks(folder) == []
    assert watched.MARK not in done.output
    assert len([path for path in folder.rglob("*") if path.is_file()]) > 100  # that there was something to look at


ATTEMPTS = {
    "a name is asked for": "socket.getaddrinfo('huggingface.co', 443)",
    "a connection": "socket.create_connection(('127.0.0.1', 9))",
    "a datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 9))",
    "a process of its own": "__import__('subprocess').run([sys.executable, '-c', 'import socket; "
    'socket.create_connection(("127.0.0.1", 9))\'], check=True)',
    "an error that is hidden": "with contextlib.suppress(BaseException): urllib.request.urlopen('http://192.0.2.1')",
}


@pytest.mark.parametrize("case", ATTEMPTS)
def test_an_attempt_would_be_seen(case: str, tmp_path: Path) -> None:
    env = {"WATCH": str(tmp_path / "log"), "PYTHONPATH": str(watched.HERE / "watch"), "PATH": "/usr/bin:/bin"}
    code = f"import contextlib, socket, sys, urllib.request\n{ATTEMPTS[case]}"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == (1 if "process" in case else 97)
    assert (tmp_path / "log").read_text().startswith("socket.")


# Commands that are asked to speak to a server


FETCHED = {
    path: path.encode()
    for path in (
        "simplewiki/20211101/simplewiki-20211101-pages-articles-multistream.xml.bz2",
        "simplewiki/20211201/simplewiki-20211201-pages-articles-multistream.xml.bz2",
        "wikidatawiki/entities/20211101/wikidata-20211101-all.json.gz",
        "wikidatawiki/entities/20211129/wikidata-20211129-all.json.gz",
    )
}
MONTHLY = ("--wiki", "simplewiki", "--repo", "ORG/monthly", "--out", "month", "--dry-run")
TRAINED = ("--method", "diff", "--model", "ORG/gpt2", "--data", "ORG/data", "--config", "diffset-1112")


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, watched.Done, LoopbackHub, FileServer]]:
    folder = tmp_path_factory.mktemp("asked")
    add_month(folder / "temporalwiki", "20211101", "20211201", [article(i, text="Text. " * 50) for i in range(4)])
    shutil.copytree(Path(main.__code__.co_filename).parents[1] / "eval_harness/metrics/fuar", folder / "fuar")
    a_result.write_probes(folder / "other", "probes-1112", {"changed": a_result.facts(1.0), "unchanged": []})
    with LoopbackHub() as hub, FileServer(FETCHED | lists_of(FETCHED)) as server:
        hub.add_user("me", watched.SECRETS["HF_TOKEN"], orgs={"ORG": "write"})
        hub.commit("model", "ORG/gpt2", contents(tiny_models.save("gpt2", folder / "tiny")))
        hub.fault("*", "ORG/refused", times=99, status=403)
        hub.fault("*", "ORG/broken", times=99, status=400)
        mirror, secret = server.url, server.url.replace("://", f"://me:{watched.MARK}@")
        commands: dict[tuple[object, ...], int] = {
            ("fetch", "20211101", "20211201", "--wiki", "simplewiki", "--dumps", "dumps", "--mirror", mirror): 0,
            ("fetch", "20211001", "20211101", "--wiki", "simplewiki", "--dumps", "dumps", "--mirror", mirror): 1,
            ("fetch", "20211101", "20211201", "--dumps", "dumps", "--mirror", secret): 2,
            ("fetch", "20211101", "20211201", "--dumps", "dumps", "--mirror", f"{mirror}/?key={watched.MARK}"): 2,
            ("monthly", *MONTHLY, "--mirror", mirror): 0,
            ("publish", "dataset", "temporalwiki", "ORG/data", "--dry-run"): 0,
            ("publish", "dataset", "temporalwiki", "ORG/data"): 0,
            ("publish", "dataset", "temporalwiki", "ORG/refused", "--debug"): 1,
            ("publish", "dataset", "temporalwiki", "ORG/broken"): 1,
            ("train", *TRAINED, *SHORT, "--output", "run"): 0,
            ("train", "--method", "diff", "--model", "ORG/none", "--data", "ORG/data", "--config", "diffset-1112"): 1,
            ("evaluate", "--model", "run", "--data", "ORG/data", "--tasks", "twiki_probes", *FACTS): 0,
            ("publish", "model", "run", "ORG/trained", "--results", "results"): 0,
            ("publish", "metric", "fuar", "ORG/fuar"): 0,
            ("leaderboard", "results", "--out", "board"): 0,
            ("publish", "leaderboard", "board", "ORG/board"): 0,
        }
        addresses = [url.removeprefix("http://") for url in (hub.endpoint, hub.cdn, server.url)]
        no_proxy = {"NO_PROXY": "127.0.0.1", "HTTPS_PROXY": "", "ALL_PROXY": ""}
        more = {"HF_ENDPOINT": hub.endpoint, "HF_HUB_DISABLE_XET": "1", **no_proxy}
        done = watched.run(folder, [*commands], addresses, more)
        done.check(commands.values())
        yield folder, done, hub, server


@pytest.mark.fault(
    "unrequested connections",
    "fetch, monthly, publish; train and evaluate on repositories of the Hub",
    "only the named servers are contacted",
)
def test_only_the_servers_that_were_named_are_asked(asked: tuple[Path, watched.Done, LoopbackHub, FileServer]) -> None:
    _, _, hub, server = asked
    assert len(hub.requests) > 50 and len(server.requests) > 5


@pytest.mark.fault("secrets", "the token of the Hub, in all requests of commands", "only the Hub receives it")
def test_the_token_goes_to_the_hub_alone(asked: tuple[Path, watched.Done, LoopbackHub, FileServer]) -> None:
    _, _, hub, server = asked
    for request in server.requests:
        assert watched.MARK not in str(request.headers) + request.path
    for asked_of_hub in hub.requests:
        others = {name: value for name, value in asked_of_hub.headers.items() if name.lower() != "authorization"}
        assert watched.MARK not in json.dumps(others) + asked_of_hub.path


@pytest.mark.fault(
    "secrets",
    "fetch, monthly, publish, train, evaluate in an environment full of secrets, with a Hub that refuses some",
    "none is printed, written or published",
)
def test_no_secret_is_said_written_or_published(asked: tuple[Path, watched.Done, LoopbackHub, FileServer]) -> None:
    folder, done, hub, _ = asked
    assert [words for words, _, said in done.commands if watched.MARK in said] == []
    (folder / "done.jsonl").unlink()  # with the words, a mirror's password in them
    assert watched.leaks(folder) == []
    for kind, repo in (("dataset", "data"), ("model", "trained"), ("space", "fuar"), ("space", "board")):
        files = hub.repo(kind, f"ORG/{repo}").files()  # type: ignore[arg-type]
        assert len(files) > 2
        assert [name for name, content in files.items() if watched.MARK.encode() in content] == []


def test_an_endpoint_with_a_password_is_refused_and_not_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"https://me:{watched.MARK}@hub.example")
    assert main(["publish", "dataset", "nowhere", "ORG/data"]) == 2
    said = capsys.readouterr()
    assert watched.MARK not in said.out + said.err
    assert "HF_ENDPOINT" in said.err and "HF_TOKEN" in said.err


def test_what_slurm_is_given_has_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_slurm.install(tmp_path / "slurm")
    monkeypatch.setenv("PATH", str(tmp_path / "slurm" / "bin"), prepend=":")
    monkeypatch.setenv("PYTHONPATH", str(watched.HERE), prepend=":")
    for name, value in watched.SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(slurm, "POLL", 0.05)
    from temporalwiki.builders.machine import Machine
    from temporalwiki.builders.stages import run_stage

    machine = Machine(1, 1 << 30, "slurm")
    kept: dict[str, bytes] = {}
    submit = slurm_commands.submit

    def noting(script: str, *arguments: str) -> tuple[str, str]:
        kept.update(contents(tmp_path / "out"))
        kept["script"] = f"{script} {arguments}".encode()
        return submit(script, *arguments)

    monkeypatch.setattr(slurm_commands, "submit", noting)
    run_stage("square", engine_tasks.write_square, [2], tmp_path / "out", machine)
    assert b"#SBATCH" in kept["script"] and any(name.endswith(".pickle") for name in kept)
    assert [name for name, content in kept.items() if watched.MARK.encode() in content] == []
    assert watched.leaks(tmp_path) == []
