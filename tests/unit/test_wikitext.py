"""Wikitext: counts, structure, and time that grows no faster than the page."""

import time

import pytest

from rag.corpus.wikitext import plain_text, render
from rag.corpus.wikitext_arguments import Arguments, parse_arguments
from rag.corpus.wikitext_convert import convert
from rag.corpus.wikitext_numbers import date, death_date_and_age, grouped
from rag.corpus.wikitext_pairs import match_constructs


def test_unknown_templates_are_counted_by_name_and_known_ones_are_not() -> None:
    rendered = render("{{Odd_box|x}} a {{odd box}} b {{cite web|t}} {{nowrap|c}} {{Infobox x}} {{another}}")
    assert rendered.unrendered == {"odd box": 2, "another": 1}
    assert rendered.text == "a b c"


def test_a_template_inside_a_dropped_one_is_not_counted() -> None:
    assert render("{{outer|{{inner}}}}").unrendered == {"outer": 1}


def test_hidden_namespaces_are_a_parameter() -> None:
    german = frozenset({"file", "datei", "kategorie"})
    assert render("[[Datei:X.jpg|mini]]Text[[Kategorie:Y]]", german).text == "Text"
    assert render("[[Kategorie:Y]]Text").text == "Kategorie:YText"


def test_redirect_and_empty_pages_do_not_fail() -> None:
    assert plain_text("") == ""
    assert plain_text("\n \n") == ""
    assert plain_text("{{Infobox x\n|a=b\n}}\n[[Category:X]]") == ""


def test_a_page_cannot_forge_the_private_marks() -> None:
    assert plain_text("a\x01b\x02c\x0ed {{odd}}") == "abcd"


def test_arguments_by_position_number_and_name() -> None:
    arguments = parse_arguments("x| a |2=b|c=d|=e|e")
    assert arguments == Arguments([" a ", "e"], {"c": "d", "": "e"})
    assert (arguments[0], arguments[1], arguments[7]) == ("a", "e", "")
    assert arguments.get("none", "c") == "d"


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ("convert|0|C", "0 °C (32 °F)"),
        ("convert|-40|C|F", "−40 °C (−40 °F)"),
        ("convert|1|mi|km", "1 mile (1.6 km)"),
        ("convert|100|km2", "100 square kilometres (39 sq mi)"),
        ("convert|9,000|ft|m", "9,000 feet (2,700 m)"),
        ("convert|2.5|acre", "2.5 acres (1.0 ha)"),
        ("convert|60|mph|km/h|0", "60 miles per hour (97 km/h)"),
        ("convert|5|km|mi nmi|abbr=on", "5 km (3.1 mi; 2.7 nmi)"),
        ("convert|3|x|4|m|ft", "3 by 4 metres (9.8 by 13 ft)"),
        ("convert|12|km|mi|disp=out", "7.5 mi"),
        ("convert|12|km|mi|sigfig=3", "12 kilometres (7.46 mi)"),
        ("convert|1|/sqmi", "1 per square mile (0.39/km2)"),
        ("convert|7|kg|mi", "7 kilograms"),
        ("convert", ""),
        ("convert|abc|km", "abc km"),
        ("convert|1/0|km", "1/0 km"),
        ("convert|1e99|km|mi|abbr=on", None),
        ("convert|5|to", "5 to"),
    ],
)
def test_convert(call: str, shown: str | None) -> None:
    text = convert(parse_arguments(call))
    assert shown is None or text == shown


def test_numbers_and_dates() -> None:
    assert (grouped("12345"), grouped("-0.5"), grouped("1,000"), grouped("x")) == ("12,345", "−0.5", "1,000", "x")
    assert (date("1999"), date("1999", "May"), date("", "5", "4")) == ("1999", "May 1999", "May 4")
    dead = Arguments(["1865", "2", "11", "1809", "2", "12"])
    assert death_date_and_age(dead) == "February 11, 1865 (aged 55)"


def test_braces_pair_from_the_inside_out() -> None:
    kinds = [(found.kind, found.start, found.end) for found in match_constructs("\n{{{{{1|a}}}|b}}")]
    assert kinds == [("template", 1, 16), ("parameter", 3, 12)]


def test_deep_nesting_ends() -> None:
    assert plain_text("{{nowrap|" * 3000 + "x" + "}}" * 3000) == ""
    assert plain_text("[[a|" * 3000 + "x" + "]]" * 3000) == ""
    assert plain_text("{{nowrap|" * 20 + "x" + "}}" * 20) == "x"


_HARD = {
    "open braces": "{{",
    "spaced open braces": "{{ ",
    "braces with a name": "{{a|",
    "braces with colon": "{{formatnum:",
    "close braces": "}} ",
    "open links": "[[",
    "labelled links": "[[a|",
    "file links": "[[File:a|",
    "close links": "]]",
    "quotes": "'''",
    "lone quotes": "''' ",
    "references": "<ref>",
    "upper-case references": "<REF>",
    "named references": "<ref name=",
    "self-closed": "<ref name=a/>",
    "comments": "<!--",
    "nowiki": "<nowiki>",
    "tables": "\n{|",
    "table ends": "\n|}",
    "html tables": "<table>",
    "headings": "\n==",
    "heading marks": "= ",
    "external": "[http://",
    "labelled external": "[http://a b ",
    "tags": "<b ",
    "powers": "2<sup>",
    "entities": "&#",
    "underscores": "__A",
    "spaces": " ",
    "newlines": "\n",
    "empty brackets": "({{odd}}",
    "separators": "{{odd}};",
    "parameters": "{{{a|",
    "mixed": "{{[[",
}


@pytest.mark.parametrize("piece", _HARD.values(), ids=_HARD)
@pytest.mark.parametrize("ending", ["", "}}]]</ref></table>\n|}'''"], ids=["open", "closed"])
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
