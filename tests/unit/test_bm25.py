"""BM25: the published formula against an independent library, ties, words, and what a damaged index says."""

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import bm25s
import numpy as np
import pytest

from flows.code_fingerprint import code_fingerprint
from rag.config import Bm25Config
from rag.errors import IndexMismatchError, ResourceError
from rag.records import Passage
from rag.retrieval import bm25_index
from rag.retrieval.bm25 import Bm25Retriever
from rag.retrieval.bm25_index import Bm25Index, build_bm25
from rag.retrieval.bm25_words import analyzer, words_of
from tests.support.tiny_rag import PASSAGES, Rows

PLAIN = Bm25Config(stemming=False, stopwords=False)
ALPHABET = ["lima", "peru", "paris", "france", "rome", "italy", "oslo", "norway", "king", "river"]


def some_passages(texts: Sequence[str], title: str = "") -> Rows:
    return Rows(Passage(f"w:{number}:0", title, text, number, number) for number, text in enumerate(texts))


def random_passages(count: int, seed: int) -> Rows:
    """At most 40 words each, so that tantivy's lengths are exact."""
    rng = random.Random(seed)
    return some_passages([" ".join(rng.choices(ALPHABET, range(1, 11), k=rng.randint(1, 40))) for _ in range(count)])


def test_scores_are_those_of_an_independent_library(tmp_path: Path) -> None:
    """bm25s on the same words: idf of Lucene, with the factor (k1 + 1); its method "lucene" leaves that out."""
    passages = random_passages(300, seed=1)
    index = build_bm25(tmp_path, passages, PLAIN)
    tokens = [one.text.split() for one in passages]
    with_factor = bm25s.BM25(k1=1.2, b=0.75, method="atire", idf_method="lucene")
    without = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
    with_factor.index(tokens, show_progress=False)
    without.index(tokens, show_progress=False)
    for question in ("king", "lima peru", "rome oslo river king italy", "king king paris"):
        expected = with_factor.get_scores(question.split())
        np.testing.assert_allclose(expected, 2.2 * without.get_scores(question.split()), rtol=1e-5)
        np.testing.assert_allclose(index.scores(question, np.arange(300)), expected, rtol=1e-5)
        found = index.search([question], n_docs=50)
        np.testing.assert_allclose(found.scores[0], -np.sort(-expected)[:50], rtol=1e-5)
        np.testing.assert_array_equal(found.scores[0], index.scores(question, found.rows[0]))


def test_equal_scores_stand_in_order_of_rows_however_many(tmp_path: Path) -> None:
    passages = some_passages(["king of france"] * 200 + ["king king of france"] + ["king of france"] * 200)
    found = build_bm25(tmp_path, passages, PLAIN).search(["king"], n_docs=4)
    assert found.rows.tolist() == [[200, 0, 1, 2]]
    assert found.scores[0, 1] == found.scores[0, 3]


def test_more_than_there_are_is_masked(tmp_path: Path) -> None:
    index = build_bm25(tmp_path, Rows(PASSAGES), Bm25Config())
    found = index.search(["capital", "lima", "", "is the of", "zzz"], n_docs=5)
    assert found.mask.sum(axis=1).tolist() == [2, 1, 0, 0, 0]
    assert found.rows[0, :2].tolist() == [0, 1]
    assert np.isneginf(found.scores[~found.mask]).all()
    assert (found.rows[~found.mask] == 0).all()
    assert index.finds(["capital", "lima zzz", "", "is the of", "zzz"]) == [True, True, False, False, False]
    assert index.scores("is the of", np.arange(3)).tolist() == [0, 0, 0]
    assert index.scores("zzz", np.arange(3)).tolist() == [0, 0, 0]
    assert index.scores("lima", np.array([2, 0]))[0] == 0
    with pytest.raises(ValueError, match="n_docs is 0"):
        index.search(["lima"], n_docs=0)


def test_nothing_is_indexed_and_nothing_found(tmp_path: Path) -> None:
    assert not build_bm25(tmp_path, Rows(), Bm25Config()).search(["lima"], n_docs=2).mask.any()


@pytest.mark.parametrize(
    "question",
    [
        "row:1 lima",
        "text:lima AND paris",
        "lima -peru",
        '"lima peru',
        "lim*",
        "lima^9 (",
        "[a TO z]",
        "\\",
        "lima\x00",
        "*",
    ],
)
def test_no_question_is_a_query_language(tmp_path: Path, question: str) -> None:
    passages = some_passages(["lima peru", "paris france", "row 1 text and to a z 9 lim"])
    index = build_bm25(tmp_path, passages, PLAIN)
    words = "".join(letter if letter.isalnum() else " " for letter in question)
    for one, other in zip(index.search([question], 3), index.search([words], 3), strict=True):
        np.testing.assert_array_equal(one, other)


def test_words_have_no_case_no_accents_and_english_endings() -> None:
    both, neither = analyzer(stemming=True, stopwords=True), analyzer(stemming=False, stopwords=False)
    assert words_of("The RIVERS of Zu\u0308rich", both) == words_of("river zürich", both) == ["river", "zurich"]
    assert words_of("The rivers", neither) == ["the", "rivers"]


def test_titles_count(tmp_path: Path) -> None:
    found = build_bm25(tmp_path, some_passages(["text"], title="Lima"), Bm25Config()).search(["lima"], n_docs=1)
    assert found.mask.all()


def test_an_index_comes_back_from_disk(tmp_path: Path) -> None:
    passages, questions = random_passages(200, seed=2), [" ".join(ALPHABET[start:]) for start in range(9)]
    built = build_bm25(tmp_path, passages, Bm25Config(), row_ids_sha256="ids")
    loaded = Bm25Index.open(tmp_path, Bm25Config(), ntotal=200, row_ids_sha256="ids")
    for one, other in zip(built.search(questions, 20), loaded.search(questions, 20), strict=True):
        np.testing.assert_array_equal(one, other)


def test_threads_do_not_disturb_each_other(tmp_path: Path) -> None:
    index = build_bm25(tmp_path, random_passages(200, seed=3), Bm25Config())
    questions = [" ".join(random.Random(seed).choices(ALPHABET, k=4)) for seed in range(200)]
    alone = [index.search([question], 5).rows.tolist() for question in questions]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda question: index.search([question], 5).rows.tolist(), questions)) == alone


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"config": Bm25Config(stemming=False)}, "stemming = True, and bm25.stemming is False"),
        ({"config": Bm25Config(stopwords=False)}, "stopwords = True, and bm25.stopwords is False"),
        ({"ntotal": 4}, "holds 3 passages, the passages table 4"),
        ({"row_ids_sha256": "other"}, "every row would name a wrong passage"),
    ],
)
def test_another_index_than_the_one_wanted_is_refused(tmp_path: Path, wanted: dict[str, object], message: str) -> None:
    build_bm25(tmp_path, Rows(PASSAGES), Bm25Config(score_scale=2), row_ids_sha256="ids")
    Bm25Index.open(tmp_path, Bm25Config(score_scale=1))  # the scale is no part of the index
    with pytest.raises(IndexMismatchError, match=message):
        Bm25Index.open(tmp_path, **{"config": Bm25Config(), **wanted})  # type: ignore[arg-type]


def test_a_damaged_index_is_refused_in_words(tmp_path: Path) -> None:
    def damaged(name: str) -> Path:
        folder = tmp_path / name
        build_bm25(folder, Rows(PASSAGES), Bm25Config())
        return folder

    def refused(folder: Path, message: str, check_bytes: bool = True) -> None:
        with pytest.raises(IndexMismatchError, match=message):
            Bm25Index.open(folder, Bm25Config(), check_bytes=check_bytes)

    refused(tmp_path / "nothing", "no finished BM25 index")
    folder = damaged("half-written")
    (folder / "bm25.json").write_text('{"ntotal": 3')
    refused(folder, "cannot be read")
    folder = damaged("cut")
    words = next((folder / "words").glob("*.idx"))
    words.write_bytes(words.read_bytes()[:-1])
    refused(folder, "bytes where bm25.json says", check_bytes=False)
    words.unlink()
    refused(folder, "is missing", check_bytes=False)
    folder = damaged("changed")
    words = next((folder / "words").glob("*.term"))
    content = bytearray(words.read_bytes())
    content[0] ^= 1
    words.write_bytes(content)
    refused(folder, "has changed since")
    folder = damaged("another version")
    meta = folder / "words" / "meta.json"
    size = meta.stat().st_size
    meta.write_text(json.dumps({"segments": "?"}).ljust(size))
    refused(folder, "cannot read", check_bytes=False)


def test_a_stopped_build_is_no_index_and_the_next_one_starts_anew(tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    def dying(batches: Iterable[range]) -> Iterator[range]:
        yield next(iter(batches))
        raise Stopped

    with pytest.raises(Stopped):
        build_bm25(tmp_path, random_passages(10, seed=4), Bm25Config(), progress=dying)
    with pytest.raises(IndexMismatchError, match="no finished BM25 index"):
        Bm25Index.open(tmp_path, Bm25Config())
    assert build_bm25(tmp_path, Rows(PASSAGES), Bm25Config()).ntotal == 3
    assert Bm25Index.open(tmp_path, Bm25Config()).search(["lima"], 1).rows.tolist() == [[0]]


def test_a_second_build_that_is_stopped_does_not_leave_the_first_ones_description(tmp_path: Path) -> None:
    build_bm25(tmp_path, Rows(PASSAGES), Bm25Config())

    def dying(_: Iterable[range]) -> Iterator[range]:
        raise KeyboardInterrupt
        yield range(0)

    with pytest.raises(KeyboardInterrupt):
        build_bm25(tmp_path, Rows(PASSAGES), Bm25Config(), progress=dying)
    with pytest.raises(IndexMismatchError, match="no finished BM25 index"):
        Bm25Index.open(tmp_path, Bm25Config())


def test_a_disk_that_is_too_small_is_told_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bm25_index, "_BUILD_BYTES", 10**15)
    with pytest.raises(ResourceError, match="building the index needs"):
        build_bm25(tmp_path, Rows(PASSAGES), Bm25Config())
    assert not list((tmp_path / "words").iterdir())


def test_the_retriever_scales_the_scores_and_gives_texts(tmp_path: Path) -> None:
    index = build_bm25(tmp_path, Rows(PASSAGES), Bm25Config())
    plain, scaled = Bm25Retriever(index, Rows(PASSAGES)), Bm25Retriever(index, Rows(PASSAGES), score_scale=0.5)
    found = plain.retrieve(["capital of peru", "who is the king"], n_docs=3)
    assert [[one.title for one in passages] for passages in found.passages] == [["lima", "paris"], ["king"]]
    assert found.mask.tolist() == [[True, True], [True, False]]
    halved = scaled.retrieve(["capital of peru", "who is the king"], n_docs=3)
    np.testing.assert_array_equal(halved.doc_scores, found.doc_scores / 2)
    assert halved.doc_scores.dtype == np.float32
    assert plain.retrieve(["zzz"], n_docs=3).doc_scores.shape == (1, 0)
    with pytest.raises(IndexMismatchError, match="'bm25': 3, 'passages': 2"):
        Bm25Retriever(index, Rows(PASSAGES[:2]))


def test_a_change_of_the_vector_index_builds_no_words_again() -> None:
    reached = code_fingerprint(["rag.retrieval.bm25_index"])
    assert "rag.retrieval.bm25_words" in reached
    assert not {"rag.retrieval.index", "rag.retrieval.encoders"} & reached.keys()
