"""The results of a run as a page, and as tables that a server's UI shows."""

from pathlib import Path

from prefect import flow

from flows.study_run import StudyRun, study_run
from flows.tasks import run_name


@flow(name="publish-report", flow_run_name=run_name("publish report: {study}"))
def publish_report(study: str, overrides: tuple[str, ...] = ()) -> Path:
    """Publish the database, its Parquet copy and the report; returns the report's path."""
    from reports.render import render_html

    with study_run(study, overrides) as run:
        run.results.publish()
        run.results.export_parquet(run.settings.database_folder / "parquet")
        with run.terminal.stage("report", run.study.name) as line:
            report = render_html(run.results, run.run_id, report_path(run))
            line.finish("written")
        if run.watched:
            show_tables(run)
        return report


def report_path(run: StudyRun) -> Path:
    """Where the report of the run lies."""
    return run.settings.reports_folder / f"{run.run_id}.html"


def show_tables(run: StudyRun) -> None:
    """The result tables as Prefect artifacts, one a table, so that the UI keeps their history."""
    from prefect.artifacts import create_markdown_artifact

    from reports.tables import RESULT_KEYS, report_tables, to_markdown

    with run.results.snapshot() as snapshot:
        tables = report_tables(snapshot, run.run_id)
    for key in RESULT_KEYS:
        if key in tables:
            name = f"{run.study.name}-{key}".replace("_", "-")
            create_markdown_artifact(to_markdown(tables[key]), key=name, description=tables[key].title)
