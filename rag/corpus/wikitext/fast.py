"""A quick pass before the matcher: links with nothing special in them become their labels, in C.

Most marks in running prose belong to links such as ``[[river]]`` and ``[[Andes mountains|Andes]]``. Replacing those
beforehand changes no result, for these reasons:

* A plain link is a pair for the matcher in any surroundings: it is on one line, holds no bracket, brace, "<" or table
  mark, and its "[[" is not part of a longer run. It shows its label: without a colon it is in no namespace, a label
  that begins and ends with a visible character is not stripped, and one without "=" needs no protection in a template.
* The label cannot become part of another mark. It has a character that is in none, so runs of braces and brackets on
  both sides stay apart; it has no "=" for a heading; it does not begin with what may stand before "{|" at the start of
  a line; and no "<" or letter stands before it that could make it the rest of "<table".
* It cannot become part of a name that is read from the raw text. A page with a link in the name of a template is left
  alone, and so is a link with a colon after it, which may stand in the namespace of a link around it.
* ``render`` starts again without this pass where links are dropped (constructs nest too deeply) or where their marks
  end something (the options of an image whose brackets are not closed).
"""

import re

_TARGET = r"[^\[\]{}<>|:\n]*+"
_LABEL = r"[^\[\]{}<>|:=\n\s*#;!+-][^\[\]{}<>|:=\n]*+(?<!\s)"
# The look-behind comes after the brackets so that the search can look for these first.
_PLAIN_LINK = re.compile(rf"\[\[(?<![\[<A-Za-z/]\[\[)(?:{_TARGET}\|)?+({_LABEL})\]\](?![^\[\]{{}}<>|:]{{0,40}}:)")
_LINK_IN_NAME = re.compile(r"\{\{\s*+(?:[^|\n\[{}]|\[(?!\[)|\{(?!\{)|\}(?!\}))*+\[\[")


def show_plain_links(text: str) -> str:
    """``text`` with its plain links replaced by their labels.

    >>> show_plain_links("The [[river]] from the [[Andes mountains|Andes]] {{in|[[Peru]]}}, [[File:x.jpg|[[y]]]]")
    'The river from the Andes {{in|Peru}}, [[File:x.jpg|y]]'
    """
    if _LINK_IN_NAME.search(text):
        return text
    # The parts between the links and the one group of the pattern, by turns.
    return "".join(_PLAIN_LINK.split(text))
