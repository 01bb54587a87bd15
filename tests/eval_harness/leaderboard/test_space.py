"""The leaderboard's Space: what is written into the folder, and an app that shows its scores."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from temporalwiki.eval_harness.leaderboard.rows import write_parquet
from temporalwiki.eval_harness.leaderboard.space import write_space
from temporalwiki.model_cards.space import space_card

from a_folder import contents
from a_row import make_row

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)
ROWS = [
    make_row(test="average", label="diff", value=20.0, low=18.0, high=22.0, rank_best=1, rank_worst=2),
    make_row(test="average", label="lora", method="lora", value=10.0, low=None, high=None, rank_best=1, rank_worst=1),
    make_row(test="average", label="<b>initial</b>", method=None, month=None, tokens=None, value=30.0),
    make_row(test="average", label="=cmd()", value=25.0, tested="1112", config="probes-1112"),
    make_row(measure="f1", higher_is_better=True, label="diff", value=1.0),
    make_row(measure="f1", higher_is_better=True, label="lora", method="lora", value=2.0),
    make_row(task="fuar", kind="fuar", test="probes", measure="fuar", value=math.inf, low=None, high=None),
    make_row(task="twiki_intrinsic", kind="diffset", test="train", value=5.0),
    make_row(task="twiki_intrinsic", kind="unchanged", test="train", value=6.0),
]


def test_the_same_folder_twice_is_the_same_bytes(tmp_path: Path) -> None:
    written = []
    for _ in range(2):
        write_space(tmp_path, [], title="\ud800: {")
        written.append(contents(tmp_path))
    assert written[0] == written[1]
    assert written[0].keys() == {"README.md", "app.py", "requirements.txt"}
    assert written[0]["README.md"] == space_card("\ud800: {", []).encode()


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """The app of a folder, as the Space runs it."""
    pytest.importorskip("gradio")
    folder = tmp_path_factory.mktemp("space")
    write_parquet(ROWS, folder / "results.parquet")
    (folder / "index.html").write_text("<!doctype html><title>page</title>")
    (folder / "figures").mkdir()
    (folder / "figures" / "average_perplexity.png").write_bytes(PIXEL)
    (folder / "results.txt").write_text("not for everyone")
    write_space(folder, [], title="Leaderboard")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
        spec = importlib.util.spec_from_file_location("leaderboard_app", folder / "app.py")
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module


@pytest.fixture(scope="module")
def running(app: ModuleType) -> Iterator[str]:
    _, url, _ = app.demo.launch(prevent_thread_lock=True, quiet=True, server_name="127.0.0.1")
    yield url
    app.demo.close(verbose=False)


# What is chosen, and the labels and ranks of the table: best first.
BOARDS: list[tuple[tuple[str, str, str, str, str], list[tuple[str, str]]]] = [
    (
        ("twiki_probes", "average", "perplexity", "0910", "all"),
        [("lora", "1"), ("diff", "1–2"), ("<b>initial</b>", "")],
    ),
    (("twiki_probes", "average", "perplexity", "1112", "all"), [("=cmd()", "")]),
    (("twiki_probes", "average", "perplexity", "0910", "lora"), [("lora", "1")]),
    (("twiki_probes", "average", "perplexity", "0910", "none"), [("<b>initial</b>", "")]),
    (("twiki_probes", "changed", "f1", "0910", "all"), [("lora", ""), ("diff", "")]),
    (("fuar", "probes", "fuar", "0910", "all"), [("diff", "")]),
    (("twiki_intrinsic", "diffset: train", "perplexity", "0910", "all"), [("diff", "")]),
]


@pytest.mark.parametrize(("chosen", "expected"), BOARDS)
def test_the_app_shows_a_score_best_first(app: ModuleType, chosen: Any, expected: list[tuple[str, str]]) -> None:
    found = app.board(*chosen)
    assert list(found.columns) == app.COLUMNS
    assert list(zip(found["model"], found["rank"], strict=True)) == expected


def test_the_app_answers_in_the_browser_and_keeps_what_a_task_has(running: str) -> None:
    from gradio_client import Client

    client = Client(running, verbose=False, analytics_enabled=False)
    *_, better, table = client.predict("twiki_probes", "average", "perplexity", "0910", "all", api_name="/show")
    assert better.startswith("Lower is better")
    assert [line[0] for line in table["data"]] == ["lora", "diff", "<b>initial</b>"]
    test, measure, tested, _, table = client.predict("fuar", "average", "perplexity", "1112", "all", api_name="/show")
    assert [choice["value"] for choice in (test, measure, tested)] == ["probes", "fuar", "0910"]
    assert len(table["data"]) == 1


def test_the_app_opens_with_the_newest_average_and_links_to_the_page(app: ModuleType, running: str) -> None:
    import httpx

    assert app.begin == ("average", "perplexity", "1112")
    page = httpx.get(f"{running}gradio_api/file={app.HERE / 'index.html'}")
    assert page.status_code == 200 and "<title>page</title>" in page.text
    assert "attachment" not in page.headers.get("content-disposition", "")
    assert httpx.get(f"{running}gradio_api/file={app.HERE / 'results.txt'}").status_code == 403
