"""One process at a time for one artifact; whoever waits is told for whom."""

import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

_SAY_AGAIN_SECONDS = 60.0


class BuildLock:
    """A lock between processes that the kernel frees when its holder dies, with a note of who holds it."""

    def __init__(self, path: Path) -> None:
        self._lock = FileLock(path)
        self._note = path.with_suffix(".holder")

    @contextmanager
    def held(self, what: str, notify: Callable[[str], None]) -> Iterator[None]:
        """Hold the lock; while another process has it, say so at once and then every minute."""
        wait = 0.0
        while not self._acquired(wait):
            notify(f"waiting for {what}: {self._holder()}")
            wait = _SAY_AGAIN_SECONDS
        try:
            self._note.write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "command": _command()}))
            yield
        finally:
            self._note.unlink(missing_ok=True)
            self._lock.release()

    @contextmanager
    def held_if_free(self) -> Iterator[bool]:
        """Hold the lock and yield True, or yield False at once where somebody else has it."""
        acquired = self._acquired(0.0)
        try:
            yield acquired
        finally:
            if acquired:
                self._lock.release()

    def _acquired(self, wait: float) -> bool:
        try:
            self._lock.acquire(timeout=wait)
        except Timeout:
            return False
        return True

    def _holder(self) -> str:
        try:
            note = json.loads(self._note.read_text())
            if note["host"] == socket.gethostname() and not _is_alive(note["pid"]):
                return f"process {note['pid']} has ended, but a child of it still holds the lock"
            return f"process {note['pid']} on {note['host']} is building it ({note['command']})"
        except (OSError, ValueError, KeyError):
            return "another process is building it"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _command() -> str:
    return " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200]
