"""A BM25 index on disk: tantivy's files in ``words/`` and ``bm25.json``, which says what they must be.

The description is written last and checked first, so that a half-written, cut or foreign index is refused in words.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tantivy

from rag.config import Bm25Config
from rag.errors import IndexMismatchError
from rag.files import file_sha256, write_atomically
from rag.retrieval.described import require_file, require_values

VERSION: str = tantivy.__version__  # type: ignore[attr-defined]  # its stub leaves this out
FILES = "words"  # the folder of tantivy's files
_INFO = "bm25.json"


@dataclass(frozen=True)
class Bm25Info:
    """What a BM25 index is, and what it belongs to."""

    stemming: bool
    stopwords: bool
    ntotal: int
    row_ids_sha256: str  # of the passage ids in row order; empty if they are not known
    tantivy_version: str
    file_bytes: dict[str, int]
    file_sha256: dict[str, str]


_MISMATCH = {
    "stemming": "built with stemming = {found}, and bm25.stemming is {wanted}; build it again",
    "stopwords": "built with stopwords = {found}, and bm25.stopwords is {wanted}; build it again",
    "ntotal": "the index holds {found} passages, the passages table {wanted}; build it again",
    "row_ids_sha256": "the passages are not those of the index, or in another order (hash of ids {found}, expected "
    "{wanted}); every row would name a wrong passage: build it again",
}


def describe(folder: Path, config: Bm25Config, ntotal: int, row_ids_sha256: str) -> Bm25Info:
    """The description of an index whose files have just been written."""
    files = {path.name: path for path in sorted((folder / FILES).iterdir())}
    return Bm25Info(
        config.stemming,
        config.stopwords,
        ntotal,
        row_ids_sha256,
        VERSION,
        {name: path.stat().st_size for name, path in files.items()},
        {name: file_sha256(path) for name, path in files.items()},
    )


def write_info(folder: Path, info: Bm25Info) -> None:
    """Put the description beside the files."""
    write_atomically(folder / _INFO, f"{json.dumps(asdict(info), indent=2, sort_keys=True)}\n".encode())


def remove_info(folder: Path) -> None:
    """From now on the files in the folder are no index."""
    (folder / _INFO).unlink(missing_ok=True)


def read_info(folder: Path, wanted: Mapping[str, Any], check_bytes: bool) -> Bm25Info:
    """The description of an index, after comparing it with its files and with the values ``wanted`` (None: any).

    Raises IndexMismatchError where they differ.
    """
    path = folder / _INFO
    try:
        info = Bm25Info(**json.loads(path.read_bytes()))
    except FileNotFoundError as error:
        raise IndexMismatchError(f"no finished BM25 index at {folder} (no {_INFO}); build it") from error
    except (ValueError, TypeError) as error:
        raise IndexMismatchError(f"{path} cannot be read ({error}); build the index again") from error
    require_values(folder, info, wanted, _MISMATCH)
    for name, size in info.file_bytes.items():
        require_file(folder / FILES / name, _INFO, size, info.file_sha256[name] if check_bytes else None)
    return info
