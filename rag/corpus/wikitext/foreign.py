"""Templates of running prose that wikis in other languages have, by language and lower-case name.

What the English tables hold is not repeated: many wikis have taken those templates over with their names. Names that
mean something else in English ("s", "e") are here for the languages that have them.
"""

import re
from collections.abc import Callable

from rag.corpus.wikitext import prose
from rag.corpus.wikitext.arguments import Arguments
from rag.corpus.wikitext.phrases import quoted

Show = Callable[[Arguments], str]

_MONTHS = {
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "ru": "января февраля марта апреля мая июня июля августа сентября октября ноября декабря",
}
# {{enS|word}} on the German wiki, "englisch word".
_GERMAN_NAMES = {
    "en": "englisch", "fr": "französisch", "la": "lateinisch", "it": "italienisch", "es": "spanisch",
    "grc": "altgriechisch", "el": "griechisch", "ru": "russisch", "ar": "arabisch", "he": "hebräisch",
    "ja": "japanisch", "zh": "chinesisch", "pl": "polnisch", "nl": "niederländisch", "tr": "türkisch",
    "cs": "tschechisch", "hu": "ungarisch", "pt": "portugiesisch", "sv": "schwedisch", "da": "dänisch",
    "ca": "katalanisch", "eu": "baskisch", "fa": "persisch", "fi": "finnisch", "ga": "irisch", "hr": "kroatisch",
    "ko": "koreanisch", "no": "norwegisch", "ro": "rumänisch", "sr": "serbisch", "uk": "ukrainisch", "de": "deutsch",
}  # fmt: skip
_FRENCH_CENTURY = re.compile(r"([ivxl]+)(e|er) (siècle|millénaire)( av\. j\.-c\.)?$")
_RAISED_UNIT = str.maketrans("23-", "²³⁻")


def _with_spaces(number: str) -> str:
    """
    >>> _with_spaces("1234567"), _with_spaces("12,5")
    ('1 234 567', '12,5')
    """
    whole, separator, decimals = number.replace(".", ",").partition(",")
    grouped = f"{int(whole):,}".replace(",", " ") if re.fullmatch("[0-9]{4,30}", whole) else whole
    return grouped + separator + decimals


def _number(arguments: Arguments) -> str:
    return _with_spaces(arguments[0])


def _amount(arguments: Arguments) -> str:
    """{{unité|1234|km|2}}, "1 234 km²": units may have powers after them."""
    number, *units = arguments.given() or [""]
    powers = [unit.translate(_RAISED_UNIT) if re.fullmatch("-?[1-9]", unit) else f" {unit}" for unit in units]
    return _with_spaces(number) + "".join(powers)


def _measure(unit: str) -> Show:
    return lambda arguments: f"{arguments[0]} {unit}" if arguments[0] else ""


def _century(before: str, after: str) -> Show:
    """{{s|XIX|e}}, "XIXe siècle"."""
    return lambda arguments: f"{before}{arguments[0]}{arguments[1]}{after}" if arguments[0] else ""


def _two_centuries(arguments: Arguments) -> str:
    first, first_end, second, second_end = (arguments[index] for index in range(4))
    return f"{first}{first_end} et {second}{second_end} siècles"


def _dated(language: str, of: str = " ") -> Show:
    """A day, a month, which may be a number, and a year; or a year first, where it has four digits."""
    months = _MONTHS[language].split()

    def show(arguments: Arguments) -> str:
        parts = [part for part in arguments.given()[:3] if not re.fullmatch("[A-Za-z]{1,2}", part)]
        if len(parts) == 3 and re.fullmatch("[0-9]{4}", parts[0]):
            parts.reverse()
        if len(parts) > 1 and re.fullmatch("0?[1-9]|1[0-2]", parts[1]):
            parts[1] = months[int(parts[1]) - 1]
        return of.join(parts)

    return show


def _reading(arguments: Arguments) -> str:
    """{{読み仮名|東京|とうきょう}}: the reading in the brackets of that script."""
    base, reading = arguments[0], arguments[1]
    return f"{base}（{reading}）" if reading else base


def _spoken_in(language: str) -> Show:
    return lambda arguments: f"{language} {arguments[0]}" if arguments[0] else ""


def _label(*names: str, places: tuple[int, ...] = (0,)) -> Show:
    """A link to a page that only another wiki has: a named label, else the first argument that is given."""
    return lambda arguments: (
        arguments.get(*names) or next((arguments[place] for place in places if arguments[place]), "")
    )


_TABLES: dict[str, dict[str, Show]] = {
    "de": {
        "zitat|zitat-de|zitat-en|quote": quoted("„", "“"),
        "\"": quoted("„", "“"),
        "höhe": _measure("m"),
        "nts|formatzahl|zahl": prose.first,
        "nowrap|nobr|sperrschrift|kapitälchen|\"-|okina": prose.first,
        "datum": _dated("de"),
        "überschriftensimulation 3|überschriftensimulation 4": prose.first,
        **{f"{code}s": _spoken_in(name) for code, name in _GERMAN_NAMES.items()},
    },
    "fr": {
        "unité|unite|unité/2|nombre|nb|num": _amount,
        "formatnum": _number,
        "s|siècle": _century("", " siècle"),
        "s-": _century("", ""),
        "-s|s av jc": _century("", " siècle av. J.-C."),
        "-s-": _century("", " av. J.-C."),
        "sap": _century("", " siècle apr. J.-C."),
        "s2|sp": _two_centuries,
        "1er": lambda arguments: f"1er {arguments[0]}".rstrip(),
        "1re|1ère": lambda arguments: f"1re {arguments[0]}".rstrip(),
        **{ending: prose.first_or(ending) for ending in ("e", "er", "re", "ère")},
        "exp": prose.around("<sup>", "</sup>"),
        "ind": prose.first,
        "citation|guil|guillemets|\"|citation étrangère|cit": quoted("« ", " »"),
        "date|date-|date de naissance|date de décès|date2": _dated("fr"),
        "lien|lien à traduire": _label("texte", "fr", "trad"),
        "japonais": prose.nihongo,
        "langue|lang": prose.second,
        "souverain|souverain2|souverain-|p.|page": prose.first,
        "référence nécessaire|refnec|passage non neutre": prose.first,
        "petites capitales|pc|nobr|nowrap": prose.first,
    },
    "es": {
        "unidad": _amount,
        "siglo": lambda arguments: ("siglo " if arguments[2] else "") + arguments[0],
        "cita|cita textual": quoted("«", "»"),
        "esd|versalita|versalitas|nowrap|cita requerida": prose.first,
        "fecha": _dated("es", " de "),
        "enlace interwiki|ilm": prose.first,
    },
    "it": {
        "m": _amount,
        "unità": _amount,
        "citazione necessaria|senza fonte|ta|maiuscoletto|chiarire": prose.first,
        "citazione|quote": prose.paragraph,
        "data": _dated("it"),
        "sec": lambda arguments: f"{arguments[0]} secolo",
    },
    "nl": {
        "citaat|citeer|aanhaling": prose.first,
        "hoogte": _measure("m"),
        "nts|getal": prose.first,
        "bron?|feit": prose.first,
    },
    "pt": {
        "fmtn|fmtnum|unidade": _amount,
        "séc|século": lambda arguments: f"século {arguments[0]}",
        "citação|citação2|quote1|quote2": prose.paragraph,
        "dtlink|data|dni|dnibr": _dated("pt", " de "),
        "ac": lambda arguments: f"{arguments[0]} a.C.".lstrip(),
        "carece de fontes2|nowrap|nobr|versalete": prose.first,
        "link|ligação inter-wiki|ill": _label("lt", places=(2, 1, 0)),
    },
    "ru": {
        "num|число|nts|formatnum": _number,
        "s|nobr|нп|comment|подсказка|отсутствие пробела": prose.first,
        "цитата|начало цитаты|врезка": prose.paragraph,
        "дата|date|датарождения": _dated("ru"),
        "нп1|нп2|нп3|нп4|нп5|не переведено|не переведено 3|не переведено 5|iw": _label(places=(1, 0)),
        "нет аи 2|стиль текста|нет источника": prose.first,
    },
    "ja": {
        "読み仮名|読み仮名 ruby不使用|読み仮名ruby不使用|ルビ|振仮名|ふりがな|yomikana": _reading,
        "仮リンク": _label("label", places=(0,)),
        "要出典範囲|lang|by": lambda arguments: arguments[1] or arguments[0],
        "旧字|補助漢字フォント|jisx0212フォント|cjk": prose.first,
        "和暦|jdate": prose.first,
    },
}  # fmt: skip
_BY_NAME: dict[str, dict[str, Show]] = {
    language: {name: show for names, show in table.items() for name in names.split("|")}
    for language, table in _TABLES.items()
}


def foreign_handler(name: str, language: str) -> Show | None:
    """What shows the template of this name on a wiki of this language, where it is one of this language alone."""
    if language == "fr" and (century := _FRENCH_CENTURY.match(name)):
        number, ending, noun, era = century.groups()
        return prose.constant(f"{number.upper()}{ending} {noun}{' av. J.-C.' if era else ''}")
    return _BY_NAME.get(language, {}).get(name)
