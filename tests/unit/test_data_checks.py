"""Suites and their runner: a bad row is named, empty data fails, a broken metric is a failure, severity decides."""

import json
from pathlib import Path

import great_expectations.expectations as gxe
import pandas as pd
import pyarrow as pa
import pytest
from great_expectations.core.expectation_suite import ExpectationSuite

from data_checks.errors import CheckFailed, SuiteError
from data_checks.expectations import between, none, sentence
from data_checks.passage_columns import passages_frame
from data_checks.passages import passages_suite
from data_checks.questions import overlap_frame, overlap_suite, questions_frame, questions_suite, train_test_overlap
from data_checks.results import CheckReport, keep_rejects, report_from_facts, require, write_rejects
from data_checks.runner import run_suite
from tests.support.passages import passages_table


def _count_only(severity: str = "critical") -> ExpectationSuite:
    """The cheapest suite: each expectation costs Great Expectations tens of milliseconds."""
    count = gxe.ExpectTableRowCountToBeBetween(min_value=1, **sentence("at least one row"))
    return ExpectationSuite(name="count", expectations=[count, between("words", None, 100, "few words", severity)])


def _failed(report: CheckReport) -> dict[str, tuple[str, ...]]:
    return {result.expected: result.failing_rows for result in report.results if not result.success}


def test_good_passages_pass() -> None:
    report = run_suite(passages_frame(passages_table()), passages_suite(), "passage_id", "passages-00000")
    assert (report.success, report.warnings, report.n_rows, report.batch) == (True, 0, 10, "passages-00000")
    require(report)


def test_injected_bad_passages_are_named() -> None:
    table = passages_table(
        (0, "text", "left [[ markup here"),
        (1, "text", "is a bell \x07"),
        (2, "text", "    "),
        (3, "text", None),
        (4, "title", ""),
        (5, "words", 101),
        (6, "words", 0),
        (7, "page_id", 0),
        (9, "passage_id", "s:9:0"),
    )
    report = run_suite(passages_frame(table), passages_suite(), "passage_id")
    assert _failed(report) == {
        "passage ids are unique": ("s:9:0", "s:9:0"),
        "passage ids are source:page:ordinal": ("s:8:0", "s:9:0"),
        "titles are not blank": ("s:5:0",),
        "every passage has a text": ("s:4:0",),
        "passages have 1 to 100 words": ("s:6:0", "s:7:0"),
        "the number of words is that of the text": ("s:3:0", "s:4:0", "s:6:0", "s:7:0"),
        "no wikitext is left in the text": ("s:1:0",),
        "no control characters are in title or text": ("s:2:0",),
        "page ids are positive": ("s:8:0",),
    }
    with pytest.raises(CheckFailed, match=r"no wikitext is left.*rows s:1:0.*are in /somewhere/rejects\.jsonl"):
        require(report, Path("/somewhere/rejects.jsonl"))


def test_a_share_of_markup_may_be_allowed_and_is_a_warning_then() -> None:
    table = passages_table((0, "text", "left [[ markup here"), (1, "text", "e\u0301 not in NFC"))
    allowed = run_suite(passages_frame(table), passages_suite(100, 0.1, 0.1), "passage_id")
    assert (allowed.success, allowed.warnings) == (True, 2)
    assert allowed.problems("warning")[0] == (
        "no wikitext is left in the text: 1 of 10 rows fail, such as 'left [[ markup here' (rows s:1:0)"
    )
    assert run_suite(passages_frame(table.slice(0, 2)), passages_suite(100, 1, 1), "passage_id").success
    too_much = run_suite(passages_frame(table), passages_suite(100, 0.05, 0.05), "passage_id")
    assert not too_much.success
    assert too_much.problems() == [
        "at most 5.00% of the rows break the rule that no wikitext is left in the text: found 0.1",
        "at most 5.00% of the rows break the rule that title and text are in Unicode's normal form C: found 0.1",
    ]


@pytest.mark.parametrize("severity", ["critical", "warning", "info"])
def test_only_a_critical_failure_stops(severity: str, tmp_path: Path) -> None:
    report = run_suite(pd.DataFrame({"row": ["a", "b"], "words": [5, 500]}), _count_only(severity), "row")
    assert [result.severity for result in report.results] == ["critical", severity]
    assert report.success == (severity != "critical")
    assert report.warnings == (severity == "warning")
    assert write_rejects(report, tmp_path / "rejects.jsonl") == 1
    assert json.loads((tmp_path / "rejects.jsonl").read_text()) == {
        "row_id": "b", "reason": "few words", "value": "500", "suite": "count", "batch": "", "severity": severity,
    }  # fmt: skip
    if severity == "critical":
        with pytest.raises(CheckFailed, match="few words: 1 of 2 rows fail, such as 500"):
            require(report)
    else:
        require(report)


def test_an_unknown_severity_is_refused() -> None:
    with pytest.raises(ValueError, match="'fatal' is no severity"):
        sentence("all is well", "fatal")


def test_rows_that_a_share_allows_are_kept_for_information(tmp_path: Path) -> None:
    texts = ["what is it?"] * 199 + ["bell \x07"]
    frame = questions_frame([f"q{n}" for n in range(200)], texts, [("a",)] * 200)
    report = run_suite(frame, questions_suite(), "question_id")
    assert report.success
    assert write_rejects(report, tmp_path / "rejects.jsonl") == 1
    line = json.loads((tmp_path / "rejects.jsonl").read_text())
    assert (line["row_id"], line["severity"], line["value"]) == ("q199", "info", "bell \x07")


def test_all_failing_rows_are_kept_and_written(tmp_path: Path) -> None:
    frame = pd.DataFrame({"row": [f"r{n}" for n in range(300)], "words": 500})
    report = run_suite(frame, _count_only(), "row")
    assert report.results[1].failing_rows == tuple(frame["row"])
    kept = keep_rejects([report, report], tmp_path / "rejects.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "rejects.jsonl").read_text().splitlines()]
    assert kept.rejects == len(lines) == 600
    assert [line["row_id"] for line in lines[:300]] == list(frame["row"])
    assert {line["value"] for line in lines} == {"500"}
    assert [len(one.results[1].failing_rows) for one in kept.reports] == [5, 5]
    assert json.loads(report.to_json())["n_rows"] == 300
    for one in (report, kept.reports[0]):
        with pytest.raises(CheckFailed, match="and 295 more"):
            require(one)


def test_a_report_survives_a_manifest() -> None:
    report = run_suite(pd.DataFrame({"row": ["a", "b"], "words": [5, 500]}), _count_only(), "row", "shard")
    facts = json.loads(json.dumps(report.facts()))
    assert facts["validation"] == {}
    again = report_from_facts(facts)
    assert again.results == report.results
    with pytest.raises(CheckFailed, match="the checks 'count' of shard failed over 2 rows"):
        require(again)


def test_case_g1_empty_data_fails() -> None:
    header_only = passages_frame(passages_table().slice(0, 0))
    for frame, suite in ((header_only, passages_suite()), (header_only, _count_only())):
        report = run_suite(frame, suite, "passage_id")
        with pytest.raises(CheckFailed, match=r"over 0 rows: at least one .*: found 0"):
            require(report)


def test_case_g1_a_suite_without_a_row_count_is_refused() -> None:
    for expectations in ([], [gxe.ExpectTableRowCountToBeBetween(max_value=5)]):
        suite = ExpectationSuite(name="weak", expectations=expectations)
        with pytest.raises(SuiteError, match="no minimum row count"):
            run_suite(pd.DataFrame({"row": [1]}), suite, "row")


def test_case_g3_a_metric_that_raises_is_a_critical_failure_with_its_reason() -> None:
    report = run_suite(pd.DataFrame({"row": [1]}), _count_only("warning"), "row")
    (failed,) = [result for result in report.results if not result.success]
    assert (failed.column, failed.severity, report.success) == ("words", "critical", False)
    assert 'The column "words"' in failed.message
    with pytest.raises(CheckFailed, match='The column "words"'):
        require(report)


def test_checks_leave_no_temporary_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run_suite(pd.DataFrame({"row": ["a"], "words": [5]}), _count_only(), "row")
    assert list(tmp_path.iterdir()) == []


def test_the_row_id_column_must_be_there() -> None:
    with pytest.raises(SuiteError, match="row id column 'id'"):
        run_suite(pd.DataFrame({"row": [1]}), _count_only(), "id")


def test_an_empty_column_of_findings_passes_and_a_filled_one_names_its_rows() -> None:
    expectations = [gxe.ExpectTableRowCountToBeBetween(min_value=1), none("found", "nothing is found")]
    suite = ExpectationSuite(name="findings", expectations=expectations)
    frame = pa.table({"row": ["a", "b"], "found": pa.array([None, "x"])}).to_pandas()
    assert _failed(run_suite(frame, suite, "row")) == {"nothing is found": ("b",)}
    assert run_suite(frame.iloc[:1], suite, "row").success


def test_questions() -> None:
    good = questions_frame(["q1", "q2"], ["Who?", "What?"], [("a",), ("b", "c")])
    assert run_suite(good, questions_suite(expected_rows=2), "question_id").success
    bad = questions_frame(["q1", "q1"], ["Who?", " "], [(), ("b", " ")])
    report = run_suite(bad, questions_suite(expected_rows=3), "question_id")
    assert _failed(report) == {
        "exactly 3 questions": (),
        "question ids are unique": ("q1", "q1"),
        "question texts are not blank": ("q1",),
        "every question has an answer": ("q1",),
        "no answer is blank": ("q1",),
    }
    assert {result.severity for result in report.results} == {"critical"}


def test_held_back_answers_may_be_allowed() -> None:
    suite = questions_suite(answers_required=False)
    (needed,) = [e.min_value for e in suite.expectations if getattr(e, "column", "") == "n_answers"]
    assert needed == 0


def test_train_test_overlap_finds_equal_texts_only() -> None:
    train = pd.DataFrame({"question_id": ["a", "b"], "text": ["Who is X?", "who is  x"]})
    test = pd.DataFrame({"question_id": ["c", "d"], "text": ["WHO IS X ?", "Who is Y?"]})
    assert [(found.train_ids, found.test_ids) for found in train_test_overlap(train, test)] == [(("a", "b"), ("c",))]
    assert train_test_overlap(train.iloc[:0], test) == []
    report = run_suite(overlap_frame(train, test), overlap_suite(), "split")
    assert report.problems() == [
        "at most 0 questions of the test split stand in the training split: 1 of 1 rows fail, such as 1 (rows test)"
    ]
