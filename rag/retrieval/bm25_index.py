"""BM25 over the passages of a corpus: an inverted index on disk (tantivy), memory-mapped when it is searched.

Every word w of a question adds to a passage's score, with N passages, n of them holding w, tf times in this one:

    ln(1 + (N - n + 0.5) / (n + 0.5)) * (k1 + 1) * tf / (tf + k1 * (1 - b + b * length / mean length))

with k1 = 1.2 and b = 0.75. tantivy, like Lucene, keeps a passage's length in one byte: exact up to 40 words, then
rounded down, by less than an eighth. Files of two builds differ (tantivy names them at random), results never do.
"""

import shutil
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tantivy
from jaxtyping import Float, Int

from rag.config import Bm25Config
from rag.errors import IndexMismatchError, ResourceError
from rag.retrieval.bm25_file import FILES, VERSION, Bm25Info, describe, read_info, remove_info, write_info
from rag.retrieval.bm25_words import analyzer, prepare, words_of
from rag.retrieval.results import PassageRows, SearchResult, best_rows

_TEXT, _ROW, _ANALYZER = "text", "row", "words"
_HEAP_BYTES = 256_000_000  # of the writer; when it is full, a segment goes to disk
_ADD_ROWS = 4096
# Disk while building, for a passage of 100 words: 145 bytes measured, and merging segments needs them twice.
_BUILD_BYTES = 400
_SPARE = 16  # results beyond n_docs, among which equal scores are put in order of rows
_DEEPER = 4  # so many times as many, where even those all tie with the last one wanted
_NOTHING = (np.zeros(0, np.int64), np.zeros(0, np.float32))
Batches = Iterable[range]


class Bm25Index:
    """A BM25 index that knows its passages; made by ``build_bm25`` or ``Bm25Index.open``."""

    def __init__(self, index: tantivy.Index, info: Bm25Info) -> None:
        self.info = info
        self._schema = index.schema
        self._searcher = index.searcher()

    @classmethod
    def open(
        cls,
        folder: Path,
        config: Bm25Config,
        *,
        ntotal: int | None = None,
        row_ids_sha256: str | None = None,
        check_bytes: bool = True,
    ) -> "Bm25Index":
        """The index of ``folder``, memory-mapped, after checking that it is whole and the one that is wanted.

        It must have been built with the stemming and stopwords of ``config`` and, where they are given, from as many
        passages in the same order (``hash_row_ids``). ``check_bytes`` reads every file once for its sha256. Raises
        IndexMismatchError with what differs and what to do.
        """
        options = {"stemming": config.stemming, "stopwords": config.stopwords}
        info = read_info(folder, {**options, "ntotal": ntotal, "row_ids_sha256": row_ids_sha256}, check_bytes)
        try:
            index = tantivy.Index.open(str(folder / FILES))
            index.config_reader("manual")  # the files never change, so nobody need watch them
            index.reload()
        except (ValueError, OSError) as error:
            raise IndexMismatchError(
                f"{VERSION} cannot read {folder} ({error}); build it again, or make it writable: tantivy locks it there"
            ) from error
        _require_passages(index, info.ntotal, folder)
        return cls(index, info)

    @property
    def ntotal(self) -> int:
        """Number of passages."""
        return self.info.ntotal

    def search(self, questions: Sequence[str], n_docs: int) -> SearchResult:
        """The ``n_docs`` passages with the largest BM25 score; a passage without any word of the question is none.

        So a question may get fewer than n_docs, and one of stopwords alone gets nothing: the mask says so. Equal
        scores stand in order of rows. Nothing in a question is read as a query language.
        """
        if n_docs < 1:
            raise ValueError(f"n_docs is {n_docs}; ask for at least one passage")
        result = SearchResult.empty(len(questions), n_docs)
        for place, question in enumerate(questions):
            query = self._query(question)
            rows, scores = self._best(query, n_docs) if query else _NOTHING
            result.rows[place, : len(rows)] = rows
            result.scores[place, : len(rows)] = scores
            result.mask[place, : len(rows)] = True
        return result

    def scores(self, question: str, rows: Int[np.ndarray, " rows"]) -> Float[np.ndarray, " rows"]:
        """BM25 of one question with each of the ``rows``, which are distinct; 0 without a word in common.

        The very numbers that ``search`` gives, also for passages that are not among its best.
        """
        query = self._query(question)
        if query is None or not len(rows):
            return np.zeros(len(rows), np.float32)
        among = tantivy.Query.term_set_query(self._schema, _ROW, rows.tolist())
        chosen = tantivy.Query.const_score_query(among, 0.0)
        both = tantivy.Query.boolean_query([(tantivy.Occur.Must, chosen), (tantivy.Occur.Should, query)])
        found, scores = self._hits(both, len(rows))
        order = np.argsort(found)
        return scores[order][np.searchsorted(found[order], rows)]

    def finds(self, questions: Sequence[str]) -> list[bool]:
        """Whether any passage has a word of the question; quicker than a search."""
        return [any(self._searcher.doc_freq(_TEXT, word) for word in self._words(question)) for question in questions]

    def _words(self, question: str) -> list[str]:
        return words_of(question, self._analyzer)

    @cached_property
    def _analyzer(self) -> tantivy.TextAnalyzer:
        return analyzer(self.info.stemming, self.info.stopwords)

    def _query(self, question: str) -> tantivy.Query | None:
        terms = [
            tantivy.Query.term_query(self._schema, _TEXT, word, index_option="freq") for word in self._words(question)
        ]
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms]) if terms else None

    def _best(self, query: tantivy.Query, n_docs: int) -> tuple[Int[np.ndarray, " found"], Float[np.ndarray, " found"]]:
        """tantivy breaks ties by where a passage lies in its files, which depends on the build: they are fetched."""
        limit = n_docs + _SPARE
        rows, scores = self._hits(query, limit)
        while len(rows) == limit and scores[-1] == scores[n_docs - 1]:
            limit *= _DEEPER
            rows, scores = self._hits(query, limit)
        best = best_rows(rows, scores, n_docs)
        return rows[best], scores[best]

    def _hits(self, query: tantivy.Query, limit: int) -> tuple[Int[np.ndarray, " found"], Float[np.ndarray, " found"]]:
        hits = self._searcher.search(query, limit, count=False).hits
        rows = self._searcher.fast_field_values(_ROW, [address for _, address in hits])
        return np.array(rows, np.int64), np.array([score for score, _ in hits], np.float32)


def build_bm25(
    folder: Path,
    passages: PassageRows,
    config: Bm25Config,
    row_ids_sha256: str = "",
    progress: Callable[[Batches], Batches] = iter,
) -> Bm25Index:
    """Index title and text of all passages into ``folder``; ``progress`` sees batches of rows go by.

    What a build that was stopped left there is removed first. Besides the writer's buffer only one batch lies in
    memory. Raises ResourceError before anything is written if the disk is too small, and where tantivy cannot write.
    """
    files = _empty_folder(folder)
    _check_space(folder, len(passages))
    index = tantivy.Index(_schema(), str(files))
    index.register_tokenizer(_ANALYZER, analyzer(config.stemming, config.stopwords))
    try:
        _write(index, passages, progress)
    except (ValueError, OSError) as error:
        raise ResourceError(f"tantivy cannot write {files} ({error}); free some disk and start again") from error
    index.reload()
    _require_passages(index, len(passages), folder)
    for path in files.glob(".*"):  # the writer's locks and its list of files
        path.unlink()
    info = describe(folder, config, len(passages), row_ids_sha256)
    write_info(folder, info)
    return Bm25Index(index, info)


def _empty_folder(folder: Path) -> Path:
    remove_info(folder)
    files = folder / FILES
    shutil.rmtree(files, ignore_errors=True)
    files.mkdir(parents=True)
    return files


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field(_TEXT, tokenizer_name=_ANALYZER, index_option="freq")
    builder.add_unsigned_field(_ROW, indexed=True, fast=True)
    return builder.build()


def _write(index: tantivy.Index, passages: PassageRows, progress: Callable[[Batches], Batches]) -> None:
    writer = index.writer(_HEAP_BYTES, num_threads=1)
    starts = range(0, len(passages), _ADD_ROWS)
    for batch in progress([range(start, min(start + _ADD_ROWS, len(passages))) for start in starts]):
        for row, passage in zip(batch, passages.rows(batch), strict=True):
            document = tantivy.Document()
            document.add_text(_TEXT, prepare(f"{passage.title}\n{passage.text}"))
            document.add_unsigned(_ROW, row)
            writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()


def _require_passages(index: tantivy.Index, ntotal: int, folder: Path) -> None:
    found = index.searcher().num_docs
    if found != ntotal:
        raise IndexMismatchError(f"{folder} indexes {found} of {ntotal} passages; build it again")


def _check_space(folder: Path, ntotal: int) -> None:
    needed, free = ntotal * _BUILD_BYTES, shutil.disk_usage(folder).free
    if free < needed:
        raise ResourceError(f"{folder} has {free:,} bytes free, but building the index needs {needed:,}")
