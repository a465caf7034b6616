"""Templates for numbers, money and dates."""

import re
from collections.abc import Callable

from rag.corpus.wikitext_arguments import Arguments

_NUMBER = re.compile(r"([-−+]?)(\d+)(\.\d+)?$")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_CURRENCIES = {
    "usd": "US$", "us$": "US$", "us dollar": "US$", "$": "$", "aud": "A$", "a$": "A$", "cad": "C$", "can$": "C$",
    "nzd": "NZ$", "nz$": "NZ$", "gbp": "£", "£": "£", "pound sterling": "£", "pounds": "£", "eur": "€", "€": "€",
    "euro": "€", "jpy": "¥", "¥": "¥", "inr": "₹", "indian rupee": "₹", "rs": "₹", "cny": "CN¥",
    "cn¥": "CN¥", "rmb": "CN¥", "krw": "₩", "chf": "CHF ", "sek": "SEK ", "nok": "NOK ", "dkk": "DKK ", "zar": "R",
    "brl": "R$", "mxn": "MX$", "rub": "₽", "php": "₱", "ngn": "₦", "ils": "₪",
}  # fmt: skip


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
    match arguments.given():
        case [whole, top, bottom, *_]:
            return f"{whole} {top}/{bottom}"
        case [top, bottom]:
            return f"{top}/{bottom}"
        case [bottom]:
            return f"1/{bottom}"
    return "/"


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


def date(year: str, month: str = "", day: str = "", day_first: bool = False) -> str:
    """A date as English prose has it; parts that are missing are left out.

    >>> date("1970", "3", "4"), date("1970", "3", "4", day_first=True), date("1970", "3")
    ('March 4, 1970', '4 March 1970', 'March 1970')
    """
    name = _MONTHS[int(month) - 1] if month.isascii() and month.isdigit() and 1 <= int(month) <= 12 else month
    day = day.lstrip("0")
    if not day or not name:
        return f"{name} {year}".strip()
    return f"{day} {name} {year}".rstrip() if day_first else f"{name} {day}, {year}".rstrip(", ")


def simple_date(arguments: Arguments) -> str:
    """{{birth date and age}} and its kin. The age is left out: it is that of the day of reading."""
    year, month, day = (arguments[index] for index in range(3))
    if not year.isascii() or not year.isdigit():
        return year  # {{birth-date|March 4, 1970}}
    return date(year, month, day, day_first=_yes(arguments.get("df")))


def death_date_and_age(arguments: Arguments) -> str:
    """The date of death and the age it was reached at, "April 15, 1865 (aged 56)"."""
    died = simple_date(arguments)
    try:
        year, month, day, birth_year, birth_month, birth_day = (int(arguments[index]) for index in range(6))
    except ValueError:
        return died
    age = year - birth_year - ((month, day) < (birth_month, birth_day))
    return f"{died} (aged {age})"


def sortable_date(arguments: Arguments) -> str:
    """{{dts}}: a date given in any of several orders."""
    given = [part for part in arguments.given() if part.lower() not in ("dmy", "mdy", "dm", "md")]
    if len(given) == 3 and len(given[0]) == 4:
        return date(given[0], given[1], given[2])
    return " ".join(given)


def as_of(arguments: Arguments) -> str:
    if alternative := arguments.get("alt"):
        return alternative
    since = _yes(arguments.get("since"))
    word = "Since" if since else "As of"
    if _yes(arguments.get("lc")):
        word = word.lower()
    year, month, day = (arguments[index] for index in range(3))
    return f"{word} {date(year, month, day, day_first=arguments.get('df').lower() != 'us')}"


def old_style_date(arguments: Arguments) -> str:
    new, year, old = (arguments[index] for index in range(3))
    return f"{new} [O.S. {old}] {year}".rstrip()


def period(word: str) -> Callable[[Arguments], str]:
    """{{circa}}, {{reign}}, {{floruit}}: a word and one year, or two."""

    def show(arguments: Arguments) -> str:
        match arguments.given():
            case [start, end, *_]:
                return f"{word} {start} – {word} {end}" if word == "c." else f"{word} {start}–{end}"
            case given:
                return " ".join([word, *given])

    return show


def _yes(text: str) -> bool:
    return text.strip().lower() in ("y", "yes", "true", "1", "on")
