"""Files that are at any moment the old one or the whole new one."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

from reports.errors import StoreError


def copy_in_place(source: Path, target: Path) -> None:
    """Copy a file under a temporary name, sync it and rename it. StoreError where that cannot be done."""
    part = _part(target)
    try:
        shutil.copyfile(source, part)
        put_in_place(part, target)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise StoreError(f"cannot write {target}: {error.strerror or error}; the old file is untouched") from error


def write_text(target: Path, text: str) -> None:
    """Write a file in the same way, in UTF-8. StoreError where that cannot be done."""
    part = _part(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8", newline="\n")
        put_in_place(part, target)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise StoreError(f"cannot write {target}: {error.strerror or error}; the old file is untouched") from error


def put_in_place(part: Path, target: Path) -> None:
    """Sync a finished file and rename it to its name, and sync the folder so that the name survives a power cut."""
    _sync(part)
    os.replace(part, target)
    _sync(target.parent)


def _part(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}.part")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
