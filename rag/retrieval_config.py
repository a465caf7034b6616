"""Encoders, indexes and retrievers of a study, as frozen models; part of ``config``."""

from typing import Literal

from pydantic import Field, PositiveInt

from rag.source_config import Frozen

IndexKind = Literal["flat", "hnsw", "hnsw-sq8", "hnsw-pq", "ivf-flat", "ivf-sq8", "ivf-pq", "ivf-rabitq"]
RetrieverKind = Literal["dense", "bm25", "hybrid"]
SPARE = 16  # candidates beyond n_docs (and lists beyond nprobe), so that rounding inside FAISS cannot change a result


class EncoderConfig(Frozen):
    """The bi-encoder of questions and passages."""

    path: str = "facebook/dpr-question_encoder-single-nq-base"  # of questions; trained
    # Of passages; frozen. None: the same weights as ``path``, or where that is a half of a DPR pair, the other.
    context_path: str | None = None
    pooling: Literal["cls", "mean"] = "cls"
    normalize: bool = False
    question_prefix: str = ""  # put before every question, as asymmetric encoders want it ("query: " for E5)
    passage_prefix: str = ""  # put before every passage ("passage: " for E5)
    max_question_tokens: int = Field(256, ge=8)
    max_passage_tokens: int = Field(256, ge=8)
    score_scale: float = Field(1.0, gt=0)  # multiplies question vectors: the inverse temperature of p(z|x)
    # Arithmetic of encoding passages. auto: bfloat16 where the machine computes it and a sample stays within a cosine
    # of 0.999 of float32. Questions are always encoded in float32.
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    storage: Literal["float16", "float32"] = "float16"  # of passage vectors on disk
    allow_mismatch: bool = False  # search with a question encoder of another training than the passages'; reported

    @property
    def passage_path(self) -> str:
        """Where the encoder of passages is.

        >>> EncoderConfig().passage_path
        'facebook/dpr-ctx_encoder-single-nq-base'
        """
        return self.context_path or self.path.replace("dpr-question_encoder-", "dpr-ctx_encoder-")


class IndexConfig(Frozen):
    """The passage index (DPR: HNSW with 512 neighbours; 128 is what the public RAG index uses).

    Whatever the kind, doc_scores are exact inner products with the stored vectors: compressed kinds only choose the
    candidates.
    """

    kind: Literal["auto", IndexKind] = "auto"  # auto: hnsw where the machine's memory holds it, else ivf-rabitq
    m: int = Field(128, ge=2)  # HNSW: neighbours
    ef_construction: int = Field(200, ge=1)
    ef_search: int = Field(128, ge=1)
    nlist: int | None = Field(None, ge=1)  # IVF: inverted lists; None: by the number of passages
    nprobe: int = Field(64, ge=1)  # IVF: lists that a search visits
    pq_bytes: int | None = Field(None, ge=1)  # PQ: bytes a vector; None: one for eight dimensions
    rerank: int = Field(200, ge=1)  # compressed kinds: candidates that are scored exactly, at least n_docs
    update: bool = True  # flat and IVF: a corpus that follows an earlier one (sources.*.previous) changes its index
    recall_at: int = Field(10, ge=1)
    recall_questions: int = Field(200, ge=1)
    min_recall: float = Field(0.95, ge=0, le=1)  # of the approximate index against exact search
    min_known_items: float = Field(0.6, ge=0, le=1)  # of titles, as questions, that find their own page in the first 20

    @property
    def steady_n_docs(self) -> int | None:
        """Up to so many passages a search looks at the same candidates, so that fewer are the first of more; None: any.

        >>> IndexConfig(kind="hnsw").steady_n_docs, IndexConfig(kind="ivf-pq").steady_n_docs
        (112, 184)
        """
        if self.kind in ("flat", "ivf-flat"):
            return None
        graph, compressed = self.ef_search - SPARE, self.rerank - SPARE
        if self.kind == "auto":
            return min(graph, compressed)
        return graph if self.kind == "hnsw" else compressed


class Bm25Config(Frozen):
    """Sparse retrieval over title and text, with the usual k1 = 1.2 and b = 0.75."""

    stemming: bool = True  # English
    stopwords: bool = True  # English ones are left out
    score_scale: float = Field(1.0, gt=0)  # multiplies the scores: the inverse temperature of p(z|x)


class HybridConfig(Frozen):
    """Dense and sparse scores added up, over the best candidates of both (Karpukhin et al. 2020, section 5)."""

    # doc_score = inner product (times encoder.score_scale) + weight * BM25. DPR adds 1.1 inner products to one BM25; in
    # the units of today's BM25, which counts 2.2 times as much, that is 0.41.
    bm25_weight: float = Field(0.5, ge=0)
    candidates: int = Field(200, ge=1)  # of either retriever


class RetrievalConfig(Frozen):
    """Which retrievers are scored alone, before any model is trained."""

    retrievers: tuple[RetrieverKind, ...] = ("dense",)
    at: tuple[PositiveInt, ...] = Field((1, 5, 20, 100), min_length=1)
