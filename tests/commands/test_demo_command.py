"""``temporalwiki demo``: which demo runs, and where."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from temporalwiki.commands import main

pytest.importorskip("spacy", reason="the demo's text is scored with spaCy, which is not installed")

from temporalwiki.eval_harness import demo as module


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("demo", "generated in demo"),
        ("demo --out there", "generated in there"),
        ("demo --real dumps", "dumps in demo-real"),
        ("demo --real dumps --out there", "dumps in there"),
    ],
)
def test_the_command_says_what_the_demo_says(
    arguments: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def generated(out: Path, *cards: object) -> Iterator[str]:
        yield f"generated in {out}"
        yield "the end"

    def real(dumps: Path, out: Path, *cards: object) -> Iterator[str]:
        yield f"{dumps} in {out}"
        yield "the end"

    monkeypatch.setattr(module, "demo", generated)
    monkeypatch.setattr(module, "demo_real", real)
    assert main(arguments.split()) == 0
    assert capsys.readouterr().out == f"{said}\nthe end\n"


def test_dumps_that_are_not_there_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--real", str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")]) == 1
    assert f"{tmp_path / 'nowhere'}: no such folder of dumps" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
