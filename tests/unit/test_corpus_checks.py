"""What must hold for a whole source, for a corpus and its questions, and between two snapshots."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_checks.corpus import corpus_frame, corpus_suite
from data_checks.errors import CheckFailed
from data_checks.passages import check_source
from data_checks.results import CheckReport, keep_rejects, require
from data_checks.runner import run_suite
from rag.corpus.passages import text_sha1
from rag.corpus.summary import summarise
from tests.support.passages import passages_table

WORDS = 5  # the passages here have 4


def _facts(folder: Path, **changes: Any) -> dict[str, Any]:
    """The counts of a source whose pages all have one passage, with the summary of what is in the folder."""
    summary = summarise(folder)._asdict()
    counts = {
        "pages": summary["pages"], "articles": summary["pages"], "empty_articles": 0, "redirects": 0,
        "kept_redirects": 0, "disambiguation": 0, "lists": 0, "other_namespaces": 0, "passages": summary["rows"],
        "duplicates": {"exact": 0, "near": 0, "boilerplate": 0, "copies": 0, "dropped": 0}, "summary": summary,
        "site": {"dbname": "wiki"}, "not_yet": 0, "repeated": 0, "rejects": 0, "unreadable": 0, "dropped_kinds": (),
    }  # fmt: skip
    return counts | changes


def _write(folder: Path, *tables: pa.Table) -> Path:
    folder.mkdir(exist_ok=True)
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"passages-{number:05d}.parquet")
    return folder


def _sums(**changes: Any) -> dict[str, Any]:
    """Counts and summary of a source of usual looks."""
    summary = {"rows": 4588, "pages": 97, "repeated_ids": 0, "max_words": 100, "mean_words": 98.5, "short_share": 0.01}
    counts: dict[str, Any] = {
        "pages": 206, "articles": 98, "empty_articles": 1, "redirects": 99, "kept_redirects": 0, "passages": 4588,
        "disambiguation": 8, "lists": 0, "other_namespaces": 1, "not_yet": 0, "repeated": 0, "rejects": 1,
        "unreadable": 0, "dropped_kinds": (),
    }  # fmt: skip
    duplicates = {"exact": 40, "near": 60, "boilerplate": 0, "copies": 40, "dropped": 0}
    for name, value in changes.items():
        next(one for one in (counts, duplicates, summary) if name in one)[name] = value
    return {**counts, "summary": summary, "duplicates": duplicates}


def _outcome(facts: dict[str, Any], rows: int | None = None) -> tuple[list[str], list[str]]:
    report = run_suite(corpus_frame("wiki", facts, rows), corpus_suite(), "corpus")
    return report.problems("critical"), report.problems("warning")


def test_a_usual_source_holds() -> None:
    assert _outcome(_sums(), 4588) == ([], [])


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"pages": 208}, "every page is counted once: 1 of 1 rows fail, such as 2"),
        (
            {"passages": 4600},
            "the shards hold every passage that was counted, and no other: 1 of 1 rows fail, such as 12",
        ),
        ({"repeated_ids": 3}, "no passage id is in two shards or twice in one"),
        ({"empty_articles": 21, "rejects": 21}, "at most 5.0% of the articles have no passage, or no more than 20"),
        (
            {"rejects": 101},
            "every reject is a page without a passage or an unreadable row: 1 of 1 rows fail",
        ),
        ({"rejects": 0}, "every reject is a page without a passage or an unreadable row: 1 of 1 rows fail"),
        ({"unreadable": 60, "rejects": 61}, "at most 20.0% of the rows could not be read, or no more than 20"),
        ({"repeated": 21, "pages": 227, "rejects": 22}, "at most 1.0% of the pages have the id of an earlier page"),
        ({"articles": 100, "pages": 208}, "pages with passages are the articles that are not empty"),
        ({"exact": 1000, "copies": 1000}, "at most 20.0% of the passages repeat another, or no more than 20"),
        ({"boilerplate": 1000, "copies": 1000}, "at most 20.0% of the passages repeat another, or no more than 20"),
        ({"dropped": 1}, "the passages dropped are the duplicates of the kinds to drop"),
        ({"dropped_kinds": ("exact",), "dropped": 39}, "the passages dropped are the duplicates of the kinds to drop"),
        ({"max_words": 101}, "no passage has more than 100 words"),
        ({"rows": 0, "passages": 0}, "the corpus has passages"),
    ],
)
def test_what_is_lost_is_critical(changes: dict[str, int], says: str) -> None:
    critical, _ = _outcome(_sums(**changes))
    assert any(problem.startswith(says) for problem in critical), critical


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"empty_articles": 3, "rejects": 3}, "at most 2.0% of the articles have no passage"),
        ({"empty_articles": 20, "rejects": 20}, "at most 2.0% of the articles have no passage"),
        ({"unreadable": 3, "rejects": 4}, "at most 1.0% of the rows could not be read"),
        ({"repeated": 1, "pages": 207, "rejects": 2}, "none of the pages have the id of an earlier page"),
        ({"boilerplate": 1000}, "at most 20.0% of the passages are boilerplate"),
        ({"near": 1000}, "at most 20.0% of the passages nearly repeat another"),
        ({"mean_words": 20.0}, "passages have 25 to 100 words on average"),
        ({"short_share": 0.6}, "at most 50% of the passages have under 20 words"),
    ],
)
def test_what_is_odd_is_a_warning(changes: dict[str, Any], says: str) -> None:
    facts = _sums(**changes)
    facts["summary"]["pages"] = facts["articles"] - facts["empty_articles"]
    critical, warnings = _outcome(facts)
    assert not critical
    assert [problem for problem in warnings if problem.startswith(says)], warnings


def test_pages_may_lose_their_passages_as_duplicates_only() -> None:
    dropped = _sums(dropped=40, rows=4548, passages=4548, dropped_kinds=("exact",))
    dropped["summary"]["pages"] = 90
    assert _outcome(dropped) == ([], [])
    dropped["duplicates"].update(dropped=6, exact=6, copies=6)
    assert [problem.partition(":")[0] for problem in _outcome(dropped)[0]] == [
        "pages with passages are the articles that are not empty"
    ]


@pytest.mark.parametrize(
    ("kinds", "dropped"),
    [((), 0), (("exact",), 70), (("near",), 60), (("boilerplate",), 50), (("exact", "boilerplate"), 90),
     (("exact", "near", "boilerplate"), 150)],
)  # fmt: skip
def test_what_was_dropped_are_the_duplicates_of_the_chosen_kinds(kinds: tuple[str, ...], dropped: int) -> None:
    """40 exact ones, 60 near ones, and 50 of boilerplate, of which 30 are copies."""
    for difference in (-1, 0, 1):
        found = dropped + difference
        facts = _sums(dropped_kinds=kinds, dropped=found, rows=4588 - found, passages=4588 - found)
        facts["duplicates"].update(boilerplate=50, copies=70)
        critical, _ = _outcome(facts)
        assert (not critical) == (not difference)


def test_duplicates_that_were_dropped_are_no_reason_to_stop() -> None:
    facts = _sums(exact=1400, copies=1500, boilerplate=150, dropped=1500, dropped_kinds=("exact",), passages=3088,
                  rows=3088)  # fmt: skip
    assert _outcome(facts) == ([], [])
    facts = _sums(near=1400, dropped=1400, dropped_kinds=("near",), passages=3188, rows=3188)
    assert _outcome(facts) == ([], [])


def test_a_small_corpus_is_not_stopped_for_a_few() -> None:
    facts = _sums(pages=10, articles=10, empty_articles=1, rejects=4, unreadable=3, passages=12, rows=12, redirects=0,
                  disambiguation=0, other_namespaces=0, exact=6, copies=6, near=0)  # fmt: skip
    facts["summary"]["pages"] = 9
    critical, warnings = _outcome(facts)
    assert critical == []
    assert [warning.partition("%")[0] for warning in warnings] == ["at most 1.0", "at most 2.0", "at most 20.0"]
    facts |= {"unreadable": 11, "rejects": 12}
    assert [problem.partition(":")[0] for problem in _outcome(facts)[0]] == ["at least half of the rows could be read"]


def test_redirects_to_one_page_are_alike_by_intent() -> None:
    facts = _sums(pages=150, articles=50, redirects=100, kept_redirects=100, disambiguation=0, other_namespaces=0,
                  empty_articles=0, rejects=0, passages=150, rows=150, exact=99, copies=99, near=0)  # fmt: skip
    facts["summary"]["pages"] = 150
    assert _outcome(facts) == ([], [])
    facts["duplicates"].update(exact=140, copies=140)
    assert [problem.partition(",")[0] for problem in _outcome(facts)[0]] == [
        "at most 20.0% of the passages repeat another"
    ]


def test_case_b2_passages_lost_between_shards_are_noticed(tmp_path: Path) -> None:
    rows, shards = 103, 50
    table = passages_table(rows=rows)
    for name, size in (("whole", -(-rows // shards)), ("cut", rows // shards)):
        _write(tmp_path / name, *(table.slice(size * number, size) for number in range(shards)))
    counts = {"pages": rows, "articles": rows, "passages": rows}
    whole = _facts(tmp_path / "whole", **counts)
    assert whole["summary"]["shard_rows"][-16:] == (1, *15 * (0,))  # shards may be empty
    assert run_suite(corpus_frame("s", whole), corpus_suite(WORDS), "corpus").success
    cut = run_suite(corpus_frame("s", _facts(tmp_path / "cut", **counts)), corpus_suite(WORDS), "corpus")
    assert [problem.partition(":")[0] for problem in cut.problems()] == [
        "the shards hold every passage that was counted, and no other",
        "pages with passages are the articles that are not empty",
    ]


def test_a_shard_without_rows_is_passed_over(tmp_path: Path) -> None:
    folder = _write(tmp_path, passages_table(), passages_table().slice(0, 0))
    first, whole = check_source("s", folder, _facts(folder), words=WORDS)
    assert (first.batch, first.success, whole.suite, whole.success) == ("passages-00000", True, "corpus", True)


def test_every_shard_has_a_report_and_the_source_one(tmp_path: Path) -> None:
    bad = passages_table((2, "text", "left [[ markup here"), first_page=11)
    folder = _write(tmp_path / "now", passages_table(), bad)
    reports = list(check_source("s", folder, _facts(folder), _facts(folder), words=WORDS))
    assert [(report.suite, report.batch, report.n_rows, report.success) for report in reports] == [
        ("passages", "passages-00000", 10, True),
        ("passages", "passages-00001", 10, False),
        ("corpus", "", 1, True),
        ("drift", "", 1, True),
    ]
    kept = keep_rejects(iter(reports), tmp_path / "rejects.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "rejects.jsonl").read_text().splitlines()]
    assert [(line["row_id"], line["batch"], line["severity"], line["value"]) for line in lines] == [
        ("s:13:0", "passages-00001", "warning", "left [[ markup here")
    ]
    with pytest.raises(CheckFailed, match=r"'passages' of passages-00001 failed over 10 rows: at most 0\.10%"):
        require(kept.reports[1])


def test_the_texts_of_others_are_as_they_are(tmp_path: Path) -> None:
    folder = _write(tmp_path, passages_table((2, "text", "made of <br> lines")))
    shard, _ = check_source("psgs", folder, _facts(folder, site={}), words=WORDS)
    assert (shard.success, shard.warnings) == (True, 1)


def test_ids_that_two_shards_share_are_critical(tmp_path: Path) -> None:
    folder = _write(tmp_path, passages_table(), passages_table())
    *shards, whole = check_source("s", folder, _facts(folder, passages=20), words=WORDS)
    assert all(report.success for report in shards)
    assert "no passage id is in two shards or twice in one: 1 of 1 rows fail, such as 10 (rows s)" in whole.problems()


def test_case_g1_an_empty_source_fails(tmp_path: Path) -> None:
    with pytest.raises(CheckFailed, match=r"no passages \(passages-\*\.parquet\)"):
        next(iter(check_source("s", tmp_path, {})))
    folder = _write(tmp_path, passages_table().slice(0, 0))
    reports = list(check_source("s", folder, _facts(folder), words=WORDS))
    assert [report.success for report in reports] == [False, False]


def test_case_g8_one_shard_at_a_time(tmp_path: Path) -> None:
    many = passages_table(*((row, "words", 3) for row in range(30)), rows=30)
    folder = _write(tmp_path, many, passages_table())
    (folder / "passages-00001.parquet").write_bytes(b"not read before its turn")
    reports = iter(check_source("s", folder, {}, words=WORDS))

    def counted() -> Iterator[CheckReport]:
        first = next(reports)
        assert len(first.results[11].failing_rows) == 30
        yield first

    kept = keep_rejects(counted(), tmp_path / "rejects.jsonl")
    assert kept.rejects == 30
    assert max(len(result.failing_rows) for result in kept.reports[0].results) == 5
    with pytest.raises(CheckFailed, match=r"passages-00001\.parquet cannot be read as passages"):
        next(reports)


def test_a_shard_with_a_changed_letter_is_not_read(tmp_path: Path) -> None:
    folder = _write(tmp_path, passages_table())
    shard = folder / "passages-00000.parquet"
    pq.write_table(passages_table(), shard, compression="none", write_page_checksum=True, use_dictionary=False)
    shard.write_bytes(shard.read_bytes().replace(b"Text of page 5", b"Text of PAGE 5"))
    with pytest.raises(CheckFailed, match=r"passages-00000\.parquet cannot be read as passages"):
        next(iter(check_source("s", folder, {}, words=WORDS)))


def test_a_hash_that_is_not_that_of_the_text_is_named(tmp_path: Path) -> None:
    table = passages_table()
    hashes = [text_sha1(row["title"], row["text"]) for row in table.to_pylist()]
    for number, said in ((0, hashes), (1, [*hashes[:4], "0" * 40, *hashes[5:]])):
        folder = _write(tmp_path / str(number), table.append_column("text_sha1", pa.array(said)))
        shard, _ = check_source("s", folder, _facts(folder), words=WORDS)
        assert shard.success == (number == 0)
    assert shard.problems() == [
        f"the hash is that of title and text: 1 of 10 rows fail, such as '{hashes[4]}' (rows s:5:0)"
    ]


def test_a_shard_of_other_columns_is_named(tmp_path: Path) -> None:
    folder = _write(tmp_path, passages_table().drop_columns(["words"]))
    with pytest.raises(CheckFailed, match=r"passages-00000\.parquet cannot be read as passages: .*; words is missing"):
        next(iter(check_source("s", folder, {}, words=WORDS)))
