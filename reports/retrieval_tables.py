"""The tables of retrieval: retrievers scored alone, what the index finds of an exact search, and what that costs."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reports.cells import DASH, Cell, Column, ReportTable, headings, interval, milliseconds, percent, size
from reports.evidence import metric_cell
from reports.store import Snapshot

MEASURES = {
    "answer_in_passage": "answer in a passage",
    "recall": "recall of gold pages",
    "gold_title": "a gold page among them",
    "r_precision": "R-precision",
    "evidence": "a whole evidence set",
    "answer_mrr": "MRR of an answer",
    "title_mrr": "MRR of a gold page",
}
KNOBS = ("ef_search", "nprobe", "rerank")


def retriever_table(snapshot: Snapshot, run_id: str) -> ReportTable:
    """Retrievers scored alone: retrievers below one another for each task and measure, ranks across."""
    rows = snapshot.query("SELECT * FROM v_retrievers WHERE run_id = ?", [run_id]).records()
    cells = {(_line(row), row["k"]): row for row in rows}
    lines = sorted({line for line, _ in cells}, key=_measure_first)
    across = sorted({k for _, k in cells if k is not None})
    ranked = [Column(f"at {k}", numeric=True) for k in across]
    whole = [Column("all", numeric=True)] if any(k is None for _, k in cells) else []
    columns = (*headings("task", "measure", "passage index", "retriever", "n >"), *ranked, *whole)
    body = []
    for line in lines:
        task, split, measure, corpus, retriever = line
        shown = [cells.get((line, k)) for k in (*across, *([None] if whole else []))]
        head = (
            Cell(task if split == "test" else f"{task}, {split}"),
            Cell(MEASURES.get(measure, measure.replace("_", " "))),
            Cell(corpus),
            Cell(retriever),
            _questions([row["n"] for row in shown if row]),
        )
        body.append((*head, *(_interval_below(metric_cell(row)) for row in shown)))
    return ReportTable("retrievers", "Retrievers alone", _ALONE, columns, tuple(body))


_ALONE = (
    "No model: percent over the questions, 95 % interval below, among the first so many passages; all: over the whole "
    "ranking. The model's own passages are the table after this one."
)


def _interval_below(cell: Cell) -> Cell:
    """A cell without its n, which stands in a column of its own."""
    return cell._replace(detail=interval(cell.low, cell.high))


def _questions(counts: Sequence[int]) -> Cell:
    least, most = min(counts), max(counts)
    return Cell(f"{most:,}" if least == most else f"{least:,} to {most:,}", most)


def _line(row: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    return row["task"], row["split"], row["measure"], row["corpus"], row["retriever"]


def _measure_first(line: tuple[str, str, str, str, str]) -> tuple[Any, ...]:
    task, split, measure, *names = line
    order = list(MEASURES)
    return task, split, order.index(measure) if measure in order else len(order), measure, *names


def index_recall_table(snapshot: Snapshot, run_id: str) -> ReportTable:
    """What each index finds of an exact search, for every number of passages asked for, with the gate."""
    rows = snapshot.query("SELECT * FROM v_index_recall WHERE run_id = ?", [run_id]).records()
    cells = {((row["corpus"], row["kind"]), row["k"]): row for row in rows}
    across = sorted({row["k"] for row in rows})
    ranked = (Column(f"k = {k}", "recall", numeric=True) for k in across)
    columns = (*headings("passage index", "kind"), *ranked, *headings("n >", "gate", "parameters"))
    body = []
    for line in sorted({line for line, _ in cells}):
        found = [cells[line, k] for k in across if (line, k) in cells]
        values = (_recall_cell(cells.get((line, k))) for k in across)
        asked = _questions([row["n"] for row in found])
        body.append((Cell(line[0]), Cell(line[1]), *values, asked, _gate(found), Cell(_parameters(found[0]))))
    return ReportTable("index_recall", "Recall of the index", _RECALL, columns, tuple(body))


_RECALL = (
    "Before anything was generated: percent of the exact nearest k passages that a search for k finds, on a sample of "
    "the study's questions, 95 % interval below."
)


def _recall_cell(row: Mapping[str, Any] | None) -> Cell:
    if row is None:
        return Cell(DASH)
    return Cell(
        percent(row["recall"]),
        row["recall"],
        row["low"],
        row["high"],
        row["n"],
        interval(row["low"], row["high"]),
        partial=row["partial"],
        note="the run is not complete" if row["partial"] else "",
    )


def _gate(rows: Sequence[Mapping[str, Any]]) -> Cell:
    gated = [row for row in rows if row["min_recall"] is not None]
    if not gated:
        return Cell(DASH)
    passed = all(row["passed"] for row in gated)
    asked = ", ".join(f"{percent(row['min_recall'])} at k = {row['k']}" for row in gated)
    return Cell("passed" if passed else "failed", detail=asked, alarm=not passed)


def _parameters(row: Mapping[str, Any]) -> str:
    found = json.loads(row["parameters_json"] or "{}")
    return ", ".join(f"{key} {value}" for key, value in found.items()) or DASH


def index_sweep_table(snapshot: Snapshot, run_id: str) -> ReportTable:
    """Other search settings of each index: what they find, how long a question takes, how much memory."""
    sql = "SELECT * FROM v_index_sweep WHERE run_id = ? ORDER BY corpus, kind, point"
    rows = snapshot.query(sql, [run_id]).records()
    columns = headings(
        "passage index",
        "kind",
        "setting",
        "k >",
        "recall >",
        "n >",
        "at least >",
        "one question >",
        "in a batch >",
        "memory >",
        "remark",
    )
    return ReportTable("index_sweep", "What a search finds and costs", _SWEEP, columns, tuple(map(_point, rows)))


_SWEEP = (
    "Search settings of the same index. One question: median time of questions asked one after the other on one "
    "thread. In a batch: time a question where all are asked at once. Memory: without vectors mapped from their files. "
    "Times are of this machine."
)


def _point(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    own = "the study's" if row["configured"] else ""
    cheapest = "fastest that passes" if row["cheapest"] else ""
    return (
        Cell(row["corpus"]),
        Cell(row["kind"]),
        Cell(", ".join(f"{knob} {row[knob]}" for knob in KNOBS if row[knob] is not None) or DASH),
        Cell(str(row["k"]), row["k"]),
        _recall_cell(row)._replace(strong=row["configured"]),
        _questions([row["n"]]),
        Cell(percent(row["min_recall"]), row["min_recall"]),
        Cell(milliseconds(row["single_seconds"]), row["single_seconds"]),
        Cell(milliseconds(row["batched_seconds"]), row["batched_seconds"]),
        Cell(size(row["index_bytes"]), row["index_bytes"]),
        Cell("; ".join(part for part in (own, cheapest) if part) or DASH),
    )


BUILDERS: dict[str, Callable[[Snapshot, str], ReportTable]] = {
    "index_recall": index_recall_table,
    "index_sweep": index_sweep_table,
    "retrievers": retriever_table,
}
