"""Progress callables for tests that interfere with long work."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any


def at_first(action: Callable[[], object]) -> Any:
    """One that calls ``action`` when the first item is there, and passes every item on."""

    def progress(items: Iterable[Any]) -> Iterator[Any]:
        for number, item in enumerate(items):
            if number == 0:
                action()
            yield item

    return progress
