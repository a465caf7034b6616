"""A passage index on disk: ``index.faiss`` with ``index.json``, which says what the file must be.

The description is written last and checked first, so that a half-written, cut, swapped or foreign index is refused in
words instead of being searched.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import faiss

from rag.errors import IndexMismatchError, ResourceError
from rag.files import publish

_LFS_START = b"version https://git-lfs"


@dataclass(frozen=True)
class IndexInfo:
    """What an index is, and what it belongs to."""

    kind: str
    metric: str
    dim: int
    ntotal: int
    m: int
    ef_construction: int
    ef_search: int
    encoder_fingerprint: str  # of the encoder of the passages; empty if it is not known
    row_ids_sha256: str  # of the passage ids in row order; empty if they are not known
    faiss_version: str = ""
    file_bytes: int = 0
    file_sha256: str = ""


_MISMATCH = {
    "dim": "the index has {found} dimensions, the encoder {wanted}; build the index with this encoder",
    "ntotal": "the index holds {found} passages, the passages table {wanted}; build the index again",
    "encoder_fingerprint": "the index was built by another encoder or other options (fingerprint {found}, expected "
    "{wanted}); questions and passages must come from one training: use that encoder, or build the index again",
    "row_ids_sha256": "the passages are not those of the index, or in another order (hash of ids {found}, expected "
    "{wanted}); every row would name a wrong passage: build the index again",
}


def write_index(index: Any, info: IndexInfo, folder: Path) -> IndexInfo:
    """Write the FAISS ``index`` into ``folder``: temporary files, synced, renamed; the completed description.

    Raises ResourceError before anything is written if the disk is too small.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _check_space(folder, info)
    temporary, sidecar = folder / "index.faiss.tmp", folder / "index.json.tmp"
    faiss.write_index(index, str(temporary))
    info = replace(
        info,
        faiss_version=faiss.__version__,
        file_bytes=temporary.stat().st_size,
        file_sha256=_file_sha256(temporary),
    )
    sidecar.write_text(json.dumps(asdict(info), indent=2, sort_keys=True) + "\n", encoding="utf-8")
    publish(temporary, folder / "index.faiss")
    publish(sidecar, folder / "index.json")
    return info


def read_index(folder: Path, wanted: Mapping[str, Any], check_bytes: bool) -> tuple[Any, IndexInfo]:
    """The FAISS index of ``folder``, memory-mapped, and its description.

    Raises IndexMismatchError unless file and description agree and the description has the values ``wanted``
    (None: any).
    """
    info = _read_info(folder / "index.json")
    for key, value in wanted.items():
        if value is not None and value != getattr(info, key):
            raise IndexMismatchError(f"{folder}: {_MISMATCH[key].format(found=getattr(info, key), wanted=value)}")
    _check_file(folder / "index.faiss", info, check_bytes)
    index = _read_faiss(folder / "index.faiss")
    _check_index(index, info, folder)
    return index, info


def _check_space(folder: Path, info: IndexInfo) -> None:
    needed = info.ntotal * (4 * info.dim + 9 * info.m + 32)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ResourceError(f"{folder} has {free:,} bytes free, but the index needs {needed:,}; nothing was changed")


def _read_info(path: Path) -> IndexInfo:
    try:
        return IndexInfo(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise IndexMismatchError(f"no finished index at {path.parent} (no index.json); build the index") from error
    except (ValueError, TypeError) as error:
        raise IndexMismatchError(f"{path} cannot be read ({error}); build the index again") from error


def _check_file(path: Path, info: IndexInfo, check_bytes: bool) -> None:
    if not path.is_file():
        raise IndexMismatchError(f"{path} is missing though index.json is there; build the index again")
    size = path.stat().st_size
    with path.open("rb") as file:
        if file.read(len(_LFS_START)) == _LFS_START:
            raise IndexMismatchError(
                f"{path} is a Git LFS pointer of {size} bytes, not the index; fetch the file itself with: git lfs pull"
            )
    if size != info.file_bytes:
        how = "cut off" if size < info.file_bytes else "another file"
        raise IndexMismatchError(
            f"{path} is {how}: {size:,} bytes where index.json says {info.file_bytes:,}; copy or build it again"
        )
    if check_bytes and _file_sha256(path) != info.file_sha256:
        raise IndexMismatchError(f"{path} has changed since it was written (its sha256 differs); build the index again")


def _read_faiss(path: Path) -> Any:
    try:
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        raise IndexMismatchError(f"FAISS {faiss.__version__} cannot read {path} ({error}); build it again") from error


def _check_index(index: Any, info: IndexInfo, folder: Path) -> None:
    """The loaded index against its description: a wrong metric or size must never be searched."""
    if index.metric_type != faiss.METRIC_INNER_PRODUCT or info.metric != "inner_product":
        raise IndexMismatchError(f"{folder}: the index ranks by another metric than inner product; build it again")
    if (index.d, index.ntotal) != (info.dim, info.ntotal):
        raise IndexMismatchError(
            f"{folder}: the file holds {index.ntotal} vectors of {index.d} dimensions, index.json says "
            f"{info.ntotal} of {info.dim}; build the index again"
        )
    kinds = {"flat": faiss.IndexFlat, "hnsw": faiss.IndexHNSWFlat}
    if info.kind not in kinds or not isinstance(index, kinds[info.kind]):
        raise IndexMismatchError(f"{folder}: index.json says {info.kind!r}, the file holds a {type(index).__name__}")


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
