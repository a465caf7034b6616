"""Batches over processes: results in the order of the batches, a bounded number of them on the way."""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.synchronize import Event
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

from rag.corpus.ingest.earlier import EarlierIngest
from rag.corpus.ingest.pages import Batch, Made, Recipe, make_batch
from rag.errors import ResourceError

_AHEAD = 2  # batches a worker that may wait for it or for the writer

T = TypeVar("T")
R = TypeVar("R")
Done = tuple[Batch, Made]


class Workers:
    """The processes of one ingest: this one if there is only one, else so many beside it, from first use to the end.

    Use it as a context: whoever leaves early ends the processes too.
    """

    def __init__(self, recipe: Recipe, previous: Path | None, workers: int) -> None:
        self._recipe, self._previous, self._count = recipe, previous, workers
        # Not forked: the caller may have threads, whose locks a forked child would inherit as they are.
        context = multiprocessing.get_context("spawn")
        self._stop = context.Event()
        started_with = (recipe, previous, self._stop)
        self._pool = ProcessPoolExecutor(workers, context, _start_worker, started_with) if workers > 1 else None

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._pool:
            self._pool.shutdown(cancel_futures=True)

    def batches(self, batches: Iterable[Batch]) -> Generator[Done]:
        """What each batch becomes, in the order of the batches.

        Errors of a batch come as they are. Raises ResourceError, naming the batch, where a worker process was ended
        from outside or ran out of memory.
        """
        try:
            if self._pool is None:
                earlier = _earlier(self._recipe, self._previous)
                yield from ((batch, make_batch(self._recipe, batch, earlier)) for batch in batches)
            else:
                yield from self._in_order(_make, batches, _without_content, _ended)
        except MemoryError as error:
            raise ResourceError(
                f"there is not enough memory to ingest {self._recipe.source}; use fewer workers"
            ) from error

    def each(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """The function of every item, in the order of the items. Raises ResourceError as ``batches`` does."""
        if self._pool is None:
            yield from map(function, items)
            return
        yield from (result for _, result in self._in_order(function, items, lambda item: item, _ended_at_an_item))

    def _in_order(
        self,
        function: Callable[[T], R],
        items: Iterable[T],
        kept: Callable[[T], T],
        ended: Callable[[list[T]], ResourceError],
    ) -> Generator[tuple[T, R]]:
        """Items, as far as they are ``kept``, with their results; only so many of them are on the way at a time."""
        assert self._pool
        waiting: deque[tuple[T, Future[R]]] = deque()
        try:
            for item in items:
                waiting.append((kept(item), self._pool.submit(_unless_stopped, function, item)))
                if len(waiting) >= self._count * (1 + _AHEAD):
                    yield _oldest(waiting)
            while waiting:
                yield _oldest(waiting)
        except BrokenProcessPool as error:
            raise ended([item for item, _ in waiting]) from error


def _oldest(waiting: "deque[tuple[T, Future[R]]]") -> tuple[T, R]:
    item, future = waiting[0]
    result = future.result()
    waiting.popleft()
    return item, result


def _without_content(batch: Batch) -> Batch:
    """Only what says which batch it is, for its content may be megabytes."""
    return batch._replace(block=None, items=())


def _ended(waiting: list[Batch]) -> ResourceError:
    first, last = waiting[0], waiting[-1]
    others = "" if first == last else f", or on a later one up to block {last.number} of {last.path}"
    return ResourceError(
        f"a worker process was ended from outside while it worked on block {first.number} of {first.path}{others}; "
        "most often the system ends it for lack of memory: use fewer workers, or free memory, and start again"
    )


def _ended_at_an_item(_: list[Any]) -> ResourceError:
    return ResourceError(
        "a worker process was ended from outside while it looked for duplicates; most often the system ends it for "
        "lack of memory: use fewer workers, or free memory, and start again"
    )


class _Worker:
    """What a worker process holds."""

    recipe: Recipe
    earlier: EarlierIngest | None
    stop: Event


def _start_worker(recipe: Recipe, previous: Path | None, stop: Event) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent decides what follows
    Thread(target=_end_with_parent, daemon=True).start()
    _Worker.recipe, _Worker.earlier, _Worker.stop = recipe, _earlier(recipe, previous), stop


def _end_with_parent() -> None:
    """A parent that was killed leaves no workers behind."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _unless_stopped(function: Callable[[T], R], item: T) -> R:
    if _Worker.stop.is_set():
        raise InterruptedError("the ingest was stopped")
    return function(item)


def _make(batch: Batch) -> Made:
    return make_batch(_Worker.recipe, batch, _Worker.earlier)


def _earlier(recipe: Recipe, previous: Path | None) -> EarlierIngest | None:
    return EarlierIngest(previous, recipe.source) if previous else None
