"""What a suite found: each expectation with its severity, and every row that failed. Needs no Great Expectations."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from data_checks.errors import CheckFailed

CRITICAL, WARNING, INFO = "critical", "warning", "info"  # Great Expectations' own severities
_SHOWN_ROWS = 5


@dataclass(frozen=True)
class ExpectationResult:
    """One expectation over one table."""

    expectation: str  # Great Expectations' name of it
    column: str | None
    severity: str  # what a failure means: "critical" stops a study, "warning" and "info" do not
    success: bool
    n_unexpected: int
    observed: str  # what was found, for an expectation about the whole table; "" otherwise
    expected: str  # a sentence that holds for every good table
    message: str  # what was expected and, where it failed, why
    # The ids of all rows that failed, in table order, and what stood there. An expectation that holds by its share
    # ``mostly`` has failing rows too.
    failing_rows: tuple[str, ...]
    failing_values: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckReport:
    """A suite over one table."""

    suite: str
    success: bool  # False only where a critical expectation fails
    n_rows: int
    results: tuple[ExpectationResult, ...]
    batch: str = ""  # the shard, "" for a table that is one
    warnings: int = 0  # failed expectations of the severity "warning"
    validation: Mapping[str, Any] = field(default_factory=dict)  # Great Expectations' own result, for Data Docs

    def problems(self, severity: str = CRITICAL) -> list[str]:
        """What failed with this severity: a sentence each, with the first of the rows."""
        return [_problem(result) for result in self.results if not result.success and result.severity == severity]

    def facts(self) -> dict[str, Any]:
        """The report for a manifest: without the rows beyond the first few, and without what only Data Docs need."""
        return asdict(replace(_brief(self), validation={}))

    def to_json(self) -> str:
        """The whole report as one JSON object."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=2) + "\n"


class KeptReports(NamedTuple):
    """Reports whose failing rows went to a file, but for the first few of each."""

    reports: list[CheckReport]
    rejects: int  # lines of the file


def report_from_facts(facts: Mapping[str, Any]) -> CheckReport:
    """The report that ``CheckReport.facts`` was made from, as far as it was kept.

    >>> report = CheckReport("words", True, 7, ())
    >>> report_from_facts(report.facts()) == report
    True
    """
    results = tuple(_result_from_facts(row) for row in facts["results"])
    return CheckReport(**{**facts, "results": results})


def _result_from_facts(row: Mapping[str, Any]) -> ExpectationResult:
    lists = {name: tuple(row[name]) for name in ("failing_rows", "failing_values")}
    return ExpectationResult(**{**row, **lists})


def require(report: CheckReport, rejects: Path | None = None) -> None:
    """Raise CheckFailed where a critical expectation failed.

    The message says what failed, how often, which rows, and where to look: ``rejects`` is the file of failing rows.
    """
    problems = report.problems(CRITICAL)
    if report.success and not problems:
        return
    of = f" of {report.batch}" if report.batch else ""
    where = f"; all failing rows are in {rejects}" if rejects else ""
    raise CheckFailed(f"the checks {report.suite!r}{of} failed over {report.n_rows} rows: {'; '.join(problems)}{where}")


def keep_rejects(reports: Iterable[CheckReport], path: Path) -> KeptReports:
    """Write every failing row of every report as it comes, whatever its severity, as JSON lines.

    A line has row_id, reason (the expectation, in words), value (what stood there), suite, batch and severity; the
    severity is "info" where the share of such rows is small enough for the expectation to hold. A row that fails two
    expectations has two lines. The reports come back without their rows but the first few, so that a corpus of many
    shards needs the memory of one.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    kept, lines = [], 0
    with temporary.open("w", encoding="utf-8", newline="\n") as file:
        for report in reports:
            lines += _write_rows(report, file)
            kept.append(_brief(report))
    temporary.replace(path)
    return KeptReports(kept, lines)


def write_rejects(report: CheckReport, path: Path) -> int:
    """Like ``keep_rejects`` for one report; returns how many lines were written."""
    return keep_rejects([report], path).rejects


def _write_rows(report: CheckReport, file: TextIO) -> int:
    lines = 0
    for result in report.results:
        severity = INFO if result.success else result.severity
        where = {"suite": report.suite, "batch": report.batch, "severity": severity}
        for row, value in _rows(result):
            line = {"row_id": row, "reason": result.expected, "value": value, **where}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            lines += 1
    return lines


def _rows(result: ExpectationResult) -> Iterator[tuple[str, str]]:
    values: Sequence[str] = result.failing_values or ("",) * len(result.failing_rows)
    return zip(result.failing_rows, values, strict=True)


def _brief(report: CheckReport) -> CheckReport:
    results = tuple(
        replace(
            result,
            failing_rows=result.failing_rows[:_SHOWN_ROWS],
            failing_values=result.failing_values[:_SHOWN_ROWS],
        )
        for result in report.results
    )
    return replace(report, results=results)


def _problem(result: ExpectationResult) -> str:
    shown = result.failing_rows[:_SHOWN_ROWS]
    more = result.n_unexpected - len(shown)
    rows = f" (rows {', '.join(shown)}{f' and {more} more' if more > 0 else ''})" if shown else ""
    return result.message + rows
