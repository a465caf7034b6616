"""Run a Great Expectations suite over a DataFrame and keep every row that failed.

Great Expectations lets a suite pass on an empty table (each of zero rows is fine) and reports an expectation whose
metric raised with the reason tucked away. Both are failures here, with their reason.
"""

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import great_expectations as gx
import pandas as pd
from great_expectations.core.expectation_suite import ExpectationSuite

from data_checks.errors import CheckFailed, SuiteError

_ROW_COUNTS = frozenset({"expect_table_row_count_to_be_between", "expect_table_row_count_to_equal"})
_QUIET = {"globally": False, "metric_calculations": False}
_SHOWN_ROWS = 5
_HIDDEN_ARGUMENTS = frozenset({"batch_id", "column"})


@dataclass(frozen=True)
class ExpectationResult:
    """One expectation over one table."""

    expectation: str  # Great Expectations' name of it
    column: str | None
    success: bool
    n_unexpected: int
    observed: str  # what was found, for an expectation about the whole table; "" otherwise
    message: str  # what was expected and, where it failed, why
    failing_rows: tuple[str, ...]  # the ids of all rows that failed, in table order


@dataclass(frozen=True)
class CheckReport:
    """A suite over one table: it holds only if every expectation does."""

    suite: str
    success: bool
    n_rows: int
    results: tuple[ExpectationResult, ...]

    def to_json(self) -> str:
        """The report as one JSON object."""
        return json.dumps(asdict(self), ensure_ascii=False, indent=2) + "\n"


def run_suite(frame: pd.DataFrame, suite: ExpectationSuite, row_id_column: str) -> CheckReport:
    """Every expectation of ``suite`` over ``frame``; rows are named by ``row_id_column``.

    An expectation that could not be computed counts as failed, with the reason in its message. Nothing is written
    and nothing is sent. Raises SuiteError if the suite lacks a row count with a minimum, without which empty data
    would pass, or if ``row_id_column`` is not there.
    """
    _require_row_count(suite)
    if row_id_column not in frame.columns:
        columns = ", ".join(map(str, frame.columns))
        raise SuiteError(f"the row id column {row_id_column!r} is not among the columns of the data: {columns}")
    # Ids are taken by position, so that rows whose id is empty or doubled are named too.
    indexed = frame.reset_index(drop=True)
    validation = _batch(indexed).validate(suite, result_format={"result_format": "COMPLETE"})
    ids = indexed[row_id_column].tolist()
    results = tuple(_result(result, ids) for result in _in_suite_order(validation.results, suite))
    return CheckReport(suite.name, all(result.success for result in results), len(frame), results)


def require(report: CheckReport, rejects: Path | None = None) -> None:
    """Raise CheckFailed unless the suite held; the message says what failed, how often, which rows, and where to look.

    ``rejects`` is the file that ``write_rejects`` wrote, if one was.
    """
    failed = [result for result in report.results if not result.success]
    if report.success and not failed:
        return
    problems = "; ".join(_problem(result) for result in failed)
    where = f"; all failing rows are in {rejects}" if rejects else ""
    raise CheckFailed(f"the checks {report.suite!r} failed over {report.n_rows} rows: {problems}{where}")


def write_rejects(report: CheckReport, path: Path) -> int:
    """Write every failing row with its reason as JSON lines, and return how many there are."""
    lines = [
        json.dumps({"row_id": row, "reason": result.message, "suite": report.suite}, ensure_ascii=False)
        for result in report.results
        for row in result.failing_rows
    ]
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    temporary.replace(path)
    return len(lines)


def _require_row_count(suite: ExpectationSuite) -> None:
    for expectation in suite.expectations:
        arguments = expectation.configuration.kwargs
        if expectation.expectation_type in _ROW_COUNTS and (arguments.get("min_value") or arguments.get("value")):
            return
    raise SuiteError(f"the suite {suite.name!r} has no minimum row count; without one it would pass on empty data")


def _batch(frame: pd.DataFrame) -> Any:
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = _QUIET
    asset = context.data_sources.add_pandas("frame").add_dataframe_asset("frame")
    return asset.add_batch_definition_whole_dataframe("whole").get_batch({"dataframe": frame})


def _in_suite_order(results: Iterable[Any], suite: ExpectationSuite) -> Iterator[Any]:
    """Great Expectations puts the expectations that raised first; a report reads better in the suite's order."""
    order = {_key(expectation.configuration): place for place, expectation in enumerate(suite.expectations)}
    return iter(sorted(results, key=lambda result: order.get(_key(result.expectation_config), len(order))))


def _key(configuration: Any) -> str:
    arguments = {name: value for name, value in configuration.kwargs.items() if name != "batch_id"}
    return f"{configuration.type} {json.dumps(arguments, sort_keys=True, default=str)}"


def _result(result: Any, ids: list[Hashable]) -> ExpectationResult:
    configuration, found = result.expectation_config, result.result or {}
    reason = _exception(result.exception_info)
    rows = tuple(str(ids[place]) for place in sorted(found.get("unexpected_index_list") or []))
    success = bool(result.success) and not reason
    message = _expected(configuration)
    if not success:
        message += f": {reason}" if reason else _unexpected(found)
    return ExpectationResult(
        expectation=configuration.type,
        column=configuration.kwargs.get("column"),
        success=success,
        n_unexpected=int(found.get("unexpected_count") or len(rows)),
        observed="" if "observed_value" not in found else str(found["observed_value"]),
        message=message,
        failing_rows=rows,
    )


def _expected(configuration: Any) -> str:
    """A sentence for a person: the suite's own words for the expectation where it has some."""
    notes = configuration.notes
    if isinstance(notes, str) and notes:
        return notes
    arguments = ", ".join(
        f"{name} {value}"
        for name, value in configuration.kwargs.items()
        if name not in _HIDDEN_ARGUMENTS and value is not None
    )
    name = configuration.type.removeprefix("expect_").replace("_", " ")
    column = configuration.kwargs.get("column")
    return " ".join(filter(None, [f"{column}:" if column else "", name, f"({arguments})" if arguments else ""]))


def _unexpected(found: Mapping[str, Any]) -> str:
    if "observed_value" in found:
        return f": found {found['observed_value']}"
    count, total = found.get("unexpected_count", 0), found.get("element_count", 0)
    examples = ", ".join(dict.fromkeys(repr(value)[:80] for value in (found.get("partial_unexpected_list") or [])[:3]))
    return f": {count} of {total} rows fail" + (f", such as {examples}" if examples else "")


def _exception(info: Any) -> str:
    """The reason why a metric could not be computed; Great Expectations nests it by metric where there are several."""
    if not isinstance(info, Mapping):
        return ""
    if info.get("raised_exception"):
        return str(info.get("exception_message") or "an exception without a message")
    nested = (value for value in info.values() if isinstance(value, Mapping))
    return next(filter(None, map(_exception, nested)), "")


def _problem(result: ExpectationResult) -> str:
    shown = ", ".join(result.failing_rows[:_SHOWN_ROWS])
    more = len(result.failing_rows) - _SHOWN_ROWS
    rows = f" (rows {shown}{f' and {more} more' if more > 0 else ''})" if shown else ""
    return result.message + rows
