"""Mutate JSON by its structure: the result is still JSON, with unexpected content."""

import copy
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

_INSTEAD: tuple[Any, ...] = (
    *(None, True, -1, 0.5, 10**400, float("nan"), float("inf"), [], {}, [None], [{"a": [{}]}]),
    *("", "../../x", "\ud800", "nul\0nul"),
)
HOSTILE = (
    *_INSTEAD,
    *(0, 1.5, 1e308, 2**31, 2**63, -(2**63) - 1, 10**30, "0", [[]], {"": {}}),
    *("a/b", "/etc/passwd", "C:\\x", ".", "a\nb", "a\r\nb", "---\n", "\u2028", "\u202e"),
    *("\x85", "<script>x</script>", "{{x}}", "${x}", "`x`", "| a |", "=1+1", "@x", "'", '"', "!!python/object:x"),
    *("&a *a", "a: b", "\U0001f600", "e\u0301", "ﬀ", "x" * 300, "null", "true", "1e5", "2021-10-01", "nan"),
    *("Q0", "P1", "%s", "+99999999999999999-00-00T", "20211101", "99999999", "0" * 40, "-", "config"),
)
_NO_JSON = (
    *(b"", b'{"schema": 1, "ta', b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b'{"schema":' * 100_000),
    *(b"1" * 5_000, b"NaN", bytes(10), b'{"a": "\xff"}', '{"a": 1}'.encode("utf-16"), b'{"schema": 1, "schema": []}'),
)


def every_mutation(data: bytes) -> Iterator[bytes]:
    """Yield JSON with each field removed or replaced by a wrong value, each wrong value by itself, and broken JSON.

    Of a list, only the first entry is changed.
    """
    for place in _places(json.loads(data)):
        for value in (..., *_INSTEAD):
            changed = json.loads(data)
            at, *keys = changed, *place[:-1]
            for key in keys:
                at = at[key]
            if value is ...:
                del at[place[-1]]
            else:
                at[place[-1]] = value
            yield json.dumps(changed).encode()
    yield from (json.dumps(value).encode() for value in _INSTEAD)
    yield from _NO_JSON


def _places(value: Any) -> Iterator[tuple[Any, ...]]:
    keys = value if isinstance(value, dict) else range(len(value[:1])) if isinstance(value, list) else ()
    for key in keys:
        yield (key,)
        yield from ((key, *inner) for inner in _places(value[key]))


def mutate(data: bytes, longest: int, seed: int, plain: Callable[[bytes, int], bytes]) -> bytes:
    """Mutate JSON or lines of it: half of the time by its structure, otherwise (and other data) as ``plain`` does.

    What stands before the JSON in a line stays. ``plain`` is libFuzzer's own way.
    """
    chosen = random.Random(seed)
    if chosen.random() < 0.5:
        return plain(data, longest)
    lines = data.split(b"\n")
    at = chosen.randrange(len(lines))
    before, text, comma = re.fullmatch(rb"([^\[{]*)(.*?)(,?)", lines[at], re.DOTALL).groups()  # type: ignore[union-attr]
    try:
        tree = json.loads(text)
        for _ in range(chosen.choice((1, 1, 2, 4))):
            tree = _changed(tree, chosen)
        changed = json.dumps(tree, ensure_ascii=chosen.random() < 0.5, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return plain(data, longest)
    lines[at] = before + changed + comma
    return b"\n".join(lines)[:longest]


def _changed(tree: Any, chosen: random.Random) -> Any:
    """Return the tree with one change at one place."""
    places: list[tuple[Any, Any]] = []
    todo = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, dict | list):
            here = list(node) if isinstance(node, dict) else range(len(node))
            places += [(node, key) for key in here]
            todo += [node[key] for key in here]
    if not places:
        return _hostile(chosen)
    node, key = chosen.choice(places)
    other, value_key = chosen.choice(places)
    how = chosen.randrange(6)
    if how == 0:
        del node[key]
    elif how == 1:
        node[key] = copy.deepcopy(other[value_key])  # a copy: no value may contain itself
    elif how == 2 and isinstance(node, dict):
        node[str(_hostile(chosen))] = node.pop(key)
    elif how == 3 and isinstance(node, list):
        node.insert(key, _hostile(chosen))
    elif how == 4 and isinstance(node[key], str):
        text, place = node[key], chosen.randrange(len(node[key]) + 1)
        node[key] = text[:place] + str(_hostile(chosen)) + text[place:]
    else:
        node[key] = _hostile(chosen)
    return tree


def _hostile(chosen: random.Random) -> Any:
    return copy.deepcopy(chosen.choice(HOSTILE))
