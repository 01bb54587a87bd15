"""The scores of benchmarks/news.py, on pages whose scores can be counted by hand."""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def news() -> ModuleType:
    """Return the benchmark as a module."""
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "news.py"
    spec = importlib.util.spec_from_file_location("benchmark_of_news", path)
    assert spec is not None and spec.loader is not None
    sys.modules["benchmark_of_news"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("found", "gold", "score"),
    [
        ("A b, c!", "a B c", 1),
        ("a a b", "a b b", 2 / 3),  # two of three tokens in common
        ("a", "a b c", 0.5),  # precision 1, recall 1/3
        ("", "a", 0),
        ("汉字 x", "汉 y", 0.4),  # one of three, and of two
    ],
)
def test_f1(news: ModuleType, found: str, gold: str, score: float) -> None:
    assert news.f1(found, gold) == pytest.approx(score)


def test_the_text_of_a_page_is_the_one_whose_words_it_has(news: ModuleType, tmp_path: Path) -> None:
    texts = {
        version: {
            "title": version,
            "publishing_date": "2024-05-01 23:30:00-02:00",
            "body": {"summary": ["Sum."], "sections": [{"headline": [], "paragraphs": [text]}]},
        }
        for version, text in {"V1": "A bridge opens", "V2": "The ferry closes", "V3": "The bridge closes"}.items()
    }
    (tmp_path / "Post.json").write_text(json.dumps(texts))
    page = tmp_path / "Post_2024_05_01.html.gz"
    page.write_bytes(gzip.compress(b"<h1>Sum.</h1><p>The ferry &amp; more closes</p>"))
    known = news.gold(page)
    assert known == news.Article("Sum.\nThe ferry closes", "V2", "2024-05-01 23:30:00-02:00")
    found = {str(page): {"text": "the ferry", "title": "v2", "published": "2024-05-02"}, "dropped": None}
    line, scores = news.row("ours", found, {str(page): known, "dropped": known}, 7.2)
    assert scores == {str(page): pytest.approx(2 / 3), "dropped": 0}  # two of two, and of four
    assert line == "| ours | 0.333 | 1 | 1 | 1 of 2 | 1 of 2 | 7 |"
