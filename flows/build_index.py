"""Validated passages to what finds them: vectors, a passage index, a BM25 index, each checked before it is used."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prefect import flow

from flows.artifacts import Artifact, BuildResult
from flows.check_index import check_known_items
from flows.checks import check_stage
from flows.corpora import (
    Corpus,
    encoder_identity,
    find_corpus,
    followed_corpus,
    index_kind,
    model_path,
    open_index,
    passage_ids,
    require_encoders,
    retrievers_of,
)
from flows.encode_shards import EncoderFolder, PassageFolders, shard_runner
from flows.measure_recall import measure_recall
from flows.recording import record_dataset
from flows.room import require_room
from flows.settings import memory_bytes
from flows.study_run import StudyRun, study_run
from flows.tasks import run_name
from rag.config import IndexKind

if TYPE_CHECKING:
    from data_checks.results import CheckReport


@flow(name="build-index", flow_run_name=run_name("build index: {study} {corpus}"))
def build_index(study: str, corpus: str, overrides: tuple[str, ...] = ()) -> None:
    """Make what the study's retrievers search the corpus by, and stop where that finds too little."""
    with study_run(study, overrides) as run:
        passages = tuple(run.result("passages", source) for source in run.study.corpora[corpus])
        check_coverage(run, corpus, passages)
        wanted = retrievers_of(run.study)
        if wanted - {"dense"}:
            index_words(run, corpus, passages)
        if wanted - {"bm25"}:
            require_room(run, corpus, passages)
            vectors = tuple(encode_passages(run, source) for source in passages)
            index_vectors(run, corpus, passages, vectors)
            measure_recall(run, find_corpus(run, corpus))
            check_known_items(run, find_corpus(run, corpus))


def check_coverage(run: StudyRun, corpus: str, passages: Sequence[Artifact]) -> None:
    """For how many of the development questions some passage holds an answer: no model can do better by reading."""
    tasks = {
        name: run.result("questions", name)
        for name, task in run.study.tasks.items()
        if task.reader == "open-qa" and task.dev
    }
    if not tasks:
        return

    def reports() -> "Iterable[CheckReport]":
        from data_checks.passages import check_coverage as check
        from rag.corpus.coverage import answer_coverage
        from rag.corpus.passages import passage_files
        from rag.tasks.table import read_questions

        shards = [shard for part in passages for shard in passage_files(part.folder)]
        questions = {name: read_questions(part.file("questions.parquet"), "dev") for name, part in tasks.items()}
        covered = {
            name: answer_coverage(shards, asked, run.progress("shards"), run.study.tasks[name].answers == "patterns")
            for name, asked in questions.items()
        }
        return check(corpus, {name: coverage._asdict() for name, coverage in covered.items()})

    parents = {f"{part.stage}:{part.name}": part for part in (*passages, *tasks.values())}
    code = ["data_checks.passages", "rag.corpus.coverage", "rag.tasks.table"]
    identity = {"answers": {name: run.study.tasks[name].answers for name in tasks}}
    check_stage(run, "coverage-checks", corpus, reports, parents, code, identity)


def encode_passages(run: StudyRun, passages: Artifact) -> Artifact:
    """The vectors of one source. Texts that another source has too are copied, not encoded again."""
    config = run.study.encoder
    name = config.passage_path

    def build(folder: Path) -> BuildResult:
        from rag.retrieval.encode import encode_source
        from rag.retrieval.vectors import VectorFile

        require_encoders(run)
        report = encode_source(
            PassageFolders((passages.folder,)),
            EncoderFolder(model_path(run, name), config, name, run.device),
            folder,
            known=[found.folder for found in run.artifacts.artifacts("vectors")],
            run_shards=shard_runner(run.settings, run.device),
            progress=run.progress("passages"),
            notify=run.terminal.note,
        )
        counts = {"rows_in": passages.counts["rows_out"], "rows_out": sum(report)}
        return BuildResult(counts, {**report._asdict(), "dim": VectorFile.open(folder).dim})

    vectors = run.stage(
        "vectors",
        passages.name,
        build,
        code=["rag.retrieval.encode"],
        config=encoder_identity(run, "passage"),
        parents={"passages": passages},
        versions=("torch", "transformers"),
    )
    record_dataset(run, "vectors", vectors)
    _show_changes(run, passages.name, vectors)
    return vectors


def _show_changes(run: StudyRun, source: str, vectors: Artifact) -> None:
    """How many vectors a new snapshot cost, beside the list of passages that it changed."""
    changes = run.made("changes", source)
    if changes:
        new = changes.facts["added"] + changes.facts["changed"]
        where = changes.file("changes.parquet")
        run.terminal.note(
            f"vectors {source}: {vectors.facts['encoded']:,} encoded for {new:,} passages added or changed ({where})"
        )


def index_vectors(run: StudyRun, corpus: str, passages: Sequence[Artifact], vectors: Sequence[Artifact]) -> Artifact:
    """The index of all sources of a corpus; where it follows another corpus, that one's index with the changes."""
    from rag.retrieval.index_kinds import build_options

    kind = choose_kind(run, corpus, vectors)
    before = _index_before(run, corpus, kind)

    def build(folder: Path) -> BuildResult:
        from rag.corpus.passages import PassageTable
        from rag.retrieval.index_build import build_index_from_files, match_files
        from rag.retrieval.index_update import update_index
        from rag.retrieval.vectors import VectorFile

        ids = passage_ids(PassageTable.load([part.folder for part in passages]))
        files = [VectorFile.open(part.folder) for part in vectors]
        progress, change = run.progress("batches"), {}
        if before:
            built, changed = update_index(open_index(run, before), *match_files(files, ids), progress)
            change = changed._asdict()
        else:
            built = build_index_from_files(files, ids, run.study.index, kind, progress)
        built.save(folder)
        facts = {"kind": kind, "dim": built.dim, "units": built.info.units, **change}
        return BuildResult({"rows_in": sum(file.count for file in files), "rows_out": built.ntotal}, facts)

    parts = {f"{part.stage}:{part.name}": part for part in (*passages, *vectors)}
    index = run.stage(
        "index",
        corpus,
        build,
        code=["rag.retrieval.index_build", "rag.retrieval.index_update"],
        config={"kind": kind, **build_options(kind, run.study.index), "order": run.study.corpora[corpus]},
        parents=parts | ({"previous": before.index} if before and before.index else {}),
        versions=("faiss-cpu",),
    )
    record_dataset(run, "index", index)
    return index


def choose_kind(run: StudyRun, corpus: str, vectors: Sequence[Artifact]) -> IndexKind:
    """The kind that the study says, or that fits into this machine's memory."""
    from rag.retrieval.index_kinds import build_bytes, resolve_kind

    config, rows = run.study.index, sum(part.counts["rows_out"] for part in vectors)
    dim, memory = vectors[0].facts["dim"], memory_bytes(run.settings)
    kind = resolve_kind(config, rows, dim, memory)
    if config.kind == "auto" and kind != "hnsw":
        needed = build_bytes("hnsw", rows, dim, config)
        run.terminal.note(
            f"index {corpus}: {kind}, since hnsw would take {needed / 1e9:,.1f} GB of memory to build and there are "
            f"{memory / 1e9:,.1f} GB"
        )
    return kind


def _index_before(run: StudyRun, corpus: str, kind: IndexKind) -> Corpus | None:
    """The corpus from whose index this one's can be made: the snapshot before, with an index of the same kind."""
    from rag.retrieval.index_kinds import can_update

    name = followed_corpus(run.study, corpus)
    if name is None or not run.study.index.update:
        return None
    if not can_update(kind):
        run.terminal.note(f"index {corpus}: built anew after {name}, for an index of kind {kind} cannot be changed")
        return None
    before = find_corpus(run, name)
    return before if index_kind(before) == kind else None


def index_words(run: StudyRun, corpus: str, passages: Sequence[Artifact]) -> Artifact:
    """The BM25 index of all sources of a corpus."""

    def build(folder: Path) -> BuildResult:
        from rag.corpus.passages import PassageTable
        from rag.retrieval.bm25_index import build_bm25
        from rag.retrieval.vectors import hash_row_ids

        table = PassageTable.load([part.folder for part in passages])
        row_ids = hash_row_ids(passage_ids(table))
        built = build_bm25(folder, table, run.study.bm25, row_ids, run.progress("batches"))
        return BuildResult({"rows_in": len(table), "rows_out": built.ntotal})

    bm25 = run.stage(
        "bm25",
        corpus,
        build,
        code=["rag.retrieval.bm25_index"],
        config={**run.study.bm25.model_dump(include={"stemming", "stopwords"}), "order": run.study.corpora[corpus]},
        parents={f"passages:{part.name}": part for part in passages},
        versions=("tantivy",),
    )
    record_dataset(run, "bm25", bm25)
    return bm25
