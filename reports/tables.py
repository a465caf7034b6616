"""The result tables of one run as data, in the shape of the paper's: models down, tasks across.

Every number comes from a view of ``schema.sql``; here it only gets its place. ``report_tables`` has them all, those of
``reports.evidence`` included.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from reports import evidence, retrieval_tables, sweep_table
from reports.cells import DASH, Cell, Column, Link, ReportTable, headings, interval, p_text, percent
from reports.errors import StoreError
from reports.formats import to_latex, to_markdown, to_terminal_rows
from reports.metric_names import METRIC_ORDER, metric_label
from reports.store import Snapshot

__all__ = ["RESULT_KEYS", "ReportTable", "known_run", "report_tables", "to_latex", "to_markdown", "to_terminal_rows"]

RESULT_KEYS = (
    "open_qa",
    "classification",
    "generation",
    "diversity",
    "calibration",
    "swap",
    "swap_missing",
    "swap_unspellable",
    "n_docs_sweep",
    "comparisons",
    "expected",
    *retrieval_tables.BUILDERS,
    "retrieval",
    "other",
)

_PIVOTS = {
    "open_qa": (
        "v_open_qa",
        "Open-domain question answering",
        "Percent, 95 % interval below. Exact match: the normalised prediction equals one of the answers.",
    ),
    "classification": ("v_classification", "Fact verification", "Label accuracy in percent, 95 % interval below."),
    "calibration": (
        "v_calibration",
        "Probabilities of labels",
        "Calibration error and Brier score (halved) in percent, 95 % interval below; 0 is best. Calibrated: at a "
        "temperature that was fitted on the dev split.",
    ),
    "generation": (
        "v_generation",
        "Answer and question generation",
        "BLEU-1, ROUGE-L and Q-BLEU-1 in percent, 95 % interval below.",
    ),
    "diversity": ("v_diversity", "Diversity of what was generated", "Distinct tri-grams in percent of all tri-grams."),
    "retrieval": (
        "v_retrieval",
        "What the models read",
        "Percent of questions, 95 % interval below. Answer in a passage: a gold answer stands in one of the passages; "
        "the cited one has the largest posterior.",
    ),
    "other": ("v_other_metrics", "Other metrics", "In their own units, 95 % interval below."),
}


def report_tables(snapshot: Snapshot, run_id: str) -> dict[str, ReportTable]:
    """Every table of a run that has rows, by key, results first.

    Raises StoreError for a run that is not there.
    """
    known_run(snapshot, run_id)
    builders: dict[str, Callable[[Snapshot, str], ReportTable]] = {
        **{key: _pivot_of(key) for key in _PIVOTS},
        "swap": swap_table,
        "swap_missing": _offices("v_swap_missing", "Answers that no index holds", _MISSING),
        "swap_unspellable": _offices("v_swap_unspellable", "Answers that the generator cannot spell", _UNSPELLABLE),
        "n_docs_sweep": sweep_table.sweep_table,
        "comparisons": comparison_table,
        "expected": expected_table,
        **retrieval_tables.BUILDERS,
        **evidence.BUILDERS,
    }
    order = [*RESULT_KEYS, *evidence.BUILDERS]
    tables = {key: builders[key](snapshot, run_id) for key in order}
    return {key: table for key, table in tables.items() if table.rows}


def known_run(snapshot: Snapshot, run_id: str) -> Mapping[str, Any]:
    """The row of ``runs``; StoreError names the runs there are where this one is not."""
    rows = snapshot.query("SELECT * FROM runs WHERE run_id = ?", [run_id]).records()
    if not rows:
        newest = snapshot.query("SELECT run_id FROM runs ORDER BY started_at DESC LIMIT 5").rows
        known = ", ".join(name for (name,) in newest) or "none"
        raise StoreError(f"there is no run {run_id!r} in the published results; the newest: {known}")
    return rows[0]


def _pivot_of(key: str) -> Callable[[Snapshot, str], ReportTable]:
    view, title, caption = _PIVOTS[key]

    def build(snapshot: Snapshot, run_id: str) -> ReportTable:
        rows = snapshot.query(f"SELECT * FROM {view} WHERE run_id = ?", [run_id]).records()
        return _pivot(key, title, caption, rows)

    return build


def _pivot(key: str, title: str, caption: str, rows: Iterable[Mapping[str, Any]]) -> ReportTable:
    """Models and passage indexes down, tasks and metrics across."""
    cells = {((row["model"], row["corpus"]), (row["task"], row["split"], row["name"])): row for row in rows}
    lines = sorted({line for line, _ in cells}, key=lambda line: (line[0] != "gold", line))
    across = sorted(
        {place for _, place in cells}, key=lambda place: (*place[:2], METRIC_ORDER.get(place[2], 99), place[2])
    )
    one_split = len({split for _, split, _ in across}) <= 1
    columns = [Column("model"), Column("passage index")]
    for task, split, name in across:
        group = task if one_split else f"{task}, {split}"
        columns.append(Column(metric_label(name), group, numeric=True))
    body = []
    for line in lines:
        head = (Cell(line[0]), Cell(line[1] or "none"))
        body.append((*head, *(evidence.metric_cell(cells.get((line, place))) for place in across)))
    splits = ", ".join(sorted({split for _, split, _ in across}))
    return ReportTable(key, title, f"{caption} Split: {splits}.", tuple(columns), tuple(body))


def swap_table(snapshot: Snapshot, run_id: str) -> ReportTable:
    """The index swap: indexes down, answer sets across; the diagonal is where both are of one date."""
    rows = snapshot.query("SELECT * FROM v_swap WHERE run_id = ?", [run_id]).records()
    cells = {((row["model"], row["corpus"]), row["answers_of"]): row for row in rows}
    lines = sorted({line for line, _ in cells})
    across = sorted({answers_of for _, answers_of in cells})
    columns = [Column("model"), Column("passage index")]
    columns += [Column(f"answers of {answers_of}", numeric=True) for answers_of in across]
    body = []
    for model, corpus in lines:
        head = (Cell(model), Cell(corpus))
        body.append((*head, *(_swap_cell(cells.get(((model, corpus), answers_of))) for answers_of in across)))
    caption = (
        "Percent right by exact match, with counts and 95 % interval. The same questions and the same trained model; "
        "only the passage index changes between the rows. Bold: index and answers of one date."
    )
    return ReportTable("swap", "Two indexes, two sets of answers", caption, tuple(columns), tuple(body))


def _swap_cell(row: Mapping[str, Any] | None) -> Cell:
    if row is None:
        return Cell(DASH)
    counts = f"{row['n_correct']} of {row['n']}"
    same_date = row["corpus"] == row["answers_of"]
    held = f"{row['n_answer_in_index']} answers in the index" if same_date else ""
    failed = f"{row['n_errors']} failed" if row["n_errors"] else "the run is not complete"
    return Cell(
        percent(row["value"]),
        value=row["value"],
        low=row["low"],
        high=row["high"],
        n=row["n"],
        detail="; ".join(part for part in (counts, interval(row["low"], row["high"]), held) if part),
        links=(Link(percent(row["value"]), "#swap-details"),),
        partial=row["partial"],
        note=failed if row["partial"] else "",
        strong=same_date,
    )


_MISSING = "Offices whose answer stands in no passage of any index: no model could have found it."
_UNSPELLABLE = "Offices whose answer has characters that are not in the generator's vocabulary."


def _offices(view: str, title: str, caption: str) -> Callable[[Snapshot, str], ReportTable]:
    sql = f"SELECT * FROM {view} WHERE run_id = ? ORDER BY model, answers_of, position"

    def build(snapshot: Snapshot, run_id: str) -> ReportTable:
        rows = snapshot.query(sql, [run_id]).records()
        columns = headings("model", "office", "country", "answers of", "answer")
        body = tuple(
            (
                Cell(row["model"]),
                Cell(row["position"]),
                Cell(row["country"] or DASH),
                Cell(row["answers_of"]),
                Cell(" / ".join(row["answers"]) or DASH),
            )
            for row in rows
        )
        return ReportTable(view.removeprefix("v_"), title, f"{len(rows)} in all. {caption}", columns, body)

    return build


def comparison_table(snapshot: Snapshot, run_id: str) -> ReportTable:
    """Paired comparisons of models on the same questions."""
    sql = "SELECT * FROM v_comparisons WHERE run_id = ? ORDER BY task, metric, model_a, model_b"
    rows = snapshot.query(sql, [run_id]).records()
    columns = headings("task", "metric", "models", "difference >", "p >", "p, adjusted >", "n >", "test")
    caption = "First model minus second, in points of percent, on the questions that both answered; 95 % interval."
    return ReportTable("comparisons", "Comparisons", caption, columns, tuple(_comparison(row) for row in rows))


def _comparison(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    difference = row["difference"]
    text = percent(difference)
    if text != DASH and difference > 0:
        text = f"+{text}"
    why = "the run is not complete" if row["partial"] else ""
    return (
        Cell(row["task"]),
        Cell(metric_label(row["metric"])),
        Cell(f"{row['model_a']} − {row['model_b']}"),
        Cell(
            text,
            difference,
            row["low"],
            row["high"],
            row["n"],
            interval(row["low"], row["high"]),
            partial=row["partial"],
            note=why,
        ),
        Cell(p_text(row["p_value"]), row["p_value"]),
        Cell(p_text(row["p_adjusted"]), row["p_adjusted"]),
        Cell(str(row["n"]), row["n"]),
        Cell(row["test"]),
    )


def expected_table(snapshot: Snapshot, run_id: str) -> ReportTable:
    """What the study says its cells should be, beside what they are."""
    rows = snapshot.query("SELECT * FROM v_expected WHERE run_id = ? ORDER BY cell", [run_id]).records()
    columns = headings("cell", "expected >", "tolerance >", "measured >", "verdict", "source")
    body = tuple(
        (
            Cell(row["cell"]),
            Cell(percent(row["value"]), row["value"]),
            Cell(f"± {percent(row['tolerance'])}", row["tolerance"]),
            Cell(percent(row["measured"]), row["measured"], partial=row["partial"]),
            Cell(row["verdict"], alarm=row["verdict"].lower() != "ok"),
            Cell(row["source"]),
        )
        for row in rows
    )
    return ReportTable("expected", "Expected values", "In percent, as the study file states them.", columns, body)
