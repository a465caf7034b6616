"""The bytes of a dump file, decompressed piece by piece, whatever it is packed with.

Everything here is an iterator of pieces of at most about a megabyte, so that no reader ever holds a file. A piece
that cannot be unpacked is a DumpError with the file and the place in it.
"""

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, cast

import pyarrow as pa

from rag.errors import DumpError

Packing = Literal["xml", "bz2", "gz", "xz", "zstd"]
_Decompressor = bz2.BZ2Decompressor | lzma.LZMADecompressor


AGAIN = "download it again and compare it with the published checksum"
PIECE_BYTES = 1 << 20
_COMPRESSED_PIECE_BYTES = 1 << 18
_XZ_MEMORY_BYTES = 300 << 20  # xz -9 asks for 65 MB; a file that asks for more than this is not read
_MAGICS: tuple[tuple[bytes, Packing], ...] = (
    (b"BZh", "bz2"),
    (b"\x1f\x8b", "gz"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)
# A skippable frame may stand before the first zstd frame; its magic ends in any of sixteen values.
_ZSTD_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
_NOT_DUMPS = (
    (b"7z\xbc\xaf\x27\x1c", "is a 7z archive; repack it first, for example with: 7z x -so FILE | zstd -o FILE.zst"),
    (b"PK\x03\x04", "is a zip archive; unpack it first, for example with: unzip FILE"),
    (b"version https://git-lfs", "is a Git LFS pointer, not the dump itself; fetch it with: git lfs pull"),
    (b"\xff\xfe", "is UTF-16; convert it first, for example with: iconv -f UTF-16 -t UTF-8 FILE"),
    (b"\xfe\xff", "is UTF-16; convert it first, for example with: iconv -f UTF-16 -t UTF-8 FILE"),
)


@contextmanager
def open_dump(path: Path) -> Iterator[BinaryIO]:
    """The file as it lies on disk; DumpError if it cannot be opened."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise DumpError(f"cannot read the dump {path}: {error.strerror}; check the path in the study") from error
    with file:
        yield file


def packing(path: Path) -> Packing:
    """How the file is compressed, by its first bytes and never by its name.

    Raises DumpError if it is missing, empty, or of a kind that is not read here (7z, zip, an LFS pointer, HTML).
    """
    with open_dump(path) as file:
        head = _read(path, file, 64)
    if not head:
        raise DumpError(f"{path} is empty; {AGAIN}")
    for magic, name in _MAGICS:
        if head.startswith(magic):
            return name
    if _ZSTD_SKIPPABLE.match(head):
        return "zstd"
    refuse_other_formats(path, head)
    return "xml"


def refuse_other_formats(path: Path, head: bytes) -> None:
    """DumpError, with what to do, if a (decompressed) file that starts like this is no XML."""
    for magic, problem in _NOT_DUMPS:
        if head.startswith(magic):
            raise DumpError(f"{path} {problem}")
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        raise DumpError(f"{path} is an HTML page, perhaps a server's error message, not a dump; {AGAIN}")
    if start and not start.startswith(b"<"):
        raise DumpError(f"{path} is not a MediaWiki XML dump: it starts with {head[:24]!r}; {AGAIN}")


def unpacked(path: Path) -> Iterator[bytes]:
    """The decompressed file, from its start to its end: every stream, member or frame of it."""
    kind = packing(path)
    if kind == "bz2":
        yield from bz2_streams(path, 0, path.stat().st_size)
    elif kind == "xz":
        yield from _xz_streams(path)
    elif kind == "xml":
        yield from plain_range(path, 0, path.stat().st_size)
    else:
        yield from _unpacked_by_reader(path, kind)


def plain_range(path: Path, start: int, end: int) -> Iterator[bytes]:
    """Bytes start to end of an uncompressed file."""
    with open_dump(path) as file:
        yield from _pieces(path, file, start, end, PIECE_BYTES)


def bz2_streams(path: Path, start: int, end: int) -> Iterator[bytes]:
    """The text of the bz2 streams that lie between two offsets of the file, which must be borders of streams."""
    return _streams(path, start, end, bz2.BZ2Decompressor)


def _xz_streams(path: Path) -> Iterator[bytes]:
    return _streams(path, 0, path.stat().st_size, lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES))


def _streams(path: Path, start: int, end: int, new: Callable[[], _Decompressor]) -> Iterator[bytes]:
    stream: _Decompressor | None = None
    opened = position = start
    with open_dump(path) as file:
        for piece in _pieces(path, file, start, end, _COMPRESSED_PIECE_BYTES):
            data, position = piece, position + len(piece)
            while data := (data if stream else data.lstrip(b"\0")):  # zeros between streams are padding
                if stream is None:
                    stream, opened = new(), position - len(data)
                yield from _decompressed(path, stream, data, (opened, position))
                data, stream = (stream.unused_data, None) if stream.eof else (b"", stream)
    if stream is not None:
        raise DumpError(f"{path} is cut or corrupt: its stream from byte {opened} does not end by {end}; {AGAIN}")


def _decompressed(path: Path, stream: _Decompressor, data: bytes, place: tuple[int, int]) -> Iterator[bytes]:
    try:
        yield stream.decompress(data, PIECE_BYTES)
        while not (stream.eof or stream.needs_input):
            yield stream.decompress(b"", PIECE_BYTES)
    except (OSError, ValueError, lzma.LZMAError) as error:
        where = f"before byte {place[1]}, in the stream that starts at byte {place[0]}"
        raise DumpError(f"{path} is cut or corrupt {where}: {error}; {AGAIN}") from error


def _unpacked_by_reader(path: Path, kind: Packing) -> Iterator[bytes]:
    with open_dump(path) as file:
        try:
            reader = _reader(file, kind)
            while piece := reader.read(PIECE_BYTES):
                yield piece
        except (EOFError, OSError, zlib.error, pa.ArrowException) as error:
            where = f"before byte {file.tell()}"
            raise DumpError(f"{path} is cut or corrupt ({kind}) {where}: {error}; {AGAIN}") from error


def _reader(file: BinaryIO, kind: Packing) -> BinaryIO:
    if kind == "gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    return cast(BinaryIO, pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd"))


def _pieces(path: Path, file: BinaryIO, start: int, end: int, size: int) -> Iterator[bytes]:
    file.seek(start)
    while start < end and (piece := _read(path, file, min(size, end - start))):
        start += len(piece)
        yield piece


def _read(path: Path, file: BinaryIO, size: int) -> bytes:
    try:
        return file.read(size)
    except OSError as error:
        raise DumpError(f"cannot read the dump {path}: {error.strerror}") from error
