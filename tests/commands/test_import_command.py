"""``temporalwiki import``: what it says, where it puts things, and how it ends."""

import json
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
from temporalwiki.commands import main

from a_folder import contents
from faults.rows import SAME_BYTES

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_real_archive(here: Path, shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = shared_data / "twiki_probes_0809"
    assert main(["import", str(source)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{source}/0801-0901_{split}.csv: probes-20210801-20210901 (in short probes-0809), split {split}: {rows} rows"
        for split, rows in (("unchanged", "6,935 of 6,935"), ("changed", "1,776 of 1,776"))
    ]
    assert main(["import", str(source), "--out", "elsewhere"]) == 0
    for name in ("temporalwiki", "elsewhere"):
        [manifest] = read_manifests(here / name)
        assert problems(here / name, manifest) == []
        assert str(here) not in json.dumps(manifest.content) and str(shared_data) not in json.dumps(manifest.content)


def test_with_json_the_output_is_json(here: Path, run: Run) -> None:
    (here / "newLAMA.csv").write_text("unique_id,statement,answer\n0,<extra_id_0>,a\n", "utf-8")
    status, out, err = run("import", "newLAMA.csv", "--json")
    assert status == 0
    [row] = json.loads(out)["rows"]
    assert row["line"].startswith("newLAMA.csv: newlama")
    assert row["line"] in err.splitlines()


@pytest.mark.fault("kill -9", "import: while rows are written", SAME_BYTES)
def test_a_kill_leaves_what_was_there_and_a_rerun_ends_the_same(here: Path) -> None:
    source = here / "recent_news_small.csv"
    source.write_text("original\n" + "earlier\n" * 10, "utf-8")
    assert main(["import", str(source)]) == 0
    before = contents(here / "ckl")
    source.write_text("original\n" + "words and words again\n" * 300_000, "utf-8")
    code = "import sys; from temporalwiki.commands import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "import", str(source)]
    process = subprocess.Popen(command, cwd=here, stderr=subprocess.DEVNULL)
    staged = here / ".ckl.staged"
    while not staged.exists() and process.poll() is None:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert contents(here / "ckl") == before
    assert main(["import", str(source)]) == 0
    assert main(["import", str(source), "--out", "afresh"]) == 0
    assert contents(here / "ckl") == contents(here / "afresh")
    assert sorted(path.name for path in here.iterdir()) == ["afresh", "ckl", source.name]
