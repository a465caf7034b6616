"""A study that sweeps n_docs, classifies by a head and calibrates it: stored, shown, and verified."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.support.cli import openbook
from tests.support.tiny_study import write_tiny_study

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

_OPTIONS = (
    "models.rag-token.sweep_n_docs=[3, 1]", "models.rag-token.steps=40", "models.rag-token.learning_rate=1e-2",
    "models.rag-token.dropout=false", "tasks.fever.dev=fever-train.jsonl", "tasks.fever.calibrate=true",
    "tasks.fever.classification=head",
)  # fmt: skip


class Finished:
    """A workspace in which the study has run to its end."""

    def __init__(self, folder: Path) -> None:
        study = write_tiny_study(folder / "study")
        self.workspace = folder / "workspace"
        self.study = [str(study), *(part for option in _OPTIONS for part in ("--set", option))]
        self.output = self.run("run", *self.study)
        self.run_id = self.output.rsplit("reports/", 1)[1].strip().removesuffix(".html")

    def run(self, *arguments: str) -> str:
        result = openbook(*arguments, workspace=self.workspace)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def ask(self, *arguments: str) -> str:
        study, *options = self.study
        return self.run("ask", *arguments, "--study", study, *options)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.workspace / "database" / "results.duckdb"), read_only=True) as connection:
            return connection.execute(sql).fetchall()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return Finished(tmp_path_factory.mktemp("swept"))


def test_every_n_docs_has_its_metrics_from_one_retrieval(finished: Finished) -> None:
    swept = finished.rows("SELECT DISTINCT model, task, n_docs FROM n_docs_sweep ORDER BY ALL")
    assert swept == [("rag-token", task, n_docs) for task in ("fever", "qa") for n_docs in (1, 3)]
    assert finished.rows("SELECT count(*) FROM stage_runs WHERE stage = 'swept-passages'") == [(2,)]
    used = "SELECT DISTINCT decoding_json->>'n_docs' FROM metrics WHERE model = 'rag-token' AND task = 'qa'"
    assert finished.rows(used) == [("2",)]
    swept_with = "SELECT DISTINCT n_docs, decoding_json->>'n_docs' FROM n_docs_sweep ORDER BY 1"
    assert finished.rows(swept_with) == [(1, "1"), (3, "3")]
    report = (finished.workspace / "reports" / f"{finished.run_id}.html").read_text(encoding="utf-8")
    assert "More and fewer passages" in report
    assert "More and fewer passages" in finished.output


def test_passages_of_fewer_are_the_first_of_more(finished: Finished) -> None:
    found = {n: finished.rows(f"SELECT {_EVIDENCE} FROM '{_parquet(finished, n)}' ORDER BY ALL") for n in (1, 3)}
    assert {rank for _, rank, *_ in found[3]} == {0, 1, 2}
    assert [row for row in found[3] if row[1] == 0] == found[1]


_EVIDENCE = "question_id, rank, passage_id, doc_score"


def _parquet(finished: Finished, n_docs: int) -> Path:
    [folder] = finished.workspace.glob(f"artifacts/predictions/rag-token.qa.{n_docs}-*")
    return folder / "retrieved.parquet"


def test_labels_have_probabilities_before_and_after_calibration(finished: Finished) -> None:
    sql = "SELECT text, label_probs_json, calibrated_probs_json FROM predictions WHERE task = 'fever'"
    rows = finished.rows(sql)
    for text, *given in rows:
        for probs in map(json.loads, given):
            assert set(probs) == {"SUPPORTS", "REFUTES", "NOT ENOUGH INFO"}
            assert sum(probs.values()) == pytest.approx(1, abs=1e-5)
            assert max(probs, key=probs.__getitem__) == text
    names = "SELECT DISTINCT name FROM metrics WHERE task = 'fever' AND model = 'rag-token' ORDER BY 1"
    assert [name for (name,) in finished.rows(names)] == [
        "brier", "brier_calibrated", "calibration_error", "calibration_error_calibrated",
        "label_accuracy", "label_accuracy_2way",
    ]  # fmt: skip


def test_the_head_learns_what_it_was_trained_on(finished: Finished) -> None:
    sql = "SELECT arg_min(loss_per_example, step), arg_max(loss_per_example, step) FROM training_steps WHERE model = ?"
    [(first, last)] = finished.rows(sql.replace("?", "'rag-token'"))
    assert last < 0.5 * first
    assert list(finished.workspace.glob("artifacts/model/*/head.safetensors"))


def test_tokens_have_posteriors_over_the_passages(finished: Finished) -> None:
    sql = "SELECT model, task, tokens, posteriors, p.text FROM token_posteriors JOIN predictions AS p "
    rows = finished.rows(sql + "USING (run_id, model, task, corpus, split, question_id)")
    assert {(model, task) for model, task, *_ in rows} == {("rag-token", "qa")}
    for _, _, tokens, posteriors, text in rows:
        assert "".join(tokens) == text
        assert [len(one) for one in posteriors] == [2] * len(tokens)
        assert [sum(one) for one in posteriors] == pytest.approx([1] * len(tokens), abs=1e-5)


def test_verify_scores_the_sweep_again(finished: Finished) -> None:
    assert f"{finished.run_id}: verified" in finished.run("verify", finished.run_id)


def test_ask_shows_citations_tokens_and_candidates(finished: Finished) -> None:
    question = "who is the king of peru"
    shown = finished.ask(question, "--n-docs", "3", "--candidates", "4")
    assert "3 passages" in shown
    assert "[1] " in shown
    assert "cited, posterior" in shown
    assert "[3] " in shown
    assert "leans on" in shown
    assert "distinct answers" in shown
    alone = finished.ask(question, "--model", "rag-sequence", "--n-docs", "1")
    assert "1 passage," in alone
    assert "leans on" not in alone


def test_a_sweep_beyond_the_corpus_is_refused_before_any_training(finished: Finished) -> None:
    """The last tests: what they run is another run in the same workspace."""
    study, *options = finished.study
    more = (*options, "--set", "models.rag-token.sweep_n_docs=[1000]", "--set", "models.rag-token.steps=41")
    refused = openbook("run", study, *more, "--set", "index.kind=flat", workspace=finished.workspace)
    assert refused.returncode == 10
    assert "models.rag-token.sweep_n_docs asks for 1000 passages and the corpus '2018' has" in refused.stderr
    assert len(list(finished.workspace.glob("artifacts/model/rag-token-*"))) == 1


def test_labels_in_another_order_are_the_same_model_and_are_answered_anew(finished: Finished) -> None:
    probs = "SELECT question_id, text, label_probs_json FROM predictions WHERE task = 'fever' AND run_id = "
    before = finished.rows(f"{probs}'{finished.run_id}' AND model = 'rag-token' ORDER BY 1")
    turned = 'tasks.fever.labels={ "NOT ENOUGH INFO" = "c", REFUTES = "b", SUPPORTS = "a" }'
    output = finished.run("run", *finished.study, "--set", turned)
    run_id = output.rsplit("reports/", 1)[1].strip().removesuffix(".html")
    computed = finished.rows(
        "SELECT DISTINCT stage, name FROM stage_runs WHERE NOT cache_hit AND invocation_id = "
        "(SELECT arg_max(invocation_id, started_at) FROM stage_runs)"
    )
    assert ("predictions", "rag-token.fever") in computed
    assert "model" not in {stage for stage, _ in computed}
    after = finished.rows(f"{probs}'{run_id}' AND model = 'rag-token' ORDER BY 1")
    assert [row[:2] for row in after] == [row[:2] for row in before]
    for (*_, old), (*_, new) in zip(before, after, strict=True):
        assert json.loads(new) == pytest.approx(json.loads(old), abs=1e-6)
