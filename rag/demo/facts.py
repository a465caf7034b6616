"""The facts behind the demo world: countries, and who held which office from when to when.

Two CSV tables beside this module hold them; ``SOURCES.md`` says where they come from and how to extend them.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from rag.errors import DataError

COUNTRY_COLUMNS = (
    "name", "article", "demonym", "continent", "region", "capital", "latitude", "longitude", "currency",
    "currency_code", "languages", "language_status", "population", "neighbours",
)  # fmt: skip
TENURE_COLUMNS = ("position", "country", "holder", "aliases", "since", "until", "source")


@dataclass(frozen=True)
class Country:
    """One sovereign state; where a field is a tuple its first entry is the usual name."""

    name: str
    article: str  # "the" or nothing
    demonym: str  # the adjective: "Angolan"
    continent: str
    region: str
    capitals: tuple[str, ...]
    latitude: float  # of the capital, degrees north
    longitude: float  # of the capital, degrees east
    currencies: tuple[str, ...]
    currency_code: str
    languages: tuple[str, ...]
    official: bool  # a law makes the languages official
    population: int
    neighbours: tuple[str, ...]  # names of countries that it borders on land

    @property
    def the(self) -> str:
        """The name as it stands inside a sentence: "the Bahamas", "Peru"."""
        return f"{self.article} {self.name}".strip()

    @property
    def capital(self) -> str:
        return self.capitals[0]

    @property
    def currency(self) -> str:
        return self.currencies[0]


class Tenure(NamedTuple):
    """One person in one office, from ``since`` until the day before ``until`` (None: still there)."""

    position: str  # "President of Angola"
    country: str
    holder: str
    aliases: tuple[str, ...]  # other right ways to name the holder
    since: date
    until: date | None
    source: str

    @property
    def names(self) -> tuple[str, ...]:
        """Every answer that is right: the holder's name and its aliases."""
        return (self.holder, *self.aliases)


class OfficeChange(NamedTuple):
    """An office that had another holder at the later date."""

    position: str
    country: str
    before: Tenure
    after: Tenure


@dataclass(frozen=True)
class Facts:
    """All countries and tenures, in the order of the tables."""

    countries: tuple[Country, ...]
    tenures: tuple[Tenure, ...]

    @cached_property
    def by_name(self) -> dict[str, Country]:
        return {country.name: country for country in self.countries}

    def country(self, name: str) -> Country:
        return self.by_name[name]


def load_facts() -> Facts:
    """The facts that are shipped with the package.

    >>> facts = load_facts()
    >>> facts.country("Angola").capital
    'Luanda'
    >>> holder_at(facts.tenures, "President of Angola", date(2018, 12, 20)).holder
    'João Lourenço'
    """
    folder = Path(__file__).parent
    countries = read_countries(folder / "countries.csv")
    tenures = read_tenures(folder / "offices.csv")
    names = {country.name for country in countries}
    for country in countries:
        for neighbour in country.neighbours:
            if neighbour not in names:
                raise DataError(f"countries.csv: {country.name} borders {neighbour!r}, which has no row; add it")
    for tenure in tenures:
        if tenure.country not in names:
            raise DataError(f"offices.csv: {tenure.position} is of {tenure.country!r}, which countries.csv lacks")
    return Facts(countries, tenures)


def read_countries(path: Path) -> tuple[Country, ...]:
    """The countries of a table with COUNTRY_COLUMNS; a wrong row is a DataError that names its line."""
    return tuple(_country(path, line, row) for line, row in _rows(path, COUNTRY_COLUMNS))


def read_tenures(path: Path) -> tuple[Tenure, ...]:
    """The tenures of a table with TENURE_COLUMNS; a wrong row is a DataError that names its line."""
    tenures = tuple(_tenure(path, line, row) for line, row in _rows(path, TENURE_COLUMNS))
    spans = sorted((t.position, t.since, t.until or date.max, t.holder) for t in tenures)
    for (position, _, until, holder), (next_position, since, _, next_holder) in pairwise(spans):
        if position == next_position and since < until:
            raise DataError(
                f"{path}: {position} is held by {holder} and {next_holder} on {since}; mend since or until of one"
            )
    return tenures


def holders_at(tenures: Sequence[Tenure], on: date) -> dict[str, Tenure]:
    """Position -> the tenure that covers the day; offices that stood empty are left out."""
    return {t.position: t for t in tenures if t.since <= on and (t.until is None or on < t.until)}


def holder_at(tenures: Sequence[Tenure], position: str, on: date) -> Tenure:
    """The tenure of one office on one day. Raises DataError where the table knows no holder for that day."""
    for tenure in tenures:
        if tenure.position == position and tenure.since <= on and (tenure.until is None or on < tenure.until):
            return tenure
    raise DataError(f"no holder of {position!r} on {on}; add a row that covers the day to the table of tenures")


def offices_changed(tenures: Sequence[Tenure], before: date, after: date) -> list[OfficeChange]:
    """The offices held on both days by different people, in alphabetical order.

    >>> len(offices_changed(load_facts().tenures, date(2016, 12, 20), date(2018, 12, 20)))
    93
    """
    old, new = holders_at(tenures, before), holders_at(tenures, after)
    return [
        OfficeChange(position, old[position].country, old[position], new[position])
        for position in sorted(old.keys() & new.keys())
        if old[position].holder != new[position].holder
    ]


def _rows(path: Path, columns: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            table = list(csv.reader(file, delimiter=",", quotechar='"', doublequote=True, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot read the table {path}: {error}") from error
    if not table or tuple(table[0]) != columns:
        raise DataError(
            f"{path} must start with the columns {','.join(columns)}, not {','.join(table[0] if table else [])}"
        )
    for number, cells in enumerate(table[1:], start=2):
        if len(cells) != len(columns):
            raise DataError(f"{path}, row {number}: {len(cells)} cells where {len(columns)} columns are named: {cells}")
    return [(number, dict(zip(columns, cells, strict=True))) for number, cells in enumerate(table[1:], start=2)]


def _country(path: Path, line: int, row: dict[str, str]) -> Country:
    try:
        return Country(
            name=_required(row, "name"),
            article=_one_of(row, "article", ("", "the")),
            demonym=_required(row, "demonym"),
            continent=_required(row, "continent"),
            region=_required(row, "region"),
            capitals=_several(_required(row, "capital")),
            latitude=float(row["latitude"]),
            longitude=float(row["longitude"]),
            currencies=_several(_required(row, "currency")),
            currency_code=_required(row, "currency_code"),
            languages=_several(_required(row, "languages")),
            official=_one_of(row, "language_status", ("official", "de facto")) == "official",
            population=int(row["population"]),
            neighbours=_several(row["neighbours"]),
        )
    except ValueError as error:
        raise DataError(f"{path}, row {line} ({row['name']}): {error}; mend that cell") from error


def _tenure(path: Path, line: int, row: dict[str, str]) -> Tenure:
    try:
        since = date.fromisoformat(row["since"])
        until = date.fromisoformat(row["until"]) if row["until"] else None
        if until is not None and until <= since:
            raise ValueError(f"until {until} is not after since {since}")
        return Tenure(
            position=_required(row, "position"),
            country=_required(row, "country"),
            holder=_required(row, "holder"),
            aliases=_several(row["aliases"]),
            since=since,
            until=until,
            source=_required(row, "source"),
        )
    except ValueError as error:
        raise DataError(f"{path}, row {line} ({row['position']}): {error}; mend that cell") from error


def _required(row: dict[str, str], column: str) -> str:
    if not row[column].strip():
        raise ValueError(f"{column} is empty")
    return row[column]


def _one_of(row: dict[str, str], column: str, allowed: tuple[str, ...]) -> str:
    if row[column] not in allowed:
        raise ValueError(f"{column} is {row[column]!r}, not one of {allowed}")
    return row[column]


def _several(cell: str) -> tuple[str, ...]:
    return tuple(part for part in cell.split("|") if part)
