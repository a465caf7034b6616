"""Other search settings of an index: what each would find, how long a question would take, and which to choose.

The settings are ladders around those of the study, doubled step by step. Which rungs are tried depends on recall
alone, so that nothing but the seconds differs from one measurement to the next.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import NamedTuple

import faiss
import numpy as np
from jaxtyping import Float

from rag.config import IndexConfig, IndexKind
from rag.retrieval.index import PassageIndex
from rag.retrieval.index_file import IndexInfo
from rag.retrieval.index_kinds import BuildOptions, SearchOptions, build_options, candidates, file_bytes, search_options
from rag.retrieval.recall import Recall, recall_of
from rag.retrieval.results import SearchResult

_ENOUGH = 0.999  # a ladder ends here, unless the bar is higher
_UP = 64  # how far a ladder reaches, as a factor of the study's setting; beyond it another index is the better choice
_RERANK_UP = 16
_ALONE = 50  # questions that are timed one by one


class SweepPoint(NamedTuple):
    """One search setting of an index, measured."""

    options: dict[str, int]  # those that the kind heeds
    configured: bool  # whether the study searches with it
    recall: Recall
    single_seconds: float  # median of questions asked one after the other on one thread
    batched_seconds: float  # a question's share where all are asked at once, on the threads there are
    index_bytes: int  # memory of the index, without vectors that are mapped


def sweep(
    index: PassageIndex,
    question_vectors: Float[np.ndarray, "questions dim"],
    exact: SearchResult,
    k: int,
    bar: float = _ENOUGH,
) -> list[SweepPoint]:
    """recall@k and the time of a question for other values of what the index's kind heeds, the study's among them.

    ``ef_search`` or ``nprobe`` go up from a quarter of the study's value, and for compressed kinds so for several
    values of ``rerank``: until recall is about 1 and not below ``bar``, or two doublings find nothing more, or the
    value is 64 times the study's. A kind without settings gives one point. ``exact`` is the ``exact_search`` of the
    same questions.
    """
    points, enough = list[SweepPoint](), max(bar, _ENOUGH)
    for rerank in _reranks(index, k):
        line: list[float] = []
        for options in _rungs(index, k, rerank):
            points.append(_measured(index, question_vectors, exact, k, options))
            line.append(points[-1].recall.recall)
            beyond = options >= index.options._replace(rerank=rerank)  # they differ in one value at most
            if beyond and (line[-1] >= enough or line[-1:] == line[-3:-2]):
                break
        if rerank >= index.options.rerank and max(line) >= enough:
            break
    return points


def _heeded(index: PassageIndex, options: SearchOptions) -> dict[str, int]:
    return {name: getattr(options, name) for name in search_options(index.info.kind, IndexConfig())}


def _reranks(index: PassageIndex, k: int) -> list[int]:
    own = index.options.rerank
    if "rerank" not in _heeded(index, index.options):
        return [own]
    least = candidates(index.info.kind, k, index.options._replace(rerank=1))
    return _ladder(own, max(least, own // 2), min(_RERANK_UP * own, index.ntotal))


def _rungs(index: PassageIndex, k: int, rerank: int) -> Iterator[SearchOptions]:
    """Values of the setting that says how far a search looks, smallest first."""
    fixed = index.options._replace(rerank=rerank)
    name = next((name for name in _heeded(index, fixed) if name != "rerank"), None)
    if name is None:
        yield fixed
        return
    own, lists = getattr(fixed, name), name == "nprobe"
    least = 1 if lists else candidates(index.info.kind, k, fixed)  # a graph is never left with fewer
    most = index.info.options["nlist"] if lists else index.ntotal
    for value in _ladder(own, max(least, own // 4), min(_UP * own, most)):
        yield fixed._replace(**{name: value})


def _ladder(own: int, least: int, most: int) -> list[int]:
    """``own`` and its halves and doubles from ``least`` to ``most``.

    >>> _ladder(32, 8, 100), _ladder(32, 40, 40)
    ([8, 16, 32, 64, 100], [32, 40])
    """
    rungs = {own, most} if most > own else {own}
    value = own
    while value // 2 >= least:
        value //= 2
        rungs.add(min(value, most))
    value = own
    while 2 * value <= most:
        value *= 2
        rungs.add(value)
    return sorted(rung for rung in rungs if rung >= least or rung == own)


def _measured(
    index: PassageIndex,
    questions: Float[np.ndarray, "questions dim"],
    exact: SearchResult,
    k: int,
    options: SearchOptions,
) -> SweepPoint:
    recall = recall_of(index.search(questions, k, options), exact, k)  # also reads what is mapped
    batched = _seconds(index, questions, k, options) / len(questions)
    with _one_thread():
        few = range(min(_ALONE, len(questions)))
        alone = [_seconds(index, questions[row : row + 1], k, options) for row in few]
    own = _heeded(index, options) == _heeded(index, index.options)
    return SweepPoint(_heeded(index, options), own, recall, median(alone), batched, _bytes(index.info))


def _bytes(info: IndexInfo) -> int:
    return file_bytes(info.kind, info.units, info.dim, BuildOptions(**info.options))


def _seconds(
    index: PassageIndex, questions: Float[np.ndarray, "questions dim"], k: int, options: SearchOptions
) -> float:
    started = time.perf_counter()
    index.search(questions, k, options)
    return time.perf_counter() - started


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def advice(points: Sequence[SweepPoint], bar: float) -> SweepPoint | None:
    """The fastest setting whose recall reaches ``bar``; None where none does."""
    good = [point for point in points if point.recall.recall >= bar]
    return min(good, key=lambda point: point.single_seconds) if good else None


def advise(points: Sequence[SweepPoint], bar: float, kind: IndexKind) -> str:
    """What to change so that the index of this kind reaches ``bar``, in the words of the study file.

    One of ``points`` must be the study's own setting.
    """
    own = next(point for point in points if point.configured)
    found = advice(points, bar)
    if found:
        changed = {name: value for name, value in found.options.items() if value != own.options[name]}
        was = " and ".join(str(own.options[name]) for name in changed)
        return f"{_said(changed)} reaches {found.recall.recall:.3f} (now {was}: {own.recall.recall:.3f})"
    best = max(points, key=lambda point: point.recall.recall)
    most = f"{best.recall.recall:.3f}, with {_said(best.options)}"
    tried = f"no search setting that was tried reaches it (the most, {most})"
    finer = " or ".join(f"index.{name}" for name in build_options(kind, IndexConfig()))
    other = "hnsw" if kind.startswith("ivf") else "ivf-rabitq"
    return f'{tried}; build another index: change {finer}, or index.kind to "{other}" or to "flat", which loses nothing'


def _said(options: Mapping[str, int]) -> str:
    return " and ".join(f"index.{name} = {value}" for name, value in options.items())
