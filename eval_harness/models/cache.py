"""A cache on disk of the scores and answers of models, so that no model is asked the same thing twice."""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import torch
import transformers

from temporalwiki.base.errors import InputError
from temporalwiki.base.json_files import fingerprint
from temporalwiki.eval_harness.scoring import Text, TokenScores

_PATIENCE = 60.0  # seconds to wait while another process writes


def cache_folder() -> Path:
    """Return the folder of all caches; it is next to the cache of ``datasets``."""
    return Path(datasets.config.HF_CACHE_HOME) / "temporalwiki" / "scores"


class ScoreCache:
    """An SQLite file with the scores of one model revision under one policy. Several processes may write to it."""

    def __init__(self, folder: Path, revision: str, policy: dict[str, Any], local: bool = True) -> None:
        """Open the file; ``policy`` holds all that the numbers depend on, except the model and the text.

        If the model is ``local``, the numbers also depend on the versions of this machine's libraries.
        """
        libraries = {"torch": torch.__version__, "transformers": transformers.__version__} if local else {}
        self.path = folder / f"{fingerprint(revision, policy, libraries)}.sqlite"
        with self._named():
            folder.mkdir(parents=True, exist_ok=True)
            # a thread of a notebook may use it while this one waits
            self._file = sqlite3.connect(self.path, timeout=_PATIENCE, check_same_thread=False)
            with self._file:
                columns = "key BLOB PRIMARY KEY, value BLOB"
                self._file.execute(f"CREATE TABLE IF NOT EXISTS kept ({columns}) WITHOUT ROWID")

    def scores(self, texts: Sequence[Text]) -> dict[int, TokenScores]:
        """Return the cached scores: index of the text -> scores."""
        found = {}
        for i, raw in self._get([_key(text.context, text.target) for text in texts]).items():
            nll = np.frombuffer(raw, "<f4", len(raw) // 12).astype(np.float64)
            found[i] = TokenScores(nll, np.frombuffer(raw, "<i4", offset=4 * len(nll)).reshape(-1, 2).astype(np.int64))
        return found

    def add_scores(self, scored: Iterable[tuple[Text, TokenScores]]) -> None:
        """Add scores to the file; they survive a kill right after."""
        pairs = []
        for text, scores in scored:  # likelihoods are computed in float32, so nothing is lost
            raw = scores.nll.astype("<f4").tobytes() + scores.offsets.astype("<i4").tobytes()
            pairs.append((_key(text.context, text.target), raw))
        self._put(pairs)

    def answers(self, prompts: Sequence[str]) -> dict[int, str]:
        """Return the cached answers: index of the prompt -> answer."""
        return {i: value.decode() for i, value in self._get([_key(prompt) for prompt in prompts]).items()}

    def add_answers(self, answers: Iterable[tuple[str, str]]) -> None:
        """Add (prompt, answer) pairs to the file. Halves of surrogate pairs, which JSON can hold, become "?"."""
        self._put([(_key(prompt), answer.encode(errors="replace")) for prompt, answer in answers])

    def spans(self, texts: Sequence[str]) -> dict[int, list[tuple[int, int]]]:
        """Return the cached spans: index of the text -> spans."""
        found = self._get([_key(text) for text in texts])
        return {i: [*map(tuple, np.frombuffer(raw, "<i4").reshape(-1, 2).tolist())] for i, raw in found.items()}

    def add_spans(self, spans: Iterable[tuple[str, Sequence[tuple[int, int]]]]) -> None:
        """Add (text, its spans) pairs to the file."""
        self._put([(_key(text), np.array(found, "<i4").tobytes()) for text, found in spans])

    def _get(self, keys: list[bytes]) -> dict[int, bytes]:
        with self._named():
            rows = (self._file.execute("SELECT value FROM kept WHERE key = ?", (key,)).fetchone() for key in keys)
            return {i: row[0] for i, row in enumerate(rows) if row is not None}

    def _put(self, pairs: list[tuple[bytes, bytes]]) -> None:
        with self._named(), self._file:
            self._file.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", pairs)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Raise the errors of the block as InputErrors that name the file."""
        try:
            yield
        except (OSError, sqlite3.OperationalError) as error:  # disk full, no permission, locked for too long
            raise InputError(
                f"{self.path}: cannot cache scores there: {error}; set HF_HOME to another folder"
            ) from None
        except sqlite3.Error as error:
            raise InputError(f"{self.path}: {error}; remove this file: it is only a cache") from None


def _key(*texts: str) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.digest()
