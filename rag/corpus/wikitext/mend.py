"""Spaces and punctuation where something was left out: "(; from Greek)", "(Greek: x, )" and "At , Alabama"."""

import re

from rag.corpus.wikitext.marks import DROPPED

_DROPPED_RUN = re.compile(rf"({DROPPED}(?:[{DROPPED} ;,:]|\.(?= ?{DROPPED}))*)")
_NO_SPACE_BEFORE = tuple(".!?)]}”’%")
_NO_SPACE_AFTER = tuple("“‘")
_SENTENCE_ENDS = tuple(".!?…")
_CLOSING_QUOTES = '"”’»'
_NO_MARKS = str.maketrans("", "", f"{DROPPED} ")
_LEADING = re.compile(r"^(?:[-–—]|\.)(?: |$)")  # what parted a dropped beginning from the rest
_TRAILING = re.compile(r"(?:^| )[-–—]$")
_WRITTEN_WITH_SPACES = re.compile("[^\\W_\u0e00-\u1dff\u2000-\uffff\U00010000-\U0010ffff]")
# A mark that goes without a trace, as after "word." or in "word, word": between two pieces of text that both have more
# than spaces and separators at the gap, no two letters, no period that may be one too many, and no bracket that the
# gap could leave empty.
_PLAIN_GAP = re.compile(
    rf"{DROPPED}(?<=[^{DROPPED} ;,:(\[“‘–—-]{DROPPED})(?<![{DROPPED} ;,:]\.{DROPPED})"
    rf"(?:(?<=\w{DROPPED}){DROPPED}*+(?![\w{DROPPED} ;,:–—-]|\. ?{DROPPED})"
    rf"|(?<=\W{DROPPED}){DROPPED}*+(?![.{DROPPED} ;,:–—\"”’»-])"
    rf"|{DROPPED}*+(?:(?=[;,:][^{DROPPED} ;,:)\].–—-])|(?=[;,:]? [^{DROPPED} ;,:.!?)\]}}”’%(\[–—-])))"
)


def mend(text: str) -> str:
    """One paragraph with single spaces, and with its punctuation repaired around what was dropped.

    >>> mend("Lima (\\x02; from Quechua)  is the capital\\x02 of Peru \\x02.")
    'Lima (from Quechua) is the capital of Peru.'
    """
    if DROPPED not in text:
        return single_spaces(text)
    closed = _PLAIN_GAP.sub("", text.replace("\xa0", " ").strip())
    if "  " not in closed:
        if closed.isprintable():  # as most paragraphs are then: no mark and no odd space is left
            return "" if _says_nothing(closed) else closed
        if closed.replace(DROPPED, "").isprintable():
            return single_spaces(_join(closed))
    return single_spaces(_join(_PLAIN_GAP.sub("", single_spaces(text))))


def single_spaces(text: str) -> str:
    """The same as ``" ".join(text.split())``, and quicker where there is nothing to do.

    >>> single_spaces(" a\\u2003b \\xa0 c ")
    'a b c'
    """
    text = text.replace("\xa0", " ").strip()
    # Of the characters that part words only the space is printable.
    plain = "  " not in text and text.replace(DROPPED, "").isprintable()
    return text if plain else " ".join(text.split())


def _join(text: str) -> str:
    kept, *rest = _DROPPED_RUN.split(text)
    pieces = [kept]
    started = False  # no mark is put before the first word
    for run, after in zip(rest[::2], rest[1::2], strict=True):
        started = started or pieces[-1].strip() != ""
        pieces[-1], joint, after = _joint(pieces[-1], run, after)
        pieces += [joint, after] if started else ["", _LEADING.sub("", after)]
    joined = "".join(pieces)
    return "" if rest and _says_nothing(joined) else joined


def _says_nothing(text: str) -> bool:
    """Whether only the punctuation around what was dropped is left; an ellipsis says that something is missing."""
    return text.strip(" ,;:–—-") in ("", ".")


def _joint(before: str, run: str, after: str) -> tuple[str, str, str]:
    """What stands around a dropped construct, with what to put between."""
    kept = before.rstrip(" ;,:")
    run = before[len(kept) :] + run
    if kept.endswith(("(", "[")):
        empty = after.startswith((")", "]"))
        return (kept[:-1].rstrip(), "", after[1:]) if empty else (kept, "", after)
    if after.startswith((")", "]")):
        return kept, "", after
    ended = kept.rstrip(_CLOSING_QUOTES).endswith(_SENTENCE_ENDS)
    if after.startswith(".") and after[1:2] in ("", " "):
        return kept, "", after[1:] if ended else after
    separators = run.translate(_NO_MARKS)
    if not after:
        return _TRAILING.sub("", kept), "" if separators.startswith(",") else separators[:1], ""
    space = " " if " " in run and not after.startswith(_NO_SPACE_BEFORE) else ""
    if separators:
        return kept, _strongest(separators, ended) + space, after
    return kept, "" if kept.endswith(_NO_SPACE_AFTER) else space or _gap(kept[-1:], after[0]), after


def _strongest(separators: str, ended: bool) -> str:
    """Of several marks around what was dropped the one that stays: the first, or the one that ends the sentence."""
    _, period, more = separators.partition(".")
    return ("" if ended else ".") + more.lstrip(".")[:1] if period else separators[0]


def _gap(left: str, right: str) -> str:
    """A space between two letters or digits that a note parted; not in scripts that write words without spaces."""
    return " " if _WRITTEN_WITH_SPACES.match(left) and _WRITTEN_WITH_SPACES.match(right) else ""
