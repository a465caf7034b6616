"""What a person sees while a study runs: its stages with their counts, rates and the time that is left.

On a terminal a bar moves; elsewhere (a file, a pipe, a scheduler's log) there are plain lines.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Protocol, TextIO, TypeVar

from flows.artifacts import Outcome
from flows.display import BarDisplay, Count, Display, NoDisplay, PlainDisplay, duration

T = TypeVar("T")
_REPORT_SECONDS = 0.1


class ProgressCallable(Protocol):
    """What the functions of rag take as ``progress``: the same items, counted as they go by."""

    def __call__(self, items: Iterable[T], /) -> Iterable[T]:
        """The same items."""


class Stage:
    """One stage of the work, with the one line that it leaves."""

    def __init__(self, title: str, display: Display) -> None:
        self.title = title
        self._display = display
        self._started = time.monotonic()
        self._open = True
        display.begin(title)

    def progress(self, items: Iterable[T], /) -> Iterable[T]:
        """The same items, counted."""
        return self.counting("")(items)

    def counting(self, unit: str) -> ProgressCallable:
        """A ``progress`` callable that counts in this unit ("passages")."""

        def progress(items: Iterable[T], /) -> Iterable[T]:
            return counted(items, self._show, unit)

        return progress

    def finish(self, result: Outcome | str = "done") -> None:
        """Leave the stage's line: "ingest 2016: 4,200 rows in 12 s", "ingest 2016: cached"."""
        if isinstance(result, Outcome):
            self._end(describe(result))
        else:
            self._end(f"{result} in {duration(time.monotonic() - self._started)}")

    def fail(self) -> None:
        """Leave a line that says so, unless the stage has left one already."""
        self._end(f"failed after {duration(time.monotonic() - self._started)}")

    def close(self) -> None:
        """Finish, unless that is done already."""
        self.finish()

    def _show(self, count: Count) -> None:
        if self._open:
            self._display.show(self.title, count)

    def _end(self, text: str) -> None:
        if self._open:
            self._open = False
            self._display.end(self.title, f"{self.title}: {text}")


class Terminal:
    """The display of a command, and the current one while its context is open.

    ``plain`` forces plain lines; without it they are used where the stream is no terminal. ``every_seconds`` is
    the least time between two plain lines of progress.

    >>> with Terminal(stream=sys.stdout, plain=True) as terminal, terminal.stage("ingest", "2016") as stage:
    ...     numbers = list(Terminal.current().progress("passages")(range(3)))
    ...     stage.finish("3 passages")  # doctest: +ELLIPSIS
    ingest 2016: 3 passages in ... s
    """

    def __init__(
        self,
        *,
        stream: TextIO | None = None,
        plain: bool | None = None,
        every_seconds: float = 5.0,
        silent: bool = False,
    ) -> None:
        out = stream or sys.stdout
        is_plain = plain if plain is not None else not out.isatty()
        lines = PlainDisplay(out, every_seconds) if is_plain else BarDisplay(out)
        self._display: Display = NoDisplay() if silent else lines
        self._stages: list[Stage] = []
        self._token: Token[Terminal | None] | None = None

    @staticmethod
    def current() -> "Terminal":
        """The terminal that the command opened, inside Prefect tasks too; a silent one where it opened none."""
        return _CURRENT.get() or Terminal(silent=True)

    def __enter__(self) -> "Terminal":
        self._token = _CURRENT.set(self)
        self._display.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._display.stop()
        if self._token:
            _CURRENT.reset(self._token)

    @contextmanager
    def stage(self, stage: str, name: str = "") -> Iterator[Stage]:
        """A stage of the work ("ingest", "2016"), which says how it ended whatever happens inside."""
        entry = Stage(f"{stage} {name}".strip(), self._display)
        self._stages.append(entry)
        try:
            yield entry
            entry.close()
        finally:
            entry.fail()  # no effect on a stage that has left its line
            self._stages.remove(entry)

    def progress(self, unit: str = "") -> ProgressCallable:
        """A ``progress`` callable that counts in this unit for the stage begun last."""
        return self._stages[-1].counting(unit) if self._stages else _uncounted

    def note(self, text: str) -> None:
        """A line of text, above whatever moves."""
        self._display.line(text)


_CURRENT: ContextVar[Terminal | None] = ContextVar("openbook terminal", default=None)


def describe(outcome: Outcome) -> str:
    """What became of a stage, why, and how long it took."""
    if outcome.cache_hit:
        return outcome.reason
    counts = outcome.artifact.counts
    rows = [f"{counts['rows_out']:,} rows"] if "rows_out" in counts else []
    rejected = [f"{counts['rows_rejected']:,} rejected"] if counts.get("rows_rejected") else []
    why = "" if outcome.reason.startswith("first build") else f" ({outcome.reason})"
    return f"{', '.join([*rows, *rejected]) or 'done'} in {duration(outcome.seconds)}{why}"


def counted(items: Iterable[T], report: Callable[[Count], None], unit: str = "") -> Iterable[T]:
    """The same items, with a length where they have one; ``report`` hears how many have gone by.

    >>> list(counted("ab", lambda count: print(count.done, count.total)))
    0 2
    2 2
    ['a', 'b']
    """
    return _CountedSized(items, report, unit) if isinstance(items, Sized) else _Counted(items, report, unit)


class _Counted(Iterable[T]):
    def __init__(self, items: Iterable[T], report: Callable[[Count], None], unit: str) -> None:
        self._items = items
        self._report = report
        self._unit = unit

    def __iter__(self) -> Iterator[T]:
        total = len(self._items) if isinstance(self._items, Sized) else None
        started = reported = time.monotonic()
        done = 0
        self._report(Count(0, total, self._unit, 0.0))
        for item in self._items:
            yield item
            done += 1
            now = time.monotonic()
            if now - reported >= _REPORT_SECONDS:
                reported = now
                self._report(Count(done, total, self._unit, now - started))
        self._report(Count(done, total, self._unit, time.monotonic() - started))


class _CountedSized(_Counted[T], Sized):
    def __len__(self) -> int:
        return len(self._items) if isinstance(self._items, Sized) else 0


def _uncounted(items: Iterable[T], /) -> Iterable[T]:
    return items
