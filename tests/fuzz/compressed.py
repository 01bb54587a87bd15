"""A compressed file: what the standard library makes of it, or a refusal that names file and byte."""

import bz2
import gzip
import zlib
from pathlib import Path
from unittest import mock

from temporalwiki.base.errors import InputError
from temporalwiki.builders import streams
from temporalwiki.builders.streams import pieces, split

from fuzz.files import file

_TEXT = b"<page>a</page>\n" * 20
_TWO = bz2.compress(_TEXT[:50], 1) + bz2.compress(_TEXT[50:], 9)
_MEMBERS = gzip.compress(_TEXT[:50], mtime=0) + gzip.compress(_TEXT[50:], mtime=0)
SEEDS = (
    *(
        b"b" + data
        for data in (bz2.compress(_TEXT), _TWO, _TWO[:-1], _TWO[:60], _TWO + b"x", bz2.compress(b""), b"BZh9")
    ),
    *(
        b"g" + data
        for data in (gzip.compress(_TEXT, mtime=0), _MEMBERS, _MEMBERS + b"\0" * 9, _MEMBERS[:-1], b"\x1f\x8b")
    ),
    b"b" + bz2.compress(b"BZh91AY&SY" * 9),
    b"p" + _TEXT,
)
FOUND = (
    # one block, damaged: the fast decoder, which took all files then, said something else, or ended the process
    b'bBZh11AY&SY\xd1\xd6\xd9`\x00\x00\x06Y\x80\x00\x10\x00\x00\x80\x05"\x80@\x00 \x001\x0c\x08+\xfdR\x06Y\x80'
    b"\x00\x10\x00\x00E8P\x90g~\x1c\x88",
    b'bBZh11AY&SY\xd1\xd6\xd9`\x00\x00\x06Y\x80\x00\x10\x00\x00\x80\x05"\x80@\x00 \x001\x0c\x08+\xfdR\x06Y\x80'
    b"\x00\x00\x00\x10E8P\x90g~\x1c\x88",
    # bytes in a gz stream that look like another one's start
    b"g\x1f\x8b\x08\x00\x80\x00\x00\x00\x02\x03\xb3)HLO\xb5K\xb4\xd1\x07\xd3\\6\x84\xb9"
    b"\x00\xbd\x16\x83\x0e2\x00\x00\x00\x00\x00\x00\x1f\x8b\x08\x80\x00\x00\x1f\x8b\x08\x03\xb3K\xb4\xd1"
    b"/HLO\xb5\xe3\xb2\x01S#\x87\x0b\x00\x19V\x9c\xe7\xfa\x00\x00\x00\x00\x00\x00\x1f\x8b"
    b"\x08\x80\x00\x00\x1f\x8b\x08\x0e\xb3K\xb4\xd1/HLO\xb5\xe3\xb2\x01S#\x87\x0b\x00\x19"
    b"V\x9c\xe7\xfa\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
    # a header with a name and a comment, in two parts
    b"g\x1f\x8b\x08\xd9\xb3\x07\x07\x07\x07\x07\x07\x07AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\xff\xfe\xfe\xfcA\x03\xb3eAAAAAA"
    b"-\x84\x00\xb3'8\x84\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
)
WORDS = (
    *b"BZh BZh91AY&SY 1AY&SY \x17rE8P\x90 \x1f\x8b\x08 \x1f\x8b\x08\x08 \x00\x00\x00\x00 \xff\xff\xff\xff".split(),
)
_ENDINGS = {b"b": "bz2", b"g": "gz"}
_MOST = 64 << 20  # bytes that are decoded


def check(data: bytes) -> None:
    kind = _ENDINGS.get(data[:1], "xml")
    path = file(f"dump.{kind}", data[1:])
    size = path.stat().st_size
    one, problem = _decoded(path, None)
    if kind == "bz2" and not problem:  # the fast one is only for files that are known to be whole
        assert _decoded(path, size) == (one, None), "two decoders of bz2 differ"
    with mock.patch.object(streams, "READ", 1 + zlib.crc32(data) % 61):
        small, with_small = _decoded(path, None)
        # isal takes some damaged gzip of nothing for whole if it comes in pieces; nothing is lost by it
        assert (problem is None) == (with_small is None) or not small, "other pieces, and it is damaged"
        assert small == one or problem, "other pieces, other bytes"
    cut, _ = _decoded(path, None, allow_truncated=True)
    assert cut == one or problem, "what is whole is read otherwise where it may be cut"
    if problem is None and kind != "xml":
        assert _slowly(kind, data[1:]) == one, "the standard library reads something else"
    if not problem:
        starts = split(path, max(1, size // 3))
        assert starts[0] == 0 and starts == sorted(set(starts))
        parts = b""
        for start, end in zip(starts, [*starts[1:], None], strict=True):
            parts += b"".join(piece.data for piece in pieces(path, start) if end is None or piece.stream < end)
        assert parts == one, "ranges give other bytes than the whole"


def _decoded(path: Path, end: int | None, allow_truncated: bool = False) -> tuple[bytes, str | None]:
    out = bytearray()
    try:
        for piece in pieces(path, 0, allow_truncated, end, listed=end is not None):
            assert piece.data, "an empty piece"
            out += piece.data
            if len(out) > _MOST:
                return bytes(out), "too much"
    except InputError as error:
        assert str(path) in str(error) and "\n" not in str(error), f"not one line with the file: {error}"
        return bytes(out), str(error)
    return bytes(out), None


def _slowly(kind: str, data: bytes) -> bytes | None:
    """What the standard library makes of a file that was read to its end without complaint."""
    try:
        return bz2.decompress(data) if kind == "bz2" else gzip.decompress(data)
    except (OSError, EOFError, ValueError, zlib.error):
        return None
