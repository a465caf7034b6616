"""Data Docs: a page for every table, an index that lists them all, nothing loaded from elsewhere."""

import re
from pathlib import Path

import great_expectations.expectations as gxe
import pandas as pd
import pytest
from great_expectations.core.expectation_suite import ExpectationSuite

import data_checks.data_docs as data_docs
from data_checks.data_docs import write_data_docs
from data_checks.errors import SuiteError
from data_checks.expectations import between, none, sentence
from data_checks.results import CheckReport, keep_rejects
from data_checks.runner import run_suite

ATTACK = "<script>alert('read')</script><img src=http://example.org/x.png>"


def _report(batch: str, found: str | None = None, suite: str = "answer coverage") -> CheckReport:
    frame = pd.DataFrame({"row": ["a", "b"], "found": [None, found], "words": [1, 2]}).astype({"found": "str"})
    count = gxe.ExpectTableRowCountToBeBetween(min_value=1, **sentence("at least one row"))
    expectations = [count, none("found", "nothing is found", "warning"), between("words", 1, 5, "few words")]
    return run_suite(frame, ExpectationSuite(name=suite, expectations=expectations), "row", batch)


def _links(page: Path) -> set[Path]:
    return {(page.parent / link).resolve() for link in re.findall(r"href=['\"]([^'\"#]+)['\"]", page.read_text())}


def test_case_g4_every_suite_and_table_has_a_page_that_the_index_lists(tmp_path: Path) -> None:
    reports = [_report("passages-00000"), _report("passages-00001", "x [["), _report("", suite="corpus")]
    kept = keep_rejects(reports, tmp_path / "rejects.jsonl").reports
    index = write_data_docs(tmp_path / "docs", kept)
    pages = {path.resolve() for path in (tmp_path / "docs").rglob("*.html")} - {index.resolve()}
    assert index == tmp_path / "docs" / "index.html"
    assert _links(index) == pages
    assert sorted(path.name for path in pages) == [
        "answer-coverage.html", "corpus.html", "passages-00000.html", "passages-00001.html", "table.html",
    ]  # fmt: skip
    for page in pages:
        assert all(link.is_file() for link in _links(page)), page
    text = index.read_text()
    assert "1 warnings" in text
    assert "warning: nothing is found: 1 of 2 rows fail, such as &#x27;x [[&#x27; (rows b)" in text
    failed = (tmp_path / "docs/validations/answer-coverage/passages-00001.html").read_text()
    assert "x [[" in failed
    assert "nothing is found" in failed


def test_pages_load_nothing_and_run_nothing(tmp_path: Path) -> None:
    write_data_docs(tmp_path, [_report("shard", ATTACK)])
    for page in tmp_path.rglob("*.html"):
        text = page.read_text()
        assert not re.search(r"<script|<img|<link|\bsrc=['\"]|https?://(?!example\.org)", text, re.IGNORECASE), page
        assert "Content-Security-Policy\" content=\"default-src 'none'" in text
    assert "&lt;script&gt;alert" in (tmp_path / "validations/answer-coverage/shard.html").read_text()


def test_the_same_reports_give_the_same_bytes(tmp_path: Path) -> None:
    written = []
    for name in ("first", "second"):
        write_data_docs(tmp_path / name, [_report("shard", "x")])
        files = sorted((tmp_path / name).rglob("*"))
        written.append([(path.name, path.read_bytes()) for path in files if path.is_file()])
    assert written[0] == written[1]


def test_a_metric_that_raised_has_a_page_without_a_traceback(tmp_path: Path) -> None:
    suite = ExpectationSuite(
        name="broken", expectations=[gxe.ExpectTableRowCountToEqual(value=1), between("absent", 1, 2, "is there")]
    )
    write_data_docs(tmp_path, [run_suite(pd.DataFrame({"row": [1]}), suite, "row")])
    page = (tmp_path / "validations/broken/table.html").read_text()
    assert "absent" in page
    assert "Traceback" not in page
    assert "critical: is there" in (tmp_path / "index.html").read_text()


def test_tables_of_one_name_and_odd_names_keep_their_pages(tmp_path: Path) -> None:
    write_data_docs(tmp_path, [_report("a/../b"), _report("a b"), _report("a b"), _report("..")])
    names = sorted(path.name for path in (tmp_path / "validations").rglob("*.html"))
    assert names == ["a-b-2.html", "a-b-3.html", "a-b.html", "unnamed.html"]


def test_case_g4_a_missing_page_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SuiteError, match="no reports"):
        write_data_docs(tmp_path, [])
    with pytest.raises(SuiteError, match="has no validation result; make it with run_suite"):
        write_data_docs(tmp_path, [CheckReport("words", True, 1, ())])
    real = data_docs.quiet_context

    def without_building() -> object:
        context = real()
        context.build_data_docs = lambda: {}
        return context

    monkeypatch.setattr(data_docs, "quiet_context", without_building)
    with pytest.raises(SuiteError, match=r"made no page expectations/answer-coverage\.html"):
        write_data_docs(tmp_path, [_report("shard")])
    assert not (tmp_path / "index.html").exists()
