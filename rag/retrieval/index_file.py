"""A passage index on disk: ``index.faiss`` with ``index.json``, which says what every file must be.

Where rows repeat earlier ones ``repeats.npy`` lies beside them, and ``contents.npy`` (hashes of the vectors) where the
index can be updated. The description is written last and checked first, so that a half-written, cut, swapped or
foreign index is refused in words instead of being searched.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from rag.config import IndexKind
from rag.errors import IndexMismatchError, ResourceError
from rag.files import file_sha256, publish
from rag.retrieval.described import require_file, require_values
from rag.retrieval.index_kinds import KINDS, BuildOptions, can_update, file_bytes
from rag.retrieval.index_units import NO_CONTENTS, Units

_INDEX, _REPEATS, _CONTENTS, _ABOUT = "index.faiss", "repeats.npy", "contents.npy", "index.json"


@dataclass(frozen=True)
class IndexInfo:
    """What an index is, and what it belongs to."""

    kind: IndexKind
    metric: str
    dim: int
    ntotal: int  # passages
    units: int  # distinct vectors among them; the index holds each once
    options: Mapping[str, int]  # it was built with
    encoder_fingerprint: str = ""  # of the encoder of the passages; empty if it is not known
    row_ids_sha256: str = ""  # of the passage ids in row order; empty if they are not known
    encoder: Mapping[str, Any] = field(default_factory=dict)  # its card; empty if it is not known
    faiss_version: str = ""
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # name -> bytes and sha256


_TYPES = {
    **dict.fromkeys(("kind", "metric", "encoder_fingerprint", "row_ids_sha256", "faiss_version"), str),
    **dict.fromkeys(("dim", "ntotal", "units"), int),
    **dict.fromkeys(("options", "encoder", "files"), dict),
}
_NAMES = (_INDEX, _REPEATS, _CONTENTS)
_FACTS = {"bytes": int, "sha256": str}  # of a file

_MISMATCH = {
    "dim": "the index has {found} dimensions, the encoder {wanted}; build the index with this encoder",
    "ntotal": "the index holds {found} passages, the passages table {wanted}; build the index again",
    "encoder_fingerprint": "the index was built by another encoder or other options (fingerprint {found}, expected "
    "{wanted}); questions and passages must come from one training: use that encoder, or build the index again",
    "row_ids_sha256": "the passages are not those of the index, or in another order (hash of ids {found}, expected "
    "{wanted}); every row would name a wrong passage: build the index again",
}


def write_index(index: Any, units: Units, info: IndexInfo, folder: Path) -> IndexInfo:
    """Write an index into ``folder``: temporary files, synced, renamed, the description last; returns the latter.

    Raises ResourceError where the disk is too small: before anything is written, or, if it fills up meanwhile, with
    the files of an earlier index still in place.
    """
    folder.mkdir(parents=True, exist_ok=True)
    arrays = _arrays(units, info.kind)
    size = file_bytes(info.kind, info.units, info.dim, BuildOptions(**info.options))
    _check_space(folder, size + sum(array.nbytes for array in arrays.values()))
    try:
        faiss.write_index(index, str(_temporary(folder, _INDEX)))
        for name, array in arrays.items():
            with _temporary(folder, name).open("wb") as file:
                np.save(file, array)
    except (RuntimeError, OSError) as error:
        for name in (_INDEX, *arrays):
            _temporary(folder, name).unlink(missing_ok=True)
        raise ResourceError(
            f"{folder}: the index could not be written ({error}); what was there is unchanged"
        ) from error
    names = (_INDEX, *arrays)
    info = replace(
        info, faiss_version=faiss.__version__, files={name: _file_facts(_temporary(folder, name)) for name in names}
    )
    about = json.dumps(asdict(info), indent=2, sort_keys=True) + "\n"
    _temporary(folder, _ABOUT).write_text(about, encoding="utf-8")
    for name in (*names, _ABOUT):
        publish(_temporary(folder, name), folder / name)
    for name in {_REPEATS, _CONTENTS} - set(names):
        (folder / name).unlink(missing_ok=True)
    return info


def read_index(folder: Path, wanted: Mapping[str, Any], check_bytes: bool) -> tuple[Any, Units, IndexInfo]:
    """The FAISS index of ``folder`` and its units, memory-mapped, and its description.

    Raises IndexMismatchError unless files and description agree and the description has the values ``wanted``
    (None: any).
    """
    info = _read_info(folder / _ABOUT)
    require_values(folder, info, wanted, _MISMATCH)
    for name, facts in info.files.items():
        require_file(folder / name, _ABOUT, facts["bytes"], facts["sha256"] if check_bytes else None)
    index = _read_faiss(folder / _INDEX)
    _check_index(index, info, folder)
    repeats = _map(folder / _REPEATS) if _REPEATS in info.files else np.empty((2, 0), np.int64)
    contents = _map(folder / _CONTENTS) if _CONTENTS in info.files else NO_CONTENTS
    units = Units(info.ntotal, repeats, contents)
    _check_units(units, info, folder)
    return index, units, info


def _arrays(units: Units, kind: IndexKind) -> dict[str, np.ndarray]:
    repeats = {_REPEATS: units.repeats} if units.repeats.shape[1] else {}
    contents = {_CONTENTS: units.contents} if can_update(kind) else {}
    return repeats | contents


def _temporary(folder: Path, name: str) -> Path:
    return folder / f"{name}.tmp"


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ResourceError(f"{folder} has {free:,} bytes free, but the index needs {needed:,}; nothing was changed")


def _file_facts(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": file_sha256(path)}


def _read_info(path: Path) -> IndexInfo:
    try:
        info = IndexInfo(**json.loads(path.read_text(encoding="utf-8")))
        _check_info(info)
    except FileNotFoundError as error:
        raise IndexMismatchError(f"no finished index at {path.parent} (no index.json); build the index") from error
    except (ValueError, TypeError) as error:
        raise IndexMismatchError(f"{path} cannot be read ({error}); build the index again") from error
    return info


def _check_info(info: IndexInfo) -> None:
    """Raises ValueError naming the first value that no description has."""
    for name, kind in _TYPES.items():
        if type(getattr(info, name)) is not kind:
            raise ValueError(f"{name} {getattr(info, name)!r}")
    for name in ("dim", "ntotal", "units"):
        if getattr(info, name) < 1:
            raise ValueError(f"{name} {getattr(info, name)}")
    if info.kind not in KINDS:
        raise ValueError(f"kind {info.kind!r}")
    if _INDEX not in info.files:
        raise ValueError(f"files without {_INDEX}")
    for name, value in info.options.items():
        if name not in BuildOptions._fields or type(value) is not int:
            raise ValueError(f"option {name} = {value!r}")
    for name, facts in info.files.items():
        if name not in _NAMES or type(facts) is not dict or {k: type(v) for k, v in facts.items()} != _FACTS:
            raise ValueError(f"file {name} with {facts!r}")


def _map(path: Path) -> np.ndarray:
    try:
        array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise IndexMismatchError(f"{path} cannot be read ({error}); build the index again") from error
    return np.asarray(array)


def _read_faiss(path: Path) -> Any:
    try:
        return faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        raise IndexMismatchError(f"FAISS {faiss.__version__} cannot read {path} ({error}); build it again") from error


def _check_index(index: Any, info: IndexInfo, folder: Path) -> None:
    """The loaded index against its description: a wrong metric or size must never be searched."""
    if index.metric_type != faiss.METRIC_INNER_PRODUCT or info.metric != "inner_product":
        raise IndexMismatchError(f"{folder}: the index ranks by another metric than inner product; build it again")
    if (index.d, index.ntotal) != (info.dim, info.units):
        raise IndexMismatchError(
            f"{folder}: the file holds {index.ntotal} vectors of {index.d} dimensions, index.json says "
            f"{info.units} of {info.dim}; build the index again"
        )
    if type(index).__name__ != KINDS[info.kind].faiss_class:
        raise IndexMismatchError(f"{folder}: index.json says {info.kind!r}, the file holds a {type(index).__name__}")


def _check_units(units: Units, info: IndexInfo, folder: Path) -> None:
    """Rows, repeats and hashes against one another: a row that is off by one would name a wrong passage."""
    shape = units.repeats.shape
    if len(shape) != 2 or shape[0] != 2 or len(units) != info.units:
        raise IndexMismatchError(
            f"{folder}: index.json says {info.ntotal} passages and {info.units} distinct vectors, but the repeats "
            f"have shape {shape}; build the index again"
        )
    if units.contents.shape not in ((0, 2), (info.units, 2)):
        raise IndexMismatchError(
            f"{folder}: {_CONTENTS} has shape {units.contents.shape} for {info.units} distinct vectors; build the "
            "index again"
        )
