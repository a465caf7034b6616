"""The table of a sweep over n_docs: the same model with more and fewer passages."""

from reports.cells import Cell, Column, ReportTable, headings
from reports.evidence import metric_cell
from reports.metric_names import METRIC_ORDER, metric_label
from reports.store import Snapshot


def sweep_table(snapshot: Snapshot, run_id: str) -> ReportTable:
    """Metrics by the number of passages: models, tasks and metrics down, n_docs across."""
    rows = snapshot.query("SELECT * FROM v_n_docs_sweep WHERE run_id = ?", [run_id]).records()
    cells = {
        ((row["task"], row["split"], row["name"], row["model"], row["corpus"]), row["n_docs"]): row for row in rows
    }
    across = sorted({n_docs for _, n_docs in cells})
    body = []
    for line in sorted({line for line, _ in cells}, key=lambda line: (line[0], METRIC_ORDER.get(line[2], 99), line)):
        task, split, name, model, corpus = line
        head = (
            Cell(task if split == "test" else f"{task}, {split}"),
            Cell(metric_label(name)),
            Cell(model),
            Cell(corpus),
        )
        body.append((*head, *(metric_cell(cells.get((line, n_docs))) for n_docs in across)))
    columns = (
        *headings("task", "metric", "model", "passage index"),
        *(Column(str(k), "n_docs", numeric=True) for k in across),
    )
    return ReportTable("n_docs_sweep", "More and fewer passages", _SWEPT, columns, tuple(body))


_SWEPT = (
    "Percent, 95 % interval below, by the number of passages that the model reads and is scored with. Trained once; "
    "the passages are the first of one retrieval."
)
