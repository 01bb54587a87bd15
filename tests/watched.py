"""Commands in one process that may open no connection but those asked for, and whose environment holds secrets."""

import contextlib
import importlib
import io
import json
import os
import pkgutil
import shutil
import subprocess
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path

HERE = Path(__file__).resolve().parent
SECRETS = {
    "HF_TOKEN": "hf_zQsEcReTqZofTheHub",
    "HUGGING_FACE_HUB_TOKEN": "hf_zQsEcReTqZofTheOldName",
    "WANDB_API_KEY": "zQsEcReTqZofWandb0123456789012345678901234567",
    "AWS_ACCESS_KEY_ID": "AKIAzQsEcReTqZofAWS",
    "AWS_SECRET_ACCESS_KEY": "zQsEcReTqZkeyofAWS",
    "OPENAI_API_KEY": "sk-zQsEcReTqZofOpenAI",
    "HTTPS_PROXY": "http://me:zQsEcReTqZofTheProxy@127.0.0.1:9",
    "ALL_PROXY": "http://me:zQsEcReTqZofTheProxy@127.0.0.1:9",
}
MARK = "zQsEcReTqZ"  # part of each secret; compared without case
_OURS = ("HF_", "HUGGING", "TRANSFORMERS_", "DATASETS_", "EVALUATE_", "XDG_", "PYTEST_", "COV_", "WANDB_", "AWS_")


@dataclass(frozen=True)
class Done:
    """What commands came to: (words, exit status, output) each, and which connections were asked for, if any."""

    commands: list[tuple[list[str], int, str]]
    output: str  # of the process itself, which should be none
    attempts: str
    sent: int | None  # packets for outside that anything in the process made, native code too; None: not counted

    def check(self, statuses: Iterable[int]) -> None:
        """Raise AssertionError where a connection was asked for, or a command did not end as it should have."""
        assert self.attempts == "", (self.commands[-1:], self.output)
        ended = list(zip_longest(self.commands, statuses))
        wrong = [(one, wanted) for one, wanted in ended if one is None or one[1] != wanted]
        assert wrong == [], self.output


@cache
def alone() -> tuple[str, ...]:
    """The words before a command that take its network away; none where the machine does not allow that."""
    words = ("unshare", "--user", "--map-root-user", "--net")
    may = shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True).returncode == 0
    return words if may else ()


def run(
    folder: Path, commands: Sequence[Sequence[object]], allowed: Sequence[str] = (), more: Mapping[str, str] = {}
) -> Done:
    """Run commands of temporalwiki one after another in ``folder``. ``import-all`` imports every module, and
    ``small-demo`` DIR is the demo, on fewer people.

    ``allowed`` are the addresses, HOST:PORT, that may be connected to. ``more`` is added to the environment.
    """
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    (home / ".netrc").write_text("default login me password zQsEcReTqZofNetrc\n")
    (home / ".netrc").chmod(0o600)
    env = {name: value for name, value in os.environ.items() if not name.upper().startswith(_OURS)}
    env = {name: value for name, value in env.items() if not name.upper().endswith("_PROXY")}
    env |= SECRETS | {
        "HOME": str(home),
        "HF_HOME": str(home / "hub"),
        "WATCH": str(folder / "watch.log"),
        "WATCH_ALLOWED": " ".join(allowed),
        "PYTHONPATH": f"{HERE / 'watch'}:{HERE}",
        "OMP_NUM_THREADS": "1",
        **more,
    }
    words = [*(() if allowed else alone()), sys.executable, "-m", "watched", str(folder / "done.jsonl")]
    given = json.dumps([[str(word) for word in command] for command in commands])
    (folder / "done.jsonl").unlink(missing_ok=True)
    process = subprocess.run(words, cwd=folder, env=env, input=given, capture_output=True, text=True)
    log = folder / "watch.log"
    lines = (folder / "done.jsonl").read_text("utf-8").splitlines() if (folder / "done.jsonl").is_file() else []
    done = [json.loads(line) for line in lines]
    sent = done.pop()["sent"] if done and "sent" in done[-1] else None
    return Done(
        [(one["words"], one["status"], one["output"]) for one in done],
        process.stdout + process.stderr,
        log.read_text() if log.exists() else "",
        sent if words[0] == "unshare" else None,
    )


def leaks(folder: Path) -> list[str]:
    """Return the files in a folder, except netrc, with a secret in their name or content; case is ignored."""
    mark = MARK.lower().encode()
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.name != ".netrc"
        and (mark in path.name.lower().encode() or (path.is_file() and mark in path.read_bytes().lower()))
    )


def modules() -> list[str]:
    """Return all modules of temporalwiki."""
    import temporalwiki

    return [
        found.name
        for found in pkgutil.walk_packages(temporalwiki.__path__, "temporalwiki.")
        if not found.name.endswith(("__main__", ".app"))  # programs
    ]


def sent() -> int:
    """Packets that no network took, since it was taken away: TCP, UDP and so the questions for names."""
    lines = Path("/proc/net/snmp").read_text().splitlines()
    names, values = (line.split() for line in lines if line.startswith("Ip:"))
    count = int(values[names.index("OutNoRoutes")])
    with contextlib.suppress(OSError):
        six = dict(line.split() for line in Path("/proc/net/snmp6").read_text().splitlines())
        count += int(six["Ip6OutNoRoutes"])
    return count


@contextlib.contextmanager
def _captured() -> Iterator[io.StringIO]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        yield said


def _small_demo(out: Path) -> None:
    from temporalwiki.builders.world import World
    from temporalwiki.eval_harness.demo import Size, demo
    from temporalwiki.model_cards.folder_card import folder_card
    from temporalwiki.model_cards.space import space_card

    wikipedia = ("20210801", "20210901", "20211001")
    wikidata = ("20210726", "20210830", "20210927")
    world = World(dates=wikipedia, wikidata_dates=wikidata, people=30)
    size = Size(world=world, vocabulary=400, epochs=1, methods=("initial", "diff"), max_steps=2)
    for text in demo(out, folder_card, space_card, size):
        print(text)


def _run(words: list[str]) -> tuple[int, str]:
    from temporalwiki.commands import main

    with _captured() as said:
        try:
            if words == ["import-all"]:
                for name in modules():
                    with contextlib.suppress(ModuleNotFoundError, SystemExit):
                        importlib.import_module(name)
                return 0, said.getvalue()
            if words[0] == "small-demo":
                _small_demo(Path(words[1]))
                return 0, said.getvalue()
            return main(words), said.getvalue()
        except SystemExit as stop:
            return int(stop.code or 0), said.getvalue()
        except Exception:  # noqa: BLE001 - of --debug
            return 1, said.getvalue() + traceback.format_exc()


if __name__ == "__main__":
    with Path(sys.argv[1]).open("a", encoding="utf-8") as file:
        for words in json.load(sys.stdin):
            status, output = _run(words)
            file.write(json.dumps({"words": words, "status": status, "output": output}) + "\n")
            file.flush()
        file.write(json.dumps({"sent": sent()}) + "\n")
