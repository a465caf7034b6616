"""The sentences of the articles on capitals, currencies and languages."""

from rag.demo.facts import Country
from rag.demo.prose import Sentence, World, accentless, distance, say
from rag.demo.wording import capital_title, country_link, currency_phrase, language_title, listed, number_word, place


def capital_sentences(world: World, country: Country) -> list[Sentence]:
    page = capital_title(country)
    also = (
        [name for name in country.capitals[1:] if name.isascii()] if country.capital in ("Kyiv", "Luxembourg") else []
    )
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
        "The city of {bold} is the capital of {country}."
        if "City" not in country.capital
        else "{bold} is the capital of {country}.",
    )
    life = (
        "Shops and markets in {capital} take payment in the {currency}.",
        "The {demonym} government and many of its public bodies are at home here or nearby.",
        "Travellers who come to {the} on official business usually stop in {capital}.",
    )
    sentences = [say("capital of", page, opening, words)]
    wording = "A straight line of about {distance} leads from here to {nearest} in {country}."
    sentences += distance(world, country, wording)
    sentences.append(say("life", page, life, words))
    sentences.append(Sentence("latitude", _latitude(country)))
    return sentences


def _latitude(country: Country) -> str:
    degrees = round(abs(country.latitude))
    if degrees < 2:
        return "The city lies very close to the [[equator]]."
    hemisphere = "north" if country.latitude >= 0 else "south"
    return f"The city lies about {degrees}&nbsp;degrees {hemisphere} of the [[equator]]."


def currency_sentences(currency: str, users: list[Country]) -> list[Sentence]:
    code = users[0].currency_code
    links = [country_link(country) for country in users]
    shown = listed(links) if len(links) <= 12 else f"{', '.join(links[:10])} and {len(links) - 10} other countries"
    words = {
        "bold": f"'''{currency_phrase(currency)}'''",
        "code": code,
        "users": shown,
        "name": currency_phrase(currency),
    }
    return [
        say(
            "users",
            currency,
            (
                "The {bold} is the currency of {users}.",
                "The {bold} is the money in use in {users}.",
                "The {bold} ({code}) is the legal currency in {users}.",
            ),
            words,
        ),
        say(
            "code",
            currency,
            (
                "Banks and exchanges write it as {code}, its code in the standard [[ISO 4217]].",
                "Its code in the standard [[ISO 4217]] is {code}.",
            ),
            words,
        ),
        say(
            "coins",
            currency,
            (
                "The {name} is issued as coins and banknotes.",
                "Coins and banknotes of the {name} come in several values.",
            ),
            words,
        ),
    ]


def language_sentences(language: str, users: list[Country]) -> list[Sentence]:
    links = [country_link(country) for country in sorted(users, key=lambda c: -c.population)]
    shown = listed(links) if len(links) <= 8 else f"{', '.join(links[:6])} and {len(links) - 6} other countries"
    words = {"bold": f"'''{language}'''", "users": shown, "name": language, "count": number_word(len(links))}
    return [
        say(
            "users",
            language_title(language),
            (
                "{bold} is a language of government in {users}.",
                "{bold} is a language with an official place in {users}.",
            ),
            words,
        ),
        say(
            "count",
            language_title(language),
            (
                "In all, {count} countries use it in their public life.",
                "Laws and newspapers in {name} appear in {count} countries.",
            ),
            words,
        ),
    ]
