"""{{convert}}: measures in running prose, as the rendered page shows them.

The rounding follows the rule of the template's documentation: the result is about as precise as the input, and has
two significant figures at least. Source: https://en.wikipedia.org/wiki/Template:Convert/doc
"""

import math
import re
from collections.abc import Callable
from typing import NamedTuple

from rag.corpus.wikitext.arguments import Arguments
from rag.corpus.wikitext.numbers import grouped
from rag.corpus.wikitext.units import Unit, find_unit

_RANGE_WORDS = {
    "to": " to ", "and": " and ", "or": " or ", "-": "–", "–": "–", "by": " by ", "x": " by ", "×": " × ", "*": " × ",
    "+/-": " ± ", "±": " ± ", "to(-)": " to ", "and(-)": " and ", "to about": " to about ", "xx": " × ", ",": ", ",
}  # fmt: skip
_COMPOSITE = {"ftin": ("ft", "in", 12), "stlb": ("st", "lb", 14), "lboz": ("lb", "oz", 16)}
_DECIMAL = re.compile(r"([-+]?)(\d*)(?:\.(\d+))?(?:e([-+]?\d{1,2}))?$", re.IGNORECASE)
_FRACTION = re.compile(r"(?:(-?\d+)\s*[+ ]\s*)?(\d+)\s*(?:/|//)\s*(\d+)$")
_MAX_DIGITS = 40


class _Quantity(NamedTuple):
    value: float
    shown: str
    decimals: float  # places after the point that the input claims; negative for trailing zeros


class _Measure(NamedTuple):
    quantities: list[_Quantity]
    joiners: list[str]  # between them
    unit: str  # "" where the unit is part of what is shown
    base: Unit | None
    rest: list[str]  # output units and a rounding


def convert(arguments: Arguments) -> str:
    """The measure and its conversion; the input alone where a unit is not known here or the call is malformed.

    >>> convert(Arguments(["1300", "mi", "km"])), convert(Arguments(["5", "to", "10", "kg"], {"abbr": "on"}))
    ('1,300 miles (2,100 km)', '5 to 10 kg (11 to 22 lb)')
    """
    measure = _parse(arguments.given())
    if measure is None:
        return " ".join(arguments.given()[:2])
    if measure.base is None:
        return f"{_joined([quantity.shown for quantity in measure.quantities], measure)} {measure.unit}".rstrip()
    shown = _input(measure, measure.base, arguments)
    results = [_output(measure, measure.base, code, arguments) for code in _output_codes(measure, measure.base)]
    return _layout(shown, [result for result in results if result], arguments)


def convert_short(arguments: Arguments) -> str:
    """{{cvt|5|km}}: like {{convert}}, with the symbols of the units."""
    return convert(Arguments(arguments.positional, {"abbr": "on", **arguments.named}))


def convert_between(source: str, target: str) -> Callable[[Arguments], str]:
    """{{km to mi|5}}, of the days before {{convert}}."""
    return lambda arguments: convert(Arguments([arguments[0], source, target], arguments.named))


def height(arguments: Arguments) -> str:
    """{{height|ft=6|in=2}}, "6 ft 2 in (1.88 m)"; {{height|m=1.88}}, "1.88 m (6 ft 2 in)"."""
    feet, inches = arguments.get("ft", "foot"), arguments.get("in", "inch")
    if feet or inches:
        given = [feet, "ft", inches, "in", "m"] if feet and inches else [feet or inches, "ft" if feet else "in", "m"]
        return convert_short(Arguments([*given, "2"]))
    unit = "m" if arguments.get("m", "meter", "metre") else "cm"
    return convert_short(Arguments([arguments.get("m", "meter", "metre", "cm"), unit, "ftin"]))


def _layout(shown: str, results: list[str], arguments: Arguments) -> str:
    if not results:
        return shown
    if arguments.get("order") == "flip":
        shown, results = results[0], [shown, *results[1:]]
    match arguments.get("disp"):
        case "out" | "output only" | "number" | "output number only":
            return results[0]
        case "or":
            return " or ".join([shown, *results])
        case "comma":
            return ", ".join([shown, *results])
        case "sqbr":
            return f"{shown} [{'; '.join(results)}]"
    return f"{shown} ({'; '.join(results)})"


def _parse(given: list[str]) -> _Measure | None:
    quantities: list[_Quantity] = []
    joiners: list[str] = []
    rest = list(given)
    while rest and (quantity := _quantity(rest[0])):
        quantities.append(quantity)
        del rest[0]
        if len(rest) < 2 or rest[0] not in _RANGE_WORDS:
            break
        joiners.append(_RANGE_WORDS[rest.pop(0)])
    if not quantities or not rest or len(joiners) >= len(quantities):
        return None
    code, *rest = rest
    base = find_unit(code)
    if base and len(rest) >= 2 and (more := _quantity(rest[0])) and (part := find_unit(rest[1])):
        return _Measure([_with_part(quantities[-1], base, more, part)], [], "", base, rest[2:])
    return _Measure(quantities, joiners, code, base, rest)


def _with_part(whole: _Quantity, unit: Unit, more: _Quantity, part: Unit) -> _Quantity:
    """One measure of two numbers, "6 ft 2 in"; inches claim half a place more, so that this is 1.88 m and not 1.9."""
    return _Quantity(
        value=whole.value + more.value * part.scale / unit.scale,
        shown=f"{whole.shown} {unit.symbol} {more.shown} {part.symbol}",
        decimals=more.decimals + math.log10(unit.scale / part.scale) + (0.5 if part.symbol == "in" else 0),
    )


def _quantity(text: str) -> _Quantity | None:
    text = text.replace(",", "").replace("−", "-").strip()
    if len(text) > _MAX_DIGITS:
        return None
    if fraction := _FRACTION.match(text):
        return _fraction(*fraction.groups())
    decimal = _DECIMAL.match(text)
    return _decimal(*decimal.groups()) if decimal and (decimal.group(2) or decimal.group(3)) else None


def _fraction(units: str | None, top: str, bottom: str) -> _Quantity | None:
    """ "2 1/2", from "2+1/2"; its precision is that of its denominator."""
    if int(bottom) == 0:
        return None
    value = abs(float(units or 0)) + int(top) / int(bottom)
    shown = f"{units} {top}/{bottom}" if units else f"{top}/{bottom}"
    return _Quantity(-value if shown.startswith("-") else value, shown, math.log10(int(bottom)))


def _decimal(sign: str, whole: str, decimals: str | None, exponent: str | None) -> _Quantity:
    """ "1300", "2.5" or "6.02e23"."""
    plain = f"{whole or '0'}{'.' + decimals if decimals else ''}"
    value = float(f"{plain}e{exponent or 0}") * (-1 if sign == "-" else 1)
    claimed = len(decimals) if decimals else len(whole.rstrip("0") or whole) - len(whole)
    shown = grouped(f"{sign}{plain}") + (f"×10^{int(exponent)}" if exponent else "")
    return _Quantity(value, shown, claimed - int(exponent or 0))


def _joined(numbers: list[str], measure: _Measure) -> str:
    pieces = [numbers[0]]
    for joiner, number in zip(measure.joiners, numbers[1:], strict=True):
        pieces += [joiner, number]
    return "".join(pieces)


def _input(measure: _Measure, unit: Unit, arguments: Arguments) -> str:
    shown = _joined([quantity.shown for quantity in measure.quantities], measure)
    if not measure.unit or arguments.get("abbr") == "values":
        return shown
    symbol = arguments.get("abbr") in ("on", "in") or unit.dimension == "temperature"
    if arguments.get("adj") == "on" and not symbol:
        return f"{shown}-{_spelled(unit.singular, arguments)}"
    if symbol:
        return f"{shown}{'' if unit.symbol.startswith('/') else ' '}{unit.symbol}"
    one = len(measure.quantities) == 1 and abs(measure.quantities[0].value) <= 1 and measure.quantities[0].value != 0
    return f"{shown} {_spelled(unit.singular if one else unit.plural, arguments)}"


def _spelled(name: str, arguments: Arguments) -> str:
    if arguments.get("sp") == "us":
        return re.sub(r"(met|lit)re\b", r"\1er", re.sub(r"(met|lit)res\b", r"\1ers", name))
    return name


def _output_codes(measure: _Measure, unit: Unit) -> list[str]:
    """What to convert to: the units that the page names, else the usual counterpart."""
    named = [measure.rest[0]] if measure.rest and find_unit(measure.rest[0]) else []
    if not named and measure.rest:
        named = [code for code in measure.rest[0].split() if find_unit(code) or code in _COMPOSITE]
    return named or [unit.default]


def _output(measure: _Measure, unit: Unit, code: str, arguments: Arguments) -> str:
    """One conversion with its unit; "" where the dimensions differ."""
    composite = _COMPOSITE.get(code)
    target = find_unit(composite[0] if composite else code)
    if target is None or target.dimension != unit.dimension or target == unit:
        return ""
    if composite:
        return _joined(
            [_in_two_units(_result(quantity, unit, target), composite) for quantity in measure.quantities], measure
        )
    rounding = _rounding(measure.rest)
    numbers = [_rounded(quantity, unit, target, rounding, arguments.get("sigfig")) for quantity in measure.quantities]
    shown = _joined(numbers, measure)
    if arguments.get("abbr") in ("off", "none"):
        return f"{shown} {_spelled(target.plural, arguments)}"
    return f"{shown}{'' if target.symbol.startswith('/') else ' '}{target.symbol}"


def _rounding(rest: list[str]) -> int | None:
    return next((int(part) for part in rest if re.fullmatch(r"-?\d", part)), None)


def _in_two_units(value: float, composite: tuple[str, str, int]) -> str:
    """
    >>> _in_two_units(6.17, ("ft", "in", 12))
    '6 ft 2 in'
    """
    large, small, ratio = composite
    whole, part = divmod(round(value * ratio), ratio)
    return f"{grouped(str(whole))} {large} {part} {small}"


def _result(quantity: _Quantity, unit: Unit, target: Unit) -> float:
    return (quantity.value * unit.scale + unit.offset - target.offset) / target.scale


def _rounded(quantity: _Quantity, unit: Unit, target: Unit, rounding: int | None, figures: str) -> str:
    result = _result(quantity, unit, target)
    if rounding is None:
        rounding = _decimals(quantity, unit, result)
        if figures.isascii() and figures.isdigit() and result:
            rounding = int(figures) - 1 - math.floor(math.log10(abs(result)))
    rounding = max(-_MAX_DIGITS, min(rounding, _MAX_DIGITS))
    # Half away from zero, as the template does; Python's round() takes the even neighbour.
    scaled = math.floor(abs(result) * 10.0**rounding + 0.5 + 1e-9) / 10.0**rounding
    return ("−" if result < 0 and scaled else "") + grouped(f"{scaled:.{max(rounding, 0)}f}")


def _decimals(quantity: _Quantity, unit: Unit, result: float) -> int:
    """Places after the point: as many as the input claims, scaled by the conversion, at least two figures."""
    if unit.dimension == "temperature":
        kelvin = abs(quantity.value * unit.scale + unit.offset)
        least = 2 - math.floor(math.log10(kelvin) + 1e-9) if kelvin > 1e-8 else 2
        return max(math.floor(quantity.decimals), least)
    if quantity.value == 0 or result == 0:
        return 0
    claimed = quantity.decimals + math.log10(abs(quantity.value / result)) + math.log10(2)
    return max(math.floor(claimed), 1 - math.floor(math.log10(abs(result)) + 1e-9))
