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


def test_retrievers_stand_side_by_side_for_each_measure(tables: dict[str, ReportTable]) -> None:
    heading, *rows = to_terminal_rows(tables["retrievers"])
    assert heading == ("task", "measure", "n", "index 2018 bm25", "index 2018 dense", "index 2018 hybrid")
    answers = [row for row in rows if row[0] == "open-qa"]
    assert [row[1] for row in answers] == [f"answer in a passage, at {k}" for k in (1, 5, 20)]
    assert answers[2][2:5] == ("12", "63.0 (53.0 to 73.0)", "60.0 (50.0 to 70.0)")
    assert [row[1] for row in rows if ", at " not in row[1]] == ["R-precision", "MRR of a gold page"]
    assert not any(cell == "–" for row in rows for cell in row)
    assert all("retriever" not in row[0].text for row in tables["retrieval"].rows)
    assert "other" not in tables


def test_a_retriever_has_no_predictions_to_link_to(tables: dict[str, ReportTable]) -> None:
    predicted = {row[1].text for row in tables["definitions"].rows if "predictions" in row[-1].text}
    assert predicted == {"closed-book", "gold", "rag-sequence", "rag-token"}
    assert {"retriever:bm25", "retriever:dense"} < {row[1].text for row in tables["definitions"].rows}


def test_recall_has_a_row_an_index_and_the_gate_alarms(store: Store, tmp_path: Path) -> None:
    with store.snapshot() as snapshot:
        rows = to_terminal_rows(report_tables(snapshot, RUN)["index_recall"])
    assert rows[0][2:] == ("gate", "n", *(f"recall k = {k}" for k in (1, 5, 10, 20, 50, 100)), "parameters")
    assert rows[1][6] == "99.7 (99.1 to 100.0)"
    assert rows[1][2:4] == ("passed (95.0 at k = 10)", "200")
    assert rows[1][10] == "m 32, ef_construction 200, ef_search 64"
    weak = {"corpus": "2018", "kind": "hnsw", "n": 200, "min_recall": None}
    weak_rows = [weak | {"k": 5, "recall": 0.8}, weak | {"k": 10, "recall": 0.94, "min_recall": 0.95}]
    store = changed(store, tmp_path, {"index_recall": weak_rows})
    text = Page(render_html(store, RUN, tmp_path / "report.html").read_text(encoding="utf-8")).text
    assert "1 of 1 passage indexes are below their recall gate: 2018, hnsw." in text


def test_the_sweep_marks_the_studys_setting_and_the_cheapest_that_reaches_the_gate(
    tables: dict[str, ReportTable],
) -> None:
    remarks = {tuple(cell.text for cell in row[:3]): row[3].text for row in tables["index_sweep"].rows}
    assert {setting: remark for setting, remark in remarks.items() if remark != "–"} == {
        ("2016", "hnsw", "ef_search 32"): "cheapest setting that passes",
        ("2016", "hnsw", "ef_search 64"): "the study's",
        ("2018", "ivf-rabitq", "nprobe 8, rerank 200"): "cheapest setting that passes",
        ("2018", "ivf-rabitq", "nprobe 32, rerank 200"): "the study's",
    }
    assert to_terminal_rows(tables["index_sweep"])[1][5:10] == ("95.0", "0.060 ms", "0.035 ms", "9.1 MB", "10")


_SWEPT = {"corpus": "2018", "kind": "hnsw", "k": 10, "n": 200, "min_recall": 0.9}


def _swept(times: dict[int, float], recall: float = 0.95) -> list[dict[str, object]]:
    """A sweep over ef_search with these seconds a question; the largest value stands first."""
    largest_first = enumerate(sorted(times.items(), reverse=True))
    settings = ({"point": point, "ef_search": ef, "single_seconds": time} for point, (ef, time) in largest_first)
    return [_SWEPT | setting | {"configured": False, "recall": recall} for setting in settings]


@pytest.mark.parametrize(
    ("times", "cheapest"),
    [
        ({32: 0.000302, 64: 0.000298, 128: 0.000281}, "ef_search 32"),  # all within 10 %: noise
        ({32: 0.000330, 64: 0.000298, 128: 0.000281}, "ef_search 64"),
        ({32: 0.000400, 64: 0.000400, 128: 0.000281}, "ef_search 128"),
    ],
)
def test_times_that_hardly_differ_leave_the_choice_to_the_setting(
    store: Store, tmp_path: Path, times: dict[int, float], cheapest: str
) -> None:
    with changed(store, tmp_path, {"index_sweep": _swept(times)}).snapshot() as snapshot:
        rows = report_tables(snapshot, RUN)["index_sweep"].rows
    assert [row[2].text for row in rows if "cheapest" in row[3].text] == [cheapest]


def test_what_is_below_the_gate_is_never_the_cheapest(store: Store, tmp_path: Path) -> None:
    swept = [_swept({32: 0.0001}, recall=0.8)[0], _swept({64: 0.0003})[0] | {"point": 1}]
    with changed(store, tmp_path, {"index_sweep": swept}).snapshot() as snapshot:
        rows = report_tables(snapshot, RUN)["index_sweep"].rows
    assert [(row[2].text, row[3].text != "–") for row in rows] == [("ef_search 32", False), ("ef_search 64", True)]


def test_times_that_hardly_differ_do_not_fill_the_width(store: Store, tmp_path: Path) -> None:
    with changed(store, tmp_path, {"index_sweep": _swept({32: 0.00029, 64: 0.00031})}).snapshot() as snapshot:
        svg = tradeoff_figure(report_tables(snapshot, RUN), "salt")
    assert all(f">{tick}<" in svg for tick in ("0.2", "0.5"))  # the axis reaches from 0.15 to 0.6


def test_only_what_finds_all_is_said_to_find_all(store: Store, tmp_path: Path) -> None:
    row = {"corpus": "2018", "kind": "hnsw", "k": 10, "recall": 0.9995, "low": 0.998, "high": 0.99999, "n": 200}
    with changed(store, tmp_path, {"index_recall": [row]}).snapshot() as snapshot:
        rows = to_terminal_rows(report_tables(snapshot, RUN)["index_recall"])
    assert rows[1][4] == "99.95 (99.8 to 99.99)"


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
    assert [cell.text for cell in found["index_sweep"].rows[0][3:]] == ["the study's", "100.0", *"––––", "10", "3"]
