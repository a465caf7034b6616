"""The models of a study: what their training starts from, and how a trained one is opened with its passages."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from flows.artifacts import Artifact, BuildResult
from flows.corpora import Corpus, model_path, open_retriever, passage_fingerprint, row_ids_hash, vector_files
from flows.study_run import StudyRun

if TYPE_CHECKING:
    from rag.modeling.generator import Generator
    from rag.pipeline import Rag
    from rag.retrieval.encoders import Encoder
    from rag.training.checkpoint import Allowed, ModelCard


def start_of(run: StudyRun, name: str) -> Artifact:
    """What the training of a model starts from: another model of the study, a checkpoint, or pretrained parts."""
    config = run.study.models[name]
    if config.init_from:
        return run.result("model", config.init_from)
    return base_checkpoint(run, name, config.checkpoint) if config.checkpoint else base_generator(run)


def base_generator(run: StudyRun) -> Artifact:
    """The pretrained generator as a transformers folder; one that ships as ONNX is converted once."""
    source = model_path(run, run.study.generator.path)

    def build(folder: Path) -> BuildResult:
        from rag.modeling.packaged import convert_onnx_t5, is_packaged_t5

        if is_packaged_t5(source):
            report = convert_onnx_t5(source, folder / "generator")
            return BuildResult({"rows_out": report.tensors}, report._asdict())
        open_generator(source).save(folder / "generator")
        return BuildResult({})

    config = {"weights": run.hashes.sha256(source)}
    code = ["rag.modeling.packaged", "rag.modeling.checkpoint"]
    return run.stage("generator", "base", build, code=code, config=config, versions=("transformers",))


def base_checkpoint(run: StudyRun, name: str, checkpoint: str) -> Artifact:
    """The trained model at ``checkpoint``, a folder or a hub name, as one of openbook's own format."""
    family, source = run.study.models[name].family, model_path(run, checkpoint)

    def build(folder: Path) -> BuildResult:
        from rag.training.hf_checkpoint import import_checkpoint

        card, notes = import_checkpoint(source, folder, family, checkpoint)
        return BuildResult({}, {"trained_steps": card.trained_steps, "notes": notes})

    return run.stage(
        "checkpoint",
        name,
        build,
        code=["rag.training.hf_checkpoint"],
        config={"weights": run.hashes.sha256(source), "name": checkpoint, "family": family},
        versions=("torch", "transformers"),
    )


def require_checkpoints(run: StudyRun) -> None:
    """Read the checkpoints that models start from, now and not after hours, and say what comes with each.

    Raises CheckpointError for one that is damaged, of another family, or scores passages otherwise than the study.
    """
    from rag.training.checkpoint import read_card, require_encoder_options

    for name, config in run.study.models.items():
        if config.checkpoint:
            found = base_checkpoint(run, name, config.checkpoint)
            card = read_card(found.folder)
            require_start(run, name, found.folder, card)
            if config.retriever != "bm25":
                require_encoder_options(card, run.study.encoder)
            for note in (*found.facts["notes"], *_differences(run, name, card)):
                run.terminal.note(f"{name}: {config.checkpoint} {note}")


def require_start(run: StudyRun, name: str, folder: Path, card: "ModelCard") -> None:
    """Refuse a start that is to be tested as it is, and has not learned what is asked of it. Raises CheckpointError."""
    from rag.training.checkpoint import require_labels, require_retriever

    config = run.study.models[name]
    if config.steps == 0 and config.corpus:
        require_retriever(folder, card, config.retriever)
    if config.steps == 0 and (labels := head_labels(run, name)):
        require_labels(folder, card, labels)


def head_labels(run: StudyRun, name: str) -> list[str]:
    """The labels of the one task that a model classifies by a head; none where it has none.

    Sorted: the columns of a head do not follow the order in the study, which is no part of what a model is known by.
    """
    tasks = (run.study.tasks[task] for task in run.study.models[name].tasks)
    return next((sorted(task.labels) for task in tasks if task.classification == "head"), [])


def _differences(run: StudyRun, name: str, card: "ModelCard") -> Iterator[str]:
    """What a checkpoint brings along although the study says something else for its other models."""
    for key in ("layout", "max_source_tokens"):
        if getattr(card, key) != getattr(run.study.generator, key):
            yield f"keeps its own {key} = {getattr(card, key)!r}, whatever [generator] says"
    if card.n_docs != run.study.models[name].n_docs:
        yield f"was made with n_docs = {card.n_docs}; models.{name}.n_docs = {run.study.models[name].n_docs} is used"


def open_generator(folder: Path) -> "Generator":
    """A generator from its folder."""
    from rag.modeling.generator import Generator

    return Generator.load(folder)


class OpenedRag(NamedTuple):
    """A model ready to answer, and what an auditor must know about the passages it answers from."""

    rag: "Rag"
    caveat: str | None


def open_rag(run: StudyRun, name: str, model: Artifact, corpus: Corpus | None) -> OpenedRag:
    """A trained model with the passages it may look things up in.

    Raises CheckpointError where it was trained with others, unless that is allowed: see ``allowed_passages``.
    """
    from rag.pipeline import Rag
    from rag.training.checkpoint import load_checkpoint

    config = run.study.models[name]
    checkpoint = load_checkpoint(
        model.folder,
        config.family,
        corpus.retriever if corpus else None,
        passage_fingerprint(corpus) if corpus else None,
        row_ids_hash(corpus) if corpus else None,
        allowed_passages(run, name, corpus),
    )
    card = checkpoint.card
    checkpoint.model.to(run.device)
    retriever = open_retriever(run, corpus, checkpoint.encoder) if corpus else None
    n_docs = (config.test_n_docs or config.n_docs) if corpus else 1
    rag = Rag(checkpoint.model, card.layout, card.max_source_tokens, n_docs, retriever)
    caveats = [checkpoint.caveat, _pair_caveat(run, checkpoint.encoder, corpus)]
    return OpenedRag(rag, "; ".join(filter(None, caveats)) or None)


def _pair_caveat(run: StudyRun, encoder: "Encoder | None", corpus: Corpus | None) -> str | None:
    """What is wrong with a question encoder of a checkpoint; of the study's own it is said where the index is made."""
    from rag.retrieval.encoder_card import pair_problem

    if encoder is None or corpus is None or encoder.encoder_id == run.study.encoder.path:
        return None
    return pair_problem(encoder.question_card(), vector_files(corpus)[0].card)


def allowed_passages(run: StudyRun, name: str, corpus: Corpus | None) -> "Allowed":
    """What a model may be used with beside the passages that it was trained with.

    Whoever names another corpus than the model's own swaps its index, and means it; the rest is up to the study.
    """
    if run.study.encoder.allow_mismatch:
        return "every mismatch"
    return "other passages" if corpus and corpus.name != run.study.models[name].corpus else "nothing"
