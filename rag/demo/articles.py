"""The articles of the demo world in real wikitext: infoboxes, references, tables, links, categories.

Running prose comes from ``rag.demo.prose``; everything else here is what a reader of dumps has to drop.
"""

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from rag.demo import country_prose, place_prose, prose
from rag.demo.facts import Country, Tenure, holders_at
from rag.demo.office_prose import biography_sentences, office_sentences
from rag.demo.prose import Sentence, World
from rag.demo.wording import (
    capital_link,
    capital_title,
    country_link,
    country_title,
    currency_link,
    is_city_state,
    language_link,
    language_title,
    long_date,
    pick,
    stable_hash,
)

_FIGURES = (
    '<ref name="figures">{{cite web |url=https://example.org/figures |title=Figures of the world '
    "|access-date=1 June 2016}}</ref>"
)


class Section(NamedTuple):
    """A heading (empty for the lead), its sentences, and wikitext after them that holds no prose."""

    heading: str
    sentences: tuple[Sentence, ...]
    after: str = ""


class Article(NamedTuple):
    """One article; ``sentences`` of all sections in order are its prose."""

    title: str
    top: str
    sections: tuple[Section, ...]
    bottom: str

    @property
    def sentences(self) -> list[Sentence]:
        return [sentence for section in self.sections for sentence in section.sentences]

    @property
    def wikitext(self) -> str:
        return "\n".join([self.top, *[_section_text(self.title, section) for section in self.sections], self.bottom])

    def sentence_number(self, fact: str) -> int:
        """The place of the sentence that states a fact, counted from 0 over the whole article."""
        return [sentence.fact for sentence in self.sentences].index(fact)


def all_articles(world: World, on: date) -> list[Article]:
    """Every article of the snapshot of one day."""
    holders = holders_at(world.facts.tenures, on)
    articles = [country_article(world, country, holders) for country in world.facts.countries]
    articles += [capital_article(world, country) for country in world.facts.countries if not is_city_state(country)]
    articles += [office_article(world, holders[position], on) for position in sorted(holders)]
    articles += [
        currency_article(currency, users)
        for currency, users in sorted(world.currency_users.items())
        if len(users) > 1 or stable_hash(currency) % 6 == 0
    ]
    articles += [
        language_article(language, users) for language, users in sorted(world.language_users.items()) if len(users) > 1
    ]
    return articles + [biography_article(world, tenure) for tenure in _biographies(world, holders)]


def country_article(world: World, country: Country, holders: dict[str, Tenure]) -> Article:
    title = country_title(country)
    sections = [
        Section("", tuple(country_prose.country_lead(world, country))),
        Section("Geography", tuple(country_prose.country_geography(world, country))),
        Section("Economy", tuple(country_prose.country_economy(world, country)), _figures(country)),
        Section("People and languages", tuple(country_prose.country_people(country))),
    ]
    if government := country_prose.country_government(world, country):
        sections.append(Section("Government", tuple(government)))
    sections.append(Section("See also", (), f"* [[List of countries of {country.continent}]]\n* [[List of capitals]]"))
    hatnote = "{{about|the country|other uses|" + f"{country.name} (disambiguation)" + "}}\n" if "(" in title else ""
    top = (
        f"{{{{short description|Country in {country.continent}}}}}\n{hatnote}{{{{Use dmy dates|date=June 2016}}}}\n"
        f"{_country_infobox(world, country, holders)}"
    )
    bottom = (
        "== References ==\n{{reflist|30em}}\n\n{{Authority control}}\n\n"
        f"[[Category:Countries of {country.continent}]]\n[[Category:{country.name}| ]]\n\n"
        f"[[de:{country.name}]]\n[[fr:{country.name}]]"
    )
    return Article(title, top, tuple(sections), bottom)


def capital_article(world: World, country: Country) -> Article:
    title = capital_title(country)
    south, west = "S" if country.latitude < 0 else "N", "W" if country.longitude < 0 else "E"
    coordinates = (
        f"{{{{coord|{abs(country.latitude):.2f}|{south}|{abs(country.longitude):.2f}|{west}|display=inline,title}}}}"
    )
    country_name = f"{{{{nowrap|{country_link(country)}}}}}"
    lines = [
        "{{Infobox settlement",
        f"| name = {country.capital}",
        "| settlement_type = [[Capital city]]",
        f"| coordinates = {coordinates}",
        f"| subdivision_type = Country\n| subdivision_name = {country_name}",
        "}}",
    ]
    bottom = f"{{{{{country.continent}-geo-stub}}}}\n\n[[Category:Capitals of {country.continent}]]"
    return Article(
        title, "\n".join(lines), (Section("", tuple(place_prose.capital_sentences(world, country))),), bottom
    )


def office_article(world: World, tenure: Tenure, on: date) -> Article:
    country = world.facts.country(tenure.country)
    top = (
        f"{{{{Use dmy dates|date=June 2016}}}}\n{{{{Infobox official post\n| post = {tenure.position}\n"
        f"| incumbent = [[{tenure.holder}]]\n| incumbentsince = {_start_date(tenure.since)}\n"
        f"| appointer = <!-- left empty on purpose -->\n| residence = {{{{nowrap|{capital_link(country)}}}}}\n}}}}"
    )
    sections = (
        Section("", tuple(office_sentences(world, tenure))),
        Section("List of holders", (), _holders_table(world, tenure, on)),
    )
    bottom = (
        f"== References ==\n{{{{reflist}}}}\n\n[[Category:Government of {country.the}]]\n[[Category:Offices of state]]"
    )
    return Article(tenure.position, top, sections, bottom)


def currency_article(currency: str, users: list[Country]) -> Article:
    top = f"{{{{Infobox currency\n| currency_name = {currency}\n| iso_code = {users[0].currency_code}\n}}}}"
    section = Section("", tuple(place_prose.currency_sentences(currency, users)))
    return Article(currency, top, (section,), "{{Money-stub}}\n\n[[Category:Currencies]]")


def language_article(language: str, users: list[Country]) -> Article:
    top = f"{{{{Infobox language\n| name = {language}\n| states = {{{{flatlist|\n* {country_link(users[0])}\n}}}}\n}}}}"
    section = Section("", tuple(place_prose.language_sentences(language, users)))
    return Article(language_title(language), top, (section,), "{{Language-stub}}\n\n[[Category:Languages]]")


def biography_article(world: World, tenure: Tenure) -> Article:
    country = world.facts.country(tenure.country)
    top = (
        f"{{{{Infobox officeholder\n| name = {tenure.holder}\n| office = [[{tenure.position}]]\n"
        f"| term_start = {_start_date(tenure.since)}\n}}}}"
    )
    bottom = (
        f"{{{{DEFAULTSORT:{tenure.holder.split()[-1]}}}}}\n[[Category:Living people]]\n"
        f"[[Category:{country.demonym} politicians]]"
    )
    return Article(tenure.holder, top, (Section("", tuple(biography_sentences(country, tenure))),), bottom)


def _biographies(world: World, holders: dict[str, Tenure]) -> list[Tenure]:
    """A few holders with an article of their own: never monarchs, never the holders of two offices."""
    offices_of: dict[str, int] = {}
    for tenure in world.facts.tenures:
        offices_of[tenure.holder] = offices_of.get(tenure.holder, 0) + 1
    return [
        tenure
        for _, tenure in sorted(holders.items())
        if stable_hash(tenure.holder) % 12 == 0
        and offices_of[tenure.holder] == 1
        and prose.office_role(tenure, world.facts.country(tenure.country)) != "monarch"
    ]


def _country_infobox(world: World, country: Country, holders: dict[str, Tenure]) -> str:
    lines = [
        "{{Infobox country",
        f"| common_name = {country.name}",
        f"| image_flag = Flag of {country.the}.svg",
        f"| capital = {capital_link(country)}",
        f"| coordinates = {{{{coord|{country.latitude}|{country.longitude}|type:city}}}}",
        f"| official_languages = {{{{hlist|{'|'.join(language_link(language) for language in country.languages)}}}}}",
    ]
    positions = [position for position in world.positions.get(country.name, []) if position in holders]
    for number, position in enumerate(positions, start=1):
        tenure = holders[position]
        lines.append(f"| leader_title{number} = [[{position}|{prose.office_title(tenure, country)}]]")
        since = f"{{{{small|(since {{{{nowrap|{long_date(tenure.since)}}}}})}}}}"
        lines.append(f"| leader_name{number} = [[{tenure.holder}]] {since}")
    lines += [
        f'| population_estimate = {{{{formatnum:{country.population}}}}}<ref name="figures" />',
        "| population_estimate_year = 2016",
        f"| currency = {{{{nowrap|{currency_link(country.currency)}}}}}",
        f"| currency_code = {country.currency_code}",
        "}}",
    ]
    return "\n".join(lines)


def _figures(country: Country) -> str:
    return (
        '{| class="wikitable sortable"\n|+ Key figures\n! Figure !! Value\n|-\n'
        f"| Population (2016) || {{{{formatnum:{country.population}}}}}\n|-\n"
        f"| Land borders || {len(country.neighbours)}\n|-\n| Currency code || {country.currency_code}\n|}}"
    )


def _holders_table(world: World, tenure: Tenure, on: date) -> str:
    rows = [t for t in world.facts.tenures if t.position == tenure.position and t.since <= on]
    body = "\n".join(
        f"|-\n| {number} || [[{row.holder}]] || {long_date(row.since)} || "
        + (long_date(row.until) if row.until and row.until <= on else "{{small|in office}}")
        for number, row in enumerate(rows, start=1)
    )
    return f'{{| class="wikitable"\n! No. !! Name !! Took office !! Left office\n{body}\n|}}'


def _start_date(day: date) -> str:
    return f"{{{{start date|{day.year}|{day.month}|{day.day}|df=y}}}}"


def _section_text(title: str, section: Section) -> str:
    heading = f"== {section.heading} ==\n" if section.heading else ""
    paragraph = _paragraph(title, section.sentences)
    return heading + "\n\n".join(part for part in (paragraph, section.after) if part) + "\n"


def _paragraph(title: str, sentences: Sequence[Sentence]) -> str:
    """The sentences with references, comments and hard spaces strewn over them, as editors do."""
    marks = [_mark(title, sentence.fact, number) for number, sentence in enumerate(sentences)]
    return " ".join(f"{sentence.wikitext}{mark}" for sentence, mark in zip(sentences, marks, strict=True))


def _mark(title: str, fact: str, number: int) -> str:
    if fact == "population":
        return _FIGURES
    page = 1 + stable_hash(title) % 400
    options = (
        "",
        "",
        '<ref name="figures" />',
        f"<ref>{{{{cite book |title=Handbook of states |chapter={title} |year=2016 |page={page}}}}}</ref>",
        "<!-- please keep this sentence short -->",
        "<ref group=\"note\">The spelling ''may'' differ; see <nowiki>[[Help:Names]]</nowiki>.</ref>",
    )
    return "" if number == 0 else pick(options, title, fact, "mark")
