"""Work over processes of this machine: results in order, a bounded number on the way, no process left over."""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, TypeVar

from rag.errors import ResourceError

_AHEAD = 2  # pieces a process that may wait for it, or for whoever takes the results

T = TypeVar("T")
R = TypeVar("R")


class Processes:
    """Some processes beside this one, from first use to the end of the context; whoever leaves early ends them.

    Each process first calls ``start(*arguments)``; both, and every piece of work, have to be picklable.
    """

    def __init__(self, count: int, start: Callable[..., None] | None = None, arguments: tuple[Any, ...] = ()) -> None:
        self._count = count
        # Not forked: the caller may have threads, whose locks a forked child would inherit as they are.
        context = multiprocessing.get_context("spawn")
        # Nobody writes into this pipe. Its other end closes when this process ends or is killed, or by __exit__.
        self._theirs, self._ours = context.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(count, context, _start, (self._theirs, start, arguments))

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error:
            self._ours.close()  # what they are at is of no use any more
        self._pool.shutdown(cancel_futures=True)
        self._ours.close()
        self._theirs.close()

    def each(
        self,
        function: Callable[[T], R],
        items: Iterable[T],
        ended: Callable[[list[T]], ResourceError],
        kept: Callable[[T], T] = lambda item: item,
    ) -> Generator[tuple[T, R]]:
        """Items, as far as they are ``kept``, with what the function makes of them, in the order of the items.

        Errors of the function come as they are. Raises what ``ended`` makes of the items on the way, at least one,
        where a process was ended from outside.
        """
        waiting: deque[tuple[T, Future[R]]] = deque()
        try:
            for item in items:
                waiting.append((kept(item), self._pool.submit(function, item)))
                if len(waiting) >= self._count * (1 + _AHEAD):
                    yield _oldest(waiting)
            while waiting:
                yield _oldest(waiting)
        except BrokenProcessPool as error:
            raise ended([one for one, _ in waiting] or [kept(item)]) from error


def _oldest(waiting: "deque[tuple[T, Future[R]]]") -> tuple[T, R]:
    item, future = waiting[0]
    result = future.result()
    waiting.popleft()
    return item, result


def _start(pipe: Connection, start: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent decides what follows
    Thread(target=_end_with, args=(pipe,), daemon=True).start()
    if start:
        start(*arguments)


def _end_with(pipe: Connection) -> None:
    """A parent that left or was killed leaves no process behind."""
    pipe.poll(None)  # returns when the other end is closed
    os._exit(1)
