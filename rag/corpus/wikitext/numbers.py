"""Templates for numbers, money, measures and shares."""

import re
from collections.abc import Callable

from rag.corpus.wikitext.arguments import Arguments
from rag.corpus.wikitext.marks import DROPPED, FRACTION

_NUMBER = re.compile(r"([-−+]?)(\d+)(\.\d+)?$")
_CURRENCIES = {
    "usd": "US$", "us$": "US$", "us dollar": "US$", "us dollars": "US$", "$": "$", "aud": "A$", "a$": "A$",
    "au$": "A$", "cad": "C$", "can$": "C$", "c$": "C$", "nzd": "NZ$", "nz$": "NZ$", "gbp": "£", "£": "£",
    "pound sterling": "£", "pounds": "£", "eur": "€", "€": "€", "euro": "€", "jpy": "¥", "¥": "¥", "jp¥": "¥",
    "inr": "₹", "indian rupee": "₹", "indianrupee": "₹", "indian rupees": "₹", "rs": "₹", "rs.": "₹", "₹": "₹",
    "cny": "CN¥", "cn¥": "CN¥", "rmb": "CN¥", "krw": "₩", "₩": "₩", "chf": "CHF ", "sek": "SEK ", "nok": "NOK ",
    "dkk": "DKK ", "zar": "R", "brl": "R$", "r$": "R$", "mxn": "MX$", "rub": "₽", "php": "₱", "₱": "₱",
    "philippine peso": "₱", "ngn": "₦", "₦": "₦", "naira": "₦", "ils": "₪", "nis": "₪", "hkd": "HK$", "hk$": "HK$",
    "sgd": "S$", "s$": "S$", "twd": "NT$", "nt$": "NT$", "myr": "RM", "rm": "RM", "thb": "฿", "idr": "Rp", "vnd": "₫",
    "turkish lira": "₺", "uah": "₴", "pln": "zł ", "czk": "Kč ", "huf": "Ft ", "ars": "AR$", "clp": "CLP$",
    "pkr": "₨", "npr": "रु", "bdt": "৳", "egp": "E£", "kes": "KSh ", "ghs": "GH₵", "isk": "ISK ", "irl£": "IR£",
    "dem": "DM ", "frf": "₣", "itl": "₤", "kzt": "₸", "gel": "₾", "btc": "₿", "zwd": "Z$",
    "lkr": "Rs ", "sar": "SAR ", "aed": "AED ", "qar": "QAR ",
}  # fmt: skip
_INDIAN_UNITS = {"c": " crore", "l": " lakh", "k": " thousand", "m": " million", "b": " billion", "t": " trillion",
                 "lc": " lakh crore"}  # fmt: skip
_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
             "twelve": "twelfth"}  # fmt: skip
_ROMAN = ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
          (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))  # fmt: skip


# What {{inflation}} shows depends on the day of reading; a currency sign before it means nothing without it.
AMOUNTS = frozenset({"inflation", "inflate", "inflation/us", "inflation/uk", "to usd", "tousd"})
LOST_AMOUNT = "\x19"  # stands for such an amount, which templates around it may format; no page can forge it
_LOST = re.compile(f"(?:(?:US|AU?|CA?N?|NZ|HK|R)?[$£€¥₹₽] ?)?{LOST_AMOUNT}")


def grouped(number: str) -> str:
    """``number`` with commas between thousands; anything else unchanged.

    >>> grouped("-1234567.50")
    '−1,234,567.50'
    """
    found = _NUMBER.match(number.strip())
    if not found:
        return number
    sign, whole, decimals = found.groups()
    return ("−" if sign == "-" else sign) + f"{int(whole):,}" + (decimals or "") if len(whole) < 100 else number


def formatnum(arguments: Arguments) -> str:
    number = arguments[0]
    return number.replace(",", "") if arguments[1] == "R" else grouped(number)


def fraction(arguments: Arguments) -> str:
    """{{frac|1|2}}, "1/2", and {{frac|3|1|2}}, "3 1/2"."""
    match arguments.given():
        case [whole, top, bottom, *_]:
            return f"{whole} {top}/{bottom}"
        case [top, bottom]:
            return f"{FRACTION}{top}/{bottom}"
        case [bottom]:
            return f"{FRACTION}1/{bottom}"
    return "/"


def fraction_sign(sign: str) -> Callable[[Arguments], str]:
    """{{½}}, and {{½|3}} for the same after a whole number."""
    return lambda arguments: arguments[0] + sign


FRACTION_SIGNS = {sign: fraction_sign(sign) for sign in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"}


def value(arguments: Arguments) -> str:
    """{{val}}: a number with its uncertainty, power of ten and unit."""
    number, error, error_below = (grouped(arguments[index]) for index in range(3))
    if error_below:
        number = f"{number} +{error.lstrip('+')} −{error_below.lstrip('-−')}"
    elif error:
        number = f"{number}{error}" if error.startswith("(") else f"{number} ± {error}"
    if exponent := arguments.get("e"):
        number = f"({number})×10^{exponent}" if "±" in number else f"{number}×10^{exponent}"
    unit = arguments.get("u", "ul")
    per = arguments.get("up", "upl")
    number = f"{arguments.get('p')}{number}{arguments.get('s')}"
    return number + (f" {unit}" if unit else "") + (f"/{per}" if per else "")


def population_density(arguments: Arguments) -> str:
    """{{pop density|people|area|unit}}, "5.7/km2 (15/sq mi)"; its arguments where they are no numbers."""
    to_km2 = {"km2": 1.0, "sqmi": 2.589988110336, "sq mi": 2.589988110336, "ha": 0.01, "acre": 0.0040468564224}
    try:
        people, area = (float(arguments[index].replace(",", "")) for index in range(2))
        density = people / (area * to_km2[arguments[2].lower()])
    except (ValueError, KeyError, ZeroDivisionError, OverflowError):
        return " / ".join(arguments.given()[:2])
    metric, imperial = (f"{value:,.{0 if value >= 100 else 1}f}" for value in (density, density * to_km2["sqmi"]))
    first, second = f"{metric}/km2", f"{imperial}/sq mi"
    return f"{first} ({second})" if arguments[2].lower() in ("km2", "ha") else f"{second} ({first})"


def money(symbol: str) -> Callable[[Arguments], str]:
    return lambda arguments: f"{symbol}{grouped(arguments[0])}"


MONEY = {name: money(symbol) for name, symbol in _CURRENCIES.items()}


def without_lost_amounts(text: str) -> str:
    """``text`` without the amounts that nobody can know, and without the currency signs before them.

    >>> without_lost_amounts(f"It cost $5 (${LOST_AMOUNT} today).").replace(DROPPED, "*")
    'It cost $5 (* today).'
    """
    return _LOST.sub(DROPPED, text)


def currency(arguments: Arguments) -> str:
    """{{currency|100|EUR}}: an amount and the code of its currency, given by its place or as ``type``."""
    code = arguments[1] or arguments.get("type") or "USD"
    amount = arguments[0] or arguments.get("amount")
    symbol = _CURRENCIES.get(code.lower(), f"{code} ")
    return f"{symbol}{grouped(amount)}"


def indian_rupees(arguments: Arguments) -> str:
    """{{INRConvert|5|c}}, "₹5 crore"; what it converts to depends on the day's rate and is left out."""
    return f"₹{grouped(arguments[0])}{_INDIAN_UNITS.get(arguments[1].lower(), '')}"


def old_british_money(arguments: Arguments) -> str:
    """{{£sd|l=1|s=2|d=3}}, "£1 2s 3d"."""
    signs = (("l", "£{}"), ("s", "{}s"), ("d", "{}d"))
    return " ".join(sign.format(arguments.get(key)) for key, sign in signs if arguments.get(key))


def ordinal(arguments: Arguments) -> str:
    """
    >>> [ordinal(Arguments([n])) for n in ("1", "2", "13", "x")]
    ['1st', '2nd', '13th', 'x']
    """
    number = arguments[0]
    if not (number.isascii() and number.isdigit()):
        return number
    teens = number[-2:-1] == "1"
    return number + ("th" if teens else {"1": "st", "2": "nd", "3": "rd"}.get(number[-1], "th"))


def percentage(arguments: Arguments) -> str:
    """{{percentage|1|3|1}}: the share of the second number that the first one is, "33.3%".

    >>> percentage(Arguments(["1", "3", "1"])), percentage(Arguments(["9", "0"]))
    ('33.3%', '9/0')
    """
    digits = int(arguments[2]) if arguments[2].isascii() and arguments[2].isdigit() and len(arguments[2]) < 3 else 0
    try:
        share = 100 * float(arguments[0].replace(",", "")) / float(arguments[1].replace(",", ""))
        return f"{share:,.{min(digits, 9)}f}%"
    except (ValueError, ZeroDivisionError, OverflowError):
        return "/".join(arguments.given()[:2])


def rounded(arguments: Arguments) -> str:
    """{{rnd|3.14159|2}}, "3.14"; what is no number is shown as it is."""
    digits = arguments[1] if re.fullmatch(r"-?\d{1,2}", arguments[1]) else "0"
    try:
        number = float(arguments[0].replace(",", ""))
        return grouped(f"{round(number, int(digits)):.{max(int(digits), 0)}f}")
    except (ValueError, OverflowError):
        return arguments[0]


def in_words(arguments: Arguments) -> str:
    """
    >>> in_words(Arguments(["1999"])), in_words(Arguments(["-42"])), in_words(Arguments(["3.5"]))
    ('one thousand nine hundred ninety-nine', 'minus forty-two', '3.5')
    """
    number = arguments[0].replace(",", "").replace("−", "-")
    if not re.fullmatch(r"-?[0-9]{1,9}", number):
        return arguments[0]
    return f"{'minus ' if number[0] == '-' else ''}{_words(abs(int(number)))}"


def ordinal_in_words(arguments: Arguments) -> str:
    """
    >>> ordinal_in_words(Arguments(["21"])), ordinal_in_words(Arguments(["30"])), ordinal_in_words(Arguments(["6"]))
    ('twenty-first', 'thirtieth', 'sixth')
    """
    words = in_words(arguments)
    if words == arguments[0]:
        return words
    last = re.split("[ -]", words)[-1]
    stem = words[: len(words) - len(last)]
    return stem + (_ORDINALS.get(last) or (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th"))


def _words(number: int) -> str:
    for size, name in ((1_000_000, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= size:
            rest = number % size
            return f"{_words(number // size)} {name}" + (f" {_words(rest)}" if rest else "")
    if number < 20:
        return _ONES[number]
    return _TENS[number // 10] + (f"-{_ONES[number % 10]}" if number % 10 else "")


def roman(arguments: Arguments) -> str:
    """
    >>> roman(Arguments(["1994"])), roman(Arguments(["x"]))
    ('MCMXCIV', 'x')
    """
    if not re.fullmatch("[0-9]{1,4}", arguments[0]):
        return arguments[0]
    number, shown = int(arguments[0]), ""
    for size, letters in _ROMAN:
        shown += letters * (number // size)
        number %= size
    return shown


def rating(arguments: Arguments) -> str:
    """{{rating|4|5}}: as the stars' description has it."""
    return f"{arguments[0]}/{arguments[1] or '5'} stars" if arguments[0] else ""
