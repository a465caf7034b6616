"""What is wrong with a passage is found by Arrow and Python together; the same must be found by Python alone."""

import re
import unicodedata

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from data_checks.errors import SuiteError
from data_checks.passage_columns import CONTROL_CHARACTERS, HTML, MARKUP, passages_frame
from tests.support.passages import SCHEMA, passages_table, texts_table


def _rows(frame: pd.DataFrame, column: str) -> dict[int, str]:
    return dict(frame[column].dropna())


@pytest.mark.parametrize(
    "text",
    ["{{x}}", "a [[b", "b]] c", "'''b'''", "x <ref>", "<REF name=a>", "x</ref>", "a |- b", "a&nbsp;b", "{| class=x",
     "a|thumb|b", "a |200px", "File:A_b.jpg|thumb"],
)  # fmt: skip
def test_markup_is_recognised(text: str) -> None:
    assert re.search(MARKUP, text)
    assert _rows(passages_frame(texts_table(["good", text])), "markup").keys() == {1}


@pytest.mark.parametrize(
    "text", ["a<br>b", "<br/>", "<DIV class='x'>", "</span>", "<!-- note", "a&amp;b", "&#160;", "&#xA0;", "<nowiki/>"]
)
def test_html_is_recognised(text: str) -> None:
    assert re.search(HTML, text)
    assert _rows(passages_frame(texts_table(["good", text])), "html").keys() == {1}


@pytest.mark.parametrize(
    "text",
    ["a - b", "f(x) = [1]", "it's 'so'", "x < y", "1914–18 | 1939", "<reference> AT&T", "a<b and b>c", "R&B; soul",
     "The file: a thumb", "200px wide", "Q&A", "i < 3, p > 4", "{x | x > 1}"],
)  # fmt: skip
def test_ordinary_text_is_clean(text: str) -> None:
    frame = passages_frame(texts_table([text]))
    for column in ("markup", "html", "control_characters", "not_nfc", "undecodable", "other_words", "other_id"):
        assert not _rows(frame, column), column


def test_findings_are_shown_in_their_surroundings() -> None:
    texts = ["The city of Lima [[Peru has some ten million inhabitants", "a bell\x07 rings", "cafe\u0301 au lait"]
    frame = passages_frame(texts_table(texts, ["A", "B", "Be\u0301"]))
    assert _rows(frame, "markup") == {0: "The city of Lima [[Peru has some ten mi"}
    assert _rows(frame, "control_characters") == {1: "a bell\\x07 rings"}
    assert _rows(frame, "not_nfc") == {2: "title: Be\u0301 (U+0042 U+0065 U+0301)"}
    assert _rows(passages_frame(texts_table(texts)), "not_nfc") == {2: "fe\u0301  (U+0066 U+0065 U+0301 U+0020)"}


def test_bytes_that_are_no_text_are_named_and_hide_nothing_else() -> None:
    table = texts_table(["good text", "lone [[surrogate", None])
    broken = pa.array([b"good text", b"lone [[surrogate \xed\xa0\x80", None]).cast(pa.binary()).view(pa.string())
    frame = passages_frame(table.set_column(2, "text", broken))
    assert _rows(frame, "undecodable") == {1: repr(b"lone [[surrogate \xed\xa0\x80")}
    assert _rows(frame, "markup").keys() == {1}
    assert frame["characters"].isna().tolist() == [False, False, True]


def test_ids_must_name_their_own_page_and_ordinal() -> None:
    ids: list[object] = ["s:1:0", "s:2:1", "s:9:0", "other:4:0", "s:5", "s:0006:0", ":7:0", "s:8:0 ", "a:b:9:0", "9"]
    table = passages_table(*((row, "passage_id", one) for row, one in enumerate(ids)))
    assert _rows(passages_frame(table), "other_id") == {
        1: "s:2:1", 2: "s:9:0", 4: "s:5", 5: "s:0006:0", 6: ":7:0", 7: "s:8:0 ", 9: "9",
    }  # fmt: skip
    ready_made = passages_table(*((row, "start", -1) for row in range(3)), (0, "passage_id", "psgs:17"),
                                (1, "passage_id", "psgs:x"), rows=3)  # fmt: skip
    assert _rows(passages_frame(ready_made), "other_id") == {1: "psgs:x"}


def test_a_missing_column_is_named() -> None:
    with pytest.raises(SuiteError, match="ordinal, start is missing"):
        passages_frame(passages_table().drop_columns(["ordinal", "start"]))


def test_rows_in_several_chunks_are_told_apart() -> None:
    parts = [texts_table(["good", "bad [["]), texts_table(["good"]), texts_table(["{{"]).slice(0, 1)]
    table = pa.concat_tables(parts).slice(1)
    assert _rows(passages_frame(table), "markup").keys() == {0, 2}
    assert not _rows(passages_frame(table), "other_words")


_PIECES = st.sampled_from(
    [
        *("word", " ", "  ", "\u00a0", "\u2003", "\u3000", "\x1c", "\x85", "\t", "\u200b", "\x07", "\x9f", "."),
        *("é", "e\u0301", "\u212b", "ü", "\u0958", "日本", "[[", "{{", "|-", " |- ", "|-\u00a0", "|thumb", "'''"),
        *("<br>", "<ref ", "&amp;", "&nbsp;"),
    ]
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.lists(_PIECES, max_size=8).map("".join), min_size=1, max_size=8), st.integers(0, 5))
@example(["a\u2003|-\u2003b", "a  b\u00a0c", " "], 3)
def test_arrow_and_python_find_what_python_alone_finds(texts: list[str], words: int) -> None:
    titles = [text[::-1] for text in texts]
    table = texts_table(texts, titles)
    table = table.set_column(5, "words", pa.array([words] * len(texts), pa.int16()))
    frame = passages_frame(table)
    for column, pattern in (("markup", MARKUP), ("html", HTML)):
        assert _rows(frame, column).keys() == {row for row, text in enumerate(texts) if re.search(pattern, text)}
    both = list(zip(texts, titles, strict=True))
    control = {row for row, pair in enumerate(both) if any(re.search(CONTROL_CHARACTERS, one) for one in pair)}
    assert _rows(frame, "control_characters").keys() == control
    not_nfc = {row for row, pair in enumerate(both) if not all(unicodedata.is_normalized("NFC", one) for one in pair)}
    assert _rows(frame, "not_nfc").keys() == not_nfc
    counts = {row: len(text.split()) for row, text in enumerate(texts)}
    wrong = {row: f"{count} words, not {words}" for row, count in counts.items() if count != words}
    assert _rows(frame, "other_words") == wrong


def test_an_empty_shard_has_the_same_columns() -> None:
    empty = passages_frame(SCHEMA.empty_table())
    assert list(empty.columns) == list(passages_frame(passages_table()).columns)
    assert len(empty) == 0
