"""Keep what people wrote into a published card when the next publish writes the card again.

Two things are kept: the text between the marks, and the keys of the header that a person has changed. A comment at the
end of each card has a fingerprint of every key as temporalwiki wrote it; a person has changed the keys whose
fingerprint is another one. A published card without that comment is not ours, and nothing of it is kept.
"""

import json
import math
import re
from typing import Any

import yaml

from temporalwiki.base.json_files import fingerprint

MARKS = "<!-- yours: the next publish keeps the text between these two lines -->\n<!-- /yours -->"

_YOURS = re.compile(r"(<!-- yours\b[^>]*-->\n)(.*?)(<!-- /yours -->)", re.DOTALL)
_WRITTEN = re.compile(r"<!-- written by temporalwiki: (\{[^{}]*\}) -->")
_HEADER = re.compile(r"\A---[^\S\n]*\n(.*?)\n---\s*(?:\n|\Z)", re.DOTALL)
_LARGEST_HEADER = 1_000_000  # values
_OURS = ("configs", "dataset_info", "model-index", "license")  # facts about the files, so each publish writes them


def signed(card: str) -> str:
    """Return a card with the comment that lets the next publish see what people have changed."""
    written = {key: _fingerprint(value) for key, value in read_header(card.encode()).items() if key not in _OURS}
    return f"{card.rstrip()}\n\n<!-- written by temporalwiki: {json.dumps(written, sort_keys=True)} -->\n"


def keep_edits(card: str, published: bytes | None) -> str:
    """Return a new card with what people wrote into the ``published`` one."""
    text = (published or b"").decode("utf-8", "replace").replace("\r\n", "\n")
    written, before, found = _written(card), _written(text), _HEADER.match(card)
    if written is None or before is None or found is None:
        return card
    there, body = read_header(published), card[found.end() :]
    changed = {key: there[key] for key in there if key in written and _fingerprint(there[key]) != before.get(key)}
    yours = "".join(f"{kept[2].strip()}\n" for kept in _YOURS.finditer(text) if kept[2].strip())
    body = _YOURS.sub(lambda marks: marks[1] + yours + marks[3], body, count=1)
    if not changed:
        return card[: found.end()] + body
    # ASCII: huggingface_hub writes some characters unescaped that are read back as others (U+0085)
    style = None if "- {" in found[1] else False  # the header of a dataset, with a line a column, has a largest size
    header = yaml.safe_dump(read_header(card.encode()) | changed, sort_keys=False, width=120, default_flow_style=style)
    return f"---\n{header}---\n\n{body}"


def read_header(card: bytes | None) -> dict[str, Any]:
    """Return the YAML header of a card; empty if the Hub would not accept it."""
    found = _HEADER.match((card or b"").decode("utf-8", "replace").replace("\r\n", "\n"))
    try:
        header = yaml.safe_load(found[1]) if found else None
        if _size(header, {}) > _LARGEST_HEADER:
            return {}
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return {}
    return {str(key): value for key, value in header.items()} if isinstance(header, dict) else {}


def _written(text: str) -> dict[str, Any] | None:
    """Return the fingerprints in the last comment of a card, or None if it has no such comment."""
    comments = _WRITTEN.findall(text)
    try:
        return dict(json.loads(comments[-1])) if comments else None
    except ValueError:
        return None


def _fingerprint(value: Any) -> str:
    return fingerprint(yaml.safe_dump(value))  # YAML has dates, bytes and sets, which JSON lacks


def _size(value: Any, known: dict[int, float]) -> float:
    """Return the number of values once all YAML aliases are written out; infinite for a value that contains itself."""
    if not isinstance(value, list | dict):
        return 1
    if id(value) not in known:
        known[id(value)] = math.inf
        parts = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_size(part, known) for part in parts)
    return known[id(value)]
