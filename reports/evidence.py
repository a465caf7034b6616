"""The tables that say how the results came about: definitions, training, stages, artifacts; and those of the data."""

from collections.abc import Callable, Mapping
from typing import Any

from reports import data_tables
from reports.cells import (
    DASH,
    Cell,
    Column,
    Link,
    ReportTable,
    anchor_of,
    duration,
    headings,
    interval,
    number,
    percent,
    short,
    size,
)
from reports.store import Snapshot


def metric_anchor(row: Mapping[str, Any]) -> str:
    """The id of a metric's row among the definitions; those of a sweep have a number of passages."""
    swept = [str(row["n_docs"])] if row.get("n_docs") else []
    return anchor_of("m", row["model"], row["task"], row["corpus"], row["split"], row["name"], *swept)


def metric_cell(row: Mapping[str, Any] | None) -> Cell:
    """A row of v_metrics or v_n_docs_sweep as a cell with its interval, linked to its definition; a dash for no row."""
    if row is None:
        return Cell(DASH)
    n = f"n {row['n']}" if row["n"] == row["n_expected"] else f"n {row['n']} of {row['n_expected']}"
    text = percent(row["value"], row["unit"])
    return Cell(
        text,
        value=row["value"],
        low=row["low"],
        high=row["high"],
        n=row["n"],
        detail="; ".join(part for part in (interval(row["low"], row["high"], row["unit"]), n) if part),
        links=(Link(text, f"#{metric_anchor(row)}"),),
        partial=row["partial"],
        note=row["partial_reason"],
    )


def samples_anchor(task: str, split: str) -> str:
    """The id of a task's sample predictions."""
    return anchor_of("samples", task, split)


def artifact_anchor(fingerprint: str) -> str:
    """The id of an artifact's row in the lineage."""
    return anchor_of("a", fingerprint)


def definition_table(snapshot: Snapshot, run_id: str) -> ReportTable:
    """Every metric with its definition, its counts and where its evidence lies."""
    rows = snapshot.query(_DEFINED, [run_id, run_id]).records()
    sampled = {tuple(row) for row in snapshot.query(_SAMPLED, [run_id]).rows}
    artifacts = _artifacts(snapshot, run_id)
    columns = headings("metric", "model", "value >", "scored >", "left out >", "failed >", "definition", "evidence")
    caption = "What stands behind each number. Left out: by the metric's own definition. Failed: never scored as 0."
    body = tuple(_definition(row, (row["task"], row["split"]) in sampled, artifacts) for row in rows)
    return ReportTable("definitions", "Every number, with its definition", caption, columns, body)


_DEFINED = """
FROM v_metrics WHERE run_id = ? UNION ALL BY NAME FROM v_n_docs_sweep WHERE run_id = ?
ORDER BY task, split, name, model, corpus, n_docs NULLS FIRST
"""

_SAMPLED = (
    "SELECT DISTINCT task, split FROM questions SEMI JOIN predictions USING (run_id, task, split, question_id) "
    "WHERE run_id = ?"
)


def _artifacts(snapshot: Snapshot, run_id: str) -> set[str]:
    """The artifacts that have a row in the lineage, so that one may link there."""
    rows = snapshot.query("SELECT fingerprint FROM run_artifacts WHERE run_id = ?", [run_id]).rows
    return {fingerprint for (fingerprint,) in rows}


def _artifact_link(text: str, fingerprint: str, artifacts: set[str]) -> Link:
    return Link(text, f"#{artifact_anchor(fingerprint)}" if fingerprint in artifacts else "")


def _definition(row: Mapping[str, Any], sampled: bool, artifacts: set[str]) -> tuple[Cell, ...]:
    # A retriever alone predicts nothing, and of a sweep no predictions are shown.
    predicted = sampled and not row["n_docs"] and not row["model"].startswith("retriever:")
    links = [Link("predictions", f"#{samples_anchor(row['task'], row['split'])}")] if predicted else []
    if row["fingerprint"]:
        links.append(_artifact_link(short(row["fingerprint"]), row["fingerprint"], artifacts))
    swept = f", {row['n_docs']} passages" if row["n_docs"] else ""
    left_out = row["n_excluded"] or 0
    return (
        Cell(row["name"], detail=f"{row['task']}, {row['split']}{swept}", anchor=metric_anchor(row)),
        Cell(row["model"], detail=f"index {row['corpus']}" if row["corpus"] else "no passages"),
        Cell(
            percent(row["value"], row["unit"]),
            row["value"],
            row["low"],
            row["high"],
            row["n"],
            interval(row["low"], row["high"], row["unit"]),
            partial=row["partial"],
            note=row["partial_reason"],
        ),
        Cell(f"{row['n']} of {row['n_expected']}", row["n"]),
        Cell(str(left_out), left_out),
        Cell(str(row["n_errors"]), row["n_errors"], alarm=row["n_errors"] > 0),
        Cell(row["signature"] or DASH, detail=f"unit: {row['unit']}"),
        Cell(", ".join(link.text for link in links) or DASH, links=tuple(links)),
    )


def answered_table(snapshot: Snapshot, run_id: str) -> ReportTable:
    """How many questions each model was asked and how many it answered."""
    rows = snapshot.query(
        "SELECT * FROM v_answered WHERE run_id = ? ORDER BY task, split, model, corpus", [run_id]
    ).records()
    columns = headings(
        "task",
        "split",
        "model",
        "passage index",
        "questions >",
        "predictions >",
        "failed >",
        "empty >",
        "time each >",
    )
    body = tuple(
        (
            Cell(row["task"]),
            Cell(row["split"]),
            Cell(row["model"]),
            Cell(row["corpus"] or "none"),
            Cell(number(row["n_questions"]), row["n_questions"]),
            Cell(number(row["n_predictions"]), row["n_predictions"], partial=row["partial"]),
            Cell(number(row["n_errors"]), row["n_errors"], alarm=row["n_errors"] > 0),
            Cell(number(row["n_empty"]), row["n_empty"]),
            Cell(duration(row["mean_seconds"]), row["mean_seconds"]),
        )
        for row in rows
    )
    caption = "An empty prediction is an answer, and scored; a failed one is not, and makes its metrics partial."
    return ReportTable("answered", "Asked and answered", caption, columns, body)


def swap_answer_table(snapshot: Snapshot, run_id: str) -> ReportTable:
    """What the model answered for each office with each index, and for which date that is right."""
    rows = snapshot.query(_SWAP_ANSWERS, [run_id]).records()
    given = {((row["model"], row["question_id"]), row["corpus"]): row for row in rows}
    offices = {(row["model"], row["question_id"]): row for row in rows}
    across = sorted({row["corpus"] for row in rows})
    columns = [Column("model"), Column("office"), *(Column(f"answer with index {corpus}") for corpus in across)]
    body = []
    for office, row in offices.items():
        cells = (_swap_answer(given.get((office, corpus))) for corpus in across)
        body.append((Cell(row["model"]), Cell(row["position"], detail=row["gold"]), *cells))
    caption = "Below each office, who held it at each date; below each answer, for which date it is right."
    return ReportTable("swap_answers", "Every answer of the index swap", caption, tuple(columns), tuple(body))


_SWAP_ANSWERS = """
SELECT model, question_id, corpus, any_value(position) AS position, any_value(prediction) AS prediction,
       string_agg(answers_of || ': ' || coalesce(answers[1], '–'), ', ' ORDER BY answers_of) AS gold,
       list(answers_of ORDER BY answers_of) FILTER (correct) AS right_for,
       bool_or(correct IS NULL) AS failed
FROM swap_answers WHERE run_id = ? GROUP BY model, question_id, corpus ORDER BY model, min(position), question_id
"""


def _swap_answer(row: Mapping[str, Any] | None) -> Cell:
    if row is None:
        return Cell(DASH)
    verdict = "failed" if row["failed"] else "right for " + " and ".join(row["right_for"]) if row["right_for"] else ""
    return Cell(row["prediction"] or DASH, detail=verdict or "wrong", alarm=row["failed"])


def training_table(snapshot: Snapshot, run_id: str) -> ReportTable:
    """The course of training, first step against last."""
    rows = snapshot.query(_TRAINING, [run_id]).records()
    columns = headings(
        "model", "steps >", "loss, first >", "loss, last >", "time >", "distinct first passages, least >"
    )
    body = tuple(
        (
            Cell(row["model"]),
            Cell(number(row["steps"]), row["steps"]),
            Cell(number(row["first_loss"]), row["first_loss"]),
            Cell(number(row["last_loss"]), row["last_loss"]),
            Cell(duration(row["seconds"]), row["seconds"]),
            Cell(number(row["least_distinct"], 2), row["least_distinct"]),
        )
        for row in rows
    )
    caption = (
        "Negative marginal log-likelihood in nats an example. Distinct first passages near 0: retrieval collapsed."
    )
    return ReportTable("training", "Training", caption, columns, body)


_TRAINING = """
SELECT model, count(*) AS steps, arg_min(loss_per_example, step) AS first_loss,
       arg_max(loss_per_example, step) AS last_loss, sum(seconds) AS seconds, min(distinct_top1) AS least_distinct
FROM training_steps WHERE run_id = ? GROUP BY model ORDER BY model
"""


def stage_table(snapshot: Snapshot, run_id: str) -> ReportTable:
    """The last call of each stage, and what its artifact cost when it was made."""
    rows = snapshot.query(
        "SELECT * FROM v_stages WHERE run_id = ? AND latest ORDER BY started_at NULLS LAST, stage, name", [run_id]
    ).records()
    columns = headings(
        "stage", "of", "this time", "time >", "time when made >", "rows in >", "rows out >", "rejected >", "reason"
    )
    artifacts = _artifacts(snapshot, run_id)
    total = sum(row["seconds"] or 0 for row in rows)
    made = sum(row["computed_seconds"] or 0 for row in rows)
    caption = f"{duration(total)} in the last call; making everything took {duration(made)}."
    return ReportTable("stages", "Stages", caption, columns, tuple(_stage(row, artifacts) for row in rows))


def _stage(row: Mapping[str, Any], artifacts: set[str]) -> tuple[Cell, ...]:
    whole = row["status"] == "complete"
    done = ("found" if row["cache_hit"] else "computed") if whole else row["status"]
    name = row["name"] or row["stage"]
    links = (_artifact_link(name, row["fingerprint"], artifacts),) if row["fingerprint"] else ()
    return (
        Cell(row["stage"]),
        Cell(name, links=links),
        Cell(done, alarm=not whole),
        Cell(duration(row["seconds"]), row["seconds"]),
        Cell(duration(row["computed_seconds"]), row["computed_seconds"]),
        Cell(number(row["rows_in"]), row["rows_in"]),
        Cell(number(row["rows_out"]), row["rows_out"]),
        Cell(number(row["rows_rejected"]), row["rows_rejected"]),
        Cell(row["reason"] or DASH),
    )


def lineage_table(snapshot: Snapshot, run_id: str) -> ReportTable:
    """Every artifact of the run with what it was made from."""
    rows = snapshot.query(_LINEAGE, [run_id]).records()
    artifacts = _artifacts(snapshot, run_id)
    columns = headings("artifact", "stage", "of", "rows >", "size >", "made", "from")
    body = tuple(_artifact(row, artifacts) for row in rows)
    caption = "An artifact's name is the hash of its code, its configuration and its inputs."
    return ReportTable("lineage", "Lineage", caption, columns, body)


_LINEAGE = """
SELECT fingerprint, any_value(stage) AS stage, any_value(name) AS name, any_value(rows) AS rows,
       any_value(bytes) AS bytes, any_value(created_at) AS created_at, any_value(path) AS path,
       list({'fingerprint': parent_fingerprint, 'label': concat_ws(' ', nullif(role, ''), parent_name)}
            ORDER BY role, parent_name, parent_fingerprint) FILTER (parent_fingerprint IS NOT NULL) AS parents
FROM v_lineage WHERE run_id = ? GROUP BY fingerprint ORDER BY min(created_at) NULLS LAST, stage, name, fingerprint
"""


def _artifact(row: Mapping[str, Any], artifacts: set[str]) -> tuple[Cell, ...]:
    links = []
    for parent in row["parents"] or []:
        text = " ".join(part for part in (parent["label"], short(parent["fingerprint"])) if part)
        links.append(_artifact_link(text, parent["fingerprint"], artifacts))
    made = row["created_at"]
    return (
        Cell(short(row["fingerprint"]), detail=row["path"] or "", anchor=artifact_anchor(row["fingerprint"])),
        Cell(row["stage"] or DASH),
        Cell(row["name"] or DASH),
        Cell(number(row["rows"]), row["rows"]),
        Cell(size(row["bytes"]), row["bytes"]),
        Cell(f"{made:%Y-%m-%d %H:%M:%S}" if made else DASH),
        Cell("; ".join(link.text for link in links) or DASH, links=tuple(links)),
    )


BUILDERS: dict[str, Callable[[Snapshot, str], ReportTable]] = {
    "answered": answered_table,
    "swap_answers": swap_answer_table,
    "definitions": definition_table,
    "training": training_table,
    "sources": data_tables.source_table,
    "dropped_templates": data_tables.dropped_template_table,
    "checks": data_tables.check_table,
    "failed_checks": data_tables.failed_check_table,
    "rejects": data_tables.reject_table,
    "stages": stage_table,
    "lineage": lineage_table,
}
