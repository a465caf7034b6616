"""Great Expectations' Data Docs for the reports of a run: an index, and a page for every suite and every table checked.

The pages are Great Expectations' own, made to be read without a network: what they would load from elsewhere (styles,
scripts, logos) is taken out, and a content policy forbids the rest. Its index is a script that needs such a download,
so the index here is ours. The same reports give the same bytes: times and random ids are taken out too.
"""

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from great_expectations.core.expectation_suite import ExpectationSuite
from great_expectations.core.expectation_validation_result import ExpectationSuiteValidationResultSchema
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.data_context.types.resource_identifiers import (
    ExpectationSuiteIdentifier,
    ValidationResultIdentifier,
)

from data_checks.errors import SuiteError
from data_checks.results import CRITICAL, INFO, WARNING, CheckReport
from data_checks.runner import quiet_context

INDEX = "index.html"
_SITE = "docs"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # in the place of the time, which would make every page another
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
body { font-family: system-ui, sans-serif; margin: 2em auto; max-width: 75em; line-height: 1.4; padding: 0 1em }
table { border-collapse: collapse; margin: 0.5em 0 } td, th { border: 1px solid #bbb; padding: 0.3em 0.6em;
text-align: left; vertical-align: top } ul { margin: 0.2em 0; padding-left: 1.2em } nav, .sticky, footer, button,
form, .ge-breadcrumbs, .modal, [data-toggle="collapse"], [data-toggle="buttons"] { display: none }
.badge { border: 1px solid #888; padding: 0 0.3em }
.text-danger::before { content: "\\2717 "; color: #b00 } .text-success::before { content: "\\2713 "; color: #060 }
.failed { color: #b00 } .warned { color: #850 } .held { color: #060 }
"""
_REMOTE = re.compile(
    r"<script\b.*?</script>|<link\b[^>]*>|<style\b.*?</style>|<img\b[^>]*>|<footer\b.*?</footer>",
    re.DOTALL | re.IGNORECASE,
)
_RANDOM_ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_FILE_NAME = re.compile(r"[^A-Za-z0-9_-]+")


class _Page(NamedTuple):
    report: CheckReport
    suite: str  # as a name of a file
    batch: str

    @property
    def path(self) -> str:
        return f"validations/{self.suite}/{self.batch}.html"


def write_data_docs(folder: Path, reports: Sequence[CheckReport]) -> Path:
    """Write the Data Docs of the reports into ``folder``, and return the path of the index.

    The reports may have lost their failing rows (``keep_rejects``): a page shows examples and counts. Nothing is sent
    and nothing outside ``folder`` stays. Raises SuiteError if there are no reports, if one was not made by
    ``run_suite``, or if Great Expectations left out a page.
    """
    if not reports:
        raise SuiteError("there are no reports to write Data Docs of")
    pages = _pages(reports)
    with tempfile.TemporaryDirectory(prefix="data-docs-") as scratch:
        built = _build(Path(scratch), pages)
        for target, source in built.items():
            if not source.is_file():
                raise SuiteError(f"Great Expectations made no page {target}; its Data Docs would be incomplete")
            _write(folder / target, _offline(source.read_text(encoding="utf-8"), target))
    _write(folder / INDEX, _index(pages))
    return folder / INDEX


def _pages(reports: Iterable[CheckReport]) -> list[_Page]:
    """Each report with the name of its page; two that would have the same are told apart by a number."""
    taken: dict[tuple[str, str], int] = {}
    pages = []
    for report in reports:
        if not report.validation:
            raise SuiteError(f"the report on {report.suite!r} has no validation result; make it with run_suite")
        suite, batch = _file_name(report.suite), _file_name(report.batch or "table")
        number = taken[suite, batch] = taken.get((suite, batch), 0) + 1
        pages.append(_Page(report, suite, batch if number == 1 else f"{batch}-{number}"))
    return pages


def _file_name(text: str) -> str:
    return _FILE_NAME.sub("-", text).strip("-") or "unnamed"


def _build(scratch: Path, pages: Sequence[_Page]) -> dict[str, Path]:
    """Great Expectations' own pages; by their place in the folder, where they lie now."""
    context = quiet_context()
    store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(scratch)}
    context.add_data_docs_site(
        _SITE, {"class_name": "SiteBuilder", "show_how_to_buttons": False, "store_backend": store}
    )
    built = {}
    for page in pages:
        suite = ExpectationSuiteIdentifier(name=page.suite)
        if f"expectations/{page.suite}.html" not in built:
            context.suites.add(_suite(page))
            built[f"expectations/{page.suite}.html"] = scratch / "expectations" / f"{page.suite}.html"
        run = RunIdentifier(run_name="checks", run_time=_EPOCH)
        key = ValidationResultIdentifier(expectation_suite_identifier=suite, run_id=run, batch_identifier=page.batch)
        context.validation_results_store.set(key, _validation(page))
        built[page.path] = scratch.joinpath("validations", *key.to_tuple()).with_suffix(".html")
    context.build_data_docs()
    return built


def _validation(page: _Page) -> Any:
    content = ExpectationSuiteValidationResultSchema().load(dict(page.report.validation))
    content.suite_name = page.suite
    for result in content.results:  # Great Expectations puts values into its pages as they are
        result.result, result.exception_info = _escaped(result.result), _escaped(result.exception_info)
    return content


def _escaped(value: Any) -> Any:
    """The same with every text in it made safe to stand in HTML."""
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, Mapping):
        return {name: _escaped(inner) for name, inner in value.items()}
    return [_escaped(inner) for inner in value] if isinstance(value, list) else value


def _suite(page: _Page) -> ExpectationSuite:
    configurations = [_configuration(result["expectation_config"]) for result in page.report.validation["results"]]
    return ExpectationSuite(name=page.suite, expectations=configurations)


def _configuration(configuration: Mapping[str, Any]) -> dict[str, Any]:
    arguments = {name: value for name, value in configuration["kwargs"].items() if name != "batch_id"}
    return {**configuration, "kwargs": arguments}


def _offline(html: str, path: str) -> str:
    """A page without what it would load, and without what differs from run to run."""
    numbers: dict[str, str] = {}
    counter = count(1)
    top = "../" * path.count("/")
    page = _REMOTE.sub("", html)
    page = _RANDOM_ID.sub(lambda found: numbers.setdefault(found[0], f"id-{next(counter)}"), page)
    page = re.sub(r'href="(?:\.\./)*(expectations/|index\.html)', rf'href="{top}\1', page)
    name = escape(path.removesuffix(".html"))
    page = re.sub(r"<title>.*?</title>", "", page, flags=re.DOTALL)
    page = page.replace("<head>", f"<head>{_head(name)}", 1)
    return page.replace("<body>", f"<body><p><a href='{top}{INDEX}'>All checks</a></p><h1>{name}</h1>", 1)


def _head(title: str) -> str:
    return (
        f'<meta charset="UTF-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{title}</title><style>{_STYLE}</style>"
    )


def _index(pages: Sequence[_Page]) -> str:
    rows = "".join(_index_row(page) for page in pages)
    suites = dict.fromkeys((page.suite, page.report.suite) for page in pages)
    listed = "".join(f"<li><a href='expectations/{name}.html'>{escape(shown)}</a></li>" for name, shown in suites)
    heads = "".join(f"<th>{head}</th>" for head in ("Suite", "Table", "Rows", "Outcome", "What failed"))
    return (
        f"<!DOCTYPE html><html lang='en'><head>{_head('Data checks')}</head><body><h1>Data checks</h1>"
        f"<table><tr>{heads}</tr>{rows}</table><h2>Suites</h2><ul>{listed}</ul>"
        "<p>Pages made by Great Expectations.</p></body></html>\n"
    )


def _index_row(page: _Page) -> str:
    report = page.report
    link = f"<a href='{escape(page.path)}'>{escape(report.batch or report.suite)}</a>"
    failed = "".join(
        f"<li>{severity}: {escape(problem)}</li>"
        for severity in (CRITICAL, WARNING, INFO)
        for problem in report.problems(severity)
    )
    cells = (escape(report.suite), link, f"{report.n_rows:,}", _outcome(report), f"<ul>{failed}</ul>" if failed else "")
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _outcome(report: CheckReport) -> str:
    if not report.success:
        return "<b class='failed'>failed</b>"
    if report.warnings:
        return f"<span class='warned'>{report.warnings} warnings</span>"
    return "<span class='held'>held</span>"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
