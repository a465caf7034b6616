"""Questions of the demo world for three tasks, in the files' original formats: NQ-open, MS MARCO NLG 2.1, Jeopardy!.

Every answer can be read off the pages of the later snapshot. The claims of FEVER are in ``rag.demo.claims``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rag.demo import prose
from rag.demo.facts import Country, Tenure, holders_at
from rag.demo.prose import World
from rag.demo.wiki import AFTER
from rag.demo.wording import (
    capital_title,
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
    "test": {"office": 60, "capital": 30, "currency": 28, "language": 20, "continent": 12},
}
_MSMARCO: Mapping[Split, int] = {"train": 140, "dev": 18, "test": 45}
_JEOPARDY: Mapping[Split, int] = {"train": 100, "dev": 20, "test": 45}
_MONARCHS_ASKED = 4  # one queen reigns over many countries: asking about all would train a constant
_FILLERS = 2


class OpenQuestion(NamedTuple):
    """One line of an NQ-open file."""

    question: str
    answer: list[str]


class MarcoQuestion(NamedTuple):
    """One row of an MS MARCO NLG 2.1 file."""

    query: str
    answers: list[str]
    well_formed: list[str]
    passages: list[dict[str, str | int]]
    query_type: str


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
    builders = (_marco_currency, _marco_capital, _marco_language, _marco_population, _marco_borders)
    candidates = [question for country in countries for build in builders for question in build(world, country)]
    answerable = shuffled(candidates, "msmarco", split)[: _MSMARCO[split]]
    unanswerable = [_marco_unanswerable(world, country) for country in shuffled(countries, "no answer", split)]
    return shuffled(answerable + unanswerable[: _UNANSWERABLE[split]], "msmarco rows", split)


def _marco_currency(world: World, country: Country) -> Iterator[MarcoQuestion]:
    options = ("what currency is used in {the}", "what is the currency of {the}", "currency used in {the}")
    name = currency_phrase(country.currency)
    sentences = [f"The currency used in {country.the} is the {name}.", f"{_The(country)} uses the {name} as its currency."]
    yield _marco(world, country, options, "currency", [name], sentences, "ENTITY")


def _marco_capital(world: World, country: Country) -> Iterator[MarcoQuestion]:
    if not is_city_state(country):
        options = ("what is the capital of {the}", "what is the capital city of {the}", "capital of {the}")
        sentences = [f"The capital of {country.the} is {country.capital}.", f"{country.capital} is the capital of {country.the}."]
        yield _marco(world, country, options, "capital", [country.capital], sentences, "LOCATION")


def _marco_language(world: World, country: Country) -> Iterator[MarcoQuestion]:
    if country.official:
        several = len(country.languages) > 1
        options = ("what are the official languages of {the}",) if several else ("what is the official language of {the}",)
        names = listed(country.languages)
        word = "languages of {} are" if several else "language of {} is"
        sentences = [f"The official {word.format(country.the)} {names}."]
        yield _marco(world, country, options, "language", [names], sentences, "ENTITY")


def _marco_population(world: World, country: Country) -> Iterator[MarcoQuestion]:
    if stable_hash(country.name, "population asked") % 2:
        options = ("how many people live in {the}", "what is the population of {the}", "population of {the}")
        number = f"{country.population:,}"
        sentences = [f"The population of {country.the} is {number}.", f"About {number} people live in {country.the}."]
        yield _marco(world, country, options, "population", [number], sentences, "NUMERIC")


def _marco_borders(world: World, country: Country) -> Iterator[MarcoQuestion]:
    if 1 < len(country.neighbours) < 7:
        options = ("what countries border {the}", "which countries are the neighbours of {the}")
        names = listed([neighbour.the for neighbour in world.neighbours(country)])
        sentences = [f"{_The(country)} borders {names}.", f"The neighbours of {country.the} on land are {names}."]
        yield _marco(world, country, options, "borders", [names], sentences, "LOCATION")


def _marco(
    world: World, country: Country, options: tuple[str, ...], fact: str, answers: list[str], sentences: list[str], kind: str
) -> MarcoQuestion:
    query = _ask(options, country, f"marco {fact}").lower()
    first = stable_hash(country.name, fact) % len(sentences)
    two = stable_hash(country.name, fact, "references") % 3 == 0
    well_formed = [sentences[first], *[s for s in sentences if s != sentences[first]][: int(two)]]
    return MarcoQuestion(query, answers, well_formed, _marco_passages(world, country, True), kind)


def _marco_unanswerable(world: World, country: Country) -> MarcoQuestion:
    options = (
        "how many lakes does {the} have",
        "when was the oldest university in {the} founded",
        "who designed the flag of {the}",
        "what is the highest mountain in {the}",
        "how much does a bus ticket cost in {the}",
    )
    query = _ask(options, country, "no answer").lower()
    return MarcoQuestion(query, [MSMARCO_NO_ANSWER], [], _marco_passages(world, country, False), "DESCRIPTION")


def _marco_passages(world: World, country: Country, selected: bool) -> list[dict[str, str | int]]:
    """The passages an annotator would have seen: the country's own page and two others."""
    others = [c for c in shuffled(world.facts.countries, country.name, "fillers") if c.name != country.name][:_FILLERS]
    rows: list[dict[str, str | int]] = []
    for shown in shuffled([country, *others], country.name, "order"):
        sentences = prose.country_lead(world, shown) + prose.country_economy(world, shown) + prose.country_people(shown)
        rows.append(
            {
                "is_selected": int(selected and shown is country),
                "url": f"https://example.org/wiki/{country_title(shown).replace(' ', '_')}",
                "passage_text": " ".join(plain_sentence(sentence.wikitext) for sentence in sentences),
            }
        )
    return rows


def clues(world: World, countries: Sequence[Country], split: Split) -> list[Clue]:
    """Clues for countries and capitals; a clue names only facts that the answer's own page gives."""
    inside = {country.name for country in countries}
    found = [_country_clue(world, country, inside, style) for country in countries for style in (0, 1)]
    found += [_capital_clue(country) for country in countries if not is_city_state(country)]
    first_of = {clue.answer: clue for clue in shuffled(found, "jeopardy", split)}
    rest = [clue for clue in shuffled(found, "jeopardy", split) if clue is not first_of[clue.answer]]
    countries_first = [c for c in first_of.values() if c.category != "CAPITALS"]
    capitals = [c for c in first_of.values() if c.category == "CAPITALS"]
    wanted = _JEOPARDY[split]
    mixed = countries_first[: wanted * 3 // 4] + capitals[: wanted // 4]
    return shuffled((mixed + rest)[:wanted], "jeopardy rows", split)


def _country_clue(world: World, country: Country, inside: set[str], style: int) -> Clue:
    neighbours = [neighbour.the for neighbour in world.neighbours(country) if neighbour.name in inside]
    area = country.region if country.region.startswith("the ") else country.continent
    capital = "a capital of the same name" if is_city_state(country) else f"{country.capital} as its capital"
    languages = listed(country.languages)
    words = {
        "area": area,
        "capital": capital,
        "currency": currency_phrase(country.currency),
        "languages": languages,
        "neighbours": listed(neighbours[:3]) if neighbours else "",
    }
    plain = (
        "This country in {area} has {capital} and pays in the {currency}",
        "With {capital}, this country in {area} uses the {currency} as its currency",
        "{languages} can be heard in the offices of this country in {area}, which has {capital}",
    )
    bordered = (
        "This country in {area} borders {neighbours} and has {capital}",
        "Its neighbours include {neighbours}, its currency is the {currency}: name this country in {area}",
        "A neighbour of {neighbours}, this country in {area} has {capital}",
    )
    options = bordered if style and neighbours else plain
    clue = pick(options, country.name, "clue", str(style)).format_map(words)
    return Clue(clue[0].upper() + clue[1:], country_title(country).removesuffix(" (country)"), "COUNTRIES OF THE WORLD")


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


def _The(country: Country) -> str:  # noqa: N802
    return country.the[0].upper() + country.the[1:]


def offices_of(world: World, countries: Sequence[Country]) -> list[Tenure]:
    """The tenures that cover the later snapshot in these countries."""
    names = {country.name for country in countries}
    return [t for _, t in sorted(holders_at(world.facts.tenures, AFTER).items()) if t.country in names]


def gold_title(country: Country, fact: str) -> str:
    return capital_title(country) if fact == "capital of" else country_title(country)
