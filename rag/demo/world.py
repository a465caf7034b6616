"""The demo world on disk: two dumps, the task files and the changed offices. Start here.

* dumps/wiki-2016-12-20-pages-articles-multistream.xml.bz2 with -multistream-index.txt.bz2, and for 2018-12-20
* dumps/sha1sums.txt
* tasks/{nq-open,fever}/{train,dev,test}.jsonl and tasks/{msmarco,jeopardy}/{train,dev,test}.json
* swap/offices.csv
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from rag.demo.articles import all_articles
from rag.demo.claims import Claim, claims
from rag.demo.dump_writer import index_path, write_checksums, write_dump
from rag.demo.facts import TENURE_COLUMNS, Tenure, load_facts, offices_changed
from rag.demo.prose import World
from rag.demo.questions import Clue, MarcoQuestion, clues, marco_questions, open_questions
from rag.demo.splits import SPLITS, countries_by_split
from rag.demo.wiki import AFTER, BEFORE, snapshots
from rag.demo.wording import stable_hash
from rag.files import write_atomically
from rag.records import Split

_FIRST_ID: Mapping[Split, int] = {"train": 100_000, "dev": 200_000, "test": 300_000}
_FIRST_AIR_DATE = date(2018, 1, 1)


class WorldReport(NamedTuple):
    """What was written: pages and articles of each dump, rows of each task file, and the changed offices."""

    pages: dict[str, int]  # dump date -> pages of every kind
    articles: dict[str, int]  # dump date -> articles, without redirects and disambiguation pages
    questions: dict[str, int]  # "nq-open/train" -> rows
    countries: dict[str, int]  # split -> countries
    changed_offices: int


def write_demo_world(out: Path) -> WorldReport:
    """Write the whole demo world into a folder; the same files byte for byte on every run."""
    facts = load_facts()
    world = World(facts)
    pages = snapshots(facts)
    for day in pages:
        write_dump(pages[day], dump_path(out, day))
    dumps = [path for day in (BEFORE, AFTER) for path in (dump_path(out, day), index_path(dump_path(out, day)))]
    write_checksums(dumps, out / "dumps" / "sha1sums.txt")
    groups = countries_by_split(facts)
    articles = {day: all_articles(world, day) for day in (BEFORE, AFTER)}
    later = {article.title: article for article in articles[AFTER]}
    questions: dict[str, int] = {}
    for split in SPLITS:
        rows: dict[str, Sequence[Any]] = {
            "nq-open": open_questions(world, groups[split], split),
            "fever": claims(world, groups[split], split, later),
            "msmarco": marco_questions(world, groups[split], split),
            "jeopardy": clues(world, groups[split], split),
        }
        _write_tasks(rows, split, out / "tasks")
        questions |= {f"{task}/{split}": len(found) for task, found in rows.items()}
    changes = offices_changed(facts.tenures, BEFORE, AFTER)
    swapped = {change.position for change in changes}
    write_tenures([tenure for tenure in facts.tenures if tenure.position in swapped], out / "swap" / "offices.csv")
    return WorldReport(
        pages={str(day): len(found) for day, found in pages.items()},
        articles={str(day): len(found) for day, found in articles.items()},
        questions=questions,
        countries={split: len(groups[split]) for split in SPLITS},
        changed_offices=len(changes),
    )


def dump_path(out: Path, day: date) -> Path:
    """Where the dump of a day lies in the folder of a demo world."""
    return out / "dumps" / f"wiki-{day}-pages-articles-multistream.xml.bz2"


def write_tenures(tenures: Sequence[Tenure], path: Path) -> None:
    """Write a table of tenures that ``rag.demo.facts.read_tenures`` reads."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(TENURE_COLUMNS)
    for t in tenures:
        writer.writerow([t.position, t.country, t.holder, "|".join(t.aliases), t.since, t.until or "", t.source])
    write_atomically(path, buffer.getvalue().encode("utf-8"))


def _write_tasks(rows: Mapping[str, Sequence[Any]], split: Split, folder: Path) -> None:
    first = _FIRST_ID[split]
    nq = [question._asdict() for question in rows["nq-open"]]
    fever = [_fever_row(first + number, claim) for number, claim in enumerate(rows["fever"])]
    _write_lines(nq, folder / "nq-open" / f"{split}.jsonl")
    _write_lines(fever, folder / "fever" / f"{split}.jsonl")
    _write_json(_marco_columns(first, rows["msmarco"]), folder / "msmarco" / f"{split}.json")
    _write_json(
        [_jeopardy_row(number, clue) for number, clue in enumerate(rows["jeopardy"])],
        folder / "jeopardy" / f"{split}.json",
    )


def _fever_row(claim_id: int, claim: Claim) -> dict[str, Any]:
    undecided = claim.evidence is None
    last: list[Any] = [None, None]
    if claim.evidence is not None:
        last = [_fever_title(claim.evidence.title), claim.evidence.sentence]
    return {
        "id": claim_id,
        "verifiable": "NOT VERIFIABLE" if undecided else "VERIFIABLE",
        "label": claim.label,
        "claim": claim.text,
        "evidence": [[[claim_id + 1_000_000, None if undecided else claim_id + 2_000_000, *last]]],
    }


def _fever_title(title: str) -> str:
    """A page title as FEVER writes it.

    >>> _fever_title("Georgia (country)")
    'Georgia_-LRB-country-RRB-'
    """
    return title.replace(" ", "_").replace("(", "-LRB-").replace(")", "-RRB-").replace(":", "-COLON-")


def _marco_columns(first: int, questions: Sequence[MarcoQuestion]) -> dict[str, dict[str, Any]]:
    """The columns of an MS MARCO 2.1 file: row number -> value; no well-formed answer is the string "[]"."""
    columns: dict[str, dict[str, Any]] = {
        name: {} for name in ("answers", "passages", "query", "query_id", "query_type", "wellFormedAnswers")
    }
    for number, question in enumerate(questions):
        row = {
            "answers": question.answers,
            "passages": question.passages,
            "query": question.query,
            "query_id": first + number,
            "query_type": question.query_type,
            "wellFormedAnswers": question.well_formed or "[]",
        }
        for name, value in row.items():
            columns[name][str(number)] = value
    return columns


def _jeopardy_row(number: int, clue: Clue) -> dict[str, str]:
    """A clue as the public collection of 200,000 clues has it, the clue itself in single quotes."""
    return {
        "category": clue.category,
        "air_date": str(_FIRST_AIR_DATE + timedelta(days=number)),
        "question": f"'{clue.clue}'",
        "value": f"${200 * (1 + stable_hash(clue.clue) % 5)}",
        "answer": clue.answer,
        "round": "Jeopardy!",
        "show_number": str(7700 + number),
    }


def _write_lines(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    write_atomically(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode("utf-8"))


def _write_json(value: Any, path: Path) -> None:
    write_atomically(path, (json.dumps(value, ensure_ascii=False) + "\n").encode("utf-8"))
