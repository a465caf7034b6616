"""What an artifact says about itself: identity, files with size and sha256, counts, parents.

The manifest is written last, so a folder without a sound one was never finished. It carries its own hash: a
manifest that was edited or half written is told from a good one without reading the files it describes.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from flows.files import fsync_folder, plain_files, write_atomically
from rag.files import file_sha256

MANIFEST = "manifest.json"
_OWN_HASH = "manifest_sha256"


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FileRecord(_Frozen):
    """One file of an artifact."""

    path: str  # below the artifact's folder, with "/"
    size: int  # bytes
    sha256: str


class ParentRecord(_Frozen):
    """An artifact that another one was made from."""

    stage: str
    name: str
    fingerprint: str


class Manifest(_Frozen):
    """The content of ``manifest.json``: nothing of when or how fast, so that equal builds have equal manifests."""

    format: Literal[2] = 2
    stage: str
    name: str
    fingerprint: str
    code: dict[str, str]  # module -> sha256
    config: dict[str, JsonValue]
    versions: dict[str, str]  # package -> version
    parents: dict[str, ParentRecord]  # role -> artifact
    counts: dict[str, int]  # rows in, out, rejected, ...
    facts: dict[str, JsonValue]  # whatever else the stage measured
    files: tuple[FileRecord, ...]


class Sound(NamedTuple):
    """A manifest that can be believed."""

    manifest: Manifest


class Damage(NamedTuple):
    """Why a folder is not the artifact that it should be."""

    problem: str


def canonical_json(value: Any) -> str:
    """One text for equal values: sorted keys, no spaces, no NaN.

    Raises TypeError or ValueError for what JSON cannot hold.

    >>> canonical_json({"b": (1, 2), "a": None})
    '{"a":null,"b":[1,2]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def json_sha256(value: Any) -> str:
    """The sha256 of the canonical JSON of a value."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def record_files(folder: Path) -> tuple[FileRecord, ...]:
    """Every file below ``folder`` except the manifest, by name."""
    paths = [path for path in plain_files(folder) if path != folder / MANIFEST]
    return tuple(
        FileRecord(path=path.relative_to(folder).as_posix(), size=path.stat().st_size, sha256=file_sha256(path))
        for path in paths
    )


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Put ``manifest.json`` into the folder in one step and sync both."""
    content = manifest.model_dump(mode="json")
    text = json.dumps({**content, _OWN_HASH: json_sha256(content)}, indent=2, ensure_ascii=False, allow_nan=False)
    write_atomically(folder / MANIFEST, text.encode())
    fsync_folder(folder)


def read_manifest(folder: Path, fingerprint: str | None = None) -> Sound | Damage:
    """The manifest of a folder, or what is wrong with it; the files themselves are not looked at."""
    try:
        content = json.loads((folder / MANIFEST).read_bytes())
        own_hash = content.pop(_OWN_HASH, None)
        manifest = Manifest.model_validate(content)
    except OSError as error:
        return Damage(f"{MANIFEST} cannot be read ({error.strerror})")
    except (ValueError, ValidationError, AttributeError):
        return Damage(f"{MANIFEST} is not a manifest")
    if own_hash != json_sha256(content):
        return Damage(f"{MANIFEST} does not match its own hash")
    if fingerprint not in (None, manifest.fingerprint):
        return Damage(f"{MANIFEST} is of another artifact")
    return Sound(manifest)


def size_problems(folder: Path, manifest: Manifest) -> list[str]:
    """The files that are missing or have another size than the manifest says."""
    problems = []
    for record in manifest.files:
        try:
            size = os.stat(folder / record.path).st_size
        except OSError as error:
            problems.append(f"{record.path} cannot be read ({error.strerror})")
            continue
        if size != record.size:
            problems.append(f"{record.path} has {size:,} bytes and should have {record.size:,}")
    return problems


def content_problems(folder: Path, manifest: Manifest) -> list[str]:
    """As ``size_problems``, and the files whose sha256 differs; reads every byte."""
    problems = size_problems(folder, manifest)
    if problems:
        return problems
    changed = [record.path for record in manifest.files if file_sha256(folder / record.path) != record.sha256]
    return [f"{path} has changed: its sha256 differs from the manifest's" for path in changed]
