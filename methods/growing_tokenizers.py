"""Refuse tokenizers that make a short text so long that the memory ends: the library aborts, and no error is raised.

A ``tokenizer.json`` says in steps how text becomes tokens and tokens become text. Three steps that replace a letter by
a thousand make a gigabyte of one letter. So we multiply the growth of all steps before one of them runs.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from temporalwiki.base.errors import InputError

_MOST = 256.0  # times; T5's steps may make a text 36 times as long, GPT-2's 64 times
_BYTES = 4  # letters that stand for the bytes of one letter
_INNER = ("normalizers", "pretokenizers", "processors", "decoders")  # the steps of a sequence


class TokenizerSteps(msgspec.Struct):
    """The steps of a ``tokenizer.json``, without its vocabulary."""

    normalizer: Any = None
    pre_tokenizer: Any = None
    post_processor: Any = None
    decoder: Any = None

    @classmethod
    def of(cls, backend: Any) -> TokenizerSteps:
        """Return the steps of a tokenizer of the library, which may have made them of other files."""
        parts = {name: getattr(backend, name) for name in cls.__struct_fields__}
        return cls(**{name: part and msgspec.json.decode(part.__getstate__()) for name, part in parts.items()})

    def check(self, where: str) -> None:
        """Raise InputError if the steps may make a text more than 256 times as long.

        Steps whose growth nobody can choose, such as Unicode's normal forms, do not count.
        """
        parts = (self.normalizer, self.pre_tokenizer, self.post_processor, self.decoder)
        growth = 1.0
        for step in _steps(parts):
            growth *= _growth(step)
            if growth > _MOST:
                raise InputError(
                    f"{where}: its {step['type']} may make a text more than {_MOST:.0f} times as long; use another "
                    "tokenizer"
                )


def _steps(parts: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the steps in parts, also those in sequences."""
    waiting = list(parts)
    while waiting:
        step = waiting.pop()
        if isinstance(step, dict):
            yield step
            waiting += [inner for name in _INNER if isinstance(step.get(name), list) for inner in step[name]]


def _growth(step: Mapping[str, Any]) -> float:
    """Return how many times as long a step may make a text, in characters, or 1 for what the library refuses."""
    kind = step.get("type")
    if kind == "Replace":
        pattern, content = step.get("pattern"), len(str(step.get("content", "")))
        text = pattern.get("String") if isinstance(pattern, dict) else None
        # a regular expression may match nothing, which is between all letters
        return max(1.0, content / len(text)) if isinstance(text, str) and text else 1.0 + content
    if kind == "Prepend":
        return 1.0 + len(str(step.get("prepend", "")))
    if kind == "ByteLevel":
        return _BYTES
    if kind == "Precompiled":
        return _longest(step.get("precompiled_charsmap"))
    if kind == "TemplateProcessing":
        single = step.get("single")
        pieces = single if isinstance(single, list) else []
        return max(1.0, sum(isinstance(piece, dict) and "Sequence" in piece for piece in pieces))
    return 1.0


def _longest(charsmap: Any) -> float:
    """Return the longest text that a map of SentencePiece gives for a letter: texts end with 0, after a tree."""
    try:
        content = base64.b64decode(bytes(charsmap) if isinstance(charsmap, list) else str(charsmap or ""))
    except (binascii.Error, ValueError, TypeError):
        return 1.0
    texts = content[4 + int.from_bytes(content[:4], "little") :]
    return max(1.0, *(len(text.decode("utf-8", "replace")) for text in texts.split(b"\0")))
