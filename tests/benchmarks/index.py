"""How fast, how large and how right each kind of index is, beside the flat one.

python -m tests.benchmarks.index [--rows 500000] [--large-rows 1000000] [--questions 1000] [--quick] [--scratch DIR]
    [--real VECTORS.npy QUESTIONS.npy]

Clustered vectors of 384 numbers with fixed seeds, questions near some of them; ten passages a question, searched as a
study searches (``PassageIndex.search``, exact scores included) on one thread; CPU seconds, the best of three. A JSON
line for each measurement; the last one has the ``ratios``: ``hnsw_vs_flat_batched`` and ``hnsw_vs_flat_single`` are
how many times as many questions a second as the flat index answers, asked together or one by one, at the fastest
setting with recall@10 >= 0.95; ``rabitq_vs_hnsw`` compares the two at that recall, asked together;
``rabitq_memory_vs_flat`` is the flat index's resident memory over that of the 1-bit index. Names with ``_real`` are
those of the vectors in two files. Builds use all cores. HNSW takes minutes: --quick takes 20,000 rows, to see whether
it works. Example, of another size:

    python -m tests.benchmarks.index --rows 100000 --large-rows 200000
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import faiss
import numpy as np

from rag.config import IndexConfig, IndexKind
from rag.retrieval.index import PassageIndex, SearchResult
from rag.retrieval.index_build import build_index
from rag.retrieval.index_kinds import KINDS, SearchOptions, index_bytes
from rag.retrieval.vector_table import VectorTable
from tests.benchmarks.index_vectors import clustered

_DIM, _K, _BAR = 384, 10, 0.95
_SINGLE = 50  # questions that are asked one by one
_OPTIONS: dict[str, list[SearchOptions]] = {
    "all": [SearchOptions()],
    "graph": [SearchOptions(ef_search=ef) for ef in (16, 26, 32, 48, 64, 96, 128, 256)],
    "lists": [SearchOptions(nprobe=n, rerank=r) for n in (4, 8, 16, 32, 48, 64, 128) for r in (50, 100, 200)],
}


class Data(NamedTuple):
    """Vectors and questions, with the exact answer."""

    vectors: np.ndarray
    questions: np.ndarray
    exact: SearchResult


class Speed(NamedTuple):
    """One search setting of an index."""

    options: SearchOptions
    recall: float
    batched_seconds: float  # a question
    single_seconds: float


def show(measurement: str, **values: Any) -> None:
    """One JSON line."""
    rounded = {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in values.items()}
    sys.stdout.write(json.dumps({"measurement": measurement, **rounded}) + "\n")
    sys.stdout.flush()


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """CPU seconds of the fastest run, on one thread."""
    threads, found = faiss.omp_get_max_threads(), []
    faiss.omp_set_num_threads(1)
    for _ in range(repeats):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    faiss.omp_set_num_threads(threads)
    return min(found)


def make_data(vectors: np.ndarray, questions: np.ndarray) -> tuple[Data, PassageIndex]:
    """The data with the exact answer, and the flat index that knows it."""
    flat = build_index(vectors, _config("flat"))
    return Data(vectors, questions, flat.search(questions, _K)), flat


def measure(index: PassageIndex, data: Data, options: SearchOptions) -> Speed:
    """Recall and speed of one setting."""
    found = index.search(data.questions, _K, options)
    recall = float((found.mask & (found.scores >= data.exact.scores[:, -1:])).mean())
    batched = seconds(lambda: index.search(data.questions, _K, options)) / len(data.questions)
    few = data.questions[:_SINGLE]
    single = seconds(lambda: [index.search(few[at : at + 1], _K, options) for at in range(len(few))]) / len(few)
    speed = Speed(options, recall, batched, single)
    show("search", kind=index.info.kind, rows=index.ntotal, **options._asdict(), recall=recall,
         batched_us=batched * 1e6, single_us=single * 1e6)  # fmt: skip
    return speed


def fastest(index: PassageIndex, data: Data, bar: float = _BAR) -> Speed:
    """The fastest setting that reaches the bar, or the best that there is."""
    speeds: list[Speed] = []
    for options in _OPTIONS[KINDS[index.info.kind].look]:
        speeds.append(measure(index, data, options))
        if KINDS[index.info.kind].look == "graph" and speeds[-1].recall >= bar:
            break  # looking further is slower
    good = [speed for speed in speeds if speed.recall >= bar]
    return min(good, key=lambda s: s.batched_seconds) if good else max(speeds, key=lambda s: s.recall)


def build(kind: IndexKind, vectors: np.ndarray) -> PassageIndex:
    """An index on all cores, timed."""
    start, cpu = time.perf_counter(), time.process_time()
    index = build_index(vectors, _config(kind))
    show("build", kind=kind, rows=len(vectors), wall_seconds=time.perf_counter() - start,
         cpu_seconds=time.process_time() - cpu, bytes=index_bytes(kind, *vectors.shape, _config(kind)),
         options=dict(index.info.options))  # fmt: skip
    return index


def resident(index: PassageIndex, data: Data, folder: Path) -> int:
    """Bytes of the mapped index that are in memory after all questions were asked; shows how fast it loads."""
    index.save(folder)
    table = VectorTable([data.vectors])
    start = time.perf_counter()
    mapped = PassageIndex.load(folder, vectors=table, check_bytes=False)
    loaded = time.perf_counter() - start
    mapped.search(data.questions, _K, SearchOptions(nprobe=10**6))  # every list
    found = _mapped_bytes(folder / "index.faiss")
    show("load", kind=index.info.kind, rows=index.ntotal, seconds=loaded, resident_bytes=found,
         file_bytes=(folder / "index.faiss").stat().st_size)  # fmt: skip
    return found


def by_size(rows: int, questions: int) -> None:
    """Seconds and bytes of a quarter and a half of the rows; the whole is measured anyway."""
    for part in (4, 2):
        vectors, _ = clustered(rows // part, _DIM, questions)
        for kind in ("flat", "hnsw", "ivf-rabitq"):
            build(kind, vectors)  # type: ignore[arg-type]


def every_load(rows: int, questions: int, folder: Path) -> None:
    """How fast a mapped index of every kind loads."""
    data, _ = make_data(*clustered(rows, _DIM, questions))
    for kind in KINDS:
        resident(build(kind, data.vectors), data, folder / kind)


def large(rows: int, questions: int, folder: Path) -> dict[str, float]:
    """The 1-bit index at a size that its rivals take minutes and gigabytes for."""
    data, _ = make_data(*clustered(rows, _DIM, questions))
    index = build("ivf-rabitq", data.vectors)
    default = measure(index, data, SearchOptions())
    found = resident(index, data, folder / "large")
    return {"rabitq_recall_large": default.recall, "rabitq_memory_vs_flat_large": data.vectors.nbytes / found}


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000, help="vectors of the comparison")
    parser.add_argument("--large-rows", type=int, default=1_000_000, help="vectors of the 1-bit index alone; 0: skip")
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--quick", action="store_true", help="20,000 rows: whether it works, not how fast it is")
    parser.add_argument("--real", type=Path, nargs=2, help="vectors and questions of an encoder, as .npy files")
    parser.add_argument("--scratch", type=Path, help="a folder to work in")
    options = parser.parse_args(arguments)
    rows, large_rows = (20_000, 0) if options.quick else (options.rows, options.large_rows)
    with tempfile.TemporaryDirectory(prefix="index-benchmark-", dir=options.scratch) as name:
        show("machine", threads=faiss.omp_get_max_threads(), faiss=faiss.__version__, simd=faiss.get_compile_options())
        ratios: dict[str, float] = {}
        if options.real:
            found = compare(*(np.load(path) for path in options.real), Path(name) / "real")
            ratios |= {f"{key}_real": value for key, value in found.items()}
        if large_rows:
            ratios |= large(large_rows, options.questions, Path(name))
        every_load(rows // 10, options.questions, Path(name))
        by_size(rows, options.questions)
        ratios |= compare(*clustered(rows, _DIM, options.questions), Path(name))
        show("ratios", rows=rows, ratios={key: float(f"{value:.4g}") for key, value in ratios.items()})


def compare(vectors: np.ndarray, questions: np.ndarray, folder: Path) -> dict[str, float]:
    """HNSW and the 1-bit index beside the flat one."""
    data, flat_index = make_data(vectors, questions)
    flat = measure(flat_index, data, SearchOptions())
    hnsw_index, rabitq_index = build("hnsw", data.vectors), build("ivf-rabitq", data.vectors)
    hnsw, rabitq = fastest(hnsw_index, data), fastest(rabitq_index, data)
    memory = {index.info.kind: resident(index, data, folder / index.info.kind) for index in (flat_index, rabitq_index)}
    resident(hnsw_index, data, folder / "hnsw")
    return {
        "hnsw_vs_flat_batched": flat.batched_seconds / hnsw.batched_seconds,
        "hnsw_vs_flat_single": flat.single_seconds / hnsw.single_seconds,
        "rabitq_vs_hnsw": hnsw.batched_seconds / rabitq.batched_seconds,
        "rabitq_memory_vs_flat": memory["flat"] / memory["ivf-rabitq"],
        "hnsw_recall": hnsw.recall,
        "rabitq_recall": rabitq.recall,
    }


def _config(kind: IndexKind) -> IndexConfig:
    return IndexConfig(kind=kind, m=32, ef_construction=100)


def _mapped_bytes(path: Path) -> int:
    """Resident bytes of a file's mappings in this process (Linux)."""
    return sum(1024 * size for name, size in _mappings() if name == str(path.resolve()))


def _mappings() -> Iterator[tuple[str, int]]:
    name = ""
    for line in Path("/proc/self/smaps").read_text().splitlines():
        parts = line.split(maxsplit=5)
        if "-" in parts[0] and not parts[0].endswith(":"):
            name = parts[5] if len(parts) == 6 else ""
        elif parts[0] == "Rss:":
            yield name, int(parts[1])


if __name__ == "__main__":
    main()
