"""Files that are whole or absent: written under a temporary name in their own folder, synced, renamed."""

import hashlib
import os
from pathlib import Path


def publish(temporary: Path, path: Path) -> None:
    """Sync a finished temporary file and give it its name, in one step."""
    with temporary.open("rb+") as file:
        os.fsync(file.fileno())
    temporary.replace(path)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever sees a part of it; makes the folder where it is missing.

    >>> import tempfile; path = Path(tempfile.mkdtemp()) / "folder" / "sum.txt"
    >>> write_atomically(path, b"3"); path.read_bytes(), [file.name for file in path.parent.iterdir()]
    (b'3', ['sum.txt'])
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(content)
    publish(temporary, path)


def file_sha256(path: Path) -> str:
    """The sha256 of a file's bytes, in hexadecimal.

    >>> import tempfile; handle = tempfile.NamedTemporaryFile()
    >>> file_sha256(Path(handle.name))[:8]
    'e3b0c442'
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
