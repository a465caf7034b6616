"""Small tables of good passages, to put faults into."""

from collections.abc import Sequence

import pyarrow as pa

SCHEMA = pa.schema(
    [
        ("passage_id", pa.string()),
        ("title", pa.string()),
        ("text", pa.string()),
        ("page_id", pa.int64()),
        ("ordinal", pa.int32()),
        ("words", pa.int16()),
        ("start", pa.int32()),
    ]
)


def passages_table(*changes: tuple[int, str, object], rows: int = 10, first_page: int = 1) -> pa.Table:
    """Good passages of four words, one a page; each change puts a value into a row and column."""
    pages = range(first_page, first_page + rows)
    content = [
        {
            "passage_id": f"s:{page}:0",
            "title": f"Title {page}",
            "text": f"Text of page {page}",
            "page_id": page,
            "ordinal": 0,
            "words": 4,
            "start": 0,
        }
        for page in pages
    ]
    for row, column, value in changes:
        content[row][column] = value
    return pa.Table.from_pylist(content, schema=SCHEMA)


def texts_table(texts: Sequence[str | None], titles: Sequence[str] | None = None) -> pa.Table:
    """Passages of these texts, with the number of words that each has."""
    changes: list[tuple[int, str, object]] = []
    for row, text in enumerate(texts):
        changes += [(row, "text", text), (row, "words", len((text or "").split()))]
    changes += [(row, "title", title) for row, title in enumerate(titles or [])]
    return passages_table(*changes, rows=len(texts))
