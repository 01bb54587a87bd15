"""The monthly job on a git repository, as cron runs it: the clone gains commits, and the Hub gains months."""

import functools
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from temporalwiki import load_dataset
from temporalwiki.builders.build import BuildOptions
from temporalwiki.commands import main
from temporalwiki.push_scripts import monthly

from a_folder import contents
from a_software import three_months
from documents import ROOT
from loopback_hub import LoopbackHub

pytestmark = pytest.mark.slow

REPO = "ORG/software"
Run = Callable[..., tuple[int, str]]


@pytest.fixture()
def run(hub: LoopbackHub, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the job at a commit of the clone; its exit status, and all that it says."""
    monkeypatch.setattr(monthly, "BuildOptions", functools.partial(BuildOptions, unchanged_fraction=1.0, caps=None))
    three_months(tmp_path / "clone")
    git = ["git", "-C", str(tmp_path / "clone")]
    subprocess.run([*git, "tag", "newest"], check=True)

    def run(
        commit: str, *words: str, converter: Path = ROOT / "examples" / "software" / "convert.py"
    ) -> tuple[int, str]:
        subprocess.run([*git, "update-ref", "refs/heads/main", commit], check=True)
        where = [
            "--clone",
            str(tmp_path / "clone"),
            "--dumps",
            str(tmp_path / "dumps"),
            "--out",
            str(tmp_path / "data"),
        ]
        status = main(["monthly", "--repo", REPO, "--jobs", "1", "--converter", str(converter), *where, *words])
        said = capsys.readouterr()
        return status, said.out + said.err

    return run


def test_a_month_is_made_when_the_clone_has_a_later_commit(run: Run, hub: LoopbackHub, tmp_path: Path) -> None:
    status, said = run("newest~1", "--dry-run")
    assert status == 0 and "20260601-20260701: would get from" in said and not (tmp_path / "dumps").exists()
    assert run("newest~1")[0] == 0
    dumps = contents(tmp_path / "dumps")
    assert run("newest~1")[0] == 0  # nothing to do
    assert run("newest")[0] == 0
    files = hub.repo("dataset", REPO).files()
    assert sorted(hub.repo("dataset", REPO).tags) == ["2026.07", "2026.08"]
    assert run("newest")[0] == 0
    assert hub.repo("dataset", REPO).files() == files
    now = contents(tmp_path / "dumps")
    assert {path for path in dumps if now[path] != dumps[path]} == set(), "the earlier dumps keep their bytes"
    for config, version in (("probes-0607", "1.5.6"), ("probes-0708", "1.5.7")):
        facts = load_dataset(str(tmp_path / "data"), config, split="changed")
        assert version in {fact["object"] for fact in facts if fact["subject"] == "Oolware"}


def test_what_fails_is_one_line_and_publishes_nothing(run: Run, hub: LoopbackHub, tmp_path: Path) -> None:
    status, said = run("newest~2")
    assert status == 1 and "its first commit is of 2026-05-30; name a later date than 20260501" in said
    script = tmp_path / "broken.py"
    script.write_text("raise SystemExit('no \\x1b paper')")
    status, said = run("newest", converter=script)
    assert status == 1 and "broken.py: no" in said and "\x1b" not in said and "Traceback" not in said
    with pytest.raises(KeyError):
        hub.repo("dataset", REPO)
