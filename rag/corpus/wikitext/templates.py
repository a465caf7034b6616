"""What templates show in running prose: a table of names and handlers.

To add a template, put its lower-case name into a table: in ``names``, FIRST_ARGUMENT for one that shows its
first argument, CONSTANTS for a fixed text, INVISIBLE for one that a reader of the prose does not miss; in ``patterns``
for arguments between fixed words; in ``foreign`` for one that another language has; below, ``_NAMES`` for a function of
the arguments. A name in none of them is dropped and counted.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from rag.corpus.wikitext import countries, dates, numbers, phrases, pronunciation, prose
from rag.corpus.wikitext.arguments import Arguments, parse_arguments
from rag.corpus.wikitext.convert import convert, convert_between, convert_short, height
from rag.corpus.wikitext.foreign import foreign_handler
from rag.corpus.wikitext.names import (
    CONSTANTS,
    FIRST_ARGUMENT,
    INVISIBLE,
    INVISIBLE_PREFIXES,
    INVISIBLE_PREFIXES_EVERYWHERE,
    INVISIBLE_SUFFIXES,
)
from rag.corpus.wikitext.patterns import PATTERNS
from rag.corpus.wikitext.units import find_unit

# These show nothing here where they would count up to the day of reading, or where nothing is known of a unit.
INCOMPLETE = frozenset({"age", "age in years", "age at date", "age in days", "number of days", "days between",
                        "convert", "conv", "convert/2", "unit conversion", "cvt"})  # fmt: skip
_MAX_NAME = 80
_CONVERSION = re.compile(r"([a-z/0-9]{1,5}) to ([a-z/0-9]{1,5})$")


class Handler(NamedTuple):
    """How one template is shown; ``show`` is not called for an invisible one."""

    visible: bool
    show: Callable[[Arguments], str]


def template_name(text: str, start: int, end: int) -> str:
    """The lower-case name of the template whose content is ``text[start:end]``; a country's code stays in upper case.

    >>> template_name("Birth_date and age |1970|3|4", 0, 28)
    'birth date and age'
    """
    return _clean_name(text[start : min(end, start + _MAX_NAME)].partition("|")[0])


@lru_cache(maxsize=20_000)
def _clean_name(written: str) -> str:
    name = written.strip().partition("\n")[0].partition("{{")[0].replace("_", " ").strip()
    if name in countries.COUNTRY_TEMPLATES:
        return name
    name = name.lower()
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
def find_handler(name: str, language: str = "en") -> Handler | None:
    """The handler of a template, by its name and the language of its wiki; None for one that is not known here."""
    if language != "en":
        return _find_foreign(name.lower(), language)
    if show := _HANDLERS.get(name) or _FUNCTIONS.get(name.partition(":")[0] if ":" in name else ""):
        return Handler(True, show)
    if name in INVISIBLE or name.startswith(INVISIBLE_PREFIXES) or name.endswith(INVISIBLE_SUFFIXES):
        return Handler(False, _nothing)
    show = _by_pattern(name)
    return Handler(True, show) if show else None


def _find_foreign(name: str, language: str) -> Handler | None:
    """A template of another wiki, where an English name counts unless it could be a word of the language."""
    if show := foreign_handler(name, language):
        return Handler(True, show)
    if show := _HANDLERS.get(name) or _FUNCTIONS.get(name.partition(":")[0] if ":" in name else ""):
        return Handler(True, show)
    if name in INVISIBLE or name.startswith(INVISIBLE_PREFIXES_EVERYWHERE):
        return Handler(False, _nothing)
    show = _by_pattern(name)
    return Handler(True, show) if show else None


def _by_pattern(name: str) -> Callable[[Arguments], str] | None:
    """Families of templates, of which no table can name every member."""
    if name.startswith("lang-"):
        return prose.in_language(name[5:])
    if name.startswith(("ipa-", "ipac-")):
        return pronunciation.phonetic_gloss if name.startswith("ipa-") else pronunciation.ipa_by_sounds
    if name.startswith("script/") or name.endswith((" span", "-span")):
        return prose.first  # {{citation needed span|text}}: the sentence that the note is about
    if name.startswith("flag"):
        return countries.athlete if re.search("athlete|medall?ist", name) else countries.country
    if (found := _CONVERSION.match(name)) and find_unit(found.group(1)) and find_unit(found.group(2)):
        return convert_between(found.group(1), found.group(2))
    return None


def name_to_count(name: str) -> str:
    """What a template that nothing is known of is counted as: a parser function without its argument.

    >>> name_to_count("#expr: 2 + 2"), name_to_count("odd box")
    ('#expr', 'odd box')
    """
    return name.partition(":")[0].rstrip() if name.startswith("#") else name.lower()


def _nothing(_: Arguments) -> str:
    return ""


_NAMES: dict[Callable[[Arguments], str], str] = {
    convert: "convert|conv|convert/2|unit conversion",
    convert_short: "cvt",
    height: "height|convinfobox",
    numbers.fraction: "frac|sfrac|fraction|fract|tfrac|dfrac",
    numbers.value: "val",
    numbers.formatnum: "nts|number table sorting|formatnum|gapnum|format number|formatprice|format price|"
    "comma separate",
    numbers.ordinal: "ordinal|ordinalize|ord|nth",
    numbers.in_words: "number to word|numtext|spellnum|spell number|numbers to words|number in words",
    numbers.ordinal_in_words: "ordinal to word|spellnum ordinal|ordinal in words",
    numbers.roman: "roman|roman numeral|roman num|to roman",
    numbers.percentage: "percentage|percent|pct|fraction to percent",
    numbers.rounded: "rnd|round|round to",
    numbers.currency: "currency|curr",
    numbers.indian_rupees: "inr|inrconvert|inr convert|₹|indian rupee|indian rupees|rs|rs.",
    numbers.old_british_money: "£sd|pounds, shillings, and pence",
    numbers.rating: "rating|stars|rating-christgau",
    numbers.population_density: "pop density|population density",
    dates.simple_date: "birth date|birth date and age|birth-date|birth-date and age|bda|dob|death date|death-date|"
    "death-date and age|birth year and age|start date|start-date|end date|end-date|start date and age|"
    "start and end date|end date and age|film date|release date|release date and age|date|bd|dod|birth year|"
    "death year|isodate|start year",
    dates.death_date_and_age: "death date and age|dda|death date and given age",
    dates.death_year_and_age: "death year and age",
    dates.birth_year_by_age: "birth based on age as of date|birth year based on age as of date|"
    "birth based on age at death|birth year based on age at death",
    dates.sortable_date: "dts|date table sorting|dtsh|sortdate|dateyear",
    dates.age: "age|age in years|age at date|agedeath",
    dates.age_in_days: "age in days|number of days|days between",
    dates.as_of: "as of|asof|as at|as-of",
    dates.old_style_date: "oldstyledate|oldstyledatedy|oldstyledateny|old style date",
    dates.month_name: "monthname|month name",
    dates.season: "nhly|nhl year|nbay|nba year|nhlseason|nba season|whay|euroyear",
    dates.duration: "duration",
    dates.period("c."): "circa|c.|ca.|ca",
    dates.period("née"): "née|nee",
    dates.period("né"): "né",
    dates.period("r."): "reign|r.",
    dates.period("fl."): "floruit|fl.",
    dates.period("b."): "b.",
    dates.period("d."): "d.",
    countries.country: "flag|flagu|flagcountry|flaglist|flagteam|flagnoc|fb|fb-rt|fbu|fbw|fbw-rt|nft|cr|cr-rt|crw|"
    "ru|ru-rt|rl|rl-rt|bk|bk-rt|bkw|vb|vb-rt|vbw|hb|hb-rt|hbw|fh|fh-rt|ih|ih-rt|ihw|wp-rt|country|country name|rut|"
    "futsal|bs-rt|davis|fed|nbl",
    countries.athlete: "flagathlete|flagmedalist|flagioc2athlete",
    prose.second: "lang|rtl-lang|hebrew-lang|legend|legend inline|legend2|hover title|h:title|script|"
    "script/slavonic|native name|native phrase|wikt-lang|flagg",
    prose.last: "sort|sorttext|hidden sort|transl|transliteration|tlit|xlit|translit|resize|font|color|colour|"
    "colored text|coloured text|font color|font colour|fontcolor|colorize|colored link|background color|audio|"
    "audio-nohelp|lnl|rail line|ill-wd|background colour|bgcolor|party name with colour",
    prose.concatenated: "linktext|l-text|chem|gaps|concat|not a typo|notatypo|mp|mpl|mpl-|element cell",
    prose.joined(" · "): "hlist|flat list|flowlist|dotted list",
    prose.joined(", "): "comma separated entries|cslist|codes|enum|comma separated list|commalist",
    prose.joined("; "): "aligned table",
    prose.joined("+"): "key press|keypress|key combo|keyboard shortcut",
    prose.joined(" "): "post-nominals|postnominals|post nominals|sortname|sort name|postnom|space separated",
    prose.items: "ubl|ublist|unbulleted list|vunblist|bulleted list|bulletlist|br separated entries|br list|"
    "ordered list|blist|numbered list|numlist|ol|collapsible list|vertical list|olist|pagelist",
    prose.paragraph: "quote|quotation|cquote|blockquote|bquote|centered pull quote|quote frame|rquote|poemquote|"
    "poem quote|quotebox|pull quote|pullquote|quoteblock|block quotation|qb|rquotef",
    prose.verse_translation: "verse translation|verse trans",
    prose.in_any_language: "langx|lang-x",
    prose.nihongo: "nihongo|nihongo-s|nihongo title",
    prose.nihongo_transcribed: "nihongo3|nihongo krt|nihongo-krt",
    prose.first: "nihongo foot",
    prose.korean: "korean|ko-hhrm|korean auto",
    prose.labelled(prose.CHINESE): "zh|chinese|lang-zh|zh-full|zh-cp|zh-stp|zh-tsp|zh-tp|zh-sp|zh-c|zh-t|zh-s",
    prose.harvard("{names} {year}{place}"): "harvnb|harvard citation no brackets|harvcolnb",
    prose.harvard("{names} ({year}{place})"): "harvtxt|harvard citation text|harvcoltxt",
    prose.harvard("({names} {year}{place})"): "harv|harvard citation|harvcol|harvp|harvard citations",
    phrases.harvard_links: "harvs",
    phrases.cited: "citation",
    phrases.ruby: "ruby|ruby-ja|ruby-zh",
    phrases.ratio: "ratio",
    phrases.significant: "sigfig|significant figures",
    phrases.two_dates: "start and end dates",
    pronunciation.ipa: "ipa",
    pronunciation.phonetic: "ipa-all|ipablink",
    pronunciation.spoken(): "ipalink",
    pronunciation.phonemic: "ipaslink|pron|pron-en",
    pronunciation.spoken(place=1): "audio-ipa",
    pronunciation.ipa_by_sounds: "ipac|ipac-en",
    prose.ship: "ship|warship",
    prose.ship_class: "sclass|sclass-|sclass2|sclass2-|ship class",
    prose.interlanguage_link: "ill|interlanguage link|interlanguage link multi|illm|link-interwiki|ill-wd2|iwlink|ill2",
    prose.section_link: "slink|section link|seclink|sectlink",
    prose.web_link: "url|plain link|plainlink|web link|link-url",
    prose.nuclide: "simplenuclide|simplenuclide2|nuclide|nuclide2|nuclide link",
    prose.track_gauge: "track gauge|railgauge|rail gauge",
    prose.columns: "columns|columns-list|columnslist|div col content|col-list|multi-column numbered list|columnslist2",
    prose.bible: "bibleref|bibleverse|bibleref2|bible verse|bibleref2-nb|bibleverse-nb|bibleref2c|bibleref2c-nb|"
    "bibleref-nb",
    prose.music: "music",
    prose.sic: "sic|typo|sic?",
    prose.marriage: "marriage",
    prose.stacked: "su|supersub|subsup",
    prose.code_point: "unichar|unicode character|u+",
    prose.road: "jct",
    prose.review_score("Rotten Tomatoes", 10): "rotten tomatoes prose|rt prose|rotten-tomatoes prose",
    prose.review_score("Metacritic", 100): "metacritic film prose|metacritic prose|mc film|metacritic album prose",
    prose.apostrophe: "'",
    **PATTERNS,
}
_SHIP_PREFIXES = (
    "USS", "HMS", "HMAS", "HMCS", "HMNZS", "HMIS", "HMT", "SS", "RMS", "MV", "MS", "MY", "PS", "RV", "RFA", "USNS",
    "USAT", "USAV", "USRC", "USCGC", "USC&GS", "SMS", "CSS", "INS", "ORP", "HNoMS", "HDMS", "HSwMS", "HNLMS", "HMSAS",
    "SAS", "ARA", "BAP", "ROKS", "KRI", "KD", "BRP", "PNS", "TCG", "JS", "JDS", "NRP", "LÉ", "RRS", "GTS", "TSS", "TS",
)  # fmt: skip
_HANDLERS: dict[str, Callable[[Arguments], str]] = {
    **dict.fromkeys(FIRST_ARGUMENT, prose.first),
    **{name: prose.constant(text) for name, text in CONSTANTS.items()},
    **numbers.MONEY,
    **numbers.FRACTION_SIGNS,
    **phrases.SIGNS,
    **phrases.ELEMENTS,
    **{prefix.lower(): prose.prefixed_ship(prefix) for prefix in _SHIP_PREFIXES},
    "smu": prose.prefixed_ship("SM"),
    "gs": prose.prefixed_ship("German submarine"),
    "jsub": prose.prefixed_ship("Japanese submarine"),
    **{name: show for show, names in _NAMES.items() for name in names.split("|")},
}
for _code in countries.COUNTRY_TEMPLATES:
    _HANDLERS[_code] = countries.country_by_template(_code, _HANDLERS.get(_code.lower()))
# Tables of which a reader of the running text misses nothing, or the prose that stands in them.
ROWS: dict[str, Callable[[Arguments], str]] = {
    "track listing": phrases.tracks,
    "tracklist": phrases.tracks,
    "tracklisting": phrases.tracks,
    "episode list": phrases.episode,
    "episode list/sublist": phrases.episode,
    "japanese episode list": phrases.episode,
}
WITH_PROSE = frozenset(name for name, show in ROWS.items() if show is phrases.episode)
_FUNCTIONS: dict[str, Callable[[Arguments], str]] = {
    "formatnum": numbers.formatnum,
    "lc": lambda arguments: arguments[0].lower(),
    "uc": lambda arguments: arguments[0].upper(),
    "lcfirst": lambda arguments: arguments[0][:1].lower() + arguments[0][1:],
    "ucfirst": prose.uppercase_first,
    "plural": lambda arguments: arguments[1] if arguments[0] == "1" else arguments[2] or arguments[1],
    "#if": lambda arguments: arguments[1] if arguments[0] else arguments[2],
    "#ifeq": lambda arguments: arguments[2] if arguments[0] == arguments[1] else arguments[3],
    "#tag": _nothing,
    "defaultsort": _nothing,
    "displaytitle": _nothing,
}
