"""The index swap and the paired comparisons, on small tables."""

from datetime import date
from pathlib import Path

import pytest

from rag.config import ExpectedValue, SwapConfig
from rag.errors import DataError
from rag.evaluation.compare import adjusted, compare, verdict
from rag.evaluation.scorer import QuestionScore
from rag.evaluation.swap import score_swap, swap_questions
from rag.records import Prediction

CONFIG = SwapConfig(
    model="m", facts="f", before_corpus="old", before_date=date(2016, 12, 20), after_corpus="new",
    after_date=date(2018, 12, 20),
)  # fmt: skip
TABLE = """position,country,holder,aliases,since,until
President of A,A,Ann Old,Old|A. Old,2010-01-01,2017-05-01
President of A,A,Bea New,,2017-05-01,
President of B,B,Cy Same,,2001-01-01,
King of C,C,Dan Gone,,,2016-12-20
King of C,C,Eve After,,2016-12-20,2018-12-20
King of C,C,Fay Last,,2018-12-20,
"""


def write(folder: Path, text: str = TABLE) -> Path:
    path = folder / "facts.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_only_changed_offices_are_asked_with_the_names_of_both_dates(tmp_path: Path) -> None:
    king, president = swap_questions(write(tmp_path), CONFIG)
    assert president.question.text == "Who is President of A?"
    assert (president.before, president.after) == (("Ann Old", "Old", "A. Old"), ("Bea New",))
    assert (king.before, king.after) == (("Eve After",), ("Fay Last",))  # a tenure begins on its first day


def test_answers_are_scored_against_both_dates(tmp_path: Path) -> None:
    questions = swap_questions(write(tmp_path), CONFIG)
    predictions = [
        Prediction("swap:President of A", "a. old", -1.0, None, (), 0.1),
        Prediction("swap:King of C", "", 0.0, None, (), 0.1, error="too long"),
    ]
    holds = {names: names != ("Bea New",) for one in questions for names in (one.before, one.after)}
    rows = score_swap(questions, predictions, ("old", "new"), "old", holds, lambda text: "y" not in text)
    by_cell = {(row.position, row.answers_of): row for row in rows}
    assert by_cell["President of A", "old"].correct is True
    assert by_cell["President of A", "new"].correct is False
    assert by_cell["President of A", "new"].answer_in_index is False
    assert by_cell["King of C", "old"].correct is None  # failed: counted, not wrong
    assert by_cell["King of C", "new"].spellable is False


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("position,holder\nx,y\n", "lacks the columns"),
        (TABLE.replace("2017-05-01,\n", "2017-5,\n"), "line 3: '2017-5'"),
        ("position,country,holder,aliases,since,until\nP,C,H,,2000-01-01,\n", "nothing changed"),
    ],
)
def test_a_wrong_table_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        swap_questions(write(tmp_path, text), CONFIG)


@pytest.mark.parametrize(
    ("low", "value", "high", "expected"),
    [(0.4, 0.5, 0.6, "ok"), (0.4, 0.56, 0.7, "cannot tell"), (0.56, 0.6, 0.7, "differs"), (0.1, 0.2, 0.4, "differs")],
)
def test_an_expectation_is_judged_by_tolerance_and_interval(
    low: float, value: float, high: float, expected: str
) -> None:
    assert verdict(low, value, high, ExpectedValue(value=0.5, tolerance=0.05, source="s")) == expected


def test_models_are_compared_on_shared_questions_only() -> None:
    a = [QuestionScore(str(i), "exact_match", 1.0) for i in range(20)]
    b = [QuestionScore(str(i), "exact_match", float(i % 4 == 0)) for i in range(4, 24)]
    one = compare("qa", "exact_match", ("a", "b"), {"a": a, "b": b}, seed=0)
    assert one is not None
    assert (one.n, one.test) == (16, "mcnemar exact")
    assert one.difference == pytest.approx(0.75)
    assert one.p_value == pytest.approx(2 * 0.5**12)
    assert compare("qa", "exact_match", ("a", "b"), {"a": a[:2], "b": b}, seed=0) is None
    assert [pair.p_adjusted for pair in adjusted([one, one._replace(p_value=0.5)])] == [2 * one.p_value, 0.5]
