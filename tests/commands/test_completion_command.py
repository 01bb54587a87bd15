"""``temporalwiki completion``: bash itself completes with the script; zsh, where it is installed, can read its own."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from temporalwiki.methods import METHODS

pytest.importorskip("shtab", reason="shtab, which writes the script, is not installed")

Run = Callable[..., tuple[int, str, str]]


def script(shell: str, folder: Path) -> Path:
    words = [sys.executable, "-m", "temporalwiki", "completion", shell]
    path = folder / shell
    path.write_text(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout, "utf-8")
    return path


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return script("bash", tmp_path_factory.mktemp("completion"))


# words before the cursor, the last one begun -> what bash offers, or a part of it
OFFERED = {
    "temporalwiki ev": {"evaluate"},
    "temporalwiki train --me": {"--method"},
    "temporalwiki train --method ": {*METHODS},
    "temporalwiki train --method lora --ran": {"--rank"},
    "temporalwiki evaluate --tasks twiki_": {"twiki_intrinsic", "twiki_probes"},
    "temporalwiki evaluate --light": {"--light-tuning"},
    "temporalwiki publish met": {"metric"},
    "temporalwiki ckl upd": {"updatedlama"},
    "temporalwiki ckl updatedlama --jud": {"--judge"},
    "temporalwiki list con": {"configs"},
    "temporalwiki completion z": {"zsh"},
}


@pytest.mark.parametrize("typed", OFFERED)
def test_bash_completes(typed: str, bash: Path) -> None:
    words = typed.split(" ")
    asked = f"source {bash}; COMP_WORDS=({' '.join(words[:-1])} '{words[-1]}'); "
    asked += f"COMP_CWORD={len(words) - 1}; _shtab_temporalwiki; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    ran = subprocess.run(["bash", "--norc", "-c", asked], check=True, stdout=subprocess.PIPE, text=True)
    assert OFFERED[typed] <= set(ran.stdout.split())
    assert len(words[-1]) < 3 or all(word.startswith(words[-1]) for word in ran.stdout.split())


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_reads_the_script(tmp_path: Path) -> None:
    subprocess.run(["zsh", "-n", script("zsh", tmp_path)], check=True)


def test_without_the_package_it_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    status, out, err = run("completion", "bash")
    assert (status, out) == (2, "")
    assert err.endswith("completion needs the package shtab: pip install 'temporalwiki[completion]'\n")
