"""JSON files, checked against a type when they are read and written whole or not at all; YAML of this package."""

import hashlib
import json
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from temporalwiki.base.errors import InputError, in_one_line
from temporalwiki.base.files import LARGEST_TEXT, read_small, whole_file

FINGERPRINT = "[0-9a-f]{16}"  # a pattern that every fingerprint fits

T = TypeVar("T")


def read_json(path: Path, kind: type[T], what: str = "JSON that temporalwiki can use", most: int = LARGEST_TEXT) -> T:
    """Return the content of a JSON file of at most ``most`` bytes as an object of type ``kind``.

    Raises InputError if the file cannot be read, is not JSON, or does not fit. The message names the file, ``what`` it
    should have been, and what is wrong.
    """
    try:
        return msgspec.json.decode(read_small(path, most), type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{path}: not {what} ({in_one_line(reason)})") from None


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file whole or not at all, with sorted keys."""
    with whole_file(path) as part:
        part.write_text(json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file of this package."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where PyYAML has it
    return loader(path.read_text("utf-8")).get_single_data()  # both are safe


def fingerprint(*what: Any) -> str:
    """Return a short hash of content, which is the same for everything that is equal as JSON."""
    text = json.dumps(what, sort_keys=True, default=_plain)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no fingerprint")
