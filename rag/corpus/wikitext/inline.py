"""The last passes over wikitext: tags, external links, quotes, lists, entities, paragraphs.

Every pattern here is linear: what it repeats cannot contain the character that starts it.
"""

import re
import unicodedata

from rag.corpus.wikitext.entities import decode
from rag.corpus.wikitext.marks import DROPPED, protect, restore
from rag.corpus.wikitext.mend import mend
from rag.corpus.wikitext.powers import show_powers

_INLINE_TAGS = frozenset(
    {
        *(
            "abbr",
            "b",
            "bdi",
            "bdo",
            "big",
            "cite",
            "code",
            "data",
            "del",
            "dfn",
            "em",
            "font",
            "i",
            "includeonly",
            "ins",
        ),
        *("kbd", "link", "mark", "meta", "noinclude", "nowiki", "nobr", "onlyinclude", "q", "rb", "ref", "references"),
        *("rp", "rt", "rtc", "ruby", "s", "samp", "section", "small", "span", "strike", "strong", "sub", "sup", "time"),
        *("tt", "u", "var", "wbr"),
    }
)
_BLOCK_TAGS = frozenset(
    {
        *(
            "blockquote",
            "caption",
            "center",
            "dd",
            "div",
            "dl",
            "dt",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "hr",
            "li",
            "ol",
        ),
        *("p", "poem", "pre", "source", "syntaxhighlight", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"),
        *("gallery", "math", "timeline", "score", "imagemap"),
    }
)
_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9]*)(?:[\s/][^<>]*)?>")
# The reference whose tag is never closed by ">", with the attributes that nobody would take for prose.
_UNFINISHED = re.compile(
    r"</?ref\b(?:\s++(?:name|group)\s*+=\s*+(?:\"[^\"<>\n]*+\"|[^\s<>\"/|]++))*+(?:\s*+/)?", re.IGNORECASE
)
_BRACKETED = r"\[[^\[\]\n]*+\]"
_EXTERNAL_LINK = re.compile(
    r"\[(?:(?:[A-Za-z]{3,9}:)?//|mailto:|news:)[^\s\[\]<>]*+"
    rf"(?:[ \t]++((?:[^\[\]\n]++|{_BRACKETED})*+))?+\]"
)
_CLOSERS = re.compile(rf"(\[(?:[^\[\]\n]++|{_BRACKETED})*+\])|\]\]")  # brackets in pairs, or a link's that ends nothing
_APOSTROPHE = protect("'")
_QUOTES = re.compile(r"'{2,}")
_MAGIC_WORD = re.compile(r"__[A-Z]{3,30}__")
_BLOCK_MARKS = f"|-*#:;{DROPPED}"  # a line that begins with another character belongs to a paragraph
# "|x| denotes": bars close around something, and no second cell follows as in a row of a table.
_ABSOLUTE = re.compile(r"\|(?!nowrap)[^\s|=}+-](?:[^|=]{0,30}[^\s|=])?\|(?!\|)[^|]*+(?:\|[^|]++)*+$")
_LEFTOVER = re.compile(r"\[\[+|\{\{+|'''+")


def finish(text: str) -> str:
    """Plain text of a page whose templates, links and tables are already rendered."""
    text = _strip_tags(text)
    text = _EXTERNAL_LINK.sub(lambda link: link.group(1) or DROPPED, text)
    if "]" in text and "]]" in text:  # the search for one character is much quicker, and often enough
        text = _CLOSERS.sub(lambda found: found.group(1) or "", text)
    if "_" in text and "__" in text:
        text = _MAGIC_WORD.sub("", text)
    lines = text.split("\n")
    if "''" in text:
        lines = [_strip_quotes(line) if "''" in line else line for line in lines]
    return unicodedata.normalize("NFC", "\n".join(filter(None, map(_finish_block, _blocks(lines)))))


def _finish_block(block: str) -> str:
    text = _decode(block).strip()
    # Neither the marks nor any character that parts words are printable, apart from the space.
    plain = DROPPED not in text and text.isprintable() and "  " not in text
    if not plain:
        text = mend(text)
    if "[" in text or "{" in text or ("'" in text and "'''" in text):
        text = _LEFTOVER.sub(lambda leftover: leftover.group()[0], text)
    return text if plain or text.isprintable() else restore(text)


def _strip_tags(text: str) -> str:
    if "<" not in text:
        return text
    first, last = text.find("<"), text.rfind("<")
    if text.find("<su", first, last + 3) >= 0 or text.find("<SU", first, last + 3) >= 0:
        text = show_powers(text)
    text = _TAG.sub(_tag, text)
    return _UNFINISHED.sub(DROPPED, text) if "<" in text else text


def _tag(tag: re.Match[str]) -> str:
    name = tag.group(1).lower()
    if name in _INLINE_TAGS:
        return ""
    if name == "br":
        return " "
    return "\n\n" if name in _BLOCK_TAGS else tag.group()


def _strip_quotes(line: str) -> str:
    """Remove the quotes of bold and italic; keep apostrophes beside them, as in "L'''amour''"."""
    bold = line.count("'''")
    if "''''" in line or (bold % 2 and (line.count("''") - bold) % 2):
        return _strip_runs(line)
    return line.replace("'''", "").replace("''", "")


def _strip_runs(line: str) -> str:
    """The same where a run of quotes is longer or some are left open."""
    runs = [len(run) for run in _QUOTES.findall(line)]
    bold = sum(run != 2 for run in runs)
    italic = sum(run == 2 or run >= 5 for run in runs)
    if bold % 2 and italic % 2:
        line = _split_bold(line)
    return _QUOTES.sub(lambda run: "'" if len(run.group()) in (4, 6) else "", line)


def _split_bold(line: str) -> str:
    """Where bold and italic are both left open, one of the ''' is an apostrophe before italic.

    MediaWiki takes the first that follows a word of one letter, else the first that follows a word.
    """
    after_word = [
        run for run in _QUOTES.finditer(line) if len(run.group()) == 3 and line[run.start() - 1 : run.start()].isalnum()
    ]
    after_letter = [run for run in after_word if not line[max(run.start() - 2, 0) : run.start() - 1].strip()]
    for run in (after_letter or after_word)[:1]:
        return f"{line[: run.start()]}{_APOSTROPHE}{line[run.end() - 2 :]}"
    return line


def _blocks(lines: list[str]) -> list[str]:
    """Paragraphs, list items and preformatted lines; lines of a paragraph are joined."""
    blocks: list[str] = []
    paragraph: list[str] = []

    def end_paragraph() -> None:
        if paragraph:
            blocks.append(" ".join(paragraph))
            paragraph.clear()

    for line in lines:
        stripped = line.strip()
        if stripped and stripped[0] not in _BLOCK_MARKS:
            paragraph.append(stripped)
        elif not stripped:
            end_paragraph()
        elif stripped.startswith("----"):  # a rule, and perhaps text after it
            end_paragraph()
            paragraph.extend(filter(None, [stripped.lstrip("-").lstrip()]))
        elif stripped[0] == "|" and not _ABSOLUTE.match(stripped):
            end_paragraph()  # a row of a table that no "{|" opened
        elif line[0] in "*#:;":
            end_paragraph()
            blocks.append(_list_item(line))
        elif stripped != DROPPED:
            paragraph.append(stripped)
    end_paragraph()
    return blocks


def _list_item(line: str) -> str:
    content = line.lstrip("*#:; \t")
    if line[0] == ";":
        term, colon, definition = content.partition(" : ")
        return f"{term.rstrip()}: {definition.lstrip()}" if colon else content
    return content


def _decode(text: str) -> str:
    # Pages hold "&amp;nbsp;" where their author meant a space, and nobody means to show its name.
    return decode(text).replace("&nbsp;", " ") if "&" in text else text
