"""The hash of a study's input files, remembered: nobody reads a dump of 20 GB to learn that it is the same."""

import hashlib
import json
import os
from pathlib import Path

from flows.files import write_atomically
from rag.files import file_sha256


class InputHashes:
    """sha256 of files and folders; a file is read again when its size, time of change or place changed.

    The memory is a JSON file; losing it costs time only.
    """

    def __init__(self, memory: Path) -> None:
        self._memory = memory

    def sha256(self, path: Path) -> str:
        """The hash of a file's bytes, or of a folder's names and bytes (hidden files left out)."""
        if not path.is_dir():
            return self._of_file(path)
        names = [file for file in sorted(path.rglob("*")) if file.is_file() and not _is_hidden(file, path)]
        listing = "".join(f"{self._of_file(file)}  {file.relative_to(path).as_posix()}\n" for file in names)
        return hashlib.sha256(os.fsencode(listing)).hexdigest()  # a name may be bytes that are no text

    def _of_file(self, path: Path) -> str:
        status = path.stat()
        key, stamp = str(path.resolve()), [status.st_size, status.st_mtime_ns, status.st_ino]
        known = self._recall()
        if key in known and known[key][0] == stamp:
            return known[key][1]
        digest = file_sha256(path)
        self._memory.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._memory, json.dumps({**self._recall(), key: [stamp, digest]}, indent=1).encode())
        return digest

    def _recall(self) -> dict[str, tuple[list[int], str]]:
        try:
            content: dict[str, tuple[list[int], str]] = json.loads(self._memory.read_bytes())
        except (OSError, ValueError):
            return {}
        return content


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith((".", "__pycache__")) for part in file.relative_to(folder).parts)
