"""An answer on a terminal of 100 columns."""

from collections.abc import Sequence

import pytest

from flows.ask_model import Asked, Search
from flows.print_answer import print_answer, snippet
from flows.result_tables import print_search
from rag.records import Candidate, LabelProb, Passage, Prediction, RetrievedPassage, TokenEvidence
from rag.retrieval.results import SearchResult
from rag.retrieval.retriever import Retrieved, with_passages
from tests.support.tiny_rag import Rows

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
    assert snippet("İ" * 30 + " a b c d e f g h Lima i j k l m", "lima", words=3) == "… h Lima i …"
    assert snippet("this is " + "a " * 60 + "it stands", "IT", words=2) == "… a it …"  # no part of another word


def test_a_label_comes_with_the_probability_of_every_label(capsys: pytest.CaptureFixture[str]) -> None:
    labels = (LabelProb("REFUTES", 0.2), LabelProb("SUPPORTS", 0.8))
    print_answer(ASKED._replace(prediction=MADE._replace(candidates=(), label_probs=labels)), candidates=5)
    shown = capsys.readouterr().out
    assert "The probability of every label:\n        0.80  SUPPORTS\n        0.20  REFUTES\n" in shown
    assert "distinct" not in shown


def test_what_is_not_as_in_training_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer(ASKED._replace(caveat="the model was trained with other passages"))
    assert "caution: the model was trained with other passages" in capsys.readouterr().out.splitlines()


class _Finds:
    """A retriever that finds one passage, whatever it is asked."""

    def __init__(self, passage: Passage) -> None:
        self._passages = Rows([passage])

    def retrieve(self, questions: Sequence[str], n_docs: int) -> Retrieved:
        found = SearchResult.empty(len(questions), n_docs)
        found.mask[:] = True
        return with_passages(found, self._passages)

    def finds(self, questions: Sequence[str]) -> list[bool]:
        return [True] * len(questions)


def test_no_text_of_others_reaches_the_terminal_as_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\x1b[2JLima\x07\x9b"
    passage = PASSAGES[0]._replace(title=evil, text=f"text {evil}")
    tokens, candidates = (TokenEvidence(evil, (1.0,)),), (Candidate(evil, -1.0),)
    labels = (LabelProb(evil, 1.0),)
    made = MADE._replace(text=evil, retrieved=(passage,), tokens=tokens, candidates=candidates)
    for one in (made, made._replace(label_probs=labels), made._replace(error=evil)):
        print_answer(ASKED._replace(prediction=one, caveat=evil), candidates=2)
    print_search(Search("c", "bm25", _Finds(Passage("w:1:0", evil, evil, 1, 1)), {"w": ""}), [evil], 1)
    shown = capsys.readouterr().out
    assert shown.count("Lima") > 10
    assert not {"\x1b", "\x07", "\x9b"} & {*shown}
