"""One run as a page, a Markdown file or LaTeX tables.

The HTML is one file that asks the network for nothing and runs no script. All text from the database is escaped:
passages and predictions are other people's words. The same published results give the same bytes.
"""

from importlib import resources
from pathlib import Path

import jinja2
from markupsafe import Markup

from reports import cells, formats
from reports.cells import ReportTable
from reports.data_tables import caveats
from reports.figures import metric_figure
from reports.files import write_text
from reports.samples import TaskSamples, samples
from reports.store import Snapshot, Store
from reports.summary import Summary, summarise
from reports.tables import RESULT_KEYS, known_run, report_tables
from reports.tradeoff import tradeoff_figure


def render_html(store: Store, run_id: str, out: Path) -> Path:
    """Write the report of a run to ``out``; returns ``out``.

    Raises StoreError for a run that is not published, or where ``out`` cannot be written.
    """
    with store.snapshot() as snapshot:
        summary, tables = _gathered(snapshot, run_id)
        shown: tuple[TaskSamples, ...] = samples(snapshot, run_id)
    page = (
        _environment()
        .get_template("report.html.j2")
        .render(
            summary=summary,
            tables=tables,
            results=[tables[key] for key in _SCORES if key in tables],
            samples=shown,
            partial=any(table.partial for table in tables.values()),
            figure=Markup(metric_figure(tables, salt=run_id)),
            tradeoff=Markup(tradeoff_figure(tables, salt=run_id)),
            style=Markup(_source("report.css")),
        )
    )
    write_text(out, page)
    return out


def render_markdown(store: Store, run_id: str, out: Path) -> Path:
    """Write the result tables of a run as Markdown."""
    with store.snapshot() as snapshot:
        summary, tables = _gathered(snapshot, run_id)
    head = [f"# {formats.markdown_text(summary.title)}", "", f"Run {formats.markdown_text(summary.run_id)}."]
    told = [f"**{formats.markdown_text(text)}**" for text in _must_say(summary)]
    body = [formats.to_markdown(tables[key]) for key in RESULT_KEYS if key in tables]
    write_text(out, "\n\n".join(["\n".join(head), *told, *body]))
    return out


def render_latex(store: Store, run_id: str, out: Path) -> Path:
    """Write the result tables of a run as LaTeX, to be included with ``\\input``; needs the package booktabs."""
    with store.snapshot() as snapshot:
        summary, tables = _gathered(snapshot, run_id)
    head = [f"% {text}" for text in (f"{summary.title}, run {summary.run_id}", *_must_say(summary))]
    comments = "\n".join(" ".join(line.split()) for line in head)
    body = [formats.to_latex(tables[key]) for key in RESULT_KEYS if key in tables]
    write_text(out, "\n\n".join([comments, *body]))
    return out


def _gathered(snapshot: Snapshot, run_id: str) -> tuple[Summary, dict[str, ReportTable]]:
    tables = report_tables(snapshot, run_id)
    return summarise(known_run(snapshot, run_id), tables, caveats(snapshot, run_id)), tables


def _must_say(summary: Summary) -> list[str]:
    """What may not be left out wherever numbers of this run are shown."""
    unfinished = {"running": "is not finished", "failed": "failed"}.get(summary.status)
    told = [f"This run {unfinished}: nothing here is a result."] if unfinished else []
    return [
        *told,
        *([summary.error] if summary.error else []),
        *summary.caveats,
        *summary.warnings,
        summary.comparison_note,
    ]


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("reports", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.update(number=cells.number, width=_bar_width)
    return environment


def _bar_width(share: float | None) -> str:
    return f"{100 * share:.1f}" if share is not None and 0 <= share <= 1 else "0"


def _source(name: str) -> str:
    return resources.files("reports").joinpath("templates", name).read_text(encoding="utf-8")


_SCORES = ("open_qa", "classification", "generation", "diversity", "calibration", "other")
