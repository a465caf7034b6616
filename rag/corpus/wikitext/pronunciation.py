"""What is left out between round brackets: how a word is spoken, and amounts that depend on the day of reading.

A reader finds the first of these after the name that an article is about, "Bern (German: Bern, [bɛrn])", where it is
no text anybody searches for. In a sentence it is: "the vowel [a] is common". So a template for sounds marks what it
shows, and the last word is spoken when the brackets around it are known.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from rag.corpus.wikitext.arguments import Arguments
from rag.corpus.wikitext.languages import LANGUAGES
from rag.corpus.wikitext.marks import DROPPED, protect
from rag.corpus.wikitext.numbers import LOST_AMOUNT

_START, _END = "\x1a", "\x1b"  # like those of ``marks``, which a page cannot forge
_GLOSS = DROPPED  # first in a text that is no part of any sentence, but says how the word before it is spoken
_PIECES = re.compile(f"({_START}[^{_START}{_END}]*{_END}|[();,])")
_REST = str.maketrans("", "", _START + _END)
_WORDS = re.compile(r"\w+")
# Words that say nothing by themselves beside a pronunciation, and beside an amount.
_SOUND_WORDS = """
pronounced pronunciation pronunciations pronounce pron or and ipa also locally in english us uk american british
australian canadian listen approximately sometimes usually often commonly about standard native traditional
traditionally modern classical is as formerly now the eastern western northern southern central european brazilian
castilian mandarin cantonese austrian swiss ecclesiastical ancient
"""
_AMOUNT_WORDS = """
equivalent to in about approximately around roughly some nearly over almost or and as of today s present day current
currently modern money dollars dollar pounds euros us u adjusted adjusting when for with inflation inflated terms value
values prices worth equal is the a year million billion thousand now purchasing power after accounting at which would be
"""
_AROUND_SOUNDS = {*_SOUND_WORDS.split(), *" ".join(LANGUAGES.values()).lower().split()}
_AROUND_AMOUNTS = frozenset(_AMOUNT_WORDS.split())
_AMOUNT = f"(?:US|AU?|CA?N?|NZ|HK|R)?[$£€¥₹₽]? ?{LOST_AMOUNT}(?: (?:million|billion|thousand|trillion))?"
# "..., equivalent to $ in ," in a sentence: the phrase goes as a whole.
_LOST_PHRASE = re.compile(
    rf"\b(?:(?:which is |which was |the )?(?:equivalent (?:to|of)|equal to|worth)|or) "
    rf"(?:(?:about|approximately|around|roughly|over|nearly|some) )?{_AMOUNT}"
    rf"(?: (?:in|as of) (?:{DROPPED}|\d{{4}}|today's|current)(?: (?:dollars|money|pounds|terms))?| today)?"
)
_SLASHES = protect("/"), protect("/")
_BRACKETS = protect("["), protect("]")
# What {{IPAc-en|...}} takes beside the sounds, and the sounds that it writes in ASCII.
_NO_SOUNDS = frozenset({"us", "uk", "lang", "pron", "local", "localpron", "also", "icon", "ipa", "en", "or", "and"})
_ASCII_SOUNDS = {
    "ae": "æ", "a:": "ɑː", "aa": "ɑː", "aw": "aʊ", "ai": "aɪ", "ay": "eɪ", "ei": "eɪ", "au": "aʊ", "ou": "oʊ",
    "oh": "oʊ", "ow": "aʊ", "oi": "ɔɪ", "oy": "ɔɪ", "i:": "iː", "ee": "iː", "u:": "uː", "oo": "uː", "o:": "ɔː",
    "@": "ə", "@r": "ər", "'": "ˈ", ",": "ˌ", "ng": "ŋ", "sh": "ʃ", "ch": "tʃ", "tch": "tʃ", "th": "θ", "dh": "ð",
    "zh": "ʒ", "j": "j", "dj": "dʒ", "g": "ɡ", "er": "ər", "_": " ",
}  # fmt: skip


def spoken(before: str = "", after: str = "", place: int = 0, gloss: str = "") -> Callable[[Arguments], str]:
    """{{IPA|x}} and its kin: the argument at ``place``, as a text that may go."""
    return lambda arguments: _marked(f"{gloss}{before}{arguments[place]}{after}") if arguments[place] else ""


phonetic = spoken(*_BRACKETS)
phonemic = spoken(*_SLASHES)
phonetic_gloss = spoken(*_BRACKETS, gloss=_GLOSS)


def ipa(arguments: Arguments) -> str:
    """{{IPA|[bɛrn]}}; and {{IPA|de|bɛrn}}, with the language before it."""
    if arguments[1] and arguments[0].lower() in LANGUAGES:
        return spoken(*_BRACKETS, place=1, gloss=_GLOSS)(arguments)
    return spoken()(arguments)


def ipa_by_sounds(arguments: Arguments) -> str:
    """{{IPAc-en|ˈ|b|ɜːr|n}}, "/ˈbɜːrn/"."""
    sounds = [sound for sound in arguments.given() if sound.lower() not in _NO_SOUNDS]
    shown = "".join(_ASCII_SOUNDS.get(sound, sound) for sound in sounds)
    return _marked(f"{_GLOSS}{_SLASHES[0]}{shown}{_SLASHES[1]}" if shown else "")


def _marked(text: str) -> str:
    return f"{_START}{text.translate(_REST)}{_END}"


def settle_brackets(text: str) -> str:
    """``text`` with every pronunciation, and every amount nobody can know, left out or shown for good.

    >>> start, end = _START, _END
    >>> settle_brackets(f"Bern (spoken {start}a{end}; or {start}b{end}, a city) {start}c{end}").replace(DROPPED, "*")
    'Bern (spoken a;*, a city) c'
    """
    if LOST_AMOUNT not in text and _START not in text:
        return text
    lines = text.split("\n")
    shown = (_settle_line(line) if _START in line or LOST_AMOUNT in line else line for line in lines)
    return "\n".join(shown).replace(_START, "").replace(_END, "")


@dataclass(slots=True)
class _Item:
    """What stands between two separators of one pair of brackets."""

    start: int  # in the pieces of the line
    sounds: bool = False
    amounts: bool = False
    words: bool = False  # it says something else too
    gloss: int | None = None  # the piece that says how what stands before it is spoken


def _settle_line(line: str) -> str:
    """The items of brackets that hold nothing else are dropped; each piece is looked at once."""
    if LOST_AMOUNT in line:
        line = _LOST_PHRASE.sub(DROPPED, line)
    pieces: list[str] = []
    open_items: list[_Item] = []  # the one that is being read, of each pair of brackets that is open
    for piece in _PIECES.split(line):
        item = open_items[-1] if open_items else None
        if piece == "(":
            pieces.append(piece)
            if item:
                item.words = True
            open_items.append(_Item(len(pieces)))
        elif item and piece in (")", ";", ","):
            _end_item(pieces, open_items.pop())
            pieces.append(piece)
            if piece != ")":
                open_items.append(_Item(len(pieces)))
        elif piece.startswith(_START):
            if item:
                item.sounds = True
                item.gloss = len(pieces) if piece[1] == _GLOSS else None
            pieces.append(piece[1:-1] or DROPPED)
        else:
            pieces.append(piece)
            if item:
                _read(item, piece)
    return "".join(pieces)


def _read(item: _Item, piece: str) -> None:
    before, amount, after = piece.partition(LOST_AMOUNT)
    item.amounts = item.amounts or amount != ""
    words = {word.lower() for word in _WORDS.findall(before)}
    words |= {word.lower() for word in _WORDS.findall(after) if not word.isdigit()}  # "in 2015 dollars"
    item.words = item.words or not words <= (_AROUND_AMOUNTS if item.amounts else _AROUND_SOUNDS)
    item.gloss = None if words else item.gloss


def _end_item(pieces: list[str], item: _Item) -> None:
    if (item.sounds or item.amounts) and not item.words:
        del pieces[item.start :]
        pieces.append(DROPPED)
    elif item.gloss is not None:
        pieces[item.gloss] = DROPPED
