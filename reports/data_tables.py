"""The tables of the data behind a run: its sources, what was checked, what was turned away, what was left out."""

import json
from collections.abc import Mapping
from typing import Any

from reports.cells import DASH, Cell, ReportTable, headings, number
from reports.store import Snapshot

_SHOWN_TEXT = 200  # characters of a rejected row


def source_table(snapshot: Snapshot, run_id: str) -> ReportTable:
    """What became of every page of each source, and the files with the sums that an auditor compares."""
    rows = snapshot.query("SELECT * FROM v_sources WHERE run_id = ? ORDER BY source, fingerprint", [run_id]).records()
    columns = headings(
        "source",
        "pages >",
        "articles >",
        "passages >",
        "above the cap >",
        "repeated >",
        "rejected >",
        "files, with sha1",
    )
    body = tuple(
        (
            Cell(row["source"], detail=row["wiki"] or ""),
            Cell(number(row["pages"]), row["pages"]),
            Cell(number(row["articles"]), row["articles"]),
            Cell(number(row["passages"]), row["passages"]),
            Cell(number(row["left_out_by_cap"]), row["left_out_by_cap"]),
            Cell(number(_repeated(row)), _repeated(row), detail=f"{number(row['dropped_duplicates'])} dropped"),
            Cell(number(row["rejects"]), row["rejects"]),
            Cell("; ".join(_source_files(row["files_json"])) or DASH),
        )
        for row in rows
    )
    caption = (
        "Pages are of every kind; articles are those that are no redirect and that the study does not leave out. Above "
        "the cap: passages that a page has beyond the study's limit. Repeated: an earlier passage says the same."
    )
    return ReportTable("sources", "Sources", caption, columns, body)


def _repeated(row: Mapping[str, Any]) -> int | None:
    """Passages whose text, or nearly their text, an earlier passage has too."""
    counts = [row[kind] for kind in ("exact_duplicates", "near_duplicates", "boilerplate")]
    return None if None in counts else sum(counts)


def _source_files(files_json: str | None) -> list[str]:
    files = json.loads(files_json) if files_json else []
    return [f"{file.get('url') or file['name']} sha1 {file['sha1']}" for file in files]


def dropped_template_table(snapshot: Snapshot, run_id: str) -> ReportTable:
    """The templates whose text the passages lack, the most frequent of each source."""
    rows = snapshot.query(_DROPPED, [run_id, _SHOWN_TEMPLATES]).records()
    columns = headings("source", "template", "times >")
    body = tuple(
        (Cell(row["name"]), Cell(row["template"]), Cell(number(row["dropped"]), row["dropped"])) for row in rows
    )
    caption = f"Templates that no handler renders, at most {_SHOWN_TEMPLATES} a source; more are in dropped_templates."
    return ReportTable("dropped_templates", "Templates left out of the text", caption, columns, body)


_SHOWN_TEMPLATES = 10
_DROPPED = """
SELECT name, template, dropped FROM dropped_templates WHERE run_id = ?
QUALIFY row_number() OVER (PARTITION BY name ORDER BY dropped DESC, template) <= ?
ORDER BY name, dropped DESC, template
"""


_CHECKED = (
    "Great Expectations suites, one a table of data. The pages data_docs/index.html in the folder of each of these "
    "artifacts (see Lineage) show every expectation."
)


def check_table(snapshot: Snapshot, run_id: str) -> ReportTable:
    """Data checks, one row a suite."""
    rows = snapshot.query("SELECT * FROM v_checks WHERE run_id = ? ORDER BY stage, name, suite", [run_id]).records()
    columns = headings("stage", "of", "suite", "rows >", "expectations >", "failed >", "warnings >", "result")
    body = tuple(
        (
            Cell(row["stage"]),
            Cell(row["name"] or DASH),
            Cell(row["suite"]),
            Cell(number(row["n_rows"]), row["n_rows"]),
            Cell(number(row["n_checks"]), row["n_checks"]),
            Cell(number(row["n_failed"]), row["n_failed"]),
            Cell(number(row["n_warnings"]), row["n_warnings"]),
            Cell(_verdict(row), alarm=not row["success"]),
        )
        for row in rows
    )
    return ReportTable("checks", "Data checks", _CHECKED, columns, body)


def _verdict(row: Mapping[str, Any]) -> str:
    if not row["success"]:
        return "failed"
    return "passed with warnings" if row["n_warnings"] else "passed"


def failed_check_table(snapshot: Snapshot, run_id: str) -> ReportTable:
    """The expectations that did not hold."""
    rows = snapshot.query(
        "SELECT * FROM checks WHERE run_id = ? AND NOT success ORDER BY stage, name, suite, expectation, column_name",
        [run_id],
    ).records()
    columns = headings("stage", "suite", "severity", "expectation", "unexpected rows >", "observed", "message")
    body = tuple(
        (
            Cell(row["stage"], detail=row["name"]),
            Cell(row["suite"], detail=row["batch"]),
            Cell(row["severity"]),
            Cell(row["expectation"], detail=row["column_name"], alarm=row["severity"] == "critical"),
            Cell(f"{number(row['n_unexpected'])} of {number(row['n_rows'])}", row["n_unexpected"]),
            Cell(row["observed"] or DASH),
            Cell(row["message"] or DASH),
        )
        for row in rows
    )
    return ReportTable("failed_checks", "Failed expectations", "With what was seen instead.", columns, body)


def caveats(snapshot: Snapshot, run_id: str) -> list[str]:
    """What the study was told to do against a warning, so that every number is read with it; each once."""
    rows = snapshot.query("SELECT * FROM v_caveats WHERE run_id = ? ORDER BY message, name", [run_id]).records()
    names: dict[str, list[str]] = {}
    for row in rows:
        names.setdefault(row["message"] or row["expectation"], []).append(row["name"] or "the run")
    return [f"Read every number with this ({', '.join(found)}): {message}" for message, found in names.items()]


def reject_table(snapshot: Snapshot, run_id: str) -> ReportTable:
    """Rejected rows by reason."""
    rows = snapshot.query(
        "SELECT * FROM v_rejects WHERE run_id = ? ORDER BY stage, name, source, n_rejected DESC, reason", [run_id]
    ).records()
    columns = headings("stage", "source", "reason", "rows >", "the first")
    body = tuple(
        (
            Cell(row["stage"], detail=row["name"]),
            Cell(row["source"]),
            Cell(row["reason"]),
            Cell(number(row["n_rejected"]), row["n_rejected"]),
            Cell((row["first_text"] or DASH)[:_SHOWN_TEXT], detail=f"row {row['first_row']}"),
        )
        for row in rows
    )
    return ReportTable("rejects", "Rejected rows", "Input that could not be used, by reason.", columns, body)
