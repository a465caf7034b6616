"""The sentences of the articles on countries.

No sentence names the holder of an office: those stand in the articles on offices alone.
"""

from collections.abc import Mapping

from rag.demo.facts import Country
from rag.demo.prose import Sentence, World, distance, say
from rag.demo.wording import (
    capital_link,
    country_link,
    country_title,
    currency_link,
    is_city_state,
    language_link,
    listed,
    number_word,
    place,
    superlative,
)


def country_words(country: Country) -> dict[str, str]:
    """What the templates about a country may mention."""
    bold = f"{country.article} '''{country.name}'''".strip()
    languages = [language_link(language) for language in country.languages]
    return {
        "the": country.the,
        "bold": bold,
        "place": place(country),
        "continent": f"[[{country.continent}]]",
        "region": country.region,
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
    opening: tuple[str, ...] = (
        "{bold} is a country in {place}.",
        "{bold} is one of the countries of {continent}; it lies in {region}.",
        "{bold}, a country in {place}, had {population} inhabitants in 2016.",
        "Lying in {region}, {bold} is one of the countries of {continent}.",
    )
    if country.region == country.continent:
        opening = ("{bold} is a country in {place}.", "{bold} is one of the countries of {place}.")
    return [
        say("continent", page, opening, words),
        _capital_sentence(country, page, words),
        _borders(world, country, page),
    ]


def _capital_sentence(country: Country, page: str, words: Mapping[str, str]) -> Sentence:
    if is_city_state(country):
        options: tuple[str, ...] = (
            "It is a city-state, so the capital of {the} is the city of {the} itself.",
            "City and state are one here: the capital of {the} is {the} itself.",
        )
        return say("capital", page, options, words)
    options = (
        "The capital of {the} is {capital}.",
        "Its capital is {capital}.",
        "{capital} is the national capital.",
        "{capital} serves as the capital of {the}.",
        "The country has its capital at {capital}.",
    )
    return say("capital", page, options, words)


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
    return say("borders", page, options, {"the": country.the, "names": listed(names) if names else ""})


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
        say(
            "latitude",
            page,
            (
                "The capital stands in the {hemisphere}, near latitude {latitude} and longitude {longitude}.",
                "The seat of the capital is close to {latitude}, {longitude}.",
            ),
            words,
        ),
        say(
            "rank",
            page,
            (
                "Of the {size} countries of {continent} it is the {most}.",
                "It is the {most} of the {size} countries of {continent}.",
            ),
            words,
        ),
    ]
    if not is_city_state(country):
        wording = "The nearest capital of a neighbour is {nearest}, about {distance} away in a straight line."
        sentences += distance(world, country, wording)
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
    sentences = [say("currency", page, options, words)]
    others = len(world.currency_users[country.currency]) - 1
    if others:
        count = f"{number_word(others)} other {'country' if others == 1 else 'countries'}"
        shared = ("The same currency is in use in at least {count}.", "It shares this currency with at least {count}.")
        sentences.append(say("currency shared", page, shared, {"count": count}))
    return sentences


def country_people(country: Country) -> list[Sentence]:
    page, words = country_title(country), country_words(country)
    several = len(country.languages) > 1
    if not country.official:
        options: tuple[str, ...] = (
            (
                "The main languages of public life are {languages}.",
                "In practice {languages} are the languages of government.",
            )
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
        "In all, {population} people lived in {the} in 2016.",
        "An estimate of 2016 gives a population of {population}.",
    )
    demonym = (
        'A person or thing from {the} is called "{demonym}".',
        'The adjective that belongs to the country is "{demonym}".',
    )
    sentences = [say("language", page, options, words), say("population", page, population, words)]
    if country.demonym != country.name:  # New Zealand and the Solomon Islands are their own adjectives
        sentences.append(say("demonym", page, demonym, words))
    return sentences


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
    return [say("offices", country_title(country), one if len(positions) == 1 else two, {"links": links})]
