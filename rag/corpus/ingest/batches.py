"""A source in batches: pieces of work of constant size, the same for any number of workers."""

from collections.abc import Callable, Iterable, Iterator
from datetime import date
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from rag.config import SourceFormat
from rag.corpus.dump import block_total, dump_blocks
from rag.corpus.ingest.pages import Batch, Item
from rag.corpus.sources.read import Article, PsgsRow, read_articles, read_psgs

# A batch of a source that is no dump holds about so many ready-made passages, or characters of articles.
_ROWS = 5_000
_CHARACTERS = 2_000_000


class SourceSpec(NamedTuple):
    """A source with its files in place."""

    name: str
    paths: tuple[Path, ...]  # the parts of a dump, in page order; else one file or folder
    format: SourceFormat = "mediawiki"
    until: date | None = None
    expected_rows: int | None = None
    max_passages_per_page: int | None = None


def dump_batches(spec: SourceSpec, part: int, first: int) -> Iterator[Batch]:
    """The blocks of a dump, part after part, from block ``first`` of one part on."""
    for later, path in enumerate(spec.paths[part:], part):
        for block in dump_blocks(path, spec.until, first if later == part else 0):
            yield Batch(later, block.number, path, block)


def batches_left(spec: SourceSpec, part: int, first: int) -> int | None:
    """How many batches ``batches`` will yield, where that is known beforehand."""
    totals = [block_total(path) for path in spec.paths[part:]]
    return None if None in totals else sum(total for total in totals if total) - first


def item_batches(
    spec: SourceSpec, part: int, first: int, progress: Callable[[Iterable[Item]], Iterable[Item]]
) -> Iterator[Batch]:
    """The articles or passages of any other source, in batches, from batch ``first`` of one part on."""
    for later, path in enumerate(spec.paths[part:], part):
        if spec.format == "psgs":
            groups = _whole_runs(progress(read_psgs(path, spec.expected_rows)))
        else:
            groups = _groups(progress(read_articles(path, spec.format)))
        skipped = first if later == part else 0
        for number, items in enumerate(islice(groups, skipped, None), skipped):
            yield Batch(later, number, path, None, items)


def _groups(items: Iterable[Item]) -> Iterator[tuple[Item, ...]]:
    group: list[Item] = []
    characters = 0
    for item in items:
        group.append(item)
        characters += len(item.text) + len(item.title if isinstance(item, Article) else "")
        if characters >= _CHARACTERS:
            yield tuple(group)
            group, characters = [], 0
    if group:
        yield tuple(group)


def _whole_runs(rows: Iterable[Item]) -> Iterator[tuple[Item, ...]]:
    """Groups of rows that never part two passages of one page."""
    group: list[Item] = []
    for row in rows:
        if len(group) >= _ROWS and isinstance(row, PsgsRow) and row.ordinal == 0:
            yield tuple(group)
            group = []
        group.append(row)
    if group:
        yield tuple(group)
