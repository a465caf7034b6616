"""The pages of the demo wiki on a given day, as a dump holds them.

A page whose wikitext is the same on two days keeps its revision, so that its vectors can be used again.
"""

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from rag.demo.articles import all_articles
from rag.demo.facts import Facts, holders_at
from rag.demo.prose import World, office_title
from rag.demo.wording import capital_title, capitalised, country_title, is_city_state, stable_hash
from rag.records import Page

BEFORE = date(2016, 12, 20)
AFTER = date(2018, 12, 20)

_OTHER_NAMES = {
    "Czech Republic": ("Czechia",), "Cape Verde": ("Cabo Verde",), "East Timor": ("Timor-Leste",),
    "Eswatini": ("Swaziland",), "Ivory Coast": ("Côte d'Ivoire",), "Myanmar": ("Burma",), "Netherlands": ("Holland",),
    "United Arab Emirates": ("UAE",), "United Kingdom": ("UK", "Great Britain"), "United States": ("USA", "America"),
    "Vatican City": ("Holy See",), "Democratic Republic of the Congo": ("DR Congo",),
}  # fmt: skip
_DISAMBIGUATION = {
    "Georgia": ("Georgia (country)", "Georgia (U.S. state)"),
    "Congo": ("Democratic Republic of the Congo", "Republic of the Congo"),
    "Guinea (disambiguation)": ("Guinea", "Guinea-Bissau", "Equatorial Guinea", "Papua New Guinea"),
    "Korea": ("North Korea", "South Korea"),
    "Niger (disambiguation)": ("Niger", "Niger River"),
    "Sudan (disambiguation)": ("Sudan", "South Sudan"),
    "Djibouti (disambiguation)": ("Djibouti", "Djibouti (city)"),
    "Luxembourg (disambiguation)": ("Luxembourg", "Luxembourg (city)"),
    "Micronesia": ("Federated States of Micronesia", "Micronesia (region)"),
    "Victoria": ("Victoria, Seychelles", "Victoria (Australia)"),
    "Georgetown": ("Georgetown, Guyana", "Georgetown (disambiguation)"),
    "Kingston": ("Kingston, Jamaica", "Kingston upon Thames"),
    "CFA franc": ("West African CFA franc", "Central African CFA franc"),
}
_OTHER_PAGES = (
    (1, "Talk:Angola", "== Neighbours ==\nShould the list of neighbours be a table? ~~~~\n: Prose reads better. ~~~~"),
    (4, "Wikipedia:Manual of style", "Write short sentences. Give a source for each figure."),
    (6, "File:Flag of Angola.svg", "== Summary ==\n{{Information |description=A flag |source=own work}}"),
    (10, "Template:Infobox country", "<includeonly>{| class=\"infobox\"\n! {{{common_name|}}}\n|}</includeonly>"),
    (10, "Template:Reflist", "<references />"),
    (14, "Category:Countries of Africa", "{{Commons category}}\n[[Category:Countries]]"),
    (14, "Category:Offices of state", "The offices of all countries."),
    (828, "Module:Convert", "return { main = function(frame) return frame.args[1] end }"),
    (0, "Blank page of the demo wiki", ""),
)  # fmt: skip
_FIRST_REVISION, _SECOND_REVISION = 700_000_000, 870_000_000


class DumpPage(NamedTuple):
    """A page with what only the dump shows: the revision before and who made this one."""

    page: Page
    parent_id: int | None
    contributor: str
    contributor_id: int
    comment: str


class _Draft(NamedTuple):
    namespace: int
    title: str
    redirect: str | None
    wikitext: str


def snapshots(facts: Facts) -> dict[date, list[DumpPage]]:
    """All pages of the wiki on BEFORE and on AFTER, by page id."""
    world = World(facts)
    old, new = _drafts(world, BEFORE), _drafts(world, AFTER)
    page_ids = {title: 1000 + 3 * number for number, title in enumerate(sorted(old.keys() | new.keys()))}
    pages: dict[date, list[DumpPage]] = {}
    for day, drafts in ((BEFORE, old), (AFTER, new)):
        found = [
            _dump_page(draft, page_ids[title], changed=day == AFTER and old.get(title) != draft, existed=title in old)
            for title, draft in drafts.items()
        ]
        pages[day] = sorted(found, key=lambda entry: entry.page.page_id)
    return pages


def _dump_page(draft: _Draft, page_id: int, changed: bool, existed: bool) -> DumpPage:
    seed = stable_hash(draft.title)
    revision, parent = _FIRST_REVISION + 7 * page_id, None
    timestamp = f"2016-{1 + seed % 11:02d}-{1 + seed % 28:02d}T{seed % 24:02d}:{seed % 60:02d}:{seed % 59:02d}Z"
    if changed:
        revision, parent = _SECOND_REVISION + 7 * page_id, revision if existed else None
        timestamp = f"2018-12-{17 + seed % 3:02d}T{seed % 24:02d}:{seed % 60:02d}:{seed % 59:02d}Z"
    page = Page(page_id, draft.title, draft.namespace, draft.redirect, revision, timestamp, draft.wikitext)
    editor = 1 + seed % 5
    comment = "new holder & date" if changed else ("redirect" if draft.redirect else "copy edit")
    return DumpPage(page, parent, f"DemoEditor{editor}", 100 + editor, comment)


def _drafts(world: World, on: date) -> dict[str, _Draft]:
    drafts = [_Draft(0, article.title, None, article.wikitext) for article in all_articles(world, on)]
    drafts += [_Draft(0, title, None, _disambiguation(title, targets)) for title, targets in _DISAMBIGUATION.items()]
    drafts += [_Draft(namespace, title, None, text) for namespace, title, text in _OTHER_PAGES]
    taken = {draft.title for draft in drafts}
    for source, target in _redirects(world, on):
        if source not in taken and target in taken:
            taken.add(source)
            drafts.append(
                _Draft(
                    0,
                    source,
                    target,
                    f"#REDIRECT [[{target}]]\n\n{{{{Redirect category shell|{{{{R from alternative name}}}}}}}}",
                )
            )
    return {draft.title: draft for draft in drafts}


def _redirects(world: World, on: date) -> list[tuple[str, str]]:
    pairs = [(name, country) for country, names in _OTHER_NAMES.items() for name in names]
    for country in world.facts.countries:
        if not is_city_state(country):
            pairs.append((f"{country.capital}, {country.name}", capital_title(country)))
            pairs += [
                (name, capital_title(country)) for name in country.capitals[1:] if name in ("Kiev", "Nay Pyi Taw")
            ]
        if f"President of {country.name}" in world.positions.get(country.name, []) and " " not in country.name:
            pairs.append((f"Republic of {country.name}", country_title(country)))
            pairs.append((f"President of Republic of {country.name}", f"President of {country.name}"))
    for position, tenure in sorted(holders_at(world.facts.tenures, on).items()):
        country = world.facts.country(tenure.country)
        title = office_title(tenure, country)
        if title == "Prime Minister":
            pairs.append((f"{country.demonym} {title}", position))
    return [(capitalised(source), target) for source, target in pairs]


def _disambiguation(title: str, targets: Sequence[str]) -> str:
    name = title.removesuffix(" (disambiguation)")
    lines = "\n".join(f"* [[{target}]]" for target in targets)
    return f"'''{name}''' may refer to:\n\n{lines}\n\n{{{{disambiguation}}}}"
