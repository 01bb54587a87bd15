"""Near duplicates among texts: MinHash over word 5-grams, found by locality-sensitive hashing.

rensa computes the signatures. Their bands are in SQLite on disk, so memory does not grow with the number of texts.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import numpy as np
import regex

GRAM = 5  # words
_THRESHOLD = 0.8
_PERMUTATIONS = 128  # the estimate of a similarity of 0.8 has a standard error of 0.035
_BANDS, _ROWS = 14, 9  # some band is equal in 87 % of the pairs with a similarity of 0.8, and in 3 % with 0.5
_CACHE = 64 << 10  # KiB of SQLite's pages in memory

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+")


class NearDuplicates:
    """The articles that were kept; see ``near_duplicates``."""

    def __init__(self, database: sqlite3.Connection) -> None:
        from rensa import RMinHash

        self._database, self._minhash = database, RMinHash
        self._texts = 0
        # the keys of a text are hashes of its address, of its content, and of the bands of its signature
        database.execute("CREATE TABLE keys (hash INTEGER, text INTEGER, PRIMARY KEY (hash, text)) WITHOUT ROWID")
        database.execute("CREATE TABLE signatures (text INTEGER PRIMARY KEY, signature BLOB)")

    def seen(self, url: str, text: str) -> str | None:
        """Return how an earlier article equals this one: "same address", "same text" or "near duplicate".

        Without such an article, remember this one and return None. Texts are compared without case, punctuation and
        white space.
        """
        words = _WORD.findall(text.lower())
        address, content = _hash(b"address " + url.encode()), _hash(b"text " + " ".join(words).encode())
        if self._signatures([address]):
            return "same address"
        if self._signatures([content]):
            return "same text"
        made = self._minhash(num_perm=_PERMUTATIONS, seed=0)
        made.update([" ".join(words[at : at + GRAM]) for at in range(max(len(words) - GRAM, 0) + 1)])
        signature = np.asarray(made.digest(), "<u4")  # little-endian: the bands hash these bytes, on any machine
        bands = [_hash(b"%d " % band + signature[band * _ROWS :][:_ROWS].tobytes()) for band in range(_BANDS)]
        if any((np.frombuffer(other, "<u4") == signature).mean() >= _THRESHOLD for other in self._signatures(bands)):
            return "near duplicate"
        keys = [(key, self._texts) for key in (address, content, *bands)]
        self._database.executemany("INSERT INTO keys VALUES (?, ?)", keys)
        self._database.execute("INSERT INTO signatures VALUES (?, ?)", (self._texts, signature.tobytes()))
        self._texts += 1
        return None

    def _signatures(self, keys: list[int]) -> list[bytes]:
        """Return the signatures of the texts that have any of the keys."""
        marks = ", ".join("?" * len(keys))
        query = f"SELECT signature FROM signatures WHERE text IN (SELECT text FROM keys WHERE hash IN ({marks}))"
        return [signature for (signature,) in self._database.execute(query, keys)]


def _hash(data: bytes) -> int:
    """Return a hash that fits into a signed integer of SQLite."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little", signed=True)


@contextlib.contextmanager
def near_duplicates(folder: Path) -> Iterator[NearDuplicates]:
    """Yield a finder of texts whose sets of word 5-grams have a Jaccard similarity of about 0.8 or more.

    The similarity is estimated: few pairs well above the threshold are missed, and hardly any pair well below it is
    found. A temporary file in ``folder`` takes about 0.9 KB per text.
    """
    path = folder / "near-duplicates.sqlite"
    path.unlink(missing_ok=True)
    try:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
            # temporary: it need not survive a crash
            for setting in ("journal_mode = OFF", "synchronous = OFF", f"cache_size = -{_CACHE}"):
                database.execute(f"PRAGMA {setting}")
            database.execute("BEGIN")
            yield NearDuplicates(database)
    finally:
        path.unlink(missing_ok=True)
