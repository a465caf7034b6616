"""Independent pieces of work on the cores of one machine, by threads that compute alone.

torch can spread one matrix product over the cores, but on small matrices two cores gain 1.4 times at most. Two
batches side by side, each on one core, gain nearly 2. Each piece computes on one thread whatever the machine has, so
the number of cores never changes a result.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")


def on_threads(
    function: Callable[[T], R], items: Iterable[T], device: torch.device | None = None, at_once: int | None = None
) -> Iterator[R]:
    """The function of every item, in the order of the items; as many at a time as torch has threads.

    On an accelerator, and inside a thread that computes alone already, one after the other. The function must not
    draw random numbers: their order would depend on the threads. Large results are bounded by ``at_once``: no more
    items than that are begun before the first of them was taken, and that one let go of.

    >>> list(on_threads(lambda number: number * number, range(4)))
    [0, 1, 4, 9]
    """
    if device is not None and device.type != "cpu":
        yield from map(function, items)
        return
    workers = torch.get_num_threads()
    torch.set_num_threads(1)
    pool = ThreadPoolExecutor(min(workers, at_once or workers)) if min(workers, at_once or workers) > 1 else None
    try:
        yield from _pooled(pool, function, items, at_once) if pool else map(function, items)
    finally:
        if pool:
            pool.shutdown(cancel_futures=True)
        torch.set_num_threads(workers)


def _pooled(
    pool: ThreadPoolExecutor, function: Callable[[T], R], items: Iterable[T], at_once: int | None
) -> Iterator[R]:
    rest = iter(items)
    begun = deque(pool.submit(function, item) for item in islice(rest, at_once))
    while begun:
        yield begun.popleft().result()
        begun.extend(pool.submit(function, item) for item in islice(rest, 1))
