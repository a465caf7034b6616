"""A stage that runs data checks: its result is kept whatever it says, then a failure stops the study."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from flows.artifacts import Artifact, BuildResult
from flows.recording import record_checks
from flows.study_run import StudyRun

REJECTS = "rejects.jsonl"


def check_stage(
    run: StudyRun,
    stage: str,
    name: str,
    reports: Callable[[], Sequence[Any]],
    parents: Mapping[str, Artifact],
    code: Sequence[str],
    config: Mapping[str, Any],
) -> None:
    """Run the suites of ``reports``, keep and record every expectation and every failing row.

    Raises CheckFailed, from the kept result too, where a suite does not hold; a failed check never turns green by
    calling the command again.
    """

    def build(folder: Path) -> BuildResult:
        from data_checks.runner import write_rejects

        found = reports()
        rejected = 0
        for number, report in enumerate(found):
            rejected += write_rejects(report, folder / f"{number}.jsonl")
        parts = [folder / f"{number}.jsonl" for number in range(len(found))]
        (folder / REJECTS).write_bytes(b"".join(part.read_bytes() for part in parts))
        for part in parts:
            part.unlink()
        rows = max(report.n_rows for report in found)
        return BuildResult({"rows_in": rows, "rows_rejected": rejected}, {"reports": [asdict(one) for one in found]})

    versions = ("great-expectations", "pandas")
    checked = run.stage(
        stage, name, build, code=[*code, "data_checks.runner"], config=config, parents=parents, versions=versions
    )
    record_checks(run, checked)
    _require(checked)


def _require(checked: Artifact) -> None:
    if all(report["success"] for report in checked.facts["reports"]):
        return  # the usual case, without the seconds that importing Great Expectations takes
    from data_checks.runner import CheckReport, ExpectationResult, require

    for report in checked.facts["reports"]:
        results = tuple(
            ExpectationResult(**{**row, "failing_rows": tuple(row["failing_rows"])}) for row in report["results"]
        )
        require(CheckReport(report["suite"], report["success"], report["n_rows"], results), checked.file(REJECTS))
