"""The tokens of a month in its card: counted, or estimated from every n-th article."""

from pathlib import Path
from typing import Any

import pytest

from temporalwiki.builders.manifests import BuiltManifest, read_manifests
from temporalwiki.push_scripts import token_count
from temporalwiki.push_scripts.dataset import publish_dataset
from temporalwiki.push_scripts.token_count import TOKENIZER, token_sentence

import tiny_models
from a_folder import contents
from a_month import add_month, article
from loopback_hub import LoopbackHub

TEXTS = ["Ann was born in Rome.", "Bo moved to Oslo in 2021.", "Cy.", "Di left.", "Ed, too, left Rome for Oslo."]


@pytest.fixture
def tokenizer(hub: LoopbackHub, tmp_path: Path) -> Any:
    """Put a tokenizer on the Hub under the name of GPT-2's."""
    made = tiny_models.tokenizer("gpt2")
    made.save_pretrained(tmp_path / "tokenizer")
    hub.commit("model", TOKENIZER, contents(tmp_path / "tokenizer"))
    return made


def month(folder: Path, texts: list[str]) -> BuiltManifest:
    add_month(folder, "20211101", "20211201", [article(i, text=text) for i, text in enumerate(texts, 1)])
    [manifest] = read_manifests(folder)
    assert isinstance(manifest, BuiltManifest) and manifest.counts.diffset.words == 7
    return manifest


def test_all_tokens_of_a_small_month_are_counted(tokenizer: Any, hub: LoopbackHub, tmp_path: Path) -> None:
    folder = tmp_path / "temporalwiki"
    said = token_sentence(folder, month(folder, TEXTS))
    count = sum(len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in TEXTS)
    assert said == f"They are {count:,} tokens of GPT-2 (`openai-community/gpt2`)."
    list(publish_dataset(folder, "ORG/temporalwiki"))
    card = " ".join(hub.repo("dataset", "ORG/temporalwiki").files()["README.md"].decode().split())
    assert f"7 words in all. {said} The probes are" in card


def test_those_of_a_large_month_are_estimated_by_its_words(
    tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_count, "_SAMPLE", 2)
    folder = tmp_path / "temporalwiki"
    read = TEXTS[::2]  # 5 articles, so every second one
    tokens = sum(len(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in read)
    estimated = tokens * 7 / (5 + 1 + 6)  # words
    assert token_sentence(folder, month(folder, TEXTS)) == (
        f"They are about {float(f'{estimated:.2g}'):,.0f} tokens of GPT-2 (`openai-community/gpt2`), "
        "estimated from 3 of the articles."
    )


def test_without_the_tokenizer_or_rows_nothing_is_said(hub: LoopbackHub, tmp_path: Path) -> None:
    folder = tmp_path / "temporalwiki"
    assert token_sentence(folder, month(folder, TEXTS)) == ""
    assert token_sentence(tmp_path / "other", month(tmp_path / "other", [])) == ""
