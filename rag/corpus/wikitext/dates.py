"""Templates for dates and ages."""

import datetime
import re
from collections.abc import Callable

from rag.corpus.wikitext.arguments import Arguments

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_ISO = re.compile(r"(\d{4})-(\d{1,2})(?:-(\d{1,2}))?$")
_ORDERS = ("dmy", "mdy", "dm", "md", "ymd", "iso", "my")


def date(year: str, month: str = "", day: str = "", day_first: bool = False) -> str:
    """A date as English prose has it; parts that are missing are left out.

    >>> date("1970", "3", "4"), date("1970", "3", "4", day_first=True), date("1970", "3")
    ('March 4, 1970', '4 March 1970', 'March 1970')
    """
    name = MONTHS[int(month) - 1] if month.isascii() and month.isdigit() and 1 <= int(month) <= 12 else month
    day = day.lstrip("0")
    if not day or not name:
        return f"{name} {year}".strip()
    return f"{day} {name} {year}".rstrip() if day_first else f"{name} {day}, {year}".rstrip(", ")


def simple_date(arguments: Arguments) -> str:
    """{{birth date and age}} and its kin. The age is left out: it is that of the day of reading."""
    year, month, day = (arguments[index] for index in range(3))
    day_first = is_yes(arguments.get("df"))
    if found := _ISO.match(year):
        return date(found.group(1), found.group(2), found.group(3) or "", day_first or month.lower() == "dmy")
    if not year.isascii() or not year.isdigit():
        return year  # {{birth-date|March 4, 1970}}
    return date(year, month, day, day_first)


def death_date_and_age(arguments: Arguments) -> str:
    """The date of death and the age it was reached at, "April 15, 1865 (aged 56)"."""
    years = _years(arguments)
    return simple_date(arguments) + (f" (aged {years})" if years is not None else "")


def death_year_and_age(arguments: Arguments) -> str:
    """{{death year and age|1990|1950}}: only the years are known, so that the age is one of two."""
    died, born = arguments[0], arguments[1]
    if not all(year.isascii() and year.isdigit() for year in (died, born)):
        return died
    age = int(died) - int(born)
    return f"{date(died, arguments[2])} (aged {age - 1}–{age})"


def birth_year_by_age(arguments: Arguments) -> str:
    """{{birth based on age as of date|34|1988|5|3}}: the year of birth is one of two."""
    age, year = arguments[0], arguments[1]
    if not all(number.isascii() and number.isdigit() for number in (age, year)):
        return ""
    return f"{int(year) - int(age) - 1} or {int(year) - int(age)}"


def age(arguments: Arguments) -> str:
    """The years between two dates; "" where only one is given, for the other one is the day of reading."""
    years = _years(Arguments([*arguments.positional[3:6], *arguments.positional[:3]]))
    return str(years) if years is not None else ""


def age_in_days(arguments: Arguments) -> str:
    try:
        numbers = [int(arguments[index]) for index in range(6)]
        return f"{(datetime.date(*numbers[3:]) - datetime.date(*numbers[:3])).days:,}"
    except (ValueError, OverflowError):
        return ""


def _years(arguments: Arguments) -> int | None:
    """Whole years from the date in the arguments 4 to 6 to the date in the arguments 1 to 3."""
    try:
        year, month, day, first_year, first_month, first_day = (int(arguments[index]) for index in range(6))
    except ValueError:
        return None
    return year - first_year - ((month, day) < (first_month, first_day))


def sortable_date(arguments: Arguments) -> str:
    """{{dts}}: a date given in any of several orders."""
    given = [part for part in arguments.given() if part.lower() not in _ORDERS]
    if given and (_ISO.match(given[0]) or (len(given) == 3 and len(given[0]) == 4)):
        order = next((part for part in arguments.given() if part.lower() in _ORDERS), arguments.get("format"))
        return simple_date(Arguments([*given[:3]], {"df": "y" if order.lower() in ("dmy", "dm") else ""}))
    return " ".join(given)


def as_of(arguments: Arguments) -> str:
    if alternative := arguments.get("alt"):
        return alternative
    word = "Since" if is_yes(arguments.get("since")) else "As of"
    if is_yes(arguments.get("lc")):
        word = word.lower()
    year, month, day = (arguments[index] for index in range(3))
    return f"{word} {date(year, month, day, day_first=arguments.get('df').lower() != 'us')}"


def old_style_date(arguments: Arguments) -> str:
    new, year, old = (arguments[index] for index in range(3))
    return f"{new} [O.S. {old}] {year}".rstrip()


def month_name(arguments: Arguments) -> str:
    return date("", arguments[0]) or arguments[0]


def period(word: str) -> Callable[[Arguments], str]:
    """{{circa}}, {{reign}}, {{floruit}}: a word and one year, or two."""

    def show(arguments: Arguments) -> str:
        match arguments.given():
            case [start, end, *_]:
                return f"{word} {start} – {word} {end}" if word == "c." else f"{word} {start}–{end}"
            case given:
                return " ".join([word, *given])

    return show


def season(arguments: Arguments) -> str:
    """{{nhly|1999}}: a season is named by the two years it runs through, "1999–2000"."""
    year = arguments[0]
    if not (year.isascii() and year.isdigit() and len(year) == 4):
        return year
    following = int(year) + 1
    return f"{year}–{following if following % 100 == 0 else f'{following % 100:02d}'}"


def duration(arguments: Arguments) -> str:
    """
    >>> duration(Arguments([], {"m": "3", "s": "5"})), duration(Arguments(["1", "2", "3"]))
    ('3:05', '1:02:03')
    """
    parts = [arguments[index] or arguments.get(key) for index, key in enumerate("hms")]
    if ":" in parts[0]:
        return parts[0]
    while len(parts) > 2 and not parts[0]:
        del parts[0]
    return ":".join([parts[0] or "0", *(part.rjust(2, "0") for part in parts[1:])])


def is_yes(text: str) -> bool:
    """Whether a template takes the value of a parameter for a yes."""
    return text.strip().lower() in ("y", "yes", "true", "1", "on")
