"""A tiny random RAG model with a tiny index, for training and the pipeline."""

from collections.abc import Sequence
from pathlib import Path

from rag.config import Bm25Config, HybridConfig, IndexConfig, RetrieverKind
from rag.modeling.models import Family, RagModel
from rag.pipeline import Rag
from rag.records import Passage
from rag.retrieval.bm25 import Bm25Retriever
from rag.retrieval.bm25_index import build_bm25
from rag.retrieval.encoders import Encoder
from rag.retrieval.hybrid import HybridRetriever
from rag.retrieval.index_build import build_index
from rag.retrieval.retriever import DenseRetriever, Retriever
from tests.support.tiny_encoders import tiny_encoder
from tests.support.tiny_models import tiny_generator

LAYOUT = "{question} / {title} / {text}"
PASSAGES = (
    Passage("w:1:0", "lima", "the capital of peru is lima", 1, 11),
    Passage("w:2:0", "paris", "the capital of france is paris", 2, 12),
    Passage("w:3:0", "king", "who is the king", 3, 13),
)


class Rows(tuple[Passage, ...]):
    """Passages by row number."""

    def rows(self, rows: Sequence[int]) -> list[Passage]:
        return [self[row] for row in rows]


def tiny_rag(folder: Path, family: Family, n_docs: int = 2, retriever: RetrieverKind = "dense") -> Rag:
    """The same model for the same family and retriever, every time."""
    generator = tiny_generator("t5", folder / "generator", seed=1)
    if family == "closed-book":
        return Rag(RagModel(family, generator), LAYOUT, 40)
    encoder, finds = _retriever(folder, retriever)
    return Rag(RagModel(family, generator, encoder.module if encoder else None), LAYOUT, 40, n_docs, finds)


def _retriever(folder: Path, kind: RetrieverKind) -> tuple[Encoder | None, Retriever]:
    if kind == "bm25":
        return None, Bm25Retriever(build_bm25(folder / "bm25", Rows(PASSAGES), Bm25Config()), Rows(PASSAGES))
    encoder = tiny_encoder(folder / "encoder", score_scale=5.0)
    vectors = encoder.encode_passages([one.title for one in PASSAGES], [one.text for one in PASSAGES])
    dense = DenseRetriever(encoder, build_index(vectors, IndexConfig(kind="flat")), Rows(PASSAGES), vectors)
    if kind == "dense":
        return encoder, dense
    sparse = build_bm25(folder / "bm25", Rows(PASSAGES), Bm25Config())
    return encoder, HybridRetriever(dense, sparse, HybridConfig())
