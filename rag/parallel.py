"""Independent pieces of work on the cores of one machine, by threads that compute alone.

torch can spread one matrix product over the cores, but on small matrices two cores gain 1.4 times at most. Two
batches side by side, each on one core, gain nearly 2. Each piece computes on one thread whatever the machine has, so
the number of cores never changes a result.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")


def on_threads(function: Callable[[T], R], items: Iterable[T], device: torch.device | None = None) -> Iterator[R]:
    """The function of every item, in the order of the items; as many at a time as torch has threads.

    On an accelerator, and inside a thread that computes alone already, one after the other. The function must not
    draw random numbers: their order would depend on the threads.

    >>> list(on_threads(lambda number: number * number, range(4)))
    [0, 1, 4, 9]
    """
    if device is not None and device.type != "cpu":
        yield from map(function, items)
        return
    workers = torch.get_num_threads()
    torch.set_num_threads(1)
    pool = ThreadPoolExecutor(workers) if workers > 1 else None
    try:
        yield from pool.map(function, items) if pool else map(function, items)
    finally:
        if pool:
            pool.shutdown(cancel_futures=True)
        torch.set_num_threads(workers)
