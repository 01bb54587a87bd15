"""What strangers wrote reaches the terminal as text, and nothing prints around that."""

import ast
import json
import logging
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from temporalwiki.base.terminal import guard, print_result, printable, say
from temporalwiki.commands import main

import a_result
from a_month import add_month, article

PROJECT = Path(__file__).parents[2]
PACKAGES = ("base", "builders", "methods", "eval_harness", "model_cards", "push_scripts", "api", "commands")
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
    in_one = TEXTS[text].replace("\n", "\\n").replace("\t", "\\t")
    assert (said.out, said.err) == (TEXTS[text] + "\n", in_one + "\n")


@pytest.mark.parametrize("text", ["\x1b[2J", "a\x9b31m", "safe\u202etxt.exe"])
def test_what_libraries_and_python_print_is_escaped_too(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "excepthook", sys.excepthook)
        patch.setattr(warnings, "formatwarning", warnings.formatwarning)
        patch.setattr(logging, "_logRecordFactory", logging.LogRecord)
        guard()
        try:
            raise ValueError(text)
        except ValueError as error:
            sys.excepthook(ValueError, error, error.__traceback__)
        print(warnings.formatwarning(text, UserWarning, "file", 1))
        print(logging.makeLogRecord({"msg": text}).getMessage())
    said = capsys.readouterr()
    assert printable(text) in said.err
    assert said.out.count(printable(text)) == 2
    assert text not in said.out + said.err


@pytest.mark.fault("hostile JSON", "a file's name with control characters in a command", "shown as escapes")
def test_names_that_a_shell_expands_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["inspect", "a", "b\x1b[2J\u202e\nfake: all is well"])
    said = capsys.readouterr().err
    assert "unrecognized arguments: b\\x1b[2J\\u202e\\nfake: all is well" in said and "\x1b" not in said


@pytest.mark.fault("hostile JSON", "a line break in a name of a manifest or result", "no line of its own")
@pytest.mark.parametrize("place", ["a warning", "a reason", "a model", "a test", "a config", "what was left out"])
def test_a_stranger_cannot_forge_a_line(place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forged = "x\nall files are as the manifests say"
    if place in ("a warning", "a reason"):
        add_month(tmp_path / "out", "20211101", "20211201", [article(1)])
        [path] = (tmp_path / "out" / "manifests").iterdir()
        content = json.loads(path.read_text("utf-8"))
        if place == "a warning":
            content["warnings"] = [forged]
        else:
            content["counts"]["pages"]["dropped"] = {forged: 1}
    else:
        facts = {"unchanged": a_result.facts(1.0, 2.0), "changed": a_result.facts(1.0, 3.0)}
        path = a_result.write_probes(tmp_path / "out", "probes-1112", facts).path
        content = json.loads(path.read_text("utf-8"))
        if place == "a test":
            content["scores"] = {f"{forged}/{name}": score for name, score in content["scores"].items()}
        elif place == "what was left out":
            content["excluded"] = {forged: 1}
        else:
            content["data" if place == "a config" else "model"]["config" if place == "a config" else "name"] = forged
    path.write_text(json.dumps(content, sort_keys=True), "utf-8")
    assert main(["inspect", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "x\\nall files are" in said
    assert said.count("\nall files are as the manifests say") == (place in ("a warning", "a reason"))


@pytest.mark.fault("hostile JSON", "control and bidi characters in a manifest's warnings", "inspect shows escapes")
def test_a_manifest_of_a_stranger_cannot_change_the_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_month(tmp_path / "out", "20211101", "20211201", [article(1)])
    [path] = (tmp_path / "out" / "manifests").iterdir()
    manifest = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(manifest | {"warnings": ["\x1b[2J\u202eall is well\0"]}), "utf-8")
    assert main(["inspect", str(tmp_path / "out")]) == 0
    assert "\\x1b[2J\\u202eall is well\\x00" in capsys.readouterr().out


def test_nor_can_a_traceback() -> None:
    words = [sys.executable, "-m", "temporalwiki", "inspect", "no\x1b[2J", "--debug"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback") and "no\\x1b[2J" in done.stderr and "\x1b" not in done.stderr


def test_nothing_else_prints() -> None:
    """Only ``base/terminal.py`` prints. Metric modules and the job of the Hub do without this package."""
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
