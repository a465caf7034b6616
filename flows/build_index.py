"""Validated passages to a passage index whose loss against exact search is known."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prefect import flow

from data_checks.errors import CheckFailed
from flows.artifacts import Artifact, BuildResult
from flows.checks import check_stage
from flows.corpora import encoder_identity, find_questions, open_context_encoder, open_question_encoder
from flows.recording import record_dataset, record_recall
from flows.study_run import StudyRun, study_run
from flows.tasks import run_name
from rag.config import IndexConfig

if TYPE_CHECKING:
    from data_checks.results import CheckReport

_RECALL_AT = (1, 5, 10, 20)


@flow(name="build-index", flow_run_name=run_name("build index: {study} {corpus}"))
def build_index(study: str, corpus: str, overrides: tuple[str, ...] = ()) -> None:
    """Encode the corpus's sources, index them, and stop where the index finds too little of the exact result."""
    with study_run(study, overrides) as run:
        sources = tuple(run.result("passages", source) for source in run.study.corpora[corpus])
        check_coverage(run, corpus, sources)
        vectors = tuple(encode_passages(run, source) for source in sources)
        index = index_vectors(run, corpus, sources, vectors, run.study.index)
        flat = run.study.index.model_copy(update={"kind": "flat"})
        exact = index if run.study.index == flat else index_vectors(run, corpus, sources, vectors, flat)
        questions = find_questions(run, run.study.tasks)
        if questions:
            measure_recall(run, corpus, {"index": index, "exact": exact}, vectors, questions)
        else:
            run.terminal.note(f"recall {corpus}: not measured, for the study has no questions to search with")


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
        covered = {name: answer_coverage(shards, asked, run.progress("shards")) for name, asked in questions.items()}
        return check(corpus, {name: coverage._asdict() for name, coverage in covered.items()})

    parents = {f"{part.stage}:{part.name}": part for part in (*passages, *tasks.values())}
    code = ["data_checks.passages", "rag.corpus.coverage", "rag.tasks.table"]
    check_stage(run, "coverage-checks", corpus, reports, parents, code, {})


def encode_passages(run: StudyRun, passages: Artifact) -> Artifact:
    """The vectors of one source. Texts that another source has too are copied, not encoded again."""

    def build(folder: Path) -> BuildResult:
        from rag.corpus.passages import PassageTable
        from rag.retrieval.vectors import SourcePassages, VectorFile, encode_source

        table = PassageTable.load([passages.folder])
        columns = ("passage_id", "title", "text", "text_sha1")
        rows = SourcePassages(*(table.column(column).to_pylist() for column in columns))
        known = [VectorFile.open(found.folder) for found in run.artifacts.artifacts("vectors")]
        encoder = open_context_encoder(run)
        encoder.module.to(run.device)
        report = encode_source(rows, encoder, folder, known, run.progress("shards"))
        return BuildResult({"rows_in": len(rows.ids), "rows_out": len(rows.ids)}, report._asdict())

    vectors = run.stage(
        "vectors",
        passages.name,
        build,
        code=["rag.retrieval.vectors"],
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


def index_vectors(
    run: StudyRun, corpus: str, passages: Sequence[Artifact], vectors: Sequence[Artifact], config: IndexConfig
) -> Artifact:
    """The index of all sources of a corpus, of the kind that ``config`` says."""

    def build(folder: Path) -> BuildResult:
        from rag.corpus.passages import PassageTable
        from rag.retrieval.index import build_index_from_files
        from rag.retrieval.vectors import VectorFile

        table = PassageTable.load([part.folder for part in passages])
        ids = [passage_id for chunk in table.passage_ids.chunks for passage_id in chunk.to_pylist()]
        files = [VectorFile.open(part.folder) for part in vectors]
        built = build_index_from_files(files, ids, config, run.progress("batches"))
        built.save(folder)
        return BuildResult({"rows_in": len(ids), "rows_out": built.ntotal}, {"kind": config.kind, "dim": built.dim})

    own = {"flat": (), "hnsw": ("m", "ef_construction", "ef_search")}[config.kind]
    index = run.stage(
        "index",
        f"{corpus}-{config.kind}",
        build,
        code=["rag.retrieval.index"],
        config={"kind": config.kind, **{name: getattr(config, name) for name in own}},
        parents={f"{part.stage}:{part.name}": part for part in (*passages, *vectors)},
        versions=("faiss-cpu",),
    )
    record_dataset(run, "index", index)
    return index


def measure_recall(
    run: StudyRun,
    corpus: str,
    indexes: Mapping[str, Artifact],
    vectors: Sequence[Artifact],
    questions: Mapping[str, Artifact],
) -> None:
    """Recall of the index against exact search on the study's own questions.

    Raises CheckFailed below the study's bar.
    """
    config = run.study.index

    def build(folder: Path) -> BuildResult:  # noqa: ARG001  (its result is all in the manifest)
        from rag.evaluation.statistics import bootstrap_interval
        from rag.retrieval.index import PassageIndex, recall_against_exact
        from rag.retrieval.vectors import VectorFile
        from rag.tasks.table import read_questions

        texts = [
            question.text
            for part in questions.values()
            for question in read_questions(part.file("questions.parquet"), "test")
        ]
        asked = open_question_encoder(run).encode_questions(texts[:: max(1, len(texts) // config.recall_questions)])
        exact = [VectorFile.open(part.folder).vectors for part in vectors]
        rows = []
        for artifact in {artifact.fingerprint: artifact for artifact in indexes.values()}.values():
            index = PassageIndex.load(artifact.folder)
            for k in sorted({*_RECALL_AT, config.recall_at}):
                found = recall_against_exact(index, asked, exact, k)
                low, high = bootstrap_interval(found.per_question, run.study.seed)[:2]
                rows.append(
                    {
                        "kind": index.info.kind,
                        "k": k,
                        "recall": found.recall,
                        "low": low,
                        "high": high,
                        "n": len(asked),
                        "min_recall": config.min_recall if k == config.recall_at else None,
                        "parameters_json": {"m": config.m, "ef_search": config.ef_search},
                    }
                )
        return BuildResult({"rows_in": len(asked)}, {"recalls": rows})

    measured = run.stage(
        "recall",
        corpus,
        build,
        code=["rag.retrieval.index", "rag.evaluation.statistics", "rag.tasks.table"],
        config={
            "questions": config.recall_questions,
            "recall_at": config.recall_at,
            "min_recall": config.min_recall,
            "encoder": encoder_identity(run, "question"),
            "seed": run.study.seed,
        },
        parents={**indexes, **{f"questions:{task}": part for task, part in questions.items()}},
    )
    record_recall(run, corpus, measured)
    _require_recall(corpus, config, measured)


def _require_recall(corpus: str, config: IndexConfig, measured: Artifact) -> None:
    for row in measured.facts["recalls"]:
        if row["k"] == config.recall_at and row["recall"] < config.min_recall:
            raise CheckFailed(
                f"the {row['kind']} index of {corpus} finds {row['recall']:.3f} of the exact {row['k']} passages, the "
                f"study asks for {config.min_recall}; raise index.ef_search (now {config.ef_search}) or index.m"
            )
