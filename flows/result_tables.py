"""Results as a person reads them on a terminal."""

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.inspect_results import open_store
from flows.safe_text import safe

if TYPE_CHECKING:
    from flows.ask_model import Search
    from flows.run_study import StudyResult

_ONLY_IN_THE_REPORT = {"calibration", "retrieval", "retrievers", "index_recall", "index_sweep", "other"}


def print_results(result: "StudyResult") -> None:
    """The result tables of a run, what was computed, and where the report lies."""
    from reports.tables import RESULT_KEYS, report_tables, to_terminal_rows

    console = Console()
    store = open_store()
    with store.snapshot() as snapshot:
        tables = report_tables(snapshot, result.run_id)
    for key in RESULT_KEYS:
        if key in tables and key not in _ONLY_IN_THE_REPORT:
            header, *rows = to_terminal_rows(tables[key])
            console.print()
            console.print(_table(header, rows, tables[key].title))
    console.print()
    stages = result.computed + result.found
    done = (
        f"{result.computed} of {stages} stages computed"
        if result.computed
        else f"nothing recomputed: all {stages} stages were there"
    )
    console.print(Text(f"Run {result.run_id}: {done}."))
    print(f"Report: {result.report}")  # noqa: T201  a path that can be clicked and copied, whatever the width


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """The answer to a query; tab-separated where it is not a terminal that reads it."""
    console = Console()
    if console.is_terminal:
        table = _table(columns, rows := list(rows))
        if console.measure(table).minimum <= console.width and console.measure(table).maximum <= 2 * console.width:
            console.print(table)
            return
        for row in rows:  # too wide for a table: a line a column
            console.rule(style="dim")
            for column, value in zip(columns, row, strict=True):
                console.print(Text(safe(f"{column}: {_cell(value)}")))
        return
    for row in (columns, *rows):
        print("\t".join(_cell(value).replace("\t", " ").replace("\n", " ") for value in row))  # noqa: T201


def print_search(search: "Search", questions: Iterable[str], n_docs: int) -> None:
    """Passages of each question with their scores, best first, and the revision that each was cut from."""
    console = Console()
    wrapped = not console.is_terminal  # a line that another program reads is left whole
    for number, question in enumerate(questions):
        started = time.perf_counter()
        found = search(question, n_docs)
        seconds = time.perf_counter() - started
        if number:
            console.print()
        console.print(Text(safe(question), style="bold underline"), soft_wrap=wrapped)
        for rank, (score, passage, url) in enumerate(found, start=1):
            head = f"{rank}. {passage.title}  ({score:.2f}, {passage.passage_id})"
            console.print(Text(safe(head), style="bold"), soft_wrap=wrapped)
            console.print(Text(safe(passage.text)), soft_wrap=wrapped)
            if url:
                console.print(Text(url), soft_wrap=True)
        nothing = 'no passage holds a word of the question (common words such as "the" are not counted)'
        count = f"{len(found)} passage{'s' * (len(found) != 1)}" if found else nothing
        console.print(Text(f"{count}; {search.corpus} by {search.retriever}, {seconds * 1000:.0f} ms", style="dim"))


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(Text(str(column)))
    for row in rows:
        table.add_row(*(Text(safe(_cell(value))) for value in row))
    return table


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
