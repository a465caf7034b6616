"""The plan of a study as a person reads it on a terminal."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.display import duration
from rag.records import StageEstimate

if TYPE_CHECKING:
    from flows.plan_study import CorpusPlan, SourcePlan, StudyPlan

_COLUMNS = ("", "stage", "rows", "memory", "disk", "time")
_MANY_SECONDS = 36_000  # of which nobody knows the minutes


def print_plan(plan: "StudyPlan") -> None:
    """Rows, memory, disk and time of every stage, what was measured to say so, and what there is."""
    console = Console()
    console.print(_stages(plan))
    for line in (*map(_about_source, plan.sources), *_about_corpora(plan.corpora), *_about_rates(plan)):
        console.print(Text(line))
    machine = plan.machine
    console.print(
        Text(
            f"Free: {size_text(machine.free_disk_bytes)} of disk, {size_text(machine.free_memory_bytes)} of memory; of "
            f"memory {size_text(machine.memory_bytes)} may be used."
        )
    )
    needed = max((stage.memory_bytes for stage in plan.stages), default=0)
    if machine.free_memory_bytes < needed <= machine.memory_bytes:
        console.print(Text(f"Other programs hold memory that the study needs: {size_text(needed)} must be free."))


def size_text(size: float) -> str:
    """Bytes as a person says them.

    >>> size_text(86_400_000_000), size_text(2_410_000_000), size_text(31_000_000), size_text(0)
    ('86 GB', '2.4 GB', '31 MB', '')
    """
    if size >= 9.95e9:
        return f"{size / 1e9:,.0f} GB"
    if size >= 0.0995e9:
        return f"{size / 1e9:.1f} GB"
    return f"{max(size / 1e6, 1):.0f} MB" if size else ""


def _stages(plan: "StudyPlan") -> Table:
    table = Table()
    for column in _COLUMNS:
        table.add_column(column, justify="right" if column in ("rows", "memory", "disk") else "left")
    parts = [(source.source, source.stages, source.is_exact) for source in plan.sources]
    parts += [(f"corpus {corpus.corpus}", corpus.stages, corpus.is_exact) for corpus in plan.corpora]
    for name, stages, is_exact in parts:
        for number, stage in enumerate(stages):
            cells = (
                "" if number else name,
                stage.stage,
                f"{'' if is_exact else '~'}{stage.rows:,}" if stage.rows else "",
                size_text(stage.memory_bytes),
                size_text(stage.disk_bytes),
                _time(stage, plan.measured.encoding.is_like and stage.stage == "vectors"),
            )
            table.add_row(*map(Text, cells))
        table.add_section()
    memory = max((stage.memory_bytes for stage in plan.stages), default=0)
    disk = sum(stage.disk_bytes for stage in plan.stages)
    total = ("all", "", "", size_text(memory), size_text(disk), _total_time(plan))
    table.add_row(*(Text(cell, style="bold") for cell in total))
    return table


def _time(stage: StageEstimate, is_like: bool) -> str:
    if stage.seconds is not None:
        return _roughly(stage.seconds, is_like) if stage.seconds else "there already"
    if stage.stage == "dump":
        return f"{_roughly(stage.disk_bytes * 8 / 100e6)} at 100 Mbit/s"
    return "not measured" if stage.rows else "not known"


def _total_time(plan: "StudyPlan") -> str:
    known = sum(stage.seconds or 0.0 for stage in plan.stages)
    if any(stage.stage == "vectors" and stage.rows and stage.seconds is None for stage in plan.stages):
        return f"over {_roughly(known)}, without encoding"
    more = "over " if any(stage.seconds is None for stage in plan.stages) else ""
    return f"{more}{_roughly(known, plan.measured.encoding.is_like)}"


def _roughly(seconds: float, is_like: bool = False) -> str:
    """A time as finely as it can be foretold: beyond ten hours without minutes.

    >>> _roughly(176_400.0), _roughly(12_420.0), _roughly(12_420.0, is_like=True)
    ('~ 49 h', '3 h 27 min', '~ 3 h 27 min')
    """
    if seconds >= _MANY_SECONDS:
        return f"~ {seconds / 3600:,.0f} h"
    return f"{'~ ' if is_like else ''}{duration(seconds)}"


def _about_source(source: "SourcePlan") -> str:
    sizes = (
        f"{size_text(source.file_bytes)}, {size_text(source.unpacked_bytes)} unpacked; " if source.file_bytes else ""
    )
    return f"{source.source}: {sizes}{source.basis}."


def _about_corpora(corpora: "list[CorpusPlan]") -> Iterator[str]:
    for corpus in corpora:
        if corpus.notes:
            yield f"corpus {corpus.corpus}: {'; '.join(corpus.notes)}."


def _about_rates(plan: "StudyPlan") -> Iterator[str]:
    """What the times rest on."""
    measured = plan.measured
    rates, encoding = measured.cutting, measured.encoding
    if rates:
        xml = f"{rates.xml_bytes_per_second / 1e6:.1f} MB of XML a second and process, "
        dumps = any(source.is_dump for source in plan.sources)
        yield (
            f"Measured here: {xml if dumps else ''}{rates.workers} processes, "
            f"{rates.bytes_per_passage:.0f} bytes a passage."
        )
    if encoding.passages_per_second:
        yield f"Measured here: {encoding.passages_per_second:,.1f} passages encoded a second."
    for kind, samples in measured.builds.items():
        yield f"Measured here: {samples[-1].rows:,} vectors into {kind} in {samples[-1].seconds:.1f} s."
    if measured.bm25:
        yield f"Measured here: {measured.bm25.passages_per_second:,.0f} passages a second into BM25."
    yield from measured.notes
