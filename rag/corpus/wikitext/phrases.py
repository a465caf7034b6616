"""Templates for signs, formulas in words, citations in a sentence and tables that hold prose."""

import re
from collections.abc import Callable

from rag.corpus.wikitext.arguments import Arguments
from rag.corpus.wikitext.dates import date, is_yes
from rag.corpus.wikitext.marks import protect
from rag.corpus.wikitext.tables import one_line, paragraphs

Show = Callable[[Arguments], str]

# Signs that stand before the argument of their template, "±5", and those that stand after it, "f′".
_SIGNS_BEFORE = {
    "±": "±|plusminus|plus or minus|pm|plus-minus|+-",
    "≈": "approx|almost equal to",
    "−": "minus",
    "×": "times|×",
    "†": "extinct",
    "√": "surd",
}
_SIGNS_AFTER = {
    "′": "prime|′",
    "″": "pprime|double prime|″",
    "‴": "ppprime|triple prime",
    "°": "deg|degree|degrees",
}
_ELEMENTS = {"carbon": "C", "hydrogen": "H", "oxygen": "O", "nitrogen": "N", "chlorine": "Cl", "sulfur": "S"}
_CITING = re.compile(
    r"(?:title|url|isbn|doi|journal|publisher|work|chapter|website|newspaper|year|date|(?:author|last|first|editor)\d*)$"
)
_NUMBERED = re.compile(r"\d+$")


def sign_before(sign: str) -> Show:
    """{{±|5}}; and {{±|5|3}}, where the second number is the way down."""

    def show(arguments: Arguments) -> str:
        if sign == "±" and arguments[0] and arguments[1]:
            return f"+{arguments[0].lstrip('+')} −{arguments[1].lstrip('-−')}"
        return sign + arguments[0]

    return show


def sign_after(sign: str) -> Show:
    return lambda arguments: arguments[0] + sign


SIGNS: dict[str, Show] = {
    **{name: sign_before(sign) for sign, names in _SIGNS_BEFORE.items() for name in names.split("|")},
    **{name: sign_after(sign) for sign, names in _SIGNS_AFTER.items() for name in names.split("|")},
}


def _atoms(symbol: str) -> Show:
    """{{Carbon|4}}{{Hydrogen|10}}, "C4H10"."""
    return lambda arguments: symbol + arguments[0]


ELEMENTS: dict[str, Show] = {name: _atoms(symbol) for name, symbol in _ELEMENTS.items()}


def ruby(arguments: Arguments) -> str:
    """{{ruby|東京|とうきょう}}: the small text above another one, in brackets after it."""
    base, reading = arguments[0], arguments[1]
    return f"{base}({reading})" if base and reading else base


def ratio(arguments: Arguments) -> str:
    return ":".join(arguments.given())


def cited(arguments: Arguments) -> str:
    """{{citation|text}} is a quotation in some wikis; with a title or an author it describes a source."""
    return "" if any(_CITING.match(name) for name in arguments.named) else arguments[0]


def harvard_links(arguments: Arguments) -> str:
    """{{harvs|txt|last=Langlands|year=1970}}, "Langlands (1970)"; "nb" leaves the brackets out."""
    style = next((word for word in ("txt", "nb") if word in arguments.given() or arguments.get(word)), "")
    authors = [arguments.get("last", "last1", "author", "author1")]
    authors += [arguments.get(f"last{number}", f"author{number}") for number in range(2, 6)]
    authors = [author for author in authors if author]
    names = " & ".join(filter(None, [", ".join(authors[:-1]), *authors[-1:]]))
    years = [arguments.get("year", "year1"), *(arguments.get(f"year{number}") for number in range(2, 6))]
    year = ", ".join(filter(None, years))
    if style == "txt":
        return f"{names} ({year})" if year else names
    shown = f"{names} {year}".strip()
    return shown if style == "nb" or not shown else f"({shown})"


def two_dates(arguments: Arguments) -> str:
    """{{start and end dates|1914|7|28|1918|11|11}}, "July 28, 1914 – November 11, 1918"."""
    day_first = is_yes(arguments.get("df"))
    start, end = (
        date(arguments[first], arguments[first + 1], arguments[first + 2], day_first=day_first) for first in (0, 3)
    )
    return f"{start} – {end}" if end else start


def significant(arguments: Arguments) -> str:
    """{{sigfig|3.14159|3}}, "3.14"; what is no number is shown as it is.

    >>> significant(Arguments(["3.14159", "3"])), significant(Arguments(["1234567", "3"]))
    ('3.14', '1,230,000')
    """
    digits = int(arguments[1]) if re.fullmatch("[1-9]", arguments[1]) else 1
    number = arguments[0].replace(",", "").replace("−", "-")
    if not re.fullmatch(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?", number) or not float(number):
        return arguments[0]
    whole_digits = int(f"{float(number):e}".partition("e")[2]) + 1
    decimals = digits - whole_digits
    return f"{round(float(number), decimals):,.{max(decimals, 0)}f}".replace("-", "−")


def episode(arguments: Arguments) -> str:
    """{{Episode list|Title=...|ShortSummary=...}}: a row of a table, and the plot as a paragraph below it."""
    title = arguments.get("Title", "RTitle", "title", "TranslitTitle")
    row = [
        arguments.get("EpisodeNumber"),
        f'"{title}"' if title else "",
        arguments.get("DirectedBy"),
        arguments.get("WrittenBy"),
        arguments.get("OriginalAirDate"),
    ]
    lines = ["; ".join(filter(None, map(one_line, row)))]
    summary = arguments.get("ShortSummary", "shortsummary")
    return paragraphs(filter(None, lines)) + (f"{summary}\n\n" if summary else "")


def tracks(arguments: Arguments) -> str:
    """{{Track listing|title1=...|note1=...|length1=...}}: a row a song."""
    lines = []
    for name, title in arguments.named.items():
        if title and name.startswith("title") and (number := _NUMBERED.search(name)):
            note, length = (arguments.get(f"{key}{number.group()}") for key in ("note", "length"))
            shown = f'{number.group()}. "{title}"' + (f" ({note})" if note else "")
            lines.append("; ".join(filter(None, [shown, length])))
    return paragraphs(map(one_line, lines))


def quoted(before: str, after: str) -> Show:
    """A quotation between the marks of a language, which no pass takes for markup."""
    return lambda arguments: f"{protect(before)}{text}{protect(after)}" if (text := arguments[0]) else ""
