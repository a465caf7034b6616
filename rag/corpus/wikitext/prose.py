"""Templates for words, quotations, lists and links in running prose."""

import unicodedata
from collections.abc import Callable

from rag.corpus.wikitext.arguments import Arguments
from rag.corpus.wikitext.dates import is_yes
from rag.corpus.wikitext.languages import LANGUAGES
from rag.corpus.wikitext.marks import protect, restore
from rag.corpus.wikitext.names import TRACK_GAUGES

Show = Callable[[Arguments], str]


def first(arguments: Arguments) -> str:
    """The first argument; a list or several paragraphs stand on lines of their own."""
    text = arguments[0] or arguments.get("text", "content")
    return f"\n{text}\n" if "\n" in text else text


def second(arguments: Arguments) -> str:
    """{{lang|fr|texte}}, {{sort|key|text}}: the first argument is for machines."""
    return arguments[1] or arguments.get("text")


def last(arguments: Arguments) -> str:
    return (arguments.given() or [arguments.get("text", "content")])[-1]


def concatenated(arguments: Arguments) -> str:
    return "".join(arguments.given())


def constant(text: str) -> Show:
    shown = text if text in "[]{}" else protect(text)  # brackets of two such templates are no literal "{{"
    return lambda _: shown


def joined(separator: str) -> Show:
    return lambda arguments: separator.join(arguments.given())


def first_or(default: str) -> Show:
    """{{yes|Since 1999}} shows its argument, {{yes}} a word of its own."""
    return lambda arguments: arguments[0] or default


def around(before: str, after: str = "") -> Show:
    """The first argument between marks, which go with it where it shows nothing."""
    return lambda arguments: f"{before}{arguments[0]}{after}" if restore(arguments[0]) else ""


def layout(pattern: str) -> Show:
    """The positional arguments in a pattern, "{0} U.S. {1} ({2})"; "" where the first one is missing."""
    count = pattern.count("{")

    def show(arguments: Arguments) -> str:
        parts = [arguments[index] for index in range(count)]
        return pattern.format(*parts).replace(" ()", "").rstrip() if parts[0] else ""

    return show


def era(pattern: str) -> Show:
    """{{BCE|44}}, "44 BCE", and {{BCE}}."""
    return lambda arguments: pattern.format(arguments[0]).strip()


def apostrophe(arguments: Arguments) -> str:
    """{{'}} and {{'|s}}: an apostrophe that no italic text beside it takes for a mark."""
    return protect("'") + arguments[0]


def items(arguments: Arguments) -> str:
    return "".join(f"\n* {item}" for item in arguments.given()) + "\n"


def paragraph(arguments: Arguments) -> str:
    """A quotation, with the person quoted where the page names one."""
    quoted = arguments[0] or arguments.get("text", "quote", "content", "quotetext")
    source = ", ".join(filter(None, [arguments[1] or arguments.get("author", "sign", "cite", "by", "from"),
                                     arguments[2] or arguments.get("source", "title", "work")]))  # fmt: skip
    return f"\n\n{quoted}\n\n" + (f"— {source}\n\n" if source else "")


def verse_translation(arguments: Arguments) -> str:
    return "".join(f"\n\n{text}" for text in arguments.given()[:2]) + "\n\n"


def in_language(code: str) -> Show:
    """{{lang-el|text}}: the text after the name of its language, with its transcription and meaning."""
    language = LANGUAGES.get(code) or LANGUAGES.get(code.partition("-")[0], "")

    def show(arguments: Arguments) -> str:
        text = arguments[0] or arguments.get("text")
        labelled = language and text and arguments.get("label") != "none"
        parts = [f"{arguments.get('label') or language}: {text}" if labelled else text]
        parts.append(arguments[1] or arguments.get("translit"))
        meaning = arguments[2] or arguments.get("lit", "translation")
        parts.append(f"lit. ‘{meaning}’" if meaning else "")
        return ", ".join(filter(None, parts))

    return show


def in_any_language(arguments: Arguments) -> str:
    """{{langx|el|text}}: like {{lang-el|text}}."""
    return in_language(arguments[0].lower())(Arguments(arguments.positional[1:], arguments.named))


def nihongo(arguments: Arguments) -> str:
    """
    >>> nihongo(Arguments(["Tokyo Tower", "東京タワー", "Tōkyō tawā"]))
    'Tokyo Tower (東京タワー, Tōkyō tawā)'
    """
    english, kanji, romaji, extra, after = (arguments[index] for index in range(5))
    if kanji and arguments.get("lead") == "yes":
        kanji = f"Japanese: {kanji}"
    inside = ", ".join(filter(None, [kanji, romaji, extra or arguments.get("extra")]))
    shown = f"{english} ({inside})" if english and inside else english or inside
    return f"{shown} {after or arguments.get('extra2')}".rstrip()


def nihongo_transcribed(arguments: Arguments) -> str:
    """{{nihongo3|English|kanji|romaji}}: the transcription comes first."""
    english, kanji, romaji, *rest = (arguments[index] for index in range(5))
    order = [romaji, kanji, english] if romaji else [english, kanji, ""]
    return nihongo(Arguments([*order, *rest], arguments.named))


def labelled(labels: dict[str, str]) -> Show:
    """{{zh|t=...|p=...}}: each text after the name of its script or transcription."""

    def show(arguments: Arguments) -> str:
        shown = [f"{label}: {arguments.get(key)}" for key, label in labels.items() if arguments.get(key)]
        return "; ".join(shown) or "; ".join(arguments.given())

    return show


CHINESE = {"c": "Chinese", "s": "simplified Chinese", "t": "traditional Chinese", "p": "pinyin", "hp": "pinyin",
           "tp": "Tongyong Pinyin", "w": "Wade–Giles", "j": "Jyutping", "cy": "Cantonese Yale", "y": "Yale",
           "poj": "Pe̍h-ōe-jī", "l": "lit."}  # fmt: skip
KOREAN = {"hangul": "Korean", "hanja": "Hanja", "rr": "RR", "mr": "MR", "lit": "lit."}


def korean(arguments: Arguments) -> str:
    return labelled(KOREAN)(arguments) if arguments.get("hangul") else nihongo(arguments)


def harvard(pattern: str) -> Show:
    """{{harvtxt|Smith|Jones|2003|p=4}}: a citation that is part of the sentence."""

    def show(arguments: Arguments) -> str:
        *authors, year = arguments.given() or [""]
        together = " & ".join([", ".join(authors[:-1]), *authors[-1:]]).strip(" &")
        names = f"{authors[0]} et al." if len(authors) > 3 else together
        pages = arguments.get("p", "pp", "loc")
        place = f", {'pp' if arguments.get('pp') else 'p'}. {pages}" if pages and not arguments.get("loc") else ""
        return pattern.format(names=names, year=year, place=place)

    return show


def ship(arguments: Arguments) -> str:
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


def prefixed_ship(prefix: str) -> Show:
    return lambda arguments: ship(Arguments([prefix, *arguments.positional]))


def ship_class(arguments: Arguments) -> str:
    return f"{arguments[0]}-class {arguments[1]}".rstrip()


def interlanguage_link(arguments: Arguments) -> str:
    """The local title; an older form of the template has the language before it."""
    code_first = len(arguments[0]) in (2, 3) and arguments[0].islower() and len(arguments[1]) > 3
    return arguments.get("lt", "en", "display") or arguments[1 if code_first else 0]


def section_link(arguments: Arguments) -> str:
    """{{section link|Lima|History}}, "Lima § History"."""
    page, *sections = (argument.strip() for argument in arguments.positional or [""])
    shown = arguments.get("nopage") or not page
    return arguments.get("display") or ("" if shown else f"{page} ") + ", ".join(
        f"§ {name}" for name in sections if name
    )


def web_link(arguments: Arguments) -> str:
    """{{URL|https://example.org/|Example}}: the label, else the address as a reader has it."""
    address = arguments[0] or arguments.get("url")
    label = arguments[1] or arguments.get("name", "title")
    return label or address.removeprefix("https://").removeprefix("http://").removeprefix("www.").rstrip("/")


def nuclide(arguments: Arguments) -> str:
    """The isotope by its name: the page shows its symbol, which stands in a table of its own."""
    return "-".join(arguments.given()[:2])


def columns(arguments: Arguments) -> str:
    """{{columns|col1=...|col2=...}} and {{columns-list|2|...}}: the text, one column after the other."""
    texts = [arguments.get(f"col{number}") for number in range(1, 10)]
    return "\n" + ("\n".join(filter(None, texts)) or last(arguments)) + "\n"


def track_gauge(arguments: Arguments) -> str:
    return TRACK_GAUGES.get(arguments[0].lower().replace(" ", ""), arguments[0])


def bible(arguments: Arguments) -> str:
    """The book, which may be a numbered one, and the verse; what follows names the translation that the link opens.

    >>> bible(Arguments(["1", "Kings", "2:3", "KJV"])), bible(Arguments(["", "John", "3:16", "KJV"]))
    ('1 Kings 2:3', 'John 3:16')
    """
    numbered = arguments[0] in ("1", "2", "3", "4", "I", "II", "III", "IV")
    return " ".join(arguments.given()[: 3 if numbered else 2])


def music(arguments: Arguments) -> str:
    signs = {"flat": "♭", "b": "♭", "sharp": "♯", "#": "♯", "natural": "♮", "doublesharp": "𝄪", "doubleflat": "𝄫"}
    if arguments[0] == "time":
        return "/".join(arguments.given()[1:])
    return signs.get(arguments[0], arguments[0])


def sic(arguments: Arguments) -> str:
    """{{sic|teh}}, "teh [sic]"; a page may hide the note."""
    text = concatenated(arguments)
    return text if is_yes(arguments.get("hide")) else f"{text} [sic]".lstrip()


def marriage(arguments: Arguments) -> str:
    name, start, end = (arguments[index] for index in range(3))
    return f"{name} (m. {start}{'–' + end if end else ''})" if start else name


def stacked(arguments: Arguments) -> str:
    """{{su|b=4|p=2-}}: an index below and one above."""
    return (arguments.get("b") or arguments[1]) + (arguments.get("p") or arguments[0])


def code_point(arguments: Arguments) -> str:
    """
    >>> restore(code_point(Arguments(["00E9"])))
    'U+00E9 é LATIN SMALL LETTER E WITH ACUTE'
    """
    code = arguments[0].upper()
    try:
        character = chr(int(code, 16))
    except (ValueError, OverflowError):
        return f"U+{code}"
    if not character.isprintable():
        return f"U+{code} {unicodedata.name(character, '')}".rstrip()
    return f"U+{code} {protect(character)} {unicodedata.name(character, '')}".rstrip()


def road(arguments: Arguments) -> str:
    """{{jct|state=NY|I|95|to1=...|US|1}}: the roads of a junction as their signs name them."""
    given = arguments.given()
    roads = [
        f"I-{number}" if kind == "I" else f"{kind} {number}"
        for kind, number in zip(given[::2], given[1::2], strict=False)
    ]
    city = arguments.get("city1", "location1")
    return " / ".join(roads) + (f" in {city}" if roads and city else "")


def review_score(site: str, best: int) -> Show:
    """{{Rotten Tomatoes prose|85|7.1|120}}, {{Metacritic film prose|75|30}}: what the sentence says, in short."""

    def show(arguments: Arguments) -> str:
        score, *rest = arguments.given() or [""]
        if not score or not rest:
            return ""
        if best == 10:
            average = f", with an average rating of {rest[0]} out of 10" if len(rest) > 1 else ""
            return f"On {site}, {score}% of {rest[min(1, len(rest) - 1)]} critics' reviews are positive{average}."
        return f"On {site}, it has a score of {score} out of {best}, based on {rest[0]} critics."

    return show


def uppercase_first(arguments: Arguments) -> str:
    return arguments[0][:1].upper() + arguments[0][1:]
