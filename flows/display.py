"""The two ways in which progress reaches a person: bars that move, or plain lines in a log."""

import time
from typing import NamedTuple, Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


class Count(NamedTuple):
    """How far a loop has come."""

    done: int
    total: int | None
    unit: str
    seconds: float  # since the loop began


class Display(Protocol):
    """What a terminal writes to; stages are known by their name."""

    def start(self) -> None:
        """The command begins."""

    def stop(self) -> None:
        """The command ends."""

    def begin(self, stage: str) -> None:
        """A stage begins; there is nothing to count yet."""

    def show(self, stage: str, count: Count) -> None:
        """A loop of the stage has come so far; called ten times a second at most."""

    def end(self, stage: str, line: str) -> None:
        """A stage is over, and this line of it stays."""

    def line(self, text: str) -> None:
        """A line that stays."""


class NoDisplay:
    """Nobody is looking."""

    def start(self) -> None:
        """Nothing."""

    stop = start

    def begin(self, stage: str) -> None:
        """Nothing."""

    def show(self, stage: str, count: Count) -> None:
        """Nothing."""

    def end(self, stage: str, line: str) -> None:
        """Nothing."""

    line = begin


class PlainDisplay:
    """Lines without control characters: a count every few seconds at most, and each stage's end."""

    def __init__(self, stream: TextIO, every_seconds: float = 5.0) -> None:
        self._stream = stream
        self._every_seconds = every_seconds
        self._last = time.monotonic()

    def start(self) -> None:
        """Nothing to open."""

    stop = start

    def begin(self, stage: str) -> None:
        """A quick stage needs no line of its own before its last one."""

    def show(self, stage: str, count: Count) -> None:
        """A line, where the last one is long enough ago."""
        now = time.monotonic()
        if count.done and now - self._last >= self._every_seconds:
            self._last = now
            self.line(f"{stage}: {progress_text(count)}")

    def end(self, stage: str, line: str) -> None:  # noqa: ARG002  (only bars need the name)
        """Print the line."""
        self.line(line)

    def line(self, text: str) -> None:
        """Write and flush, so that a log shows it at once."""
        self._stream.write(f"{text}\n")
        self._stream.flush()


class BarDisplay:
    """A spinner and a bar for each running stage, by rich, below the lines that stay."""

    def __init__(self, stream: TextIO) -> None:
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[text]}", markup=False, style="dim"),
            TimeElapsedColumn(),
            console=Console(file=stream, highlight=False),
            transient=True,
        )
        self._ids: dict[str, TaskID] = {}

    def start(self) -> None:
        """Take over the bottom of the terminal."""
        self._bars.start()

    def stop(self) -> None:
        """Give the terminal back."""
        self._bars.stop()

    def begin(self, stage: str) -> None:
        """A bar that pulses."""
        self._ids[stage] = self._bars.add_task(stage, total=None, text="")

    def show(self, stage: str, count: Count) -> None:
        """Move the bar."""
        self._bars.update(self._ids[stage], total=count.total, completed=count.done, text=progress_text(count))

    def end(self, stage: str, line: str) -> None:
        """The bar gives way to the line."""
        self._bars.remove_task(self._ids.pop(stage))
        self.line(line)

    def line(self, text: str) -> None:
        """Print above the bars."""
        self._bars.console.print(text, markup=False, soft_wrap=True)


def progress_text(count: Count) -> str:
    """A count in words.

    >>> progress_text(Count(1200, 4200, "passages", 4.0))
    '1,200 of 4,200 passages (29%), 300/s, 10 s left'
    >>> progress_text(Count(7, None, "", 14.0))
    '7, 0.5/s'
    """
    of_total = f" of {count.total:,}" if count.total else ""
    unit = f" {count.unit}" if count.unit else ""
    share = f" ({count.done / count.total:.0%})" if count.total else ""
    text = f"{count.done:,}{of_total}{unit}{share}"
    if not count.done or count.seconds <= 0:
        return text
    left = f", {duration((count.total - count.done) * count.seconds / count.done)} left" if count.total else ""
    return f"{text}, {_rate(count.done / count.seconds)}/s{left}"


def duration(seconds: float) -> str:
    """Seconds as a person says them.

    >>> duration(0.42), duration(12.3), duration(185), duration(3725)
    ('0.4 s', '12 s', '3 min 05 s', '1 h 02 min')
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 20 else f"{per_second:.2g}"
