"""Questions of the demo world for three tasks, in the files' original formats: NQ-open, MS MARCO NLG 2.1, Jeopardy!.

Every answer can be read off the pages of the later snapshot. The claims of FEVER are in ``rag.demo.claims``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from rag.demo import country_prose
from rag.demo.facts import Country, holders_at
from rag.demo.prose import World
from rag.demo.wiki import AFTER
from rag.demo.wording import (
    capitalised,
    country_title,
    currency_phrase,
    is_city_state,
    listed,
    pick,
    plain_sentence,
    shuffled,
    stable_hash,
)
from rag.records import Split

MSMARCO_NO_ANSWER = "No Answer Present."
_UNANSWERABLE: Mapping[Split, int] = {"train": 10, "dev": 2, "test": 5}
_OPEN_QA: Mapping[Split, Mapping[str, int]] = {
    "train": {"office": 999, "capital": 100, "currency": 85, "language": 55, "continent": 25},
    "dev": {"office": 26, "capital": 12, "currency": 10, "language": 8, "continent": 4},
    "test": {"office": 40, "capital": 20, "currency": 18, "language": 13, "continent": 9},
}
_MSMARCO: Mapping[Split, int] = {"train": 140, "dev": 18, "test": 30}
_JEOPARDY: Mapping[Split, int] = {"train": 100, "dev": 20, "test": 24}
_QUERY_TYPES = {
    "currency": "ENTITY", "capital": "LOCATION", "language": "ENTITY", "population": "NUMERIC", "borders": "LOCATION",
}  # fmt: skip
_MONARCHS_ASKED = 4  # one queen reigns over many countries: asking about all would train a constant
_FILLER_STEPS = (0, 61)  # two other countries, far apart in the alphabet


class OpenQuestion(NamedTuple):
    """One line of an NQ-open file."""

    question: str
    answer: list[str]


class MarcoQuestion(NamedTuple):
    """One row of an MS MARCO NLG 2.1 file."""

    query: str
    answers: list[str]
    well_formed: list[str]
    query_type: str
    country: str
    passages: tuple[dict[str, str | int], ...] = ()


class Clue(NamedTuple):
    """One clue of a Jeopardy! file, and the entity it asks for."""

    clue: str
    answer: str
    category: str


def open_questions(world: World, countries: Sequence[Country], split: Split) -> list[OpenQuestion]:
    """Questions on capitals, currencies, office holders, languages and continents, as of the later snapshot."""
    kinds: dict[str, list[OpenQuestion]] = {"office": _office_questions(world, countries, split)}
    builders: Mapping[str, Callable[[Country], OpenQuestion]] = {
        "capital": _capital_question,
        "currency": _currency_question,
        "language": _language_question,
        "continent": _continent_question,
    }
    for kind, build in builders.items():
        kinds[kind] = [build(country) for country in countries if kind != "language" or country.official]
    chosen = [
        question
        for kind, questions in kinds.items()
        for question in shuffled(questions, "open-qa", split, kind)[: _OPEN_QA[split][kind]]
    ]
    return shuffled(chosen, "open-qa", split)


def _office_questions(world: World, countries: Sequence[Country], split: Split) -> list[OpenQuestion]:
    names = {country.name for country in countries}
    holders = [t for t in holders_at(world.facts.tenures, AFTER).values() if t.country in names]
    realms = shuffled([t for t in holders if t.holder == "Elizabeth II"], split)[:_MONARCHS_ASKED]
    asked = [t for t in holders if t.holder != "Elizabeth II" or t in realms]
    return [OpenQuestion(f"Who is the {t.position}?", list(t.names)) for t in asked]


def _capital_question(country: Country) -> OpenQuestion:
    options = (
        "What is the capital of {the}?",
        "what is the capital city of {the}",
        "which city is the capital of {the}",
        "Which city is the capital of {the}?",
        "what's the name of the capital of {the}",
    )
    return OpenQuestion(_ask(options, country, "capital"), list(country.capitals))


def _currency_question(country: Country) -> OpenQuestion:
    options = (
        "What is the currency of {the}?",
        "what currency is used in {the}",
        "which currency do people pay with in {the}",
        "What money is used in {the}?",
        "what is the name of the currency of {the}",
    )
    return OpenQuestion(_ask(options, country, "currency"), currency_answers(country))


def _language_question(country: Country) -> OpenQuestion:
    options: tuple[str, ...] = (
        "What is the official language of {the}?",
        "what is the official language of {the}",
        "which language is the official language in {the}",
    )
    if len(country.languages) > 1:
        options = ("Which language is official in {the}?", "name an official language of {the}")
    return OpenQuestion(_ask(options, country, "language"), list(country.languages))


def _continent_question(country: Country) -> OpenQuestion:
    options = ("Which continent is {the} in?", "on which continent is {the}", "what continent does {the} belong to")
    return OpenQuestion(_ask(options, country, "continent"), [country.continent])


def currency_answers(country: Country) -> list[str]:
    """Right ways to name the currency: in full, and the unit alone ("Angolan kwanza", "kwanza")."""
    names = [currency_phrase(name) for name in country.currencies]
    if country.name == "Sao Tome and Principe":
        names.append("dobra")
    first = names[0]
    return names + [first.split()[-1]] * (" " in first and first.split()[-1] not in names)


def marco_questions(world: World, countries: Sequence[Country], split: Split) -> list[MarcoQuestion]:
    """Queries with one or two whole sentences as answers, and a few that the passages do not answer."""
    builders = (
        _marco_currency, _marco_capital, _marco_language, _marco_population, partial(_marco_borders, world),
    )  # fmt: skip
    candidates = [question for country in countries for build in builders for question in build(country)]
    answerable = shuffled(candidates, "msmarco", split)[: _MSMARCO[split]]
    asked_in_vain = shuffled(countries, "no answer", split)[: _UNANSWERABLE[split]]
    rows = answerable + [_marco_unanswerable(country) for country in asked_in_vain]
    texts = {country.name: _passage_text(world, country) for country in world.facts.countries}
    return [_with_passages(row, texts) for row in shuffled(rows, "msmarco rows", split)]


def _marco_currency(country: Country) -> Iterator[MarcoQuestion]:
    options = ("what currency is used in {the}", "what is the currency of {the}", "currency used in {the}")
    name = currency_phrase(country.currency)
    sentences = [
        f"The currency used in {country.the} is the {name}.",
        f"{capitalised(country.the)} uses the {name} as its currency.",
    ]
    yield _marco(country, options, "currency", [name], sentences)


def _marco_capital(country: Country) -> Iterator[MarcoQuestion]:
    if not is_city_state(country):
        options = ("what is the capital of {the}", "what is the capital city of {the}", "capital of {the}")
        sentences = [
            f"The capital of {country.the} is {country.capital}.",
            f"{country.capital} is the capital of {country.the}.",
        ]
        yield _marco(country, options, "capital", [country.capital], sentences)


def _marco_language(country: Country) -> Iterator[MarcoQuestion]:
    if country.official:
        several = len(country.languages) > 1
        options = (
            ("what are the official languages of {the}",) if several else ("what is the official language of {the}",)
        )
        names = listed(country.languages)
        word = "languages of {} are" if several else "language of {} is"
        sentences = [f"The official {word.format(country.the)} {names}."]
        yield _marco(country, options, "language", [names], sentences)


def _marco_population(country: Country) -> Iterator[MarcoQuestion]:
    if stable_hash(country.name, "population asked") % 2:
        options = ("how many people live in {the}", "what is the population of {the}", "population of {the}")
        number = f"{country.population:,}"
        sentences = [f"The population of {country.the} is {number}.", f"{number} people live in {country.the}."]
        yield _marco(country, options, "population", [number], sentences)


def _marco_borders(world: World, country: Country) -> Iterator[MarcoQuestion]:
    if 1 < len(country.neighbours) < 7:
        options = ("what countries border {the}", "which countries are the neighbours of {the}")
        names = listed([neighbour.the for neighbour in world.neighbours(country)])
        sentences = [
            f"{capitalised(country.the)} borders {names}.",
            f"The neighbours of {country.the} on land are {names}.",
        ]
        yield _marco(country, options, "borders", [names], sentences)


def _marco(
    country: Country,
    options: tuple[str, ...],
    fact: str,
    answers: list[str],
    sentences: list[str],
) -> MarcoQuestion:
    query = _ask(options, country, f"marco {fact}").lower()
    first = stable_hash(country.name, fact) % len(sentences)
    two = stable_hash(country.name, fact, "references") % 3 == 0
    well_formed = [sentences[first], *[s for s in sentences if s != sentences[first]][: int(two)]]
    return MarcoQuestion(query, answers, well_formed, _QUERY_TYPES[fact], country.name)


def _marco_unanswerable(country: Country) -> MarcoQuestion:
    options = (
        "how many lakes does {the} have",
        "when was the oldest university in {the} founded",
        "who designed the flag of {the}",
        "what is the highest mountain in {the}",
        "how much does a bus ticket cost in {the}",
    )
    query = _ask(options, country, "no answer").lower()
    return MarcoQuestion(query, [MSMARCO_NO_ANSWER], [], "DESCRIPTION", country.name)


def _with_passages(question: MarcoQuestion, texts: Mapping[str, str]) -> MarcoQuestion:
    """The question with what an annotator would have seen: the page of its country and two others."""
    names = list(texts)
    start = stable_hash(question.query)
    shown = {question.country: None} | {names[(start + step) % len(names)]: None for step in _FILLER_STEPS}
    passages: list[dict[str, str | int]] = [
        {
            "is_selected": int(bool(question.well_formed) and name == question.country),
            "url": f"https://example.org/wiki/{name.replace(' ', '_')}",
            "passage_text": texts[name],
        }
        for name in shuffled(list(shown), question.query)
    ]
    return question._replace(passages=tuple(passages))


def _passage_text(world: World, country: Country) -> str:
    sentences = (
        country_prose.country_lead(world, country)
        + country_prose.country_economy(world, country)
        + country_prose.country_people(country)
    )
    return " ".join(plain_sentence(sentence.wikitext) for sentence in sentences)


def clues(world: World, countries: Sequence[Country], split: Split) -> list[Clue]:
    """Clues for countries and capitals, three to one; a clue names only facts that the pages give."""
    inside = {country.name for country in countries}
    wanted = _JEOPARDY[split]
    about_countries: dict[str, Clue] = {}
    for turn in range(2):  # a second clue for the same country only once each has one
        for country in shuffled(countries, "jeopardy", split, str(turn)):
            bordered = (stable_hash(country.name, "first clue") + turn) % 2 == 1
            for clue in _country_clues(world, country, inside, bordered)[:1]:
                about_countries.setdefault(clue.clue, clue)
    capitals = [_capital_clue(c) for c in shuffled(countries, "capital clues", split) if not is_city_state(c)]
    chosen = capitals[: wanted // 4]
    chosen += list(about_countries.values())[: wanted - len(chosen)]
    return shuffled(chosen, "jeopardy rows", split)


def _country_clues(world: World, country: Country, inside: set[str], with_borders: bool) -> list[Clue]:
    """The clues with or without neighbours, in the country's own order; none that gives the answer away."""
    neighbours = [neighbour.the for neighbour in world.neighbours(country) if neighbour.name in inside]
    plain = (
        "This country in {area} has {capital} as its capital and pays in the {currency}",
        "With {capital} as its capital, this country in {area} uses the {currency} as its currency",
        "{languages} can be heard in the offices of this country in {area}, which has {capital} as its capital",
        "{languages} can be heard in the offices of this country in {area}, which pays in the {currency}",
    )
    bordered = (
        "This country in {area} borders {neighbours} and has {capital} as its capital",
        "Its neighbours include {neighbours}, its currency is the {currency}: name this country in {area}",
        "A neighbour of {neighbours}, this country in {area} has {capital} as its capital",
    )
    words = {
        "area": country.region if country.region.startswith("the ") else country.continent,
        "capital": country.capital,
        "currency": currency_phrase(country.currency),
        "languages": listed(country.languages),
        "neighbours": listed(neighbours[:3]) if neighbours else "",
    }
    answer = country_title(country).removesuffix(" (country)")
    options = bordered if with_borders and neighbours else plain
    texts = [capitalised(option.format_map(words)) for option in shuffled(options, country.name, "clue")]
    return [Clue(text, answer, "COUNTRIES OF THE WORLD") for text in texts if country.name not in text]


def _capital_clue(country: Country) -> Clue:
    options = (
        "This city is the capital of {the}, where people pay with the {currency}",
        "It is the capital of {the}, a country in {region}",
        "The {demonym} capital, this city lies in {region}",
    )
    words = {
        "the": country.the,
        "currency": currency_phrase(country.currency),
        "region": country.region,
        "demonym": country.demonym,
    }
    return Clue(pick(options, country.name, "capital clue").format_map(words), country.capital, "CAPITALS")


def _ask(options: Sequence[str], country: Country, fact: str) -> str:
    return pick(options, country.name, fact, "question").format(the=country.the)
