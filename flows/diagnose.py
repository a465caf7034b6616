"""What `openbook doctor` says: the parts that a study needs, and whether they are here."""

import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from flows.paths import resolve_path
from flows.settings import load_settings, prepare_workspace
from flows.study_run import STUDIES
from rag.config import read_study
from rag.errors import RagError

_LIBRARIES = (
    "torch",
    "transformers",
    "faiss-cpu",
    "tantivy",
    "duckdb",
    "prefect",
    "great-expectations",
    "pyarrow",
    "numpy",
)


class Finding(NamedTuple):
    """One thing that was looked at."""

    what: str
    ok: bool
    detail: str


def findings() -> Iterator[Finding]:
    """Python, libraries, embedded models, workspace, memory."""
    yield Finding("Python", sys.version_info >= (3, 11), platform.python_version())
    for library in _LIBRARIES:
        found = _version(library)
        yield Finding(library, found is not None, found or f"pip install {library}")
    yield Finding(
        "ray", True, _version("ray") or "not installed; only for OPENBOOK_RAY: pip install 'openbook-rag[ray]'"
    )
    demo = read_study(STUDIES / "demo.toml")
    for path in (demo.encoder.path, demo.generator.path, *(source.path for source in demo.sources.values())):
        if path.startswith("package:"):
            yield _package(path)
    yield _workspace()
    yield _machine()


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _package(path: str) -> Finding:
    try:
        resolve_path(path, study_folder=Path(), demo=None)
    except RagError as error:
        return Finding(path, False, str(error))
    return Finding(path, True, "found")


def _workspace() -> Finding:
    try:
        settings = load_settings()
        prepare_workspace(settings)
    except RagError as error:
        return Finding("workspace", False, str(error))
    return Finding("workspace", True, str(settings.workspace.absolute()))


def _machine() -> Finding:
    import psutil

    free = psutil.virtual_memory().available
    return Finding("memory", free >= 4e9, f"{free / 1e9:.1f} GB free (the demo needs 4), {os.cpu_count()} cores")
