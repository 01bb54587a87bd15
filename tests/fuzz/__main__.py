"""Run targets under atheris, one after another: ``python -m fuzz [TARGET ...] [--seconds N] [--out FOLDER]``.

Run it where ``fuzz`` is found, in tests/. What was found, and inputs that reach new code, stay in FOLDER; a line is
added to FOLDER/log.jsonl for each run of a target. ``python -m fuzz TARGET --minimise FILE`` makes an input that
breaks a promise as short as it can, and prints it as Python has it.
"""

import argparse
import hashlib
import importlib
import importlib.util
import json
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from fuzz import TARGETS

SLOW = 60  # seconds of the clock for one input, on a machine that may do other things as well
MEMORY = 3000  # MB


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; default: all")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--out", type=Path, default=Path("../build/fuzz"))
    parser.add_argument("--more", type=Path, help="a folder with folders TARGET of further inputs to begin with")
    parser.add_argument("--minimise", type=Path, metavar="FILE")
    parser.add_argument("--in-this-process", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.targets) - set(TARGETS):
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    targets = options.targets or TARGETS
    if not options.minimise and importlib.util.find_spec("atheris") is None:
        parser.error("atheris is not installed; docs/maintaining/fuzzing.md says how")
    if options.in_this_process:
        _fuzz(targets[0], options.in_this_process)
    elif options.minimise:
        print(shortest(importlib.import_module(f"fuzz.{targets[0]}"), options.minimise.read_bytes()))
    else:
        broken = [target for target in targets if not _run(target, options)]
        sys.exit(f"broken promises: {', '.join(broken)}; see {options.out}" if broken else 0)


def _run(target: str, options: argparse.Namespace) -> bool:
    """Fuzz one target in a process of its own, and log it; False where it found something."""
    own = options.out.resolve() / target
    for name in ("corpus", "seeds"):
        (own / name).mkdir(parents=True, exist_ok=True)
    module = importlib.import_module(f"fuzz.{target}")
    for seed in (*module.SEEDS, *getattr(module, "FOUND", ())):
        (own / "seeds" / hashlib.sha1(seed).hexdigest()).write_bytes(seed)
    words = own / "words"
    escaped = ("".join(map("\\x{:02x}".format, word)) for word in module.WORDS)
    words.write_text("".join(f'"{word}"\n' for word in escaped), "ascii")
    folders = [own / "corpus", own / "seeds"]
    if options.more and (options.more / target).is_dir():
        folders.append((options.more / target).resolve())
    began, spent = time.time(), _children()
    command = [
        *(sys.executable, "-m", "fuzz", target, "--in-this-process", *map(str, folders)),
        *(f"-max_total_time={options.seconds}", f"-timeout={SLOW}", f"-rss_limit_mb={MEMORY}", f"-dict={words}"),
        *(f"-max_len={getattr(module, 'LONGEST', 4096)}", f"-artifact_prefix={own}/", "-print_final_stats=1"),
        *("-reload=0", "-len_control=0", f"-seed={int(began) & 0x7FFFFFFF}"),
    ]
    with (own / "output").open("w") as output:
        code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    said = (own / "output").read_text("utf-8", errors="replace")
    runs = [0, *map(int, re.findall(r"(?m)^(?:#|stat::number_of_executed_units: *)([0-9]+)", said))]
    line = {
        "target": target,
        "at": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(began)),
        "cpu_seconds": round(_children() - spent, 1),
        "inputs": runs[-1],
        "coverage": ([0, *map(int, re.findall(r"cov: (\d+)", said))])[-1],
        "kept": sum(1 for _ in (own / "corpus").iterdir()),
        "found": re.findall(r"Test unit written to (\S+)", said),
        "exit": code,
    }
    with (options.out / "log.jsonl").open("a") as log:
        log.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)
    return code == 0


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _fuzz(target: str, arguments: list[str]) -> None:
    import atheris

    with atheris.instrument_imports(include=["temporalwiki"]):
        module: Any = importlib.import_module(f"fuzz.{target}")
    mutate = getattr(module, "mutate", None)
    further = {}
    if mutate is not None:
        further["custom_mutator"] = lambda data, longest, seed: mutate(data, longest, seed, atheris.Mutate)
    atheris.Setup([sys.argv[0], *arguments], module.check, **further)
    atheris.Fuzz()


def shortest(module: Any, data: bytes) -> bytes:
    """An input that breaks the same promise, none of whose bytes can be left out."""

    def problem(data: bytes) -> str | None:
        try:
            module.check(data)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is what is looked for
            return f"{type(error).__name__}: {str(error)[:20]}"
        return None

    wanted = problem(data)
    if wanted is None:
        sys.exit("this input breaks no promise")
    size = len(data) // 2
    while size:
        at = 0
        while at < len(data):
            shorter = data[:at] + data[at + size :]
            if problem(shorter) == wanted:
                data = shorter
            else:
                at += size
        size //= 2
    print(wanted, file=sys.stderr)
    return data


if __name__ == "__main__":
    main()
