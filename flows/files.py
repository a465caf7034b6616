"""Files as artifacts need them: hashed, synced, written in one step."""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path


def plain_files(folder: Path) -> Iterator[Path]:
    """Every regular file below ``folder``, in alphabetical order. Raises ValueError for links and devices."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise ValueError(f"{path} is a link or a special file; an artifact holds plain files only")
        if path.is_file():
            yield path


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file under a temporary name in its folder, sync it and rename it."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    with temporary.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)


def fsync_tree(folder: Path) -> None:
    """Sync every file below ``folder`` and every folder, so that a rename after it cannot outrun the bytes."""
    for path in plain_files(folder):
        _fsync(path)
    for path in folder.rglob("*"):
        if path.is_dir():
            fsync_folder(path)
    fsync_folder(folder)


def fsync_folder(folder: Path) -> None:
    """Sync the names in a folder."""
    _fsync(folder)


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
