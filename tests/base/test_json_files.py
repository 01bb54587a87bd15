"""JSON files: checked by type, written whole, and named by their content."""

from pathlib import Path

import msgspec
import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.base.json_files import fingerprint, read_json, write_json


class Row(msgspec.Struct):
    name: str
    size: int = 0


def test_json_is_written_sorted_and_in_utf_8(tmp_path: Path) -> None:
    write_json(tmp_path / "a" / "b.json", {"é": 1, "a": [2]})
    assert (tmp_path / "a" / "b.json").read_bytes() == '{\n "a": [\n  2\n ],\n "é": 1\n}\n'.encode()


def test_a_file_becomes_its_type(tmp_path: Path) -> None:
    (tmp_path / "row.json").write_text('{"name": "a", "size": 2, "unknown": [null]}')
    assert read_json(tmp_path / "row.json", Row) == Row("a", 2)


BAD = {
    "not JSON": b"{",
    "not UTF-8": b'{"name": "\xff"}',
    "empty": b"",
    "a list": b"[]",
    "another type": b'{"name": 3}',
    "without a name": b"{}",
    "a number too large": b'{"name": "a", "size": 1e999}',
    "nested too deep": b'{"unknown": ' + b"[" * 100_000,
}


@pytest.mark.parametrize("case", BAD)
def test_bad_json_is_one_line_that_names_the_file(tmp_path: Path, case: str) -> None:
    path = tmp_path / "row.json"
    path.write_bytes(BAD[case])
    with pytest.raises(InputError, match=rf"\A{path}: not a row \(.+\)\Z"):
        read_json(path, Row, "a row")


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"\A{tmp_path}/none: not a row \(No such file or directory\)\Z"):
        read_json(tmp_path / "none", Row, "a row")


def test_a_fingerprint_depends_on_content_only() -> None:
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})
    with pytest.raises(TypeError):
        fingerprint(object())
