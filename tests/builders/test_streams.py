"""Compressed files: bounded pieces, splitting, and every kind of damage."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import os
import random
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.builders import streams
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


@pytest.mark.parametrize("kind", [*COMPRESS, "listed bz2", "xml"])
def test_what_was_read_makes_room_in_the_systems_cache_and_what_other_tasks_read_does_not(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"d.{kind.removeprefix('listed ')}"
    compress = COMPRESS.get(path.suffix[1:], bytes)
    streams_of = [compress(random.Random(i).randbytes(40_000)) for i in range(5)]
    path.write_bytes(b"".join(streams_of))
    start = len(streams_of[0])
    ends: list[int] = []
    asked: list[tuple[bool, int, int, bool]] = []  # looked at behind it: what fails in a decoder, another one mends

    def forget(file: int, first: int, length: int, advice: int) -> None:
        behind = start + length == os.lseek(file, 0, os.SEEK_CUR)
        asked.append((os.path.samestat(os.fstat(file), path.stat()), first, advice, behind))
        ends.append(start + length)
        raise OSError(22, "as on a file system that cannot do it")

    monkeypatch.setattr(os, "posix_fadvise", forget, raising=False)
    monkeypatch.setattr(os, "POSIX_FADV_DONTNEED", 4, raising=False)
    monkeypatch.setattr(streams, "READ", 1000)
    for size in ("OUT", "BLOCKS"):
        monkeypatch.setattr(streams, size, 1000)
    monkeypatch.setattr(streams, "_CACHED", 10_000)
    listed = kind.startswith("listed")
    text = text_of(path, start=start, end=path.stat().st_size, listed=listed)
    assert text == b"".join(random.Random(i).randbytes(40_000) for i in range(1, 5))
    assert set(asked) == {(True, start, os.POSIX_FADV_DONTNEED, True)}
    if kind in ("bz2", "xml"):  # the faster decoders read as much at a time as they like
        assert ends == sorted(set(ends))
        assert (
            max(later - end for end, later in zip([start, *ends], [*ends, path.stat().st_size], strict=True)) <= 11_000
        )


def member(flags: int, data: bytes) -> bytes:
    """A gzip member with the header's optional fields that ``flags`` name (RFC 1952)."""
    head = b"\x1f\x8b\x08" + bytes([flags]) + bytes(6)
    head += b"\5\0extra" * bool(flags & 4) + b"a name\0" * bool(flags & 8) + b"a comment\0" * bool(flags & 16)
    head += (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little") * bool(flags & 2)
    return head + gzip.compress(data, mtime=0)[10:]


@pytest.mark.parametrize("flags", range(32))
def test_a_gzip_header_may_be_cut_anywhere(tmp_path: Path, flags: int, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "dump.gz"
    path.write_bytes(member(flags, b"one " * 9) + member(flags, b"") + member(flags, b"two " * 9))
    assert gzip.decompress(path.read_bytes()) == b"one " * 9 + b"two " * 9
    for read in range(1, 60):
        monkeypatch.setattr(streams, "READ", read)
        assert both_ways(path) == [b"one " * 9 + b"two " * 9] * 2


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
    assert both_ways(path) == [b"".join(PARTS)] * 2


@pytest.mark.fault(
    "bomb", "a few bytes of bz2 or gz that become hundreds of MB, in a dump", "they come in bounded pieces"
)
def test_a_bomb_comes_in_bounded_pieces(tmp_path: Path) -> None:
    for kind in COMPRESS:
        path = write(tmp_path, kind, [bytes(40 << 20)])
        assert path.stat().st_size < 1 << 20
        for end in (None, path.stat().st_size):
            largest = streams.BLOCKS if kind == "bz2" and end else streams.OUT
            assert max(len(piece.data) for piece in pieces(path, end=end, listed=True)) <= largest


def both_ways(path: Path, end: int | None = None, allow_truncated: bool = False) -> list[bytes | str]:
    """What a file decodes to, or the error, stream by stream and with the faster decoder."""
    found: list[bytes | str] = []
    for options in ({}, {"end": path.stat().st_size if end is None else end, "listed": True}):
        try:
            found.append(text_of(path, allow_truncated=allow_truncated, **options))
        except InputError as error:
            found.append(str(error))
    return found


SHORT = [b"", b"a", b"", bytes(random.Random(1).choices(b"abcdef \n", k=400)), b"x" * 9000, b"z"]


@pytest.mark.parametrize("kind", COMPRESS)
def test_with_an_end_what_lies_before_it_is_of_the_first_stream_and_nothing_is_lost(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind, SHORT)
    starts = [0]
    for part in SHORT:
        starts.append(starts[-1] + len(COMPRESS[kind](part)))
    for number, start in enumerate(starts[:-1]):
        for last, end in enumerate(starts[number + 1 :], number + 1):
            found = list(pieces(path, start, end=end, listed=True))
            assert b"".join(piece.data for piece in found if piece.stream < end) == b"".join(SHORT[number:last])
            assert b"".join(piece.data for piece in found if piece.stream >= end) == b"".join(SHORT[last:])


@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize("allow_truncated", [False, True])
def test_a_file_cut_anywhere_is_the_same_to_the_faster_decoder(
    tmp_path: Path, kind: str, allow_truncated: bool
) -> None:
    path = write(tmp_path, kind, SHORT)
    whole = path.read_bytes()
    for cut in range(4, len(whole)):
        path.write_bytes(whole[:cut])
        slow, fast = both_ways(path, allow_truncated=allow_truncated)
        assert slow == fast, cut


BEHIND = {
    "bz2": [b"\0", b"<", b"B", b"BZh9", b"<html>", b"BZh91AY&SY", bz2.compress(b"a")[:-1]],
    "gz": [b"<", b"\x1f", b"\x1f\x8b\x08", b"<html>", bytes(99) + b"a", gzip.compress(b"a")[:-1]],
}


@pytest.mark.parametrize(("kind", "end"), [(kind, end) for kind, ends in BEHIND.items() for end in ends])
def test_what_follows_the_last_stream_is_damage_to_the_faster_decoder_too(
    tmp_path: Path, kind: str, end: bytes
) -> None:
    path = write(tmp_path, kind, SHORT)
    path.write_bytes(path.read_bytes() + end)
    slow, fast = both_ways(path)
    assert slow == fast
    assert isinstance(fast, str)


@pytest.mark.parametrize("place", range(0, 96, 7))
def test_a_damaged_gzip_member_is_the_same_to_the_faster_decoder(tmp_path: Path, place: int) -> None:
    """In its header, its data and its checksum, of the first member and of later ones."""
    path = write(tmp_path, "gz", SHORT)
    whole = bytearray(path.read_bytes())
    whole[-1 - place * (len(whole) - 1) // 96] ^= 0x55
    path.write_bytes(whole)
    slow, fast = both_ways(path)
    assert slow == fast


# A block of bz2 that ends a process which gives it to the faster decoder: its own check of an index fails.
ENDS_THE_PROCESS = (
    b'BZh11AY&SY\xd1\xd6\xd9`\x00\x00\x06Y\x80\x00\x10\x00\x00\x80\x05"\x80@\x00 \x001\x0c\x08+\xfdR\x06Y\x80'
    b"\x00\x00\x00\x10E8P\x90g~\x1c\x88"
)


@pytest.mark.fault(
    "cut dump", "damaged bz2 that would end the process in the faster decoder", "one line names the file and the byte"
)
def test_only_a_file_that_its_maker_has_listed_is_given_to_the_faster_decoder(tmp_path: Path) -> None:
    path = tmp_path / "d.bz2"
    path.write_bytes(ENDS_THE_PROCESS)
    with pytest.raises(InputError, match=r"d\.bz2: damaged bz2 data in the stream that starts at byte 0"):
        text_of(path, end=path.stat().st_size)


@pytest.mark.parametrize("kind", COMPRESS)
def test_damage_behind_pieces_that_are_out_already_is_found_once_and_nothing_comes_twice(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in ("OUT", "BLOCKS"):
        monkeypatch.setattr(streams, size, 1000)
    path = write(tmp_path, kind)
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    before: list[bytes] = []
    with pytest.raises(InputError, match=f"cut off inside the {kind} stream"):
        before.extend(piece.data for piece in pieces(path, end=len(whole) - 30, listed=True))
    path.write_bytes(whole[:-30])
    assert b"".join(PARTS).startswith(b"".join(before))
    assert len(b"".join(before)) >= len(b"".join(PARTS[:-1]))
    assert both_ways(path, allow_truncated=True)[0] == both_ways(path, allow_truncated=True)[1]


def test_decoders_that_disagree_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces are out before the faster decoder fails; what the other one makes of them must be the same."""
    for size in ("OUT", "BLOCKS"):
        monkeypatch.setattr(streams, size, 1000)
    monkeypatch.setattr(streams, "_ends_at", lambda *_: False)
    path = write(tmp_path, "bz2")
    assert text_of(path, end=path.stat().st_size, listed=True) == b"".join(PARTS)
    monkeypatch.setattr(streams.isal_zlib, "crc32", lambda data, before: before + len(set(data)) + (not before))
    again = streams._from(path, iter([streams.Piece(0, b"abc")]), 3, 1)
    with pytest.raises(InputError, match="two decoders read the bz2 data near byte"):
        list(again)


def test_an_error_that_nobody_catches_while_a_file_is_open_ends_the_process_as_usual(tmp_path: Path) -> None:
    """The faster decoder ends a process hard that is over before the file is closed."""
    path = write(tmp_path, "bz2")
    program = (
        "import sys; from pathlib import Path; from temporalwiki.builders import streams\n"
        "streams.BLOCKS = 1000\n"
        "path = Path(sys.argv[1])\n"
        "for piece in streams.pieces(path, end=path.stat().st_size, listed=True):\n"
        "    raise ZeroDivisionError\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == "ZeroDivisionError"


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
