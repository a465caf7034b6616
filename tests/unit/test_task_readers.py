"""The four task readers: real files read whole, and every way a row can be broken gives a reject with its reason."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rag.errors import DataError
from rag.records import Question, TaskName
from rag.tasks import READERS, TaskFile, fever, jeopardy, msmarco, open_qa
from rag.tasks.table import read_questions, write_questions
from tests.support.shared_data import shared_data

NQ_LINE = '{"question": "who wrote emma", "answer": ["Jane Austen", "Austen"]}'
FEVER_LINE = json.dumps(
    {
        "id": 7,
        "verifiable": "VERIFIABLE",
        "label": "SUPPORTS",
        "claim": "Emma is a novel.",
        "evidence": [[[1, 2, "Emma_-LRB-novel-RRB-", 0]], [[1, 3, "Emma_-LRB-novel-RRB-", 4], [1, 3, "Highbury", 0]]],
    }
)


def _write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def _reasons(file: TaskFile) -> list[tuple[int, str]]:
    return [(reject.row, reject.reason) for reject in file.rejects]


@pytest.mark.parametrize(
    ("task", "parts", "rows"),
    [
        ("open-qa", ("nq_open", "NQ-open.dev.jsonl"), 3610),
        ("open-qa", ("nq_open", "NQ-open.efficientqa.dev.1.1.jsonl"), 1800),
        ("fever", ("fever", "paper_dev.jsonl.gz"), 9999),
        ("fever", ("fever", "fever_symmetric_dev.jsonl"), 708),
        ("jeopardy", ("jeopardy", "jeopardy_1k.json"), 1000),
        ("jeopardy", ("jeopardy", "jeopardy_20k.csv.gz"), 19999),
        ("jeopardy", ("jeopardy", "searchqa", "tiny_dataset.json"), 7),
        ("msmarco", ("msmarco", "train_v1.1.sample.jsonl"), 1),
    ],
)
def test_real_files_are_read_whole(task: TaskName, parts: tuple[str, ...], rows: int) -> None:
    file = READERS[task](shared_data(*parts))
    assert len(file.questions) == rows
    assert file.rejects == []
    assert len({question.question_id for question in file.questions}) == rows
    assert all(question.task == task and question.answers for question in file.questions)


def test_nq_answers_of_the_real_file_are_intact() -> None:
    path = shared_data("nq_open", "NQ-open.dev.jsonl")
    questions = open_qa.read(path).questions
    rows = [json.loads(line) for line in path.read_bytes().decode("utf-8").split("\n") if line]
    assert [(q.text, list(q.answers)) for q in questions] == [(row["question"], row["answer"]) for row in rows]
    assert questions[9].question_id == "NQ-open.dev:10"


def test_fever_of_the_real_file() -> None:
    questions = fever.read(shared_data("fever", "paper_dev.jsonl.gz")).questions
    labels = [question.answers[0] for question in questions]
    assert [labels.count(label) for label in fever.LABELS] == [3333, 3333, 3333]
    titles = {question.question_id: question.titles for question in questions}
    assert titles["91198"] == ()
    assert titles["137334"] == ("Soul Food (film)",)
    assert titles["111897"] == ("Telemundo", "Hispanic and Latino Americans")
    assert any("Penélope Cruz" in pages for pages in titles.values())  # in NFC, as Wikipedia has it


def test_evidence_sets_keep_their_pages_together(tmp_path: Path) -> None:
    (question,) = fever.read(_write(tmp_path, "one.jsonl", FEVER_LINE)).questions
    assert question.evidence == (("Emma (novel)",), ("Emma (novel)", "Highbury"))
    assert question.titles == ("Emma (novel)", "Highbury")
    pages = [["B", "A"], ["A", "B"], ["C", "C"], [None]]
    line = {"id": 1, "claim": "x", "label": "REFUTES", "evidence": [[[1, 2, page, 0] for page in own] for own in pages]}
    (question,) = fever.read(_write(tmp_path, "two.jsonl", json.dumps(line))).questions
    assert question.evidence == (("B", "A"), ("C",))
    assert question.titles == ("B", "A", "C")
    table = tmp_path / "questions.parquet"
    write_questions(table, {"test": [question, question._replace(question_id="2", titles=(), evidence=())]})
    assert read_questions(table, "test") == [question, Question("2", "fever", "x", ("REFUTES",))]


def test_evidence_sets_of_the_real_file() -> None:
    questions = fever.read(shared_data("fever", "paper_dev.jsonl.gz")).questions
    assert sum(not question.evidence for question in questions) == 3333
    assert all(set(question.titles) == {page for own in question.evidence for page in own} for question in questions)
    assert sum(min(map(len, question.evidence), default=0) > 1 for question in questions) == 553


def test_patterns_are_read_and_broken_ones_are_rejects(tmp_path: Path) -> None:
    patterns = ["19\\d\\d|P\\\u00e9tain", "(unclosed", "x*"]
    lines = [json.dumps({"question": f"q {pattern}", "answer": ["fine", pattern]}) for pattern in patterns]
    path = _write(tmp_path, "trec.jsonl", "\n".join(lines))
    assert len(open_qa.read(path).questions) == 3
    file = open_qa.read(path, patterns=True)
    assert [question.answers[1] for question in file.questions] == patterns[:1]
    assert [row for row, _ in _reasons(file)] == [2, 3]
    assert "'(unclosed' is no regular expression" in file.rejects[0].reason
    assert "'x*' fits the empty text" in file.rejects[1].reason


def test_the_real_patterns_are_all_read() -> None:
    file = open_qa.read(shared_data("curatedtrec", "curatedtrec-test.dpr.jsonl"), patterns=True)
    assert (len(file.questions), file.rejects) == (694, [])


def test_fever_files_without_labels_give_rejects(tmp_path: Path) -> None:
    file = fever.read(_write(tmp_path, "test.jsonl", '{"id": 1, "claim": "x"}\n'))
    assert _reasons(file) == [(1, "the field 'label' is missing; there are 'id', 'claim'")]


BROKEN_NQ: list[tuple[bytes, str]] = [
    (b'{"question": "who wrote emma", "answ', "not JSON: Unterminated string"),
    (b"", "empty line"),
    (b"[1, 2]", "not a JSON object but a list"),
    (b'{"question": "q"}', "the field 'answer' is missing; there are 'question'"),
    (b'{"answer": ["a"]}', "the field 'question' is missing"),
    (b'{"question": "q", "answer": "a"}', "'answer' is text, not a list of texts"),
    (b'{"question": "q", "answer": []}', "'answer' is an empty list"),
    (b'{"question": "q", "answer": ["a", 3]}', "'answer[1]' is a number, not text"),
    (b'{"question": "q", "answer": [" "]}', "'answer[0]' is empty"),
    (b'{"question": 5, "answer": ["a"]}', "'question' is a number, not text"),
    (b'{"question": null, "answer": ["a"]}', "'question' is null, not text"),
    (b'{"question": "q\\u0000", "answer": ["a"]}', "'question' holds a NUL character"),
    (b'{"question": "q\x00", "answer": ["a"]}', "not JSON: Invalid control character"),
    (b'{"question": "q \\ud800", "answer": ["a"]}', "'question' holds half a character at 2"),
    (b'{"question": "caf\xe9", "answer": ["a"]}', "not UTF-8 at byte 17"),
    (b"[" * 200_000, "not JSON that can be read: nested too deeply"),
]


@pytest.mark.parametrize(("line", "reason"), BROKEN_NQ)
def test_a_broken_line_is_a_reject_and_its_neighbours_are_read(tmp_path: Path, line: bytes, reason: str) -> None:
    good = NQ_LINE.encode()
    file = open_qa.read(_write(tmp_path, "nq.jsonl", b"\n".join([good, line, good]) + b"\n"))
    assert [question.question_id for question in file.questions] == ["nq:1", "nq:3"]
    assert [reject.row for reject in file.rejects] == [2]
    assert file.rejects[0].reason.startswith(reason)
    assert file.rejects[0].source == "nq.jsonl"
    assert len(file.rejects[0].text) <= 500


def test_byte_order_mark_crlf_and_line_separators_inside_a_question(tmp_path: Path) -> None:
    line = '{"question": "one\u2028two\u0085three", "answer": ["Zoë 東京 \\"x\\""]}'
    path = _write(tmp_path, "nq.jsonl", b"\xef\xbb\xbf" + f"{line}\r\n{NQ_LINE}".encode())
    file = open_qa.read(path)
    assert file.rejects == []
    assert [question.text for question in file.questions] == ["one\u2028two\u0085three", "who wrote emma"]
    assert file.questions[0].answers == ('Zoë 東京 "x"',)


def test_a_line_of_ten_megabytes_is_read(tmp_path: Path) -> None:
    long = json.dumps({"question": "q" * 10_000_000, "answer": ["a"]})
    file = open_qa.read(_write(tmp_path, "nq.jsonl", f"{long}\n{NQ_LINE}\n"))
    assert [len(question.text) for question in file.questions] == [10_000_000, 14]


def test_the_later_of_two_equal_ids_is_a_reject(tmp_path: Path) -> None:
    other = FEVER_LINE.replace("novel.", "film.")
    file = fever.read(_write(tmp_path, "dev.jsonl", f"{FEVER_LINE}\n{other}\n"))
    assert [question.text for question in file.questions] == ["Emma is a novel."]
    assert _reasons(file) == [(2, "id '7' is that of row 1")]


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("label", "MAYBE", "label 'MAYBE' is none of SUPPORTS, REFUTES, NOT ENOUGH INFO"),
        ("label", ["SUPPORTS"], "'label' is a list, not text"),
        ("id", None, "'id' is null, not text"),
        ("id", True, "'id' is true or false, not text"),
        ("claim", "", "'claim' is empty"),
        ("evidence", [["x"]], "'evidence' is not a list of sets"),
        ("evidence", [[[1, 2, 3, 4]]], "'evidence page' is a number, not text"),
    ],
)
def test_broken_fever_fields(tmp_path: Path, key: str, value: object, reason: str) -> None:
    row = json.loads(FEVER_LINE) | {key: value}
    file = fever.read(_write(tmp_path, "dev.jsonl", json.dumps(row)))
    assert file.questions == []
    assert file.rejects[0].reason.startswith(reason)


def test_fever_label_is_normalised_and_titles_are_decoded(tmp_path: Path) -> None:
    row = json.loads(FEVER_LINE) | {"label": " not  enough info"}
    question = fever.read(_write(tmp_path, "dev.jsonl", json.dumps(row))).questions[0]
    assert question.answers == ("NOT ENOUGH INFO",)
    assert question.titles == ("Emma (novel)", "Highbury")


def _msmarco(**columns: dict[str, Any]) -> str:
    keys = ["0", "1", "2", "10"]
    table: dict[str, dict[str, Any]] = {
        "answers": {key: ["short"] for key in keys},
        "passages": {key: [{"is_selected": 0, "passage_text": "t", "url": "u"}] for key in keys},
        "query": {key: f"what is {key}" for key in keys},
        "query_id": {key: 100 + place for place, key in enumerate(keys)},
        "query_type": {key: "DESCRIPTION" for key in keys},
        "wellFormedAnswers": {
            "0": ["It is nought.", "It\u0085is zero."],
            "1": "[]",
            "2": [],
            "10": ["No Answer Present."],
        },
    }
    for name, column in columns.items():
        table[name] |= column
    return json.dumps(table)


def test_msmarco_columns(tmp_path: Path) -> None:
    file = msmarco.read(_write(tmp_path, "dev_v2.1.json", _msmarco()))
    assert file.rejects == []
    assert [q.question_id for q in file.questions] == ["100", "101", "102", "103"]
    assert [q.answers for q in file.questions] == [("It is nought.", "It\u0085is zero."), (), (), ()]
    assert file.questions[3].text == "what is 10"


def test_msmarco_as_a_pretty_printed_file_with_byte_order_mark(tmp_path: Path) -> None:
    pretty = json.dumps(json.loads(_msmarco()), indent=1).replace("\n", "\r\n")
    assert len(msmarco.read(_write(tmp_path, "x.json", b"\xef\xbb\xbf" + pretty.encode())).questions) == 4


def test_msmarco_as_lines(tmp_path: Path) -> None:
    rows = [
        {"answers": ["a"], "query": "q1", "query_id": 1, "wellFormedAnswers": "[]"},
        {"answers": ["a"], "query": "q2", "query_id": 2, "wellFormedAnswers": ["A is a."]},
        {"answers": ["a"], "query": "q3", "query_id": 3},
        {"answers": ["No Answer Present"], "query": "q4", "query_id": 4},
    ]
    file = msmarco.read(_write(tmp_path, "x.jsonl", "\n".join(map(json.dumps, rows))))
    assert [q.answers for q in file.questions] == [(), ("A is a.",), ("a",), ()]


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("query_id", 100, "id '100' is that of row 1"),
        ("query", 3, "'query' is a number, not text"),
        ("wellFormedAnswers", "[oops]", "'wellFormedAnswers' is text, not a list of texts"),
        ("wellFormedAnswers", [4], "'wellFormedAnswers[0]' is a number, not text"),
    ],
)
def test_broken_msmarco_cells(tmp_path: Path, column: str, value: object, reason: str) -> None:
    file = msmarco.read(_write(tmp_path, "dev.json", _msmarco(**{column: {"1": value}})))
    assert [q.question_id for q in file.questions] == ["100", "102", "103"]
    assert _reasons(file) == [(2, reason)]


def test_a_cut_msmarco_file_is_an_error_not_an_empty_task(tmp_path: Path) -> None:
    path = _write(tmp_path, "dev.json", _msmarco()[:-40])
    with pytest.raises(DataError, match="fetch the file again"):
        msmarco.read(path)
    with pytest.raises(DataError, match="the column 'query_id' is not an object"):
        msmarco.read(_write(tmp_path, "dev.json", '{"query": {"0": "q"}, "query_id": [1]}'))


def test_jeopardy_layouts_agree(tmp_path: Path) -> None:
    old = [{"category": "X", "question": "'It\\'s \"the\" sea's end'", "answer": "Land\\'s End", "round": "J!"}]
    new = [{"Category": "X", "Question": "'the' sea, or 'it'", "Answer": "Land's End", "Value": 200}]
    table = 'Show Number, Air Date, Question, Answer\n1,2004-12-31,"It\'s ""the"" sea, then",Land\'s End\n'
    read = [
        jeopardy.read(_write(tmp_path, "old.json", json.dumps(old))),
        jeopardy.read(_write(tmp_path, "new.json", json.dumps(new))),
        jeopardy.read(_write(tmp_path, "new.csv", table)),
    ]
    assert [file.questions[0].text for file in read] == ["Land's End"] * 3
    clues = [file.questions[0].answers[0] for file in read]
    assert clues == ["It's \"the\" sea's end", "'the' sea, or 'it'", 'It\'s "the" sea, then']
    assert [file.questions[0].question_id for file in read] == ["old:1", "new:1", "new:2"]


def test_broken_jeopardy_rows(tmp_path: Path) -> None:
    rows = [{"question": "q", "answer": "a"}, {"question": "q"}, 3, {"question": " ", "answer": "a"}]
    file = jeopardy.read(_write(tmp_path, "j.json", json.dumps(rows)))
    assert len(file.questions) == 1
    assert [row for row, _ in _reasons(file)] == [2, 3, 4]
    table = b'\xef\xbb\xbf Question, Answer\r\n"q","a"\r\n"never closed,a\r\n"q"\r\n"q","a","b"\r\n"q2","a"\r\n'
    file = jeopardy.read(_write(tmp_path, "j.csv", table))
    assert [q.question_id for q in file.questions] == ["j:2", "j:6"]
    assert _reasons(file) == [
        (3, "not a row of CSV: unexpected end of data"),
        (4, "1 cells, the header has 2"),
        (5, "3 cells, the header has 2"),
    ]
    with pytest.raises(DataError, match="no columns Question and Answer but Clue, Answer"):
        jeopardy.read(_write(tmp_path, "x.csv", "Clue, Answer\na,b\n"))
    with pytest.raises(DataError, match="no JSON list of clues"):
        jeopardy.read(_write(tmp_path, "x.json", "{}"))


@pytest.mark.parametrize("task", list(READERS))
def test_a_missing_file_is_one_clear_line(task: TaskName, tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(DataError, match=r"^cannot read the task file .*; check the path in the study$") as caught:
            READERS[task](path)
        assert "\n" not in str(caught.value)


def test_packed_files(tmp_path: Path) -> None:
    packed = gzip.compress(f"{NQ_LINE}\n".encode())
    assert open_qa.read(_write(tmp_path, "nq.jsonl.gz", packed)).questions[0].question_id == "nq:1"
    with pytest.raises(DataError, match="cannot read the task file"):
        open_qa.read(_write(tmp_path, "cut.jsonl.gz", packed[:-12]))
    with pytest.raises(DataError, match="cannot read the task file"):
        open_qa.read(_write(tmp_path, "fake.jsonl.gz", b"not packed"))


def test_mutated_copies_of_the_real_files_lose_only_their_broken_rows(tmp_path: Path) -> None:
    lines = shared_data("nq_open", "NQ-open.dev.jsonl").read_bytes().split(b"\n")[:200]
    broken = [line for line, _ in BROKEN_NQ]
    mutated = [line for place, good in enumerate(lines) for line in ([good, broken[place % 15]])]
    file = open_qa.read(_write(tmp_path, "nq.jsonl", b"\r\n".join(mutated)))
    assert len(file.questions) == 200
    assert [reject.row for reject in file.rejects] == list(range(2, 401, 2))


def test_empty_files_have_no_questions(tmp_path: Path) -> None:
    assert open_qa.read(_write(tmp_path, "x.jsonl", "")) == TaskFile([], [])
    assert msmarco.read(_write(tmp_path, "x.json", "")) == TaskFile([], [])
    with pytest.raises(DataError, match="empty"):
        jeopardy.read(_write(tmp_path, "x.json", ""))
