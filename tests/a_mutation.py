"""Mutations of a JSON document: each field replaced by an unexpected value, and bytes that are not JSON."""

import copy
import json
from collections.abc import Iterator
from typing import Any

INSTEAD: dict[str, Any] = {
    "null": None,
    "a list": [],
    "a map": {},
    "a list of nulls": [None],
    "a list of maps": [{"a": [{}]}],
    "text": "../../x",
    "no text": "",
    "half of a character": "\ud800",
    "NUL": "a\0b",
    "a negative number": -1,
    "a huge number": 10**400,
    "a fraction": 0.5,
    "no number": float("nan"),
    "infinity": float("inf"),
    "true": True,
}
NO_JSON: dict[str, bytes] = {
    "nothing": b"",
    "cut off": b'{"schema": 1, "ta',
    "nested 100,000 times": b"[" * 100_000,
    "nested and closed": b"[" * 100_000 + b"]" * 100_000,
    "nested maps": b'{"schema":' * 100_000,
    "a number of 5,000 digits": b"1" * 5_000,
    "not a number": b"NaN",
    "zeros": bytes(10),
    "Latin-1": b'{"a": "\xff"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "a key twice": b'{"schema": 1, "schema": []}',
}


def mutations(document: Any) -> Iterator[tuple[str, bytes]]:
    """Yield a name and a changed document: each field removed, or replaced by each value in INSTEAD.

    Only the first entry of a list is changed.
    """
    for place in _places(document):
        name = "/".join(map(str, place))
        *folders, last = place
        for what, value in [("gone", None), *INSTEAD.items()]:
            changed = copy.deepcopy(document)
            at = changed
            for folder in folders:
                at = at[folder]
            if what == "gone":
                del at[last]
            else:
                at[last] = value
            yield f"{name}: {what}", json.dumps(changed).encode()
    yield from ((f"all: {what}", json.dumps(value).encode()) for what, value in INSTEAD.items())
    yield from ((f"bytes: {what}", data) for what, data in NO_JSON.items())


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], (*at, key))
    elif value and isinstance(value, list):
        yield from _places(value[0], (*at, 0))
