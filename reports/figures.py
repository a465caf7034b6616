"""The figure of the scores: a dot and its interval for every model, one panel a metric."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.cells import Cell, ReportTable, has_value
from reports.svg import FAINT, INK, PARTIAL, page_style, plain, to_svg

_PANELS = ("open_qa", "classification", "generation")
_WIDTH, _GAP = 9.2, 0.75  # inches: of the figure, and between two rows of panels
_DOT = "#0b5394"


def metric_figure(tables: Mapping[str, ReportTable], salt: str) -> str:
    """A dot and its 95 % interval for every model, one panel a metric; empty where there is nothing to draw.

    The same tables and ``salt`` give the same bytes.
    """
    panels = [panel for key in _PANELS if key in tables for panel in _panels(tables[key])]
    if not panels:
        return ""
    models = list(dict.fromkeys(model for _, cells in panels for model in cells))
    with page_style(salt):
        return to_svg(_drawn(panels, models), "scores", "Scores of the models", _described(panels))


_Panel = tuple[str, dict[str, Cell]]  # a metric, and each model's cell


def _panels(table: ReportTable) -> list[_Panel]:
    found = []
    for place, column in enumerate(table.columns):
        cells = {_name(row): row[place] for row in table.rows if column.numeric and has_value(row[place].value)}
        if cells:
            found.append((f"{column.group}\n{column.label}", cells))
    return found


def _name(row: tuple[Cell, ...]) -> str:
    model, corpus = row[0].text, row[1].text
    return model if corpus == "none" else f"{model}, {corpus}"


def _drawn(panels: list[_Panel], models: list[str]) -> Figure:
    across = min(len(panels), 3)
    down = -(-len(panels) // across)
    row = 0.3 * len(models) + _GAP
    figure = Figure(figsize=(_WIDTH, down * row))
    axes = figure.subplots(down, across, squeeze=False, sharey=True)
    names = 0.3 + 0.07 * max(len(model) for model in models)  # inches for the names, whatever font the page has
    figure.subplots_adjust(
        left=names / _WIDTH,
        right=0.985,
        top=1 - 0.45 / (down * row),
        bottom=0.28 / (down * row),
        wspace=0.14,
        hspace=_GAP / (row - _GAP),
    )
    for place, axis in enumerate(axes.flat):
        if place < len(panels):
            _draw(axis, panels[place], models)
        else:
            axis.set_visible(False)
    return figure


def _draw(axis: Axes, panel: _Panel, models: list[str]) -> None:
    title, cells = panel
    for height, model in enumerate(models):
        cell = cells.get(model)
        if cell is None or cell.value is None:
            continue
        colour = PARTIAL if cell.partial else _DOT
        if has_value(cell.low) and has_value(cell.high):
            axis.plot([100 * (cell.low or 0), 100 * (cell.high or 0)], [height, height], color=colour, linewidth=1.6)
        face = "white" if cell.partial else colour
        axis.plot([100 * cell.value], [height], "o", color=colour, markerfacecolor=face, markersize=5.5)
    axis.set_title(title, fontsize=9, color=INK)
    axis.set_xlim(-3, 103)
    axis.set_xticks([0, 25, 50, 75, 100])
    axis.set_yticks(range(len(models)), models)
    axis.set_ylim(len(models) - 0.4, -0.6)
    axis.grid(axis="x", color=FAINT, linewidth=0.6)
    plain(axis)


def _described(panels: list[_Panel]) -> str:
    """The figure in words, for who cannot see it."""
    told = []
    for title, cells in panels:
        values = ", ".join(f"{model} {cell.text} ({cell.detail})" for model, cell in cells.items())
        told.append(f"{title.replace(chr(10), ', ')}: {values}.")
    return " ".join(told)
