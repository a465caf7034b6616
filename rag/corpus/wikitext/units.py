"""The units that {{convert}} knows here."""

import re
from typing import NamedTuple


class Unit(NamedTuple):
    """A unit of one dimension; ``value * scale + offset`` is the value in the dimension's base unit."""

    dimension: str
    scale: float
    symbol: str
    singular: str
    plural: str
    default: str  # converted to this where the page names no other
    offset: float = 0.0


def find_unit(code: str) -> Unit | None:
    """The unit of a code as {{convert}} takes it, "km" or "sqmi"; "e6km" is a million kilometres.

    >>> find_unit("e6km").plural, find_unit("e6km").default, find_unit("parasang")
    ('million kilometres', 'e6mi', None)
    """
    unit = _UNITS.get(_ALIASES.get(code, code))
    if unit or not (multiple := _MULTIPLE.match(code)) or not (one := find_unit(multiple.group(2))) or one.offset:
        return unit
    power = int(multiple.group(1))
    word = _POWERS[power]
    return one._replace(
        scale=one.scale * 10**power,
        symbol=f"{word} {one.symbol}",
        singular=f"{word} {one.plural}",
        plural=f"{word} {one.plural}",
        default=f"e{power}{one.default}",
    )


def _unit(dimension: str, scale: float, symbol: str, name: str, default: str, plural: str = "") -> Unit:
    return Unit(dimension, scale, symbol, name, plural or f"{name}s", default)


_MULTIPLE = re.compile(r"e(3|6|9|12)([A-Za-z].*)$")
_POWERS = {3: "thousand", 6: "million", 9: "billion", 12: "trillion"}
_FOOT, _MILE, _POUND = 0.3048, 1609.344, 0.45359237
_UNITS = {
    "nm": _unit("length", 1e-9, "nm", "nanometre", "in"),
    "mm": _unit("length", 1e-3, "mm", "millimetre", "in"),
    "cm": _unit("length", 1e-2, "cm", "centimetre", "in"),
    "m": _unit("length", 1, "m", "metre", "ft"),
    "km": _unit("length", 1e3, "km", "kilometre", "mi"),
    "in": _unit("length", _FOOT / 12, "in", "inch", "mm", "inches"),
    "ft": _unit("length", _FOOT, "ft", "foot", "m", "feet"),
    "yd": _unit("length", 3 * _FOOT, "yd", "yard", "m"),
    "mi": _unit("length", _MILE, "mi", "mile", "km"),
    "dm": _unit("length", 0.1, "dm", "decimetre", "in"),
    "fathom": _unit("length", 6 * _FOOT, "fathoms", "fathom", "m"),
    "furlong": _unit("length", 660 * _FOOT, "furlongs", "furlong", "m"),
    "chain": _unit("length", 66 * _FOOT, "chains", "chain", "m"),
    "rod": _unit("length", 16.5 * _FOOT, "rods", "rod", "m"),
    "verst": _unit("length", 1066.8, "versts", "verst", "km"),
    "nmi": _unit("length", 1852, "nmi", "nautical mile", "km"),
    "ly": _unit("length", 9.4607304725808e15, "ly", "light-year", "km"),
    "au": _unit("length", 149597870700, "au", "astronomical unit", "km"),
    "m2": _unit("area", 1, "m2", "square metre", "sqft"),
    "cm2": _unit("area", 1e-4, "cm2", "square centimetre", "sqin"),
    "km2": _unit("area", 1e6, "km2", "square kilometre", "sqmi"),
    "ha": _unit("area", 1e4, "ha", "hectare", "acre"),
    "acre": _unit("area", 4046.8564224, "acres", "acre", "ha"),
    "mm2": _unit("area", 1e-6, "mm2", "square millimetre", "sqin"),
    "dunam": _unit("area", 1e3, "dunams", "dunam", "ha"),
    "rai": _unit("area", 1600, "rai", "rai", "ha", "rai"),
    "sqin": _unit("area", (_FOOT / 12) ** 2, "sq in", "square inch", "cm2", "square inches"),
    "sqyd": _unit("area", (3 * _FOOT) ** 2, "sq yd", "square yard", "m2"),
    "sqft": _unit("area", _FOOT**2, "sq ft", "square foot", "m2", "square feet"),
    "sqmi": _unit("area", _MILE**2, "sq mi", "square mile", "km2"),
    "g": _unit("mass", 1e-3, "g", "gram", "oz"),
    "kg": _unit("mass", 1, "kg", "kilogram", "lb"),
    "t": _unit("mass", 1e3, "t", "tonne", "LT"),
    "mg": _unit("mass", 1e-6, "mg", "milligram", "oz"),
    "kt": _unit("mass", 1e6, "kt", "kilotonne", "LT"),
    "Mt": _unit("mass", 1e9, "Mt", "megatonne", "LT"),
    "ozt": _unit("mass", 0.0311034768, "oz t", "troy ounce", "g"),
    "carat": _unit("mass", 2e-4, "carats", "carat", "g"),
    "oz": _unit("mass", _POUND / 16, "oz", "ounce", "g"),
    "lb": _unit("mass", _POUND, "lb", "pound", "kg"),
    "st": _unit("mass", 14 * _POUND, "st", "stone", "kg", "stone"),
    "ST": _unit("mass", 2000 * _POUND, "short tons", "short ton", "t"),
    "LT": _unit("mass", 2240 * _POUND, "long tons", "long ton", "t"),
    "m3": _unit("volume", 1, "m3", "cubic metre", "cuft"),
    "km3": _unit("volume", 1e9, "km3", "cubic kilometre", "cumi"),
    "L": _unit("volume", 1e-3, "L", "litre", "impgal"),
    "ml": _unit("volume", 1e-6, "ml", "millilitre", "impoz"),
    "cl": _unit("volume", 1e-5, "cl", "centilitre", "impoz"),
    "hL": _unit("volume", 0.1, "hl", "hectolitre", "impgal"),
    "cc": _unit("volume", 1e-6, "cc", "cubic centimetre", "cuin"),
    "cuin": _unit("volume", (_FOOT / 12) ** 3, "cu in", "cubic inch", "cc", "cubic inches"),
    "cuyd": _unit("volume", (3 * _FOOT) ** 3, "cu yd", "cubic yard", "m3"),
    "acreft": _unit("volume", 43560 * _FOOT**3, "acre⋅ft", "acre-foot", "m3", "acre-feet"),
    "USqt": _unit("volume", 9.46352946e-4, "US qt", "US quart", "L"),
    "USpt": _unit("volume", 4.73176473e-4, "US pt", "US pint", "L"),
    "imppt": _unit("volume", 5.6826125e-4, "imp pt", "imperial pint", "ml"),
    "cuft": _unit("volume", _FOOT**3, "cu ft", "cubic foot", "m3", "cubic feet"),
    "cumi": _unit("volume", _MILE**3, "cu mi", "cubic mile", "km3"),
    "USgal": _unit("volume", 3.785411784e-3, "US gal", "US gallon", "L"),
    "impgal": _unit("volume", 4.54609e-3, "imp gal", "imperial gallon", "L"),
    "USoz": _unit("volume", 2.95735295625e-5, "US fl oz", "US fluid ounce", "ml"),
    "impoz": _unit("volume", 2.84130625e-5, "imp fl oz", "imperial fluid ounce", "ml"),
    "oilbbl": _unit("volume", 0.158987294928, "bbl", "barrel", "m3"),
    "km/h": _unit("speed", 1 / 3.6, "km/h", "kilometre per hour", "mph", "kilometres per hour"),
    "m/s": _unit("speed", 1, "m/s", "metre per second", "ft/s", "metres per second"),
    "km/s": _unit("speed", 1e3, "km/s", "kilometre per second", "mi/s", "kilometres per second"),
    "mph": _unit("speed", _MILE / 3600, "mph", "mile per hour", "km/h", "miles per hour"),
    "mi/s": _unit("speed", _MILE, "mi/s", "mile per second", "km/s", "miles per second"),
    "ft/s": _unit("speed", _FOOT, "ft/s", "foot per second", "m/s", "feet per second"),
    "kn": _unit("speed", 1852 / 3600, "kn", "knot", "km/h"),
    "C": Unit("temperature", 1, "°C", "degree Celsius", "degrees Celsius", "F", 273.15),
    "F": Unit("temperature", 5 / 9, "°F", "degree Fahrenheit", "degrees Fahrenheit", "C", 459.67 * 5 / 9),
    "K": Unit("temperature", 1, "K", "kelvin", "kelvins", "C"),
    "W": _unit("power", 1, "W", "watt", "hp"),
    "kW": _unit("power", 1e3, "kW", "kilowatt", "hp"),
    "MW": _unit("power", 1e6, "MW", "megawatt", "hp"),
    "hp": _unit("power", 745.69987158227022, "hp", "horsepower", "kW", "horsepower"),
    "PS": _unit("power", 735.49875, "PS", "metric horsepower", "kW", "metric horsepower"),
    "GW": _unit("power", 1e9, "GW", "gigawatt", "hp"),
    "mbar": _unit("pressure", 100, "mbar", "millibar", "inHg"),
    "hPa": _unit("pressure", 100, "hPa", "hectopascal", "inHg"),
    "inHg": _unit("pressure", 3386.388640341, "inHg", "inch of mercury", "kPa", "inches of mercury"),
    "mmHg": _unit("pressure", 133.322387415, "mmHg", "millimetre of mercury", "kPa", "millimetres of mercury"),
    "Pa": _unit("pressure", 1, "Pa", "pascal", "psi"),
    "kPa": _unit("pressure", 1e3, "kPa", "kilopascal", "psi"),
    "MPa": _unit("pressure", 1e6, "MPa", "megapascal", "psi"),
    "bar": _unit("pressure", 1e5, "bar", "bar", "kPa"),
    "atm": _unit("pressure", 101325, "atm", "atmosphere", "kPa", "standard atmospheres"),
    "psi": _unit("pressure", 6894.757293168361, "psi", "pound per square inch", "kPa", "pounds per square inch"),
    "/sqmi": _unit("density", 1 / _MILE**2, "/sq mi", "per square mile", "/km2", "per square mile"),
    "/km2": _unit("density", 1e-6, "/km2", "per square kilometre", "/sqmi", "per square kilometre"),
    "m3/s": _unit("flow", 1, "m3/s", "cubic metre per second", "cuft/s", "cubic metres per second"),
    "cuft/s": _unit("flow", _FOOT**3, "cu ft/s", "cubic foot per second", "m3/s", "cubic feet per second"),
    "J": _unit("energy", 1, "J", "joule", "ftlbf"),
    "kJ": _unit("energy", 1e3, "kJ", "kilojoule", "kcal"),
    "MJ": _unit("energy", 1e6, "MJ", "megajoule", "kWh"),
    "kWh": _unit("energy", 3.6e6, "kWh", "kilowatt-hour", "MJ"),
    "MWh": _unit("energy", 3.6e9, "MWh", "megawatt-hour", "MJ"),
    "GWh": _unit("energy", 3.6e12, "GWh", "gigawatt-hour", "MJ"),
    "BTU": _unit("energy", 1055.05585262, "BTU", "British thermal unit", "kJ"),
    "ftlbf": _unit("energy", 1.3558179483314, "ft⋅lbf", "foot-pound", "J"),
    "Nm": _unit("torque", 1, "N⋅m", "newton-metre", "lbft"),
    "lbft": _unit("torque", 1.3558179483314, "lb⋅ft", "pound-foot", "Nm", "pound-feet"),
    "kgm": _unit("torque", 9.80665, "kg⋅m", "kilogram-metre", "lbft"),
    "cal": _unit("energy", 4.184, "cal", "calorie", "J"),
    "kcal": _unit("energy", 4184, "kcal", "kilocalorie", "kJ"),
    "kg/m3": _unit("concentration", 1, "kg/m3", "kilogram per cubic metre", "lb/cuft", "kilograms per cubic metre"),
    "g/cm3": _unit("concentration", 1e3, "g/cm3", "gram per cubic centimetre", "kg/m3", "grams per cubic centimetre"),
    "lb/cuft": _unit("concentration", _POUND / _FOOT**3, "lb/cu ft", "pound per cubic foot", "kg/m3"),
    "N": _unit("force", 1, "N", "newton", "lbf"),
    "kN": _unit("force", 1e3, "kN", "kilonewton", "lbf"),
    "lbf": _unit("force", 4.4482216152605, "lbf", "pound-force", "N", "pounds-force"),
}  # fmt: skip
_ALIASES = {
    "mile": "mi", "miles": "mi", "foot": "ft", "feet": "ft", "inch": "in", "inches": "in", "yard": "yd", "yards": "yd",
    "metre": "m", "metres": "m", "meter": "m", "meters": "m", "kilometre": "km", "kilometres": "km", "kilometer": "km",
    "kilometers": "km", "pound": "lb", "pounds": "lb", "lbs": "lb", "tonne": "t", "tonnes": "t", "metric ton": "t",
    "MT": "t", "short ton": "ST", "long ton": "LT", "ounce": "oz", "knot": "kn", "knots": "kn", "acres": "acre",
    "hectare": "ha", "hectares": "ha", "sqkm": "km2", "sqm": "m2", "l": "L", "litre": "L", "liter": "L",
    "mL": "ml", "°C": "C", "°F": "F", "kph": "km/h", "kmh": "km/h", "PD/sqmi": "/sqmi", "PD/km2": "/km2", "AU": "au",
    "gal": "USgal", "U.S.gal": "USgal", "cu ft": "cuft", "sq ft": "sqft", "sq mi": "sqmi", "bhp": "hp",
    "nautical mile": "nmi",
    "Cal": "kcal", "oilbbls": "oilbbl", "bbl": "oilbbl", "USfloz": "USoz", "impfloz": "impoz",
    "ft2": "sqft", "in2": "sqin", "yd2": "sqyd", "mi2": "sqmi", "ft3": "cuft", "in3": "cuin", "yd3": "cuyd",
    "cm3": "cc", "N.m": "Nm", "lb.ft": "lbft", "ftlb": "lbft", "kWhr": "kWh", "hl": "hL",
    "square mile": "sqmi", "square miles": "sqmi",
}  # fmt: skip
