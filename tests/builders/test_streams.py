"""Compressed files: bounded pieces, splitting, and every kind of damage."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import random
from pathlib import Path

import pytest

from temporalwiki.builders import streams
from temporalwiki.builders.errors import InputError
from temporalwiki.builders.streams import compression, digest, pieces, split

COMPRESS = {"bz2": bz2.compress, "gz": gzip.compress}
PARTS = [bytes(random.Random(i).choices(b"abcdefghij\n", k=30_000)) for i in range(5)]


def write(tmp_path: Path, kind: str, parts: list[bytes] = PARTS) -> Path:
    path = tmp_path / f"d.{kind}"
    path.write_bytes(b"".join(COMPRESS[kind](part) for part in parts))
    return path


def text_of(path: Path, **options: object) -> bytes:
    return b"".join(piece.data for piece in pieces(path, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", COMPRESS)
def test_all_streams_are_read_and_each_can_be_started_from(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind)
    assert text_of(path) == b"".join(PARTS)
    starts = list(dict.fromkeys(piece.stream for piece in pieces(path)))
    assert len(starts) == len(PARTS)
    for number, start in enumerate(starts):
        assert text_of(path, start=start) == b"".join(PARTS[number:])


@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize("read", [1, 7, 1000])
def test_how_much_is_read_at_a_time_changes_nothing(
    tmp_path: Path, kind: str, read: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "READ", read)
    monkeypatch.setattr(streams, "OUT", 100 * read)
    parts = [part[:300] for part in PARTS]
    assert text_of(write(tmp_path, kind, parts)) == b"".join(parts)


@pytest.mark.parametrize("kind", COMPRESS)
def test_split_gives_starts_of_streams(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind)
    starts = {piece.stream for piece in pieces(path)}
    offsets = split(path, 100)
    assert offsets[0] == 0
    assert set(offsets) == starts


@pytest.mark.parametrize("kind", COMPRESS)
def test_one_stream_is_one_range(tmp_path: Path, kind: str) -> None:
    assert split(write(tmp_path, kind, [b"".join(PARTS)]), 1000) == [0]


@pytest.mark.parametrize("kind", COMPRESS)
def test_a_file_cut_anywhere_inside_a_stream_is_refused(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind)
    whole = path.read_bytes()
    boundaries = {piece.stream for piece in pieces(path)}
    for cut in (1, 5, len(whole) // 2, len(whole) - 1):
        assert cut not in boundaries
        path.write_bytes(whole[:cut])
        with pytest.raises(InputError, match=r"cut off inside the|not a .* file") as error:
            text_of(path)
        assert str(path) in str(error.value)
    path.write_bytes(whole[:-1])
    assert b"".join(PARTS).startswith(text_of(path, allow_truncated=True)[:30_000])


@pytest.mark.parametrize("kind", COMPRESS)
def test_damage_is_refused_even_where_cuts_are_allowed(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind)
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    path.write_bytes(whole)
    with pytest.raises(InputError, match="damaged"):
        text_of(path, allow_truncated=True)


@pytest.mark.parametrize("kind", COMPRESS)
def test_a_wrong_checksum_is_damage(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind, PARTS[:1])
    whole = bytearray(path.read_bytes())
    whole[-6 if kind == "gz" else 10] ^= 0x01
    path.write_bytes(whole)
    with pytest.raises(InputError, match="damaged"):
        text_of(path)


@pytest.mark.parametrize("kind", COMPRESS)
def test_what_follows_the_last_stream_is_damage(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind)
    path.write_bytes(path.read_bytes() + b"<html>")
    with pytest.raises(InputError, match="damaged"):
        text_of(path)


def test_zeros_between_gzip_members_are_padding(tmp_path: Path) -> None:
    path = write(tmp_path, "gz")
    path.write_bytes(path.read_bytes() + b"\0" * 5_000_000)  # as a preallocated download leaves them
    assert text_of(path) == b"".join(PARTS)


def test_a_bomb_comes_in_bounded_pieces(tmp_path: Path) -> None:
    for kind in COMPRESS:
        path = write(tmp_path, kind, [bytes(200 << 20)])
        assert path.stat().st_size < 1 << 20
        assert max(len(piece.data) for piece in pieces(path)) <= streams.OUT


NOT_WHAT_IT_SAYS = {
    "d.bz2": b"\x1f\x8b\x08\0",
    "d.gz": b"BZh9",
    "e.bz2": b"<html>",
    "empty.bz2": b"",
    "d.xml": b"7z\xbc\xaf\x27\x1c",
}


@pytest.mark.parametrize("name", NOT_WHAT_IT_SAYS)
def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(NOT_WHAT_IT_SAYS[name])
    with pytest.raises(InputError, match=name):
        compression(path)


def test_digests_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"abc")
    assert digest(path, "sha1") == "a9993e364706816aba3e25717850c26c9cd0d89d"
    assert digest(path, "sha256") == hashlib.sha256(b"abc").hexdigest()
