"""No wikitext, however odd, breaks the reader, leaks its marks, loses the text around it or takes long."""

import re
import time
import unicodedata

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rag.corpus.passages import passage_spans, split_passages
from rag.corpus.wikitext import RenderOptions, plain_text, render

_PIECES = [
    "{{", "}}", "{{{", "}}}", "[[", "]]", "[", "]", "|", "\n", "\n\n", "=", "==", "'''", "''", "<ref>", "</ref>",
    "<ref name=a/>", "<!--", "-->", "<pre>", "</pre>", "\n{|", "\n|}", "\n|-", "\n|", "!!", "<table>", "</table>",
    "<b>", "</b>", "<br/>", "\n*", "\n#", "\n:", "\n;", "&nbsp;", "&amp;", "&#91;", "&", ";", "http://a.b",
    "[http://a.b c]", "File:", "Category:x", "nowrap|", "convert|", "1300", "mi", "km", "lang|fr|", "formatnum:",
    "-", "(", ")", ",", ".", " ", "word", "Ünïcödé", "東京", "e\u0301", "__TOC__", "<sup>", "</sup>", "2", "{", "}",
    "frac|", "birth date|", "as of|", "to", "\u0002", "\u200b", "<math>", "#if:", "quote|",
]  # fmt: skip
_BROKEN = [
    "{{", "}}", "[[", "]]", "{{{", "{|", "\n{|", "\n|}", "\n| ", "\n|-", "\n! ", "||", "!!", "|", "=", "\n==", "==\n",
    "''", "'''", "<ref", "<ref>", "</ref>", "<ref name=x>", "<!--", "-->", "<nowiki>", "</nowiki>", "<pre>", "<math>",
    "<table>", "</table>", "<td colspan=9>", "<th>", "<tr>", "<sup>2", "<b ", ">", "[http://a ", "[//", "]", "&#",
    "&amp;", "__", "\n*", "\n;", "\n:", " ", "\n", "a", "(", ")", ", ", "File:", "[[File:", "[[Image:a|thumb|",
    "|thumb", "Category:", "{{a|", "{{nowrap|", "{{convert|", "{{formatnum:", "{{#if:", "{{Infobox x\n|a=", "\n|b=",
    "|module={{infobox y|", "{{quote|", "{{odd}}", "({{odd}}", "$", "{{inflation}}", "rowspan=999 |", "{{lang|",
    "{{ubl|", "\u0301", "\u200b", "é", "-{", "}-",
]  # fmt: skip
_ENDINGS = ["", "}}" * 50, "]]" * 50, "\n|}" * 50, "</table>" * 50, "}}]]</ref></nowiki></math>-->\n|}"]
_WIKITEXT = st.lists(st.sampled_from(_PIECES + _BROKEN) | st.text(max_size=6), max_size=60).map("".join)
_OPTIONS = st.builds(
    RenderOptions, headings=st.booleans(), tables=st.booleans(), infoboxes=st.booleans(), captions=st.booleans()
)
_WORDS = st.lists(st.sampled_from(["river", "mountain", "sea", "lake"]), min_size=1, max_size=8).map(" ".join)
_FUZZ = settings(max_examples=150, deadline=None, derandomize=True)


@_FUZZ
@given(_WIKITEXT, _OPTIONS)
def test_any_wikitext_gives_clean_text(wikitext: str, options: RenderOptions) -> None:
    text = plain_text(wikitext, options)
    # Only what nowiki and pre protect may look like markup; entities show a bracket of their own at most.
    if not any(literal in wikitext for literal in ("<pre>", "<nowiki>", "&")):
        assert not re.search(r"\[\[|\{\{|'''", text)
    assert not re.search(r"<ref[ >]|<!--", text) or "<" in wikitext
    assert all(unicodedata.category(character) != "Cc" for character in text if character != "\n")
    assert unicodedata.is_normalized("NFC", text)
    assert all(line == " ".join(line.split()) and line for line in text.split("\n")) or text == ""


@_FUZZ
@given(_WORDS, _WIKITEXT, _OPTIONS)
def test_a_paragraph_after_a_heading_is_never_lost(sentence: str, before: str, options: RenderOptions) -> None:
    wikitext = before.replace("<", "").replace("-->", "") + f"\n\n== Next ==\n{sentence}\n\n== Last ==\n"
    assert sentence in plain_text(wikitext, options).split("\n")


@_FUZZ
@given(_WORDS, _WIKITEXT, _OPTIONS)
def test_a_paragraph_before_anything_is_never_lost(sentence: str, after: str, options: RenderOptions) -> None:
    assert sentence in plain_text(f"{sentence}\n\nx {after}", options).split("\n")


@_FUZZ
@given(st.lists(st.lists(_WORDS, min_size=1, max_size=4), min_size=1, max_size=6), st.booleans(), st.booleans())
def test_every_cell_of_a_table_is_in_its_row(rows: list[list[str]], header: bool, html: bool) -> None:
    marks = ("<table>", "<tr>", "<th>", "<td>", "</table>") if html else ("{|", "\n|-", "\n!", "\n|", "\n|}")
    start, row_mark, header_mark, cell_mark, end = marks
    cells = [[(header_mark if header and not i else cell_mark) + cell for cell in row] for i, row in enumerate(rows)]
    table = start + "".join(row_mark + "".join(row) for row in cells) + end
    lines = plain_text(table, RenderOptions(tables=True)).split("\n")
    names = rows[0] if header and len(rows) > 1 and len(rows[0]) > 1 else []
    for row, line in zip(rows[1:] if names else rows, lines, strict=True):
        parts = line.split("; ")
        assert [part.rpartition(": ")[2] for part in parts] == row
        assert all(part in (cell, f"{name}: {cell}") for part, cell, name in zip(parts, row, names, strict=False))


@settings(max_examples=100, deadline=None, derandomize=True, phases=[Phase.generate])  # shrinking would take minutes
@given(st.lists(st.sampled_from(_BROKEN), min_size=1, max_size=4), st.sampled_from(_ENDINGS), _OPTIONS)
def test_time_grows_no_faster_than_the_page(pieces: list[str], ending: str, options: RenderOptions) -> None:
    def work(characters: int, tries: int) -> float:
        page = "".join(pieces) * (characters // len("".join(pieces))) + ending
        return min(_seconds(page, options) for _ in range(tries))

    # Four times the page is four times the work, and sixteen times where it is quadratic. What looks bad once is
    # looked at again on longer pages, so that a busy machine fails nothing.
    if work(40_000, 1) > 6 * work(10_000, 2) + 0.002:
        assert work(160_000, 2) < 9 * work(40_000, 2) + 0.01


def _seconds(page: str, options: RenderOptions) -> float:
    start = time.process_time()
    render(page, options)
    return time.process_time() - start


@_FUZZ
@given(_WIKITEXT)
def test_rendering_is_deterministic(wikitext: str) -> None:
    assert render(wikitext) == render(wikitext)


@_FUZZ
@given(st.text(max_size=300), st.integers(1, 12))
def test_passages_partition_the_words_of_the_text(text: str, words: int) -> None:
    passages = split_passages("Title", text, words)
    assert " ".join(passages).split() == text.split()
    assert all(len(passage.split()) == words for passage in passages[:-1])
    assert not passages or 1 <= len(passages[-1].split()) <= words
    for span in passage_spans(text, words):
        assert " ".join(text[span.start : span.end].split()) == span.text
        assert span.words == len(span.text.split())
