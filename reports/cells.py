"""What a table of the report is made of: cells that carry their value, not only its text."""

import hashlib
import math
import re
from typing import NamedTuple

DASH = "–"  # where there is no value


class Link(NamedTuple):
    """A reference inside the report."""

    text: str
    href: str  # "#" and an anchor


class Cell(NamedTuple):
    """One cell: its text for people, and what stands behind it."""

    text: str
    value: float | None = None
    low: float | None = None  # 95 % interval, in the unit of value
    high: float | None = None
    n: int | None = None
    detail: str = ""  # interval and n for people
    links: tuple[Link, ...] = ()
    anchor: str = ""  # id by which others link to this cell's row
    partial: bool = False
    note: str = ""  # why it is partial
    alarm: bool = False  # something failed
    strong: bool = False  # the cell to look at first


class Column(NamedTuple):
    """A column's heading."""

    label: str
    group: str = ""  # shown above the label: the task
    numeric: bool = False


def headings(*labels: str) -> tuple[Column, ...]:
    """Columns with these labels; those that end in " >" hold numbers, set to the right.

    >>> headings("task", "n >")[1]
    Column(label='n', group='', numeric=True)
    """
    return tuple(Column(label.removesuffix(" >"), numeric=label.endswith(" >")) for label in labels)


class ReportTable(NamedTuple):
    """A table of the report as data."""

    key: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def partial(self) -> bool:
        return any(cell.partial for row in self.rows for cell in row)

    @property
    def notes(self) -> tuple[str, ...]:
        """The reasons of all partial cells, each once, in their order."""
        return tuple(dict.fromkeys(cell.note for row in self.rows for cell in row if cell.partial and cell.note))


def anchor_of(*parts: str) -> str:
    """An HTML id for these names: readable, and different for different names.

    >>> anchor_of("m", "rag-token", "Q & A")
    'm-rag-token-q-a-4269fa'
    """
    readable = re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")[:60]
    return f"{readable}-{hashlib.sha256(chr(31).join(parts).encode()).hexdigest()[:6]}"


def has_value(value: float | None) -> bool:
    """Whether there is a number to show; NaN and infinity are none."""
    return value is not None and math.isfinite(value)


def percent(value: float | None, unit: str = "fraction") -> str:
    """A metric's value for people: fractions as percent with one decimal.

    >>> percent(0.5806), percent(None), percent(12.3456, "seconds")
    ('58.1', '–', '12.35')
    """
    if value is None or not math.isfinite(value):
        return DASH
    return f"{100 * value:.1f}" if unit == "fraction" else f"{value:.4g}"


def interval(low: float | None, high: float | None, unit: str = "fraction") -> str:
    """An interval for people.

    >>> interval(0.474, 0.681)
    '47.4 to 68.1'
    """
    return f"{percent(low, unit)} to {percent(high, unit)}" if has_value(low) and has_value(high) else ""


def number(value: float | None, digits: int = 3) -> str:
    """A number with so many digits.

    >>> number(1234567), number(0.00012345), number(None)
    ('1,234,567', '0.000123', '–')
    """
    if value is None or not math.isfinite(value):
        return DASH
    return f"{value:,}" if isinstance(value, int) else f"{value:.{digits}g}"


def duration(seconds: float | None) -> str:
    """A time span for people.

    >>> duration(0.031), duration(1.23), duration(75), duration(7321)
    ('31 ms', '1.2 s', '1 min 15 s', '2 h 02 min')
    """
    if seconds is None or not math.isfinite(seconds):
        return DASH
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def milliseconds(seconds: float | None) -> str:
    """A short time for people, all in one unit so that a column can be compared.

    >>> milliseconds(0.0002), milliseconds(0.0449), milliseconds(1.25)
    ('0.20 ms', '45 ms', '1,250 ms')
    """
    if seconds is None or not math.isfinite(seconds):
        return DASH
    short_time = 1000 * seconds
    return f"{short_time:#.2g}".rstrip(".") + " ms" if short_time < 99.5 else f"{short_time:,.0f} ms"


def size(n_bytes: float | None) -> str:
    """A file size for people, in powers of 1000.

    >>> size(8_400_896), size(512)
    ('8.4 MB', '512 B')
    """
    if n_bytes is None:
        return DASH
    if n_bytes < 1000:
        return f"{n_bytes:.0f} B"
    power = min(int(math.log10(n_bytes)) // 3, 4)
    return f"{n_bytes / 1000**power:.1f} {' kMGT'[power]}B"


def p_text(p_value: float | None) -> str:
    """A p-value for people.

    >>> p_text(0.00001), p_text(0.0312)
    ('< 0.0001', '0.0312')
    """
    if p_value is None or not math.isfinite(p_value):
        return DASH
    return "< 0.0001" if p_value < 0.0001 else f"{p_value:.3g}"


def short(fingerprint: str | None) -> str:
    """The first twelve characters, enough to tell artifacts apart."""
    return (fingerprint or DASH)[:12]
