"""What lies beside a file that was fetched, or is being fetched: which bytes they are, and where they came from.

While file NAME comes, its bytes lie in ``NAME.part`` and ``NAME.part.json`` says which version of the file they are of;
once it is whole, ``NAME.download.json`` keeps its sum, its address and what the server said about it.
"""

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from rag.files import write_atomically


class DownloadedFile(NamedTuple):
    """A file that is here, whole and verified; the last two as the server said, "" where it did not."""

    name: str
    url: str
    size: int
    sha1: str
    last_modified: str = ""
    etag: str = ""


class Note(NamedTuple):
    """Which version of a file the bytes of ``NAME.part`` are of."""

    url: str
    sha1: str | None  # as published
    size: int | None  # of the whole file; None where neither the publisher nor the server says
    etag: str
    last_modified: str


_NOTES = TypeAdapter(Note)
_RECORDS = TypeAdapter(DownloadedFile)


def part_path(path: Path) -> Path:
    """Where the bytes of an unfinished file lie."""
    return path.with_name(path.name + ".part")


def note_path(path: Path) -> Path:
    """Where it is said what these bytes are."""
    return path.with_name(path.name + ".part.json")


def record_path(path: Path) -> Path:
    """Where it is kept what a finished file is and where it came from."""
    return path.with_name(path.name + ".download.json")


def bytes_in(path: Path) -> int:
    """The size of a file; 0 where there is none."""
    return path.stat().st_size if path.is_file() else 0


def sha1_of(path: Path) -> str:
    """The sha1 of a file's bytes, as they are on the disk."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha1").hexdigest()


def read_note(path: Path) -> Note | None:
    """What is said about the unfinished bytes of a file; None where nothing usable is."""
    try:
        return _NOTES.validate_json(note_path(path).read_bytes())
    except (OSError, ValidationError):
        return None


def read_record(path: Path) -> DownloadedFile | None:
    """What is kept about a finished file; None where nothing usable is."""
    try:
        return _RECORDS.validate_json(record_path(path).read_bytes())
    except (OSError, ValidationError):
        return None


def keep_note(path: Path, note: Note) -> None:
    """Say what the unfinished bytes of a file are."""
    write_atomically(note_path(path), json.dumps(note._asdict()).encode())


def keep_record(path: Path, record: DownloadedFile) -> None:
    """Keep what a finished file is and where it came from."""
    write_atomically(record_path(path), json.dumps(record._asdict(), indent=1).encode())


def discard(path: Path) -> None:
    """Drop the unfinished bytes of a file, and what was said about them."""
    part_path(path).unlink(missing_ok=True)
    note_path(path).unlink(missing_ok=True)
