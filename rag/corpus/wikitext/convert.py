"""{{convert}}: measures in running prose, as the rendered page shows them.

Source: https://en.wikipedia.org/wiki/Template:Convert/doc
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from rag.corpus.wikitext.arguments import Arguments
from rag.corpus.wikitext.measures import Joiner, Measure, parse_measure
from rag.corpus.wikitext.numbers import grouped, in_words
from rag.corpus.wikitext.rounding import converted, is_rounding, results
from rag.corpus.wikitext.units import Unit, find_unit

# Results in two units, and how many of the second make one of the first.
_COMPOSITE = {"ftin": ("ft", "in", 12), "stlb": ("st", "lb", 14), "lboz": ("lb", "oz", 16), "ydft": ("yd", "ft", 3),
              "mich": ("mi", "chain", 80), "mifur": ("mi", "furlong", 8)}  # fmt: skip
_READABLE = re.compile(r"[a-z]{4,}(?:[ -][a-z]{2,})*$")  # the code of an unknown unit that is an English word
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")


class _Side(NamedTuple):
    """The measure in one unit: its numbers, or one number with its units written out."""

    numbers: list[str]
    joiners: list[Joiner]
    unit: Unit
    one: bool = False  # the name of the unit is in the singular
    parts: list[tuple[str, Unit, bool]] = []  # noqa: RUF012  # of a measure in several units; never changed


def convert(arguments: Arguments) -> str:
    """The measure and its conversion; the input alone where a page names units that do not fit.

    "" where the unit is not known here, unless its code is a word: a code means nothing to a reader.

    >>> convert(Arguments(["1300", "mi", "km"])), convert(Arguments(["5", "to", "10", "kg"], {"abbr": "on"}))
    ('1,300 miles (2,100 km)', '5 to 10 kg (11 to 22 lb)')
    """
    given = arguments.given()
    measure = parse_measure(given)
    if measure is None:
        unit = find_unit(given[1]) if len(given) > 1 else None
        return f"{given[0]} {unit.symbol}" if unit else " ".join(given[:1])
    if measure.base is None:
        return _with_unknown_unit(measure)
    shown = _layout(measure, measure.base, arguments)
    return _THOUSANDS.sub("", shown) if arguments.get("comma") == "off" else shown


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


def _with_unknown_unit(measure: Measure) -> str:
    if not _READABLE.match(measure.code):
        return ""
    numbers = [quantity.shown for quantity in measure.quantities]
    return f"{_joined(numbers, [joiner.words for joiner in measure.joiners])} {measure.code}"


def _layout(measure: Measure, unit: Unit, arguments: Arguments) -> str:
    """Both sides as ``disp`` and ``order`` place them."""
    outputs = [side for code in _output_codes(measure, unit) if (side := _output(measure, unit, code, arguments))]
    sides = [_input(measure, unit, arguments), *outputs]
    display = arguments.get("disp")
    if len(sides) > 1 and "flip" in (arguments.get("order"), display):
        sides[:2] = sides[1::-1]
    match display:
        case "unit":
            return _name(sides[0], arguments)
        case "unit2" if outputs:
            return outputs[0].unit.symbol
        case "number" | "output number only" if outputs:
            return _joined(outputs[0].numbers, [joiner.symbols for joiner in outputs[0].joiners])
        case "out" | "output only" if outputs:
            return "; ".join(_right(side, arguments) for side in outputs)
    return _together(_left(sides[0], measure, arguments), [_right(side, arguments) for side in sides[1:]], arguments)


def _together(shown: str, others: list[str], arguments: Arguments) -> str:
    if not others:
        return shown
    match arguments.get("disp"):
        case "or":
            return " or ".join([shown, *others])
        case "comma":
            return ", ".join([shown, *others])
        case "semicolon":
            return "; ".join([shown, *others])
        case "/" | "slash":
            return " / ".join([shown, *others])
        case "sqbr":
            return f"{shown} [{'; '.join(others)}]"
        case "x":
            before, after = (arguments.positional[-2:] if len(arguments.positional) > 2 else ["", ""])[:2]
            return f"{shown}{before}{'; '.join(others)}{after}"
    return f"{shown} ({'; '.join(others)})"


def _input(measure: Measure, unit: Unit, arguments: Arguments) -> _Side:
    parts = [(quantity.shown, part, abs(quantity.value) == 1) for quantity, part in measure.parts]
    numbers = [quantity.shown for quantity in measure.quantities]
    if arguments.get("spell").lower() in ("in", "on"):
        numbers = [in_words(Arguments([number])) for number in numbers]
        numbers[0] = numbers[0][:1].upper() + numbers[0][1:] if arguments.get("spell") in ("In", "On") else numbers[0]
    only = measure.quantities[0]
    one = len(numbers) == 1 and (abs(only.value) == 1 or (only.fraction and abs(only.value) < 1))
    return _Side(numbers, measure.joiners, unit, one, parts)


def _output_codes(measure: Measure, unit: Unit) -> list[str]:
    """What to convert to: the units that the page names, else the usual counterpart."""
    named = measure.rest[0] if measure.rest and not is_rounding(measure.rest[0]) else ""
    codes = [named] if _is_target(named) else [code for code in re.split("[ +]", named) if _is_target(code)]
    return codes or unit.default.split()


def _is_target(code: str) -> bool:
    return code in _COMPOSITE or find_unit(code) is not None


def _output(measure: Measure, unit: Unit, code: str, arguments: Arguments) -> _Side | None:
    """One conversion; None where the dimensions differ."""
    composite = _COMPOSITE.get(code)
    target = find_unit(composite[0] if composite else code)
    if target is None or target.dimension != unit.dimension or target == unit:
        return None
    if composite and len(measure.quantities) == 1:
        parts = _in_two_units(converted(measure.quantities[0].value, unit, target), composite)
        return _Side([""], [], target, parts=parts)
    numbers = results(measure, unit, target, arguments)
    if not numbers:
        return None
    if code in ("hand", "hands"):
        numbers = [_in_hands(converted(quantity.value, unit, target)) for quantity in measure.quantities]
    return _Side(numbers, measure.joiners, target, numbers in (["1"], ["1.0"]))


def _in_hands(value: float) -> str:
    whole, inches = divmod(round(abs(value) * 4), 4)
    return f"{whole}.{inches}" if inches else str(whole)


def _in_two_units(value: float, composite: tuple[str, str, int]) -> list[tuple[str, Unit, bool]]:
    """
    >>> [number for number, _, _ in _in_two_units(6.17, ("ft", "in", 12))]
    ['6', '2']
    """
    large, small, ratio = (find_unit(composite[0]), find_unit(composite[1]), composite[2])
    whole, part = divmod(round(abs(value) * ratio), ratio)
    pairs = [(f"{'-' if value < 0 else ''}{whole}", large), (str(part), small)]
    return [(grouped(number), unit, number == "1") for number, unit in pairs if unit]


def _left(side: _Side, measure: Measure, arguments: Arguments) -> str:
    """The side that stands first: with the name of its unit, unless the page asks for its symbol."""
    abbreviation = arguments.get("abbr")
    adjective = arguments.get("adj") in ("on", "mid") or arguments.get("sing") == "on"
    symbol = abbreviation in ("on", "in") or (abbreviation != "off" and side.unit.dimension.startswith("temperature"))
    extra = measure.rest[-1] if measure.rest and arguments.get("adj") in ("mid", "pre") else ""
    if is_rounding(extra) or _is_target(extra):
        extra = ""
    if abbreviation == "values":
        return _joined(side.numbers, [joiner.symbols for joiner in side.joiners])
    before = f"{extra} " if arguments.get("adj") == "pre" and extra else ""
    shown = _with_symbol(side, before) if symbol else _with_name(side, arguments, adjective, before)
    return shown + (extra if extra.startswith("-") else f" {extra}" if extra and not before else "")


def _right(side: _Side, arguments: Arguments) -> str:
    """A side that stands after the first one: with the symbol of its unit, unless the page asks for its name."""
    if arguments.get("abbr") == "values":
        return _joined(side.numbers, [joiner.symbols for joiner in side.joiners])
    if arguments.get("abbr") in ("off", "none", "in"):
        return _with_name(side, arguments, arguments.get("adj") == "on", "")
    return _with_symbol(side, "")


def _with_symbol(side: _Side, before: str) -> str:
    if side.parts:
        return " ".join(f"{number} {unit.symbol}" for number, unit, _ in side.parts)
    symbol = side.unit.symbol
    after = f"{'' if symbol.startswith('/') or symbol == '°' else ' '}{before}{symbol}"
    if any(joiner.repeats for joiner in side.joiners):
        return _joined([number + after for number in side.numbers], [joiner.symbols for joiner in side.joiners])
    return _joined(side.numbers, [joiner.symbols for joiner in side.joiners]) + after


def _with_name(side: _Side, arguments: Arguments, adjective: bool, before: str) -> str:
    if side.parts:
        names = [
            (number, unit.singular if one or adjective else unit.plural, " -"[adjective])
            for number, unit, one in side.parts
        ]
        return " -"[adjective].join(f"{number}{gap}{_spelled(name, arguments)}" for number, name, gap in names)
    numbers = _joined(side.numbers, [joiner.adjective if adjective else joiner.words for joiner in side.joiners])
    if adjective:
        return f"{numbers}-{before}{_spelled(side.unit.singular, arguments).replace(' ', '-')}"
    return f"{numbers} {before}{_name(side, arguments)}"


def _name(side: _Side, arguments: Arguments) -> str:
    return _spelled(side.unit.singular if side.one else side.unit.plural, arguments)


def _spelled(name: str, arguments: Arguments) -> str:
    if arguments.get("sp") == "us":
        return re.sub(r"(met|lit)re(s?)\b", r"\1er\2", name)
    return name


def _joined(numbers: list[str], joiners: list[str]) -> str:
    pieces = [numbers[0]]
    for joiner, number in zip(joiners, numbers[1:], strict=True):
        pieces += [joiner, number]
    return "".join(pieces)
