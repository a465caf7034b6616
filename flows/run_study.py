"""The nightly: every stage of a study, from its dumps to its report. Read this to see how the flows hang together."""

from pathlib import Path
from typing import NamedTuple

from prefect import flow

from flows.build_index import build_index
from flows.compare_models import compare_models
from flows.corpora import require_models
from flows.evaluate_model import evaluate_model
from flows.evaluate_retrieval import evaluate_retrieval
from flows.ingest_passages import ingest_passages
from flows.open_models import require_checkpoints
from flows.publish_report import publish_report, report_path
from flows.read_tasks import read_tasks
from flows.study_run import mark, study_run
from flows.swap_index import swap_index
from flows.sweep_n_docs import sweep_n_docs
from flows.tasks import run_name
from flows.train_model import train_model
from reports.runs import run_status


class StudyResult(NamedTuple):
    """What a person wants to know at the end."""

    run_id: str
    report: Path
    computed: int  # stages
    found: int


@flow(name="run-study", flow_run_name=run_name("run study: {study}"))
def run_study(study: str, overrides: tuple[str, ...] = ()) -> StudyResult:
    """Run all of a study; what is there already is not computed again."""
    with study_run(study, overrides) as run:
        was_complete = run_status(run.results, run.run_id) == "complete"
        if not was_complete:
            mark(run, "running")
        require_models(run)
        require_checkpoints(run)
        for source in run.study.sources:
            ingest_passages(study, source, overrides)
        read_tasks(study, overrides)
        for corpus in run.study.corpora:
            build_index(study, corpus, overrides)
            evaluate_retrieval(study, corpus, overrides)
        for model in run.study.models:
            train_model(study, model, overrides)
            evaluate_model(study, model, overrides)
            sweep_n_docs(study, model, overrides)
        compare_models(study, overrides)
        swap_index(study, overrides)
        report = report_path(run)
        if run.computed or not was_complete or not report.is_file():
            mark(run, "complete")
            publish_report(study, overrides)
        return StudyResult(run.run_id, report, run.computed, run.found)
