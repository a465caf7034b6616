"""A study whose models retrieve with BM25: no vector is made, and training, answers, swap and proof work."""

import json
from pathlib import Path

import duckdb
import pytest

from tests.support.cli import openbook
from tests.support.tiny_study import write_tiny_study

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

_MODEL = """
[retrieval]
retrievers = ["bm25"]

[models.token-bm25]
family = "rag-token"
retriever = "bm25"
corpus = "2018"
tasks = { qa = 1, fever = 1 }
n_docs = 2
steps = 4
batch_size = 2

"""


def _write_study(folder: Path) -> Path:
    """The tiny study with one model; one of its training questions has no word that a passage has."""
    study = write_tiny_study(folder)
    before, _, after = study.read_text(encoding="utf-8").partition("[models.rag-token]")
    swap = after[after.index("[swap]") :].replace('"rag-token"', '"token-bm25"')
    study.write_text(before + _MODEL + swap, encoding="utf-8")
    with (folder / "qa-train.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"question": "is it the", "answer": ["peru"]}) + "\n")
    return study


def test_a_study_of_bm25_alone(tmp_path: Path) -> None:
    study, workspace = _write_study(tmp_path / "study"), tmp_path / "workspace"
    workspace.mkdir()
    finished = openbook("run", str(study), workspace=workspace)
    assert finished.returncode == 0, finished.stderr
    made = {folder.name for folder in (workspace / "artifacts").iterdir()}
    assert "bm25" in made
    assert not {"vectors", "index", "recall"} & made
    model = next((workspace / "artifacts" / "model").glob("token-bm25-*"))
    assert not (model / "question_encoder").exists()
    with duckdb.connect(str(workspace / "database" / "results.duckdb"), read_only=True) as results:
        rejects = results.execute("SELECT source, row, text FROM rejects WHERE stage = 'model'").fetchall()
        scores = results.execute("SELECT doc_score, prior FROM retrieved_passages WHERE task = 'qa'").fetchall()
        swapped = results.execute("SELECT count(*) FROM swap_answers").fetchone()
    assert rejects == [("training pairs of qa", 3, "is it the")]
    assert scores
    assert all(score > 0 and 0 < prior <= 1 for score, prior in scores)
    assert swapped is not None
    assert swapped[0] > 0
    again = openbook("run", str(study), workspace=workspace)
    assert again.returncode == 0, again.stderr
    assert "nothing recomputed" in " ".join(again.stdout.split())
    run = next((workspace / "reports").glob("*.html")).stem
    proof = openbook("verify", run, workspace=workspace)
    assert (proof.returncode, "verified" in proof.stdout) == (0, True), proof.stdout + proof.stderr
