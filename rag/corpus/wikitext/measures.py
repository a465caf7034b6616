"""What a call of {{convert}} asks for: its quantities with their precision, its unit, and what is left."""

import math
import re
from typing import NamedTuple

from rag.corpus.wikitext.marks import FRACTION
from rag.corpus.wikitext.numbers import grouped
from rag.corpus.wikitext.units import Unit, find_unit

MAX_DIGITS = 40
_DECIMAL = re.compile(r"([-+]?)(\d*)(?:\.(\d+))?(?:e([-+]?\d{1,2}))?$", re.IGNORECASE)
_FRACTION = re.compile(r"(?:(-?\d+)\s*[+ ]\s*)?(-?\d+)\s*(?:/|//|⁄)\s*(\d+)$")
_RANGE = re.compile(r"(.*[\d.])\s*([-–]|\bto\b|\band\b|[x×])\s*([\d.].*)$")


class Quantity(NamedTuple):
    """One number of a measure."""

    value: float
    shown: str
    decimals: float  # places after the point that the input claims; negative for trailing zeros
    fraction: bool = False


class Joiner(NamedTuple):
    """What stands between two numbers of a measure: beside a unit's name, beside its symbol, in an adjective."""

    words: str
    symbols: str
    adjective: str
    repeats: bool = False  # the symbol stands after each number


class Measure(NamedTuple):
    """The input of a conversion."""

    quantities: list[Quantity]
    joiners: list[Joiner]  # between them
    code: str
    base: Unit | None
    parts: list[tuple[Quantity, Unit]]  # of one measure in several units, "6 ft 2 in"; else empty
    rest: list[str]  # output units, a rounding and words


def _word(word: str, symbols: str = "") -> Joiner:
    return Joiner(f" {word} ", symbols or f" {word} ", f"-{word}-")


def _sign(sign: str) -> Joiner:
    return Joiner(sign, sign, sign)


_BY = Joiner(" by ", " × ", "-by-", repeats=True)
_JOINERS = {
    **{word: _word(word) for word in ("to", "and", "or", "by", "to about", "and about")},
    "to(-)": _word("to", "–"), "and(-)": _word("and", "–"), "x": _BY, "×": _BY, "-": _sign("–"), "–": _sign("–"),
    "*": _sign(" × "), "xx": _sign(" × "), "+/-": _sign(" ± "), "±": _sign(" ± "), ",": _sign(", "), "+": _sign(" + "),
}  # fmt: skip


def parse_measure(given: list[str]) -> Measure | None:
    """The measure that the positional arguments give; None where they give none."""
    quantities: list[Quantity] = []
    joiners: list[Joiner] = []
    rest = _with_ranges_apart(given)
    while rest and (quantity := _quantity(rest[0])):
        quantities.append(quantity)
        del rest[0]
        if len(rest) < 2 or rest[0] not in _JOINERS:
            break
        joiners.append(_JOINERS[rest.pop(0)])
    if not quantities or not rest or len(joiners) >= len(quantities):
        return None
    code, *rest = rest
    base = find_unit(code)
    if base is None:
        return Measure(quantities, joiners, code, None, [], rest)
    if code in ("hand", "hands"):
        quantities = [_hands(quantity) for quantity in quantities]
    parts = [(quantities[-1], base)]
    while len(rest) >= 2 and (more := _quantity(rest[0])) and (part := find_unit(rest[1])):
        if part.dimension != base.dimension or part.scale >= parts[-1][1].scale:
            break
        parts.append((more, part))
        rest = rest[2:]
    if len(parts) > 1:
        return Measure([_whole(parts)], [], code, base, parts, rest)
    return Measure(quantities, joiners, code, base, [], rest)


def _with_ranges_apart(given: list[str]) -> list[str]:
    """The arguments with "5-10" in the place of the number taken for "5", "-" and "10", as the template does."""
    if given and len(given[0]) <= MAX_DIGITS and not _quantity(given[0]) and (found := _RANGE.match(given[0])):
        return [*found.groups(), *given[1:]]
    return list(given)


def _whole(parts: list[tuple[Quantity, Unit]]) -> Quantity:
    """One measure of several numbers; inches claim half a place more, so that 6 ft 2 in is 1.88 m and not 1.9."""
    unit = parts[0][1]
    last, last_unit = parts[-1]
    size = sum(abs(quantity.value) * part.scale for quantity, part in parts) / unit.scale
    return Quantity(
        value=-size if parts[0][0].value < 0 else size,
        shown="",
        decimals=last.decimals + math.log10(unit.scale / last_unit.scale) + (0.5 if last_unit.symbol == "in" else 0),
    )


def _hands(quantity: Quantity) -> Quantity:
    """The height of a horse: "14.2" is 14 hands and 2 inches."""
    whole, point, inches = quantity.shown.partition(".")
    if not point or inches not in ("1", "2", "3"):
        return quantity
    return quantity._replace(value=float(whole.replace(",", "").replace("−", "-")) + int(inches) / 4)


def _quantity(text: str) -> Quantity | None:
    text = text.replace(FRACTION, " ").replace(",", "").replace("−", "-").replace("&minus;", "-").strip()
    if len(text) > MAX_DIGITS:
        return None
    if fraction := _FRACTION.match(text):
        return _fraction(*fraction.groups())
    decimal = _DECIMAL.match(text)
    return _decimal(*decimal.groups()) if decimal and (decimal.group(2) or decimal.group(3)) else None


def _fraction(units: str | None, top: str, bottom: str) -> Quantity | None:
    """ "2 1/2", from "2+1/2"; its precision is that of its denominator."""
    if int(bottom) == 0 or (units and top.startswith("-")):
        return None
    value = abs(float(units or 0)) + abs(int(top)) / int(bottom)
    shown = f"{units} {top}/{bottom}" if units else f"{top}/{bottom}"
    negative = shown.startswith("-")
    return Quantity(-value if negative else value, shown.replace("-", "−"), math.log10(int(bottom)), fraction=True)


def _decimal(sign: str, whole: str, decimals: str | None, exponent: str | None) -> Quantity:
    """ "1300", "2.5" or "6.02e23"."""
    plain = f"{whole or '0'}{'.' + decimals if decimals else ''}"
    value = float(f"{plain}e{exponent or 0}") * (-1 if sign == "-" else 1)
    claimed = len(decimals) if decimals else len(whole.rstrip("0") or whole) - len(whole)
    shown = grouped(f"{sign}{plain}") + (f"×10^{int(exponent)}" if exponent else "")
    return Quantity(value, shown, claimed - int(exponent or 0))
