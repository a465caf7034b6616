"""What encoding and indexing will take: bytes of the formats, laws of the seconds, and changes that make it fit."""

from itertools import pairwise
from math import log

import pytest

from rag.config import EncoderConfig, IndexConfig, IndexKind
from rag.retrieval.estimate import (
    Bm25Rate,
    BuildSample,
    EncodingRate,
    Work,
    build_seconds,
    disk_bytes,
    estimate_bm25,
    estimate_index,
    estimate_recall,
    estimate_vectors,
    find_problem,
    insert_seconds,
    list_seconds,
    sample_builds,
)

WIKIPEDIA = 21_015_324
GB = 10**9


def _work(other: int = 0) -> Work:
    return Work(768, {"wiki": WIKIPEDIA}, {"wiki": WIKIPEDIA}, other)


@pytest.mark.parametrize(
    ("kind", "m", "gigabytes"),
    [("hnsw", 128, 86), ("hnsw-sq8", 128, 37.7), ("hnsw", 32, 69.9), ("flat", 128, 64.6), ("ivf-rabitq", 128, 2.7)],
)
def test_the_full_collection_takes_its_known_bytes(kind: IndexKind, m: int, gigabytes: float) -> None:
    stage = estimate_index(WIKIPEDIA, 768, IndexConfig(m=m), kind, ())
    assert stage.disk_bytes / GB == pytest.approx(gigabytes, rel=0.04)
    assert stage.disk_bytes <= stage.memory_bytes <= 1.4 * stage.disk_bytes
    assert stage.seconds is None


@pytest.mark.parametrize(
    ("kind", "memory", "change"),
    [
        ("hnsw", 128, None),
        ("hnsw", 64, "hnsw-sq8 takes 38.0 GB"),
        ("hnsw", 40, "hnsw-pq takes"),
        ("hnsw", 24, "ivf-rabitq takes 2.4 GB"),
        ("flat", 64, "hnsw-sq8"),
        ("flat", 24, "ivf-sq8"),
        ("flat", 8, "ivf-rabitq"),
        ("hnsw-sq8", 8, "ivf-rabitq"),
        ("ivf-flat", 24, "ivf-sq8"),
        ("auto", 8, None),
        ("auto", 256, None),
    ],
)
def test_too_little_memory_names_the_least_lossy_kind_that_fits(
    kind: IndexKind, memory: int, change: str | None
) -> None:
    problem = find_problem(_work(), EncoderConfig(), IndexConfig(kind=kind), memory * GB, 1000 * GB)
    if change is None:
        assert problem is None
        return
    assert problem is not None
    assert problem.startswith(f"corpora.wiki: index.kind = {kind}")
    assert f"21,015,324 passages, and {memory}.0 GB may be used; --set index.kind={change}" in problem


def test_the_change_that_is_named_does_fit() -> None:
    index = IndexConfig(kind="hnsw")
    problem = find_problem(_work(), EncoderConfig(), index, 24 * GB, 1000 * GB)
    assert problem is not None
    kind = problem.partition("--set index.kind=")[2].split()[0]
    changed = IndexConfig.model_validate({"kind": kind})
    assert find_problem(_work(), EncoderConfig(), changed, 24 * GB, 1000 * GB) is None


def test_where_nothing_fits_no_change_is_made_up() -> None:
    problem = find_problem(_work(), EncoderConfig(), IndexConfig(), GB, 1000 * GB)
    assert problem is not None
    assert "no kind of index fits" in problem
    assert "--set" not in problem


@pytest.mark.parametrize(
    ("free", "change"),
    [
        (160, None),
        (130, "--set encoder.storage=float16 takes 119.1 GB"),
        (60, "--set encoder.storage=float16 --set index.kind=hnsw-pq takes"),
        (20, "free some, or set OPENBOOK_WORKSPACE"),
    ],
)
def test_too_little_disk_halves_the_vectors_before_it_changes_the_index(free: int, change: str | None) -> None:
    encoder, index = EncoderConfig(storage="float32"), IndexConfig(kind="hnsw")
    problem = find_problem(_work(), encoder, index, 1000 * GB, free * GB)
    assert problem is None if change is None else change in str(problem)


def test_a_source_in_two_corpora_is_encoded_once() -> None:
    one = Work(768, {"wiki": 1000}, {"a": 1000})
    two = one._replace(indexes={"a": 1000, "b": 1000})
    sizes = [disk_bytes(work, "float16", IndexConfig(kind="flat"), GB) for work in (one, two)]
    assert sizes[1] - sizes[0] == 1000 * (768 * 4 + 16)
    assert disk_bytes(one._replace(other_disk_bytes=7), "float16", IndexConfig(kind="flat"), GB) == sizes[0] + 7


def test_encoding_is_linear_and_its_time_unknown_without_a_rate() -> None:
    stages = [estimate_vectors(n, 768, "float16", EncodingRate(50.0, GB)) for n in (1000, 4000)]
    assert [stage.seconds for stage in stages] == [20, 80]
    assert stages[1].disk_bytes == 4 * stages[0].disk_bytes
    assert estimate_vectors(1000, 768, "float16", EncodingRate(None, GB)).seconds is None


def test_hnsw_inserts_grow_faster_than_the_rows_but_ever_less_so() -> None:
    samples = [BuildSample(4096, 1.0), BuildSample(8192, 2.8)]
    sizes = [8192 * 2**step for step in range(12)]
    seconds = [insert_seconds(n, samples) for n in sizes]
    exponents = [log(after / before, 2) for before, after in pairwise(seconds)]
    assert seconds[0] == pytest.approx(2.8)
    assert log(2.8, 2) > exponents[0]
    assert exponents == sorted(exponents, reverse=True)
    assert exponents[-1] > 1


@pytest.mark.parametrize(
    ("samples", "rows", "measured"),
    # Processor seconds of inserts on one thread: real MiniLM vectors of Wikipedia (m 16, 32, 128), then made ones.
    [
        ((0.117, 0.291, 0.780), 20_480, 2.585),
        ((0.223, 0.649, 1.800), 20_480, 6.275),
        ((0.332, 0.952, 2.888), 20_480, 11.61),
        ((0.210, 0.663, 1.983), 20_480, 8.14),
        ((0.210, 0.663, 1.983), 40_960, 20.75),
        ((0.210, 0.663, 1.983), 81_920, 55.96),
    ],
)
def test_the_law_of_inserts_holds_for_builds_that_were_measured(
    samples: tuple[float, ...], rows: int, measured: float
) -> None:
    builds = [BuildSample(2048 * 2**step, seconds) for step, seconds in enumerate(samples)]
    assert insert_seconds(rows, builds) == pytest.approx(measured, rel=0.15)


def test_inverted_lists_cost_what_their_three_parts_cost() -> None:
    store, learn, compare = 2e-5, 1e-6, 3e-9

    def seconds(n: int, nlist: int) -> float:
        learned = 16 * min(n, 64 * nlist)
        return store * n + learn * learned + compare * (n + learned) * nlist

    samples = [BuildSample(n, seconds(n, nlist), 0.0, nlist) for n, nlist in sample_builds("ivf-rabitq")]
    assert list_seconds(WIKIPEDIA, 18_336, samples) == pytest.approx(seconds(WIKIPEDIA, 18_336), rel=1e-6)


def test_code_books_are_learned_from_a_sample_whatever_the_size() -> None:
    samples = [BuildSample(4096, 1.0, 2.0), BuildSample(8192, 2.0, 4.0)]
    without = [sample._replace(learning_seconds=0.0) for sample in samples]
    extra = [
        build_seconds("hnsw-pq", n, 768, IndexConfig(), samples)
        - build_seconds("hnsw-pq", n, 768, IndexConfig(), without)
        for n in (8192, 10**5, 10**7)
    ]
    assert extra == pytest.approx([4, 8, 8])


def test_a_flat_index_and_an_exact_search_are_linear() -> None:
    assert build_seconds("flat", 10**6, 768, IndexConfig(), [BuildSample(8192, 0.5)]) == pytest.approx(61.0, rel=1e-3)
    stage = estimate_recall(10**6, 768, IndexConfig(recall_questions=100), "flat", 1e8)
    assert (stage.seconds, stage.disk_bytes) == (1.0, 0)
    assert estimate_recall(10**6, 768, IndexConfig(), "flat", None).seconds is None


def test_bm25_needs_its_disk_twice_while_segments_are_merged() -> None:
    stage = estimate_bm25(10**6, Bm25Rate(5000.0, 400.0))
    assert (stage.seconds, stage.disk_bytes) == (200.0, 800 * 10**6)
