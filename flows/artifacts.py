"""Content-addressed artifacts: a stage's result under the hash of all that can change it.

``root/<stage>/<name>-<first 16 digits of the fingerprint>/`` holds the files and ``manifest.json``. A build works
in ``<folder>.partial/``; then every file is synced, the manifest written last, and the folder renamed. A crash
leaves the ``.partial`` folder, where the same build finds its own half-done work. What fails its checks is moved
to ``<folder>.damaged-N`` and built again. Presence of a file never means done.
"""

import errno
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from flows.artifact_types import Artifact, BuildResult, Identity, Outcome, Plan, Slot
from flows.build_lock import BuildLock
from flows.files import fsync_folder, fsync_tree
from flows.manifest import (
    MANIFEST,
    Damage,
    Manifest,
    ParentRecord,
    Sound,
    canonical_json,
    content_problems,
    read_manifest,
    record_files,
    size_problems,
    write_manifest,
)
from flows.miss_reason import explain_change
from rag.errors import ResourceError

__all__ = ["Artifact", "ArtifactStore", "BuildResult", "Identity", "Outcome", "ParentRecord", "Plan"]

_MARGIN_BYTES = 64 * 2**20  # never start a build on a disk that is full for every purpose
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}
_REMEDY = "free some space there, make it writable, or set OPENBOOK_WORKSPACE to another folder"


class ArtifactStore:
    """The artifacts below one folder.

    >>> import tempfile; root = Path(tempfile.mkdtemp())
    >>> def build(folder):
    ...     _ = (folder / "sum.txt").write_text("3")
    ...     return BuildResult({"rows": 2})
    >>> identity = Identity(code={}, config={"numbers": [1, 2]})
    >>> ArtifactStore(root).get_or_build("add", "demo", identity=identity, build=build).reason
    'first build'
    >>> again = ArtifactStore(root).get_or_build("add", "demo", identity=identity, build=build)
    >>> again.cache_hit, again.artifact.file("sum.txt").read_text(), dict(again.artifact.counts)
    (True, '3', {'rows': 2})
    """

    def __init__(self, root: Path, notify: Callable[[str], None] = lambda _: None) -> None:
        """``notify`` is told in a line when another process has to be waited for, and which."""
        self.root = root
        self._notify = notify

    def get_or_build(
        self,
        stage: str,
        name: str,
        *,
        identity: Identity,
        build: Callable[[Path], BuildResult],
        needed_bytes: int = 0,
        resumable: bool = True,
    ) -> Outcome:
        """The artifact of this identity, from the store or newly built.

        ``build`` gets an existing folder and writes into it. With ``resumable`` the folder may hold the half-done
        work of a build of the same fingerprint that was stopped; without, it is empty. Hidden files and ``*.tmp``
        are scratch and are removed before publication. Exceptions of ``build`` pass through; its folder stays.

        Raises ResourceError where the store cannot be written or has less than ``needed_bytes`` free.
        """
        started = time.perf_counter()
        slot = Slot.of(self.root, stage, name, identity)
        found = _inspect(slot.folder, slot.fingerprint)
        if isinstance(found, Sound):
            return Outcome(Artifact(slot.folder, found.manifest), True, "cached", time.perf_counter() - started)
        self._require_room(slot, needed_bytes)
        with (
            _full_disk_named(slot.folder),
            self._lock(slot.stage, slot.folder.name).held(f"{stage} {name}", self._notify),
        ):
            artifact, hit, reason = self._settle(slot, build, resumable)
        return Outcome(artifact, hit, reason, time.perf_counter() - started)

    def plan(self, stage: str, name: str, *, identity: Identity) -> Plan:
        """What ``get_or_build`` would do and why; changes nothing."""
        slot = Slot.of(self.root, stage, name, identity)
        found = _inspect(slot.folder, slot.fingerprint)
        reason = "cached" if isinstance(found, Sound) else self._reason(slot, found)
        return Plan(slot.record, isinstance(found, Sound), reason)

    def artifacts(self, stage: str = "*") -> Iterator[Artifact]:
        """Every finished artifact with a sound manifest, of one stage or of all, by name; sizes are not checked."""
        for path in sorted(self.root.glob(f"{stage}/*/{MANIFEST}")):
            if re.fullmatch(r".+-[0-9a-f]{16}", path.parent.name):
                found = read_manifest(path.parent)
                if isinstance(found, Sound):
                    yield Artifact(path.parent, found.manifest)

    def verify(self, artifact: Artifact) -> list[str]:
        """What is wrong with an artifact after reading every byte of it; empty when all is well."""
        found = read_manifest(artifact.folder, artifact.fingerprint)
        if isinstance(found, Damage):
            return [found.problem]
        return content_problems(artifact.folder, found.manifest)

    def set_aside(self, artifact: Artifact) -> Path:
        """Move a damaged artifact away, so that it is built again; returns where it lies now."""
        return _set_aside(artifact.folder)

    def _settle(self, slot: Slot, build: Callable[[Path], BuildResult], resumable: bool) -> tuple[Artifact, bool, str]:
        """Hit, completion or build, with the lock held."""
        found = _inspect(slot.folder, slot.fingerprint)
        if isinstance(found, Sound):
            return Artifact(slot.folder, found.manifest), True, "cached: another process has just built it"
        reason = self._reason(slot, found)
        if slot.folder.exists():
            reason += f" (moved to {_set_aside(slot.folder).name})"
        finished = _finished_before_a_crash(slot)
        if finished:
            return _publish(slot, finished), True, "cached: its build was stopped just before publication"
        self._remove_stale(slot)
        if slot.partial.exists() and not resumable:
            shutil.rmtree(slot.partial)
        slot.partial.mkdir(exist_ok=True)
        return _build(slot, build), False, reason

    def _reason(self, slot: Slot, found: Damage) -> str:
        if slot.folder.exists():
            return f"damaged: {found.problem}"
        previous = list(self._same_name(slot))
        if not previous:
            return "first build" if not slot.partial.exists() else "first build, going on with half-done work"
        return explain_change(max(previous, key=lambda artifact: artifact.created_at).manifest, slot)

    def _same_name(self, slot: Slot) -> Iterator[Artifact]:
        for folder in sorted(slot.folder.parent.glob(f"{slot.name}-*")):
            if slot.is_sibling(folder.name):
                found = read_manifest(folder)
                if isinstance(found, Sound):
                    yield Artifact(folder, found.manifest)

    def _remove_stale(self, slot: Slot) -> None:
        """Drop half-done work of other fingerprints, unless somebody is at work on it."""
        for partial in slot.folder.parent.glob(f"{slot.name}-*.partial"):
            key = partial.name.removesuffix(".partial")
            if partial != slot.partial and slot.is_sibling(key):
                with self._lock(slot.stage, key).held_if_free() as free:
                    if free:
                        shutil.rmtree(partial)

    def _require_room(self, slot: Slot, needed_bytes: int) -> None:
        place = slot.folder.parent
        try:
            place.mkdir(parents=True, exist_ok=True)
            (self.root / ".locks").mkdir(exist_ok=True)
            if not os.access(place, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            free = shutil.disk_usage(place).free
        except OSError as error:
            raise ResourceError(f"cannot write {place}: {error.strerror}; {_REMEDY}") from error
        if free < needed_bytes + _MARGIN_BYTES:
            raise ResourceError(
                f"{slot.stage} {slot.name} needs {_gigabytes(needed_bytes + _MARGIN_BYTES)} in {place} "
                f"and {_gigabytes(free)} are free; {_REMEDY}"
            )

    def _lock(self, stage: str, key: str) -> BuildLock:
        return BuildLock(self.root / ".locks" / f"{stage}.{key}.lock")


def _inspect(folder: Path, fingerprint: str) -> Sound | Damage:
    found = read_manifest(folder, fingerprint)
    if isinstance(found, Sound):
        problems = size_problems(folder, found.manifest)
        if problems:
            return Damage("; ".join(problems[:3]))
    return found


def _finished_before_a_crash(slot: Slot) -> Manifest | None:
    """The manifest in the partial folder, where it describes every byte there; else none, and it is removed."""
    found = read_manifest(slot.partial, slot.fingerprint)
    if isinstance(found, Sound) and not content_problems(slot.partial, found.manifest):
        return found.manifest
    (slot.partial / MANIFEST).unlink(missing_ok=True)
    return None


def _build(slot: Slot, build: Callable[[Path], BuildResult]) -> Artifact:
    result = build(slot.partial)
    _remove_scratch(slot.partial)
    fsync_tree(slot.partial)
    manifest = Manifest(
        stage=slot.stage,
        name=slot.name,
        fingerprint=slot.fingerprint,
        code=slot.code,
        config=slot.config,
        versions=slot.versions,
        parents=slot.parents,
        counts=dict(result.counts),
        facts=json.loads(canonical_json(dict(result.facts))),
        files=record_files(slot.partial),
    )
    write_manifest(slot.partial, manifest)
    return _publish(slot, manifest)


def _publish(slot: Slot, manifest: Manifest) -> Artifact:
    slot.partial.rename(slot.folder)
    fsync_folder(slot.folder.parent)
    return Artifact(slot.folder, manifest)


def _remove_scratch(folder: Path) -> None:
    """Temporary files of a build that was killed while it wrote them, and hidden ones, are no result."""
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.name.startswith(".") or path.name.endswith(".tmp"):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _set_aside(folder: Path) -> Path:
    number = 1
    while (aside := folder.with_name(f"{folder.name}.damaged-{number}")).exists():
        number += 1
    folder.rename(aside)
    fsync_folder(folder.parent)
    return aside


@contextmanager
def _full_disk_named(folder: Path) -> Iterator[None]:
    """A disk that is full or read-only, as one line that names the place; other errors pass."""
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK_ERRORS:
            raise
        raise ResourceError(f"cannot write {folder}: {error.strerror}; {_REMEDY}") from error


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"
