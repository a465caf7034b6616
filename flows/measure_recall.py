"""What a finished index loses against an exact search, before anything is generated with it."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data_checks.errors import CheckFailed
from flows.artifacts import Artifact, BuildResult
from flows.corpora import (
    Corpus,
    encoder_identity,
    find_questions,
    open_index,
    open_question_encoder,
    search_identity,
    vector_files,
)
from flows.recording import SWEEP_FILE, record_caveat, record_recall
from flows.study_run import StudyRun
from rag.config import StudyConfig

if TYPE_CHECKING:
    from rag.retrieval.index import PassageIndex
    from rag.retrieval.recall import Recall
    from rag.retrieval.recall_sweep import SweepPoint

_ADVICE_FILE = "advice.txt"  # what to change; only where the index is below the study's bar


def measure_recall(run: StudyRun, corpus: Corpus) -> None:
    """Recall of the index on a sample of the study's questions, and what other search settings would find and cost.

    Raises CheckFailed below the study's bar, with what to change; the measured rows are then in the database.
    """
    questions = find_questions(run, run.study.tasks)
    if not questions:
        run.terminal.note(f"recall {corpus.name}: not measured, for the study has no questions to search with")
        return
    measured = _measure(run, corpus, questions)
    record_recall(run, corpus.name, measured)
    caveat = measured.facts["caveat"]
    record_caveat(run, "encoders", corpus.name, caveat)
    if caveat:
        run.terminal.note(f"warning: {corpus.name}: {caveat}")
    _require_recall(run, corpus, measured)


def _measure(run: StudyRun, corpus: Corpus, questions: Mapping[str, Artifact]) -> Artifact:
    config, seed = run.study.index, run.study.seed

    def build(folder: Path) -> BuildResult:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from rag.retrieval.encoder_card import require_pair
        from rag.retrieval.recall import RECALL_AT, exact_search, recalls, sample_rows
        from rag.retrieval.recall_sweep import advise, sweep
        from rag.retrieval.vectors import vector_table

        encoder, files, index = open_question_encoder(run), vector_files(corpus), open_index(run, corpus)
        caveat = require_pair(encoder.question_card(), files[0].card, run.study.encoder.allow_mismatch)
        texts = list(_texts(questions))
        sampled = [texts[row] for row in sample_rows(len(texts), config.recall_questions, seed)]
        asked, ks = encoder.encode_questions(sampled), sorted({*RECALL_AT, config.recall_at})
        exact = exact_search(asked, vector_table(files), max(ks), run.progress("blocks"))
        found = _recall_rows(run.study, index, recalls(index, asked, exact, ks))
        points = sweep(index, asked, exact, config.recall_at, config.min_recall)
        # Times go into files that no other stage reads: all that the manifest itself says is equal for equal builds.
        pq.write_table(pa.Table.from_pylist(_sweep_rows(run.study, index, points)), folder / SWEEP_FILE)
        if _below(found):
            advice = advise(points, config.min_recall, index.info.kind)
            (folder / _ADVICE_FILE).write_text(advice, encoding="utf-8")
        return BuildResult({"rows_in": len(texts), "rows_out": len(sampled)}, {"recalls": found, "caveat": caveat})

    return run.stage(
        "recall",
        corpus.name,
        build,
        code=["rag.retrieval.recall_sweep", "rag.retrieval.encoders", "rag.evaluation.statistics", "rag.tasks.table"],
        config={
            "questions": config.recall_questions,
            "recall_at": config.recall_at,
            "min_recall": config.min_recall,
            "allow_mismatch": run.study.encoder.allow_mismatch,
            "encoder": encoder_identity(run, "question"),
            "search": search_identity(run, corpus),
            "seed": seed,
        },
        parents={**corpus.parents(), **{f"questions:{task}": part for task, part in questions.items()}},
        versions=("torch", "transformers", "faiss-cpu"),
    )


def _texts(questions: Mapping[str, Artifact]) -> Iterator[str]:
    from rag.tasks.table import read_questions

    for part in questions.values():
        yield from (question.text for question in read_questions(part.file("questions.parquet"), "test"))


def _recall_rows(study: StudyConfig, index: "PassageIndex", found: "Iterable[Recall]") -> list[dict[str, Any]]:
    from rag.retrieval.index_kinds import search_options

    kind, config = index.info.kind, study.index
    options = {**index.info.options, **search_options(kind, config)}
    return [
        {
            "kind": kind,
            **_recall_row(study, recall),
            "min_recall": config.min_recall if recall.k == config.recall_at else None,
            "parameters_json": options,
        }
        for recall in found
    ]


def _sweep_rows(study: StudyConfig, index: "PassageIndex", points: "Iterable[SweepPoint]") -> list[dict[str, Any]]:
    return [
        {
            "kind": index.info.kind,
            "point": number,
            **{knob: point.options.get(knob) for knob in ("ef_search", "nprobe", "rerank")},
            "configured": point.configured,
            **_recall_row(study, point.recall),
            "min_recall": study.index.min_recall,
            **{name: getattr(point, name) for name in ("single_seconds", "batched_seconds", "index_bytes")},
        }
        for number, point in enumerate(points)
    ]


def _recall_row(study: StudyConfig, recall: "Recall") -> dict[str, Any]:
    from rag.evaluation.statistics import bootstrap_interval

    low, high = bootstrap_interval(recall.per_question, study.seed)
    return {"k": recall.k, "recall": recall.recall, "low": low, "high": high, "n": len(recall.per_question)}


def _below(rows: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The row that is below its bar."""
    return next((row for row in rows if row["min_recall"] is not None and row["recall"] < row["min_recall"]), None)


def _require_recall(run: StudyRun, corpus: Corpus, measured: Artifact) -> None:
    row = _below(measured.facts["recalls"])
    if not row:
        return
    run.rows.write()  # all that was gathered so far is whole, and a failed gate is what people look for
    raise CheckFailed(
        f"the {row['kind']} index of {corpus.name} finds {row['recall']:.3f} ({row['low']:.3f} to {row['high']:.3f}) "
        f"of the exact {row['k']} passages, the study asks for {row['min_recall']}: "
        f"{measured.file(_ADVICE_FILE).read_text(encoding='utf-8')}"
    )
