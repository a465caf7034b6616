"""The sentences of the demo pages: several ways to say each fact, chosen by the title of the page.

No sentence names a former holder of an office, so that the pages of one date never give the answers of another.
"""

import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from rag.demo.facts import Country, Facts, Tenure
from rag.demo.wording import (
    a_or_an,
    capital_link,
    capital_title,
    capitalised,
    country_link,
    country_title,
    currency_link,
    currency_phrase,
    distance_km,
    is_city_state,
    language_link,
    language_title,
    listed,
    long_date,
    number_word,
    pick,
    place,
    superlative,
)

Role = Literal["head of state", "head of government", "monarch"]

_MONARCHS = ("King", "Queen", "Emperor", "Emir", "Sultan", "Prince", "Grand Duke", "Sovereign")
_GOVERNMENT = (
    "Prime Minister", "Premier", "Chancellor", "Taoiseach", "Head of Government", "Minister of State",
    "Secretary of State", "Chairman of the Council of Ministers",
)  # fmt: skip
_SHORT_TITLES = {
    "Taoiseach": "Taoiseach", "French Coprince": "coprince", "Chairman of the Council of Ministers": "chairman",
    "Chairman of the Presidency": "chairman", "Chairman of the Presidential Council": "chairman",
}  # fmt: skip
_ACCENTLESS = str.maketrans({"ø": "o", "Đ": "D", "đ": "d", "ł": "l", "ð": "d", "ı": "i"})


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
    return "".join(c for c in unicodedata.normalize("NFKD", name.translate(_ACCENTLESS)) if not unicodedata.combining(c))


def _say(fact: str, page: str, options: tuple[str, ...], words: Mapping[str, str]) -> Sentence:
    return Sentence(fact, capitalised(pick(options, page, fact).format_map(words)))


def country_words(country: Country) -> dict[str, str]:
    """What the templates about a country may mention."""
    bold = f"{country.article} '''{country.name}'''".strip()
    languages = [language_link(language) for language in country.languages]
    return {
        "the": country.the,
        "bold": bold,
        "place": place(country),
        "continent": f"[[{country.continent}]]",
        "capital": capital_link(country),
        "currency": currency_link(country.currency),
        "code": country.currency_code,
        "languages": listed(languages),
        "language_count": number_word(len(languages)),
        "population": f"{{{{formatnum:{country.population}}}}}",
        "demonym": country.demonym,
    }


def country_lead(world: World, country: Country) -> list[Sentence]:
    page, words = country_title(country), country_words(country)
    opening = (
        "{bold} is a country in {place}.",
        "{bold} is one of the countries of {continent}; it lies in {place}.",
        "{bold}, a country in {place}, had about {population} inhabitants in 2016.",
        "Lying in {place}, {bold} is one of the countries of {continent}.",
    )
    if country.region == country.continent:
        opening = ("{bold} is a country in {place}.", "{bold} is one of the countries of {place}.")
    return [_say("continent", page, opening, words), _capital_sentence(country, page, words), _borders(world, country, page)]


def _capital_sentence(country: Country, page: str, words: Mapping[str, str]) -> Sentence:
    if is_city_state(country):
        options: tuple[str, ...] = (
            "It is a city-state, so the capital of {the} is the city of {the} itself.",
            "City and state are one here: the capital of {the} is {the} itself.",
        )
        return _say("capital", page, options, words)
    options = (
        "The capital of {the} is {capital}.",
        "Its capital is {capital}.",
        "{capital} is the national capital.",
        "{capital} serves as the capital of {the}.",
        "The country has its capital at {capital}.",
    )
    return _say("capital", page, options, words)


def _borders(world: World, country: Country, page: str) -> Sentence:
    names = [country_link(neighbour) for neighbour in world.neighbours(country)]
    if country.name == "Cyprus":  # borders British base areas on the island, which are no country
        return Sentence("borders", "It is an island country in the eastern Mediterranean Sea.")
    if not names:
        options: tuple[str, ...] = (
            "It has no land border with any other country.",
            "The sea surrounds it, and no other country borders it on land.",
        )
    elif len(names) == 1:
        options = ("Its only land border is with {names}.", "On land it borders a single country, {names}.")
    else:
        options = (
            "It shares land borders with {names}.",
            "{the} borders {names}.",
            "Its neighbours on land are {names}.",
            "On land it is bordered by {names}.",
        )
    return _say("borders", page, options, {"the": country.the, "names": listed(names) if names else ""})


def country_geography(world: World, country: Country) -> list[Sentence]:
    page = country_title(country)
    rank, size = world.population_ranks[country.name], world.continent_sizes[country.continent]
    north, east = country.latitude >= 0, country.longitude >= 0
    words = {
        **country_words(country),
        "hemisphere": f"{'northern' if north else 'southern'} hemisphere",
        "latitude": f"{abs(country.latitude):.0f}° {'N' if north else 'S'}",
        "longitude": f"{abs(country.longitude):.0f}° {'E' if east else 'W'}",
        "most": superlative(rank, "most populous"),
        "size": str(size),
    }
    sentences = [
        _say(
            "latitude",
            page,
            (
                "The capital stands in the {hemisphere}, near latitude {latitude} and longitude {longitude}.",
                "The seat of the capital is close to {latitude}, {longitude}.",
            ),
            words,
        ),
        _say(
            "rank",
            page,
            (
                "Of the {size} countries of {continent} it is the {most}.",
                "It is the {most} of the {size} countries of {continent}.",
            ),
            words,
        ),
    ]
    nearest = min(world.neighbours(country), key=lambda other: distance_km(country, other), default=None)
    if nearest and distance_km(country, nearest) >= 10 and not is_city_state(country):
        km = int(round(distance_km(country, nearest), -1))
        sentences.append(
            Sentence(
                "distance",
                f"The nearest capital of a neighbour is {capital_link(nearest)}, about {{{{convert|{km}|km|mi}}}} away in a straight line.",
            )
        )
    return sentences


def country_economy(world: World, country: Country) -> list[Sentence]:
    page, words = country_title(country), country_words(country)
    options = (
        "The currency of {the} is the {currency} (ISO code {code}).",
        "{the} uses the {currency} as its currency, which has the ISO code {code}.",
        "Prices and wages are paid in the {currency} ({code}), the currency of {the}.",
        "The legal currency is the {currency}, whose [[ISO 4217|ISO code]] is {code}.",
        "People pay with the {currency} (code {code}).",
    )
    sentences = [_say("currency", page, options, words)]
    others = len(world.currency_users[country.currency]) - 1
    if others:
        count = f"{number_word(others)} other {'country' if others == 1 else 'countries'}"
        shared = ("The same currency is in use in at least {count}.", "It shares this currency with at least {count}.")
        sentences.append(_say("currency shared", page, shared, {"count": count}))
    return sentences


def country_people(country: Country) -> list[Sentence]:
    page, words = country_title(country), country_words(country)
    several = len(country.languages) > 1
    if not country.official:
        options: tuple[str, ...] = (
            ("The main languages of public life are {languages}.", "In practice {languages} are the languages of government.")
            if several
            else (
                "The main language of public life is {languages}.",
                "In practice {languages} is the language of government.",
            )
        )
    elif several:
        options = (
            "The official languages are {languages}.",
            "{the} has {language_count} official languages: {languages}.",
            "{languages} are the official languages of {the}.",
        )
    else:
        options = (
            "The official language is {languages}.",
            "{languages} is the official language of {the}.",
            "The law makes {languages} the official language of the country.",
            "In {the} the official language is {languages}.",
        )
    population = (
        "In 2016 the population was estimated at {population}.",
        "About {population} people lived in {the} in 2016.",
        "An estimate of 2016 gives a population of {population}.",
    )
    demonym = (
        'A person or thing from {the} is called "{demonym}".',
        'The adjective that belongs to the country is "{demonym}".',
    )
    return [
        _say("language", page, options, words),
        _say("population", page, population, words),
        _say("demonym", page, demonym, words),
    ]


def country_government(world: World, country: Country) -> list[Sentence]:
    positions = world.positions.get(country.name, [])
    if not positions:
        return []
    links = listed([f"[[{position}]]" for position in positions])
    one = (
        "The leading office of the state is that of {links}.",
        "The best known public office of the country is that of {links}.",
    )
    two = (
        "The leading offices of the state are those of {links}.",
        "At the head of the country stand two offices, {links}.",
    )
    return [_say("offices", country_title(country), one if len(positions) == 1 else two, {"links": links})]


def office_sentences(world: World, tenure: Tenure) -> list[Sentence]:
    """What the office is, who holds it, and what its holder does."""
    country = world.facts.country(tenure.country)
    role, title = office_role(tenure, country), office_title(tenure, country)
    plain = accentless(tenure.holder)
    words = {
        "position": tenure.position,
        "the": country.the,
        "country": country_link(country),
        "place": place(country),
        "role": "head of government" if role == "head of government" else "head of state",
        "holder": f"[[{tenure.holder}]]" + ("" if plain == tenure.holder else f" (also written {plain})"),
        "since": long_date(tenure.since),
        "short": _SHORT_TITLES.get(title, title.lower()),
    }
    sentences = [_say("office", tenure.position, _office_openings(role), words)]
    sentences.append(_say("holder", tenure.position, _holder_options(role), words))
    duties = _realm_duties() if tenure.holder == "Elizabeth II" and country.name != "United Kingdom" else _duties(role)
    first = _say("duties", tenure.position, duties, words)
    second = _say("more duties", tenure.position, tuple(d for d in duties if d.format_map(words) != first.wikitext), words)
    others = [position for position in world.positions[country.name] if position != tenure.position]
    sentences += [first, second]
    if len(others) == 1:
        other = (
            "The other leading office of the country is that of [[{other}]].",
            "Beside it stands the office of [[{other}]].",
        )
        sentences.append(_say("other office", tenure.position, other, {"other": others[0]}))
    else:
        sentences.append(
            _say("seat", tenure.position, ("{capital} is the capital of the country.",), {"capital": capital_link(country)})
        )
    return sentences


def _office_openings(role: Role) -> tuple[str, ...]:
    if role == "monarch":
        return (
            "The '''{position}''' is the monarch and [[head of state]] of {country}.",
            "'''{position}''' is the title of the monarch, who is the [[head of state]] of {country}.",
            "The title of '''{position}''' belongs to the monarch of {country}, a country in {place}.",
        )
    return (
        "The '''{position}''' is the [[{role}]] of {country}.",
        "'''{position}''' is the title of the [[{role}]] of {country}, a country in {place}.",
        "The office of '''{position}''' is that of the [[{role}]] of {country}.",
        "In {country} the [[{role}]] bears the title '''{position}'''.",
    )


def _holder_options(role: Role) -> tuple[str, ...]:
    if role == "monarch":
        return (
            "The {position} is {holder}, whose reign began on {since}.",
            "Since {since} the {position} has been {holder}.",
            "{holder} has been {position} since {since}.",
        )
    return (
        "The current holder is {holder}, who took office on {since}.",
        "{holder} has held the office since {since}.",
        "Since {since} the {position} has been {holder}.",
        "The office is held by {holder}, in post since {since}.",
        "The incumbent is {holder}, whose time in office began on {since}.",
        "{holder} is the current {position} and has served since {since}.",
        "The {position} is {holder}, who came into office on {since}.",
    )


def _duties(role: Role) -> tuple[str, ...]:
    if role == "head of government":
        return (
            "The {short} leads the work of the government and chairs its meetings.",
            "Ministers report to the {short}, who settles disputes between departments.",
            "The {short} speaks for the government at home and at meetings abroad.",
            "Plans for new laws and for the budget pass over the desk of the {short}.",
        )
    if role == "monarch":
        return (
            "Visits of state, audiences and great ceremonies are part of the duties of the {short}.",
            "Ambassadors of other countries present their letters of credence to the {short}.",
            "Portraits of the {short} hang in many public buildings.",
        )
    return (
        "The {short} represents the country at home and abroad.",
        "Ambassadors of other countries present their letters of credence to the {short}.",
        "Visits of state and the great ceremonies of the year are part of the work of the {short}.",
        "The powers of the {short} are laid down in the constitution of the country.",
    )


def _realm_duties() -> tuple[str, ...]:
    return (
        "A governor-general carries out most duties of the Crown in the country.",
        "The same person reigns over several countries, each with its own government.",
    )


def capital_sentences(world: World, country: Country) -> list[Sentence]:
    page = capital_title(country)
    also = [name for name in country.capitals[1:] if name.isascii()] if country.capital in ("Kyiv", "Luxembourg") else []
    accented = [name for name in country.capitals[1:] if accentless(name) == country.capital]
    note = f" (in local spelling {{{{lang|mul|{accented[0]}}}}})" if accented else ""
    note = note or (f" (also called {also[0]})" if also else "")
    words = {
        "bold": f"'''{country.capital}'''{note}",
        "capital": country.capital,
        "country": country_link(country),
        "the": country.the,
        "place": place(country),
        "demonym": country.demonym,
        "currency": currency_phrase(country.currency),
    }
    opening = (
        "{bold} is the capital of {country}.",
        "{bold} is the capital city of {country}, a country in {place}.",
        "{bold}, in {place}, is the capital of {country}.",
        "The city of {bold} is the capital of {country}." if "City" not in country.capital else "{bold} is the capital of {country}.",
    )
    life = (
        "Shops and markets in {capital} take payment in the {currency}.",
        "The {demonym} government and many of its public bodies are at home here or nearby.",
        "Travellers who come to {the} on official business usually stop in {capital}.",
    )
    sentences = [_say("capital of", page, opening, words)]
    nearest = min(world.neighbours(country), key=lambda other: distance_km(country, other), default=None)
    if nearest and distance_km(country, nearest) >= 10:
        km = int(round(distance_km(country, nearest), -1))
        sentences.append(
            Sentence("distance", f"A straight line of about {{{{convert|{km}|km|mi}}}} leads from here to {capital_link(nearest)} in {country_link(nearest)}.")
        )
    first = _say("life", page, life, words)
    sentences.append(first)
    hemisphere = "north" if country.latitude >= 0 else "south"
    sentences.append(
        Sentence("latitude", f"The city lies about {abs(country.latitude):.0f}&nbsp;degrees {hemisphere} of the [[equator]].")
    )
    return sentences


def currency_sentences(currency: str, users: list[Country]) -> list[Sentence]:
    code = users[0].currency_code
    links = [country_link(country) for country in users]
    shown = listed(links) if len(links) <= 12 else f"{', '.join(links[:10])} and {len(links) - 10} other countries"
    words = {"bold": f"'''{currency_phrase(currency)}'''", "code": code, "users": shown, "name": currency_phrase(currency)}
    return [
        _say(
            "users",
            currency,
            (
                "The {bold} is the currency of {users}.",
                "The {bold} is the money in use in {users}.",
                "The {bold} ({code}) is the legal currency in {users}.",
            ),
            words,
        ),
        _say(
            "code",
            currency,
            (
                "Banks and exchanges write it as {code}, its code in the standard [[ISO 4217]].",
                "Its code in the standard [[ISO 4217]] is {code}.",
            ),
            words,
        ),
        _say(
            "coins",
            currency,
            ("The {name} is issued as coins and banknotes.", "Coins and banknotes of the {name} come in several values."),
            words,
        ),
    ]


def language_sentences(language: str, users: list[Country]) -> list[Sentence]:
    links = [country_link(country) for country in sorted(users, key=lambda c: -c.population)]
    shown = listed(links) if len(links) <= 8 else f"{', '.join(links[:6])} and {len(links) - 6} other countries"
    words = {"bold": f"'''{language}'''", "users": shown, "name": language, "count": number_word(len(links))}
    return [
        _say(
            "users",
            language_title(language),
            ("{bold} is a language of government in {users}.", "{bold} is a language with an official place in {users}."),
            words,
        ),
        _say(
            "count",
            language_title(language),
            ("In all, {count} countries use it in their public life.", "Laws and newspapers in {name} appear in {count} countries."),
            words,
        ),
    ]


def biography_sentences(country: Country, tenure: Tenure) -> list[Sentence]:
    words = {
        "bold": f"'''{tenure.holder}'''",
        "an": a_or_an(country.demonym),
        "position": f"[[{tenure.position}]]",
        "since": long_date(tenure.since),
        "capital": capital_link(country),
        "country": country_link(country),
    }
    return [
        _say(
            "holder",
            tenure.holder,
            (
                "{bold} is {an} politician who has been {position} since {since}.",
                "{bold}, {an} politician, became {position} on {since}.",
            ),
            words,
        ),
        _say(
            "work",
            tenure.holder,
            ("Much of the work is done in {capital}, the capital of {country}.", "The office has its seat in {country}."),
            words,
        ),
    ]
