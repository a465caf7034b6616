"""What a study will take, before anything starts: rows, memory, disk and hours of its sources and corpora."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from flows.artifacts import ArtifactStore
from flows.corpora import followed_corpus, retrievers_of
from flows.paths import local_model
from flows.plan_sources import SourceSize, Workspace, source_size
from flows.room import Left, Machine, is_dense, this_machine, vector_dim, work_left
from flows.settings import Settings, compute_device, limit_threads, load_settings
from flows.study_run import find_study
from rag.config import IndexKind, StudyConfig, read_study
from rag.errors import ResourceError
from rag.records import StageEstimate

if TYPE_CHECKING:
    from flows.plan_rates import SamplePassages
    from rag.corpus.estimate import IngestRates
    from rag.retrieval.estimate import Bm25Rate, BuildSample, EncodingRate

_ASSUMED_DIM = 768  # of base-size encoders


class SourcePlan(NamedTuple):
    """One source: its size, where that is from, and its stages, the vectors among them."""

    source: str
    file_bytes: int
    unpacked_bytes: int  # as XML, TSV or whatever the format is
    basis: str
    stages: list[StageEstimate]
    is_exact: bool  # the number of its passages
    is_dump: bool


class CorpusPlan(NamedTuple):
    """One passage index, and what there is to say about it."""

    corpus: str
    stages: list[StageEstimate]
    is_exact: bool  # the number of its passages
    notes: tuple[str, ...] = ()


class Measured(NamedTuple):
    """What was measured on this machine; None: there was no need, or nothing to measure with."""

    cutting: "IngestRates | None"
    encoding: "EncodingRate"
    builds: "Mapping[IndexKind, tuple[BuildSample, ...]]"
    products_per_second: float | None  # of exact search
    bm25: "Bm25Rate | None"
    notes: tuple[str, ...] = ()  # what could not be measured, and why


class StudyPlan(NamedTuple):
    """All sources and corpora, and the machine they have to fit on."""

    sources: list[SourcePlan]
    corpora: list[CorpusPlan]
    measured: Measured
    machine: Machine
    problem: str | None  # why the indexes or the files do not fit, with the cheapest change that does

    @property
    def stages(self) -> list[StageEstimate]:
        """The stages of all parts."""
        parts = [part.stages for part in self.sources] + [part.stages for part in self.corpora]
        return [stage for stages in parts for stage in stages]


class _Known(NamedTuple):
    """What is known of a study without measuring."""

    workspace: Workspace
    settings: Settings
    sizes: Mapping[str, SourceSize]
    left: Left
    dim: int | None  # of the vectors
    machine: Machine

    @property
    def study(self) -> StudyConfig:
        return self.workspace.study

    @property
    def some_dim(self) -> int:
        return self.dim or _ASSUMED_DIM

    def kind(self, corpus: str) -> IndexKind:
        """Of which kind the index of a corpus will be."""
        from rag.retrieval.index_kinds import resolve_kind

        rows = self.left.indexes[corpus]
        return resolve_kind(self.study.index, rows, self.some_dim, self.machine.memory_bytes)


def plan_study(study: str, overrides: tuple[str, ...] = ()) -> StudyPlan:
    """Rows, memory, disk and seconds of every source and corpus of a study.

    Reads no more than lists, manifests and samples, and writes nothing. Raises ConfigError for a study that cannot be.
    """
    from rag.retrieval.estimate import Work, find_problem

    path = find_study(study)
    config, settings = read_study(path, overrides), load_settings()
    limit_threads(settings)
    known = _look_around(Workspace(ArtifactStore(settings.artifacts_folder), config, path.parent), settings)
    measured = _measure(known)
    sources = [_plan_source(known, measured, source) for source in config.sources]
    corpora = [_plan_corpus(known, measured, corpus) for corpus in config.corpora]
    plan = StudyPlan(sources, corpora, measured, known.machine, None)
    other = sum(stage.disk_bytes for stage in plan.stages if stage.stage not in ("vectors", "index"))
    work = Work(known.some_dim, known.left.vectors, known.left.indexes, other - known.left.begun_bytes)
    limits = (known.machine.memory_bytes, known.machine.free_disk_bytes)
    return plan._replace(problem=find_problem(work, config.encoder, config.index, *limits))


def require_fit(plan: StudyPlan) -> None:
    """Raise ResourceError where the disk or the memory will not do; a plan that cannot end well never starts."""
    if plan.problem:
        raise ResourceError(plan.problem)
    memory, limit = max((stage.memory_bytes for stage in plan.stages), default=0), plan.machine.memory_bytes
    if memory > limit:
        raise ResourceError(
            f"the study needs {memory / 1e9:,.1f} GB of memory and {limit / 1e9:,.1f} GB may be used; "
            "set OPENBOOK_WORKERS to fewer processes"
        )


def _look_around(workspace: Workspace, settings: Settings) -> _Known:
    sizes = {source: source_size(workspace, source, settings) for source in workspace.study.sources}
    rows = {source: size.rows or 0 for source, size in sizes.items()}
    passages = {source: size.passages for source, size in sizes.items()}
    left = work_left(workspace, tuple(workspace.study.corpora), rows, passages)
    return _Known(workspace, settings, sizes, left, vector_dim(workspace), this_machine(settings))


def _measure(known: _Known) -> Measured:
    """What of the work that is left can be measured here."""
    from flows.plan_rates import measure_bm25, measure_build, measure_exact_search

    study, left = known.study, known.left
    rates, sample = _sample(known)
    encoding, notes = _measure_encoding(known, sample)
    kinds = {known.kind(corpus) for corpus in left.indexes} if known.dim else set()
    return Measured(
        rates,
        encoding,
        {kind: measure_build(kind, study.index, known.some_dim) for kind in sorted(kinds)},
        measure_exact_search(known.some_dim) if kinds and study.tasks else None,
        measure_bm25(sample, study.bm25) if retrievers_of(study) - {"dense"} else None,
        notes,
    )


def _measure_encoding(known: _Known, sample: "SamplePassages") -> "tuple[EncodingRate, tuple[str, ...]]":
    """What encoding takes, and what there is to say where the encoder is wanted and not on this machine."""
    from flows.plan_rates import base_size_rate, encoding_rate

    config, settings, wanted = known.study.encoder, known.settings, known.left.vectors
    name = config.passage_path
    folder = local_model(name, study_folder=known.workspace.folder, demo=None)
    if folder or not wanted:
        return encoding_rate(config, folder, settings, sample if wanted else None), ()
    if known.dim:  # the name says its size
        rate = base_size_rate(config, compute_device(settings), settings.encoders or 1, sample)
        return rate, (f"Encoding: measured with random weights of its size, for {name} is not on this machine.",)
    is_on_hub = ":" not in name and name.count("/") <= 1 and not name.startswith((".", "/", "~"))
    fetch = f"; fetch it with: hf download {name}" if is_on_hub else ""
    note = f"Encoding, most often the longest part, was not measured: {name} is not on this machine{fetch}"
    return encoding_rate(config, None, settings, None), (note,)


def _sample(known: _Known) -> "tuple[IngestRates | None, SamplePassages]":
    """Real passages: of the study's largest source that is cut already, else of a dump that is cut for it."""
    from flows.plan_rates import measure_cutting, sample_passages

    counted = [size.passages for size in known.sizes.values() if size.passages]
    if not counted:
        return measure_cutting(known.study.passages, known.settings.worker_processes)
    sample = sample_passages(max(counted, key=lambda one: one.counts["rows_out"]).folder)
    if len(counted) == len(known.sizes):
        return None, sample
    return measure_cutting(known.study.passages, known.settings.worker_processes).rates, sample


def _plan_source(known: _Known, measured: Measured, source: str) -> SourcePlan:
    """The stages of one source, from its files to its vectors."""
    from rag.corpus.estimate import estimate_ingest, unpacked_bytes

    config, size = known.study.sources[source], known.sizes[source]
    unpacked = sum(unpacked_bytes(*file, config.format) for file in size.files)
    if size.passages or not measured.cutting:
        stages = [_there("passages", size.rows)]
    elif size.rows is None:
        stages = [StageEstimate("passages", 0, 0, 0, None)]
    else:
        stages = estimate_ingest(
            size.file_bytes, unpacked, measured.cutting, fetched=size.fetched, format=config.format, rows=size.rows
        )
    if is_dense(known.study) and any(source in sources for sources in known.study.corpora.values()):
        stages.append(_plan_vectors(known, measured, source))
    is_dump = config.format == "mediawiki"
    return SourcePlan(source, size.file_bytes, unpacked, size.basis, stages, _is_exact(size), is_dump)


def _plan_vectors(known: _Known, measured: Measured, source: str) -> StageEstimate:
    """Encoding one source, once for all corpora that hold it."""
    from rag.retrieval.estimate import estimate_vectors

    rows = known.left.vectors.get(source)
    if rows is None:
        return _there("vectors", known.sizes[source].rows)
    if not rows:
        return StageEstimate("vectors", 0, measured.encoding.memory_bytes, 0, None)
    return estimate_vectors(rows, known.some_dim, known.study.encoder.storage, measured.encoding)


def _plan_corpus(known: _Known, measured: Measured, corpus: str) -> CorpusPlan:
    """The indexes of one corpus and what they are measured by."""
    from rag.retrieval.estimate import estimate_index, estimate_recall

    study, rows = known.study, known.left.indexes.get(corpus)
    sizes = [known.sizes[source] for source in study.corpora[corpus]]
    stages = [] if measured.bm25 is None else [_plan_bm25(known, measured.bm25, corpus)]
    plan = CorpusPlan(corpus, stages, all(map(_is_exact, sizes)))
    if not is_dense(study):
        return plan
    if rows is None:
        stages.append(_there("index", sum(size.rows or 0 for size in sizes)))
        return plan
    kind, dim, samples = known.kind(corpus), known.some_dim, measured.builds.get(known.kind(corpus), ())
    stages.append(estimate_index(rows, dim, study.index, kind, samples))
    if study.tasks:
        stages.append(estimate_recall(rows, dim, study.index, kind, measured.products_per_second))
    return plan._replace(notes=tuple(_notes(known, corpus, kind)))


def _plan_bm25(known: _Known, rate: "Bm25Rate", corpus: str) -> StageEstimate:
    from rag.retrieval.estimate import estimate_bm25

    sizes = [known.sizes[source] for source in known.study.corpora[corpus]]
    rows = sum(size.rows or 0 for size in sizes)
    if known.workspace.bm25(corpus, [size.passages for size in sizes]):
        return _there("bm25", rows)
    return estimate_bm25(rows, rate)


def _notes(known: _Known, corpus: str, kind: IndexKind) -> Iterator[str]:
    """What a person should know about an index beside its numbers."""
    study = known.study
    options = f" with m = {study.index.m}" if kind.startswith("hnsw") else ""
    yield f"{kind}{options}{', chosen by the memory that may be used' if study.index.kind == 'auto' else ''}"
    if known.dim is None:
        yield f"{known.some_dim} dimensions are assumed, for the encoder is not on this machine"
    unknown = [source for source in study.corpora[corpus] if known.sizes[source].rows is None]
    if unknown:
        yield f"without the passages of {', '.join(unknown)}, which nobody has counted yet"
    before = followed_corpus(study, corpus)
    if before and study.index.update and not kind.startswith("hnsw"):
        yield f"index: updated in place from {before}, in less time than this"
    elif before:
        why = "HNSW cannot change in place" if kind.startswith("hnsw") else "index.update is off"
        yield f"index: rebuilt, for {why}; the vectors of {before} are taken over"


def _is_exact(size: SourceSize) -> bool:
    return size.rows is not None and size.rows == size.at_least


def _there(stage: str, rows: int | None) -> StageEstimate:
    """A stage whose result lies in the workspace."""
    return StageEstimate(stage, rows or 0, 0, 0, 0.0)
