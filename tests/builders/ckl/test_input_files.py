"""One JSON object per line; errors name the file and the line."""

import gzip
import json
import tracemalloc
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporalwiki.base.errors import InputError
from temporalwiki.builders.ckl import input_files


class Named(msgspec.Struct):
    name: str
    number: int | None = None


def read(path: Path) -> list[tuple[int, str, int | None]]:
    return [(line, record.name, record.number) for line, record in input_files.records(path, Named)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b'{"name": "a"}\n{"name": "b", "number": 2}\n', [(1, "a", None), (2, "b", 2)]),
        (b'{"name": "a"}', [(1, "a", None)]),
        (b'\n \t\n{"name": "a"}\r\n\n', [(3, "a", None)]),
        (b'\xef\xbb\xbf{"name": "a"}\n', [(1, "a", None)]),
        (b'{"other": [[{"name": 1}]], "name": "\\u0000\\ud83c\\udf89\\n"}\n', [(1, "\0🎉\n", None)]),
    ],
)
def test_lines_and_what_they_hold(data: bytes, expected: list[object], tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_bytes(data)
    assert read(tmp_path / "f.jsonl") == expected


@given(names=st.lists(st.text()))
def test_every_text_comes_back(names: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("lines") / "f.jsonl"
    for ascii_only in (True, False):
        path.write_text("".join(json.dumps({"name": name}, ensure_ascii=ascii_only) + "\n" for name in names), "utf-8")
        assert read(path) == [(line, name, None) for line, name in enumerate(names, 1)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"name": "a"', "truncated"),
        (b'{"name": "a"} {"name": "b"}', "trailing"),
        (b"[]", "array"),
        (b"{}", "`name`"),
        (b'{"name": null}', "null"),
        (b'{"name": "a", "number": "2"}', r"`\$\.number`"),
        (b'{"name": "\xff"}', "utf-8"),
        (b'{"name": "a", "other": "\\ud800 and more"}', "malformed"),
        (b'{"name": "a", "other": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "recursion"),
    ],
)
def test_what_is_no_such_object_is_named_with_its_line(line: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "f.jsonl").write_bytes(b'{"name": "a"}\n\n' + line + b"\n")
    with pytest.raises(InputError, match=rf"f\.jsonl: line 3: .*{said}"):
        read(tmp_path / "f.jsonl")


def test_the_longest_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_files, "LONGEST_LINE", 20)
    (tmp_path / "f.jsonl").write_bytes(b'{"name": "1234567"}\n{"name": "12345678"}')
    assert [name for _, name, _ in read(tmp_path / "f.jsonl")] == ["1234567", "12345678"]
    (tmp_path / "f.jsonl").write_bytes(b'{"name": "1234567"}\n{"name": "12345678"}\n')
    with pytest.raises(InputError, match=r"f\.jsonl: line 2: more than"):
        read(tmp_path / "f.jsonl")


@pytest.mark.fault("too little memory", "ckl: a line has no end", "it is not read into memory")
def test_a_line_without_an_end_is_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_files, "LONGEST_LINE", 1 << 20)
    with (tmp_path / "f.jsonl").open("wb") as file:
        file.truncate(64 << 20)  # sparse: it takes no disk space
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"f\.jsonl: line 1: more than 1 MB"):
            read(tmp_path / "f.jsonl")
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_a_compressed_file(tmp_path: Path) -> None:
    data = gzip.compress(b'\xef\xbb\xbf{"name": "a"}\n\n') + gzip.compress(b'{"name": "b"}\n')
    (tmp_path / "f.jsonl.gz").write_bytes(data)
    assert read(tmp_path / "f.jsonl.gz") == [(1, "a", None), (3, "b", None)]
    for wrong in (data[:-5], data[:40] + b"\xff" + data[41:], b'{"name": "a"}'):
        (tmp_path / "f.jsonl.gz").write_bytes(wrong)
        with pytest.raises(InputError, match=r"f\.jsonl\.gz: damaged or cut off: .*; fetch it again"):
            read(tmp_path / "f.jsonl.gz")


def test_what_is_to_be_done_is_the_callers(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"[]\n")
    with pytest.raises(InputError, match=r"f: line 1: .*; ask Ann$"):
        list(input_files.records(tmp_path / "f", Named, to_do="ask Ann"))
