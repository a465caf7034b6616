"""Rows of retrieval for the run of report_fixture: retrievers alone, recall of the indexes, and the sweep."""

from collections.abc import Iterator
from typing import Any

_Row = dict[str, Any]
_GATE = 0.95
_KINDS = {"2016": "hnsw", "2018": "ivf-rabitq"}
_FOUND = {1: 1.0, 5: 0.999, 10: 0.997, 20: 0.995, 50: 0.984, 100: 0.962}


def index_recall() -> Iterator[_Row]:
    """Two indexes, six numbers of passages, the gate at ten."""
    for corpus, kind in _KINDS.items():
        for k, recall in _FOUND.items():
            yield {
                "corpus": corpus,
                "kind": kind,
                "k": k,
                "recall": recall,
                "low": recall - 0.006,
                "high": min(1.0, recall + 0.003),
                "n": 200,
                "min_recall": _GATE if k == 10 else None,
                "parameters_json": {"m": 32, "ef_construction": 200, "ef_search": 64},
            }


def index_sweep() -> Iterator[_Row]:
    """An HNSW index with one setting to turn, and a compressed IVF index with two."""
    for point, (ef_search, recall) in enumerate(((16, 0.93), (32, 0.981), (64, 0.997), (128, 0.9995))):
        cost = 0.00006 * (point + 1) ** 1.6
        yield _point("2016", point, recall, cost, 9_104_221) | {"ef_search": ef_search, "configured": ef_search == 64}
    point = 0
    for rerank, most in ((100, 0.955), (200, 0.999)):
        for nprobe in (4, 8, 16, 32, 64):
            cost = 0.00009 + 0.0000006 * rerank + 0.000006 * nprobe
            found = _point("2018", point, most - 0.2 / nprobe, cost, 1_512_004)
            yield found | {"nprobe": nprobe, "rerank": rerank, "configured": (nprobe, rerank) == (32, 200)}
            point += 1


def _point(corpus: str, point: int, recall: float, seconds: float, size: int) -> _Row:
    return {
        "corpus": corpus,
        "kind": _KINDS[corpus],
        "point": point,
        "k": 10,
        "recall": recall,
        "low": recall - 0.01,
        "high": min(1.0, recall + 0.004),
        "n": 200,
        "min_recall": _GATE,
        "single_seconds": seconds,
        "batched_seconds": seconds / 1.7,
        "index_bytes": size,
    }


def retriever_metrics() -> Iterator[_Row]:
    """Three retrievers scored alone over two tasks."""
    for place, retriever in enumerate(("dense", "bm25", "hybrid")):
        values = {f"answer_in_passage_at_{k}": 0.4 + 0.1 * depth + 0.03 * place for depth, k in enumerate((1, 5, 20))}
        yield from (_metric(retriever, "open-qa", name, value) for name, value in values.items())
        values = {"recall_at_5": 0.71, "r_precision": 0.52, "title_mrr": 0.61, "gold_title_at_10": 0.9}
        for name, value in values.items():
            yield _metric(retriever, "fever", name, value + 0.02 * place)


def _metric(retriever: str, task: str, name: str, value: float) -> _Row:
    return {
        "model": f"retriever:{retriever}",
        "corpus": "2018",
        "task": task,
        "name": name,
        "value": value,
        "low": value - 0.1,
        "high": value + 0.1,
        "n": 12,
        "n_expected": 12,
        "signature": f"{name}|v:1|split:test",
    }
