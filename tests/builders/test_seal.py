"""Seals: written before a month, proved by its probes, and broken by anything else."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from temporalwiki.base.errors import InputError, UsageError
from temporalwiki.builders import seal as seals
from temporalwiki.builders.build import BuildOptions, build, find_sources
from temporalwiki.builders.inspection import describe_problems
from temporalwiki.builders.snapshot import Interval
from temporalwiki.builders.world.story import World, write_world
from temporalwiki.commands import main
from temporalwiki.model_cards.folder_card import folder_card

from a_folder import rewrite

DATES = ("20211001", "20211101", "20211201")
MONTH = "2021-12"


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dumps")
    write_world(folder, World(dates=DATES, wikidata_dates=("20210927", "20211101", "20211129"), people=60))
    return folder


def month(dumps: Path, out: Path, *dates: str, **options: Any) -> None:
    chosen = BuildOptions(**{"unchanged_fraction": 0.9, "seed": 3, "caps": (0.05, 0.1, 0.1)} | options)
    build(find_sources(dumps, Interval("enwiki", *dates)), out, out.with_name("work"), chosen, card=folder_card)


@pytest.fixture
def sealed(dumps: Path, tmp_path: Path) -> Path:
    """A dataset with its first month, and a seal of the second one."""
    folder = tmp_path / "temporalwiki"
    month(dumps, folder, *DATES[:2])
    seals.seal(folder, MONTH)
    return folder


def said(folder: Path) -> str:
    [(line, _)] = seals.proofs(folder)
    return line


def with_option(path: Path, **changed: Any) -> None:
    rewrite(path, options=json.loads(path.read_text("utf-8"))["options"] | changed)


def reasons(folder: Path) -> list[str]:
    return [reason for _, found in seals.proofs(folder) for reason in found]


def test_a_seal_has_the_options_of_the_newest_month_and_is_proved(
    sealed: Path, dumps: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = json.loads((sealed / "seals" / f"{MONTH}.json").read_text())
    assert (written["month"], written["options"]["seed"], written["options"]["caps"]) == (MONTH, 3, [0.05, 0.1, 0.1])
    assert said(sealed) == f"seal of {MONTH} ({written['sha256'][:12]}): not built yet"
    month(dumps, sealed, *DATES[1:])
    assert describe_problems(sealed) == reasons(sealed) == []
    assert said(sealed).endswith(": its probes are what the seal said")
    assert main(["inspect", str(sealed)]) == 0
    assert said(sealed) in capsys.readouterr().out
    shutil.rmtree(sealed / "data")
    assert said(sealed).endswith(": its files are gone")


def test_a_first_month_is_sealed_with_the_defaults(dumps: Path, tmp_path: Path) -> None:
    folder = tmp_path / "temporalwiki"
    seals.seal(folder, "2021-11", seed=7)
    defaults = BuildOptions()
    month(dumps, folder, *DATES[:2], seed=7, caps=defaults.caps, unchanged_fraction=defaults.unchanged_fraction)
    assert reasons(folder) == []


def another_code(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(seals, "code", lambda: "0" * 64)


def another_version(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("importlib.metadata.version", lambda name: "9.9.9")


OTHERS: dict[str, tuple[dict[str, Any], Callable[[pytest.MonkeyPatch], None] | None, str]] = {
    "seed": ({"seed": 4}, None, "was built with seed 4, and the seal said 3"),
    "fraction": ({"unchanged_fraction": 0.5}, None, r"with unchanged_fraction 0\.5, and the seal said 0\.9"),
    "caps": ({"caps": None}, None, r"with caps None, and the seal said \[0\.05, 0\.1, 0\.1\]"),
    "code": ({}, another_code, "with another code than the seal said"),
    "version": ({}, another_version, "with another version than the seal said"),
}


@pytest.mark.parametrize(("options", "prepare", "expected"), OTHERS.values(), ids=OTHERS)
def test_another_option_seed_or_code_breaks_the_proof(
    options: dict[str, Any], prepare: Any, expected: str, sealed: Path, dumps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        if prepare is not None:
            prepare(patch)
        month(dumps, sealed, *DATES[1:], **options)
    assert re.search(expected, "; ".join(reasons(sealed)))


def test_probes_that_somebody_chose_break_the_proof(sealed: Path, dumps: Path) -> None:
    """A manifest that claims the sealed options does not help: the probes are drawn again."""
    month(dumps, sealed, *DATES[1:], seed=4)
    with_option(sealed / "manifests" / "20211101-20211201.json", seed=3)
    found = "; ".join(reasons(sealed))
    assert "its changed probes are not those that the seal draws from its facts" in found
    assert "its unchanged facts are not the sample that the seal draws" in found
    assert "was built with" not in found


def test_a_changed_seal_and_one_without_the_options_of_a_build_are_noticed(sealed: Path) -> None:
    with_option(sealed / "seals" / f"{MONTH}.json", seed=4)
    assert "changed after it was written" in reasons(sealed)[0]
    with pytest.raises(InputError, match="changed after it was written"):
        seals.seal(sealed, MONTH)
    path = sealed / "seals" / f"{MONTH}.json"
    bare = msgspec.structs.replace(msgspec.json.decode(path.read_bytes(), type=seals.Seal), options={})
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(bare, sha256=bare.hash())))
    assert "its options are not those of a build" in reasons(sealed)[0]


def test_a_seal_is_written_once_and_before_its_month(sealed: Path, dumps: Path) -> None:
    assert seals.seal(sealed, MONTH).is_file()  # the same again
    with pytest.raises(InputError, match="this month has another seal, and a seal is never changed"):
        seals.seal(sealed, MONTH, seed=4)
    with pytest.raises(InputError, match="2021-11 cannot be sealed any more: 20211001-20211101 is built"):
        seals.seal(sealed, "2021-11")
    for wrong in ("2021-13", "202112", "../../x"):
        with pytest.raises(UsageError, match="is not a month: write YYYY-MM"):
            seals.seal(sealed, wrong)


@pytest.mark.parametrize("file", ["wikidata/align.py", "wikipedia/words.yaml", "finish.py"])
def test_the_hash_of_the_code_covers_its_tables_of_words(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "__file__", str(tmp_path / "seal.py"))
    hashes = []
    for text in ("a", "b"):
        for name in ("wikidata/align.py", "wikipedia/words.yaml", "finish.py"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text if name == file else "same")
        seals.code.cache_clear()
        hashes.append(seals.code())
    seals.code.cache_clear()
    assert hashes[0] != hashes[1]
