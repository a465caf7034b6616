"""A stage that runs data checks: its result is kept whatever it says, then a critical failure stops the study."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.artifacts import Artifact, BuildResult
from flows.recording import record_checks
from flows.study_run import StudyRun

if TYPE_CHECKING:
    from data_checks.results import CheckReport

REJECTS = "rejects.jsonl"
DATA_DOCS = "data_docs"


def check_stage(
    run: StudyRun,
    stage: str,
    name: str,
    reports: "Callable[[], Iterable[CheckReport]]",
    parents: Mapping[str, Artifact],
    code: Sequence[str],
    config: Mapping[str, Any],
) -> None:
    """Run the suites of ``reports``, keep and record every expectation and every failing row, and write Data Docs.

    Raises CheckFailed, from the kept result too, where a critical expectation does not hold; a failed check never
    turns green by calling the command again. Warnings are shown each time.
    """

    def build(folder: Path) -> BuildResult:
        from data_checks.data_docs import write_data_docs
        from data_checks.results import keep_rejects

        kept = keep_rejects(reports(), folder / REJECTS)
        write_data_docs(folder / DATA_DOCS, kept.reports)
        rows = _rows(kept.reports)
        facts = {"reports": [report.facts() for report in kept.reports]}
        return BuildResult({"rows_in": rows, "rows_rejected": kept.rejects}, facts)

    versions = ("great-expectations", "pandas")
    code = [*code, "data_checks.runner", "data_checks.results", "data_checks.data_docs"]
    checked = run.stage(stage, name, build, code=code, config=config, parents=parents, versions=versions)
    record_checks(run, checked)
    _show_and_require(run, checked)


def _rows(reports: "Sequence[CheckReport]") -> int:
    """The rows of the largest table, which may come in shards."""
    sizes: dict[str, int] = {}
    for report in reports:
        sizes[report.suite] = sizes.get(report.suite, 0) + report.n_rows
    return max(sizes.values())


def _show_and_require(run: StudyRun, checked: Artifact) -> None:
    from data_checks.results import report_from_facts, require

    reports = [report_from_facts(facts) for facts in checked.facts["reports"]]
    for report in reports:
        for problem in report.problems("warning"):
            batch = f" {report.batch}" if report.batch else ""
            run.terminal.note(f"warning: {checked.name}: {report.suite}{batch}: {problem}")
    if not all(report.success for report in reports):
        run.rows.write()  # all that was gathered so far is whole, and a failed check is what people look for
    rejects = checked.file(REJECTS) if checked.counts["rows_rejected"] else None
    for report in reports:
        require(report, rejects)
