"""What a study will take, before anything starts: rows, memory, disk and hours of its sources."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psutil

from flows.paths import is_remote, resolve_path
from flows.settings import Settings, load_settings
from flows.sources import remote_files
from flows.study_run import find_study
from rag.config import SourceConfig, StudyConfig, read_study
from rag.errors import ConfigError, DataError, ResourceError

if TYPE_CHECKING:
    from rag.corpus.estimate import IngestRates
    from rag.records import StageEstimate

# A real dump of 6 MB that installs as a package: what one second of work does is measured on it.
_SAMPLE = "package:gensim/test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
_ASSUMED_BYTES = {"enwiki": 24_000_000_000}  # where the server cannot be asked


class SourcePlan(NamedTuple):
    """One source: its size, where that is from, and its stages."""

    source: str
    dump_bytes: int
    unpacked_bytes: int  # as XML, TSV or whatever the format is
    basis: str
    stages: "list[StageEstimate]"


class StudyPlan(NamedTuple):
    """All sources, and the machine they have to fit on."""

    sources: list[SourcePlan]
    rates: "IngestRates"
    free_disk_bytes: int
    free_memory_bytes: int


def plan_study(study: str, overrides: tuple[str, ...] = ()) -> StudyPlan:
    """Size, rows, memory, disk and seconds of every source of a study. Reads no more than lists and a sample.

    Raises ConfigError for a study that cannot be.
    """
    path = find_study(study)
    config, settings = read_study(path, overrides), load_settings()
    rates = measure_rates(config, settings.worker_processes)
    sources = [_plan_source(name, source, rates, path.parent, settings) for name, source in config.sources.items()]
    place = settings.artifacts_folder
    while not place.exists():
        place = place.parent
    return StudyPlan(sources, rates, shutil.disk_usage(place).free, psutil.virtual_memory().available)


def require_fit(plan: StudyPlan) -> None:
    """Raise ResourceError where the disk or the memory will not do; a plan that cannot end well never starts."""
    stages = [stage for source in plan.sources for stage in source.stages]
    disk = sum(stage.disk_bytes for stage in stages)
    memory = max((stage.memory_bytes for stage in stages), default=0)
    for what, needed, free, remedy in (
        ("disk", disk, plan.free_disk_bytes, "free some, or set OPENBOOK_WORKSPACE to a larger disk"),
        ("memory", memory, plan.free_memory_bytes, "set OPENBOOK_WORKERS to fewer processes"),
    ):
        if needed > free:
            raise ResourceError(
                f"the study needs {needed / 1e9:,.1f} GB of {what} and {free / 1e9:,.1f} GB are free; {remedy}"
            )


def measure_rates(config: StudyConfig, workers: int) -> "IngestRates":
    """What this machine does in a second, by cutting a small real dump into passages with the study's options.

    Raises ConfigError where the package with the dump is not installed.
    """
    from rag.corpus.estimate import IngestRates
    from rag.corpus.ingest.source import SourceSpec, ingest

    sample = resolve_path(_SAMPLE, study_folder=Path(), demo=None)
    spec = SourceSpec("sample", (sample,), "mediawiki", None, None, None)
    seconds = []
    for _ in range(2):  # the first time pays for what is loaded once
        with tempfile.TemporaryDirectory() as scratch:
            started = time.perf_counter()
            report = ingest(spec, config.passages, Path(scratch))
            seconds.append(time.perf_counter() - started)
            stored = sum(file.stat().st_size for file in Path(scratch).glob("passages-*.parquet"))
    return IngestRates(_sample_xml_bytes(sample) / min(seconds), stored / max(report.passages, 1), workers)


def _sample_xml_bytes(sample: Path) -> int:
    import bz2

    with bz2.open(sample) as stream:
        return sum(len(piece) for piece in iter(lambda: stream.read(1 << 20), b""))


def _plan_source(
    name: str, config: SourceConfig, rates: "IngestRates", study_folder: Path, settings: Settings
) -> SourcePlan:
    from rag.corpus.estimate import estimate_ingest, unpacked_bytes

    files, basis = _sizes(config, study_folder, settings)
    size = sum(file_size for _, file_size in files)
    unpacked = sum(unpacked_bytes(file_name, file_size, config.format) for file_name, file_size in files)
    stages = estimate_ingest(size, unpacked, rates, fetched=not is_remote(config.path), format=config.format)
    return SourcePlan(name, size, unpacked, basis, stages)


def _sizes(config: SourceConfig, study_folder: Path, settings: Settings) -> tuple[list[tuple[str, int]], str]:
    """Name and size of every file of a source, and how that is known."""
    from rag.corpus.download.files import WebOptions

    if config.path.startswith("demo:"):
        return [], "written by the study itself"
    if not is_remote(config.path):
        return list(_local_sizes(resolve_path(config.path, study_folder=study_folder, demo=None))), "on this machine"
    if config.path.startswith("hf:"):
        raise ConfigError(f"{config.path}: the hub is not asked for sizes; download it and plan again")
    web = WebOptions(proxy=settings.proxy, attempts=1, timeout_seconds=20)
    try:
        listed = [(file.name, file.size) for file in remote_files(config, settings.dumps_url, web)]
    except (DataError, ResourceError) as error:
        wiki = config.path.removeprefix("wikimedia:").partition("/")[0]
        if wiki not in _ASSUMED_BYTES:
            raise
        return [("assumed.xml.bz2", _ASSUMED_BYTES[wiki])], f"assumed: {str(error).partition(' (')[0]}"
    unknown = [file for file, size in listed if size is None]
    if unknown:
        raise ConfigError(f"{config.path}: the server does not say how large {unknown[0]} is; plan after the download")
    return [(file, size or 0) for file, size in listed], "as published"


def _local_sizes(path: Path) -> Iterator[tuple[str, int]]:
    files = [file for file in sorted(path.rglob("*")) if file.is_file()] if path.is_dir() else [path]
    yield from ((file.name, file.stat().st_size) for file in files)
