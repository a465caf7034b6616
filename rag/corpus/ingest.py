"""One dump to one folder of passages, with every page accounted for."""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

import pyarrow.parquet as pq

from rag.config import PassageConfig
from rag.corpus.dump import read_pages
from rag.corpus.passages import PASSAGE_SCHEMA, ROW_GROUP_ROWS, PassageRow, passage_rows, passage_table
from rag.corpus.wikitext import render
from rag.errors import ConfigError, ResourceError
from rag.records import Page

PASSAGES_FILE = "passages.parquet"
REJECTS_FILE = "rejects.jsonl"
_MAX_WORDS = 32767  # the words column is int16
_TOP_TEMPLATES = 50
# {{disambiguation}} and the names it goes by, redirects to it and its special forms.
_DISAMBIGUATION_TEMPLATES = (
    "1la|2cc|2la|3cc|3la|4cc|4la|airport disambig|airport disambiguation|biology disambiguation|"
    "call sign disambiguation|callsigndis|chinese title disambiguation|chinesetitledisambig|dab|dab cleanup|"
    "dabpage|dbig|disam|disamb|disambig|disambig cleanup|disambig-cleanup|disambiguation|disambiguation cleanup|"
    "disambiguation page|genus disambig|genus disambiguation|geo-dis|geodab|geodis|hndab|hndis|hndis-cleanup|"
    "hospital disambiguation|hospitaldis|human name disambiguation|letter disambiguation|"
    "letter-number combination disambiguation|letter-numbercombdisambig|mathdab|mathdisambig|"
    "mathematical disambiguation|mil-unit-dis|military unit disambiguation|music disambiguation|"
    "number disambiguation|numberdis|opus disambiguation|phonetics disambiguation|place name disambiguation|"
    "portal disambiguation|road disambiguation|roadis|school disambiguation|schooldis|"
    "species latin name abbreviation disambiguation|species latin name disambiguation|split dab|"
    "station disambiguation|stationdis|synagogue disambiguation|taxonomic authority disambiguation|"
    "taxonomy disambiguation|template disambiguation|tla|tladab|tladisambig|tndis|wikipedia disambiguation"
)
_DISAMBIGUATION = re.compile(rf"\{{\{{\s*(?:{_DISAMBIGUATION_TEMPLATES})\s*(?:\||\}}\}})", re.IGNORECASE)


@dataclass(frozen=True)
class IngestReport:
    """What became of every page of a dump.

    pages = other_namespaces + redirects + disambiguation + articles, and
    articles = articles with a passage + empty_articles.
    """

    pages: int
    other_namespaces: int  # pages that are not articles: talk, templates, ...
    redirects: int  # in the article namespace
    disambiguation: int  # left out; 0 where the options keep them, for they count as articles then
    articles: int
    empty_articles: int  # no plain text: each is a reject
    passages: int
    left_out_by_cap: int  # passages beyond max_passages_per_page
    rejects: int
    unrendered_templates: dict[str, int] = field(default_factory=dict)  # the most frequent, most frequent first

    def to_json(self) -> str:
        """The report as one JSON object, the same bytes for the same report."""
        return json.dumps(self.__dict__, ensure_ascii=False, indent=2) + "\n"


class _Reject(NamedTuple):
    source: str
    page_id: int
    revision_id: int
    title: str
    reason: str


def ingest_dump(
    dump: Path,
    source: str,
    options: PassageConfig,
    max_passages_per_page: int | None,
    out: Path,
    progress: Callable[[Iterable[Page]], Iterable[Page]] = iter,
) -> IngestReport:
    """Cut the articles of ``dump`` into passages: ``passages.parquet`` and ``rejects.jsonl`` in the folder ``out``.

    Only pages of namespace 0 are articles; redirects and, by option, disambiguation pages are counted and left out.
    Every article without a passage is a reject with its reason. The same dump and options give the same bytes.
    Raises DumpError where the dump cannot be read to its end, ConfigError for options that cannot be, and
    ResourceError where ``out`` cannot be written; no file of the final name appears then.
    """
    if options.words > _MAX_WORDS:
        raise ConfigError(f"passages.words = {options.words} is more than {_MAX_WORDS}; DPR uses 100")
    ingestion = _Ingestion(source, options, max_passages_per_page)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with _written(out / PASSAGES_FILE) as passages_file, _written(out / REJECTS_FILE) as rejects_file:
            with pq.ParquetWriter(
                passages_file, PASSAGE_SCHEMA, compression="zstd", write_page_checksum=True
            ) as writer:
                for rows in _row_groups(ingestion.rows(progress(read_pages(dump)))):
                    writer.write_table(passage_table(rows), row_group_size=ROW_GROUP_ROWS)
            for reject in ingestion.rejects:
                rejects_file.write(json.dumps(reject._asdict(), ensure_ascii=False).encode() + b"\n")
    except OSError as error:
        raise ResourceError(
            f"cannot write passages into {out}: {error}; check the folder and the disk space"
        ) from error
    return ingestion.report()


class _Ingestion:
    """The state of one pass over a dump: counts, rejects and the rows on their way."""

    def __init__(self, source: str, options: PassageConfig, max_passages_per_page: int | None) -> None:
        self.rejects: list[_Reject] = []
        self._source = source
        self._options = options
        self._cap = max_passages_per_page
        self._counts: Counter[str] = Counter()
        self._unrendered: Counter[str] = Counter()

    def rows(self, pages: Iterable[Page]) -> Iterator[PassageRow]:
        for page in pages:
            self._counts["pages"] += 1
            kind = self._kind(page)
            self._counts[kind] += 1
            if kind == "articles":
                yield from self._article(page)

    def report(self) -> IngestReport:
        top = sorted(self._unrendered.items(), key=lambda item: (-item[1], item[0]))[:_TOP_TEMPLATES]
        return IngestReport(
            pages=self._counts["pages"],
            other_namespaces=self._counts["other_namespaces"],
            redirects=self._counts["redirects"],
            disambiguation=self._counts["disambiguation"],
            articles=self._counts["articles"],
            empty_articles=self._counts["empty_articles"],
            passages=self._counts["passages"],
            left_out_by_cap=self._counts["left_out_by_cap"],
            rejects=len(self.rejects),
            unrendered_templates=dict(top),
        )

    def _kind(self, page: Page) -> str:
        if page.namespace != 0:
            return "other_namespaces"
        if page.redirect is not None:
            return "redirects"
        if not self._options.keep_disambiguation and is_disambiguation(page):
            return "disambiguation"
        return "articles"

    def _article(self, page: Page) -> Iterator[PassageRow]:
        rendered = render(page.wikitext)
        self._unrendered.update(rendered.unrendered)
        rows = passage_rows(self._source, page, rendered.text, self._options.words)
        if not rows:
            self._counts["empty_articles"] += 1
            reason = "no plain text in the wikitext" if page.wikitext.strip() else "the page has no text"
            self.rejects.append(_Reject(self._source, page.page_id, page.revision_id, page.title, reason))
        kept = rows[: self._cap]
        self._counts["passages"] += len(kept)
        self._counts["left_out_by_cap"] += len(rows) - len(kept)
        yield from kept


def is_disambiguation(page: Page) -> bool:
    """Whether the page only lists what its title may mean, by its template or its title.

    >>> is_disambiguation(Page(1, "Mercury", 0, None, 1, "", "* [[Mercury (planet)]]\\n{{Disambiguation|geo}}"))
    True
    """
    return page.title.endswith("(disambiguation)") or _DISAMBIGUATION.search(page.wikitext) is not None


def _row_groups(rows: Iterable[PassageRow]) -> Iterator[list[PassageRow]]:
    group: list[PassageRow] = []
    for row in rows:
        group.append(row)
        if len(group) == ROW_GROUP_ROWS:
            yield group
            group = []
    if group:
        yield group


@contextmanager
def _written(path: Path) -> Iterator[IO[bytes]]:
    """A file that appears under its name only when all of it is on the disk."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
