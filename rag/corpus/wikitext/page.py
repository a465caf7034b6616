"""Wikitext to the plain text that a reader of the rendered page sees.

Six passes, each linear in the length of the page:

1. ``tags``: comments and extension tags, whose content is not wikitext (refs, math, nowiki, ...);
2. ``fast``: links with nothing special in them become their labels;
3. ``pairs`` matches ``{{ }}``, ``[[ ]]`` and tables once; here templates and links are rendered, by
   ``templates``, and what the options ask for, by ``tables``, ``infoboxes`` and
   ``captions``;
4. ``pronunciation``: what goes from brackets goes, now that their whole content is known;
5. ``inline``: HTML tags, external links, bold and italic, lists, entities, paragraphs;
6. ``mend``: what a dropped construct left behind (empty parentheses, doubled spaces) is mended.

Malformed markup loses its own marks and nothing else: an unmatched opener is removed and its content stays, and no
construct reaches across a section heading.
Language: https://www.mediawiki.org/wiki/Help:Formatting and https://www.mediawiki.org/wiki/Preprocessor_ABNF
"""

from bisect import bisect_left
from collections import Counter
from typing import NamedTuple, assert_never

from rag.corpus.wikitext.arguments import parse_arguments
from rag.corpus.wikitext.captions import (
    PICTURES,
    image_caption,
    marked_caption,
    options_end,
    picture_captions,
    place_captions,
)
from rag.corpus.wikitext.fast import show_plain_links
from rag.corpus.wikitext.infoboxes import infobox_text, is_infobox
from rag.corpus.wikitext.inline import finish
from rag.corpus.wikitext.interlanguage import language_links
from rag.corpus.wikitext.marks import DROPPED, protect_separators, without_controls
from rag.corpus.wikitext.numbers import AMOUNTS, LOST_AMOUNT, without_lost_amounts
from rag.corpus.wikitext.pairs import Construct, match_constructs
from rag.corpus.wikitext.pronunciation import settle_brackets
from rag.corpus.wikitext.tables import one_line, paragraphs, table_text
from rag.corpus.wikitext.tags import strip_extensions
from rag.corpus.wikitext.templates import (
    INCOMPLETE,
    ROWS,
    WITH_PROSE,
    find_handler,
    name_to_count,
    show_template,
    template_name,
)
from rag.corpus.wikitext.variants import one_variant

_MAX_DEPTH = 40  # MediaWiki's own limit for templates inside templates; deeper constructs are dropped
_NO_TARGET = frozenset("\n{}<>")  # none of these can be in the name of a page


class RenderOptions(NamedTuple):
    """What of a page is kept beside its running text, and how its wiki calls two namespaces (lower case).

    ``namespaces.render_options`` fills in the names of a dump's wiki.
    """

    headings: bool = False  # each on a line of its own
    tables: bool = False  # a row a line, "header: cell; header: cell"
    infoboxes: bool = False  # a field a line, "name: value"
    captions: bool = False  # of images, each as a paragraph
    file_namespaces: frozenset[str] = frozenset({"file", "image"})
    hidden_namespaces: frozenset[str] = frozenset({"category"})  # a link into one of these shows nothing
    language: str = "en"  # a name of a template may mean something else in another language


_DEFAULTS = RenderOptions()


class Rendered(NamedTuple):
    """The visible text of a page and the templates whose text it lacks."""

    text: str
    unrendered: Counter[str]  # template name -> times left out because no handler knows it


def plain_text(wikitext: str, options: RenderOptions = _DEFAULTS) -> str:
    """What a reader of the rendered page sees, one paragraph or list item a line.

    Links show their label; references, categories, galleries and formulas are left out, and so are headings, tables,
    infoboxes and images with their captions unless ``options`` keep them; the common templates of running prose are
    rendered. The text is NFC and has no control characters.

    >>> plain_text("'''Lima''' is the [[capital city|capital]] of [[Peru]].<ref>INEI</ref> [[Category:Lima]]")
    'Lima is the capital of Peru.'
    """
    return render(wikitext, options).text


def render(wikitext: str, options: RenderOptions = _DEFAULTS) -> Rendered:
    """Like ``plain_text``, and counts the templates that were dropped because no handler knows them.

    >>> render("At {{convert|1300|mi|km}} {{unheard of|x}} long").unrendered
    Counter({'unheard of': 1})
    """
    text = "\n" + strip_extensions(without_controls(wikitext))
    renderer = _Renderer(show_plain_links(text), options)
    shown = renderer.page()
    if renderer.links_matter:
        renderer = _Renderer(text, options)
        shown = renderer.page()
    shown = settle_brackets(one_variant(shown))
    if LOST_AMOUNT in shown:
        shown = without_lost_amounts(shown)
    return Rendered(finish(place_captions(shown) if options.captions else shown), renderer.unrendered)


class _Renderer:
    """Renders any stretch of one page, given all its constructs in order."""

    def __init__(self, text: str, options: RenderOptions) -> None:
        self.unrendered: Counter[str] = Counter()
        self.links_matter = False  # the brackets of plain links would have changed what was rendered
        self._text = text
        self._options = options
        self._language_links = language_links(text)
        self._constructs = [
            self._unmatched(construct) if construct.kind == "nothing" else construct
            for construct in match_constructs(text)
        ]
        self._starts = [construct.start for construct in self._constructs]

    def _unmatched(self, mark: Construct) -> Construct:
        """A mark without a partner; with the options of an image, which nobody would take for prose."""
        if self._text.startswith("[[", mark.start) and self._namespace(mark) in self._options.file_namespaces:
            self.links_matter = True  # none is an option
            return mark._replace(end=options_end(self._text, mark.end, self._options.language))
        return mark

    def page(self) -> str:
        """The whole text with every construct in it replaced by what it shows."""
        return self.between(0, len(self._text), 0)

    def between(self, start: int, end: int, depth: int) -> str:
        """The text from ``start`` to ``end`` with every construct in it replaced by what it shows."""
        if depth >= _MAX_DEPTH:
            self.links_matter = True  # they are dropped here
        text, starts = self._text, self._starts
        pieces = []
        position = start
        index = bisect_left(starts, start)
        last = bisect_left(starts, end, index)
        while index < last:
            construct = self._constructs[index]
            pieces.append(text[position : construct.start])
            pieces.append(self._show(construct, depth))
            position = construct.end
            index += 1
            if index < last and starts[index] < position:  # it held others
                index = bisect_left(starts, position, index)
        pieces.append(text[position:end])
        return "".join(pieces)

    def _show(self, construct: Construct, depth: int) -> str:
        match construct.kind:
            case "nothing":
                return ""
            case "heading":
                return self._heading(construct) if self._options.headings else "\n\n"
            case "table":
                return self._table(construct, depth) if self._options.tables and depth < _MAX_DEPTH else "\n\n"
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

    def _heading(self, construct: Construct) -> str:
        """The title as a paragraph. The matcher takes a heading for one mark, so that what is in it is matched here."""
        line = self._text[construct.start : construct.end].strip()
        level = min(len(line) - len(line.lstrip("=")), len(line) - len(line.rstrip("=")), len(line) // 2, 6)
        title = _Renderer("\n " + line[level : len(line) - level], self._options)  # the space: no heading again
        shown = one_line(title.page())
        self.unrendered.update(title.unrendered)
        self.links_matter = self.links_matter or title.links_matter
        return paragraphs([shown] if shown else [])

    def _table(self, construct: Construct, depth: int) -> str:
        html = self._text[construct.start] == "<"
        body = construct.start + len("<table") if html else self._text.index("{|", construct.start) + len("{|")
        return protect_separators(table_text(self.between(body, construct.close, depth + 1), html))

    def _template(self, construct: Construct, depth: int) -> str:
        name = template_name(self._text, construct.body, construct.close)
        if self._options.infoboxes and is_infobox(name):
            arguments = parse_arguments(self.between(construct.body, construct.close, depth + 1))
            return protect_separators(infobox_text(arguments, self._options.captions))
        if name in ROWS or name in PICTURES:
            return self._rows_or_pictures(name, construct, depth)
        handler = find_handler(name, self._options.language)
        if handler is None:
            self.unrendered[name_to_count(name)] += 1
            return LOST_AMOUNT if name in AMOUNTS else DROPPED
        if not handler.visible:
            return DROPPED
        shown = show_template(handler, self.between(construct.body, construct.close, depth + 1))
        if not shown and name in INCOMPLETE:
            self.unrendered[name] += 1
        return protect_separators(shown) or DROPPED

    def _rows_or_pictures(self, name: str, construct: Construct, depth: int) -> str:
        """What is no running text, but a table or the captions of pictures, if the options ask for it."""
        if not (self._options.tables if name in ROWS else self._options.captions):
            if name in WITH_PROSE:
                self.unrendered[name] += 1
            return DROPPED
        arguments = parse_arguments(self.between(construct.body, construct.close, depth + 1))
        shown = ROWS[name](arguments) if name in ROWS else picture_captions(arguments, PICTURES[name])
        return protect_separators(shown) or DROPPED

    def _link(self, construct: Construct, depth: int) -> str:
        namespace = self._namespace(construct)
        if namespace in self._options.file_namespaces and self._options.captions:
            caption = image_caption(self.between(construct.body, construct.close, depth + 1), self._options.language)
            return protect_separators(marked_caption(caption)) if caption else DROPPED
        if self._is_hidden(construct, namespace):
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

    def _namespace(self, link: Construct) -> str:
        """What stands before the first colon after the brackets, in lower case; "" where there is none."""
        start = link.start + 2
        colon = self._text.find(":", start, start + 40)
        return self._text[start : max(colon, start)].strip().replace("_", " ").lower()

    def _is_hidden(self, construct: Construct, namespace: str) -> bool:
        if namespace in self._options.file_namespaces or namespace in self._options.hidden_namespaces:
            return True
        return construct.start in self._language_links
