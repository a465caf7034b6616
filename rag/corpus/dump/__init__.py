"""MediaWiki XML dumps: pages, one at a time or in blocks for several processes. Start in ``reader``."""

from rag.corpus.dump.reader import (
    Block,
    SiteInfo,
    block_total,
    check_page_count,
    dump_blocks,
    read_block,
    read_pages,
    read_site,
    read_whole_block,
)

__all__ = [
    "Block",
    "SiteInfo",
    "block_total",
    "check_page_count",
    "dump_blocks",
    "read_block",
    "read_pages",
    "read_site",
    "read_whole_block",
]
