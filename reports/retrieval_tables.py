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
    """Retrievers scored alone: a row for each task and measure at its rank, retrievers of each passage index across."""
    rows = snapshot.query("SELECT * FROM v_retrievers WHERE run_id = ?", [run_id]).records()
    cells = {(_line(row), (row["corpus"], row["retriever"])): row for row in rows}
    across = sorted({place for _, place in cells})
    scored = (Column(retriever, f"index {corpus}", numeric=True) for corpus, retriever in across)
    body = []
    for line in sorted({line for line, _ in cells}, key=_measure_first):
        task, split, measure, k = line
        shown = [cells.get((line, place)) for place in across]
        name = MEASURES.get(measure, measure.replace("_", " "))
        head = (
            Cell(task if split == "test" else f"{task}, {split}"),
            Cell(name if k is None else f"{name}, at {k}"),
            _questions([row["n"] for row in shown if row]),
        )
        body.append((*head, *(_interval_below(metric_cell(row)) for row in shown)))
    columns = (*headings("task", "measure", "n >"), *scored)
    return ReportTable("retrievers", "Retrievers alone", _ALONE, columns, tuple(body))


_ALONE = (
    "No model. Percent over the questions, with a 95 % interval, among the first k passages. MRR looks at all that "
    "were retrieved; R-precision at as many pages as there are gold ones. What the models read is the next table."
)


def _interval_below(cell: Cell) -> Cell:
    """A cell without its n, which stands in a column of its own."""
    return cell._replace(detail=interval(cell.low, cell.high))


def _questions(counts: Sequence[int]) -> Cell:
    least, most = min(counts), max(counts)
    return Cell(f"{most:,}" if least == most else f"{least:,} to {most:,}", most)


def _line(row: Mapping[str, Any]) -> tuple[str, str, str, int | None]:
    return row["task"], row["split"], row["measure"], row["k"]


def _measure_first(line: tuple[str, str, str, int | None]) -> tuple[Any, ...]:
    task, split, measure, k = line
    order = list(MEASURES)
    return task, split, order.index(measure) if measure in order else len(order), measure, k or 0


def index_recall_table(snapshot: Snapshot, run_id: str) -> ReportTable:
    """What each index finds of an exact search, for every number of passages asked for, with the gate."""
    rows = snapshot.query("SELECT * FROM v_index_recall WHERE run_id = ?", [run_id]).records()
    cells = {((row["corpus"], row["kind"]), row["k"]): row for row in rows}
    across = sorted({row["k"] for row in rows})
    ranked = (Column(f"k = {k}", "recall", numeric=True) for k in across)
    columns = (*headings("passage index", "kind", "gate", "n >"), *ranked, *headings("parameters"))
    body = []
    for line in sorted({line for line, _ in cells}):
        found = [cells[line, k] for k in across if (line, k) in cells]
        values = (_recall_cell(cells.get((line, k))) for k in across)
        asked = _questions([row["n"] for row in found])
        body.append((Cell(line[0]), Cell(line[1]), _gate(found), asked, *values, Cell(_parameters(found[0]))))
    return ReportTable("index_recall", "Recall of the index", _RECALL, columns, tuple(body))


_RECALL = (
    "Before anything was generated: percent of the exact nearest k passages that a search for k finds, on a sample of "
    "the study's questions, 95 % interval below."
)


def _recall_cell(row: Mapping[str, Any] | None) -> Cell:
    if row is None:
        return Cell(DASH)
    return Cell(
        _share(row["recall"]),
        row["recall"],
        row["low"],
        row["high"],
        row["n"],
        f"{_share(row['low'])} to {_share(row['high'])}" if interval(row["low"], row["high"]) else "",
        partial=row["partial"],
        note="the run is not complete" if row["partial"] else "",
    )


def _share(value: float | None) -> str:
    """A recall as percent; just below 1 with two decimals, for only what finds all is 100.

    >>> _share(1.0), _share(0.99999), _share(0.9995), _share(0.9971)
    ('100.0', '99.99', '99.95', '99.7')
    """
    if value is None or not 0.999 <= value < 1:
        return percent(value)
    return f"{min(100 * value, 99.99):.2f}"


def _gate(rows: Sequence[Mapping[str, Any]]) -> Cell:
    gated = [row for row in rows if row["min_recall"] is not None]
    if not gated:
        return Cell(DASH)
    passed = all(row["passed"] for row in gated)
    asked = ", ".join(f"{_share(row['min_recall'])} at k = {row['k']}" for row in gated)
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
        "remark",
        "recall >",
        "at least >",
        "one question >",
        "in a batch >",
        "memory >",
        "k >",
        "n >",
    )
    return ReportTable("index_sweep", "What a search finds and costs", _SWEEP, columns, tuple(map(_point, rows)))


_SWEEP = (
    "Search settings of the same index. One question: median time of questions asked one after the other on one "
    "thread. In a batch: time a question where all are asked at once. Memory: without vectors mapped from their files. "
    "Cheapest: the fastest that reaches the gate, or a smaller setting within 10 % of its time. Times are of this "
    "machine."
)


def _point(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    own = "the study's" if row["configured"] else ""
    cheapest = "cheapest setting that passes" if row["cheapest"] else ""
    return (
        Cell(row["corpus"]),
        Cell(row["kind"]),
        Cell(", ".join(f"{knob} {row[knob]}" for knob in KNOBS if row[knob] is not None) or DASH),
        Cell("; ".join(part for part in (own, cheapest) if part) or DASH),
        _recall_cell(row)._replace(strong=row["configured"]),
        Cell(_share(row["min_recall"]), row["min_recall"]),
        Cell(milliseconds(row["single_seconds"]), row["single_seconds"]),
        Cell(milliseconds(row["batched_seconds"]), row["batched_seconds"]),
        Cell(size(row["index_bytes"]), row["index_bytes"]),
        Cell(str(row["k"]), row["k"]),
        _questions([row["n"]]),
    )


BUILDERS: dict[str, Callable[[Snapshot, str], ReportTable]] = {
    "index_recall": index_recall_table,
    "index_sweep": index_sweep_table,
    "retrievers": retriever_table,
}
