"""The files to copy: valid, asking for no more than they need, with options that the commands they start take."""

import argparse
import importlib
import importlib.util
import json
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import Mock, create_autospec

import huggingface_hub
import pytest
import yaml
from huggingface_hub import JobHardware, Volume

from temporalwiki import __version__
from temporalwiki.commands.cli import parser_of

from documents import typed
from loopback_hub import LoopbackHub

SCHEDULE = Path(__file__).parents[2] / "push_scripts" / "schedule"
CRONTAB = (SCHEDULE / "crontab").read_text("utf-8")
WORKFLOW = yaml.safe_load((SCHEDULE / "github-workflow.yml").read_text("utf-8"))


def options(command: str, words: list[str]) -> argparse.Namespace:
    """The options of a subcommand, as it reads them; a word that it does not know ends the test."""
    return parser_of([command], [command, *words]).parse_args([command, *words])


def after(text: str, program: str) -> list[str]:
    """The words after the path that ends with ``program``, as a shell reads them."""
    words = shlex.split(text.replace("\\\n", " "))
    return words[next(i for i, word in enumerate(words) if word.endswith(program)) + 1 :]


def cron_lines() -> list[str]:
    return [line for line in CRONTAB.splitlines() if re.match(r"[\d*]", line)]


# When


def expressions() -> dict[str, str]:
    (line,) = cron_lines()
    (github,) = WORKFLOW[True]["schedule"]  # YAML reads the key `on` as true
    return {"crontab": " ".join(line.split()[:5]), "workflow": github["cron"], "hub job": hub_job().SCHEDULE}


def hub_job() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hub_job", SCHEDULE / "hub_job.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("where", ["crontab", "workflow", "hub job"])
def test_it_runs_once_a_day_when_a_months_dumps_may_have_come(where: str) -> None:
    daily = re.fullmatch(r"(\d+) \d+ 5-25 \* \*", expressions()[where])
    assert daily and daily[1] not in ("0", "30")  # when everybody's jobs start


# cron


def test_the_crontab_says_whom_to_tell_and_has_no_percent_sign() -> None:
    (line,) = cron_lines()
    assert "%" not in line  # which cron takes for the end of the line
    assert re.search(r"^MAILTO=\S+@\S+$", CRONTAB, re.MULTILINE)
    found = options("monthly", after(line, "monthly.sh"))
    assert (found.wiki, found.repo) == ("enwiki", "ORG/temporalwiki")
    assert not found.dry_run and not found.accept_jump


@pytest.fixture()
def place(tmp_path: Path) -> Path:
    """A folder with monthly.sh, and a command that says its arguments, and fails where the first is --fail."""
    folder = tmp_path / "a folder"
    (folder / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(SCHEDULE / "monthly.sh", folder)
    command = folder / ".venv" / "bin" / "temporalwiki"
    command.write_text(
        '#!/bin/bash\nprintf "<%s>" "$@"; echo " in $PWD"\n'
        'for i in $(seq 30); do echo "line $i" >&2; done\n'
        '[ "$2" != --wait ] || { touch waits; while [ ! -e go ]; do sleep 0.01; done; }\n'
        '[ "$2" != --warn ] || echo "warning: no closing ]"\n'
        '[ "$2" != --stale -o "${@: -1}" != --status ] || { echo "the newest is old"; exit 1; }\n'
        '[ "$2" != --fail ]\n'
    )
    command.chmod(0o755)
    return folder


def sh(place: Path, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([place / "monthly.sh", *words], cwd=cwd, capture_output=True, text=True)


def test_the_script_is_one_that_runs() -> None:
    script = SCHEDULE / "monthly.sh"
    subprocess.run(["bash", "-n", script], check=True)
    assert script.stat().st_mode & stat.S_IXUSR


def test_what_goes_well_is_silent_and_logged(place: Path, tmp_path: Path) -> None:
    done = sh(place, "--wiki", "a b", "--repo", "$(x)", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (log,) = (place / "logs").glob("*.log")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d\.log", log.name)
    lines = log.read_text().splitlines()
    assert lines[0] == f"<monthly><--wiki><a b><--repo><$(x)> in {place}"
    assert lines[-1] == "line 30"


def test_what_fails_is_told_with_the_end_of_its_log(place: Path) -> None:
    done = sh(place, "--fail")
    assert done.returncode == 1
    said = done.stdout.splitlines()
    assert said[0].startswith("temporalwiki monthly failed") and str(place / "logs") in said[0]
    assert said[1:] == [f"line {i}" for i in range(11, 31)]


def test_warnings_of_this_run_are_passed_on_once(place: Path) -> None:
    done = sh(place, "--warn")
    assert (done.returncode, done.stdout) == (0, "warning: no closing ]\n")
    done = sh(place, "--wiki")  # on the same day, with the same log
    assert (done.returncode, done.stdout) == (0, "")


def test_a_dataset_that_needs_attention_is_told_though_the_job_went_well(place: Path) -> None:
    done = sh(place, "--stale")
    said = done.stdout.splitlines()
    assert done.returncode == 1
    assert said[0] == "temporalwiki monthly went well, but the dataset needs attention:"
    assert said[1] == f"<monthly><--stale><--status> in {place}" and said[-1] == "the newest is old"


@pytest.mark.fault(
    "unattended job", "monthly.sh: yesterday's run hangs", "a mail says since when, with its log and --status"
)
def test_a_second_run_leaves_the_first_alone_and_says_so(place: Path) -> None:
    with subprocess.Popen([place / "monthly.sh", "--wait"]) as first:
        try:
            while not (place / "waits").exists():
                assert first.poll() is None
            done = sh(place, "--stale")
            said = done.stdout.splitlines()
            assert (done.returncode, done.stderr) == (1, "")
            assert re.fullmatch(
                r"The run of \d{4}-\d\d-\d\d \d\d:\d\d UTC is still at work, so none was started\. .*", said[0]
            )
            assert said[1:5] == ["line 28", "line 29", "line 30", f"<monthly><--stale><--status> in {place}"]
            assert said[-1] == "the newest is old"
        finally:
            (place / "go").touch()
        assert first.wait() == 0
    assert sh(place, "--fail").returncode == 1  # the lock is gone


def test_a_link_to_the_script_runs_in_its_folder(place: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(place / "monthly.sh")
    assert subprocess.run([tmp_path / "link"]).returncode == 0
    assert list((place / "logs").glob("*.log"))


# GitHub


def steps(job: str) -> list[dict[str, Any]]:
    return list(WORKFLOW["jobs"][job]["steps"])


def commands(text: str) -> Iterator[list[str]]:
    """The commands of a script; of those in a pipe, the first."""
    for line in text.replace("\\\n", " ").replace("|\n", "| ").splitlines():
        if words := shlex.split(line.partition("2>&1")[0].replace("$ACCEPT_JUMP", "--accept-jump")):
            yield words


def in_github(step: dict[str, Any], place: Path) -> subprocess.CompletedProcess[str]:
    """Run a step as GitHub does, with the program of ``place`` as temporalwiki."""
    assert step["shell"] == "bash"
    script = step["run"].replace("/srv/temporalwiki/venv/bin", shlex.quote(str(place / ".venv" / "bin")))
    environment = {"PATH": "/usr/bin:/bin", "GITHUB_STEP_SUMMARY": str(place / "summary")}
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(shell, env=environment, cwd=place, capture_output=True, text=True)


def program(place: Path, text: str) -> None:
    (place / ".venv" / "bin" / "temporalwiki").write_text(f"#!/bin/bash\n{text}\n")


@pytest.mark.parametrize("status", [0, 1])
def test_the_workflow_shows_warnings_and_what_status_finds_wrong(status: int, place: Path) -> None:
    program(place, f'echo "$*"; echo "warning: no closing ]" >&2; exit {status}')
    (step,) = steps("dataset")
    done = in_github(step, place)
    assert done.returncode == status
    assert done.stdout.splitlines()[0].startswith("monthly --wiki enwiki --repo ORG/temporalwiki --jobs 8 ")
    assert done.stdout.splitlines()[1] == "::warning::no closing ]"
    (step,) = steps("status")
    assert in_github(step, place).returncode == status
    said = "monthly --wiki enwiki --repo ORG/temporalwiki --status\nwarning: no closing ]\n"
    assert (place / "summary").read_text() == said
    assert WORKFLOW["jobs"]["status"]["if"] == "${{ !cancelled() }}"  # also after a failure


def may(job: str) -> dict[str, str]:
    return dict(WORKFLOW["jobs"][job].get("permissions", WORKFLOW["permissions"]))


def test_only_jobs_that_publish_can_get_a_token_and_they_fetch_no_code() -> None:
    publishing = ("dataset", "leaderboard")
    for job in WORKFLOW["jobs"]:
        assert may(job) == ({"id-token": "write"} if job in publishing else {"contents": "read"})
        if job in publishing:
            (step,) = steps(job)
            ((program, *_),) = commands(step["run"])
            assert program == "/srv/temporalwiki/venv/bin/temporalwiki" and "uses" not in step


def test_what_a_publishing_job_runs_is_installed_by_hash_in_the_job_before() -> None:
    (run,) = (step["run"] for step in steps("install") if "run" in step)
    (_, *venv), *hashed, (_, _, *ours) = commands(run)
    assert venv == ["-m", "venv", "--clear", "/srv/temporalwiki/venv"]
    files = [word for words in hashed for word in words if word.endswith(".txt")]
    assert files == ["requirements/build.txt", "requirements/eval.txt", "requirements/torch.txt"]
    assert all({"--require-hashes", "--no-deps"} < set(words) for words in hashed)
    assert "--no-build-isolation" in hashed[-1]
    assert {"--no-index", "--no-deps", "--no-build-isolation"} < set(ours) and ours[-1] == "."
    needs = {name: job.get("needs") for name, job in WORKFLOW["jobs"].items()}
    follow = {"dataset": "install", "status": "dataset", "train": "dataset", "leaderboard": "train"}
    assert needs == {"install": None, **follow}


def test_the_workflow_stores_no_token_and_each_action_is_a_commit_that_its_release_names() -> None:
    text = (SCHEDULE / "github-workflow.yml").read_text("utf-8")
    used = re.findall(r"uses: *(.*)", text)
    assert used and all(re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action) for action in used)
    assert "secrets." not in text and "HF_TOKEN" not in text
    for job in WORKFLOW["jobs"].values():
        for step in job["steps"]:
            if "checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False
            assert "${{" not in step.get("run", "")  # what is written there would be run


def test_two_runs_of_the_workflow_never_overlap_and_none_is_cut() -> None:
    assert WORKFLOW["concurrency"]["group"]
    assert WORKFLOW["concurrency"]["cancel-in-progress"] is False
    for job in ("dataset", "train", "leaderboard"):
        assert WORKFLOW["jobs"][job]["timeout-minutes"] >= 24 * 60  # GitHub's own limit is too short for a first month


def test_the_workflow_runs_commands_that_are_there() -> None:
    (run,) = (step["run"] for step in steps("dataset") if "HF_OIDC_RESOURCE" in step.get("env", {}))
    ((program, command, *words),) = commands(run)
    assert (program, command) == ("/srv/temporalwiki/venv/bin/temporalwiki", "monthly")
    found = options("monthly", words)
    assert (found.wiki, found.repo, found.accept_jump) == ("enwiki", "ORG/temporalwiki", True)
    (run,) = (step["run"] for step in steps("leaderboard") if "HF_OIDC_RESOURCE" in step.get("env", {}))
    ((_, command, *words),) = commands(run)
    assert command == "publish" and words[0] == "leaderboard" and words[-1] == "ORG/temporalwiki-leaderboard"
    options("publish", words)


@pytest.mark.parametrize(
    ("job", "resource"),
    [("dataset", "datasets/ORG/temporalwiki"), ("leaderboard", "spaces/ORG/temporalwiki-leaderboard")],
)
def test_the_token_is_asked_for_by_the_name_that_huggingface_hub_reads(
    job: str, resource: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (environment,) = (step["env"] for step in steps(job) if "HF_OIDC_RESOURCE" in step.get("env", {}))
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_OIDC_ID_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("HF_OIDC_RESOURCE", environment["HF_OIDC_RESOURCE"])
    asked = []

    def login(**words: Any) -> Mapping[str, Any]:
        asked.append(words["resource"])
        return {"access_token": "hf_of_the_publisher", "expires_in": 0}

    oidc = importlib.import_module("huggingface_hub._oidc")
    monkeypatch.setattr(oidc, "oidc_login", create_autospec(oidc.oidc_login, side_effect=login))
    assert huggingface_hub.get_token() == "hf_of_the_publisher"
    assert asked == [resource]


def test_steps_that_publish_nothing_have_no_token() -> None:
    assert "env" not in WORKFLOW
    for job in WORKFLOW["jobs"]:
        assert "env" not in WORKFLOW["jobs"][job]
        publishing = [step for step in steps(job) if "HF_OIDC_RESOURCE" in step.get("env", {})]
        assert len(publishing) == ("id-token" in may(job))


# A Job of the Hub

RELEASE = "temporalwiki==0.1.0 --hash=sha256:" + "0123456789abcdef" * 4


@pytest.fixture()
def schedule(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Mock]:
    """Run hub_job.py against a stand-in that takes what create_scheduled_job takes, and return that."""

    def scheduled(*words: str, token: str | None = "hf_secret") -> Mock:
        created = create_autospec(huggingface_hub.create_scheduled_job, return_value=SimpleNamespace(id="42"))
        monkeypatch.setattr(huggingface_hub, "create_scheduled_job", created)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        if token is not None:
            monkeypatch.setenv("HF_TOKEN", token)
        hub_job().main([*words])
        return created

    return scheduled


def test_the_job_is_scheduled_with_what_it_needs(
    schedule: Callable[..., Mock], capsys: pytest.CaptureFixture[str]
) -> None:
    created = schedule("ORG/temporalwiki", "--bucket", "ORG/dumps", "--release", RELEASE)
    created.assert_called_once()
    asked = created.call_args.kwargs
    assert asked["schedule"] == "17 3 5-25 * *"
    assert asked["concurrency"] is False
    assert asked["secrets"] == {"HF_TOKEN": "hf_secret"} and "env" not in asked
    assert asked["namespace"] == "ORG"
    assert asked["flavor"] in {flavor.value for flavor in JobHardware}
    assert re.fullmatch(r"\d+h", asked["timeout"])  # thirty minutes by itself
    (volume,) = asked["volumes"]
    assert isinstance(volume, Volume)
    assert volume.to_dict() == {"type": "bucket", "source": "ORG/dumps", "mountPath": "/bucket"}
    program, flag, text = asked["command"]
    assert (program, flag) == ("bash", "-c")
    subprocess.run(["bash", "-n", "-c", text], check=True)
    *_, monthly, status = text.split(" && ")
    found = options("monthly", after(monthly, "temporalwiki")[1:])
    assert (found.wiki, found.repo, found.dumps) == ("enwiki", "ORG/temporalwiki", "/bucket/dumps")
    found = options("monthly", after(status, "temporalwiki")[1:])
    assert (found.wiki, found.repo, found.status) == ("enwiki", "ORG/temporalwiki", True)
    assert "hf_secret" not in text
    out = capsys.readouterr().out
    assert "42" in out and "hf_secret" not in out


def test_the_job_installs_exact_files_and_its_installer_has_no_token(
    schedule: Callable[..., Mock], tmp_path: Path
) -> None:
    asked = schedule("ORG/temporalwiki", "--bucket", "ORG/dumps", "--release", RELEASE).call_args.kwargs
    assert asked["image"].startswith("python:3.11")  # for which the hashes are
    install = asked["command"][2].partition(" && ")[0]
    (tmp_path / "pip").write_text('#!/bin/bash\nprintf "%s\\n" "$*" "token=$HF_TOKEN"\ncat "${@: -1}"\n')
    (tmp_path / "pip").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HF_TOKEN": "hf_secret"}
    said = subprocess.run(["bash", "-c", install], env=environment, check=True, capture_output=True, text=True).stdout
    words, token, *lines = said.splitlines()
    assert "--require-hashes" in words and "--no-deps" in words and "--only-binary :all:" in words
    assert token == "token="
    assert lines[-1] == RELEASE
    packages = [line for line in lines if not line.startswith("#")]
    assert len(packages) > 20
    for line in packages:
        assert re.fullmatch(r"[\w.-]+==[\w.!]+( --hash=sha256:[0-9a-f]{64})+", line)


INEXACT = ("temporalwiki", "temporalwiki==0.1.0", RELEASE.replace("==", ">="), f"{RELEASE}; x")
REFUSED = [
    *((["--release", one], "hf_secret", "--release: write the exact version and its hash") for one in INEXACT),
    ([], "hf_secret", "--release"),  # what to install must be said
    (["--release", RELEASE], None, "set HF_TOKEN to a fine-grained one"),
]


@pytest.mark.parametrize(("words", "token", "said"), REFUSED)
def test_a_job_that_could_not_run_safely_is_refused(
    words: list[str], token: str | None, said: str, schedule: Callable[..., Mock], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        schedule("ORG/temporalwiki", "--bucket", "ORG/dumps", *words, token=token)
    assert stop.value.code == 2
    assert said in capsys.readouterr().err


def test_names_reach_the_job_as_they_are(schedule: Callable[..., Mock]) -> None:
    created = schedule("ORG/x", "--bucket", "ORG/d", "--wiki", "a; rm -rf $HOME", "--install", "true", "--jobs", "3")
    _, _, text = created.call_args.kwargs["command"]
    words = shlex.split(text)
    assert words[:3] == ["true", "&&", "temporalwiki"]
    assert words[words.index("--wiki") + 1] == "a; rm -rf $HOME"
    assert words[words.index("--jobs") + 1] == "3"


# With the Hub's client, by uv


def test_the_guides_commands_schedule_the_month_and_an_experiment(tmp_path: Path) -> None:
    lines = [one.text for one in typed("docs/publishing.md") if one.text.startswith("hf jobs scheduled uv run")]
    with LoopbackHub() as hub:
        hub.add_user("me", "hf_me", orgs={"ORG": "write"})
        for _, *words in map(shlex.split, lines):
            client, env = [sys.executable, "-m", "huggingface_hub.cli.hf"], hub.environment(tmp_path, token="hf_me")
            subprocess.run([*client, *words], cwd=tmp_path, env=env, check=True)
        month, experiment = hub.jobs
    assert (month["schedule"], experiment["schedule"]) == (hub_job().SCHEDULE, "@monthly")
    for job in (month, experiment):
        assert not job.get("concurrency")  # the Hub starts no second run of it then
        spec = job["jobSpec"]
        assert spec.pop("secrets") == {"HF_TOKEN": "hf_me"} and "hf_me" not in json.dumps(job)
        assert spec["command"][:3] == ["uv", "run", "--with"] and "uv" in spec["dockerImage"]
        assert re.fullmatch(rf"temporalwiki(\[eval\])?=={re.escape(__version__)}", spec["command"][3])
        assert spec["flavor"] in {flavor.value for flavor in JobHardware} and spec["timeoutSeconds"] == 24 * 3600
        assert [volume["mountPath"] for volume in spec["volumes"]] == ["/bucket"]
    command, *words = month["jobSpec"]["command"][4:]
    found = options(words[0], words[1:])
    assert (command, found.repo, found.dumps) == ("temporalwiki", "ORG/temporalwiki", "/bucket/dumps")
    *_, line = experiment["jobSpec"]["command"]
    assert options("experiment", after(line, "temporalwiki")[1:]).recipe == "monthly.yaml"
