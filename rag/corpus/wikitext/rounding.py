"""How {{convert}} rounds: the result is about as precise as the input, and has two significant figures at least.

Source: https://en.wikipedia.org/wiki/Template:Convert/doc
"""

import math
import re
from fractions import Fraction

from rag.corpus.wikitext.arguments import Arguments
from rag.corpus.wikitext.measures import MAX_DIGITS, Measure, Quantity
from rag.corpus.wikitext.numbers import grouped
from rag.corpus.wikitext.units import Unit

_LARGE, _SMALL = 1e10, 1e-4  # beyond these a result is shown with a power of ten
_MANTISSA = 9  # more decimals of one say nothing


def results(measure: Measure, unit: Unit, target: Unit, arguments: Arguments) -> list[str]:
    """The quantities of ``measure``, given in ``unit``, in another unit; all with as many decimals as one needs."""
    values = [converted(quantity.value, unit, target) for quantity in measure.quantities]
    if not all(map(math.isfinite, values)):
        return []
    bottom, step = arguments.get("frac"), arguments.get("round")
    if re.fullmatch("[1-9][0-9]{0,2}", bottom):
        return [_as_fraction(value, int(bottom)) for value in values]
    if re.fullmatch("5|10|25|50", step):
        return [_shown(_half_up(value / int(step), 0) * int(step), 0) for value in values]
    decimals = [
        _decimals(quantity, unit, value, measure.rest, arguments.get("sigfig"))
        for quantity, value in zip(measure.quantities, values, strict=True)
    ]
    return [_shown(value, max(-MAX_DIGITS, min(max(decimals), MAX_DIGITS))) for value in values]


def is_rounding(argument: str) -> bool:
    return re.fullmatch(r"-?\d", argument) is not None


def converted(value: float, unit: Unit, target: Unit) -> float:
    """``value`` of one unit in another one; infinite where there is no such amount."""
    if unit.inverse and value:
        size = unit.scale / value
    else:
        size = math.inf if unit.inverse else value * unit.scale + unit.offset
    if target.inverse:
        return target.scale / size if size else math.inf
    return (size - target.offset) / target.scale


def _shown(value: float, decimals: int) -> str:
    scaled = _half_up(value, decimals)
    sign = "−" if scaled < 0 else ""
    if not scaled or _SMALL <= abs(scaled) < _LARGE:
        return sign + grouped(f"{abs(scaled):.{max(decimals, 0)}f}")
    power = math.floor(math.log10(abs(scaled)) + 1e-9)
    return f"{sign}{abs(scaled) / 10.0**power:.{min(max(power + decimals, 0), _MANTISSA)}f}×10^{power}"


def _half_up(value: float, decimals: int) -> float:
    """Half away from zero, as the template does; Python's round() takes the even neighbour."""
    return math.copysign(math.floor(abs(value) * 10.0**decimals + 0.5 + 1e-9) / 10.0**decimals, value)


def _as_fraction(value: float, bottom: int) -> str:
    """
    >>> _as_fraction(1.49, 8), _as_fraction(-0.26, 4), _as_fraction(3.01, 2)
    ('1 1/2', '−1/4', '3')
    """
    whole, part = divmod(Fraction(math.floor(abs(value) * bottom + 0.5), bottom), 1)
    pieces = ([grouped(str(whole))] if whole or not part else []) + ([str(part)] if part else [])
    return ("−" if value < 0 else "") + " ".join(pieces)


def _decimals(quantity: Quantity, unit: Unit, result: float, rest: list[str], figures: str) -> int:
    """Places after the point: what the page asks for, else as many as the input claims, scaled by the conversion."""
    rounding = next((int(part) for part in rest if is_rounding(part)), None)
    if rounding is not None:
        return rounding
    if re.fullmatch("[1-9][0-9]?", figures) and result:
        return int(figures) - 1 - math.floor(math.log10(abs(result)))
    if unit.dimension == "temperature":
        kelvin = abs(quantity.value * unit.scale + unit.offset)
        least = 2 - math.floor(math.log10(kelvin) + 1e-9) if kelvin > 1e-8 else 2
        return max(math.floor(quantity.decimals), least)
    if quantity.value == 0 or result == 0:
        return 0
    claimed = quantity.decimals + math.log10(abs(quantity.value / result)) + math.log10(2)
    return max(math.floor(claimed), 1 - math.floor(math.log10(abs(result)) + 1e-9))
