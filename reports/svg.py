"""A matplotlib figure as SVG that stands in the page itself: the same bytes each time, and told in words."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

INK, FAINT, PARTIAL = "#1a1a1a", "#d9d9d9", "#b00020"


@contextmanager
def page_style(salt: str) -> Iterator[None]:
    """Everything drawn inside has the page's font and ids that come from ``salt``, never from chance."""
    style = {"svg.hashsalt": salt, "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9}
    with matplotlib.rc_context(style):
        yield


def to_svg(figure: Figure, name: str, title: str, description: str) -> str:
    """The bare svg element, scaled to the page, without a date; ``name`` makes its ids those of this figure alone."""
    FigureCanvasSVG(figure)
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    body = out.getvalue()
    body = re.sub(r"\s*<metadata>.*?</metadata>", "", body[body.index("<svg") :], flags=re.DOTALL)
    body = re.sub(r' (?:width|height)="[\d.]+pt"', "", body, count=2)
    body = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", body)  # two figures of one page would share them
    opening, rest = body.split(">", 1)
    named = f'{opening} role="img" aria-labelledby="{name}-title {name}-description">'
    return (
        f'{named}<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-description">{escape(description)}</desc>{rest}'
    )


def plain(axis: Axes) -> None:
    """Take away what is no data: frame, ticks, dark lines."""
    axis.set_axisbelow(True)
    axis.tick_params(length=0, which="both", colors=INK)
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    axis.spines["bottom"].set_color(FAINT)
