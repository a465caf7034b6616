"""An answer on a terminal of 100 columns."""

import pytest

from flows.ask_model import Asked
from flows.print_answer import print_answer, snippet
from rag.records import Candidate, Prediction, RetrievedPassage, TokenEvidence

LONG = " ".join(f"word{number}" for number in range(60)) + " Lima stands here " + "and on " * 30
PASSAGES = (
    RetrievedPassage("asked", 0, "w:1:0", "Peru", LONG, 9.0, 0.7, 0.2),
    RetrievedPassage("asked", 1, "w:2:0", "[bold]Lima[/bold]", "Lima is the capital of Peru.", 8.0, 0.3, 0.8),
)
TOKENS = (
    TokenEvidence("Lima", (0.1, 0.9)),
    TokenEvidence(", of", (0.3, 0.7)),
    TokenEvidence(" Peru", (0.6, 0.4)),
    TokenEvidence("", (0.5, 0.5)),
)
MADE = Prediction(
    "asked", "Lima, of Peru", -0.5, "w:2:0", PASSAGES, 0.25, tokens=TOKENS,
    candidates=(Candidate("Lima, of Peru", -0.5), Candidate("Lima", -2.0)),
)  # fmt: skip
ASKED = Asked(
    "what is the capital", MADE, "rag-token", "2018", {"w:1:0": "https://x.org/w/index.php?oldid=7", "w:2:0": ""}
)


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


def test_citations_come_by_posterior_with_their_links(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(ASKED)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Lima, of Peru"
    assert lines[1] == "log p -0.50; rag-token over 2018, 2 passages, 250 ms"
    first = lines.index("[1] [bold]Lima[/bold]  cited, posterior 0.80, prior 0.30, w:2:0")  # markup of a title is text
    second = lines.index("[2] Peru  posterior 0.20, prior 0.70, w:1:0")
    assert lines[first + 1] == "    Lima is the capital of Peru."
    assert second > first
    assert lines[-1] == "    https://x.org/w/index.php?oldid=7"
    assert max(map(len, lines)) <= 100


def test_parts_of_an_answer_name_the_citation_that_they_lean_on(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(ASKED)
    assert "    Lima, of [1: 0.80]  Peru [2: 0.60]" in capsys.readouterr().out.splitlines()


def test_candidates_say_how_many_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(ASKED, candidates=1)
    assert "distinct" not in capsys.readouterr().out
    print_answer(ASKED, candidates=5)
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("2 distinct answers of 5 looked for, with log p:")
    assert lines[place + 1 : place + 3] == ["       -0.50  Lima, of Peru", "       -2.00  Lima"]


def test_a_question_without_answer_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    failed = Prediction("asked", "", float("-inf"), None, (), 0.1, "no passage was found")
    print_answer(ASKED._replace(prediction=failed))
    assert capsys.readouterr().out == "no answer: no passage was found\n"


def test_a_snippet_is_where_the_answer_stands() -> None:
    assert "Lima stands here" in snippet(LONG, "Lima")
    assert snippet(LONG, "Lima").startswith("… ")
    assert snippet(LONG, "Cusco").startswith("word0 word1")
    assert snippet("all of it", "of") == "all of it"
