"""A known-item check: does a page's own title, asked as a question, find the page.

Hardly anything is easier to find, so an index that fails here is not weak but wrong: its rows are in another order than
its passages, or its questions are encoded for other vectors than it holds.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rag.errors import DataError
from rag.retrieval.retriever import Retriever

FIRST = 20  # passages, among which the page should be
MIN_PAGES = 20  # of a corpus that is worth asking
_PAGES_A_PASSAGE = 10  # at least so many pages for every passage looked at, or chance would find too much
_AT_ONCE = 32


class KnownItem(NamedTuple):
    """A page that was looked for by its title."""

    title: str
    rank: int | None  # from 0, of the first of its passages; None where it is not among the first
    best: str  # the title of the passage that was found first; "" where there was none


class KnownItems(NamedTuple):
    """The pages that were looked for, and among how many passages."""

    first: int
    items: list[KnownItem]

    @property
    def share_found(self) -> float:
        """The share of the pages that were found."""
        return sum(item.rank is not None for item in self.items) / len(self.items)


def known_items(retriever: Retriever, titles: Sequence[str], seed: int, wanted: int = 100) -> KnownItems:
    """Ask for up to ``wanted`` pages by their titles, and look for them among the first passages found.

    ``titles`` are those of all pages of the corpus; each is one page, whoever else has the title. Looked at are the
    first 20 passages, or a tenth as many as there are pages: passages in random order would then find one in ten.
    Raises DataError for fewer than MIN_PAGES titles.
    """
    different = list(dict.fromkeys(titles))
    if len(different) < MIN_PAGES:
        raise DataError(f"{len(different)} pages are too few to look for one by its title; ask from {MIN_PAGES} on")
    first = min(FIRST, len(different) // _PAGES_A_PASSAGE)
    picked = np.random.default_rng(seed).choice(len(different), min(wanted, len(different)), replace=False)
    asked = [different[place] for place in picked]
    batches = [asked[start : start + _AT_ONCE] for start in range(0, len(asked), _AT_ONCE)]
    return KnownItems(first, [item for batch in batches for item in _look_for(retriever, batch, first)])


def _look_for(retriever: Retriever, titles: list[str], first: int) -> list[KnownItem]:
    found = retriever.retrieve(titles, first).passages
    pages = [[passage.title for passage in passages] for passages in found]
    return [
        KnownItem(title, own.index(title) if title in own else None, own[0] if own else "")
        for title, own in zip(titles, pages, strict=True)
    ]
