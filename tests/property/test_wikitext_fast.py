"""The quick ways through wikitext give exactly what the general ways give, on pages and on nonsense, in linear time."""

import re
import sys
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rag.corpus.dump import read_pages
from rag.corpus.wikitext import Rendered, RenderOptions, plain_text, render
from rag.corpus.wikitext import inline as wikitext_inline
from rag.corpus.wikitext import mend as wikitext_mend
from rag.corpus.wikitext import page as wikitext
from rag.corpus.wikitext import pairs as wikitext_pairs
from rag.corpus.wikitext import tags as wikitext_tags
from rag.corpus.wikitext.fast import show_plain_links
from rag.corpus.wikitext.marks import DROPPED
from tests.support.sample_dump import sample_dump

_LINKS = [
    "[[a]]", "[[a|b]]", "[[river delta|the delta]]", "[[fr|x y]]", "[[File|z]]", "[[a|File]]", "[[a|fr]]", "[[a|left]]",
    "[[a|table]]", "[[a|:]]", "[[a|*]]", "[[a|-]]", "[[ a]]", "[[a b|c ]]", "[[a|]]", "[[a (b)|]]", "[[a=b|c]]",
    "[[a|b=c]]", "[[a\nb]]", "[[File:x|", "[[File:x|thumb|", "[[fr:", "[[fr:y]]", "[[:Category:z]]", "[[ ", "[[", "]]",
]  # fmt: skip
_MARKS = [
    "{{", "}}", "{{{", "}}}", "{", "}", "[", "]", "]]]", "|", "=", "\n", "\n\n", "\n=", "\n==", "==\n", "\n{|", "\n|}",
    "\n|-", "!!", "<table>", "<TABLE>", "</table>", "<tab", "le", "<", "</", "/", ">", "[http://a.b ", "\n*", "\n;",
    ":", "{{odd}}", "{{cite}}", "nowrap|", "convert|1300|mi", "lang|fr|", "#if:", "Infobox x\n|a=", "odd", "\n|k = ",
    "<ref>q</ref>", "<REF name=b>q</ref >", "<ref>", "</ref>", "<ref a/>", "<!--", "-->", "<nowiki>|=</nowiki>",
]  # fmt: skip
_TEXT = [
    " ", "  ", "word", "x.", "1", "-", "#", ".", ",", ";", "(", ")", "“", "’", "!", "+", "'", "''", "'''", "''''",
    "'''''", "&nbsp;", "&#10;", "&amp;", "&#91;", "\xa0", "\u2003",
]  # fmt: skip
_LISTS = st.lists(st.sampled_from(_LINKS) | st.sampled_from(_MARKS) | st.sampled_from(_TEXT), max_size=30)
_WIKITEXT = _LISTS.map("".join)
_CHUNK = _LISTS.map(lambda pieces: "".join(pieces).replace("{", "").replace("}", ""))
# Templates in templates in links, closed as they should be; and as deep as the limit of nesting.
_NESTED = st.recursive(_CHUNK, lambda inner: st.builds("{{{{nowrap|{}}}}}[[a|{}]]".format, inner, inner), max_leaves=6)
_DEEP = st.builds(
    lambda mark, depth, inner: mark[0] * depth + inner + mark[1] * depth,
    st.sampled_from([("{{nowrap|", "}}"), ("[[a|", "]]"), ("{{{1|", "}}}"), ("\n==", "==")]),
    st.integers(38, 42),
    _WIKITEXT,
)
_ALL = RenderOptions(headings=True, tables=True, infoboxes=True, captions=True)
_FUZZ = settings(max_examples=400, deadline=None, derandomize=True)


def _without_fast_pass(page: str, options: RenderOptions) -> Rendered:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wikitext, "show_plain_links", lambda text: text)
        return render(page, options)


@_FUZZ
@given(_WIKITEXT | _NESTED | _DEEP, st.sampled_from([RenderOptions(), _ALL]))
def test_plain_links_change_no_result(page: str, options: RenderOptions) -> None:
    assert render(page, options) == _without_fast_pass(page, options)


@pytest.mark.parametrize(
    "page",
    [
        "[[ [[a|File]]:x.jpg]] y",  # no namespace, although the label is one
        "{{[[a|odd]]}} {{odd[[b]]|c}}",  # counted by their names as they are written
        "\n[[a|*]]{|\n|x\n|}",  # no table after a bullet
        "<[[a|table]]> x </[[a|table]]>",
        "[[File:x|[http://y [[b]] z]]] w",
        "[[|[[b]][]]]]",
        "[[[a]]] [[[[b]]]]",
        "[[File:x|thumb|[[a|left]]|b",
        "[[[a|b]] c",
        "([[a ]]s) [[a |b ]]s",
        "[[a\n|b]]",
        "{{nowrap|" * 40 + "[[a]]" + "}}" * 40,
        "\n== " + "{{nowrap|" * 40 + "[[a]]" + "}}" * 40 + " ==\n",
    ],
)
@pytest.mark.parametrize("options", [RenderOptions(), _ALL], ids=["default", "all"])
def test_plain_links_in_odd_places(page: str, options: RenderOptions) -> None:
    assert render(page, options) == _without_fast_pass(page, options)


def test_an_external_link_in_a_caption_may_hold_links() -> None:
    assert plain_text("A [[File:x.jpg|thumb|[http://a.b The [[town hall]] of Lima]]] B") == "A B"
    assert plain_text("A [[File:x.jpg|thumb|The [[town hall]] of [http://a.b Lima]]] B") == "A B"


def test_the_fast_pass_takes_most_links() -> None:
    assert show_plain_links("''[[a]]'', ([[b|c d]])s {{x|y=[[e]]}}\n* [[f (g)|f]]") == "''a'', (c d)s {{x|y=e}}\n* f"


def test_real_pages_are_equal_with_and_without_the_fast_pass() -> None:
    pages = [page.wikitext for page in read_pages(sample_dump()) if page.redirect is None]
    assert len(pages) > 100
    assert sum(show_plain_links(page).count("[[") for page in pages) < sum(page.count("[[") for page in pages) / 4
    for page in pages:
        assert render(page) == _without_fast_pass(page, RenderOptions())


@_FUZZ
@given(_WIKITEXT)
@example("{{a\n=b=\nc}} {{a\n|}} {{{b{{a}}}}} {{{a}} {{a}}}} [[[a]]] [[b [[a]]]]]")
def test_pairs_matched_at_once_are_those_matched_by_mark(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wikitext_pairs, "_TOKEN", re.compile(wikitext_pairs._MARK))
        expected = wikitext_pairs.match_constructs("\n" + text)
    assert wikitext_pairs.match_constructs("\n" + text) == expected


@_FUZZ
@given(_WIKITEXT)
@example("<ref name=a/>b</ref> <REF\nc>d<br></ref> <ref>e<ref>f</ref></ref> <!-- <ref>g</ref> --> <references>h</ref>")
def test_references_taken_whole_are_those_taken_by_tag(text: str) -> None:
    pattern = wikitext_tags._OPEN.pattern.replace(wikitext_tags._WHOLE_REFERENCE, "(?!)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wikitext_tags, "_OPEN", re.compile(pattern, re.IGNORECASE))
        expected = wikitext_tags.strip_extensions(text)
    assert wikitext_tags.strip_extensions(text) == expected


@_FUZZ
@given(
    st.lists(st.sampled_from(["'", "''", "'''", "''''", "'''''", "l", "L", " ", "a word"]), max_size=12).map("".join)
)
def test_balanced_quotes_are_removed_as_runs_are(line: str) -> None:
    assert wikitext_inline._strip_quotes(line) == wikitext_inline._strip_runs(line)


_GAPS = [
    DROPPED, f"{DROPPED} ", f" {DROPPED}", f"{DROPPED}, ", "; ", ",", ":", " ", "(", ")", "[", "]", "a", "b.", "c!",
    "”", "“", "%", "}", "x y", "\xa0", "\u2003", ".", "-", " – ", "...", "?", "は", "_",
]  # fmt: skip


@_FUZZ
@given(st.lists(st.sampled_from(_GAPS), max_size=12).map("".join))
@example(f"x{DROPPED},) y{DROPPED}, (z{DROPPED}[; w{DROPPED}")
@example(f"x{DROPPED} ({DROPPED})z")
@example(f"({DROPPED}){DROPPED}, y")
@example(f"x “{DROPPED} y” z{DROPPED} . {DROPPED}")
def test_plain_gaps_close_as_all_gaps_do(text: str) -> None:
    joined = " ".join(wikitext_mend._join(" ".join(text.split())).split())
    assert wikitext_mend.mend(text) == joined


def test_single_spaces_for_every_character() -> None:
    for first in range(0, sys.maxunicode + 1, 64):
        block = [chr(code) for code in range(first, first + 64) if not 0xD800 <= code < 0xE000]
        for text in ("a".join(block), *(f"a{character}b" for character in block if not character.isprintable())):
            assert wikitext_mend.single_spaces(text) == " ".join(text.split())


@pytest.mark.parametrize(
    "piece",
    ["[[a]]", "[[a|b]]", "[[a ", "[[a|b ", "{{\n", "{{a [[b]]", "[[File:a|[http://x [[b]] ", "[[a]]] ", "[[ [[a]] ]]] ",
     "[//a ", "[//a", " ", "\t", "'[http://a '", "<br>", "[http://a [b] ", "[a [b] ", "[b]]", "10<sup>", "<ref name=a ",
     "\n{{{!}}", "{{odd}}. ", "{{odd}}.", "2<sup>''<i>", "|a|", "{{a\nb",
     "x{{odd}}", "{{odd}}, ", "''a'''b\n", "<ref>a", "[[a]] b", "[[File:a|"],
)  # fmt: skip
@pytest.mark.parametrize("ending", ["", "]]]" * 50 + "}}"], ids=["open", "closed"])
def test_time_is_linear_in_hostile_input(piece: str, ending: str) -> None:
    def seconds(repeats: int) -> float:
        text = piece * repeats + ending
        start = time.process_time()
        plain_text(text)
        return time.process_time() - start

    small = min(seconds(200) for _ in range(2))
    large = min(seconds(3200) for _ in range(2))
    # Sixteen times the length: linear is a ratio of 16, quadratic one of 256; the constant forgives a busy machine.
    assert large < 64 * small + 0.02
