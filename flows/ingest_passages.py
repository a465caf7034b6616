"""A dump to validated passages: one source of a study."""

from pathlib import Path

from prefect import flow

from flows.artifacts import Artifact, BuildResult
from flows.checks import check_stage
from flows.recording import record_dataset, record_rejects
from flows.study_run import StudyRun, study_run
from flows.tasks import run_name


@flow(name="ingest-passages", flow_run_name=run_name("ingest passages: {study} {source}"))
def ingest_passages(study: str, source: str, overrides: tuple[str, ...] = ()) -> None:
    """Read the source's dump, cut it into passages, and check them; the study stops where a check fails."""
    with study_run(study, overrides) as run:
        passages = extract_passages(run, source)
        record_dataset(run, "passages", passages)
        record_rejects(run, passages)
        check_passages(run, source, passages)


def extract_passages(run: StudyRun, source: str) -> Artifact:
    """Dump -> pages -> plain text -> passages.parquet."""
    config, options = run.study.sources[source], run.study.passages

    def build(folder: Path) -> BuildResult:
        from rag.corpus.ingest import ingest_dump

        dump = run.path(config.path)
        report = ingest_dump(dump, source, options, config.max_passages_per_page, folder, run.progress("pages"))
        counts = {"rows_in": report.pages, "rows_out": report.passages, "rows_rejected": report.rejects}
        return BuildResult(counts, vars(report))

    identity = {
        **options.model_dump(),
        "max_passages_per_page": config.max_passages_per_page,
        "source": source,
        "dump": run.file_identity(config.path),
    }
    return run.stage("passages", source, build, code=["rag.corpus.ingest"], config=identity)


def check_passages(run: StudyRun, source: str, passages: Artifact) -> None:
    """The suite over every passage, and over the sums of the source."""

    def reports() -> list[object]:
        import pandas as pd

        from data_checks.passages import corpus_frame, corpus_suite, passages_suite
        from data_checks.runner import run_suite

        frame = pd.read_parquet(passages.file("passages.parquet"))
        sums = corpus_frame(source, frame, passages.facts)
        return [
            run_suite(frame, passages_suite(run.study.passages.words), "passage_id"),
            run_suite(sums, corpus_suite(), "corpus"),
        ]

    config = {"words": run.study.passages.words}
    check_stage(run, "passage-checks", source, reports, {"passages": passages}, ["data_checks.passages"], config)
