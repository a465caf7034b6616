"""The files of a source and their lines: plain, gzip or in a zip archive, cut at \\n alone."""

import gzip
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from rag.errors import DataError

_CHUNK_BYTES = 1 << 20
_MAX_LINE_BYTES = 256 << 20  # a file without any line end must not fill the memory
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_OTHER_COMPRESSIONS = {b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ": "xz", b"7z\xbc\xaf": "7z"}


class SourceFile(NamedTuple):
    """One file of a source: on disk, or a member of a zip archive."""

    name: str  # in its folder or archive
    path: str  # for messages
    open_raw: Callable[[], IO[bytes]]


def source_files(path: Path, endings: tuple[str, ...]) -> list[SourceFile]:
    """The files of a source, sorted by name: the file itself, or all in the folder or zip archive that end so.

    Raises DataError where there is none.
    """
    if path.is_dir():
        names = sorted(entry.name for entry in path.iterdir() if _wanted(entry.name, endings) and entry.is_file())
        files = [SourceFile(name, str(path / name), partial(_open, path / name)) for name in names]
    elif path.suffix == ".zip" and zipfile.is_zipfile(path):
        files = _members(path, endings)
    elif path.exists():
        files = [SourceFile(path.name, str(path), partial(_open, path))]
    else:
        raise DataError(f"there is no file or folder {path}; check the path of the source in the study")
    if not files:
        raise DataError(f"{path} holds no file that ends in {' or '.join(endings)}{_below(path, endings)}")
    return files


def numbered_lines(file: SourceFile, refuse: bytes = b"<") -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers from 1, without their ends, cut at \\n alone, without a byte order mark.

    A file is decompressed if its first bytes are those of gzip, whatever its name is. Raises DataError if it is empty,
    cut off, damaged, or begins as a Git LFS pointer, a web page or with ``refuse``.
    """
    try:
        with file.open_raw() as raw, _decompressed(file, raw) as stream:
            yield from enumerate(_lines(file, stream, refuse), start=1)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise DataError(
            f"{file.path} cannot be read to its end: {reason}; it is cut off or damaged: download it again"
        ) from error


def check_head(path: str, head: bytes, refuse: bytes = b"<") -> None:
    """Raise DataError where the first bytes of a file show that it is something else than data."""
    if not head:
        raise DataError(f"{path} is empty; download it again")
    if head.startswith(_LFS_POINTER):
        raise DataError(f"{path} is a Git LFS pointer, not the file itself; fetch it with 'git lfs pull'")
    for magic, name in _OTHER_COMPRESSIONS.items():
        if head.startswith(magic):
            raise DataError(f"{path} is compressed with {name}; decompress it, or pack it with gzip")
    begin = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if begin == b"<" and begin in refuse:
        raise DataError(f"{path} is a web page or XML, perhaps a server's error message; download it again")
    if begin == b"[" and begin in refuse:
        raise DataError(f"{path} begins with '[': write one JSON object a line, not one list of all")


def _lines(file: SourceFile, stream: IO[bytes], refuse: bytes) -> Iterator[bytes]:
    head = stream.read(_CHUNK_BYTES)
    check_head(file.path, head, refuse)
    chunk, rest = head.removeprefix(b"\xef\xbb\xbf"), [b""]
    while chunk:
        first, *lines = chunk.split(b"\n")
        rest.append(first)
        if lines:
            yield _without_return(b"".join(rest))
            rest = [lines.pop()]
            yield from map(_without_return, lines) if b"\r" in chunk else lines
        elif sum(map(len, rest)) > _MAX_LINE_BYTES:
            raise DataError(f"{file.path} has a line of more than {_MAX_LINE_BYTES >> 20} MB; it is no file of lines")
        chunk = stream.read(_CHUNK_BYTES)
    if last := b"".join(rest):
        yield _without_return(last)


def _without_return(line: bytes) -> bytes:
    return line.removesuffix(b"\r")


def _decompressed(file: SourceFile, raw: IO[bytes]) -> IO[bytes]:
    packed = raw.read(2) == b"\x1f\x8b"
    raw.seek(0)
    return gzip.GzipFile(file.name, "rb", fileobj=raw) if packed else raw  # type: ignore[return-value]


def _open(path: Path) -> IO[bytes]:
    return path.open("rb")


def _members(path: Path, endings: tuple[str, ...]) -> list[SourceFile]:
    """The members of an archive are read as streams and never unpacked to disk, so no name can lead elsewhere."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if _wanted(Path(name).name, endings) and name[:2] != "__"]
    return [SourceFile(name, f"{path}:{name}", partial(_open_member, path, name)) for name in sorted(names)]


def _open_member(path: Path, name: str) -> IO[bytes]:
    with zipfile.ZipFile(path) as archive:
        return archive.open(name)  # keeps the archive's file open until it is closed itself


def _wanted(name: str, endings: tuple[str, ...]) -> bool:
    return name.endswith(endings) and not name.startswith(".")


def _below(path: Path, endings: tuple[str, ...]) -> str:
    """Which folders below have such files: the parts of a data set must not be mixed unasked."""
    if not path.is_dir():
        return "; check the path of the source in the study"
    inner = [entry.name for entry in sorted(path.iterdir()) if entry.is_dir() and _holds(entry, endings)]
    return f"; its folders {', '.join(inner[:5])} do: name one of them" if inner else "; check the path of the source"


def _holds(folder: Path, endings: tuple[str, ...]) -> bool:
    return any(_wanted(entry.name, endings) for entry in folder.iterdir())
