"""Pages to rows: what one batch of a source becomes. This is what the worker processes do."""

from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from rag.config import PassageConfig, SourceFormat
from rag.corpus.dump import Block, read_whole_block
from rag.corpus.ingest.earlier import EarlierIngest
from rag.corpus.ingest.ledger import LedgerRow, by_frequency, hash_wikitext, ledger_table, revision_url
from rag.corpus.ingest.page_kinds import page_kind
from rag.corpus.passages import PassageRow, passage_rows, passage_table, text_sha1
from rag.corpus.sources.article import Article, Unreadable
from rag.corpus.sources.psgs import PsgsRow
from rag.corpus.wikitext import RenderOptions, render
from rag.errors import DataError
from rag.records import Page

_MAX_WORDS = 32767  # the words column is int16
_WIKIPEDIAS = ("hf-articles", "kilt", "fever")  # formats whose titles tell lists and disambiguation pages

Reject: TypeAlias = dict[str, str | int]
Item: TypeAlias = Article | Unreadable | PsgsRow  # of a source that is no dump


class Recipe(NamedTuple):
    """All that decides what a page of a source becomes."""

    source: str
    format: SourceFormat
    options: PassageConfig
    cap: int | None  # passages a page
    until: date | None
    rendering: RenderOptions
    site_base: str  # the address of the wiki's main page, "" where there is none
    wiki: str  # its name in databases, "" where there is none


class Batch(NamedTuple):
    """Some whole pages of a source: a block of a dump, or articles, or ready-made passages."""

    part: int  # which of the source's files
    number: int  # in that file
    path: Path
    block: Block | None
    items: tuple[Item, ...] = ()


class Made(NamedTuple):
    """What a batch became."""

    passages: pa.Table
    ledger: pa.Table
    rejects: list[Reject]
    unreadable: int  # of the rejects
    pages: int


class PageText(NamedTuple):
    """The passages of a page and what the ledger says of them."""

    passages: list[PassageRow]
    left_out_by_cap: int
    text_chars: int
    unrendered: list[dict[str, object]]


def make_batch(recipe: Recipe, batch: Batch, earlier: EarlierIngest | None = None) -> Made:
    """The rows, ledger and rejects of one batch.

    A page that ``earlier`` knows in the same revision and text is copied from there. A page whose id an earlier page
    of the batch has is a reject. Raises DumpError where a block cannot be read, and DataError for a ready-made passage
    of more words than the table can count.
    """
    rows = _Rows(recipe, earlier)
    if batch.block is not None:
        rows.add_block(batch.block)
    else:
        rows.add_items(batch.items)
    return rows.made()


class _Rows:
    """The rows of a batch as they grow, page by page."""

    def __init__(self, recipe: Recipe, earlier: EarlierIngest | None) -> None:
        self._recipe = recipe
        self._earlier = earlier
        self._passages: list[PassageRow] = []
        self._ledger: list[LedgerRow] = []
        self._rejects: list[Reject] = []
        self._unreadable = 0
        self._seen: set[int] = set()

    def made(self) -> Made:
        passages, ledger = passage_table(self._passages), ledger_table(self._ledger)
        return Made(passages, ledger, self._rejects, self._unreadable, len(self._ledger))

    def add_block(self, block: Block) -> None:
        for page, exists in read_whole_block(block, self._recipe.until):
            if page.page_id in self._seen:
                row = repeated_page(self._entry_of(page, "repeated"))
                self._ledger.append(row)
                self._rejects.append(repeated_reject(self._recipe.source, row))
            elif exists:
                self._add_page(page)
            else:
                self._ledger.append(self._entry_of(page, "not_yet"))
            self._seen.add(page.page_id)

    def add_items(self, items: Iterable[Item]) -> None:
        run: list[PsgsRow] = []
        for item in items:
            if isinstance(item, PsgsRow):
                if run and run[0].page_id != item.page_id:
                    self._add_run(run)
                    run = []
                run.append(item)
            elif isinstance(item, Unreadable):
                self._unreadable += 1
                self._rejects.append({"source": self._recipe.source, **item._asdict()})
            else:
                self._add_article(item)
        if run:
            self._add_run(run)

    def _add_page(self, page: Page) -> None:
        """A page of a dump."""
        options = self._recipe.options
        kind = page_kind(page, options)
        entry = self._entry_of(page, kind)
        if kind == "articles":
            entry = entry._replace(wikitext_hash=hash_wikitext(page.wikitext))
            found = self._earlier.find(page, entry.wikitext_hash) if self._earlier else None
            reason = "no plain text in the wikitext" if page.wikitext.strip() else "the page has no text"
            self._add(entry, PageText(*found) if found else self._rendered(page), reason)
        elif kind == "redirects" and options.keep_redirects:
            text = f"Redirect to: {page.redirect}" if page.redirect else ""
            self._add(entry, self._cut(page, text), "the redirect names no target")
        else:
            self._ledger.append(entry)

    def _entry_of(self, page: Page, kind: str) -> LedgerRow:
        return _entry(page, str(page.page_id), revision_url(self._recipe.site_base, page.revision_id), kind)

    def _add_article(self, article: Article) -> None:
        """A page whose source has its plain text."""
        page = Page(article.page_id, article.title, 0, None, article.revision_id, "", "")
        kind = page_kind(page, self._recipe.options) if self._recipe.format in _WIKIPEDIAS else "articles"
        entry = _entry(page, article.key, article.url, kind)
        if kind == "articles":
            self._add(entry, self._cut(page, article.text), "the page has no text")
        else:
            self._ledger.append(entry)

    def _add_run(self, run: list[PsgsRow]) -> None:
        """A page whose source has its passages."""
        first = run[0]
        rows = [_ready_row(self._recipe.source, row) for row in run[: self._recipe.cap]]
        entry = _entry(Page(first.page_id, first.title, 0, None, 0, "", ""), str(first.key), "", "articles")
        self._add(entry, PageText(rows, len(run) - len(rows), sum(len(row.text) for row in run), []), "")

    def _rendered(self, page: Page) -> PageText:
        rendered = render(page.wikitext, self._recipe.rendering)
        unrendered = [{"name": name, "count": count} for name, count in by_frequency(rendered.unrendered)]
        return self._cut(page, rendered.text)._replace(unrendered=unrendered)

    def _cut(self, page: Page, text: str) -> PageText:
        options = self._recipe.options
        rows = passage_rows(self._recipe.source, page, text, options.words, options.tail)
        kept = rows[: self._recipe.cap]
        return PageText(kept, len(rows) - len(kept), len(text), [])

    def _add(self, entry: LedgerRow, page: PageText, reason: str) -> None:
        """Account for a page that should have passages; without one it is a reject for this reason."""
        if not page.passages:
            self._rejects.append(_reject(self._recipe.source, entry, reason))
        self._passages += page.passages
        self._ledger.append(
            entry._replace(
                kind="empty_articles" if entry.kind == "articles" and not page.passages else entry.kind,
                passages=len(page.passages),
                left_out_by_cap=page.left_out_by_cap,
                text_chars=page.text_chars,
                unrendered=page.unrendered,
            )
        )


def repeated_page(row: LedgerRow) -> LedgerRow:
    """The row of a page that is left out because its id was there before."""
    nothing: list[dict[str, object]] = []
    return row._replace(
        kind="repeated", passages=0, left_out_by_cap=0, wikitext_hash="", text_chars=0, unrendered=nothing
    )


def repeated_reject(source: str, row: LedgerRow) -> Reject:
    """Why that page is left out."""
    return _reject(source, row, "a page with this id was there before")


def _reject(source: str, row: LedgerRow, reason: str) -> Reject:
    page: Reject = {"page_id": row.page_id, "revision_id": row.revision_id, "title": row.title}
    return {"source": source, **page, "reason": reason}


def _entry(page: Page, key: str, url: str, kind: str) -> LedgerRow:
    """A page in the ledger before anything is known of its text."""
    return LedgerRow(
        page_id=page.page_id,
        revision_id=page.revision_id,
        namespace=page.namespace,
        title=page.title,
        key=key,
        url=url,
        timestamp=page.timestamp,
        kind=kind,
        passages=0,
        left_out_by_cap=0,
        wikitext_chars=len(page.wikitext),
        wikitext_hash="",
        text_chars=0,
        unrendered=[],
    )


def _ready_row(source: str, row: PsgsRow) -> PassageRow:
    words = len(row.text.split())
    if words > _MAX_WORDS:
        raise DataError(f"passage {row.key} of {source} has {words} words; the most is {_MAX_WORDS}, DPR's have 100")
    return PassageRow(
        passage_id=f"{source}:{row.key}",
        title=row.title,
        text=row.text,
        page_id=row.page_id,
        revision_id=0,
        ordinal=row.ordinal,
        words=words,
        start=-1,
        end=-1,
        wrapped=0,
        text_sha1=text_sha1(row.title, row.text),
    )
