"""Mutation of dumps by their pages: these are lost, moved, doubled, and get each other's ids and texts."""

import random
import re
from collections.abc import Callable

_PAGE = re.compile(rb"(?=<page>)|(?=</mediawiki>)|(?=\0)")
_NUMBER = re.compile(rb"(?<=<id>)[0-9]+(?=</id>)|(?<=<ns>)[0-9]+(?=</ns>)")
_TEXT = re.compile(rb"(?<=>)[^<>]+(?=</text>)")
_NUMBERS = (b"1", b"2", b"3", b"12", b"13", b"0", b"999999999999999999")


def mutate(data: bytes, longest: int, seed: int, plain: Callable[[bytes, int], bytes]) -> bytes:
    """Mutate dumps, which NUL bytes cut into parts: half of the time by pages, else as ``plain`` does.

    ``plain`` is libFuzzer's own way.
    """
    chosen = random.Random(seed)
    if chosen.random() < 0.5:
        return plain(data, longest)
    for _ in range(chosen.choice((1, 1, 2, 4))):
        data = _changed(data, chosen)
    return data[:longest]


def _changed(data: bytes, chosen: random.Random) -> bytes:
    how = chosen.randrange(6)
    if how == 0:  # another part begins, within a page or between two
        at = chosen.choice([found.start() for found in _PAGE.finditer(data)] + [chosen.randrange(len(data) + 1)])
        return data[:at] + b"\0" + data[at:]
    if how == 1:
        return _replaced(data, _NUMBER, chosen.choice(_NUMBERS), chosen)
    if how == 2 and (texts := _TEXT.findall(data)):
        return _replaced(data, _TEXT, chosen.choice(texts), chosen)
    pieces = _PAGE.split(data)
    at, other = chosen.randrange(len(pieces)), chosen.randrange(len(pieces))
    if how == 3:
        pieces.insert(at, pieces[other])
    elif how == 4:
        del pieces[at]
    else:
        pieces[at], pieces[other] = pieces[other], pieces[at]
    return b"".join(pieces)


def _replaced(data: bytes, what: re.Pattern[bytes], by: bytes, chosen: random.Random) -> bytes:
    found = list(what.finditer(data))
    if not found:
        return data
    one = chosen.choice(found)
    return data[: one.start()] + by + data[one.end() :]
