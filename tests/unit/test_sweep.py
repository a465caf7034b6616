"""Fewer passages are the first of more: one retrieval serves every n_docs of a sweep."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from flows.corpora import Corpus, require_rows
from rag.config import Bm25Config, HybridConfig, IndexConfig, IndexKind, RetrieverKind, TaskConfig, parse_study
from rag.errors import ConfigError, DataError
from rag.pipeline import answer_questions
from rag.records import Passage, Question
from rag.retrieval.bm25 import Bm25Retriever
from rag.retrieval.bm25_index import build_bm25
from rag.retrieval.hybrid import HybridRetriever
from rag.retrieval.index_build import build_index
from rag.retrieval.index_kinds import SearchOptions
from rag.retrieval.retriever import DenseRetriever, Retrieved, Retriever
from rag.retrieval.vector_table import VectorTable
from rag.retrieved import RETRIEVED_FILE, StoredRetriever, retrieve_to_file
from tests.support.tiny_encoders import tiny_encoder
from tests.support.tiny_models import WORDS
from tests.support.tiny_rag import Rows, tiny_rag

MOST = 40
CHANCE = np.random.default_rng(3)
PASSAGES = Rows(
    Passage(f"w:{number}:0", str(CHANCE.choice(WORDS)), " ".join(CHANCE.choice(WORDS, size=9)), number, 1000 + number)
    for number in range(300)
)
QUESTIONS = [
    Question(f"q{number}", "open-qa", text, ("x",))
    for number, text in enumerate(["the capital of lyon", "who is a b c", "paris", "the capital of lyon", "zzz zzz"])
]
_CONFIG = IndexConfig(m=8, ef_search=64, nprobe=2, nlist=6, rerank=64)


def _retriever(folder: Path, kind: RetrieverKind, index_kind: IndexKind = "flat") -> Retriever:
    sparse = build_bm25(folder / "bm25", PASSAGES, Bm25Config(stopwords=False))
    if kind == "bm25":
        return Bm25Retriever(sparse, PASSAGES)
    encoder = tiny_encoder(folder / "encoder", score_scale=5.0)
    vectors = encoder.encode_passages([one.title for one in PASSAGES], [one.text for one in PASSAGES])
    table = VectorTable.of(vectors)
    index = build_index(vectors, _CONFIG.model_copy(update={"kind": index_kind}))
    index.options = SearchOptions.of(_CONFIG)
    dense = DenseRetriever(encoder, index, PASSAGES, table)
    return dense if kind == "dense" else HybridRetriever(dense, sparse, HybridConfig(candidates=MOST))


def _same(found: Retrieved, expected: Retrieved) -> None:
    for name in ("rows", "doc_scores", "mask"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert found.passages == expected.passages


@pytest.mark.parametrize(
    ("kind", "index_kind"),
    [
        ("dense", "flat"),
        ("dense", "hnsw"),
        ("dense", "ivf-flat"),
        ("dense", "ivf-rabitq"),
        ("bm25", "flat"),
        ("hybrid", "flat"),
        ("hybrid", "hnsw"),
    ],
)
def test_the_first_of_many_are_what_asking_for_few_finds(
    tmp_path: Path, kind: RetrieverKind, index_kind: IndexKind
) -> None:
    retriever = _retriever(tmp_path, kind, index_kind)
    retrieve_to_file(retriever, {"qa": QUESTIONS}, MOST, tmp_path / RETRIEVED_FILE)
    stored = StoredRetriever(tmp_path, QUESTIONS)
    texts = [question.text for question in QUESTIONS]
    for n_docs in (1, 5, 10, 20, MOST):
        expected = retriever.retrieve(texts, n_docs)
        assert expected.mask.any()
        _same(stored.retrieve(texts, n_docs), expected)
    assert stored.finds(texts) == retriever.finds(texts)


@pytest.mark.parametrize("family", ["rag-token", "rag-sequence"])
def test_n_docs_at_call_time_is_that_of_the_model(tmp_path: Path, family: str) -> None:
    """Candidates come from as many passages as the answers are scored with, whatever the model was made with."""
    task = TaskConfig(reader="open-qa", test="t", max_new_tokens=4, num_beams=2)
    made_with = {n_docs: tiny_rag(tmp_path, family, n_docs) for n_docs in (1, 2, 3)}  # type: ignore[arg-type]
    asked = replace(made_with[1], n_docs=3)
    for n_docs, rag in made_with.items():
        expected = [one._replace(seconds=0) for one in answer_questions(rag, task, QUESTIONS[:3])]
        swept = answer_questions(replace(asked, n_docs=n_docs), task, QUESTIONS[:3])
        assert [one._replace(seconds=0) for one in swept] == expected
        assert {len(one.retrieved) for one in expected} == {n_docs}


def test_a_question_that_was_not_retrieved_is_an_error(tmp_path: Path) -> None:
    retrieve_to_file(_retriever(tmp_path, "bm25"), {"qa": QUESTIONS[:1]}, 2, tmp_path / RETRIEVED_FILE)
    with pytest.raises(DataError, match="no passages were stored for 'paris'"):
        StoredRetriever(tmp_path, QUESTIONS[:1]).retrieve(["paris"], 2)


def _study(index: dict[str, object], hybrid: dict[str, object], **model: object) -> None:
    parse_study(
        {
            "name": "x",
            "title": "x",
            "sources": {"s": {"path": "s.xml"}},
            "corpora": {"c": ["s"]},
            "index": index,
            "hybrid": hybrid,
            "tasks": {"qa": {"reader": "open-qa", "test": "t"}},
            "models": {"m": {"family": "rag-token", "corpus": "c", "tasks": {"qa": 1}, **model}},
        }
    )


@pytest.mark.parametrize(
    ("index", "hybrid", "retriever", "advice"),
    [
        ({"kind": "hnsw", "ef_search": 60}, {}, "dense", "raise index.ef_search by 6 "),
        ({"kind": "ivf-pq", "rerank": 60}, {}, "dense", "raise index.rerank by 6 "),
        ({"kind": "auto", "ef_search": 60}, {}, "dense", "raise index.ef_search and index.rerank by 6 "),
        ({}, {"candidates": 49}, "hybrid", "raise hybrid.candidates by 1 "),
    ],
)
def test_a_sweep_that_would_search_otherwise_is_refused(
    index: dict[str, object], hybrid: dict[str, object], retriever: str, advice: str
) -> None:
    _study(index, hybrid, retriever=retriever, sweep_n_docs=[5, 44])
    with pytest.raises(ConfigError, match=advice):
        _study(index, hybrid, retriever=retriever, sweep_n_docs=[5, 50])
    _study({"kind": "flat"}, {"candidates": 50}, retriever=retriever, sweep_n_docs=[50])


@pytest.mark.parametrize(("task", "calibrate"), [("qa.5", False), ("f.dev", True)])
def test_two_predictions_of_one_name_are_refused(task: str, calibrate: bool) -> None:
    """What a sweep and a calibration add to the name of a task could be the name of another task."""

    def study(n_docs: int, calibrate: bool) -> None:
        labels = {"SUPPORTS": "a", "REFUTES": "b"}
        fever = {"reader": "fever", "test": "t", "dev": "d", "labels": labels, "calibrate": calibrate}
        qa = {"reader": "open-qa", "test": "t"}
        own = {"corpus": "c", "tasks": {"qa": 1, "f": 1, task: 1}, "sweep_n_docs": [n_docs, n_docs]}
        parse_study(
            {
                "name": "x",
                "title": "x",
                "sources": {"s": {"path": "s.xml"}},
                "corpora": {"c": ["s"]},
                "tasks": {"qa": qa, "f": fever, task: qa},
                "models": {"m": {"family": "rag-token", **own}},
            }
        )

    study(4, calibrate=False)
    with pytest.raises(ConfigError, match=f"two sets of predictions would be called 'm.{task}'"):
        study(5, calibrate)


def test_a_corpus_of_fewer_passages_than_the_sweep_asks_for_is_named() -> None:
    corpus = Corpus("wiki", "bm25", tuple(SimpleNamespace(counts={"rows_out": n}) for n in (30, 10)), (), None, None)  # type: ignore[arg-type]
    require_rows("models.m.sweep_n_docs", 40, corpus)
    with pytest.raises(ConfigError, match=r"m.sweep_n_docs asks for 41 passages and the corpus 'wiki' has 40; ask"):
        require_rows("models.m.sweep_n_docs", 41, corpus)


def test_closed_book_has_no_sweep() -> None:
    with pytest.raises(ConfigError, match="closed-book reads none"):
        _study({}, {}, family="closed-book", corpus=None, sweep_n_docs=[5])
