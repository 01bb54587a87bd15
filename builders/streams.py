"""Compressed dumps as bytes: in bounded pieces, from any stream's start, and never a silent end.

bz2 and gzip files may be many streams (members) one after another, each of which decodes alone. That is what
lets one large dump be read by many tasks.
"""

from __future__ import annotations

import bz2
import contextlib
import hashlib
import io
import os
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import rapidgzip
from isal import igzip, isal_zlib
from isal.igzip_lib import DECOMP_GZIP, IgzipDecompressor, IsalError

from temporalwiki.base.errors import InputError

# Small enough that memory is used again: fresh pages for every piece of 4 MB cost as much as decoding gzip.
READ = 1 << 17
OUT = 1 << 19  # a decompression bomb comes out in pieces of this size
BLOCKS = 1 << 22  # of bz2, whose faster decoder has tables of 4 MB: in smaller pieces they have to come back too often
_CACHED = 8 << 20  # bytes of a dump that the system's cache may hold behind the reader
_HEAD = 1 << 20  # holds the largest block of bz2
_BEGINNING = 1 << 16  # of what may be a stream; bz2 has then read a block, and not spent as long again on its order
_PROBE = 64 << 20  # how far a stream's start is looked for before a file counts as one stream

BZ2_MAGIC = b"BZh"
BZ2_BLOCK = b"1AY&SY"  # pi, the start of every bz2 block
GZIP_MAGIC = b"\x1f\x8b\x08"


# What decoders raise on data that is not theirs.
DAMAGE: tuple[type[Exception], ...] = (OSError, EOFError, IsalError)  # type: ignore[assignment]  # the stub errs


@dataclass(frozen=True)
class Piece:
    """Decompressed bytes, and the file offset at which their compressed stream (or first one of some) starts."""

    stream: int
    data: bytes


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = ...) -> bytes: ...


def compression(path: Path) -> str:
    """``bz2``, ``gz`` or ``plain``, by the file's name.

    Raises InputError for an empty file, and one whose first bytes are of another kind than its name says.
    """
    kind = {".bz2": "bz2", ".gz": "gz"}.get(path.suffix, "plain")
    with path.open("rb") as file:
        head = file.read(4)
    if not head:
        raise InputError(f"{path}: the file is empty")
    is_kind = {"bz2": head.startswith(BZ2_MAGIC), "gz": head.startswith(GZIP_MAGIC)}.get(kind, True)
    if not is_kind:
        raise InputError(f"{path}: not a {kind} file, whatever its name says (first bytes {head.hex()})")
    if head.startswith(b"7z\xbc\xaf"):
        raise InputError(f"{path}: 7z is not read; take the .bz2 of the same dump, or repack it")
    return kind


def pieces(
    path: Path, start: int = 0, allow_truncated: bool = False, end: int | None = None, listed: bool = False
) -> Generator[Piece]:
    """Decompressed pieces of ``path`` from the stream that begins at byte ``start``, to the end of the file.

    With ``end``, where a stream begins or the file ends, what lies before ``end`` may come without its streams'
    starts, as of one that starts at ``start``: other decoders then do it, a sixth faster for gzip and a quarter to a
    third for bz2. That of bz2 only reads a file that is ``listed``, by whose maker's list of checksums it is whole:
    there are damaged ones that end the process.
    Raises InputError, naming file and byte, where the data is damaged or ends inside a stream. With
    ``allow_truncated`` a cut file simply ends; damage is an error all the same.
    """
    kind = compression(path)
    if end is None or kind == "plain" or (kind == "bz2" and not listed):
        yield from _stream_by_stream(path, kind, start, allow_truncated)
        return
    length = checksum = 0
    whole = False
    with _Once(path, start) as file, _reader(kind, _Range(file, start, end)) as reader:
        while True:
            try:
                data = reader.read(BLOCKS if kind == "bz2" else OUT)
                if not data:
                    whole = kind == "gz" or _ends_at(reader, end - start)
                    break
            except Exception:  # noqa: BLE001  # whatever it is, the slower decoder says what is wrong, and where
                break
            length += len(data)
            if kind == "bz2":  # gzip is decoded by the same code either way
                checksum = isal_zlib.crc32(data, checksum)
            yield Piece(start, data)
    if not whole:
        again = _stream_by_stream(path, kind, start, allow_truncated)
        yield from _from(path, again, length, checksum if kind == "bz2" else None)
    elif end < path.stat().st_size:
        yield from _stream_by_stream(path, kind, end, allow_truncated)


def _reader(kind: str, source: _Range) -> Any:
    """The faster decoder of some whole streams."""
    if kind == "bz2":
        return rapidgzip.IndexedBzip2File(source, parallelization=1)
    return igzip.open(source)  # type: ignore[no-untyped-call]


class _Once(io.FileIO):
    """A file that is read once, from byte ``start`` on; what was read is not kept in the system's cache.

    Nobody comes back to it, and a large file would drive all else out of the cache. Where memory has to be asked for
    (of a hypervisor, say), new pages for all of it cost half as much CPU time as decoding gzip.
    """

    def __init__(self, path: Path, start: int) -> None:
        super().__init__(path)
        self._start, self._cached = start, 0
        self.seek(start)

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self._count(len(data))
        return data

    def readinto(self, buffer: Any, /) -> int:
        size = super().readinto(buffer) or 0
        self._count(size)
        return size

    def _count(self, size: int) -> None:
        self._cached += size
        if self._cached >= _CACHED and hasattr(os, "posix_fadvise"):  # macOS has none
            with contextlib.suppress(OSError):  # nothing is lost where it cannot be done
                os.posix_fadvise(self.fileno(), self._start, self.tell() - self._start, os.POSIX_FADV_DONTNEED)
            self._cached = 0


class _Range(io.RawIOBase):
    """The bytes [start, end) of a file, as a file."""

    def __init__(self, file: _Once, start: int, end: int) -> None:
        self._file, self._start, self._size = file, start, end - start
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + (0, self._position, self._size)[whence]
        return self._position

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self._position)
        self._file.seek(self._start + self._position)
        data = self._file.read(left if size < 0 else min(size, left))
        self._position += len(data)
        return data

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._start + self._position)
        size = self._file.readinto(memoryview(buffer)[: max(0, self._size - self._position)])
        self._position += size
        return size


def _ends_at(decoder: Any, size: int) -> bool:
    """Whether the last stream ends where the data does: what follows it, the fast decoder ignores."""
    mark = max(decoder.block_offsets(), default=0)  # of the end of the last stream, in bits; it has 80
    return bool((mark + 80 + 7) // 8 == size)


def _from(path: Path, source: Iterator[Piece], length: int, checksum: int | None) -> Iterator[Piece]:
    """The pieces of ``source`` behind its first ``length`` bytes, which are there already and have this checksum."""
    found = 0
    for piece in source:
        known, new = piece.data[:length], piece.data[length:]
        length -= len(known)
        found = found if checksum is None else isal_zlib.crc32(known, found)
        if known and not length and checksum not in (None, found):
            raise InputError(f"{path}: bz2 data near byte {piece.stream} that two decoders read differently")
        if new:
            yield Piece(piece.stream, new)


def _stream_by_stream(path: Path, kind: str, start: int, allow_truncated: bool) -> Iterator[Piece]:
    with _Once(path, start) as file:
        if kind == "plain":
            while data := file.read(OUT):
                yield Piece(start, data)
            return
        magic = BZ2_MAGIC if kind == "bz2" else GZIP_MAGIC
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
            # isal takes a header with two fields or a checksum for damaged if it comes in parts
            while kind == "gz" and not _has_header(pending) and len(pending) < _HEAD and (more := file.read(READ)):
                pending += more
            stream, decoder = position, _decoder(kind)
            while not decoder.eof:
                if decoder.needs_input:
                    pending = pending or file.read(READ)
                    if not pending and allow_truncated:
                        return
                    if not pending:
                        raise InputError(
                            f"{path}: cut off inside the {kind} stream that starts at byte {stream} (the file ends at "
                            f"byte {position}); fetch it again (build --allow-truncated reads what is there)"
                        )
                try:
                    data = decoder.decompress(pending, OUT)
                except DAMAGE as error:
                    raise InputError(
                        f"{path}: damaged {kind} data in the stream that starts at byte {stream}, "
                        f"after byte {position}: {error}"
                    ) from None
                position, pending = position + len(pending), b""
                if decoder.eof:
                    pending = decoder.unused_data
                    position -= len(pending)
                if data:
                    yield Piece(stream, data)


def _has_header(member: bytes) -> bool:
    """Whether the header of a gzip member (RFC 1952, section 2.3) is all there."""
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
    return len(member) >= end + (flags & 2)  # its checksum takes two bytes


def _decoder(kind: str) -> _Decoder:
    if kind == "bz2":
        return bz2.BZ2Decompressor()
    return IgzipDecompressor(flag=DECOMP_GZIP)


def split(path: Path, target: int) -> list[int]:
    """Offsets of streams, about ``target`` bytes apart, that cut ``path`` into ranges; the first is 0.

    A file of one stream gives ``[0]``. The offsets depend on the file alone.
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
    magic = BZ2_MAGIC if kind == "bz2" else GZIP_MAGIC
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
    """Whether a stream really starts here: its first part decodes, and all of it where the file ends soon."""
    if kind == "bz2" and (not 0x31 <= head[3] <= 0x39 or head[4:10] not in (BZ2_BLOCK, b"\x17rE8P\x90")):
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
    return decoder.eof or len(data) == _HEAD  # what begins by chance hardly ever ends well


def digest(path: Path, algorithm: str) -> str:
    """SHA-1 or SHA-256 of a file in hexadecimal, as Wikimedia publishes them beside its dumps."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()
