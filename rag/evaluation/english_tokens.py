"""English tokens as the MS MARCO script cuts them with spaCy's rule tokenizer, without spaCy.

spaCy costs two seconds of import and a hundred megabytes for this. The rules below make the same cuts in the same
order: white space; punctuation, quotes, currency and units off both ends of a chunk, until a known special case is
left; then the special case's pieces, or dots, hyphens and operators inside the chunk. Not covered: emoticons, units
and currencies that are written in other scripts, and addresses that are bare IP numbers.
"""

import re
from functools import lru_cache

import regex

_QUOTES = "\"'”“`‘´’‚,„»«「」『』（）〔〕【】《》〈〉⟦⟧"
_MARKS = r"…,:;!?¿؟¡()\[\]{}<>_#*&。？！，、；：～·।،۔؛٪"
_CURRENCY = r"US\$|C\$|A\$|[$£€¥฿₠-₿﷼]"
_UNITS = "[kdcm]?m[²³]?|[kmµ]?g|[µn]m|ha|yd|in|ft|lb|oz|t|m/s|km/h|kmh|mph|hPa|Pa|mbar|[mkgt]b|[MKGT]B|T|G|M|K|%"
_LOWER, _UPPER = r"\p{Ll}\p{Lo}", r"\p{Lu}\p{Lo}"

_PREFIX = regex.compile(rf"[§%=—–{_MARKS}{_QUOTES}]|\+(?![0-9])|\.\.+|{_CURRENCY}|\p{{So}}")
_SUFFIX = regex.compile(
    rf"(?:[{_MARKS}{_QUOTES}—–]|\.\.+|\p{{So}}|['’][sS]|(?<=[0-9])\+|(?<=°[FfCcKk])\.|(?<=[0-9])(?:{_CURRENCY}|{_UNITS})"
    rf"|(?<=[0-9{_LOWER}%²\-+|{_MARKS}{_QUOTES}])\.|(?<=[{_UPPER}][{_UPPER}])\.)$"
)
_INFIX = regex.compile(
    rf"\.\.+|…|\p{{So}}|(?<=[0-9])[+\-*^](?=[0-9-])|(?<=[{_LOWER}{_QUOTES}])\.(?=[{_UPPER}{_QUOTES}])"
    r"|(?<=\p{L}),(?=\p{L})|(?<=[\p{L}0-9])(?:-|–|—|--|---|——|~)(?=\p{L})|(?<=[\p{L}0-9])[:<>=/](?=\p{L})"
)
_URL = regex.compile(
    r"(?:[\w+\-.]{2,}://)?(?:\S+@)?(?:(?:[A-Za-z0-9\u00a1-\uffff][\w\u00a1-\uffff-]{0,62})?[A-Za-z0-9\u00a1-\uffff]\.)+"
    rf"[{_LOWER}]{{2,63}}(?::[0-9]{{2,5}})?(?:[/?#]\S*)?"
)
_CHUNK = re.compile(r"(\S+) ?|\s+")

# Words and the endings that English hangs on them; each is cut off, with an apostrophe or without.
_ENDINGS = {
    "i": "'m 'm+a 'll 'll+'ve 'd 'd+'ve 've",
    "you we they": "'ll 'll+'ve 'd 'd+'ve 've 're",
    "he she it": "'ll 'll+'ve 'd 'd+'ve 's",
    "who what when where why how there": "'s 'll 'll+'ve 're 've 'd 'd+'ve",
    "that this": "'s 'll 'll+'ve 'd 'd+'ve",
    "these those": "'ll 'll+'ve 're 've 'd 'd+'ve",
    "ca could do does did had may might must need ought sha should wo would": "n't n't+'ve",
    "ai are is was were have has dare": "n't",
    "could might must should would not": "'ve",
    "let": "'s",
}
_NOT_CONTRACTIONS = frozenset("ill its hell shell shed were well whore lets cmon howdy".split())  # noqa: SIM905
_PIECES = "can+not gon+na got+ta c'm+on how+'d+'y".split()  # noqa: SIM905
# Kept whole although they end in a full stop or hold a quote.
_WHOLE = """
    Adm. Ak. Ala. Apr. Ariz. Ark. Aug. Bros. Calif. Co. Colo. Conn. Corp. D.C. Dec. Del. Dr. E.G. E.g. Feb. Fla. Ga.
    Gen. Gov. I.E. I.e. Ia. Id. Ill. Inc. Ind. Jan. Jr. Jul. Jun. Kan. Kans. Ky. La. Ltd. Mar. Mass. Md. Messrs. Mich.
    Minn. Miss. Mo. Mont. Mr. Mrs. Ms. Mt. N.C. N.D. N.H. N.J. N.M. N.Y. Neb. Nebr. Nev. Nov. Oct. Okla. Ore. Pa. Ph.D.
    Prof. Rep. Rev. S.C. Sen. Sep. Sept. St. Tenn. Va. Wash. Wis. a.m. co. e.g. i.e. p.m. v.s. vs. and/or w/o C++ ''
    'S 's 'd 'll 're 'em 'nuff 'bout 'cause 'Cause 'cos 'Cos 'coz 'Coz 'cuz 'Cuz ma'am Ma'am o'clock O'clock ol' Ol'
    doin' Doin' goin' Goin' nothin' Nothin' nuthin' Nuthin' somethin' Somethin' lovin' Lovin' havin' Havin'
""".split()  # noqa: SIM905


def english_tokens(text: str) -> list[str]:
    """The tokens of the text in lower case; an empty one stands for white space beyond a single blank.

    Source: ``normalize_batch`` of the MS MARCO evaluation script. A text without any token gives one empty token,
    as splitting the script's joined string does.

    >>> english_tokens("It's $21.50, isn't it?")
    ['it', "'s", '$', '21.50', ',', 'is', "n't", 'it', '?']
    """
    tokens: list[str] = []
    for chunk in _CHUNK.finditer(text):
        tokens += _cut(chunk[1]) if chunk[1] else ("",)
    return tokens or [""]


@lru_cache(maxsize=200_000)
def _cut(chunk: str) -> tuple[str, ...]:
    """The lower-case tokens of a chunk without white space."""
    before: list[str] = []
    after: list[str] = []
    while chunk and chunk not in _SPECIAL:
        prefix = _length(_PREFIX.match(chunk))
        if chunk[prefix:] in _SPECIAL:
            before, chunk = [*before, chunk[:prefix]], chunk[prefix:]
            break
        suffix = _length(_SUFFIX.search(chunk, prefix))
        end = len(chunk) - suffix
        if chunk[:end] in _SPECIAL:
            after, chunk = [*after, chunk[end:]], chunk[:end]
            break
        if not prefix and not suffix:
            break
        if prefix:
            before.append(chunk[:prefix])
        if suffix:
            after.append(chunk[end:])
        chunk = chunk[prefix:end]
    middle = _SPECIAL.get(chunk) or ((chunk,) if _URL.fullmatch(chunk) else _split_inside(chunk))
    return tuple(token.lower() for token in (*before, *middle, *reversed(after)))


def _split_inside(chunk: str) -> list[str]:
    pieces: list[str] = []
    start = 0
    for infix in _INFIX.finditer(chunk):
        if infix.start() == start:
            continue  # nothing before it: it belongs to what follows
        pieces += [chunk[start : infix.start()], infix[0]]
        start = infix.end()
    return [*pieces, chunk[start:]] if start < len(chunk) else pieces


def _length(match: "regex.Match[str] | None") -> int:
    return len(match[0]) if match else 0


def _special_cases() -> dict[str, tuple[str, ...]]:
    """Every chunk with cuts of its own, as it is written: lower case and capitalised, ' and ’, with and without."""
    pieces = [tuple(word.split("+")) for word in _PIECES]
    for words, endings in _ENDINGS.items():
        pieces += [(word, *ending.split("+")) for word in words.split() for ending in endings.split()]
    bare = [tuple(piece.replace("'", "") for piece in cut) for cut in pieces]
    cuts = pieces + [cut for cut in bare if "".join(cut) not in _NOT_CONTRACTIONS]
    cuts += [(first.capitalize(), *rest) for first, *rest in cuts]
    cuts += [(word,) for word in _WHOLE] + [(f"{letter}.",) for letter in "abcdefghijklmnopqrstuvwxyzäöü"]
    cuts += [(str(hour), half) for hour in range(1, 13) for half in ("am", "pm", "a.m.", "p.m.")]
    cuts += [("°", scale, ".") for scale in "cfkCFK"] + [("y'", "all"), ("y", "all")]
    cuts += [tuple(piece.replace("'", "’") for piece in cut) for cut in cuts]
    return {"".join(cut): cut for cut in cuts}


_SPECIAL = _special_cases()
