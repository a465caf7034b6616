"""What must hold for a whole source, for a corpus and its questions, and between two snapshots."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_checks.corpus import corpus_frame, corpus_suite
from data_checks.drift import drift_frame, drift_suite, total_variation
from data_checks.errors import CheckFailed
from data_checks.passages import check_coverage, check_source
from data_checks.results import CheckReport, keep_rejects, require
from data_checks.runner import run_suite
from rag.corpus.summary import summarise
from tests.support.passages import passages_table

WORDS = 5  # the passages here have 4


def _facts(folder: Path, **changes: Any) -> dict[str, Any]:
    """The counts of a source whose pages all have one passage, with the summary of what is in the folder."""
    summary = summarise(folder)._asdict()
    counts = {
        "pages": summary["pages"], "articles": summary["pages"], "empty_articles": 0, "redirects": 0,
        "kept_redirects": 0, "disambiguation": 0, "lists": 0, "other_namespaces": 0, "passages": summary["rows"],
        "duplicates": {"exact": 0, "near": 0, "boilerplate": 0, "dropped": 0}, "summary": summary,
        "site": {"dbname": "wiki"},
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
    counts = {"pages": 206, "articles": 98, "empty_articles": 1, "redirects": 99, "kept_redirects": 0, "passages": 4588,
              "disambiguation": 8, "lists": 0, "other_namespaces": 1}  # fmt: skip
    duplicates = {"exact": 40, "near": 60, "boilerplate": 0, "dropped": 0}
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
        ({"empty_articles": 10}, "at most 5.0% of the articles have no passage"),
        ({"articles": 100, "pages": 208}, "pages with passages are the articles that are not empty"),
        ({"exact": 1000}, "at most 20.0% of the passages repeat another"),
        ({"dropped": 101}, "no more passages were dropped than are duplicates"),
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
        ({"empty_articles": 3, "rows": 4588}, "hardly an article, at most 2.0%, has no passage"),
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
    dropped = _sums(dropped=40, rows=4548, passages=4548)
    dropped["summary"]["pages"] = 90
    assert _outcome(dropped) == ([], [])
    dropped["duplicates"]["dropped"] = 6
    assert [problem.partition(":")[0] for problem in _outcome(dropped)[0]] == [
        "pages with passages are the articles that are not empty"
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


def test_a_shard_of_other_columns_is_named(tmp_path: Path) -> None:
    folder = _write(tmp_path, passages_table().drop_columns(["words"]))
    with pytest.raises(CheckFailed, match=r"passages-00000\.parquet cannot be read as passages: .*; words is missing"):
        next(iter(check_source("s", folder, {}, words=WORDS)))


def test_coverage_of_answers() -> None:
    def outcome(covered: int) -> tuple[bool, int]:
        (report,) = check_coverage("wiki", {"nq": {"n_questions": 100, "n_covered": covered, "uncovered": ()}})
        assert (report.batch, report.n_rows) == ("wiki", 1)
        return report.success, report.warnings

    assert outcome(100) == outcome(70) == (True, 0)
    assert outcome(69) == outcome(1) == (True, 1)
    assert outcome(0) == (False, 1)


def test_coverage_of_no_tasks_or_no_questions_fails() -> None:
    (none,) = check_coverage("wiki", {})
    assert none.problems() == ["at least one task: found 0"]
    (empty,) = check_coverage("wiki", {"nq": {"n_questions": 0, "n_covered": 0}})
    assert "every task has questions: 1 of 1 rows fail, such as 0 (rows nq)" in empty.problems()


def _snapshot(**changes: Any) -> dict[str, Any]:
    summary = {"rows": 1000, "pages": 100, "mean_words": 90.0, "short_share": 0.05, "words_by_ten": (50, 50, 900)}
    duplicates = {"exact": 10, "near": 0, "boilerplate": 0, "dropped": 0}
    return {"passages": 1000, "duplicates": duplicates, "summary": summary | changes}


@pytest.mark.parametrize(
    ("changes", "critical", "warnings"),
    [
        ({}, [], []),
        ({"rows": 1099, "pages": 99}, [], []),
        ({"rows": 970}, [], ["the number of passages changes by -2% to +10%"]),
        ({"rows": 5000}, [], ["the number of passages changes by -2% to +10%"]),
        ({"rows": 790}, ["the number of passages changes by no less than -20%"],
         ["the number of passages changes by -2% to +10%"]),
        ({"words_by_ten": (150, 50, 800)}, [],
         ["the lengths of passages move (total variation distance) by at most +5%"]),
        ({"words_by_ten": (400, 50, 550)},
         ["the lengths of passages move (total variation distance) by at most +25%"],
         ["the lengths of passages move (total variation distance) by at most +5%"]),
        ({"short_share": 0.31}, ["the share of passages under 20 words moves by at most +25%"],
         ["the share of passages under 20 words moves by -5% to +5%"]),
    ],
)  # fmt: skip
def test_drift(changes: dict[str, Any], critical: list[str], warnings: list[str]) -> None:
    report = run_suite(drift_frame("wiki", _snapshot(**changes), _snapshot()), drift_suite(), "corpus")
    assert [problem.partition(": 1 of")[0] for problem in report.problems("critical")] == critical
    assert [problem.partition(": 1 of")[0] for problem in report.problems("warning")] == warnings
    assert report.success == (not critical)


def test_drift_may_be_no_reason_to_stop() -> None:
    frame = drift_frame("wiki", _snapshot(rows=1), _snapshot())
    report = run_suite(frame, drift_suite(stops=False), "corpus")
    assert (report.success, report.warnings) == (True, 2)


def test_total_variation_of_empty_histograms() -> None:
    assert total_variation([], []) == total_variation([0], []) == 0.0
    assert total_variation([], [3]) == total_variation([3], [0]) == 1.0
