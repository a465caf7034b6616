"""Results as a person reads them on a terminal."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.display import duration
from flows.inspect_results import open_store

if TYPE_CHECKING:
    from flows.ask_model import FoundPassage
    from flows.plan_study import StudyPlan
    from flows.run_study import StudyResult
    from rag.records import Prediction

_ONLY_IN_THE_REPORT = {"retrieval", "index_recall", "other"}


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


def print_plan(plan: "StudyPlan") -> None:
    """Rows, memory, disk and time of every stage, and what was measured to say so."""
    console = Console()
    rows = [
        (
            source.source,
            stage.stage,
            f"{stage.rows:,}" if stage.rows else "",
            _gigabytes(stage.memory_bytes),
            _gigabytes(stage.disk_bytes),
            _at_a_usual_pace(stage.disk_bytes) if stage.seconds is None else duration(stage.seconds),
        )
        for source in plan.sources
        for stage in source.stages
    ]
    console.print(_table(("source", "stage", "rows", "memory", "disk", "time"), rows))
    for source in plan.sources:
        sizes = f"{_gigabytes(source.dump_bytes)}, {_gigabytes(source.unpacked_bytes)} unpacked"
        console.print(Text(f"{source.source}: {sizes} ({source.basis})."))
    rates = plan.rates
    console.print(
        Text(
            f"Measured here: {rates.xml_bytes_per_second / 1e6:.1f} MB of XML a second and process, {rates.workers} "
            f"processes, {rates.bytes_per_passage:.0f} bytes a passage. Rows are extrapolated from English Wikipedia."
        )
    )
    console.print(
        Text(f"Free: {_gigabytes(plan.free_disk_bytes)} of disk, {_gigabytes(plan.free_memory_bytes)} of memory.")
    )


def _at_a_usual_pace(size: int) -> str:
    return f"{duration(size * 8 / 100e6)} at 100 Mbit/s"


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:,.1f} GB"


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """The answer to a query; tab-separated where it is not a terminal that reads it."""
    console = Console()
    if console.is_terminal:
        console.print(_table(columns, rows))
        return
    for row in (columns, *rows):
        print("\t".join(_cell(value).replace("\t", " ").replace("\n", " ") for value in row))  # noqa: T201


def print_passages(passages: "Sequence[FoundPassage]") -> None:
    """Passages with their scores, best first, and the revision that each was cut from."""
    console = Console()
    for rank, (score, passage, url) in enumerate(passages, start=1):
        console.print(Text(f"{rank}. {passage.title}  ({score:.2f}, {passage.passage_id})", style="bold"))
        console.print(Text(passage.text))
        if url:
            console.print(Text(url), soft_wrap=True)


def print_answer(prediction: "Prediction") -> None:
    """An answer, then its passages; the cited one is marked."""
    console = Console()
    console.print(Text(prediction.text or f"no answer: {prediction.error}", style="bold"))
    for passage in prediction.retrieved:
        mark = "*" if passage.passage_id == prediction.cited_passage_id else " "
        head = f"{mark} {passage.title}  (prior {passage.prior:.2f}, posterior {passage.posterior:.2f})"
        console.print(Text(head, style="bold" if mark == "*" else ""))
        console.print(Text(f"  {passage.text}"))


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(Text(str(column)))
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    return table


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
