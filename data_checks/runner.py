"""Run a Great Expectations suite over a DataFrame and keep every row that failed.

Great Expectations lets a suite pass on an empty table (each of zero rows is fine) and reports an expectation whose
metric raised with the reason tucked away. Both are failures here, with their reason.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import great_expectations as gx
import pandas as pd
from great_expectations.core.expectation_suite import ExpectationSuite
from great_expectations.data_context.types.base import DataContextConfig, InMemoryStoreBackendDefaults

from data_checks.errors import SuiteError
from data_checks.results import CRITICAL, WARNING, CheckReport, ExpectationResult

_ROW_COUNTS = frozenset({"expect_table_row_count_to_be_between", "expect_table_row_count_to_equal"})
_QUIET = {"globally": False, "metric_calculations": False}
_HIDDEN_ARGUMENTS = frozenset({"batch_id", "column"})
_SHOWN_VALUE = 80  # characters
# Great Expectations spells out a query for the failing rows, which for a million of them is a long text.
_ALL_ROWS = {"result_format": "COMPLETE", "return_unexpected_index_query": False}
_ROW_LISTS = ("unexpected_list", "unexpected_index_list", "partial_unexpected_index_list", "partial_unexpected_counts")


def run_suite(frame: pd.DataFrame, suite: ExpectationSuite, row_id_column: str, batch: str = "") -> CheckReport:
    """Every expectation of ``suite`` over ``frame``; rows are named by ``row_id_column``, the table by ``batch``.

    An expectation that could not be computed counts as failed, with the reason in its message, and as critical: what
    could not be looked at is not known to be good. Nothing is written and nothing is sent. Raises SuiteError if the
    suite lacks a row count with a minimum, without which empty data would pass, or if ``row_id_column`` is not there.
    """
    _require_row_count(suite)
    if row_id_column not in frame.columns:
        columns = ", ".join(map(str, frame.columns))
        raise SuiteError(f"the row id column {row_id_column!r} is not among the columns of the data: {columns}")
    # Ids are taken by position, so that rows whose id is empty or doubled are named too.
    indexed = frame.reset_index(drop=True)
    validation = _batch(indexed).validate(suite, result_format=_ALL_ROWS)
    results = tuple(_result(result, indexed, row_id_column) for result in _in_suite_order(validation.results, suite))
    failed = [result.severity for result in results if not result.success]
    success, warnings = CRITICAL not in failed, failed.count(WARNING)
    return CheckReport(suite.name, success, len(frame), results, batch, warnings, _without_rows(validation))


def quiet_context() -> Any:
    """A data context in memory, without the temporary Data Docs folder that Great Expectations makes for each."""
    defaults = InMemoryStoreBackendDefaults(init_temp_docs_sites=False)
    context = gx.get_context(mode="ephemeral", project_config=DataContextConfig(store_backend_defaults=defaults))
    context.variables.progress_bars = _QUIET
    return context


def _require_row_count(suite: ExpectationSuite) -> None:
    for expectation in suite.expectations:
        arguments = expectation.configuration.kwargs
        if expectation.expectation_type in _ROW_COUNTS and (arguments.get("min_value") or arguments.get("value")):
            return
    raise SuiteError(f"the suite {suite.name!r} has no minimum row count; without one it would pass on empty data")


def _batch(frame: pd.DataFrame) -> Any:
    asset = quiet_context().data_sources.add_pandas("frame").add_dataframe_asset("frame")
    return asset.add_batch_definition_whole_dataframe("whole").get_batch({"dataframe": frame})


def _in_suite_order(results: Iterable[Any], suite: ExpectationSuite) -> Iterator[Any]:
    """Great Expectations puts the expectations that raised first; a report reads better in the suite's order."""
    order = {_key(expectation.configuration): place for place, expectation in enumerate(suite.expectations)}
    return iter(sorted(results, key=lambda result: order.get(_key(result.expectation_config), len(order))))


def _key(configuration: Any) -> str:
    arguments = {name: value for name, value in configuration.kwargs.items() if name != "batch_id"}
    return f"{configuration.type} {json.dumps(arguments, sort_keys=True, default=str)}"


def _result(result: Any, frame: pd.DataFrame, row_id_column: str) -> ExpectationResult:
    configuration, found = result.expectation_config, result.result or {}
    reason = _exception(result.exception_info)
    success = bool(result.success) and not reason
    expected = _expected(configuration)
    message = expected if success else expected + (f": {reason}" if reason else _unexpected(found))
    column = configuration.kwargs.get("column")
    places = sorted(found.get("unexpected_index_list") or [])
    failing = frame.iloc[places]
    return ExpectationResult(
        expectation=configuration.type,
        column=column,
        severity=CRITICAL if reason else configuration.severity.value,
        success=success,
        n_unexpected=int(found.get("unexpected_count") or len(places)),
        observed="" if "observed_value" not in found else str(found["observed_value"]),
        expected=expected,
        message=message,
        failing_rows=tuple(map(str, failing[row_id_column])),
        # From the frame: Great Expectations' list of values ends after 200.
        failing_values=tuple(str(value)[:_SHOWN_VALUE] for value in failing[column]) if column in frame else (),
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
    values = found.get("partial_unexpected_list") or []
    examples = ", ".join(dict.fromkeys(repr(value)[:_SHOWN_VALUE] for value in values[:3]))
    return f": {count} of {total} rows fail" + (f", such as {examples}" if examples else "")


def _exception(info: Any) -> str:
    """The reason why a metric could not be computed; Great Expectations nests it by metric where there are several."""
    if not isinstance(info, Mapping):
        return ""
    if info.get("raised_exception"):
        return str(info.get("exception_message") or "an exception without a message")
    nested = (value for value in info.values() if isinstance(value, Mapping))
    return next(filter(None, map(_exception, nested)), "")


def _without_rows(validation: Any) -> dict[str, Any]:
    """The result as JSON: with examples, but without the lists of all failing rows, tracebacks and times."""
    for result in validation.results:
        for name in _ROW_LISTS:
            result.result.pop(name, None)
        reason = _exception(result.exception_info)
        result.exception_info = {"raised_exception": bool(reason), "exception_message": reason or None,
                                 "exception_traceback": ""}  # fmt: skip
    validation.meta = {"great_expectations_version": gx.__version__}
    content: dict[str, Any] = validation.to_json_dict()
    return content
