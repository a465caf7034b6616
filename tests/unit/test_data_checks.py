"""Data checks: an injected bad row is named, empty data fails, and a broken metric is a failure."""

import json
import re
from pathlib import Path

import great_expectations.expectations as gxe
import pandas as pd
import pytest
from great_expectations.core.expectation_suite import ExpectationSuite

from data_checks.errors import CheckFailed, SuiteError
from data_checks.passages import CONTROL_CHARACTERS, MARKUP, corpus_suite, passages_suite
from data_checks.questions import questions_frame, questions_suite, train_test_overlap
from data_checks.runner import CheckReport, require, run_suite, write_rejects


def _passages(*changes: tuple[int, str, object]) -> pd.DataFrame:
    """Ten good passages; each change puts a value into a row and column."""
    frame = pd.DataFrame(
        {
            "passage_id": [f"s:{n}:0" for n in range(10)],
            "title": [f"Title {n}" for n in range(10)],
            "text": [f"Some text of passage {n}." for n in range(10)],
            "page_id": range(1, 11),
            "words": [5] * 10,
        }
    )
    for row, column, value in changes:
        frame.loc[row, column] = value
    return frame


def _count_only() -> ExpectationSuite:
    """The cheapest suite: each expectation costs Great Expectations tens of milliseconds."""
    count = gxe.ExpectTableRowCountToBeBetween(min_value=1, notes="at least one row")
    return ExpectationSuite(
        name="count", expectations=[count, gxe.ExpectColumnValuesToBeBetween(column="words", max_value=100)]
    )


def _failed(report: CheckReport) -> dict[str, tuple[str, ...]]:
    return {result.message.partition(":")[0]: result.failing_rows for result in report.results if not result.success}


def test_good_passages_pass() -> None:
    report = run_suite(_passages(), passages_suite(), "passage_id")
    assert report.success
    assert report.n_rows == 10
    require(report)


def test_injected_bad_passages_are_named() -> None:
    frame = _passages(
        (0, "text", "left [[markup"),
        (1, "text", "bell \x07"),
        (2, "text", "   "),
        (3, "text", None),
        (4, "title", ""),
        (5, "words", 101),
        (6, "words", 0),
        (7, "page_id", 0),
        (9, "passage_id", "s:8:0"),
    )
    report = run_suite(frame, passages_suite(), "passage_id")
    assert _failed(report) == {
        "passage ids are unique": ("s:8:0", "s:8:0"),
        "titles are not blank": ("s:4:0",),
        "every passage has a text": ("s:3:0",),
        "texts are not blank": ("s:2:0",),
        "passages have 1 to 100 words": ("s:5:0", "s:6:0"),
        "no wikitext is left in the text": ("s:0:0",),
        "no control characters are in the text": ("s:1:0",),
        "page ids are positive": ("s:7:0",),
    }
    with pytest.raises(CheckFailed, match=r"no wikitext is left.*rows s:0:0.*are in /somewhere/rejects\.jsonl"):
        require(report, Path("/somewhere/rejects.jsonl"))


def test_all_failing_rows_are_kept_and_written(tmp_path: Path) -> None:
    frame = pd.DataFrame({"row": [f"r{n}" for n in range(300)], "words": 500})
    report = run_suite(frame, _count_only(), "row")
    assert report.results[1].failing_rows == tuple(frame["row"])
    assert write_rejects(report, tmp_path / "rejects.jsonl") == 300
    first = json.loads((tmp_path / "rejects.jsonl").read_text().splitlines()[0])
    assert first["row_id"] == "r0"
    assert "300 of 300 rows fail" in first["reason"]
    assert json.loads(report.to_json())["n_rows"] == 300
    with pytest.raises(CheckFailed, match="and 295 more"):
        require(report)


def test_empty_data_fails() -> None:
    report = run_suite(_passages().iloc[:0], _count_only(), "passage_id")
    with pytest.raises(CheckFailed, match="over 0 rows: at least one row: found 0"):
        require(report)


def test_a_metric_that_raises_is_a_failure_with_its_reason() -> None:
    report = run_suite(_passages().drop(columns="words"), _count_only(), "passage_id")
    (failed,) = [result for result in report.results if not result.success]
    assert failed.column == "words"
    assert 'The column "words"' in failed.message


def test_a_suite_without_a_row_count_is_refused() -> None:
    for expectations in ([], [gxe.ExpectTableRowCountToBeBetween(max_value=5)]):
        suite = ExpectationSuite(name="weak", expectations=expectations)
        with pytest.raises(SuiteError, match="no minimum row count"):
            run_suite(_passages(), suite, "passage_id")


def test_the_row_id_column_must_be_there() -> None:
    with pytest.raises(SuiteError, match="row id column 'id'"):
        run_suite(_passages(), passages_suite(), "id")


def test_a_share_of_markup_may_be_allowed() -> None:
    (markup,) = [e for e in passages_suite(max_markup_share=0.1).expectations if e.notes and "wikitext" in e.notes]
    assert markup.mostly == 0.9


@pytest.mark.parametrize("text", ["{{x}}", "a [[b", "'''b'''", "x <ref>", "<ref name=a>", "a |- b", "a&nbsp;b"])
def test_markup_is_recognised(text: str) -> None:
    assert re.search(MARKUP, text)


@pytest.mark.parametrize("text", ["a - b", "f(x) = [1]", "it's 'so'", "x < y", "1914–18 | 1939", "<reference> AT&T"])
def test_ordinary_text_is_no_markup(text: str) -> None:
    assert not re.search(MARKUP, text)
    assert not re.search(CONTROL_CHARACTERS, text)


def test_corpus_sums() -> None:
    sums = {"corpus": "2016", "pages": 206, "articles": 98, "passages": 4588, "empty_share": 0.0}
    sums |= {"duplicate_share": 0.01, "unaccounted_pages": 0}
    assert run_suite(pd.DataFrame([sums]), corpus_suite(), "corpus").success
    bad = sums | {"unaccounted_pages": 2, "duplicate_share": 0.5}
    assert _failed(run_suite(pd.DataFrame([bad]), corpus_suite(), "corpus")) == {
        "every page is counted once": ("2016",),
        "at most 20.0% of the passages repeat another": ("2016",),
    }


def test_questions() -> None:
    good = questions_frame(["q1", "q2"], ["Who?", "What?"], [("a",), ("b", "c")])
    assert run_suite(good, questions_suite(expected_rows=2), "question_id").success
    bad = questions_frame(["q1", "q1"], ["Who?", " "], [(), ("b", " ")])
    assert _failed(run_suite(bad, questions_suite(expected_rows=3), "question_id")) == {
        "exactly 3 questions": (),
        "question ids are unique": ("q1", "q1"),
        "question texts are not blank": ("q1",),
        "every question has an answer": ("q1",),
        "no answer is blank": ("q1",),
    }


def test_held_back_answers_may_be_allowed() -> None:
    suite = questions_suite(answers_required=False)
    (needed,) = [e.min_value for e in suite.expectations if getattr(e, "column", "") == "n_answers"]
    assert needed == 0


def test_train_test_overlap_finds_equal_texts_only() -> None:
    train = pd.DataFrame({"question_id": ["a", "b"], "text": ["Who is X?", "who is  x"]})
    test = pd.DataFrame({"question_id": ["c", "d"], "text": ["WHO IS X ?", "Who is Y?"]})
    assert [(found.train_ids, found.test_ids) for found in train_test_overlap(train, test)] == [(("a", "b"), ("c",))]
    assert train_test_overlap(train.iloc[:0], test) == []
