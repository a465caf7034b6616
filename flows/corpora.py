"""What the later stages need of a corpus and its models, from the artifacts that hold them.

``Corpus`` names the artifacts; the ``open_`` functions load them, inside builds only, so that a study whose
results are all there loads no model.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flows.artifacts import Artifact, BuildResult
from flows.paths import resolve_model
from flows.study_run import StudyRun

if TYPE_CHECKING:
    from rag.corpus.passages import PassageTable
    from rag.modeling.generator import Generator
    from rag.pipeline import Rag
    from rag.retrieval.encoders import Encoder
    from rag.retrieval.retriever import Retriever


@dataclass(frozen=True)
class Corpus:
    """A passage index with what it was built from; sources in the study's order."""

    name: str
    passages: tuple[Artifact, ...]
    vectors: tuple[Artifact, ...]
    index: Artifact

    def parents(self) -> dict[str, Artifact]:
        """The artifacts by role, for the lineage of whatever is made with this corpus."""
        sources = {f"passages:{part.name}": part for part in self.passages}
        return {**sources, **{f"vectors:{part.name}": part for part in self.vectors}, f"index:{self.name}": self.index}


def find_corpus(run: StudyRun, name: str) -> Corpus:
    """A corpus of the study with what its stages made; raises ConfigError where they have not run."""
    sources = run.study.corpora[name]
    return Corpus(
        name,
        tuple(run.result("passages", source) for source in sources),
        tuple(run.result("vectors", source) for source in sources),
        run.result("index", f"{name}-{run.study.index.kind}"),
    )


def own_corpus(run: StudyRun, model: str) -> Corpus | None:
    """The corpus that a model is trained and tested with; None for a closed-book one."""
    name = run.study.models[model].corpus
    return find_corpus(run, name) if name else None


def find_questions(run: StudyRun, tasks: Iterable[str]) -> dict[str, Artifact]:
    """The questions of some tasks, by name."""
    return {task: run.result("questions", task) for task in tasks}


def open_passages(corpus: Corpus) -> "PassageTable":
    """The passages of all sources, one after the other."""
    from rag.corpus.passages import PassageTable

    return PassageTable.load([part.folder for part in corpus.passages])


def open_retriever(corpus: Corpus) -> "Retriever":
    """The index with its passages, after checking that they belong together."""
    from rag.retrieval.index import PassageIndex
    from rag.retrieval.retriever import Retriever
    from rag.retrieval.vectors import VectorFile, hash_row_ids

    passages = open_passages(corpus)
    files = [VectorFile.open(part.folder) for part in corpus.vectors]
    ids = hash_row_ids(passage_id for chunk in passages.passage_ids.chunks for passage_id in chunk.to_pylist())
    encoder = files[0].encoder_fingerprint
    index = PassageIndex.load(
        corpus.index.folder, ntotal=len(passages), encoder_fingerprint=encoder, row_ids_sha256=ids, check_bytes=False
    )
    return Retriever(index, passages, [file.vectors for file in files])


def passage_fingerprint(corpus: Corpus) -> str:
    """Which context encoder the corpus was encoded with."""
    from rag.retrieval.vectors import VectorFile

    return VectorFile.open(corpus.vectors[0].folder).encoder_fingerprint


def model_path(run: StudyRun, text: str) -> Path:
    """The folder of a model that the study names."""
    demo = run.demo_world.folder if text.startswith("demo:") else None
    return resolve_model(text, study_folder=run.folder, demo=demo)


def encoder_identity(run: StudyRun, side: str) -> dict[str, object]:
    """What decides the vectors of one side: ``question`` or ``passage``."""
    config = run.study.encoder
    path = config.path if side == "question" or not config.context_path else config.context_path
    own = {"question": ("max_question_tokens", "score_scale"), "passage": ("max_passage_tokens",)}[side]
    options = {name: getattr(config, name) for name in ("pooling", "normalize", *own)}
    return {**options, "weights": run.hashes.sha256(model_path(run, path))}


def open_question_encoder(run: StudyRun) -> "Encoder":
    """The question encoder as it was before any training here."""
    from rag.retrieval.encoders import Encoder

    return Encoder.load(model_path(run, run.study.encoder.path), run.study.encoder)


def open_context_encoder(run: StudyRun) -> "Encoder":
    """The frozen encoder of the passages."""
    from rag.retrieval.encoders import Encoder

    config = run.study.encoder
    return Encoder.load(model_path(run, config.context_path or config.path), config)


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


def open_generator(folder: Path) -> "Generator":
    """A generator from its folder."""
    from rag.modeling.generator import Generator

    return Generator.load(folder)


def open_rag(run: StudyRun, name: str, model: Artifact, corpus: Corpus | None) -> "Rag":
    """A trained model with the passages it may look things up in."""
    from rag.pipeline import Rag
    from rag.training.checkpoint import load_checkpoint

    config, generator = run.study.models[name], run.study.generator
    fingerprint = passage_fingerprint(corpus) if corpus else None
    checkpoint = load_checkpoint(model.folder, config.family, fingerprint)
    checkpoint.model.to(run.device)
    retriever = open_retriever(corpus) if corpus else None
    n_docs = (config.test_n_docs or config.n_docs) if corpus else 1
    return Rag(checkpoint.model, generator.layout, generator.max_source_tokens, n_docs, checkpoint.encoder, retriever)
