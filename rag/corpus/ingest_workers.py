"""Batches over processes: results in the order of the batches, a bounded number of them on the way."""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.synchronize import Event
from pathlib import Path
from threading import Thread

from rag.corpus.earlier_ingest import EarlierIngest
from rag.corpus.ingest_pages import Batch, Made, Recipe, make_batch
from rag.errors import ResourceError

_AHEAD = 2  # batches a worker that may wait for it or for the writer

Done = tuple[Batch, Made]


def make_batches(
    batches: Iterable[Batch], recipe: Recipe, previous: Path | None = None, workers: int = 1
) -> Generator[Done]:
    """What each batch becomes, in the order of the batches, by so many processes; by this one if it is only one.

    Errors of a batch come as they are. Raises ResourceError, naming the batch, where a worker process was ended from
    outside or ran out of memory. Whoever stops early ends the workers too.
    """
    try:
        if workers == 1:
            earlier = _earlier(recipe, previous)
            yield from ((batch, make_batch(recipe, batch, earlier)) for batch in batches)
        else:
            yield from _on_processes(batches, recipe, previous, workers)
    except MemoryError as error:
        raise ResourceError(f"there is not enough memory to ingest {recipe.source}; use fewer workers") from error


def _on_processes(batches: Iterable[Batch], recipe: Recipe, previous: Path | None, workers: int) -> Generator[Done]:
    # Not forked: the caller may have threads, whose locks a forked child would inherit as they are.
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    pool = ProcessPoolExecutor(workers, context, _start_worker, (recipe, previous, stop))
    waiting: deque[tuple[Batch, Future[Made]]] = deque()
    try:
        for batch in batches:
            waiting.append((_without_content(batch), pool.submit(_work, batch)))
            if len(waiting) >= workers * (1 + _AHEAD):
                yield _oldest(waiting)
        while waiting:
            yield _oldest(waiting)
    except BrokenProcessPool as error:
        raise _ended([batch for batch, _ in waiting]) from error
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def _oldest(waiting: deque[tuple[Batch, Future[Made]]]) -> Done:
    batch, future = waiting[0]
    made = future.result()
    waiting.popleft()
    return batch, made


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


def _work(batch: Batch) -> Made:
    if _Worker.stop.is_set():
        raise InterruptedError("the ingest was stopped")
    return make_batch(_Worker.recipe, batch, _Worker.earlier)


def _earlier(recipe: Recipe, previous: Path | None) -> EarlierIngest | None:
    return EarlierIngest(previous, recipe.source) if previous else None
