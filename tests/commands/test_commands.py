"""The command line: exit status, one clear line, help with an example."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from temporalwiki.builders.manifests import read_manifests
from temporalwiki.builders.world import World, write_world
from temporalwiki.commands import COMMANDS, main

from tiny_dumps import articles_file, item, multistream, page, write_wikidata

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dumps = tmp_path_factory.mktemp("dumps")
    write_world(dumps, World(people=30))
    return dumps


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str, run: Run) -> None:
    status, out, _ = run(name, "--help")
    assert status == 0
    assert f"example:\n  temporalwiki {name}" in out


WRONG_NAMES = [
    "train --method dif --model m --data d --config diffset-1112",
    "evaluate --model m --data d --tasks twiki_probse",
    "experiment ckl-gpt2-larg",
    "leaderboard nowhere --out leaderboard",
    "publish dataset temporalwiki temporalwiki --dry-run",
]


def test_a_wrong_name_is_said_before_torch_is_imported(tmp_path: Path) -> None:
    """It takes seconds."""
    words = [line.split() for line in WRONG_NAMES]
    code = f"""import sys
from temporalwiki.commands import main
(status,) = {{main(words) > 0 for words in {words}}}
sys.exit(not status or "torch" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stderr.splitlines()) == len(WRONG_NAMES)


def test_bars_of_libraries_stay_out_of_a_log() -> None:
    code = """from temporalwiki.commands import main
main(["inspect", "nowhere"])
from tqdm.auto import tqdm
print(sum(tqdm(range(3))))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "3\n"
    assert ran.stderr == "temporalwiki inspect: nowhere: no such file or folder\n"


def test_with_debug_the_traceback_comes(run: Run) -> None:
    with pytest.raises(ValueError, match="no such file"):
        main(["inspect", "nowhere", "--debug"])


def test_build_then_inspect(dumps: Path, tmp_path: Path, run: Run) -> None:
    out = tmp_path / "temporalwiki"
    arguments = ("build", "20211101", "20211201", "--dumps", dumps, "--out", out, "--include", "wikipedia,deletions")
    status, text, _ = run(*arguments, "--unchanged-fraction", "1", "--memory", "2GB", "--seed", "3")
    assert status == 0
    assert "diffset-20211101-20211201" in text
    assert "wikipedia-20211201" in text
    [manifest] = read_manifests(out)
    assert manifest.content["options"]["include"] == ["deletions", "wikipedia"]
    assert manifest.content["options"]["seed"] == 3
    status, text, _ = run("inspect", out)
    assert status == 0
    assert "all files are as the manifests say" in text
    [file] = (out / "data" / "wikipedia-20211201").iterdir()
    file.write_bytes(b"")
    status, _, err = run("inspect", out)
    assert status == 1
    assert "not the file that the manifest describes" in err
    file.unlink()
    (out / "README.md").unlink()
    status, _, err = run("inspect", out)
    assert status == 1
    assert "README.md: missing" in err
    assert f"{file.name}: missing" in err


@pytest.mark.parametrize(
    "dates", [("20211101", "20211201"), ("2021-11-01", "2021-12-01", "--wikidata", "2021-11-01", "2021-11-29")]
)
def test_a_plan_writes_nothing(dates: tuple[str, ...], dumps: Path, tmp_path: Path, run: Run) -> None:
    out = tmp_path / "out"
    status, text, _ = run("build", *dates, "--dumps", dumps, "--out", out, "--plan")
    assert status == 0
    assert "wikidata-extract" in text
    assert list(tmp_path.iterdir()) == []


def test_a_plan_starts_no_cluster_and_a_build_none_without_dumps(
    dumps: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # it would end there
    words = ("build", "20211101", "20211201", "--out", tmp_path / "out", "--engine", "ray", "--dumps")
    assert run(*words, dumps, "--plan")[0] == 0
    status, _, err = run(*words, tmp_path / "nowhere")
    assert status == 1
    assert "nowhere" in err


def test_dumps_are_inspected(tmp_path: Path, run: Run) -> None:
    pages = [page(1, "A", "x"), page(2, "B", "#REDIRECT [[A]]", redirect=True), page(3, "Talk:A", "x", ns=1)]
    whole = multistream(articles_file(tmp_path, "20211101"), pages)
    _, text, _ = run("inspect", whole)
    assert "MediaWiki export 0.11 of enwiki, complete" in text
    counts = [line.rsplit(maxsplit=1) for line in text.splitlines()[3:]]
    assert counts == [["pages", "3"], ["articles", "1"], ["other namespaces", "1"], ["redirects", "1"]]
    whole.write_bytes(whole.read_bytes()[:-40])
    assert "CUT OFF" in run("inspect", whole)[1]
    entities = write_wikidata(tmp_path / "w.json.gz", [item(1), {"type": "lexeme", "id": "L1"}])
    _, text, _ = run("inspect", entities)
    assert "Wikidata JSON, complete" in text
    assert "dropped: lexeme" in text
    (tmp_path / "notes.xml").write_text("hello")
    status, _, err = run("inspect", tmp_path / "notes.xml")
    assert status == 1
    assert "neither" in err


def test_a_reader_that_stops_early_ends_the_command_quietly() -> None:
    """As `temporalwiki list tasks | head -1` does: 141 is how a shell reports SIGPIPE."""
    end, pipe = os.pipe()
    os.close(end)
    words = [sys.executable, "-m", "temporalwiki", "list", "tasks"]
    done = subprocess.run(words, stdout=pipe, stderr=subprocess.PIPE, text=True)
    os.close(pipe)
    assert (done.returncode, done.stderr) == (141, "")
