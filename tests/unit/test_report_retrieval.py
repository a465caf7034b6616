"""Retrieval in the report: retrievers alone, recall of the index with its gate, the trade-off, encoders that differ."""

from pathlib import Path

import pytest

from reports.render import render_html, render_latex, render_markdown
from reports.store import Store
from reports.tables import ReportTable, report_tables, to_terminal_rows
from reports.tradeoff import tradeoff_figure
from tests.support.report_fixture import RUN, filled_store
from tests.support.report_page import Page, changed


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return filled_store(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def tables(store: Store) -> dict[str, ReportTable]:
    with store.snapshot() as snapshot:
        return report_tables(snapshot, RUN)


_PAIR = "the question encoder multiset <b> was trained with other passages than single-nq"


def test_encoders_that_do_not_belong_together_are_told_wherever_numbers_are(store: Store, tmp_path: Path) -> None:
    held = {"stage": "encoders", "suite": "encoders", "expectation": "of one training", "severity": "warning"}
    checks = [
        held | {"name": "2016", "success": True},
        held | {"name": "2018", "success": False, "message": _PAIR},
        held | {"name": "2019", "success": False, "message": _PAIR},
    ]
    store = changed(store, tmp_path, {"checks": checks})
    page = Page(render_html(store, RUN, tmp_path / "report.html").read_text(encoding="utf-8"))
    said = f"Read every number with this (2018, 2019): {_PAIR}"
    assert page.text.count(said) == 4  # at the top, before the results, before the swap, before retrieval
    assert page.text.index(said) < page.text.index("Summary")
    assert page.text.count(_PAIR) == 4 + 2  # and in the table of failed expectations
    assert "passed with warnings" in page.text
    markdown = render_markdown(store, RUN, tmp_path / "report.md").read_text(encoding="utf-8")
    assert r"**Read every number with this (2018, 2019): the question encoder multiset \<b\>" in markdown
    assert f"% {said}" in render_latex(store, RUN, tmp_path / "report.tex").read_text(encoding="utf-8")


def test_nothing_is_said_of_encoders_that_belong_together(store: Store, tmp_path: Path) -> None:
    page = Page(render_html(store, RUN, tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "Read every number with this" not in page.text


def test_retrievers_stand_below_one_another_with_ranks_across(tables: dict[str, ReportTable]) -> None:
    heading, *rows = to_terminal_rows(tables["retrievers"])
    assert heading == ("task", "measure", "passage index", "retriever", "n", "at 1", "at 5", "at 10", "at 20", "all")
    answers = [row for row in rows if row[1] == "answer in a passage"]
    assert [row[3] for row in answers] == ["bm25", "dense", "hybrid"]
    assert answers[1] == (
        "open-qa", "answer in a passage", "2018", "dense", "12",
        "40.0 (30.0 to 50.0)", "50.0 (40.0 to 60.0)", "–", "60.0 (50.0 to 70.0)", "–",
    )  # fmt: skip
    assert [row[1] for row in rows if row[3] == "bm25" and row[9] != "–"] == ["R-precision", "MRR of a gold page"]
    assert all("retriever" not in row[0].text for row in tables["retrieval"].rows)
    assert "other" not in tables


def test_recall_has_a_row_an_index_and_the_gate_alarms(store: Store, tmp_path: Path) -> None:
    with store.snapshot() as snapshot:
        rows = to_terminal_rows(report_tables(snapshot, RUN)["index_recall"])
    assert rows[0][2:] == (*(f"recall k = {k}" for k in (1, 5, 10, 20, 50, 100)), "n", "gate", "parameters")
    assert rows[1][4] == "99.7 (99.1 to 100.0)"
    assert rows[1][8:] == ("200", "passed (95.0 at k = 10)", "m 32, ef_construction 200, ef_search 64")
    weak = {"corpus": "2018", "kind": "hnsw", "n": 200, "min_recall": None}
    weak_rows = [weak | {"k": 5, "recall": 0.8}, weak | {"k": 10, "recall": 0.94, "min_recall": 0.95}]
    store = changed(store, tmp_path, {"index_recall": weak_rows})
    text = Page(render_html(store, RUN, tmp_path / "report.html").read_text(encoding="utf-8")).text
    assert "1 of 1 passage indexes are below their recall gate." in text


def test_the_sweep_marks_the_studys_setting_and_the_fastest_that_reaches_the_gate(
    tables: dict[str, ReportTable],
) -> None:
    remarks = {tuple(cell.text for cell in row[:3]): row[-1].text for row in tables["index_sweep"].rows}
    assert {setting: remark for setting, remark in remarks.items() if remark != "–"} == {
        ("2016", "hnsw", "ef_search 32"): "fastest that passes",
        ("2016", "hnsw", "ef_search 64"): "the study's",
        ("2018", "ivf-rabitq", "nprobe 8, rerank 200"): "fastest that passes",
        ("2018", "ivf-rabitq", "nprobe 32, rerank 200"): "the study's",
    }
    assert to_terminal_rows(tables["index_sweep"])[1][6:10] == ("95.0", "0.060 ms", "0.035 ms", "9.1 MB")


def test_the_trade_off_is_drawn_the_same_each_time_and_told_in_words(tables: dict[str, ReportTable]) -> None:
    svg = tradeoff_figure(tables, "salt")
    assert svg == tradeoff_figure(tables, "salt")
    assert "2016, hnsw, 9.1 MB, k = 10: ef_search 16 93.0 in 0.060 ms; " in svg
    assert "ef_search 64 99.7 in 0.35 ms (the study&#x27;s setting); " in svg
    assert svg.count("the gate: 95.0") == 1
    assert tradeoff_figure({}, "salt") == ""


def test_a_sweep_without_times_draws_nothing(store: Store, tmp_path: Path) -> None:
    bare = {"corpus": "2018", "kind": "flat", "point": 0, "configured": True, "k": 10, "recall": 1.0, "n": 3}
    with changed(store, tmp_path, {"index_sweep": [bare]}).snapshot() as snapshot:
        found = report_tables(snapshot, RUN)
    assert tradeoff_figure(found, "salt") == ""
    assert [cell.text for cell in found["index_sweep"].rows[0][6:]] == ["–", "–", "–", "–", "the study's"]
