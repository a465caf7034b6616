"""An ingest that is killed before its n-th sync or rename; run as a program, because it kills itself.

    python -m tests.support.killed_ingest DUMP FOLDER=COUNT,COUNT,... [FOLDER=...]

Each COUNT is one call that is killed before its COUNT-th such operation; a call without a kill follows. Prints, a line
a folder, how many operations that last call made.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas  # noqa: F401  (pyarrow imports it when it first makes an array: here once, not in every child)

from rag.config import PassageConfig
from tests.support.small_wiki import ingest_file, small_pieces

DROPPING = PassageConfig(exact_duplicates="drop")


def _call(dump: Path, out: Path, kill_before: int) -> int:
    """One ingest in a process of its own; the number of its operations, or 0 where it was killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        count = _count_operations(kill_before)
        with small_pieces(block_bytes=6_000, shard_rows=12):
            ingest_file(dump, out, DROPPING)
        os.write(writer, str(count()).encode())
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return 0
    assert status == 0, status
    return int(os.read(reader, 20))


def _count_operations(kill_before: int) -> Callable[[], int]:
    done = 0

    def counted(operation: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal done
            done += 1
            if done == kill_before:
                os.kill(os.getpid(), signal.SIGKILL)
            return operation(*args, **kwargs)

        return call

    os.fsync, os.replace = counted(os.fsync), counted(os.replace)
    return lambda: done


if __name__ == "__main__":
    dump, *scenarios = sys.argv[1:]
    for scenario in scenarios:
        folder, _, counts = scenario.partition("=")
        for count in filter(None, counts.split(",")):
            assert _call(Path(dump), Path(folder), int(count)) == 0, f"nothing was left to kill before {count}"
        sys.stdout.write(f"{_call(Path(dump), Path(folder), 0)}\n")
