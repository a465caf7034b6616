"""What must hold for a corpus and its questions, and between two snapshots of a source."""

from typing import Any

import pytest

from data_checks.drift import drift_frame, drift_suite, total_variation
from data_checks.passages import check_coverage
from data_checks.runner import run_suite


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
