"""Compressed dumps as bytes: in pieces of bounded size, from the start of any stream, and never cut off silently.

A bz2 or gzip file may consist of many streams (members), and each can be decoded without the others. So many tasks
can read one large dump.
"""

import bz2
import contextlib
import io
import os
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rapidgzip
from isal.igzip_lib import DECOMP_GZIP, IgzipDecompressor, IsalError

from temporalwiki.base.errors import InputError

# Small, so that memory is reused: new pages for pieces of 4 MB cost as much as decoding gzip.
READ = 1 << 17
OUT = 1 << 19  # a decompression bomb comes out in pieces of this size
BLOCKS = 1 << 22  # for the faster bz2 decoder, whose 4 MB of tables leave the cache between smaller pieces
_CACHED = 8 << 20  # bytes behind the reader that may stay in the system's cache
_HEAD = 1 << 20  # more than the largest block of bz2
_BEGINNING = 1 << 16  # bytes that prove a stream; bz2 decodes its first block for them, but does not output all of it
_PROBE = 64 << 20  # how far to search for the start of a stream before a file counts as one stream

MAGIC = {"bz2": b"BZh", "gz": b"\x1f\x8b\x08"}
_BZ2_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")  # pi starts every block; its square root ends a stream

# The errors of decoders on damaged data.
DAMAGE: tuple[type[Exception], ...] = (OSError, EOFError, IsalError)  # type: ignore[assignment]  # the stub errs


@dataclass(frozen=True)
class Piece:
    """Decompressed bytes, and the file offset of the compressed stream that they begin in."""

    stream: int
    data: bytes


def compression(path: Path) -> str:
    """Return ``bz2``, ``gz`` or ``plain``, by the file's name.

    Raises InputError if the file is empty or if its first bytes do not fit its name.
    """
    kind = {".bz2": "bz2", ".gz": "gz"}.get(path.suffix, "plain")
    with path.open("rb") as file:
        head = file.read(4)
    if not head:
        raise InputError(f"{path}: the file is empty")
    if kind != "plain" and not head.startswith(MAGIC[kind]):
        raise InputError(f"{path}: not a {kind} file, although its name says so (first bytes {head.hex()})")
    if head.startswith(b"7z\xbc\xaf"):
        raise InputError(f"{path}: 7z is not read; take the .bz2 of the same dump, or repack it")
    return kind


def pieces(
    path: Path, start: int = 0, allow_truncated: bool = False, end: int | None = None, listed: bool = False
) -> Generator[Piece]:
    """Yield the decompressed bytes of a file from byte ``start``, where a stream begins, to the end of the file.

    Raises InputError with file and byte if the data is damaged or ends inside a stream.

    Args:
        path: the file.
        start: where a stream begins.
        allow_truncated: end without an error where the file was cut off.
        end: where a later stream begins, or the file's size. Decoding goes on after it.
        listed: whether the publisher's list of checksums confirms the file. Only then does a faster bz2 decoder read
            up to ``end``, because damaged data can make it crash the process. Its pieces all name ``start``.
    """
    kind = compression(path)
    if listed and kind == "bz2" and end is not None:
        yield from _faster_bz2(path, start, end)
        start = end
    if start < path.stat().st_size:
        yield from _stream_by_stream(path, kind, start, allow_truncated)


def _faster_bz2(path: Path, start: int, end: int) -> Iterator[Piece]:
    with _Range(path, start, end) as file, rapidgzip.IndexedBzip2File(file, parallelization=1) as reader:
        try:
            while data := reader.read(BLOCKS):
                yield Piece(start, data)
            whole, said = _ends_at(reader, end - start), "it goes on after its end"
        except (RuntimeError, ValueError, OSError) as error:
            whole, said = False, str(error)
    if not whole:
        raise InputError(f"{path}: damaged bz2 data after byte {start}, although its checksum is as listed: {said}")


class _Range(io.RawIOBase):
    """The bytes [start, end) of a file, as a file. What was read does not stay in the system's cache.

    A large file would drive everything else out of the cache. On a virtual machine, new pages for the whole file can
    also cost half as much CPU time as decoding gzip.
    """

    def __init__(self, path: Path, start: int, end: int) -> None:
        self._file = path.open("rb", buffering=0)
        self._start, self._size = start, end - start
        self._position = self._cached = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + (0, self._position, self._size)[whence]
        return self._position

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._start + self._position)
        size = self._file.readinto(memoryview(buffer)[: max(0, self._size - self._position)]) or 0
        self._position += size
        self._cached += size
        if self._cached >= _CACHED and hasattr(os, "posix_fadvise"):  # not on macOS
            with contextlib.suppress(OSError):  # it is only an optimisation
                os.posix_fadvise(self._file.fileno(), self._start, self._position, os.POSIX_FADV_DONTNEED)
            self._cached = 0
        return size

    def close(self) -> None:
        self._file.close()
        super().close()


def _ends_at(decoder: Any, size: int) -> bool:
    """Return whether the last stream ends at the end of the data; the faster decoder ignores bytes behind it."""
    mark = max(decoder.block_offsets(), default=0)  # where the last stream's end mark of 80 bits begins
    return bool((mark + 80 + 7) // 8 == size)


def _stream_by_stream(path: Path, kind: str, start: int, allow_truncated: bool) -> Iterator[Piece]:
    with _Range(path, start, path.stat().st_size) as file:
        if kind == "plain":
            while data := file.read(OUT):
                yield Piece(start, data)
            return
        magic = MAGIC[kind]
        position, pending = start, b""
        while pending := pending or file.read(READ):
            if kind == "gz" and pending[0] == 0:  # padding between members is legal
                rest = pending.lstrip(b"\0")
                position, pending = position + len(pending) - len(rest), rest
                continue
            while len(pending) < len(magic) and (more := file.read(READ)):
                pending += more
            if not pending.startswith(magic[: len(pending)]):
                raise InputError(f"{path}: byte {position} is not the start of a {kind} stream: the file is damaged")
            # isal rejects a header with two fields or a checksum if it gets it in parts
            while kind == "gz" and not _has_header(pending) and len(pending) < _HEAD and (more := file.read(READ)):
                pending += more
            stream, decoder = position, _decoder(kind)
            while not decoder.eof:
                if decoder.needs_input:
                    pending = pending or file.read(READ)
                    if not pending and allow_truncated:
                        return
                    if not pending:
                        where = f"{path}: cut off inside the {kind} stream that starts at byte {stream}"
                        again = "fetch it again (build --allow-truncated reads what is there)"
                        raise InputError(f"{where} (the file ends at byte {position}); {again}")
                try:
                    data = decoder.decompress(pending, OUT)
                except DAMAGE as error:
                    where = f"in the stream that starts at byte {stream}, after byte {position}"
                    raise InputError(f"{path}: damaged {kind} data {where}: {error}") from None
                position, pending = position + len(pending), b""
                if decoder.eof:
                    pending = decoder.unused_data
                    position -= len(pending)
                if data:
                    yield Piece(stream, data)


def _has_header(member: bytes) -> bool:
    """Return whether the header of a gzip member (RFC 1952, section 2.3) is complete."""
    if len(member) < 12:
        return False
    flags, end = member[3], 10
    if flags & 4:  # extra field
        end += 2 + int.from_bytes(member[10:12], "little")
    for field in (8, 16):  # name, comment
        if flags & field:
            end = member.find(b"\0", end) + 1
            if not end:
                return False
    return len(member) >= end + (flags & 2)  # the header's checksum has two bytes


def _decoder(kind: str) -> Any:
    return bz2.BZ2Decompressor() if kind == "bz2" else IgzipDecompressor(flag=DECOMP_GZIP)


def split(path: Path, target: int) -> list[int]:
    """Return offsets of streams, about ``target`` bytes apart, that cut a file into ranges.

    The first offset is 0. A file of one stream gives ``[0]``. The offsets depend only on the file and ``target``.
    """
    kind = compression(path)
    offsets = [0]
    size = path.stat().st_size
    if kind == "plain":
        return offsets
    for goal in range(target, size, target):
        if goal <= offsets[-1]:
            continue
        found = _next_stream(path, kind, goal, min(size, goal + max(_PROBE, target)))
        if found is None:
            break
        offsets.append(found)
    return offsets


def _next_stream(path: Path, kind: str, start: int, end: int) -> int | None:
    magic = MAGIC[kind]
    with path.open("rb") as file:
        file.seek(start)
        base, window = start, b""
        while base + len(window) < end and (more := file.read(READ)):
            window += more
            at = window.find(magic)
            while 0 <= at <= len(window) - 10:
                if _decodes(path, kind, base + at, window[at : at + 10]):
                    return base + at
                at = window.find(magic, at + 1)
            keep = window[-9:] if at < 0 else window[at:]
            base += len(window) - len(keep)
            window = keep
    return None


def _decodes(path: Path, kind: str, offset: int, head: bytes) -> bool:
    """Return whether a stream starts here: its beginning decodes, and near the end of the file all of it."""
    if kind == "bz2" and (not 0x31 <= head[3] <= 0x39 or head[4:10] not in _BZ2_BLOCKS):
        return False
    if kind == "gz" and head[3] & 0xE0:
        return False
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read(_HEAD)
    decoder = _decoder(kind)
    try:
        decoder.decompress(data, _BEGINNING)
        while len(data) < _HEAD and not (decoder.eof or decoder.needs_input):
            decoder.decompress(b"", OUT)
    except DAMAGE:
        return False
    return decoder.eof or len(data) == _HEAD  # bytes that look like a start by chance hardly ever end well
