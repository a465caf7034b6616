"""What any index folder is compared with before it is searched: its description, and the values of the caller."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag.errors import IndexMismatchError
from rag.files import file_sha256

_LFS_START = b"version https://git-lfs"


def require_values(folder: Path, description: object, wanted: Mapping[str, Any], words: Mapping[str, str]) -> None:
    """Raise IndexMismatchError for the first of the values ``wanted`` (None: any) that the description does not have.

    ``words`` explain it by key, with places for what was ``found`` and what was ``wanted``.
    """
    for key, value in wanted.items():
        found = getattr(description, key)
        if value is not None and value != found:
            raise IndexMismatchError(f"{folder}: {words[key].format(found=found, wanted=value)}")


def require_file(path: Path, description: str, size: int, sha256: str | None) -> None:
    """Raise IndexMismatchError unless a file is as the ``description``, named for the message, says.

    Reads the whole file only where there is a ``sha256`` to compare.
    """
    if not path.is_file():
        raise IndexMismatchError(f"{path} is missing though {description} is there; copy or build the index again")
    found = path.stat().st_size
    with path.open("rb") as file:
        if file.read(len(_LFS_START)) == _LFS_START:
            raise IndexMismatchError(
                f"{path} is a Git LFS pointer of {found} bytes, not the file; fetch the file itself with: git lfs pull"
            )
    if found != size:
        how = "cut off" if found < size else "another file"
        raise IndexMismatchError(
            f"{path} is {how}: {found:,} bytes where {description} says {size:,}; copy or build it again"
        )
    if sha256 is not None and file_sha256(path) != sha256:
        raise IndexMismatchError(f"{path} has changed since it was written (its sha256 differs); build the index again")
