"""What strangers wrote reaches the terminal as text, and nothing prints around that."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from temporalwiki.base.terminal import print_result, printable, say
from temporalwiki.commands import main

from a_month import add_month, article

PROJECT = Path(__file__).parents[2]
PACKAGES = ("base", "builders", "methods", "eval_harness", "model_cards", "push_scripts", "commands")
TEXTS = {
    "\x1b[2Jgone": "\\x1b[2Jgone",
    "a\0b": "a\\x00b",
    "safe\u202etxt.exe": "safe\\u202etxt.exe",
    "\u2066x\u2069": "\\u2066x\\u2069",
    "over\rwritten": "over\\rwritten",
    "\x9b31m": "\\x9b31m",
    "\x7f\b": "\\x7f\\x08",
    "a\u2028b": "a\\u2028b",
    "\udcff": "\\udcff",
    "two\nlines\tand a tab": "two\nlines\tand a tab",
    "Zürich 東京 👍🏽 \u200d שלום": "Zürich 東京 👍🏽 \u200d שלום",
}


@pytest.mark.parametrize("text", TEXTS)
def test_control_characters_are_shown_as_escapes(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert printable(text) == TEXTS[text]
    print_result(text)
    say(text)
    said = capsys.readouterr()
    assert (said.out, said.err) == (TEXTS[text] + "\n",) * 2


@pytest.mark.fault("hostile JSON", "control and bidi characters in a manifest's warnings", "inspect shows escapes")
def test_a_manifest_of_a_stranger_cannot_change_the_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_month(tmp_path / "out", "20211101", "20211201", [article(1)])
    [path] = (tmp_path / "out" / "manifests").iterdir()
    manifest = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(manifest | {"warnings": ["\x1b[2J\u202eall is well\0"]}), "utf-8")
    assert main(["inspect", str(tmp_path / "out")]) == 0
    assert "\\x1b[2J\\u202eall is well\\x00" in capsys.readouterr().out


def test_nothing_else_prints() -> None:
    """Only ``base/terminal.py`` prints. Metric modules and the job of the Hub stand alone, without this package."""
    found = [
        f"{path.relative_to(PROJECT)}:{node.lineno}"
        for package in PACKAGES
        for path in sorted((PROJECT / package).rglob("*.py"))
        if path.name != "terminal.py" and not {"metrics", "schedule"} & set(path.parts)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and _prints(node)
    ]
    assert found == []


def _prints(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name) and call.func.id == "print":
        return not any(word.arg == "file" and ast.unparse(word.value) == "file" for word in call.keywords)
    return ast.unparse(call.func) in ("sys.stdout.write", "sys.stderr.write", "tqdm.write")
