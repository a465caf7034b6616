"""The index benchmark runs, and its vectors are as close to one another as those of an encoder."""

import json

import numpy as np
import pytest

from tests.benchmarks import index
from tests.benchmarks.index_vectors import clustered

pytestmark = pytest.mark.integration


def test_a_small_run_ends_with_its_ratios(capsys: pytest.CaptureFixture[str]) -> None:
    index.main(["--rows", "4000", "--large-rows", "3000", "--questions", "60"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    ratios = lines[-1]["ratios"]
    wanted = {"hnsw_vs_flat_batched", "hnsw_vs_flat_single", "rabitq_vs_hnsw", "rabitq_memory_vs_flat"}
    assert wanted <= ratios.keys()
    assert min(ratios["hnsw_recall"], ratios["rabitq_recall"], ratios["rabitq_recall_large"]) > 0.9
    assert ratios["rabitq_memory_vs_flat"] > 18
    loads = [line for line in lines if line["measurement"] == "load"]
    assert {line["kind"] for line in loads} == set(index.KINDS)
    assert max(line["seconds"] for line in loads) < 1
    builds = {(line["kind"], line["rows"]) for line in lines if line["measurement"] == "build"}
    assert {(kind, rows) for kind in ("flat", "hnsw", "ivf-rabitq") for rows in (1000, 2000)} <= builds


def test_vectors_of_the_benchmark_are_units_in_clusters() -> None:
    vectors, questions = clustered(10_000, 384, 100)
    np.testing.assert_array_equal(vectors, clustered(10_000, 384, 100)[0])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    scores = np.sort(questions @ vectors.T, axis=1)[:, ::-1]
    means = [float(scores[:, rank].mean()) for rank in (0, 9, 999)]
    assert means == pytest.approx([0.8, 0.55, 0.1], abs=0.06)
