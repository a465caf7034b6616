"""The demo world on disk: same bytes twice, a dump that reads like Wikimedia's, task files that the readers accept."""

import bz2
import hashlib
import json
from datetime import date
from pathlib import Path

import pytest
from lxml import etree

from rag.corpus.dump import read_pages
from rag.corpus.wikitext import plain_text
from rag.demo.articles import all_articles
from rag.demo.dump_writer import PAGES_PER_STREAM, index_path
from rag.demo.facts import load_facts, offices_changed, read_tenures
from rag.demo.prose import World
from rag.demo.wiki import AFTER, BEFORE
from rag.demo.wording import plain_sentence
from rag.demo.world import WorldReport, dump_path, write_demo_world
from rag.tasks import fever, jeopardy, msmarco, open_qa

pytestmark = pytest.mark.integration

NAMESPACE = "{http://www.mediawiki.org/xml/export-0.11/}"
READERS = {
    "nq-open": (open_qa.read, "jsonl"),
    "fever": (fever.read, "jsonl"),
    "msmarco": (msmarco.read, "json"),
    "jeopardy": (jeopardy.read, "json"),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, WorldReport]:
    out = tmp_path_factory.mktemp("demo")
    return out, write_demo_world(out)


@pytest.fixture(scope="module")
def out(written: tuple[Path, WorldReport]) -> Path:
    return written[0]


@pytest.fixture(scope="module")
def report(written: tuple[Path, WorldReport]) -> WorldReport:
    return written[1]


def hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_second_run_writes_the_same_bytes(out: Path, report: WorldReport, tmp_path: Path) -> None:
    assert write_demo_world(tmp_path) == report
    assert hashes(tmp_path) == hashes(out)
    assert len(hashes(out)) == 4 + 1 + 12 + 1


@pytest.mark.parametrize("day", [BEFORE, AFTER])
def test_index_leads_to_the_stream_of_each_page(out: Path, report: WorldReport, day: date) -> None:
    dump = dump_path(out, day)
    raw = dump.read_bytes()
    lines = bz2.decompress(index_path(dump).read_bytes()).decode("utf-8").splitlines()
    assert len(lines) == report.pages[str(day)]
    by_offset: dict[int, list[tuple[str, str]]] = {}
    for line in lines:
        offset, page_id, title = line.split(":", 2)
        by_offset.setdefault(int(offset), []).append((page_id, title))
    for start, entries in by_offset.items():
        stream = bz2.BZ2Decompressor().decompress(raw[start:])
        pages = etree.fromstring(b"<pages>" + stream + b"</pages>")
        found = [(page.findtext("id"), page.findtext("title")) for page in pages]
        assert found == entries
        assert len(found) <= PAGES_PER_STREAM


def test_xml_is_whole_and_its_checksums_hold(out: Path, report: WorldReport) -> None:
    for line in (out / "dumps" / "sha1sums.txt").read_text(encoding="utf-8").splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha1((out / "dumps" / name).read_bytes(), usedforsecurity=False).hexdigest() == digest
    for day in (BEFORE, AFTER):
        root = etree.fromstring(bz2.decompress(dump_path(out, day).read_bytes()))
        assert root.get("version") == "0.11"
        pages = root.findall(f"{NAMESPACE}page")
        assert len(pages) == report.pages[str(day)]
        for text in root.iter(f"{NAMESPACE}text"):
            assert int(text.get("bytes", "-1")) == len((text.text or "").encode("utf-8"))


def test_the_reader_of_dumps_gives_the_prose_back(out: Path) -> None:
    world = World(load_facts())
    for day in (BEFORE, AFTER):
        pages = {page.title: page for page in read_pages(dump_path(out, day))}
        for article in all_articles(world, day):
            text = plain_text(pages[article.title].wikitext).replace("\xa0", " ")
            missing = [
                sentence
                for sentence in article.sentences
                if sentence.fact != "distance" and plain_sentence(sentence.wikitext) not in text
            ]
            assert missing == [], article.title
            assert "{{" not in text
            assert "|" not in text


def test_plain_text_hides_the_holders_of_the_other_day(out: Path) -> None:
    changes = offices_changed(load_facts().tenures, BEFORE, AFTER)
    for day in (BEFORE, AFTER):
        pages = {page.title: page for page in read_pages(dump_path(out, day))}
        for change in changes:
            here, there = (change.before, change.after) if day == BEFORE else (change.after, change.before)
            text = plain_text(pages[change.position].wikitext)
            assert here.holder in text
            assert there.holder not in text


@pytest.mark.parametrize("task", list(READERS))
def test_readers_accept_every_row(out: Path, report: WorldReport, task: str) -> None:
    read, ending = READERS[task]
    for split in ("train", "dev", "test"):
        found = read(out / "tasks" / task / f"{split}.{ending}")
        assert found.rejects == []
        assert len(found.questions) == report.questions[f"{task}/{split}"]


def test_marco_rows_without_an_answer_hold_the_string(out: Path) -> None:
    columns = json.loads((out / "tasks" / "msmarco" / "test.json").read_text(encoding="utf-8"))
    unanswerable = [row for row, answers in columns["answers"].items() if answers == ["No Answer Present."]]
    assert len(unanswerable) == 5
    assert {columns["wellFormedAnswers"][row] for row in unanswerable} == {"[]"}


def test_swap_table_holds_the_changed_offices(out: Path, report: WorldReport) -> None:
    tenures = read_tenures(out / "swap" / "offices.csv")
    assert len(offices_changed(tenures, BEFORE, AFTER)) == len({t.position for t in tenures}) == report.changed_offices
