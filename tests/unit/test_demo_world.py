"""The demo world's facts, wording, pages and questions, without a file written."""

from datetime import date
from pathlib import Path

import pytest

from rag.demo.articles import Article, all_articles
from rag.demo.claims import claims
from rag.demo.facts import (
    COUNTRY_COLUMNS,
    TENURE_COLUMNS,
    Facts,
    holder_at,
    holders_at,
    load_facts,
    offices_changed,
    read_countries,
    read_tenures,
)
from rag.demo.prose import World
from rag.demo.questions import clues, marco_questions, open_questions
from rag.demo.splits import SPLITS, countries_by_split
from rag.demo.wiki import AFTER, BEFORE, DumpPage, snapshots
from rag.demo.wording import plain_sentence
from rag.errors import DataError

EXPECTED_ROWS = {"nq-open": 100, "fever": 66, "msmarco": 35, "jeopardy": 24}


@pytest.fixture(scope="module")
def facts() -> Facts:
    return load_facts()


@pytest.fixture(scope="module")
def world(facts: Facts) -> World:
    return World(facts)


@pytest.fixture(scope="module")
def wiki(facts: Facts) -> dict[date, list[DumpPage]]:
    return snapshots(facts)


@pytest.fixture(scope="module")
def articles(world: World) -> dict[date, dict[str, Article]]:
    return {day: {article.title: article for article in all_articles(world, day)} for day in (BEFORE, AFTER)}


def prose_of(article: Article) -> str:
    return " ".join(plain_sentence(sentence.wikitext) for sentence in article.sentences)


def test_borders_stand_in_both_rows(facts: Facts) -> None:
    one_sided = [
        (country.name, name)
        for country in facts.countries
        for name in country.neighbours
        if country.name not in facts.country(name).neighbours
    ]
    assert one_sided == []
    assert len(facts.countries) == 196


def test_enough_offices_changed_hands(facts: Facts) -> None:
    changes = offices_changed(facts.tenures, BEFORE, AFTER)
    assert len(changes) >= 60
    assert all(change.before.holder != change.after.holder for change in changes)


def test_every_position_ends_in_its_country(facts: Facts) -> None:
    for tenure in facts.tenures:
        assert tenure.position.endswith(f" of {facts.country(tenure.country).the}")


def test_every_office_has_a_holder_on_both_days(facts: Facts) -> None:
    positions = {tenure.position for tenure in facts.tenures}
    assert holders_at(facts.tenures, BEFORE).keys() == holders_at(facts.tenures, AFTER).keys() == positions


def test_holder_at_is_an_error_on_a_day_without_a_row(facts: Facts) -> None:
    with pytest.raises(DataError, match=r"President of Angola.*1950-01-01"):
        holder_at(facts.tenures, "President of Angola", date(1950, 1, 1))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("President of X,X,A,,2016-13-01,,s", "row 2"),
        ("President of X,X,A,,2016-01-01,2015-01-01,s", "not after since"),
        ("President of X,X,,,2016-01-01,,s", "holder is empty"),
        ("President of X,X,A,,2016-01-01", "5 cells"),
        ("President of X,X,A,,2016-01-01,,s\nPresident of X,X,B,,2017-01-01,,s", "held by A and B"),
    ],
)
def test_a_wrong_tenure_names_its_row(tmp_path: Path, row: str, message: str) -> None:
    path = tmp_path / "offices.csv"
    path.write_text(",".join(TENURE_COLUMNS) + "\n" + row + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_tenures(path)


def test_wrong_country_tables_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "countries.csv"
    row = "Peru,,Peruvian,South America,South America,Lima,-12,-77,Peruvian sol,PEN,Spanish,official,many,"
    path.write_text(",".join(COUNTRY_COLUMNS) + "\n" + row + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"row 2 \(Peru\).*many"):
        read_countries(path)
    path.write_text("name\nPeru\n", encoding="utf-8")
    with pytest.raises(DataError, match="must start with the columns"):
        read_countries(path)


def test_no_country_is_in_two_splits(facts: Facts) -> None:
    groups = countries_by_split(facts)
    names = [country.name for split in SPLITS for country in groups[split]]
    assert sorted(names) == sorted(country.name for country in facts.countries)
    changed = {change.country for change in offices_changed(facts.tenures, BEFORE, AFTER)}
    assert changed <= {country.name for country in groups["test"]}


def test_pages_that_say_the_same_keep_their_revision(wiki: dict[date, list[DumpPage]]) -> None:
    old = {entry.page.title: entry for entry in wiki[BEFORE]}
    kept = changed = 0
    for entry in wiki[AFTER]:
        before = old.get(entry.page.title)
        if before is None or before.page.wikitext != entry.page.wikitext:
            changed += 1
            assert before is None or (entry.parent_id == before.page.revision_id and entry.page > before.page)
            assert before is None or before.page.page_id == entry.page.page_id
            assert entry.page.timestamp > "2018"
        else:
            kept += 1
            assert entry == before
    assert kept > 1000
    assert changed > 100


def test_titles_and_ids_are_unique(wiki: dict[date, list[DumpPage]]) -> None:
    for pages in wiki.values():
        assert len({entry.page.title for entry in pages}) == len({entry.page.page_id for entry in pages}) == len(pages)


def test_redirects_lead_to_pages_of_the_same_day(wiki: dict[date, list[DumpPage]]) -> None:
    for pages in wiki.values():
        titles = {entry.page.title for entry in pages}
        targets = {entry.page.redirect for entry in pages if entry.page.redirect}
        assert targets <= titles
        assert len(targets) > 100


def test_no_prose_names_a_holder_of_the_other_day(facts: Facts, articles: dict[date, dict[str, Article]]) -> None:
    holders = {day: {t.holder for t in holders_at(facts.tenures, day).values()} for day in (BEFORE, AFTER)}
    for day, other in ((BEFORE, AFTER), (AFTER, BEFORE)):
        text = "\n".join(article.title + "\n" + prose_of(article) for article in articles[day].values())
        leaked = [name for name in holders[other] - holders[day] if name in text]
        assert leaked == []


def test_each_office_page_names_its_holder_early(facts: Facts, articles: dict[date, dict[str, Article]]) -> None:
    for day, found in articles.items():
        for position, tenure in holders_at(facts.tenures, day).items():
            sentences = [plain_sentence(sentence.wikitext) for sentence in found[position].sentences]
            assert position in sentences[0]
            assert tenure.holder in sentences[1]


def test_articles_are_compact(articles: dict[date, dict[str, Article]], facts: Facts) -> None:
    found = articles[AFTER]
    assert 600 <= len(found) <= 800
    offices = holders_at(facts.tenures, AFTER)
    assert all(30 <= len(prose_of(found[position]).split()) <= 80 for position in offices)


def test_prose_has_no_markup_or_placeholder(articles: dict[date, dict[str, Article]]) -> None:
    for article in articles[AFTER].values():
        for sentence in article.sentences:
            text = plain_sentence(sentence.wikitext)
            if sentence.fact != "distance":  # holds a template that only a real reader of wikitext converts
                assert not set("{}[]<>|_") & set(text), text
            assert text[0].isupper() or text[0] in "'ʻ" or text.startswith("al-"), text
            assert text.endswith((".", '."', '".')), text
            assert "  " not in text


def test_sizes_of_the_test_files(world: World, facts: Facts, articles: dict[date, dict[str, Article]]) -> None:
    countries = countries_by_split(facts)["test"]
    marco = marco_questions(world, countries, "test")
    rows = {
        "nq-open": len(open_questions(world, countries, "test")),
        "fever": len(claims(world, countries, "test", articles[AFTER])),
        "msmarco": len(marco),
        "jeopardy": len(clues(world, countries, "test")),
    }
    assert rows == EXPECTED_ROWS
    assert sum(not question.well_formed for question in marco) == 5


def test_train_questions_leave_the_changed_countries_alone(world: World, facts: Facts) -> None:
    groups = countries_by_split(facts)
    changed = {change.position for change in offices_changed(facts.tenures, BEFORE, AFTER)}
    for split in ("train", "dev"):
        asked = {question.question for question in open_questions(world, groups[split], split)}
        assert not asked & {f"Who is the {position}?" for position in changed}
    test = {question.question for question in open_questions(world, groups["test"], "test")}
    assert len(test & {f"Who is the {position}?" for position in changed}) > 20


def test_answers_can_be_read_off_the_pages(
    world: World, facts: Facts, articles: dict[date, dict[str, Article]]
) -> None:
    everything = "\n".join(prose_of(article) for article in articles[AFTER].values())
    for split, countries in countries_by_split(facts).items():
        for question in open_questions(world, countries, split):
            assert any(answer in everything for answer in question.answer), question


def test_evidence_decides_the_claim(world: World, facts: Facts, articles: dict[date, dict[str, Article]]) -> None:
    for split, countries in countries_by_split(facts).items():
        made = claims(world, countries, split, articles[AFTER])
        assert len({claim.text for claim in made}) == len(made)
        for claim in made:
            assert (claim.evidence is None) == (claim.label == "NOT ENOUGH INFO")
            if claim.evidence is not None:
                sentence = articles[AFTER][claim.evidence.title].sentences[claim.evidence.sentence]
                assert sentence.fact in {"capital", "currency", "language", "borders", "continent", "holder"}


def test_no_clue_gives_its_answer_away(world: World, facts: Facts) -> None:
    for split, countries in countries_by_split(facts).items():
        for clue in clues(world, countries, split):
            assert clue.answer not in clue.clue
