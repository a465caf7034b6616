"""Gold-answer coverage: the fast search over shards agrees with the plain rule on every pair."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.corpus import coverage as module
from rag.corpus.coverage import Coverage, answer_coverage
from rag.corpus.sources.read import read_psgs
from rag.errors import DataError
from rag.evaluation.retrieval import answer_in_passage
from rag.records import Question
from tests.support.shared_data import shared_data

# What has its own case, decomposition, width or neighbourhood: sigmas, sharp s, the Kelvin sign, marks, spaces, signs.
_ALPHABET = "aAbBcK1 2  ..,-'\"()$%_éÉïİıßẞΑΣσςοК京ñ\u0301\u0345\u00a0\u200b\u00ad\u2028\n\t–“”①Ⅷ∞Ⓐŉǰ"
_WORDS = st.sampled_from(
    ["the", "The", "who", "St.", "Louis", "u.s.", "1993", "zoë", "Zoe\u0308", "ΟΔΟΣ", "&", "a", "é"]
)
_TEXT = st.one_of(
    st.text(_ALPHABET, max_size=12),
    st.lists(_WORDS, max_size=6).map(" ".join),
    st.tuples(_WORDS, st.sampled_from([" ", "  ", ".", "\u00a0", "–", ""]), _WORDS).map("".join),
    st.text(max_size=6),
)


def _questions(answers: Sequence[Sequence[str]]) -> list[Question]:
    return [Question(f"q{row}", "open-qa", "?", tuple(some)) for row, some in enumerate(answers)]


def _shard(path: Path, texts: Sequence[str]) -> Path:
    pq.write_table(pa.table({"text": pa.array(texts, pa.string())}), path)
    return path


def _covered_slowly(answers: Sequence[str], texts: Sequence[str]) -> bool:
    return any(answer_in_passage(text, answers) for text in texts)


@settings(derandomize=True, deadline=None, max_examples=400)
@given(st.lists(_TEXT, max_size=6), st.lists(st.lists(_TEXT, max_size=3), max_size=6))
def test_the_search_agrees_with_the_rule_on_every_pair(texts: list[str], answers: list[list[str]]) -> None:
    search = module._Search(_questions(answers))
    search.look_into(texts)
    assert search.covered == [_covered_slowly(some, texts) for some in answers]


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.lists(_TEXT, min_size=1, max_size=4), st.data())
def test_a_piece_of_a_passage_is_judged_as_by_the_rule(texts: list[str], data: st.DataObject) -> None:
    joined = " ".join(texts)
    ends = sorted((data.draw(st.integers(0, len(joined))), data.draw(st.integers(0, len(joined)))))
    answer = joined[ends[0] : ends[1]].swapcase()
    search = module._Search(_questions([[answer]]))
    search.look_into([joined, *texts])
    assert search.covered == [_covered_slowly([answer], [joined, *texts])]


def test_coverage_counts_and_names_what_is_missing(tmp_path: Path) -> None:
    shards = [
        _shard(tmp_path / "0.parquet", ["Lima is the capital of Peru.", "Nothing here."]),
        _shard(tmp_path / "1.parquet", ["Quito, in Ecuador, is high; 17  October 1993."]),
    ]
    questions = _questions([["Lima"], ["Bogotá", "QUITO"], ["La Paz"], ["october 1993"], ["Quit"], []])
    assert answer_coverage(shards, questions) == Coverage(6, 3, ("q2", "q4", "q5"))
    assert answer_coverage([], questions).n_covered == 0
    assert answer_coverage(shards, []) == Coverage(0, 0, ())


def test_patterns_are_found_anywhere_in_a_passage(tmp_path: Path) -> None:
    shards = [
        _shard(tmp_path / "0.parquet", ["It is 20320 feet high.", "Nothing."]),
        _shard(tmp_path / "1.parquet", ["Marshal Pe\u0301tain"]),
    ]
    questions = _questions([["20,?320 f(ee|oo)t"], ["x", "P\u00c9tain"], ["^high"], ["20,?320"], []])
    assert answer_coverage(shards, questions, patterns=True) == Coverage(5, 3, ("q2", "q4"))
    texts = ["It is 20320 feet high.", "Nothing.", "Marshal Pe\u0301tain"]
    held = [any(answer_in_passage(text, question.answers, regex=True) for text in texts) for question in questions]
    assert held == [True, True, False, True, False]
    assert answer_coverage(shards, questions).uncovered == ("q0", "q2", "q3", "q4")
    with pytest.raises(DataError, match="is no regular expression"):
        answer_coverage(shards, _questions([["("]]), patterns=True)


def test_an_answer_that_another_question_waits_for_is_not_given_up() -> None:
    search = module._Search(_questions([["Lima", "Callao"], ["Callao"], ["Callao", "Cusco"]]))
    search.look_into(["Lima"])
    assert search.covered == [True, False, False]
    search.look_into(["Callao"])
    assert search.covered == [True, True, True]


def test_a_sigma_is_judged_by_its_word_and_not_by_what_stands_around_it(tmp_path: Path) -> None:
    shard = _shard(tmp_path / "0.parquet", ["ΟΔΟΣ.Α"])
    assert answer_in_passage("ΟΔΟΣ.Α", ["οδος.α"])
    assert answer_coverage([shard], _questions([["οδος.α"]])).n_covered == 1


def test_the_search_ends_when_every_question_is_covered(tmp_path: Path) -> None:
    shards = [_shard(tmp_path / f"{number}.parquet", ["Lima"]) for number in range(3)]
    shards[2].unlink()
    assert answer_coverage(shards, _questions([["lima"]])).n_covered == 1


def test_progress_sees_the_shards(tmp_path: Path) -> None:
    seen: list[Path] = []
    shards = [_shard(tmp_path / "0.parquet", ["x"]), _shard(tmp_path / "1.parquet", ["x"])]
    answer_coverage(shards, _questions([["y"]]), lambda items: (seen.append(item) or item for item in items))  # type: ignore[func-returns-value]
    assert seen == shards


def test_shards_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"words": [1]}), tmp_path / "other.parquet")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and no more")
    for name in ("other", "torn", "missing"):
        with pytest.raises(DataError, match=f"{name}.parquet"):
            answer_coverage([tmp_path / f"{name}.parquet"], _questions([["y"]]))


def test_real_questions_over_real_passages(tmp_path: Path) -> None:
    texts = [row.text for row in read_psgs(shared_data("dpr", "psgs_w100.sample751.tsv"), 751)][:150]
    from rag.tasks.open_qa import read

    questions = read(shared_data("nq_open", "NQ-open.dev.jsonl")).questions[:300]
    found = answer_coverage([_shard(tmp_path / "real.parquet", texts)], questions)
    slow = [question.question_id for question in questions if not _covered_slowly(question.answers, texts)]
    assert list(found.uncovered) == slow
    assert 0 < found.n_covered < 300
