"""Compressed files: bounded pieces, splitting, and every kind of damage."""

import bz2
import gzip
import os
import random
import subprocess
import sys
import zlib
from itertools import pairwise
from pathlib import Path

import pytest

from temporalwiki.base.errors import InputError
from temporalwiki.builders import streams
from temporalwiki.builders.streams import compression, pieces, split

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
    if kind == "gz":  # zeros between members are padding, as a preallocated download leaves them
        path.write_bytes(path.read_bytes() + b"\0" * 5_000_000)
        assert text_of(path) == b"".join(PARTS)


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
def test_a_task_frees_the_systems_cache_of_its_own_range(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"d.{kind.removeprefix('listed ')}"
    compress = COMPRESS.get(path.suffix[1:], bytes)
    streams_of = [compress(random.Random(i).randbytes(40_000)) for i in range(5)]
    path.write_bytes(b"".join(streams_of))
    start = len(streams_of[0])
    ends: list[int] = []
    asked: list[tuple[bool, int, int, bool]] = []  # a failing assertion in a decoder would make the other one read

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
        assert max(later - end for end, later in pairwise([start, *ends, path.stat().st_size])) <= 11_000


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
        assert text_of(path) == b"one " * 9 + b"two " * 9


@pytest.mark.parametrize("kind", COMPRESS)
def test_split_returns_the_starts_of_streams(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind)
    starts = {piece.stream for piece in pieces(path)}
    offsets = split(path, 100)
    assert offsets[0] == 0
    assert set(offsets) == starts
    assert split(write(tmp_path, kind, [b"".join(PARTS)]), 1000) == [0]


@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize("place", ["in the middle", "in the checksum"])
def test_damage_is_refused_even_where_cuts_are_allowed(tmp_path: Path, kind: str, place: str) -> None:
    path = write(tmp_path, kind, PARTS[:1])
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2 if place == "in the middle" else {"gz": -6, "bz2": 10}[kind]] ^= 1
    path.write_bytes(whole)
    with pytest.raises(InputError, match="damaged"):
        text_of(path, allow_truncated=True)


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


SHORT = [b"", b"a", b"", bytes(random.Random(1).choices(b"abcdef \n", k=400)), b"x" * 9000, b"z"]


@pytest.mark.parametrize("kind", COMPRESS)
def test_a_range_has_the_pieces_before_its_end_and_those_after_it(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind, SHORT)
    starts = [0]
    for part in SHORT:
        starts.append(starts[-1] + len(COMPRESS[kind](part)))
    for number, start in enumerate(starts[:-1]):
        for last, end in enumerate(starts[number + 1 :], number + 1):
            for listed in (False, True):
                found = list(pieces(path, start, end=end, listed=listed))
                assert b"".join(piece.data for piece in found if piece.stream < end) == b"".join(SHORT[number:last])
                assert b"".join(piece.data for piece in found if piece.stream >= end) == b"".join(SHORT[last:])


@pytest.mark.parametrize("kind", COMPRESS)
def test_a_file_cut_anywhere_is_refused_or_read_up_to_there(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, kind, SHORT)
    whole, ends = path.read_bytes(), [0]
    for part in SHORT:
        ends.append(ends[-1] + len(COMPRESS[kind](part)))
    for cut in range(4, len(whole)):
        path.write_bytes(whole[:cut])
        assert b"".join(SHORT).startswith(text_of(path, allow_truncated=True))
        if cut not in ends:
            with pytest.raises(InputError, match=f"cut off inside the {kind} stream"):
                text_of(path)
            if kind == "bz2":
                with pytest.raises(InputError, match="damaged bz2 data after byte 0, although"):
                    text_of(path, end=cut, listed=True)


BEHIND = {
    "bz2": [b"\0", b"<", b"B", b"BZh9", b"<html>", b"BZh91AY&SY", bz2.compress(b"a")[:-1]],
    "gz": [b"<", b"\x1f", b"\x1f\x8b\x08", b"<html>", bytes(99) + b"a", gzip.compress(b"a")[:-1]],
}


@pytest.mark.parametrize(("kind", "end"), [(kind, end) for kind, ends in BEHIND.items() for end in ends])
def test_bytes_after_the_last_stream_are_damage(tmp_path: Path, kind: str, end: bytes) -> None:
    path = write(tmp_path, kind, SHORT)
    path.write_bytes(path.read_bytes() + end)
    with pytest.raises(InputError, match=r"damaged|cut off inside"):
        text_of(path)
    if kind == "bz2":
        with pytest.raises(InputError, match=r"goes on after its end|damaged bz2 data"):
            text_of(path, end=path.stat().st_size, listed=True)


# With this block of bz2, an assertion in the faster decoder ends the process.
ENDS_THE_PROCESS = (
    b'BZh11AY&SY\xd1\xd6\xd9`\x00\x00\x06Y\x80\x00\x10\x00\x00\x80\x05"\x80@\x00 \x001\x0c\x08+\xfdR\x06Y\x80'
    b"\x00\x00\x00\x10E8P\x90g~\x1c\x88"
)


@pytest.mark.fault(
    "cut dump", "damaged bz2 that would end the process in the faster decoder", "one line names the file and the byte"
)
def test_the_faster_decoder_reads_listed_files_only(tmp_path: Path) -> None:
    path = tmp_path / "d.bz2"
    path.write_bytes(ENDS_THE_PROCESS)
    with pytest.raises(InputError, match=r"d\.bz2: damaged bz2 data in the stream that starts at byte 0"):
        text_of(path, end=path.stat().st_size)


def test_an_uncaught_error_while_a_file_is_open_ends_the_process_as_usual(tmp_path: Path) -> None:
    """The faster decoder aborts a process that ends before the file is closed."""
    path = write(tmp_path, "bz2")
    program = """
import sys; from pathlib import Path; from temporalwiki.builders import streams
streams.BLOCKS, path = 1000, Path(sys.argv[1])
for piece in streams.pieces(path, end=path.stat().st_size, listed=True):
    raise ZeroDivisionError
"""
    ended = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == "ZeroDivisionError"


@pytest.mark.parametrize(
    ("name", "content"),
    [("d.bz2", b"\x1f\x8b\x08\0"), ("d.gz", b"BZh9"), ("empty.bz2", b""), ("d.xml", b"7z\xbc\xaf\x27\x1c")],
)
def test_content_that_does_not_fit_its_name_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=name):
        compression(path)
