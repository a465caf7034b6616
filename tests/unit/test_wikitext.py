"""Wikitext: counts, structure, and time that grows no faster than the page."""

import time
from collections import Counter

import pytest

from rag.config import PassageConfig
from rag.corpus.wikitext import RenderOptions, plain_text, render
from rag.corpus.wikitext import names as wikitext_names
from rag.corpus.wikitext import templates as wikitext_templates
from rag.corpus.wikitext.arguments import Arguments, parse_arguments
from rag.corpus.wikitext.convert import convert
from rag.corpus.wikitext.dates import date, death_date_and_age
from rag.corpus.wikitext.namespaces import render_options
from rag.corpus.wikitext.numbers import grouped
from rag.corpus.wikitext.pairs import match_constructs


def test_unknown_templates_are_counted_by_name_and_known_ones_are_not() -> None:
    rendered = render("{{Odd_box|x}} a {{odd box}} b {{cite web|t}} {{nowrap|c}} {{Infobox x}} {{another}}")
    assert rendered.unrendered == {"odd box": 2, "another": 1}
    assert rendered.text == "a b c"


def test_a_template_inside_a_dropped_one_is_not_counted() -> None:
    assert render("{{outer|{{inner}}}}").unrendered == {"outer": 1}


def test_templates_that_hold_prose_are_counted_where_they_are_left_out() -> None:
    page = "{{Episode list|ShortSummary=It is.}}{{quote box|It is.}}{{hidden|Title|It is.}}{{track listing|title1=A}}"
    assert render(page).unrendered == {"episode list": 1, "quote box": 1, "hidden": 1}
    assert render(page, RenderOptions(tables=True)).unrendered == {"quote box": 1, "hidden": 1}


@pytest.mark.parametrize(
    ("dbname", "namespaces", "language"),
    [
        ("enwiki", {}, "en"),
        ("dewiki", {}, "de"),
        ("", {6: "Datei", 14: "Kategorie"}, "de"),
        ("zh_min_nanwiki", {}, "zh-min-nan"),
        ("commonswiki", {6: "File", 14: "Category"}, "en"),
    ],
)
def test_render_options_know_the_language(dbname: str, namespaces: dict[int, str], language: str) -> None:
    assert render_options(PassageConfig(), namespaces, dbname).language == language


def test_english_names_of_templates_do_not_act_on_other_wikis() -> None:
    german = RenderOptions(language="de")
    page = "{{FRA}} {{largest x}} {{aut|Ann}} {{Infobox x}} {{main|y}}"
    assert render(page, german) == ("Ann", {"fra": 1, "largest x": 1})
    assert render(page) == ("France Ann", {})


def test_namespaces_of_the_wiki_are_options() -> None:
    german = render_options(PassageConfig(), {6: "Datei", 14: "Kategorie"})
    page = "[[Bild:X.jpg|mini]][[datei:X.jpg]]Text[[Kategorie:Y]][[File:Z.png]][[Category:A]]"
    assert render(page, german).text == "Text"
    assert render("[[Kategorie:Y]]Text").text == "Kategorie:YText"


@pytest.mark.parametrize(
    ("namespaces", "files", "categories"),
    [
        ({}, {"file", "image"}, {"category"}),
        ({6: "Fichier", 14: "Catégorie"}, {"file", "image", "fichier"}, {"category", "catégorie"}),
        ({6: "File", 14: "Categoria"}, {"file", "image", "immagine"}, {"category", "categoria"}),
        ({6: "Файл", 14: "Категория"}, {"file", "image", "файл", "изображение", "картинка"}, {"category", "категория"}),
        ({6: "Of_no_table", 14: "Nor this"}, {"file", "image", "of no table"}, {"category", "nor this"}),
    ],
)
def test_render_options_know_old_names(namespaces: dict[int, str], files: set[str], categories: set[str]) -> None:
    options = render_options(PassageConfig(captions=True), namespaces)
    assert (options.file_namespaces, options.hidden_namespaces) == (files, categories)
    assert (options.captions, options.tables, options.headings, options.infoboxes) == (True, False, False, False)


def test_a_heading_of_equals_signs_ends() -> None:
    text = plain_text(f"a\n{'=' * 5000}\nb", RenderOptions(headings=True))
    assert text.split("\n")[0] == "a"
    assert text.split("\n")[-1] == "b"


def test_no_name_of_a_template_is_in_two_tables() -> None:
    tables = {
        "functions": [name for names in wikitext_templates._NAMES.values() for name in names.split("|")],
        "first argument": list(wikitext_names.FIRST_ARGUMENT),
        "constants": list(wikitext_names.CONSTANTS),
    }
    counts = Counter(name for table in tables.values() for name in table)
    assert [name for name, count in counts.items() if count > 1] == []
    assert wikitext_names.INVISIBLE.isdisjoint(counts)


def test_each_template_of_the_tables_copes_with_any_arguments() -> None:
    calls = [
        "",
        "|",
        "|x",
        "|5",
        "|-1|2|3|4|5|6",
        "|1=a|2=b",
        "|²|٣|1e999|nan",
        "|" + "9" * 50,
        "|a=b|text=t",
        "|{{odd}}",
    ]
    for name in wikitext_templates._HANDLERS:
        for call in calls:
            assert "\n\n\n" not in plain_text(f"a {{{{{name}{call}}}}} b")


def test_infoboxes_tables_and_captions_are_counted_for_what_they_lack() -> None:
    everything = RenderOptions(headings=True, tables=True, infoboxes=True, captions=True)
    page = "{{Infobox x|a={{odd box}}}}\n== {{odd head}} ==\n{|\n| {{odd cell}}\n|}\n[[File:A.jpg|thumb|{{odd cap}}x]]"
    assert set(render(page, everything).unrendered) == {"odd box", "odd head", "odd cell", "odd cap"}
    assert render(page).unrendered == {}


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
        ("convert|3|x|4|m|ft", "3 by 4 metres (9.8 ft × 13.1 ft)"),
        ("convert|12|km|mi|disp=out", "7.5 mi"),
        ("convert|12|km|mi|sigfig=3", "12 kilometres (7.46 mi)"),
        ("convert|1|/sqmi", "1 per square mile (0.39/km2)"),
        ("convert|7|kg|mi", "7 kilograms"),
        ("convert", ""),
        ("convert|abc|km", "abc km"),
        ("convert|1/0|km", "1/0 km"),
        ("convert|1e99|km|mi|abbr=on", None),
        ("convert|5|to", ""),
        ("convert|5|xyz", ""),
        ("convert|9e1|e9xyz", ""),
        ("convert|1.2|e6km", "1.2 million kilometres (0.75 million mi)"),
        ("convert|3|e6USgal|e6L", "3 million US gallons (11 million L)"),
        ("convert|4|cuin|cc", "4 cubic inches (66 cc)"),
        ("convert|200|lbft", "200 pound-feet (270 N⋅m)"),
        ("convert|20|-|30|cm|in", "20–30 centimetres (7.9–11.8 in)"),
        ("convert|5|mi|km|adj=mid|-long", "5-mile-long (8.0 km)"),
        ("convert|50|mi|km|adj=pre|or so", "50 or so miles (80 km)"),
        ("convert|5|mi|km|disp=output number only", "8.0"),
        ("convert|15|ft|disp=unit", "feet"),
        ("convert|15|ft|disp=unit2", "m"),
        ("convert|2000|lb|kg|order=flip", "910 kilograms (2,000 lb)"),
        ("convert|2000|lb|kg|disp=flip", "910 kilograms (2,000 lb)"),
        ("convert|45|PD/sqmi", "45 inhabitants per square mile (17/km2)"),
        ("convert|2345.6|PD/sqmi|PD/km2|1|abbr=on", "2,345.6/sq mi (905.6/km2)"),
        ("convert|2.5|Moilbbl/d|m3/d", "2.5 million barrels per day (400,000 m3/d)"),
        ("convert|2|Tcuft", "2 trillion cubic feet (5.7×10^10 m3)"),
        ("convert|3|MUSgal", "3 million US gallons (11 ML)"),
        ("convert|30|mpgUS", "30 miles per US gallon (7.8 L/100 km; 36 mpg-imp)"),
        ("convert|7.8|L/100km", "7.8 litres per 100 kilometres (36 mpg-imp; 30 mpg-US)"),
        ("convert|0|L/100km", "0 litres per 100 kilometres"),
        ("convert|14.2|hand", "14.2 hands (58 in; 147 cm)"),
        ("convert|58|in|hand", "58 inches (14.2 hands)"),
        ("convert|5|C-change", "5 °C (9.0 °F)"),
        ("convert|9.8|m/s2", "9.8 metres per second squared (32 ft/s2)"),
        ("convert|30|μm", "30 micrometres (0.0012 in)"),
        ("convert|5|L/min", "5 litres per minute (1.1 imp gal/min; 1.3 US gal/min)"),
        ("convert|5|TWh", "5 terawatt-hours (18 PJ)"),
        ("convert|13.6|eV", "13.6 electronvolts (2.18 aJ)"),
        ("convert|70|GPa|ksi", "70 gigapascals (10,000 ksi)"),
        ("convert|100|kgf", "100 kilograms-force (980 N; 220 lbf)"),
        ("convert|8|kpc", "8 kiloparsecs (26 kly)"),
        ("convert|150|gr", "150 grains (9.7 g)"),
        ("convert|3000|rpm", "3,000 revolutions per minute (50 Hz)"),
        ("convert|10|/acre", "10 per acre (25/ha)"),
        ("convert|6|ft|1|in|m|adj=on", "6-foot-1-inch (1.85 m)"),
        ("convert|60|mph|adj=on", "60-mile-per-hour (97 km/h)"),
        ("convert|10|to|20|mi|adj=on", "10-to-20-mile (16 to 32 km)"),
        ("convert|3|x|4|m|ft|abbr=on", "3 m × 4 m (9.8 ft × 13.1 ft)"),
        ("convert|1|to(-)|2|km|mi", "1 to 2 kilometres (0.62–1.24 mi)"),
        ("convert|5-10|mi", "5–10 miles (8.0–16.1 km)"),
        ("convert|5|mi|km|spell=In", "Five miles (8.0 km)"),
        ("convert|20|C|F|abbr=off", "20 degrees Celsius (68 degrees Fahrenheit)"),
        ("convert|10|mm|in|frac=16", "10 millimetres (3/8 in)"),
        ("convert|11|mi|km|round=5", "11 miles (20 km)"),
        ("convert|4|mi|km|disp=x| [or |]", "4 miles [or 6.4 km]"),
        ("convert|4|mi|km|disp=or", "4 miles or 6.4 km"),
        ("convert|4|mi|km|abbr=values", "4 (6.4)"),
        ("convert|1000|mi|comma=off", "1000 miles (1600 km)"),
        ("convert|0.5|mi", "0.5 miles (0.80 km)"),
        ("convert|1/2|mi", "1/2 mile (0.80 km)"),
        ("convert|180|cm|ftin|order=flip", "5 feet 11 inches (180 cm)"),
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
    "sounds": "({{IPA|(}}, ",
    "lost amounts": "(or {{inflation}} in ",
    "links to other languages": "\n[[de:a]] [[fr:b]] {{a ",
    "links to other languages on a line": "[[de:a]] ",
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
