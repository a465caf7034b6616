"""Wikitext to the plain text that a reader of the rendered page sees.

Four passes, each linear in the length of the page:

1. ``wikitext_tags``: comments and extension tags, whose content is not wikitext (refs, math, nowiki, ...);
2. ``wikitext_pairs`` matches ``{{ }}``, ``[[ ]]`` and tables once; here templates and links are rendered, by
   ``wikitext_templates``;
3. ``wikitext_inline``: HTML tags, external links, bold and italic, lists, entities, paragraphs;
4. ``wikitext_inline``: what a dropped construct left behind (empty parentheses, doubled spaces) is mended.

Malformed markup loses its own marks and nothing else: an unmatched opener is removed and its content stays, and no
construct reaches across a section heading.
Language: https://www.mediawiki.org/wiki/Help:Formatting and https://www.mediawiki.org/wiki/Preprocessor_ABNF
"""

import re
from bisect import bisect_left
from collections import Counter
from typing import NamedTuple, assert_never

from rag.corpus.wikitext_inline import finish
from rag.corpus.wikitext_marks import DROPPED, protect_separators, without_controls
from rag.corpus.wikitext_pairs import Construct, match_constructs
from rag.corpus.wikitext_tags import strip_extensions
from rag.corpus.wikitext_templates import find_handler, show_template, template_name

# Links into these namespaces show no text in the running page. Add the local names for other languages.
HIDDEN_NAMESPACES = frozenset({"file", "image", "category"})

_MAX_DEPTH = 40  # MediaWiki's own limit for templates inside templates; deeper constructs are dropped
_INTERLANGUAGE = re.compile(r"(?:[a-z]{2,3}|simple|[a-z]{2,4}-[a-z-]{2,10})$")
_NO_TARGET = frozenset("\n{}<>")  # none of these can be in the name of a page


class Rendered(NamedTuple):
    """The visible text of a page and the templates whose text it lacks."""

    text: str
    unrendered: Counter[str]  # template name -> times left out because no handler knows it


def plain_text(wikitext: str) -> str:
    """What a reader of the rendered page sees, one paragraph or list item a line.

    Links show their label; headings, tables, infoboxes, references, files, categories, galleries and formulas are
    left out; the common templates of running prose are rendered. The text is NFC and has no control characters.

    >>> plain_text("'''Lima''' is the [[capital city|capital]] of [[Peru]].<ref>INEI</ref> [[Category:Lima]]")
    'Lima is the capital of Peru.'
    """
    return render(wikitext).text


def render(wikitext: str, hidden_namespaces: frozenset[str] = HIDDEN_NAMESPACES) -> Rendered:
    """Like ``plain_text``, and counts the templates that were dropped because no handler knows them.

    ``hidden_namespaces`` are lower-case namespace names whose links show nothing.

    >>> render("At {{convert|1300|mi|km}} {{unheard of|x}} long").unrendered
    Counter({'unheard of': 1})
    """
    text = "\n" + strip_extensions(without_controls(wikitext))
    renderer = _Renderer(text, hidden_namespaces)
    return Rendered(finish(renderer.between(0, len(text), 0)), renderer.unrendered)


class _Renderer:
    """Renders any stretch of one page, given all its constructs in order."""

    def __init__(self, text: str, hidden_namespaces: frozenset[str]) -> None:
        self.unrendered: Counter[str] = Counter()
        self._text = text
        self._hidden = hidden_namespaces
        self._constructs = match_constructs(text)
        self._starts = [construct.start for construct in self._constructs]

    def between(self, start: int, end: int, depth: int) -> str:
        """The text from ``start`` to ``end`` with every construct in it replaced by what it shows."""
        pieces = []
        position = start
        index = bisect_left(self._starts, start)
        while index < len(self._starts) and self._starts[index] < end:
            construct = self._constructs[index]
            pieces.append(self._text[position : construct.start])
            pieces.append(self._show(construct, depth))
            position = construct.end
            index = bisect_left(self._starts, position, index + 1)
        pieces.append(self._text[position:end])
        return "".join(pieces)

    def _show(self, construct: Construct, depth: int) -> str:
        match construct.kind:
            case "nothing":
                return ""
            case "heading" | "table":
                return "\n\n"
            case "template" | "link" | "parameter" if depth >= _MAX_DEPTH:
                return DROPPED
            case "template":
                return self._template(construct, depth)
            case "link":
                return self._link(construct, depth)
            case "parameter":
                _, _, default = self.between(construct.body, construct.close, depth + 1).partition("|")
                return default or DROPPED
        assert_never(construct.kind)

    def _template(self, construct: Construct, depth: int) -> str:
        name = template_name(self._text, construct.body, construct.close)
        handler = find_handler(name)
        if handler is None:
            self.unrendered[name] += 1
            return DROPPED
        if not handler.visible:
            return DROPPED
        shown = show_template(handler, self.between(construct.body, construct.close, depth + 1))
        return protect_separators(shown) or DROPPED

    def _link(self, construct: Construct, depth: int) -> str:
        if self._is_hidden(construct):
            return DROPPED
        content = self.between(construct.body, construct.close, depth + 1)
        target, pipe, label = content.partition("|")
        if not _NO_TARGET.isdisjoint(target):
            return content  # not a link at all: only the brackets go
        if not pipe:
            label = target.strip().removeprefix(":")
        elif not label.strip():
            label = target.rpartition(":")[2].partition("(")[0].strip()
        return protect_separators(label)

    def _is_hidden(self, construct: Construct) -> bool:
        text = self._text
        colon = text.find(":", construct.body, min(construct.close, construct.body + 40))
        if colon < 0:
            return False
        prefix = text[construct.body : colon].strip().replace("_", " ")
        if prefix.lower() in self._hidden:
            return True
        alone = text[construct.start - 1] == "\n" and text[construct.end : construct.end + 1] in ("", "\n")
        return alone and _INTERLANGUAGE.match(prefix) is not None
