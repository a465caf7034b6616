"""Spaces and punctuation where something was left out: "(; from Greek)", "(Greek: x, )" and "At , Alabama"."""

import re

from rag.corpus.wikitext.marks import DROPPED

_DROPPED_RUN = re.compile(rf"({DROPPED}[{DROPPED} ;,:]*)")
_NO_SPACE_BEFORE = tuple(".!?)]}”’%")
_NO_SPACE_AFTER = tuple("“‘")
_NO_MARKS = str.maketrans("", "", f"{DROPPED} ")
# A mark that goes without a trace, as after "word." or in "word, word": between two pieces of text that both have more
# than spaces and separators at the gap, and no bracket that the gap could leave empty.
_PLAIN_GAP = re.compile(
    rf"{DROPPED}(?<=[^{DROPPED} ;,:(\[“‘]{DROPPED}){DROPPED}*+"
    rf"(?:(?![{DROPPED} ;,:])|(?=[;,:](?![{DROPPED} ;,:)\]]))|(?=[;,:]? [^{DROPPED} ;,:.!?)\]}}”’%(\[]))"
)


def mend(text: str) -> str:
    """One paragraph with single spaces, and with its punctuation repaired around what was dropped.

    >>> mend("Lima (\\x02; from Quechua)  is the capital\\x02 of Peru \\x02.")
    'Lima (from Quechua) is the capital of Peru.'
    """
    text = single_spaces(text)
    if DROPPED in text:
        text = _PLAIN_GAP.sub("", text) if text != DROPPED else ""
        if DROPPED in text:
            text = single_spaces(_join(text))
    return text


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
    started = False  # nothing is mended before the first word
    for run, after in zip(rest[::2], rest[1::2], strict=True):
        started = started or pieces[-1].strip() != ""
        pieces[-1], joint, after = _joint(pieces[-1], run, after)
        pieces += [joint if started else "", after]
    return "".join(pieces)


def _joint(before: str, run: str, after: str) -> tuple[str, str, str]:
    """What stands around a dropped construct, with what to put between."""
    kept = before.rstrip(" ;,:")
    run = before[len(kept) :] + run
    if kept.endswith(("(", "[")):
        empty = after.startswith((")", "]"))
        return (kept[:-1].rstrip(), "", after[1:]) if empty else (kept, "", after)
    if after.startswith((")", "]")):
        return kept, "", after
    separators = run.translate(_NO_MARKS)
    space = " " if " " in run and not after.startswith(_NO_SPACE_BEFORE) else ""
    if separators:
        return kept, separators[0] + space, after
    return kept, "" if kept.endswith(_NO_SPACE_AFTER) else space, after
