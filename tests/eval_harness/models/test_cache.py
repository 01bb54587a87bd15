"""The cache gives back scores to the bit, for the same model and policy only."""

import multiprocessing
import os
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError
from temporalwiki.eval_harness.models import cache as module
from temporalwiki.eval_harness.models.cache import ScoreCache
from temporalwiki.eval_harness.scoring import Text, TokenScores

POLICY = {"scoring": 1, "starts_with": "<s>", "precision": "fp32"}
TEXTS = st.text(st.characters(codec=None), max_size=30)  # with NUL and lone surrogates


@pytest.fixture
def store(tmp_path: Path) -> ScoreCache:
    return ScoreCache(tmp_path / "scores", "abc", POLICY)


def scores(*nll: float) -> TokenScores:
    """Return one score per token of three characters."""
    places = np.array([[3 * i, 3 * i + 3] for i in range(len(nll))], dtype=np.int64).reshape(-1, 2)
    return TokenScores(np.array(nll, dtype=np.float32).astype(np.float64), places)


def same(found: TokenScores, expected: TokenScores) -> bool:
    return found.nll.tobytes() == expected.nll.tobytes() and found.offsets.tolist() == expected.offsets.tolist()


# It returns what was added


@settings(max_examples=60)
@given(
    kept=st.dictionaries(
        st.builds(Text, TEXTS, TEXTS), st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1)
    )
)
def test_scores_come_back_to_the_bit(kept: dict[Text, list[float]], tmp_path_factory: pytest.TempPathFactory) -> None:
    store = ScoreCache(tmp_path_factory.mktemp("store"), "abc", POLICY)
    store.add_scores((text, scores(*nll)) for text, nll in kept.items())
    found = store.scores(list(kept))
    assert list(found) == list(range(len(kept)))
    assert all(same(found[i], scores(*nll)) for i, nll in enumerate(kept.values()))
    assert all(found[i].nll.dtype == np.float64 for i in found)


def test_an_answer_with_half_a_surrogate_pair_is_kept(store: ScoreCache) -> None:
    store.add_answers([("Kesh", "Osk \ud800")])
    assert store.answers(["Kesh"]) == {0: "Osk ?"}


HOSTILE = [
    "",
    "\0",
    "a\0",
    "\ud800",
    "\udfff\ud800",
    "'; DROP TABLE kept; --",
    "東京 \N{ZERO WIDTH JOINER}",
    "x" * 10**6,
]


def test_answers_and_spans(tmp_path: Path) -> None:
    answers, tagged = ScoreCache(tmp_path, "abc", {"generation": 1}), ScoreCache(tmp_path, "abc", {"tagging": 1})
    said = [text for text in HOSTILE if text.isascii() or "東" in text]
    answers.add_answers(zip(HOSTILE, [*said, "", ""], strict=True))
    assert answers.answers(HOSTILE) == dict(enumerate([*said, "", ""]))
    tagged.add_spans([("Anna in Easton", [(0, 4), (8, 14)]), ("none", [])])
    assert tagged.spans(["none", "Anna in Easton", "new"]) == {0: [], 1: [(0, 4), (8, 14)]}


def test_where_the_context_ends_counts(store: ScoreCache) -> None:
    store.add_scores([(Text("ab", "c"), scores(1.0))])
    assert store.scores([Text("a", "bc"), Text("", "abc"), Text("abc", ""), Text("ab", "c")]).keys() == {3}


def test_what_is_kept_twice_is_there_once(store: ScoreCache) -> None:
    for value in (1.0, 2.0):
        store.add_scores([(Text("", "a"), scores(value))])
    assert store.scores([Text("", "a"), Text("", "a")])[1].nll.tolist() == [2.0]


# Models and policies

OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "another model": ("abd", POLICY),
    "another precision": ("abc", POLICY | {"precision": "bf16"}),
    "another version": ("abc", POLICY | {"scoring": 2}),
    "without BOS": ("abc", POLICY | {"starts_with": None}),
    "one more option": ("abc", POLICY | {"beams": 2}),
}


@pytest.mark.parametrize("case", OTHERS)
def test_two_models_or_policies_are_never_mixed(case: str, store: ScoreCache, tmp_path: Path) -> None:
    store.add_scores([(Text("", "a"), scores(1.0))])
    assert ScoreCache(tmp_path / "scores", *OTHERS[case]).scores([Text("", "a")]) == {}
    again = ScoreCache(tmp_path / "scores", "abc", dict(reversed(POLICY.items())))
    assert again.scores([Text("", "a")]).keys() == {0}


@pytest.mark.parametrize("library", [module.torch, module.transformers], ids=["torch", "transformers"])
def test_nor_two_versions_of_a_library(
    library: Any, store: ScoreCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add_scores([(Text("", "a"), scores(1.0))])
    monkeypatch.setattr(library, "__version__", "0.0")
    assert ScoreCache(tmp_path / "scores", "abc", POLICY).scores([Text("", "a")]) == {}


# Several processes, and killed ones


def in_process(run: Callable[[], None]) -> multiprocessing.process.BaseProcess:
    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    return process


@pytest.mark.fault("two at once", "four evaluations that cache scores", "all scores are kept")
def test_processes_write_at_the_same_time(tmp_path: Path) -> None:
    texts = [[Text(str(writer), str(i)) for i in range(40)] for writer in range(4)]

    def write(writer: int) -> None:
        mine = ScoreCache(tmp_path, "abc", POLICY)
        for i, text in enumerate(texts[writer]):
            mine.add_scores([(text, scores(writer, i)), (Text("", "the same"), scores(7.0))])

    writers = [in_process(lambda writer=writer: write(writer)) for writer in range(4)]  # type: ignore[misc]
    for process in writers:
        process.join()
    assert [process.exitcode for process in writers] == [0] * 4
    found = ScoreCache(tmp_path, "abc", POLICY).scores([text for of in texts for text in of])
    assert [of.nll.tolist() for of in found.values()] == [[writer, i] for writer in range(4) for i in range(40)]


@pytest.mark.fault(
    "kill -9", "evaluate: while scores are written to the cache", "scores of complete batches are kept, no others"
)
def test_what_was_kept_outlives_a_kill(tmp_path: Path) -> None:
    def write() -> None:
        store = ScoreCache(tmp_path, "abc", POLICY)
        store.add_scores([(Text("", "a"), scores(1.0))])
        # killed within the second batch, which is in the file completely or not at all
        store._file.execute("BEGIN IMMEDIATE")
        store._file.execute("INSERT INTO kept VALUES ('x', 'x')")
        os.kill(os.getpid(), signal.SIGKILL)

    process = in_process(write)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    store = ScoreCache(tmp_path, "abc", POLICY)
    assert store.scores([Text("", "a")])[0].nll.tolist() == [1.0]
    store.add_scores([(Text("", "b"), scores(2.0))])
    assert store._file.execute("SELECT count(*) FROM kept").fetchone() == (2,)


# Errors: one line that says what to do

REMOVE, ELSEWHERE = "remove this file: it is only a cache", "set HF_HOME to another folder"


def damage(path: Path, at: int, by: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(by)


@pytest.mark.fault(
    "intermediate file missing or damaged", "evaluate: cached scores are damaged", "one line names the file"
)
@pytest.mark.parametrize("at", [0, 100, 4096])
def test_a_damaged_file_is_named(at: int, tmp_path: Path) -> None:
    store = ScoreCache(tmp_path, "abc", POLICY)
    texts = [Text("", str(i)) for i in range(2000)]
    store.add_scores((text, scores(1.0)) for text in texts)
    store._file.close()
    damage(store.path, at, b"\xff" * 3000)
    with pytest.raises(InputError) as raised:
        ScoreCache(tmp_path, "abc", POLICY).scores(texts)
    assert str(raised.value).startswith(f"{store.path}: ")
    assert REMOVE in str(raised.value)
    store.path.unlink()
    assert ScoreCache(tmp_path, "abc", POLICY).scores(texts) == {}


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=ELSEWHERE):
        ScoreCache(tmp_path / "file" / "scores", "abc", POLICY)


PRAGMAS = {"a full disk": ("max_page_count = 3", "full"), "no right to write": ("query_only = 1", "readonly")}


@pytest.mark.parametrize("case", PRAGMAS)
def test_a_file_that_cannot_grow(case: str, store: ScoreCache) -> None:
    pragma, said = PRAGMAS[case]
    store.add_scores([(Text("", "a"), scores(1.0))])
    store._file.execute(f"PRAGMA {pragma}")
    with pytest.raises(InputError, match=f"{said}.*; {ELSEWHERE}"):
        store.add_scores((Text("", str(i)), scores(*range(100))) for i in range(100))
    assert store.scores([Text("", "a"), Text("", "0")]).keys() == {0}  # older scores can still be read


def test_one_who_does_not_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.1)
    store = ScoreCache(tmp_path, "abc", POLICY)
    other = sqlite3.connect(store.path)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(InputError, match="locked"):
        store.add_scores([(Text("", "a"), scores(1.0))])
    other.rollback()
    store.add_scores([(Text("", "a"), scores(1.0))])


def test_it_lies_beside_the_cache_of_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.datasets.config, "HF_CACHE_HOME", "/somewhere")
    assert module.cache_folder() == Path("/somewhere/temporalwiki/scores")
