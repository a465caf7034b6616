"""Pages that are looked for by title: a right index finds them, shuffled rows and a mixed pair of encoders do not."""

import numpy as np
import pytest

from data_checks.errors import CheckFailed
from data_checks.index import check_known_items
from data_checks.results import CheckReport, require
from rag.errors import DataError
from rag.records import Passage
from rag.retrieval.known_items import KnownItem, KnownItems, known_items
from tests.support.word_retriever import WordRetriever, encode

_RARE = [f"{first}{second}" for first in ("lor", "ben", "tam", "rus", "vel", "nok") for second in ("ia", "and", "stan")]
PAGES = [f"{kind} of {place}" for place in _RARE for kind in ("History", "Geography", "Kings", "Music")]


def _passages() -> list[Passage]:
    """Three passages a page, of which only the first names its subject."""
    texts = ("It is told of {0} at length.", "The years before were long.", "Others wrote of the same.")
    return [
        Passage(f"w:{page}:{part}", title, text.format(title), page, 1)
        for page, title in enumerate(PAGES)
        for part, text in enumerate(texts)
    ]


def _report(found: KnownItems, min_share: float = 0.6) -> CheckReport:
    items = [item._asdict() for item in found.items]
    (report,) = check_known_items("2018", items, found.first, min_share)
    return report


def test_a_right_index_finds_pages_by_their_titles() -> None:
    found = known_items(WordRetriever.of(_passages()), PAGES, seed=0)
    assert found.share_found == 1
    assert found.first == 7  # a tenth of 72 pages
    assert len(found.items) == 72
    assert KnownItem("Music of velstan", 0, "Music of velstan") in found.items
    require(_report(found))


def test_shuffled_rows_fail() -> None:
    right = WordRetriever.of(_passages())
    shuffled = np.random.default_rng(1).permutation(right.passages)
    wrong = WordRetriever([Passage(*row) for row in shuffled], right.vectors)
    found = known_items(wrong, PAGES, seed=0)
    assert found.share_found < 0.3
    with pytest.raises(CheckFailed, match=r"'known items' of 2018 failed over 72 rows: .* different orders"):
        require(_report(found))


def test_a_mixed_pair_of_encoders_fails() -> None:
    passages = _passages()
    vectors = encode([f"{passage.title}. {passage.text}" for passage in passages])
    found = known_items(WordRetriever(passages, vectors, seed=1), PAGES, seed=0)
    assert found.share_found < 0.3
    assert not _report(found).success


def test_the_report_names_the_pages_that_were_missed() -> None:
    items = [KnownItem("Lima", 3, "Peru"), KnownItem("Oslo", None, "Peru"), KnownItem("Rome", None, "")]
    report = _report(KnownItems(20, items))
    (missed,) = [result for result in report.results if result.column == "missed"]
    assert (missed.failing_rows, missed.failing_values) == (
        ("Oslo", "Rome"),
        ("the first passage is of 'Peru'", "the first passage is of ''"),
    )
    assert (report.success, missed.n_unexpected, report.n_rows) == (False, 2, 3)
    assert "at least 60% are among the first 20 passages" in missed.message
    assert _report(KnownItems(20, items), min_share=0.3).success
    assert not _report(KnownItems(20, [])).success


def test_the_sample_is_seeded_and_of_different_pages() -> None:
    retriever = WordRetriever.of(_passages())
    first, again, other = (known_items(retriever, [*PAGES, *PAGES], seed, wanted=30) for seed in (1, 1, 2))
    assert first == again
    assert len({item.title for item in first.items}) == 30
    assert {item.title for item in first.items} != {item.title for item in other.items}


def test_too_few_pages_are_refused() -> None:
    retriever = WordRetriever.of(_passages())
    assert known_items(retriever, PAGES[:20], seed=0).first == 2
    with pytest.raises(DataError, match="19 pages are too few"):
        known_items(retriever, [*PAGES[:19], PAGES[0]], seed=0)
