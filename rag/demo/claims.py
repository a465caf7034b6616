"""Claims in the format of FEVER: true, false, or about something that no page of the demo wiki says."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from rag.demo.articles import Article
from rag.demo.facts import Country, Tenure, holders_at
from rag.demo.prose import World, office_role, office_title
from rag.demo.wiki import AFTER
from rag.demo.wording import capitalised, country_title, currency_phrase, is_city_state, pick, shuffled
from rag.records import Split

Label = Literal["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"]

_PER_LABEL: Mapping[Split, int] = {"train": 80, "dev": 15, "test": 22}
_KINDS = ("capital", "currency", "language", "borders", "continent", "office")
# Pairs that touch only through a far territory: neither true nor false as a reader would see it.
_DOUBTFUL_BORDERS = frozenset({("France", "Netherlands"), ("Spain", "United Kingdom"), ("Mauritania", "Morocco")})

_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "capital": (
        "{value} is the capital of {the}.",
        "The capital of {the} is {value}.",
        "{the} has its capital at {value}.",
        "The capital city of {the} is called {value}.",
    ),
    "currency": (
        "{the} uses the {value} as its currency.",
        "The currency of {the} is the {value}.",
        "The {value} is the currency of {the}.",
        "People in {the} pay with the {value}.",
    ),
    "language": (
        "{value} is an official language of {the}.",
        "In {the}, {value} is an official language.",
        "{the} has {value} as an official language.",
    ),
    "borders": (
        "{the} borders {value}.",
        "{the} shares a land border with {value}.",
        "{value} is a neighbour of {the} on land.",
    ),
    "continent": ("{the} is a country in {value}.", "{the} lies in {value}.", "{the} is located in {value}."),
    "office": (
        "{value} is the {position}.",
        "The {position} is {value}.",
        "{value} holds the office of {position}.",
    ),
}
_UNKNOWN = (
    "The national anthem of {the} was written by a schoolteacher.",
    "The flag of {the} was designed by a student.",
    "{capital} is the largest city of {the}.",
    "{capital} is the birthplace of a Nobel laureate.",
    "The {currency} is the oldest currency in {continent}.",
    "The {currency} is printed outside {the}.",
    "{the} had a female prime minister in the 1990s.",
    "{the} joined the United Nations before most of its neighbours.",
    "{language} is taught in every school of {the}.",
    "{language} is the mother tongue of most people in {the}.",
    "The capital of {the} has an underground railway.",
    "The capital of {the} was founded in the 16th century.",
    "The currency of {the} was introduced in 1973.",
    "The currency of {the} has lost value since 2010.",
    "{the} borders a country that once occupied it.",
    "{the} has more than one thousand lakes.",
    "{the} is a country with more mobile phones than people.",
    "{capital} is twinned with {other_capital}.",
    "{the} and {other} have had a trade agreement since 2005.",
    "The {currency} is accepted in shops of {other}.",
    "{language} is spoken by a minority in {other}.",
    "{the} won a gold medal at the Olympic Games of 2016.",
)
# Worded as the decided claims are, about things that no page gives.
_NEAR = (
    ("capital", "The largest city of {the} is {value}."),
    ("capital", "The oldest town of {the} is {value}."),
    ("capital", "{the} has its main university at {value}."),
    ("capital", "{value} is the financial centre of {the}."),
    ("currency", "{the} used the {value} as its currency in 1950."),
    ("currency", "The second currency of {the} is the {value}."),
    ("currency", "People in {the} like to save in the {value}."),
    ("language", "{value} is a minority language of {the}."),
    ("language", "In {the}, {value} is a language of the schools."),
    ("language", "{the} has {value} as a language of television."),
    ("borders", "{the} shares a power line with {value}."),
    ("borders", "{the} has a road to {value}."),
    ("borders", "{value} is the largest trading partner of {the}."),
    ("continent", "{the} is the oldest country in {value}."),
    ("continent", "{the} is the richest country in {value}."),
)
_NEAR_OFFICES = (
    "{rival} once paid a visit to the {position}.",
    "The deputy of the {position} is {rival}.",
    "{holder} held the office of mayor before becoming {position}.",
    "{holder} is the {position} for the second time.",
)
_UNKNOWN_OFFICES = (
    "{holder} is a lawyer by training.",
    "{holder} studied abroad.",
    "The {position} lives in a palace built in the 19th century.",
    "{holder} is the {position} and speaks three languages.",
    "The {position} receives a salary in the {currency}.",
    "{holder} was the favourite of the press to become {position}.",
)


class Evidence(NamedTuple):
    """The sentence that decides a claim: the page and the number of the sentence on it."""

    title: str
    sentence: int


class Claim(NamedTuple):
    """A claim with its label; NOT ENOUGH INFO has no evidence."""

    text: str
    label: Label
    evidence: Evidence | None


def claims(world: World, countries: Sequence[Country], split: Split, articles: Mapping[str, Article]) -> list[Claim]:
    """As many true claims as false and as undecided ones; the false take the value of another country of the split."""
    builder = _Builder(world, countries, articles, split)
    decided: list[Claim] = []
    labels: tuple[Label, Label] = ("SUPPORTS", "REFUTES")
    for label in labels:
        decided += builder.decided(label, _PER_LABEL[split])
    return shuffled(decided + builder.undecided(_PER_LABEL[split]), "fever", split)


class _Builder:
    """The claims of one split."""

    def __init__(
        self, world: World, countries: Sequence[Country], articles: Mapping[str, Article], split: Split
    ) -> None:
        self._world, self._countries, self._articles, self._split = world, countries, articles, split
        names = {country.name for country in countries}
        self._tenures = [t for _, t in sorted(holders_at(world.facts.tenures, AFTER).items()) if t.country in names]
        self._values = {country.name: self._right_values(country) for country in countries}

    def decided(self, label: Label, count: int) -> list[Claim]:
        """True or false claims, the kinds taken in turn so that each label holds the same mixture."""
        makers: dict[str, Callable[[Country, Label], Claim | None]] = {kind: self._about(kind) for kind in _KINDS}
        order = {kind: shuffled(self._countries, "claims", self._split, kind, label) for kind in _KINDS}
        made: dict[str, Claim] = {}
        for place in range(len(self._countries)):
            for kind in _KINDS:
                claim = makers[kind](order[kind][place], label)
                if claim is not None:
                    made.setdefault(claim.text, claim)
        return list(made.values())[:count]

    def undecided(self, count: int) -> list[Claim]:
        """Claims that no page decides; half of them are worded as the decided ones are."""
        rounds = (self._near, self._near_office, self._unknown, self._unknown_office)
        order = [shuffled(self._countries, "undecided", self._split, str(number)) for number in range(len(rounds))]
        texts: dict[str, None] = {}
        for place in range(len(self._countries)):
            for number, make in enumerate(rounds):
                if text := make(order[number][place]):
                    texts.setdefault(capitalised(text))
        return [Claim(text, "NOT ENOUGH INFO", None) for text in texts][:count]

    def _near(self, country: Country) -> str:
        kind, template = pick(_NEAR, country.name, "near")
        right, wrong = self._values[country.name][kind], self._wrong_values(country, kind)
        elsewhere = not right or "second" in template or "minority" in template or pick((True, False), country.name)
        values = wrong if elsewhere and kind != "continent" else right
        if not values or (kind in ("capital", "currency") and is_city_state(country)):
            return ""
        return template.format(the=country.the, value=pick(values, country.name, "near value"))

    def _near_office(self, country: Country) -> str:
        return self._office_text(country, _NEAR_OFFICES)

    def _unknown_office(self, country: Country) -> str:
        return self._office_text(country, _UNKNOWN_OFFICES)

    def _office_text(self, country: Country, templates: Sequence[str]) -> str:
        tenures = [t for t in self._tenures if t.country == country.name and office_role(t, country) != "monarch"]
        if not tenures:
            return ""
        tenure = pick(tenures, country.name, "undecided office")
        template = pick(templates, tenure.position, "undecided")
        rival = self._rival(tenure, country)
        if "{rival}" in template and not rival:
            return ""
        currency = currency_phrase(country.currency)
        return template.format(holder=tenure.holder, position=tenure.position, rival=rival, currency=currency)

    def _unknown(self, country: Country) -> str:
        other = pick([c for c in self._countries if c is not country], country.name, "other")
        template = pick(_UNKNOWN, country.name, "unknown")
        known = country.languages[0] in other.languages or country.currency == other.currency
        lonely = "neighbour" in template or "borders" in template
        if (
            ("{other}" in template and known)
            or (is_city_state(country) and "{capital}" in template)
            or (lonely and not country.neighbours)
        ):
            return ""
        return template.format(
            the=country.the, capital=country.capital, currency=currency_phrase(country.currency),
            language=country.languages[0], continent=country.continent, other=other.the, other_capital=other.capital,
        )  # fmt: skip

    def _about(self, kind: str) -> Callable[[Country, Label], Claim | None]:
        return self._office if kind == "office" else lambda country, label: self._country(country, kind, label)

    def _country(self, country: Country, kind: str, label: Label) -> Claim | None:
        if (kind == "capital" and is_city_state(country)) or (kind == "language" and not country.official):
            return None
        values = self._values[country.name][kind] if label == "SUPPORTS" else self._wrong_values(country, kind)
        if not values:
            return None
        value = pick(values, country.name, kind, label)
        text = pick(_TEMPLATES[kind], country.name, kind, label).format(the=country.the, value=value)
        return Claim(capitalised(text), label, self._evidence(country_title(country), kind))

    def _right_values(self, country: Country) -> dict[str, list[str]]:
        inside = {c.name: c for c in self._countries}
        return {
            "capital": [country.capital],
            "currency": [currency_phrase(country.currency)],
            "language": list(country.languages),
            "borders": [inside[name].the for name in country.neighbours if name in inside],
            "continent": [country.continent],
        }

    def _wrong_values(self, country: Country, kind: str) -> list[str]:
        """What the same kind of fact is elsewhere in the split and cannot be here."""
        if kind == "borders":
            return [other.the for other in self._countries if _surely_apart(country, other)]
        right = {*self._values[country.name][kind], *country.capitals}
        telling = [c for c in self._countries if kind != "language" or c.official]
        return sorted({value for c in telling for value in self._values[c.name][kind] if value not in right})

    def _office(self, country: Country, label: Label) -> Claim | None:
        tenures = [t for t in self._tenures if t.country == country.name and t.holder != "Elizabeth II"]
        if not tenures:
            return None
        tenure = pick(tenures, country.name, label)
        holder = tenure.holder if label == "SUPPORTS" else self._rival(tenure, country)
        if not holder:
            return None
        template = pick(_TEMPLATES["office"], tenure.position, label)
        text = template.format(position=tenure.position, value=holder)
        return Claim(capitalised(text), label, self._evidence(tenure.position, "holder"))

    def _rival(self, tenure: Tenure, country: Country) -> str:
        """Who holds the office of the same title in another country of the split."""
        title = office_title(tenure, country)
        rivals = [
            t.holder
            for t in self._tenures
            if t.country != country.name
            and t.holder not in tenure.names
            and office_title(t, self._world.facts.country(t.country)) == title
        ]
        return pick(rivals, tenure.position, "rival") if rivals else ""

    def _evidence(self, title: str, fact: str) -> Evidence:
        return Evidence(title, self._articles[title].sentence_number(fact))


def _surely_apart(country: Country, other: Country) -> bool:
    doubtful = {(country.name, other.name), (other.name, country.name)} & _DOUBTFUL_BORDERS
    same = other.name == country.name or other.continent != country.continent
    return not same and other.name not in country.neighbours and not doubtful
