"""What a report shows of evidence: posteriors of tokens, probabilities of labels, and the sweep over n_docs."""

import re
from pathlib import Path

import pytest

from reports.render import render_html, render_markdown
from reports.samples import samples
from reports.store import Store
from reports.tables import report_tables
from tests.support.report_attribution import SWEPT
from tests.support.report_fixture import RUN, filled_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return filled_store(tmp_path_factory.mktemp("attribution"))


def test_tokens_of_rag_token_are_shown_with_their_posteriors(store: Store) -> None:
    with store.snapshot() as snapshot:
        tasks = {task.task: task for task in samples(snapshot, RUN)}
    for sample in tasks["open-qa"].samples:
        closed_book, sequence, token = sample.predictions
        assert closed_book.tokens == sequence.tokens == ()
        assert "".join(one.text for one in token.tokens) == token.text
        assert all(len(one.posterior) == len(token.passages) for one in token.tokens)
    for sample in tasks["fever"].samples:
        for answer in sample.predictions:
            assert not answer.tokens
            assert sum(label.prob for label in answer.labels) == pytest.approx(1)
            assert all(label.calibrated is not None for label in answer.labels)


def test_the_page_shades_each_token_by_passage(store: Store, tmp_path: Path) -> None:
    page = render_html(store, RUN, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "posterior of each token" in page
    assert 'style="background:rgb(11 83 148 / 45.0%)">0.9<' in page
    assert "SUPPORTS 0.9 (calibrated 0.7)" in page
    assert re.search(r"<tr><td>1\. <bdi>[^<]+</bdi></td><td", page)  # as the passages are numbered; titles may be equal


def test_the_sweep_has_a_column_for_each_n_docs_and_says_what_is_partial(store: Store, tmp_path: Path) -> None:
    with store.snapshot() as snapshot:
        tables = report_tables(snapshot, RUN)
    table = tables["n_docs_sweep"]
    assert [column.label for column in table.columns] == ["task", "metric", "model", "passage index", "1", "5", "10"]
    [row] = table.rows
    assert [cell.text for cell in row[:4]] == ["open-qa", "exact match", "rag-token", "2018"]
    assert [cell.value for cell in row[4:]] == list(SWEPT.values())
    notes = [(False, ""), (False, ""), (True, "1 of 12 not scored; 1 failed")]
    assert [(cell.partial, cell.note) for cell in row[4:]] == notes
    defined = {one[0].anchor: one for one in tables["definitions"].rows}
    behind = [defined[cell.links[0].href.removeprefix("#")] for cell in row[4:]]
    assert [one[2].value for one in behind] == list(SWEPT.values())
    assert [one[0].detail for one in behind] == [f"open-qa, test, {n_docs} passages" for n_docs in SWEPT]
    text = render_markdown(store, RUN, tmp_path / "report.md").read_text(encoding="utf-8")
    assert "More and fewer passages" in text
