"""Sets of words, written as text or kept in YAML files of this package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

# Scripts without spaces between words: Han, kana and Hangul; Thai, Lao, Khmer, Burmese, Tibetan and Javanese.
UNSPACED = "\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff\u0e00-\u109f\u1780-\u17ff\ua980-\ua9df"


def words(text: str, separator: str | None = None) -> frozenset[str]:
    """Return the words of a text, or the phrases between separators, with single spaces."""
    return frozenset(" ".join(word.split()) for word in text.split(separator))


def word_table(name: str) -> Any:
    """Return the content of one of this package's YAML files."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where PyYAML has it
    return loader(Path(__file__).with_name(name).read_text("utf-8")).get_single_data()  # both are safe
