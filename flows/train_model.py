"""Fine-tune one model of a study on input-output pairs."""

from pathlib import Path

from prefect import flow

from flows.artifacts import Artifact, BuildResult
from flows.corpora import (
    base_generator,
    encoder_identity,
    find_questions,
    open_generator,
    open_question_encoder,
    open_retriever,
    own_corpus,
    passage_fingerprint,
    search_identity,
)
from flows.recording import record_rejects, record_training
from flows.study_run import StudyRun, study_run
from flows.tasks import run_name

# Knobs that cannot change the weights: how often half-done work is kept, and what is used at test time only.
_NOT_OF_TRAINING = {"checkpoint_every", "test_n_docs"}


@flow(name="train-model", flow_run_name=run_name("train model: {study} {model}"))
def train_model(study: str, model: str, overrides: tuple[str, ...] = ()) -> None:
    """Train the model with its corpus and tasks, from the pretrained models or from another one of the study."""
    with study_run(study, overrides) as run:
        trained = fit(run, model)
        record_training(run, model, trained)
        record_rejects(run, trained)


def fit(run: StudyRun, name: str) -> Artifact:
    """One stage: load, train, save."""
    config, corpus = run.study.models[name], own_corpus(run, name)
    start = run.result("model", config.init_from) if config.init_from else base_generator(run)
    asked = find_questions(run, config.tasks)
    has_encoder = corpus is not None and corpus.retriever != "bm25"

    def build(folder: Path) -> BuildResult:
        import json

        from rag.modeling.models import RagModel
        from rag.tasks.table import read_questions
        from rag.training.checkpoint import ModelCard, save_checkpoint
        from rag.training.examples import split_findable, task_examples
        from rag.training.loop import Trainer

        trained = start.folder / "question_encoder"
        encoder = open_question_encoder(run, trained if trained.is_dir() else None) if has_encoder else None
        model = RagModel(config.family, open_generator(start.folder / "generator"), encoder.module if encoder else None)
        generator = run.study.generator
        retriever = open_retriever(run, corpus, encoder) if corpus else None
        trainer = Trainer(
            model.to(run.device), config, generator.layout, generator.max_source_tokens, run.study.seed, retriever
        )
        examples = {
            task: task_examples(task, run.study.tasks[task], read_questions(part.file("questions.parquet"), "train"))
            for task, part in asked.items()
        }
        kept, rejects = split_findable(examples, retriever.finds) if retriever else (examples, [])
        lines = "".join(json.dumps(reject._asdict(), ensure_ascii=False) + "\n" for reject in rejects)
        (folder / "rejects.jsonl").write_text(lines, encoding="utf-8")
        steps = trainer.train(kept, folder, run.progress("steps"))
        card = ModelCard(
            family=config.family,
            retriever=corpus.retriever if corpus else None,
            n_docs=config.n_docs,
            layout=generator.layout,
            max_source_tokens=generator.max_source_tokens,
            encoder=run.study.encoder if has_encoder else None,
            passage_fingerprint=passage_fingerprint(corpus) if corpus else None,
            trained_steps=len(steps),
        )
        save_checkpoint(folder, model, encoder, card)
        pairs = sum(map(len, examples.values()))
        counts = {"rows_in": pairs, "rows_out": len(steps), "rows_rejected": len(rejects)}
        return BuildResult(counts, {"steps": [step._asdict() for step in steps]})

    options = {"prefix", "labels", "train_answers"}
    identity = {
        "model": config.model_dump(exclude=_NOT_OF_TRAINING),
        "order": list(config.tasks),  # of the mixture, where shares are equal
        "generator": run.study.generator.model_dump(include={"layout", "max_source_tokens"}),
        "tasks": {task: run.study.tasks[task].model_dump(include=options) for task in asked},
        "encoder": encoder_identity(run, "question") if has_encoder else None,
        "search": search_identity(run, corpus) if corpus else None,
        "seed": run.study.seed,
    }
    return run.stage(
        "model",
        name,
        build,
        code=["rag.training.loop", "rag.training.checkpoint", "rag.tasks.table", *([corpus.code] if corpus else [])],
        config=identity,
        parents={
            "start": start,
            **(corpus.parents() if corpus else {}),
            **{f"questions:{task}": part for task, part in asked.items()},
        },
        versions=("torch", "transformers", "faiss-cpu"),
    )
