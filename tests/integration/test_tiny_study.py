"""A whole study in miniature through the command line: once, again, elsewhere, killed, and checked."""

import json
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from tests.support.cli import openbook, start
from tests.support.tiny_study import write_tiny_study

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

_RESULTS = {
    "predictions": "model, task, corpus, question_id, text, logprob, cited_passage_id, error",
    "retrieved_passages": "model, task, corpus, question_id, rank, passage_id, doc_score, prior, posterior",
    "token_posteriors": "model, task, corpus, question_id, tokens, posteriors",
    "metrics": "model, task, corpus, name, value, low, high, n, n_expected, n_errors",
    "swap_answers": "model, corpus, answers_of, question_id, prediction, correct",
    "comparisons": "task, metric, model_a, model_b, difference, p_value",
    "questions": "task, split, question_id, text",
    "index_recall": "corpus, kind, k, recall",
    "index_sweep": "corpus, kind, point, ef_search, nprobe, rerank, configured, k, recall",
    "expected": "cell, value, measured, verdict",
    "checks": "stage, name, suite, expectation, column_name, ordinal, success",
}


class Finished:
    """A workspace in which the study has run to its end."""

    def __init__(self, folder: Path) -> None:
        self.study = write_tiny_study(folder / "study")
        self.workspace = folder / "workspace"
        self.first = openbook("run", str(self.study), workspace=self.workspace)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    result = Finished(tmp_path_factory.mktemp("finished"))
    assert result.first.returncode == 0, result.first.stderr
    return result


def results(workspace: Path) -> dict[str, list[tuple[Any, ...]]]:
    with duckdb.connect(str(workspace / "database" / "results.duckdb"), read_only=True) as connection:
        return {
            table: connection.execute(f"SELECT {columns} FROM {table} ORDER BY ALL").fetchall()
            for table, columns in _RESULTS.items()
        }


def test_the_first_run_leaves_tables_a_report_and_nothing_half_done(finished: Finished) -> None:
    output = finished.first.stdout
    assert "Open-domain question answering" in output
    report = Path(output.rsplit("Report: ", 1)[1].strip())
    assert "A study in miniature" in report.read_text(encoding="utf-8")
    found = results(finished.workspace)
    assert all(found.values()), [table for table, rows in found.items() if not rows]
    assert [row[3] for row in found["expected"]] in (["ok", "missing"], ["missing", "ok"])
    assert {row[0] for row in found["metrics"]} == {"rag-token", "rag-sequence", "closed-book", "retriever:dense"}
    assert len(found["swap_answers"]) == 4 * 2 * 2  # offices, indexes, sets of answers
    assert not list(finished.workspace.glob("artifacts/*/*.partial"))
    assert "Traceback" not in finished.first.stderr


def test_lineage_reaches_from_metrics_to_the_passages(finished: Finished) -> None:
    with duckdb.connect(str(finished.workspace / "database" / "results.duckdb"), read_only=True) as connection:
        stages = connection.execute(
            """WITH RECURSIVE up(fingerprint) AS (
                 SELECT DISTINCT fingerprint FROM metrics WHERE model = 'rag-sequence'
                 UNION SELECT parent_fingerprint FROM lineage JOIN up ON child_fingerprint = fingerprint)
               SELECT DISTINCT stage FROM up JOIN artifacts USING (fingerprint)"""
        ).fetchall()
    assert {stage for (stage,) in stages} >= {
        "metrics", "predictions", "model", "index", "vectors", "passages", "questions", "generator",
    }  # fmt: skip


def test_parquet_beside_the_database_has_the_same_rows(finished: Finished) -> None:
    for table, rows in results(finished.workspace).items():
        copy = pq.read_metadata(finished.workspace / "database" / "parquet" / f"{table}.parquet")
        assert copy.num_rows == len(rows), table


def test_a_second_run_computes_nothing_and_says_so(finished: Finished) -> None:
    before = results(finished.workspace)
    again = openbook("run", str(finished.study), workspace=finished.workspace)
    assert again.returncode == 0, again.stderr
    assert "nothing recomputed" in again.stdout
    assert results(finished.workspace) == before


def test_a_change_recomputes_what_depends_on_it_and_says_why(finished: Finished) -> None:
    changed = openbook("run", str(finished.study), "--set", "tasks.qa.max_new_tokens=3", workspace=finished.workspace)
    assert changed.returncode == 0, changed.stderr
    computed = [line for line in changed.stdout.splitlines() if " in " in line and ": cached" not in line]
    stages = {line.split(" ", 1)[0] for line in computed}
    assert {"predictions", "metrics", "comparisons", "swap"} <= stages
    assert not {"passages", "vectors", "index", "model", "questions"} & stages
    assert "max_new_tokens changed: 4 -> 3" in changed.stdout


def test_another_workspace_gives_identical_predictions(finished: Finished, tmp_path: Path) -> None:
    other = openbook("run", str(finished.study), workspace=tmp_path / "other")
    assert other.returncode == 0, other.stderr
    assert results(tmp_path / "other") == _of_one_run(finished)


# What exists at a moment in the middle of each kind of work.
_MOMENTS = (
    "artifacts/passages/*",
    "artifacts/vectors/*",
    "artifacts/model/rag-token-*.partial/.resume/*",
    "artifacts/predictions/*",
    "artifacts/metrics/rag-sequence*",
)


def test_a_study_killed_at_five_moments_ends_with_the_same_results(finished: Finished, tmp_path: Path) -> None:
    workspace = tmp_path / "killed"
    for moment in _MOMENTS:
        process = start("run", str(finished.study), workspace=workspace)
        deadline = time.monotonic() + 120
        while not list(workspace.glob(moment)) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert process.poll() is None, f"the study ended before {moment} was there"
        process.kill()
        process.wait()
    last = openbook("run", str(finished.study), workspace=workspace)
    assert last.returncode == 0, last.stderr
    assert results(workspace) == _of_one_run(finished)
    assert not list(workspace.glob("artifacts/*/*.partial"))


def _of_one_run(finished: Finished) -> dict[str, list[tuple[Any, ...]]]:
    """The results of the unchanged study alone; another test may have added a changed one."""
    with duckdb.connect(str(finished.workspace / "database" / "results.duckdb"), read_only=True) as connection:
        runs = connection.execute("SELECT run_id FROM runs ORDER BY started_at").fetchall()
        first = str(finished.first.stdout.rsplit("reports/", 1)[1].strip().removesuffix(".html"))
        assert (first,) in runs
        return {
            table: connection.execute(
                f"SELECT {columns} FROM {table} WHERE run_id = ? ORDER BY ALL", [first]
            ).fetchall()
            for table, columns in _RESULTS.items()
        }


def test_verify_recomputes_every_metric_and_notices_a_changed_byte(finished: Finished) -> None:
    run = finished.first.stdout.rsplit("reports/", 1)[1].strip().removesuffix(".html")
    good = openbook("verify", run, workspace=finished.workspace)
    assert good.returncode == 0, good.stderr
    assert f"{run}: verified" in good.stdout
    # another test may have added those of a changed study
    victims = list(finished.workspace.glob("artifacts/predictions/rag-token.qa-*/predictions.parquet"))
    contents = [victim.read_bytes() for victim in victims]
    try:
        for victim, content in zip(victims, contents, strict=True):
            victim.write_bytes(content[:-20] + bytes([content[-20] ^ 1]) + content[-19:])
        bad = openbook("verify", run, workspace=finished.workspace)
    finally:
        for victim, content in zip(victims, contents, strict=True):
            victim.write_bytes(content)
    assert bad.returncode == 13
    assert "predictions.parquet has changed" in bad.stderr


def test_answers_from_passages_that_the_model_was_not_trained_with_say_so(finished: Finished) -> None:
    def caveats(pattern: str) -> list[str | None]:
        manifests = list(finished.workspace.glob(f"artifacts/predictions/{pattern}/manifest.json"))
        assert manifests
        return [json.loads(path.read_bytes())["facts"]["caveat"] for path in manifests]

    assert all("was trained with the passages" in str(one) for one in caveats("rag-token.swap-2016-*"))
    assert {*caveats("rag-token.swap-2018-*"), *caveats("*.qa-*"), *caveats("*.fever-*")} == {None}


def test_a_model_counts_the_steps_of_its_start_and_says_that_it_was_of_another_family(finished: Finished) -> None:
    (model,) = finished.workspace.glob("artifacts/model/rag-sequence-*")
    assert json.loads((model / "rag.json").read_bytes())["trained_steps"] == 6 + 2
    caveat = json.loads((model / "manifest.json").read_bytes())["facts"]["caveat"]
    assert caveat == "it starts from a rag-token model and is trained on as rag-sequence"


def test_search_ask_query_and_report(finished: Finished) -> None:
    def run(*arguments: str) -> str:
        result = openbook(*arguments, workspace=finished.workspace)
        assert result.returncode == 0, result.stderr
        return result.stdout

    study = str(finished.study)
    assert "king of peru" in run("search", "who is the king of peru", "--study", study, "--index", "2016")
    other = run("ask", "who is the king of peru", "--study", study, "--index", "2016")
    assert "posterior" in other
    assert "caution: the model was trained with the passages" in " ".join(other.split())
    assert "caution" not in run("ask", "who is the king of peru", "--study", study, "--index", "2018")
    assert "rag-token\tqa" in run("query", "SELECT DISTINCT model, task FROM metrics ORDER BY ALL")
    assert run("report", "--format", "md").strip().endswith(".md")
    refused = openbook("query", "DROP TABLE metrics", workspace=finished.workspace)
    assert (refused.returncode, "read-only" in refused.stderr) == (1, True)
