"""The units that {{convert}} knows here, by their codes: those of a table, their multiples and their rates."""

import re
from functools import lru_cache

from rag.corpus.wikitext.unit_table import ALIASES, UNITS, Unit

__all__ = ["Unit", "find_unit"]
_MULTIPLE = re.compile(r"e(3|6|9|12)([A-Za-z].*)$")
_POWERS = {3: "thousand", 6: "million", 9: "billion", 12: "trillion"}
_COUNTED = {"k": 3, "M": 6, "G": 9, "B": 9, "T": 12}  # the letter before a unit of trade: "Moilbbl", "Tcuft"
_TRADED = frozenset({"oilbbl", "bbl", "cuft", "USgal", "impgal", "USbbl", "bu", "acre", "acreft", "bd ft"})
_PREFIXES = {
    "f": (-15, "femto"), "p": (-12, "pico"), "n": (-9, "nano"), "u": (-6, "micro"), "μ": (-6, "micro"),
    "µ": (-6, "micro"), "m": (-3, "milli"), "c": (-2, "centi"), "d": (-1, "deci"), "h": (2, "hecto"), "k": (3, "kilo"),
    "M": (6, "mega"), "G": (9, "giga"), "T": (12, "tera"), "P": (15, "peta"), "E": (18, "exa"), "a": (-18, "atto"),
}  # fmt: skip
_PREFIXED = frozenset({"m", "g", "L", "W", "J", "Pa", "N", "Hz", "eV", "Wh", "bar", "t", "pc", "ly", "cal", "lbf", "s"})
_SAME = {"force/area": "pressure", "energy/time": "power"}
_PER_AREA = re.compile(r"(|PD|pd)/(sqmi|km2|sqkm|acre|ha|mi2)$")
_MAX_CODE = 40  # no code is longer, and rates of rates end


@lru_cache(maxsize=2000)
def find_unit(code: str) -> Unit | None:
    """The unit of a code as {{convert}} takes it, "km" or "sqmi"; "e6km" is a million kilometres.

    >>> find_unit("e6km").plural, find_unit("Moilbbl/d").plural, find_unit("GPa").singular, find_unit("parasang")
    ('million kilometres', 'million barrels per day', 'gigapascal', None)
    """
    if len(code) > _MAX_CODE:
        return None
    known = UNITS.get(ALIASES.get(code, code))
    return known or _multiple(code) or _prefixed(code) or _per_area(code) or _rate(code)


def _multiple(code: str) -> Unit | None:
    if found := _MULTIPLE.match(code):
        power, one_code = int(found.group(1)), found.group(2)
        return _times(power, one_code, "".join(f"e{power}{part} " for part in _defaults(one_code)).strip())
    if code[:1] in _COUNTED and code[1:] in _TRADED:
        in_litres = code[1:] in ("USgal", "impgal") and code[0] in "kMGT"
        return _times(_COUNTED[code[0]], code[1:], f"{code[0]}L" if in_litres else " ".join(_defaults(code[1:])))
    return None


def _defaults(code: str) -> list[str]:
    one = find_unit(code)
    return one.default.split() if one else []


def _times(power: int, code: str, default: str) -> Unit | None:
    one = find_unit(code)
    if one is None or one.offset or one.inverse:
        return None
    word = _POWERS[power]
    return one._replace(
        scale=one.scale * 10**power,
        symbol=f"{word} {one.symbol}",
        singular=f"{word} {one.plural}",
        plural=f"{word} {one.plural}",
        default=default,
    )


def _prefixed(code: str) -> Unit | None:
    """A unit of the metric system with one of its prefixes, "GPa"."""
    one_code = "L" if code[1:] == "l" else code[1:]
    if code[:1] not in _PREFIXES or one_code not in _PREFIXED:
        return None
    power, word = _PREFIXES[code[0]]
    letter = "μ" if power == -6 else code[0]
    one = UNITS[one_code]
    return one._replace(
        scale=one.scale * 10.0**power,
        symbol=letter + one.symbol,
        singular=word + one.singular,
        plural=word + one.plural,
        default={"pc": f"{letter}ly", "ly": f"{letter}pc", "m": "mi" if power > 3 else "in"}.get(one_code, one.default),
    )


def _per_area(code: str) -> Unit | None:
    """ "/sqmi", and "PD/sqmi" of people."""
    if not (found := _PER_AREA.match(code)) or not (area := find_unit(found.group(2))):
        return None
    kind = found.group(1)
    one, many = ("inhabitant ", "inhabitants ") if kind else ("", "")
    return Unit(
        "number/area",
        1 / area.scale,
        f"/{area.symbol.removesuffix('s')}",
        f"{one}per {area.singular}",
        f"{many}per {area.singular}",
        f"{kind}/{area.default}",
    )


def _rate(code: str) -> Unit | None:
    """One unit per another, "L/min"; it converts to what its units convert to, and a time stays what it is."""
    top_code, slash, bottom_code = code.rpartition("/")
    if not slash or not (top := find_unit(top_code)) or not (bottom := find_unit(bottom_code)):
        return None
    if top.offset or bottom.offset or top.inverse or bottom.inverse:
        return None
    dimension = f"{top.dimension}/{bottom.dimension}"
    bottoms = [bottom_code] if bottom.dimension == "time" else bottom.default.split()[:1]
    return Unit(
        _SAME.get(dimension, dimension),
        top.scale / bottom.scale,
        f"{top.symbol}/{bottom.symbol.removesuffix('s') if len(bottom.symbol) > 2 else bottom.symbol}",
        f"{top.singular} per {bottom.singular}",
        f"{top.plural} per {bottom.singular}",
        _RATES.get(code) or " ".join(f"{to}/{per}" for to in top.default.split() for per in bottoms),
    )


_RATES = {
    "km/h": "mph",
    "kg/m3": "lb/cuft",
    "L/s": "cuft/s",
    "m3/d": "cuft/d",
    "hp/t": "kW/t",
    "kW/t": "hp/t",
    "kgf/cm2": "psi",
}
