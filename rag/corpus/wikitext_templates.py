"""What templates show in running prose: a table of names and handlers.

To add a template, put its lower-case name into a table: in ``wikitext_names``, FIRST_ARGUMENT for one that shows its
first argument, CONSTANTS for a fixed text, INVISIBLE for one that a reader of the prose does not miss; below,
``_NAMES`` for a function of the arguments. A name in none of them is dropped and counted.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from rag.corpus import wikitext_numbers as numbers
from rag.corpus.wikitext_arguments import Arguments, parse_arguments
from rag.corpus.wikitext_convert import convert
from rag.corpus.wikitext_languages import LANGUAGES
from rag.corpus.wikitext_marks import restore
from rag.corpus.wikitext_names import (
    CONSTANTS,
    FIRST_ARGUMENT,
    INVISIBLE,
    INVISIBLE_PREFIXES,
    INVISIBLE_SUFFIXES,
    TRACK_GAUGES,
)

_MAX_NAME = 80


class Handler(NamedTuple):
    """How one template is shown; ``show`` is not called for an invisible one."""

    visible: bool
    show: Callable[[Arguments], str]


def template_name(text: str, start: int, end: int) -> str:
    """The lower-case name of the template whose content is ``text[start:end]``.

    >>> template_name("Birth_date and age |1970|3|4", 0, 28)
    'birth date and age'
    """
    name = text[start : min(end, start + _MAX_NAME)].partition("|")[0].strip()
    name = name.partition("\n")[0].partition("{{")[0].replace("_", " ").strip().lower()
    for prefix in ("template:", "subst:", "safesubst:", "msg:"):
        name = name.removeprefix(prefix)
    return name


def show_template(handler: Handler, content: str) -> str:
    """What the template with this rendered content shows."""
    name, colon, value = content.partition(":")
    if colon and name.strip().lower() in _FUNCTIONS:
        content = f"{name}|{value}"  # {{formatnum:1234}}: what follows the colon is the first argument
    return handler.show(parse_arguments(content))


@lru_cache(maxsize=100_000)
def find_handler(name: str) -> Handler | None:
    """The handler of a template by its lower-case name; None for one that is not known here."""
    if show := _HANDLERS.get(name) or _FUNCTIONS.get(name.partition(":")[0] if ":" in name else ""):
        return Handler(True, show)
    if name in INVISIBLE or name.startswith(INVISIBLE_PREFIXES) or name.endswith(INVISIBLE_SUFFIXES):
        return Handler(False, _nothing)
    if name.startswith("lang-"):
        return Handler(True, _labelled_language(LANGUAGES.get(name[5:], "")))
    return None


def _nothing(_: Arguments) -> str:
    return ""


def _first(arguments: Arguments) -> str:
    """The first argument; a list or several paragraphs stand on lines of their own."""
    return f"\n{arguments[0]}\n" if "\n" in arguments[0] else arguments[0]


def _constant(text: str) -> Callable[[Arguments], str]:
    return lambda _: text


def _second(arguments: Arguments) -> str:
    """{{lang|fr|texte}}, {{sort|key|text}}: the first argument is for machines."""
    return arguments[1] or arguments.get("text")


def _last(arguments: Arguments) -> str:
    return (arguments.given() or [""])[-1]


def _concatenated(arguments: Arguments) -> str:
    return "".join(arguments.given())


def _joined(separator: str) -> Callable[[Arguments], str]:
    return lambda arguments: separator.join(arguments.given())


def _around(before: str, after: str = "") -> Callable[[Arguments], str]:
    """The first argument between marks, which go with it where it shows nothing."""
    return lambda arguments: f"{before}{arguments[0]}{after}" if restore(arguments[0]) else ""


def _items(arguments: Arguments) -> str:
    return "".join(f"\n* {item}" for item in arguments.given()) + "\n"


def _paragraph(arguments: Arguments) -> str:
    """A quotation, with the person quoted where the page names one."""
    quoted = arguments[0] or arguments.get("text", "quote", "content")
    source = ", ".join(filter(None, [arguments[1] or arguments.get("author", "sign", "cite"),
                                     arguments[2] or arguments.get("source", "title")]))  # fmt: skip
    return f"\n\n{quoted}\n\n" + (f"— {source}\n\n" if source else "")


def _labelled_language(language: str) -> Callable[[Arguments], str]:
    """{{lang-el|text}}: the text after the name of its language, with its transcription and meaning."""

    def show(arguments: Arguments) -> str:
        text = arguments[0] or arguments.get("text")
        parts = [f"{language}: {text}" if language and text and arguments.get("label") != "none" else text]
        parts.append(arguments[1] or arguments.get("translit"))
        meaning = arguments[2] or arguments.get("lit", "translation")
        parts.append(f"lit. ‘{meaning}’" if meaning else "")
        return ", ".join(filter(None, parts))

    return show


def _nihongo(arguments: Arguments) -> str:
    """
    >>> _nihongo(Arguments(["Tokyo Tower", "東京タワー", "Tōkyō tawā"]))
    'Tokyo Tower (東京タワー, Tōkyō tawā)'
    """
    english, kanji, romaji, extra, after = (arguments[index] for index in range(5))
    if kanji and arguments.get("lead") == "yes":
        kanji = f"Japanese: {kanji}"
    inside = ", ".join(filter(None, [kanji, romaji, extra or arguments.get("extra")]))
    shown = f"{english} ({inside})" if english and inside else english or inside
    return f"{shown} {after or arguments.get('extra2')}".rstrip()


def _chinese(arguments: Arguments) -> str:
    labels = {"c": "Chinese", "s": "simplified Chinese", "t": "traditional Chinese", "p": "pinyin", "w": "Wade–Giles",
              "j": "Jyutping", "y": "Yale", "poj": "Pe̍h-ōe-jī", "l": "lit."}  # fmt: skip
    shown = (f"{label}: {arguments.get(key)}" for key, label in labels.items() if arguments.get(key))
    return "; ".join(shown) or "; ".join(arguments.given())


def _harvard(layout: str) -> Callable[[Arguments], str]:
    """{{harvtxt|Smith|Jones|2003|p=4}}: a citation that is part of the sentence."""

    def show(arguments: Arguments) -> str:
        *authors, year = arguments.given() or [""]
        names = (
            f"{authors[0]} et al."
            if len(authors) > 3
            else " & ".join([", ".join(authors[:-1]), *authors[-1:]]).strip(" &")
        )
        pages = arguments.get("p", "pp", "loc")
        place = f", {'pp' if arguments.get('pp') else 'p'}. {pages}" if pages and not arguments.get("loc") else ""
        return layout.format(names=names, year=year, place=place)

    return show


def _ship(arguments: Arguments) -> str:
    """{{ship|HMS|Victory|1765}}: the prefix, the name and, unless the page hides it, the identification."""
    prefix, name, identification, shown = (arguments[index] for index in range(4))
    match shown:
        case "1":
            return identification
        case "2":
            return name
        case "3":
            return f"{name} ({identification})" if identification else name
        case "6":
            return f"{prefix} {name}".strip()
    return f"{prefix} {name}".strip() + (f" ({identification})" if identification else "")


def _prefixed_ship(prefix: str) -> Callable[[Arguments], str]:
    return lambda arguments: _ship(Arguments([prefix, *arguments.positional]))


def _ship_class(arguments: Arguments) -> str:
    return f"{arguments[0]}-class {arguments[1]}".rstrip()


def _interlanguage_link(arguments: Arguments) -> str:
    """The local title; an older form of the template has the language before it."""
    code_first = len(arguments[0]) in (2, 3) and arguments[0].islower() and len(arguments[1]) > 3
    return arguments.get("lt") or arguments[1 if code_first else 0]


def _nuclide(arguments: Arguments) -> str:
    """The isotope by its name: the page shows its symbol, which stands in a table of its own."""
    return "-".join(arguments.given()[:2])


def _columns(arguments: Arguments) -> str:
    """{{columns|col1=...|col2=...}} and {{columns-list|2|...}}: the text, one column after the other."""
    columns = [arguments.get(f"col{number}") for number in range(1, 10)]
    return "\n" + ("\n".join(filter(None, columns)) or _last(arguments)) + "\n"


def _track_gauge(arguments: Arguments) -> str:
    return TRACK_GAUGES.get(arguments[0].lower().replace(" ", ""), arguments[0])


def _bible(arguments: Arguments) -> str:
    """The book and the verse; a third argument names the translation that the link opens."""
    return " ".join(arguments.given()[:2])


def _music(arguments: Arguments) -> str:
    signs = {"flat": "♭", "b": "♭", "sharp": "♯", "#": "♯", "natural": "♮", "doublesharp": "𝄪", "doubleflat": "𝄫"}
    return signs.get(arguments[0], arguments[0])


def _sic(arguments: Arguments) -> str:
    return f"{_concatenated(arguments)} [sic]".lstrip()


def _marriage(arguments: Arguments) -> str:
    name, start, end = (arguments[index] for index in range(3))
    return f"{name} (m. {start}{'–' + end if end else ''})" if start else name


def _uppercase_first(arguments: Arguments) -> str:
    return arguments[0][:1].upper() + arguments[0][1:]


_NAMES: dict[Callable[[Arguments], str], str] = {
    convert: "convert|cvt|conv",
    numbers.fraction: "frac|sfrac|fraction",
    numbers.value: "val",
    numbers.formatnum: "nts|number table sorting|formatnum|gapnum",
    numbers.ordinal: "ordinal|ordinalize|ord",
    numbers.simple_date: "birth date|birth date and age|birth-date|birth-date and age|bda|dob|death date|death-date|"
    "death-date and age|birth year and age|death year and age|start date|start-date|end date|end-date|"
    "start date and age|film date|release date|release date and age|date",
    numbers.death_date_and_age: "death date and age|dda",
    numbers.sortable_date: "dts|date table sorting",
    numbers.as_of: "as of|asof",
    numbers.old_style_date: "oldstyledate|oldstyledatedy",
    numbers.period("c."): "circa|c.|ca.",
    numbers.period("r."): "reign|r.",
    numbers.period("fl."): "floruit|fl.",
    _second: "lang|rtl-lang|sort|sorttext|hebrew-lang|resize|font|color|colored text|legend|legend inline|legend2|"
    "hover title|font color|script|script/slavonic",
    _last: "transl|transliteration|tlit|xlit|translit",
    _concatenated: "linktext|l-text|chem|gaps|concat",
    _joined(" · "): "hlist|flat list|flowlist",
    _joined(", "): "comma separated entries|cslist",
    _items: "ubl|ublist|unbulleted list|vunblist|bulleted list|bulletlist|br separated entries|br list|"
    "ordered list|blist",
    _paragraph: "quote|quotation|cquote|blockquote|bquote|centered pull quote|quote frame|rquote|poemquote|poem quote|"
    "verse translation|quotebox",
    _nihongo: "nihongo|nihongo2|nihongo3|korean",
    _chinese: "zh|chinese|lang-zh|zh-full",
    _harvard("{names} {year}{place}"): "harvnb|harvard citation no brackets|harvcolnb",
    _harvard("{names} ({year}{place})"): "harvtxt|harvard citation text|harvcoltxt",
    _harvard("({names} {year}{place})"): "harv|harvard citation|harvcol",
    _ship: "ship",
    _ship_class: "sclass|sclass-|sclass2|sclass2-",
    _interlanguage_link: "ill|interlanguage link|interlanguage link multi|illm|link-interwiki",
    _nuclide: "simplenuclide|simplenuclide2|nuclide|nuclide2",
    _track_gauge: "track gauge|railgauge|rail gauge",
    _columns: "columns|columns-list|columnslist|div col content",
    numbers.population_density: "pop density|population density",
    _bible: "bibleref|bibleverse|bibleref2",
    _joined(" "): "post-nominals|postnominals|post nominals",
    _music: "music",
    _sic: "sic|typo",
    _marriage: "marriage",
    _around("'"): "'",
    _around("×10^"): "e",
    _around("No. "): "no.",
    _around("Vol. "): "vol.",
    _around("p. "): "p.",
    _around("U.S. Patent "): "us patent|uspatent",
    _around("⟨", "⟩"): "angbr|angle bracket",
    _around("[", "]"): "bracket",
}
_SHIP_PREFIXES = ("USS", "HMS", "HMAS", "HMCS", "SS", "RMS", "MV", "USNS", "SMS", "USCGC", "INS")
_HANDLERS: dict[str, Callable[[Arguments], str]] = {
    **dict.fromkeys(FIRST_ARGUMENT, _first),
    **{name: _constant(text) for name, text in CONSTANTS.items()},
    **numbers.MONEY,
    **{prefix.lower(): _prefixed_ship(prefix) for prefix in _SHIP_PREFIXES},
    **{name: show for show, names in _NAMES.items() for name in names.split("|")},
}
_FUNCTIONS: dict[str, Callable[[Arguments], str]] = {
    "formatnum": numbers.formatnum,
    "lc": lambda arguments: arguments[0].lower(),
    "uc": lambda arguments: arguments[0].upper(),
    "lcfirst": lambda arguments: arguments[0][:1].lower() + arguments[0][1:],
    "ucfirst": _uppercase_first,
    "#if": lambda arguments: arguments[1] if arguments[0] else arguments[2],
    "#tag": _nothing,
    "defaultsort": _nothing,
    "displaytitle": _nothing,
}
