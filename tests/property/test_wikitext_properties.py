"""No wikitext, however odd, breaks the reader or leaks its marks."""

import re
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from rag.corpus.passages import passage_spans, split_passages
from rag.corpus.wikitext import plain_text, render

_PIECES = [
    "{{", "}}", "{{{", "}}}", "[[", "]]", "[", "]", "|", "\n", "\n\n", "=", "==", "'''", "''", "<ref>", "</ref>",
    "<ref name=a/>", "<!--", "-->", "<pre>", "</pre>", "\n{|", "\n|}", "\n|-", "\n|", "!!", "<table>", "</table>",
    "<b>", "</b>", "<br/>", "\n*", "\n#", "\n:", "\n;", "&nbsp;", "&amp;", "&#91;", "&", ";", "http://a.b",
    "[http://a.b c]", "File:", "Category:x", "nowrap|", "convert|", "1300", "mi", "km", "lang|fr|", "formatnum:",
    "-", "(", ")", ",", ".", " ", "word", "Ünïcödé", "東京", "e\u0301", "__TOC__", "<sup>", "</sup>", "2", "{", "}",
    "frac|", "birth date|", "as of|", "to", "\u0002", "\u200b", "<math>", "#if:", "quote|",
]  # fmt: skip
_WIKITEXT = st.lists(st.sampled_from(_PIECES) | st.text(max_size=6), max_size=60).map("".join)
_FUZZ = settings(max_examples=150, deadline=None, derandomize=True)


@_FUZZ
@given(_WIKITEXT)
def test_any_wikitext_gives_clean_text(wikitext: str) -> None:
    text = plain_text(wikitext)
    # Only what nowiki and pre protect may look like markup; entities show a bracket of their own at most.
    if "<pre>" not in wikitext and "&" not in wikitext:
        assert not re.search(r"\[\[|\{\{|'''", text)
    assert not re.search(r"<ref[ >]|<!--", text) or "<" in wikitext
    assert all(unicodedata.category(character) != "Cc" for character in text if character != "\n")
    assert unicodedata.is_normalized("NFC", text)
    assert all(line == " ".join(line.split()) and line for line in text.split("\n")) or text == ""


@_FUZZ
@given(st.lists(st.sampled_from(["river", "mountain", "sea", "lake"]), min_size=1, max_size=8), _WIKITEXT)
def test_a_paragraph_after_a_heading_is_never_lost(words: list[str], before: str) -> None:
    sentence = " ".join(words)
    wikitext = before.replace("<", "").replace("-->", "") + f"\n\n== Next ==\n{sentence}\n\n== Last ==\n"
    assert sentence in plain_text(wikitext).split("\n")


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
