"""Small pieces of English and of wikitext that the pages and the questions of the demo world share."""

import hashlib
import math
import re
from collections.abc import Sequence
from datetime import date
from typing import TypeVar

from rag.demo.facts import Country

T = TypeVar("T")

_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_ORDINALS = ("", "", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_COMMON_NOUNS = ("Euro", "Pound", "Convertible", "Renminbi")  # currencies named by no country: lower case in a sentence
_CREOLES = (
    "Bislama",
    "Fiji Hindi",
    "Haitian Creole",
    "Hiri Motu",
    "Mandarin Chinese",
    "Seychellois Creole",
    "Tok Pisin",
)
_TITLES = {"Georgia": "Georgia (country)", "Bahamas": "The Bahamas", "Gambia": "The Gambia"}
_CAPITAL_TITLES = {
    "Djibouti": "Djibouti (city)", "Georgetown": "Georgetown, Guyana", "Kingston": "Kingston, Jamaica",
    "Luxembourg": "Luxembourg (city)", "San Jose": "San Jose, Costa Rica", "San Marino": "San Marino (city)",
    "Santiago": "Santiago, Chile", "Tripoli": "Tripoli, Libya", "Victoria": "Victoria, Seychelles",
}  # fmt: skip
EARTH_RADIUS_KM = 6371.0


def stable_hash(*parts: str) -> int:
    """A number that depends on the words alone, on every machine and in every process."""
    return int.from_bytes(hashlib.sha256("\x1f".join(parts).encode("utf-8")).digest()[:8], "big")


def pick(options: Sequence[T], *parts: str) -> T:
    """The option that belongs to these words.

    >>> pick(["a", "b", "c"], "Angola", "capital") == pick(["a", "b", "c"], "Angola", "capital")
    True
    """
    return options[stable_hash(*parts) % len(options)]


def shuffled(items: Sequence[T], *parts: str) -> list[T]:
    """The items in an order that depends on their text and these words."""
    return sorted(items, key=lambda item: stable_hash(*parts, repr(item)))


def listed(names: Sequence[str], word: str = "and") -> str:
    """Names in a row.

    >>> listed(["Chile", "Peru", "Brazil"])
    'Chile, Peru and Brazil'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def number_word(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else str(number)


def superlative(rank: int, word: str) -> str:
    """The 1st, 2nd, ... of a ranking.

    >>> superlative(1, "largest"), superlative(3, "largest"), superlative(22, "largest")
    ('largest', 'third largest', '22nd largest')
    """
    if rank < 2:
        return word
    if rank < len(_ORDINALS):
        return f"{_ORDINALS[rank]} {word}"
    ending = "th" if rank % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th")
    return f"{rank}{ending} {word}"


def long_date(day: date) -> str:
    """A day in words.

    >>> long_date(date(2017, 9, 26))
    '26 September 2017'
    """
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def a_or_an(word: str) -> str:
    """The word after its article.

    >>> a_or_an("Angolan"), a_or_an("Ugandan"), a_or_an("Peruvian")
    ('an Angolan', 'a Ugandan', 'a Peruvian')
    """
    vowel = word[0] in "AEIO" or word.startswith("Uz")
    return f"{'an' if vowel else 'a'} {word}"


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def currency_phrase(name: str) -> str:
    """The currency inside a sentence: "euro", "Angolan kwanza"."""
    return name[0].lower() + name[1:] if name.split()[0] in _COMMON_NOUNS else name


def place(country: Country) -> str:
    """Where a country lies: "Eastern Africa", "the Caribbean, a part of North America"."""
    if country.continent in country.region:
        return country.region
    return f"{country.region}, a part of {country.continent}"


def country_title(country: Country) -> str:
    return _TITLES.get(country.name, country.name)


def country_link(country: Country) -> str:
    """A link that reads as the country does inside a sentence."""
    title = country_title(country)
    link = f"[[{title}]]" if title == country.name else f"[[{title}|{country.name}]]"
    return f"{country.article} {link}".strip()


def capital_title(country: Country) -> str:
    """The title of the capital's article; a city-state has one article for both."""
    return _CAPITAL_TITLES.get(country.capital, country.capital)


def is_city_state(country: Country) -> bool:
    return capital_title(country) == country_title(country)


def capital_link(country: Country) -> str:
    title = capital_title(country)
    return f"[[{title}]]" if title == country.capital else f"[[{title}|{country.capital}]]"


def language_title(language: str) -> str:
    return language if language in _CREOLES else f"{language} language"


def language_link(language: str) -> str:
    title = language_title(language)
    return f"[[{title}]]" if title == language else f"[[{title}|{language}]]"


def currency_link(currency: str) -> str:
    shown = currency_phrase(currency)
    return f"[[{currency}]]" if shown == currency else f"[[{currency}|{shown}]]"


def distance_km(a: Country, b: Country) -> float:
    """Great-circle distance between two capitals."""
    lat_a, lat_b = math.radians(a.latitude), math.radians(b.latitude)
    half_lat, half_lon = (lat_b - lat_a) / 2, math.radians(b.longitude - a.longitude) / 2
    chord = math.sin(half_lat) ** 2 + math.cos(lat_a) * math.cos(lat_b) * math.sin(half_lon) ** 2
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(chord))


def plain_sentence(wikitext: str) -> str:
    """A sentence of the demo pages without its markup; knows only what those sentences use, conversions apart.

    >>> plain_sentence("'''Peru''' pays in [[Peruvian sol|sol]].<ref name='a' />&nbsp;{{nowrap|Yes}}.")
    'Peru pays in sol. Yes.'
    """
    text = re.sub(r"<ref[^>]*/>|<ref[^>]*>.*?</ref>|<!--.*?-->", "", wikitext, flags=re.DOTALL)
    text = re.sub(r"\{\{formatnum:(\d+)\}\}", lambda match: f"{int(match[1]):,}", text)
    text = re.sub(r"\{\{(?:nowrap|lang\|[a-z]+)\|([^{}]*)\}\}", r"\1", text)
    text = re.sub(r"\[\[(?:[^\]|]*\|)?([^\]]*)\]\]", r"\1", text)
    return re.sub(r"'{2,}", "", text).replace("&nbsp;", " ")
