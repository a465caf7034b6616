"""Fine-tune one model of a study on input-output pairs."""

from pathlib import Path
from typing import TYPE_CHECKING

from prefect import flow

from flows.artifacts import Artifact, BuildResult
from flows.corpora import (
    Corpus,
    encoder_identity,
    find_questions,
    open_question_encoder,
    open_retriever,
    own_corpus,
    passage_fingerprint,
    row_ids_hash,
    search_identity,
)
from flows.open_models import allowed_passages, head_labels, open_generator, require_start, start_of
from flows.recording import record_caveat, record_rejects, record_training
from flows.study_run import StudyRun, study_run
from flows.tasks import run_name

if TYPE_CHECKING:
    from rag.modeling.generator import Generator
    from rag.modeling.label_head import LabelHead
    from rag.retrieval.encoders import Encoder
    from rag.training.checkpoint import ModelCard

# Knobs that cannot change the weights: how often half-done work is kept, what is used at test time only, and where
# the model starts, which is known by its content.
_NOT_OF_TRAINING = {"checkpoint_every", "test_n_docs", "sweep_n_docs", "checkpoint"}


@flow(name="train-model", flow_run_name=run_name("train model: {study} {model}"))
def train_model(study: str, model: str, overrides: tuple[str, ...] = ()) -> None:
    """Train the model with its corpus and tasks, from the pretrained models or from another one of the study."""
    with study_run(study, overrides) as run:
        trained = fit(run, model)
        record_training(run, model, trained)
        record_rejects(run, trained)
        if trained.facts["caveat"]:
            record_caveat(run, "checkpoints", f"training of {model}", trained.facts["caveat"])
        if trained.facts["collapsed"]:
            record_caveat(run, "training", model, trained.facts["collapsed"])
            run.terminal.note(f"warning: {model}: {trained.facts['collapsed']}")


def fit(run: StudyRun, name: str) -> Artifact:
    """One stage: load, train, save."""
    config, corpus = run.study.models[name], own_corpus(run, name)
    start = start_of(run, name)
    before = _start_card(run, name, start)
    reads = before or run.study.generator  # a checkpoint's layout and length come with it
    asked = find_questions(run, config.tasks)
    has_encoder = corpus is not None and corpus.retriever != "bm25"

    def build(folder: Path) -> BuildResult:
        import json

        from rag.modeling.models import RagModel
        from rag.tasks.table import read_questions
        from rag.training.checkpoint import GENERATOR, save_checkpoint
        from rag.training.examples import split_findable, task_examples
        from rag.training.loop import Trainer
        from rag.training.monitors import collapsed_retrieval

        if before:
            require_start(run, name, start.folder, before)
        caveats = [_require_continuable(run, name, corpus, before)] if before and has_encoder else []
        if before and before.family != config.family:  # the same weights, which learn on under another likelihood
            caveats.append(f"it starts from a {before.family} model and is trained on as {config.family}")
        encoder = _start_encoder(run, start.folder, before) if has_encoder else None
        generator = open_generator(start.folder / GENERATOR)
        head = _start_head(run, name, start.folder, before, generator)
        model = RagModel(config.family, generator, encoder.module if encoder else None, head)
        retriever = open_retriever(run, corpus, encoder) if corpus else None
        trainer = Trainer(
            model.to(run.device), config, reads.layout, reads.max_source_tokens, run.study.seed, retriever
        )
        examples = {
            task: task_examples(task, run.study.tasks[task], read_questions(part.file("questions.parquet"), "train"))
            for task, part in asked.items()
        }
        kept, rejects = split_findable(examples, retriever.finds) if retriever else (examples, [])
        lines = "".join(json.dumps(reject._asdict(), ensure_ascii=False) + "\n" for reject in rejects)
        (folder / "rejects.jsonl").write_text(lines, encoding="utf-8")
        steps = trainer.train(kept, folder, run.progress("steps"))
        save_checkpoint(folder, model, encoder, _card(run, name, corpus, encoder, before))
        pairs = sum(map(len, examples.values()))
        counts = {"rows_in": pairs, "rows_out": len(steps), "rows_rejected": len(rejects)}
        facts = {
            "steps": [step._asdict() for step in steps],
            "caveat": "; ".join(filter(None, caveats)) or None,
            "as_it_is": not steps,  # the start, under another name
            "collapsed": collapsed_retrieval(steps, config.batch_size),
            "truncated_passages": sum(step.truncated for step in steps),
        }
        return BuildResult(counts, facts)

    options = {"prefix", "labels", "classification", "train_answers"}
    identity = {
        "model": config.model_dump(exclude=_NOT_OF_TRAINING),
        "order": list(config.tasks),  # of the mixture, where shares are equal
        "generator": reads.model_dump(include={"layout", "max_source_tokens"}),
        "allowed": allowed_passages(run, name, corpus) if before else None,  # what of the start may be another's
        "tasks": {task: run.study.tasks[task].model_dump(include=options) for task in asked},
        "encoder": encoder_identity(run, "question") if has_encoder else None,
        "search": search_identity(run, corpus) if corpus else None,
        "seed": run.study.seed,
    }
    return run.stage(
        "model",
        name,
        build,
        code=[
            "rag.training.loop",
            "rag.training.monitors",
            "rag.training.checkpoint",
            "rag.tasks.table",
            *([corpus.code] if corpus else []),
        ],
        config=identity,
        parents={
            "start": start,
            **(corpus.parents() if corpus else {}),
            **{f"questions:{task}": part for task, part in asked.items()},
        },
        versions=("torch", "transformers", "faiss-cpu"),
    )


def _start_card(run: StudyRun, name: str, start: Artifact) -> "ModelCard | None":
    """The card of a start that was trained already; pretrained parts have none."""
    if not (run.study.models[name].init_from or run.study.models[name].checkpoint):
        return None  # said without the half second that torch takes to import
    from rag.training.checkpoint import read_card

    return read_card(start.folder)


def _start_encoder(run: StudyRun, start: Path, before: "ModelCard | None") -> "Encoder":
    """The question encoder that the start has, or else the study's own."""
    from rag.training.checkpoint import QUESTION_ENCODER

    if before is None or before.encoder is None:
        return open_question_encoder(run)
    return open_question_encoder(run, start / QUESTION_ENCODER, before.encoder.path)


def _start_head(
    run: StudyRun, name: str, start: Path, before: "ModelCard | None", generator: "Generator"
) -> "LabelHead | None":
    """The head of the one task that classifies by one: the start's, if it is of the same labels, or a new one."""
    from rag.modeling.label_head import LabelHead
    from rag.training.checkpoint import load_head

    labels = head_labels(run, name)
    found = load_head(start, before, generator) if before else None
    if found and labels in ([], sorted(found.labels)):
        return found
    return LabelHead(labels, generator.config.d_model) if labels else None


def _require_continuable(run: StudyRun, name: str, corpus: Corpus | None, before: "ModelCard") -> str | None:
    """Refuse a start whose question encoder learned another way of scoring; says what the study allows of that."""
    from rag.training.checkpoint import require_encoder_options, require_passages

    require_encoder_options(before, run.study.encoder)
    if corpus is None or before.passage_fingerprint is None:  # then only the pair of encoders can tell
        return None
    return require_passages(before, passage_fingerprint(corpus), None, allowed_passages(run, name, corpus))


def _card(
    run: StudyRun, name: str, corpus: Corpus | None, encoder: "Encoder | None", before: "ModelCard | None"
) -> "ModelCard":
    """What the model is; one that took no step belongs to the passages that its start belonged to."""
    from rag.training.checkpoint import ModelCard

    config, own = run.study.models[name], run.study.encoder
    trained = {"path": encoder.encoder_id, "context_path": own.passage_path} if encoder else {}
    reads = before or run.study.generator
    fingerprint = row_ids = None
    if corpus and before and config.steps == 0:
        fingerprint, row_ids = before.passage_fingerprint, before.row_ids_sha256
    elif corpus:
        fingerprint, row_ids = passage_fingerprint(corpus), row_ids_hash(corpus)
    return ModelCard(
        family=config.family,
        retriever=corpus.retriever if corpus else None,
        n_docs=config.n_docs,
        layout=reads.layout,
        max_source_tokens=reads.max_source_tokens,
        encoder=own.model_copy(update=trained) if encoder else None,
        passage_fingerprint=fingerprint,
        row_ids_sha256=row_ids,
        trained_steps=(before.trained_steps if before else 0) + config.steps,
    )
