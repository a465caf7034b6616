"""What all sentences of the demo pages share: their record, the ways to say a fact, and what the facts imply.

A fact has several wordings; the title of the page chooses one, so that no wording belongs to one split.
"""

import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from rag.demo.facts import Country, Facts, Tenure
from rag.demo.wording import capital_link, capitalised, country_link, distance_km, pick

Role = Literal["head of state", "head of government", "monarch"]

_MONARCHS = ("King", "Queen", "Emperor", "Emir", "Sultan", "Prince", "Grand Duke", "Sovereign")
_GOVERNMENT = (
    "Prime Minister", "Premier", "Chancellor", "Taoiseach", "Head of Government", "Minister of State",
    "Secretary of State", "Chairman of the Council of Ministers",
)  # fmt: skip
_ACCENTLESS = str.maketrans({"ø": "o", "Đ": "D", "đ": "d", "ł": "l", "ð": "d", "ı": "i"})
_SAME_TOWN_KM = 10.0


class Sentence(NamedTuple):
    """One sentence in wikitext, and the fact that it states."""

    fact: str
    wikitext: str


@dataclass(frozen=True)
class World:
    """The facts with what follows from them: who shares what, and who is how large."""

    facts: Facts

    @cached_property
    def currency_users(self) -> dict[str, list[Country]]:
        users: dict[str, list[Country]] = {}
        for country in self.facts.countries:
            users.setdefault(country.currency, []).append(country)
        return users

    @cached_property
    def language_users(self) -> dict[str, list[Country]]:
        users: dict[str, list[Country]] = {}
        for country in self.facts.countries:
            for language in country.languages:
                users.setdefault(language, []).append(country)
        return users

    @cached_property
    def continent_sizes(self) -> Counter[str]:
        return Counter(country.continent for country in self.facts.countries)

    @cached_property
    def population_ranks(self) -> dict[str, int]:
        """Country -> its place by population among the countries of its continent, from 1."""
        seen: Counter[str] = Counter()
        ranks = {}
        for country in sorted(self.facts.countries, key=lambda c: -c.population):
            seen[country.continent] += 1
            ranks[country.name] = seen[country.continent]
        return ranks

    @cached_property
    def positions(self) -> dict[str, list[str]]:
        """Country -> its offices."""
        found: dict[str, set[str]] = {}
        for tenure in self.facts.tenures:
            found.setdefault(tenure.country, set()).add(tenure.position)
        return {name: sorted(positions) for name, positions in found.items()}

    def neighbours(self, country: Country) -> list[Country]:
        return [self.facts.country(name) for name in country.neighbours]

    def nearest(self, country: Country) -> Country | None:
        """The neighbour whose capital is nearest; None without neighbours, or where both capitals are one town."""
        near = min(self.neighbours(country), key=lambda other: distance_km(country, other), default=None)
        return near if near is not None and distance_km(country, near) >= _SAME_TOWN_KM else None


def office_title(tenure: Tenure, country: Country) -> str:
    """The title without the country: "Prime Minister"."""
    return tenure.position.removesuffix(f" of {country.the}")


def office_role(tenure: Tenure, country: Country) -> Role:
    title = office_title(tenure, country)
    if title in _MONARCHS:
        return "monarch"
    # In Iran the Supreme Leader stands above the president.
    return "head of government" if title in _GOVERNMENT or tenure.position == "President of Iran" else "head of state"


def accentless(name: str) -> str:
    """The name in letters without marks.

    >>> accentless("João Lourenço")
    'Joao Lourenco'
    """
    return "".join(
        c for c in unicodedata.normalize("NFKD", name.translate(_ACCENTLESS)) if not unicodedata.combining(c)
    )


def say(fact: str, page: str, options: tuple[str, ...], words: Mapping[str, str]) -> Sentence:
    """The fact in the wording that belongs to the page, with the words filled in."""
    return Sentence(fact, capitalised(pick(options, page, fact).format_map(words)))


def distance(world: World, country: Country, wording: str) -> list[Sentence]:
    """How far it is to the nearest capital of a neighbour; no sentence where there is none."""
    nearest = world.nearest(country)
    if nearest is None:
        return []
    convert = f"{{{{convert|{round(distance_km(country, nearest), -1):.0f}|km|mi}}}}"
    words = {"distance": convert, "nearest": capital_link(nearest), "country": country_link(nearest)}
    return [Sentence("distance", wording.format_map(words))]
