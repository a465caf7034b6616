"""The figure of the trade-off of an index: recall against the time of a question, for its search settings."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from reports.cells import Cell, ReportTable, has_value
from reports.svg import FAINT, INK, PARTIAL, page_style, plain, to_svg

_LOOKS = (("#0b5394", "o"), ("#b45f06", "s"), ("#38761d", "^"), ("#741b47", "D"), ("#5c5c5c", "v"), ("#0c7c8c", "P"))


class _Point(NamedTuple):
    milliseconds: float
    recall: float  # percent
    own: bool  # the study's setting
    told: str


class _Line(NamedTuple):
    label: str
    k: str
    points: list[_Point]
    gate: float | None  # percent
    partial: bool


def tradeoff_figure(tables: Mapping[str, ReportTable], salt: str) -> str:
    """Recall against milliseconds a question, one line an index; empty where there is nothing to draw.

    The line joins the settings that no other setting beats in both; the study's own setting is ringed.
    """
    lines = _lines(tables["index_sweep"]) if "index_sweep" in tables else []
    if not lines:
        return ""
    with page_style(salt):
        figure = Figure(figsize=(9.2, 3.4 + 0.16 * len(lines)))
        axis = figure.subplots()
        figure.subplots_adjust(left=0.065, right=0.69, top=0.94, bottom=0.15)
        for line, (colour, marker) in zip(lines, _LOOKS * len(lines), strict=False):
            _draw(axis, line, colour, marker)
        _dress(axis, lines)
        return to_svg(figure, "tradeoff", "Recall of the index against the time of a question", _described(lines))


def _lines(table: ReportTable) -> list[_Line]:
    found: dict[tuple[str, str], list[dict[str, Cell]]] = {}
    labels = [column.label for column in table.columns]
    for row in table.rows:
        cells = dict(zip(labels, row, strict=True))
        if has_value(cells["recall"].value) and (cells["one question"].value or 0) > 0:
            found.setdefault((row[0].text, row[1].text), []).append(cells)
    return [_line(f"{corpus}, {kind}", rows) for (corpus, kind), rows in found.items()]


def _line(name: str, rows: list[dict[str, Cell]]) -> _Line:
    points = [
        _Point(
            1000 * (row["one question"].value or 0),
            100 * (row["recall"].value or 0),
            row["recall"].strong,
            f"{row['setting'].text} {row['recall'].text} in {row['one question'].text}",
        )
        for row in rows
    ]
    gate = rows[0]["at least"].value
    partial = any(row["recall"].partial for row in rows)
    label = f"{name}, {rows[0]['memory'].text}"
    return _Line(label, rows[0]["k"].text, points, None if gate is None else 100 * gate, partial)


def _unbeaten(points: list[_Point]) -> list[_Point]:
    """The points that no other point beats in both time and recall, fastest first."""
    kept: list[_Point] = []
    for point in sorted(points, key=lambda point: (point.milliseconds, -point.recall)):
        if not kept or point.recall > kept[-1].recall:
            kept.append(point)
    return kept


def _draw(axis: Axes, line: _Line, colour: str, marker: str) -> None:
    best = _unbeaten(line.points)
    beaten = [point for point in line.points if point not in best]
    face = "white" if line.partial else colour
    own = [point for point in line.points if point.own]
    axis.plot([p.milliseconds for p in beaten], [p.recall for p in beaten], marker, color=colour, alpha=0.3, ms=4)
    axis.plot(
        [p.milliseconds for p in best],
        [p.recall for p in best],
        marker=marker,
        color=colour,
        markerfacecolor=face,
        markersize=5,
        linewidth=1.4,
        label=line.label,
    )
    axis.plot(
        [p.milliseconds for p in own],
        [p.recall for p in own],
        "o",
        markersize=12,
        markerfacecolor="none",
        markeredgecolor=INK,
        markeredgewidth=1.2,
    )


def _dress(axis: Axes, lines: list[_Line]) -> None:
    values = [point.recall for line in lines for point in line.points]
    gates = sorted({line.gate for line in lines if line.gate is not None})
    for gate in gates:
        axis.axhline(gate, color=PARTIAL, linewidth=1, linestyle=(0, (4, 3)), label=f"the gate: {gate:.1f}")
    lowest = min([*values, *gates])
    room = max(0.06 * (100 - lowest), 0.5)
    axis.set_ylim(max(lowest - room, -3), 100 + room)
    axis.set_xscale("log")
    axis.margins(x=0.08)
    times = [point.milliseconds for line in lines for point in line.points]
    if max(times) < 4 * min(times):  # noise of a few percent must not fill the width
        middle = math.sqrt(min(times) * max(times))
        axis.set_xlim(min(middle / 2, min(times) / 1.1), max(2 * middle, 1.1 * max(times)))
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_xlabel("milliseconds a question, one thread", color=INK)
    asked = " or ".join(dict.fromkeys(line.k for line in lines))
    axis.set_title(f"percent of the exact {asked} that are found", fontsize=9, color=INK, loc="left")
    axis.grid(color=FAINT, linewidth=0.6)
    axis.plot([], [], "o", markersize=10, markerfacecolor="none", markeredgecolor=INK, label="the study's setting")
    axis.legend(loc="upper left", bbox_to_anchor=(1.02, 1.03), frameon=False, labelcolor=INK, labelspacing=0.7)
    plain(axis)


def _described(lines: list[_Line]) -> str:
    """The figure in words, for who cannot see it."""
    told = []
    for line in lines:
        points = "; ".join(point.told + (" (the study's setting)" if point.own else "") for point in line.points)
        told.append(f"{line.label}, k = {line.k}: {points}.")
    return " ".join(told)
