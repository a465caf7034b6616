"""Sources that are no dumps: articles of several formats, and ready-made passages."""

import json
from pathlib import Path

import pyarrow.compute as pc
import pytest

from rag.config import PassageConfig
from rag.corpus.ingest.source import SourceSpec, ingest
from rag.corpus.passages import passage_files
from rag.errors import DataError
from tests.support.small_wiki import (
    ledger_in,
    passages_in,
    rejects_in,
    small_pieces,
)


def _jsonl(path: Path, articles: int) -> Path:
    lines = [
        json.dumps({"id": str(number), "title": f"Title {number}", "text": f"Text {number} " * (number % 150 + 1)})
        for number in range(1, articles + 1)
    ]
    path.write_text("\n".join([*lines, "not json"]) + "\n")
    return path


def test_articles_of_other_formats_are_cut_and_the_unreadable_kept(tmp_path: Path) -> None:
    spec = SourceSpec("own", (_jsonl(tmp_path / "a.jsonl", 9),), "jsonl")
    report = ingest(spec, PassageConfig(words=10), tmp_path / "out")
    assert (report.pages, report.articles, report.passages, report.rejects, report.unreadable) == (9, 9, 14, 1, 1)
    assert report.site == {}
    rows = passages_in(tmp_path / "out").to_pylist()
    assert (rows[0]["passage_id"], rows[0]["text"], rows[-1]["passage_id"]) == ("own:1:0", "Text 1 Text 1", "own:9:1")
    (reject,) = rejects_in(tmp_path / "out")
    assert (reject["source"], reject["row"], reject["text"]) == ("own", 10, "not json")
    assert ledger_in(tmp_path / "out").column("key").to_pylist() == [str(number) for number in range(1, 10)]


def test_lists_are_known_by_title_in_formats_that_are_wikipedias(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"id": "1", "title": "List of customers", "text": "Ours."}) + "\n")
    report = ingest(SourceSpec("own", (path,), "jsonl"), PassageConfig(), tmp_path / "out")
    assert (report.articles, report.lists) == (1, 0)


def test_ready_made_passages_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "psgs.tsv"
    rows = [(n, f"Passage {n} of it", "Aaron" if n <= 60 else "Zürich") for n in range(1, 104)]
    path.write_text("id\ttext\ttitle\n" + "".join(f"{n}\t{text}\t{title}\n" for n, text, title in rows))
    with small_pieces(shard_rows=1):
        report = ingest(SourceSpec("w", (path,), "psgs", None, 103), PassageConfig(), tmp_path / "out")
    assert (report.pages, report.articles, report.passages) == (2, 2, 103)
    table = passages_in(tmp_path / "out")
    assert table.column("passage_id").to_pylist() == [f"w:{n}" for n, _, _ in rows]
    assert table.column("text").to_pylist() == [text for _, text, _ in rows]
    assert pc.unique(table.column("start")).to_pylist() == [-1]
    assert table.column("page_id").to_pylist() == [1] * 60 + [61] * 43
    assert ledger_in(tmp_path / "out").column("passages").to_pylist() == [60, 43]
    with pytest.raises(DataError, match="expected_rows = 103"):
        ingest(SourceSpec("w", (path,), "psgs"), PassageConfig(), tmp_path / "other")


def test_a_ready_made_passage_of_too_many_words_is_named(tmp_path: Path) -> None:
    path = tmp_path / "psgs.tsv"
    path.write_text("id\ttext\ttitle\n1\t" + "word " * 40_000 + "end\tTitle\n")
    with pytest.raises(DataError, match="passage 1 of w has 40001 words"):
        ingest(SourceSpec("w", (path,), "psgs", None, 1), PassageConfig(), tmp_path / "out")


def test_passages_of_one_page_are_never_parted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.corpus.ingest.batches._ROWS", 2)
    path = tmp_path / "psgs.tsv"
    rows = "".join(f"{n}\ttext {n}\tTitle {n // 5}\n" for n in range(1, 21))
    path.write_text("id\ttext\ttitle\n" + rows)
    with small_pieces(shard_rows=1):
        report = ingest(SourceSpec("w", (path,), "psgs", None, 20), PassageConfig(), tmp_path / "out")
    assert (report.pages, len(passage_files(tmp_path / "out"))) == (5, 5)
