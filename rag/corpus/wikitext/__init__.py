"""Wikitext to the plain text that a reader of the rendered page sees. Start in ``page``."""

from rag.corpus.wikitext.page import Rendered, RenderOptions, plain_text, render

__all__ = ["RenderOptions", "Rendered", "plain_text", "render"]
