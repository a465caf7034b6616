"""Which countries are asked about in training, development and test: no country in two of them."""

from typing import get_args

from rag.demo.facts import Country, Facts, offices_changed
from rag.demo.wiki import AFTER, BEFORE
from rag.demo.wording import shuffled
from rag.records import Split

SPLITS: tuple[Split, ...] = get_args(Split)
_DEV_EVERY = 7  # about 15 % of the countries without a change


def countries_by_split(facts: Facts) -> dict[Split, list[Country]]:
    """Countries where an office changed hands go to test, the rest to train and dev; sorted by name."""
    changed = {change.country for change in offices_changed(facts.tenures, BEFORE, AFTER)}
    rest = shuffled([country.name for country in facts.countries if country.name not in changed], "split")
    dev = set(rest[::_DEV_EVERY])
    groups: dict[Split, list[Country]] = {split: [] for split in SPLITS}
    for country in facts.countries:
        split: Split = "test" if country.name in changed else "dev" if country.name in dev else "train"
        groups[split].append(country)
    return groups
