"""Kept scores and answers: what a model said once about a text it need not say again, next month or after a kill."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import torch
import transformers

from temporalwiki.base.errors import InputError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.builders.ckl.salient_spans import Span
from temporalwiki.eval_harness.scoring import Scores, Text

_PATIENCE = 60.0  # seconds to wait for another process that writes


def cache() -> Path:
    """Return the folder of all stores, beside the cache of ``datasets``."""
    return Path(datasets.config.HF_CACHE_HOME) / "temporalwiki" / "scores"


class Store:
    """A file of one model revision's scores under one policy; several processes may write to it."""

    def __init__(self, folder: Path, revision: str, policy: dict[str, Any]) -> None:
        """``policy``: all that the numbers depend on besides model and text; the libraries' versions are added."""
        libraries = {"torch": torch.__version__, "transformers": transformers.__version__}
        self.path = folder / f"{fingerprint(revision, policy, libraries)}.sqlite"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(self.path, timeout=_PATIENCE)
            with self._file:
                columns = "key BLOB PRIMARY KEY, value BLOB"
                self._file.execute(f"CREATE TABLE IF NOT EXISTS kept ({columns}) WITHOUT ROWID")
        except (OSError, sqlite3.Error) as error:
            raise self._broken(error) from None

    def scores(self, texts: Sequence[Text]) -> dict[int, Scores]:
        """Return the scores that are kept, by the number of the text."""
        found = self._get([_key(text.context, text.target) for text in texts])
        return {i: _unpack(value) for i, value in found.items()}

    def keep_scores(self, scored: Iterable[tuple[Text, Scores]]) -> None:
        """Keep scores; they are there even if the process is killed right after."""
        self._put([(_key(text.context, text.target), _pack(scores)) for text, scores in scored])

    def answers(self, prompts: Sequence[str]) -> dict[int, str]:
        """Return the answers that are kept, by the number of the prompt."""
        return {i: value.decode() for i, value in self._get([_key(prompt) for prompt in prompts]).items()}

    def keep_answers(self, answers: Iterable[tuple[str, str]]) -> None:
        """Keep (prompt, answer) pairs."""
        self._put([(_key(prompt), answer.encode()) for prompt, answer in answers])

    def spans(self, texts: Sequence[str]) -> dict[int, list[Span]]:
        """Return the spans that are kept, by the number of the text."""
        found = self._get([_key(text) for text in texts])
        return {i: [*map(tuple, np.frombuffer(raw, "<i4").reshape(-1, 2).tolist())] for i, raw in found.items()}

    def keep_spans(self, spans: Iterable[tuple[str, Sequence[Span]]]) -> None:
        """Keep (text, its spans) pairs."""
        self._put([(_key(text), np.array(found, "<i4").tobytes()) for text, found in spans])

    def _get(self, keys: list[bytes]) -> dict[int, bytes]:
        found = {}
        try:
            for i, key in enumerate(keys):
                row = self._file.execute("SELECT value FROM kept WHERE key = ?", (key,)).fetchone()
                if row is not None:
                    found[i] = row[0]
        except sqlite3.Error as error:
            raise self._broken(error) from None
        return found

    def _put(self, pairs: list[tuple[bytes, bytes]]) -> None:
        try:
            with self._file:
                self._file.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", pairs)
        except sqlite3.Error as error:
            raise self._broken(error) from None

    def _broken(self, error: Exception) -> InputError:
        if isinstance(error, OSError | sqlite3.OperationalError):  # no room, no right to write, no answer in time
            return InputError(f"{self.path}: scores cannot be kept there: {error}; set HF_HOME to another folder")
        return InputError(f"{self.path}: {error}; remove this file, it only saves time")


def _key(*texts: str) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.digest()


def _pack(scores: Scores) -> bytes:
    """Likelihoods are computed in float32, so nothing is lost."""
    return scores.nll.astype("<f4").tobytes() + scores.offsets.astype("<i4").tobytes()


def _unpack(raw: bytes) -> Scores:
    tokens = len(raw) // 12
    nll = np.frombuffer(raw, "<f4", tokens).astype(np.float64)
    return Scores(nll, np.frombuffer(raw, "<i4", offset=4 * tokens).reshape(tokens, 2).astype(np.int64))
