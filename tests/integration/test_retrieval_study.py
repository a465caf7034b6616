"""A study of retrievers alone, through the command line: what it scores, that it proves it, and what it refuses."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.support.cli import openbook
from tests.support.tiny_study import COUNTRIES, write_tiny_study

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

_RETRIEVERS = ("dense", "bm25", "hybrid")
_RETRIEVAL = f"""
[models]

[retrieval]
retrievers = {json.dumps(_RETRIEVERS)}
at = [1, 2, 20]
"""


def _write_study(folder: Path) -> Path:
    """The tiny study without models; its answers are patterns, and one of its claims has evidence on two pages."""
    study = write_tiny_study(folder)
    text = study.read_text(encoding="utf-8").partition("[models.rag-token]")[0]
    text = text.replace('train = "qa-train.jsonl"\n', 'answers = "patterns"\n')
    study.write_text(text + _RETRIEVAL, encoding="utf-8")
    questions = [{"question": f"the capital of {one}", "answer": [f"^the king of {one}"]} for one in COUNTRIES]
    broken = {"question": "the capital of nothing", "answer": ["(unclosed"]}
    _write_lines(folder / "qa-test.jsonl", [*questions, broken])
    one_page = [
        {"id": number, "claim": f"the king of {one}", "label": "SUPPORTS", "evidence": [[[1, 1, f"King_of_{one}", 0]]]}
        for number, one in enumerate(COUNTRIES)
    ]
    pages = [[1, 1, "peru", 0], [1, 1, "king_of_peru", 0]]
    more = [
        {"id": 10, "claim": "peru is the king of peru", "label": "REFUTES", "evidence": [pages]},
        {"id": 11, "claim": "lima is the river", "label": "NOT ENOUGH INFO", "evidence": [[[1, 1, None, None]]]},
    ]
    _write_lines(folder / "fever-test.jsonl", [*one_page, *more])
    return study


def _write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


class Finished:
    """A workspace in which the study has run to its end."""

    def __init__(self, folder: Path) -> None:
        self.study = _write_study(folder / "study")
        self.workspace = folder / "workspace"
        self.first = openbook("run", str(self.study), workspace=self.workspace)

    @property
    def database(self) -> Path:
        return self.workspace / "database" / "results.duckdb"

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.database), read_only=True) as connection:
            return connection.execute(sql).fetchall()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    result = Finished(tmp_path_factory.mktemp("retrieval"))
    assert result.first.returncode == 0, result.first.stderr
    return result


def test_every_retriever_is_scored_on_every_corpus_and_task(finished: Finished) -> None:
    found = defaultdict(set)
    for model, task, corpus, name, n in finished.query("SELECT model, task, corpus, name, n FROM metrics"):
        found[model, task, corpus].add((name, n))
    assert set(found) == {
        (f"retriever:{kind}", task, corpus)
        for kind in _RETRIEVERS
        for task in ("qa", "fever")
        for corpus in ("2016", "2018")
    }
    for (_, task, _), metrics in found.items():
        names = {name for name, _ in metrics}
        assert ("answer_in_passage_at_2" in names, "evidence_at_2" in names) == (task == "qa", task == "fever")
        assert not any(name.endswith("_at_20") for name in names)  # there are eight passages
        assert {n for _, n in metrics} == {4 if task == "qa" else 5}
    rejects = finished.query("SELECT reason FROM rejects WHERE stage = 'questions'")
    assert [reason.startswith("answer pattern '(unclosed' is no regular expression") for (reason,) in rejects] == [True]


@pytest.mark.parametrize("kind", _RETRIEVERS)
def test_metrics_follow_from_the_stored_passages(finished: Finished, kind: str) -> None:
    (folder,) = finished.workspace.glob(f"artifacts/retrieved/2018-{kind}-*")
    lists: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in pq.read_table(folder / "retrieved.parquet").to_pylist():
        lists[row["task"], row["question_id"]].append(row)
    for rows in lists.values():
        assert [row["rank"] for row in rows] == list(range(len(rows)))
        assert [row["doc_score"] for row in rows] == sorted((row["doc_score"] for row in rows), reverse=True)
    held = [
        any(row["text"].startswith(f"the king of {one}") for row in lists["qa", f"qa-test:{number}"][:2])
        for number, one in enumerate(COUNTRIES, start=1)
    ]
    kings = [
        any(row["title"] == f"king of {one}" for row in lists["fever", str(number)][:1])
        for number, one in enumerate(COUNTRIES)
    ] + [any(row["title"] in ("peru", "king of peru") for row in lists["fever", "10"][:1])]
    values = dict(
        finished.query(f"SELECT name, value FROM metrics WHERE model = 'retriever:{kind}' AND corpus = '2018'")
    )
    assert values["answer_in_passage_at_2"] == sum(held) / 4
    assert values["gold_title_at_1"] == sum(kings) / 5


def test_it_verifies_until_a_number_is_changed(finished: Finished) -> None:
    run = finished.query("SELECT run_id FROM runs")[0][0]
    good = openbook("verify", run, workspace=finished.workspace)
    assert good.returncode == 0, good.stderr
    content = finished.database.read_bytes()
    try:
        with duckdb.connect(str(finished.database)) as connection:
            connection.execute("UPDATE metrics SET value = 0.123 WHERE name = 'r_precision' AND corpus = '2016'")
        bad = openbook("verify", run, workspace=finished.workspace)
        with duckdb.connect(str(finished.database)) as connection:
            connection.execute("DELETE FROM metrics WHERE name = 'r_precision'")
        fewer = openbook("verify", run, workspace=finished.workspace)
    finally:
        finished.database.write_bytes(content)
    assert bad.returncode == fewer.returncode == 13
    assert "retriever:dense fever r_precision: value is stored as 0.123" in bad.stderr
    assert "metric fever/r_precision" in fewer.stderr


def test_a_second_run_computes_nothing(finished: Finished) -> None:
    again = openbook("run", str(finished.study), workspace=finished.workspace)
    assert again.returncode == 0, again.stderr
    assert "nothing recomputed" in again.stdout


def test_another_rank_scores_again_and_searches_only_if_it_must(finished: Finished) -> None:
    changed = openbook("run", str(finished.study), "--set", "retrieval.at=[1, 3, 20]", workspace=finished.workspace)
    assert changed.returncode == 0, changed.stderr
    computed = {
        line.split(" ", 1)[0] for line in changed.stdout.splitlines() if " in " in line and ": cached" not in line
    }
    assert "retrieval-metrics" in computed
    assert not {"retrieved", "vectors", "index", "bm25", "questions"} & computed


def test_sources_in_another_order_are_another_index(finished: Finished) -> None:
    """Rows are numbered through all sources: with the same index every row would name a wrong passage."""
    for order in ('["wiki-2016", "wiki-2018"]', '["wiki-2018", "wiki-2016"]'):
        both = openbook("run", str(finished.study), "--set", f"corpora.both={order}", workspace=finished.workspace)
        assert both.returncode == 0, both.stderr
        made = {line.split(":", 1)[0] for line in both.stdout.splitlines() if ": cached" not in line}
        assert {"bm25 both", "index both", "recall both", "retrieved both-hybrid"} <= made
