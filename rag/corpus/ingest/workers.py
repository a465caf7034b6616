"""Batches over processes: results in the order of the batches, a bounded number of them on the way."""

from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from rag.corpus.ingest.earlier import EarlierIngest
from rag.corpus.ingest.pages import Batch, Made, Recipe, make_batch
from rag.errors import ResourceError
from rag.processes import Processes

T = TypeVar("T")
R = TypeVar("R")
Done = tuple[Batch, Made]


class Workers:
    """The processes of one ingest: this one if there is only one, else so many beside it, from first use to the end.

    Use it as a context: whoever leaves early ends the processes too.
    """

    def __init__(self, recipe: Recipe, previous: Path | None, workers: int) -> None:
        self._recipe, self._previous = recipe, previous
        self._processes = Processes(workers, _start_worker, (recipe, previous)) if workers > 1 else None

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *error: Any) -> None:
        if self._processes:
            self._processes.__exit__(*error)

    def batches(self, batches: Iterable[Batch]) -> Generator[Done]:
        """What each batch becomes, in the order of the batches.

        Errors of a batch come as they are. Raises ResourceError, naming the batch, where a worker process was ended
        from outside or ran out of memory.
        """
        try:
            if self._processes is None:
                earlier = _earlier(self._recipe, self._previous)
                yield from ((batch, make_batch(self._recipe, batch, earlier)) for batch in batches)
            else:
                yield from self._processes.each(_make, batches, _ended, _without_content)
        except MemoryError as error:
            raise ResourceError(
                f"there is not enough memory to ingest {self._recipe.source}; use fewer workers"
            ) from error

    def each(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """The function of every item, in the order of the items. Raises ResourceError as ``batches`` does."""
        if self._processes is None:
            yield from map(function, items)
            return
        yield from (result for _, result in self._processes.each(function, items, _ended_at_an_item))


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


def _start_worker(recipe: Recipe, previous: Path | None) -> None:
    _Worker.recipe, _Worker.earlier = recipe, _earlier(recipe, previous)


def _make(batch: Batch) -> Made:
    return make_batch(_Worker.recipe, batch, _Worker.earlier)


def _earlier(recipe: Recipe, previous: Path | None) -> EarlierIngest | None:
    return EarlierIngest(previous, recipe.source) if previous else None
