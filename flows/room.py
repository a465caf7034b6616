"""Whether a study fits on this machine: what is still to be made of it, against the disk and the memory there are."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from flows.artifacts import Artifact, ArtifactStore
from flows.corpora import retrievers_of
from flows.paths import local_model
from flows.plan_sources import Workspace, source_size
from flows.settings import Settings, limit_threads, memory_bytes
from flows.study_run import StudyRun
from rag.config import StudyConfig
from rag.errors import ConfigError, ResourceError

_DPR_DIM = 768
Passages = Mapping[str, Artifact | None]  # of a source; None: not cut yet


class Left(NamedTuple):
    """What of a study is still to be made."""

    vectors: Mapping[str, int]  # source -> passages to encode
    indexes: Mapping[str, int]  # corpus -> passages to index
    begun_bytes: int  # of vectors that a stopped call has left to go on from


class Machine(NamedTuple):
    """What there is for a study."""

    free_disk_bytes: int
    free_memory_bytes: int  # at the moment
    memory_bytes: int  # that openbook may use


def this_machine(settings: Settings) -> Machine:
    """The disk of the workspace, and the memory."""
    import psutil

    place = settings.artifacts_folder
    while not place.exists():
        place = place.parent
    return Machine(shutil.disk_usage(place).free, psutil.virtual_memory().available, memory_bytes(settings))


def require_room_to_start(study: StudyConfig, folder: Path, settings: Settings) -> None:
    """Refuse a study that is sure not to fit, before a run of it is opened; reads manifests, and no input.

    ``folder`` is that of the study file. Where the number of passages is only an estimate, half of it has to be too
    much. Raises ResourceError with the cheapest change that fits.
    """
    limit_threads(settings)
    workspace = Workspace(ArtifactStore(settings.artifacts_folder), study, folder)
    try:
        sizes = {source: source_size(workspace, source) for source in study.sources}
    except ConfigError:
        return  # a source that is not there is the first stage's to explain
    rows = {source: size.at_least for source, size in sizes.items()}
    passages = {source: size.passages for source, size in sizes.items()}
    _require(workspace, settings, tuple(study.corpora), rows, passages)


def require_room(run: StudyRun, corpus: str, passages: Sequence[Artifact]) -> None:
    """Refuse to encode and index the passages of a corpus, now that they are counted, where that cannot end well.

    What is there already takes nothing. Raises ResourceError with the cheapest change that fits.
    """
    workspace = Workspace(run.artifacts, run.study, run.folder)
    rows = {part.name: part.counts["rows_out"] for part in passages}
    _require(workspace, run.settings, (corpus,), rows, {part.name: part for part in passages})


def work_left(workspace: Workspace, corpora: Sequence[str], rows: Mapping[str, int], passages: Passages) -> Left:
    """What is still to be encoded and indexed of these corpora."""
    study = workspace.study
    if not is_dense(study):
        return Left({}, {}, 0)
    sources = dict.fromkeys(source for corpus in corpora for source in study.corpora[corpus])
    vectors = {source: workspace.vectors(passages[source]) for source in sources}
    missing = {source: rows[source] for source in sources if vectors[source] is None}
    indexes = {
        corpus: sum(rows[source] for source in study.corpora[corpus])
        for corpus in corpora
        if not workspace.index(corpus, [vectors[source] for source in study.corpora[corpus]])
    }
    return Left(missing, indexes, sum(workspace.partial_bytes("vectors", source) for source in missing))


def is_dense(study: StudyConfig) -> bool:
    """Whether passages are encoded at all."""
    return bool(retrievers_of(study) - {"bm25"})


def vector_dim(workspace: Workspace) -> int | None:
    """The dimension of the study's passage vectors; None where the encoder is not here and its name says nothing."""
    encoder = workspace.study.encoder
    name = encoder.passage_path
    folder = local_model(name, study_folder=workspace.folder, demo=None)
    if folder is None:
        return _DPR_DIM if "dpr-" in name else None
    try:
        config = json.loads((folder / "config.json").read_bytes())
        return int(config.get("projection_dim") or config["hidden_size"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # whoever loads it says what is wrong


def _require(
    workspace: Workspace, settings: Settings, corpora: Sequence[str], rows: Mapping[str, int], passages: Passages
) -> None:
    dim, left = vector_dim(workspace), work_left(workspace, corpora, rows, passages)
    if dim is None or not (left.vectors or left.indexes):
        return  # refused only where it is sure
    from rag.retrieval.estimate import Work, find_problem

    machine, study = this_machine(settings), workspace.study
    work = Work(dim, left.vectors, left.indexes, -left.begun_bytes)
    problem = find_problem(work, study.encoder, study.index, machine.memory_bytes, machine.free_disk_bytes)
    if problem:
        raise ResourceError(problem)
