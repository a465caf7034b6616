"""The science of a study as frozen models: what is computed, never where or how fast.

Defaults are the paper's (Lewis et al. 2020, appendix A and D, and DPR's index settings); whatever the paper
leaves open says so. An unknown key is an error that names the nearest known one. Settings of the machine
(workspace, device, threads) live in ``flows.settings``; they cannot change a result.
"""

import difflib
import tomllib
from collections import Counter
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, Field, ValidationError, model_validator

from rag.errors import ConfigError
from rag.model_config import ModelConfig
from rag.retrieval_config import (
    Bm25Config,
    EncoderConfig,
    HybridConfig,
    IndexConfig,
    IndexKind,
    RetrievalConfig,
    RetrieverKind,
)
from rag.source_config import Frozen, PassageConfig, SourceConfig, SourceFormat
from rag.task_config import TaskConfig

__all__ = [
    "Bm25Config",
    "EncoderConfig",
    "ExpectedValue",
    "GeneratorConfig",
    "HybridConfig",
    "IndexConfig",
    "IndexKind",
    "ModelConfig",
    "PassageConfig",
    "RetrievalConfig",
    "RetrieverKind",
    "SourceConfig",
    "SourceFormat",
    "StudyConfig",
    "SwapConfig",
    "TaskConfig",
    "parse_study",
    "read_study",
]


class GeneratorConfig(Frozen):
    """The sequence-to-sequence model p(y|x,z) and how its input is laid out."""

    path: str = "facebook/bart-large"
    layout: str = "{title} / {text} // {question}"  # as the public RAG checkpoints expect it
    max_source_tokens: int = Field(300, ge=16)  # only the passage text is ever cut to fit

    @model_validator(mode="after")
    def _layout_has_its_parts(self) -> "GeneratorConfig":
        missing = [part for part in ("{title}", "{text}", "{question}") if self.layout.count(part) != 1]
        if missing:
            raise ValueError(f"layout must hold each of {{title}}, {{text}} and {{question}} once; check {missing}")
        return self


class SwapConfig(Frozen):
    """The index swap: the same questions with each index, scored against the answers of each date."""

    model: str
    facts: str  # a CSV of tenures: position, country, holder, aliases, since, until
    template: str = "Who is {position}?"  # the paper's
    before_corpus: str
    before_date: date
    after_corpus: str
    after_date: date


class ExpectedValue(Frozen):
    """A value that a cell of the report should have, with where it comes from."""

    value: float
    tolerance: float = Field(ge=0)
    source: str


class StudyConfig(Frozen):
    """A whole study; one TOML file."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,40}$")
    title: str
    description: str = ""
    seed: int = 0
    sources: dict[str, SourceConfig]
    corpora: dict[str, tuple[str, ...]]  # a passage index -> the sources it holds
    passages: PassageConfig = PassageConfig()
    encoder: EncoderConfig = EncoderConfig()
    generator: GeneratorConfig = GeneratorConfig()
    index: IndexConfig = IndexConfig()
    bm25: Bm25Config = Bm25Config()
    hybrid: HybridConfig = HybridConfig()
    retrieval: RetrievalConfig = RetrievalConfig()
    tasks: dict[str, TaskConfig]
    models: dict[str, ModelConfig]
    swap: SwapConfig | None = None
    expected: dict[str, ExpectedValue] = Field({})  # "model/task/metric" -> value

    @model_validator(mode="after")
    def _names_resolve(self) -> "StudyConfig":
        for corpus, sources in self.corpora.items():
            _known(f"corpora.{corpus}", sources, self.sources)
        ingested: list[str] = []
        for name, source in self.sources.items():
            _known(f"sources.{name}.previous", [source.previous] if source.previous else [], self.sources)
            if source.previous and source.previous not in ingested:
                raise ValueError(f"sources.{name}.previous = {source.previous!r} must name one that stands before it")
            ingested.append(name)
        earlier: list[str] = []
        for name, model in self.models.items():
            if model.init_from in self.models and model.init_from not in earlier:
                raise ValueError(
                    f"models.{name}.init_from = {model.init_from!r} must name a model that stands before it"
                )
            if model.init_from in earlier and model.steps == 0 and model.family != self.models[model.init_from].family:
                raise ValueError(
                    f"models.{name} is {model.family} and takes no step from {model.init_from!r}, which was trained as "
                    f"{self.models[model.init_from].family}; give it steps, or the same family"
                )
            earlier.append(name)
            _known(f"models.{name}.tasks", model.tasks, self.tasks)
            heads = [task for task in model.tasks if self.tasks[task].classification == "head"]
            if len(heads) > 1:
                raise ValueError(f"models.{name} has one head at most; classification = 'head' is set for {heads}")
            sampled = [task for task in model.tasks if self.tasks[task].decoding == "sample"]
            if sampled and model.family == "rag-sequence":
                raise ValueError(
                    f"tasks.{sampled[0]}.decoding = 'sample' draws tokens from the mixture of all passages, which "
                    f"models.{name} of family rag-sequence has not; leave it out or train a rag-token model"
                )
            _known(f"models.{name}.corpus", [model.corpus] if model.corpus else [], self.corpora)
            _known(f"models.{name}.init_from", [model.init_from] if model.init_from else [], self.models)
        if self.swap:
            _known("swap.model", [self.swap.model], self.models)
            _known("swap", [self.swap.before_corpus, self.swap.after_corpus], self.corpora)
            if self.swap.before_corpus == self.swap.after_corpus:
                raise ValueError(f"swap needs two corpora; both are {self.swap.before_corpus!r}")
            model = self.models[self.swap.model]
            if not model.corpus or not any(self.tasks[task].reader == "open-qa" for task in model.tasks):
                raise ValueError(f"swap.model = {self.swap.model!r} must be a RAG model with an open-qa task")
        return self

    @model_validator(mode="after")
    def _predictions_have_names_of_their_own(self) -> "StudyConfig":
        """A task "nq.5" would be stored under the name that task "nq" has in a sweep with 5 passages."""
        names: Counter[str] = Counter()
        for model, config in self.models.items():
            for task in config.tasks:
                dev = [".dev"] if self.tasks[task].calibrate else []
                swept = [f".{n_docs}" for n_docs in {*config.sweep_n_docs}]
                names.update(f"{model}.{task}{ending}" for ending in ["", *dev, *swept])
        repeated = [name for name, count in names.items() if count > 1]
        if repeated:
            raise ValueError(
                f"two sets of predictions would be called {repeated[0]!r}: a number that ends it is of sweep_n_docs, "
                "dev is of calibrate; give the task or the model another name"
            )
        return self

    @model_validator(mode="after")
    def _fewer_passages_are_the_first_of_more(self) -> "StudyConfig":
        """A sweep asks once, for the most; an approximate search that looks further for more could find others."""
        knobs = {"hnsw": "index.ef_search", "auto": "index.ef_search and index.rerank"}
        limits = {
            "dense": (self.index.steady_n_docs, knobs.get(self.index.kind, "index.rerank")),
            "bm25": (None, ""),
            "hybrid": (self.hybrid.candidates, "hybrid.candidates"),
        }
        for name, model in self.models.items():
            limit, knob = limits[model.retriever]
            most = max(model.sweep_n_docs, default=0)
            if limit is not None and most > limit:
                raise ValueError(
                    f"models.{name}.sweep_n_docs asks for {most} passages, and only up to {limit} are fewer sure to be "
                    f"the first of more; raise {knob} by {most - limit} or more"
                )
        return self


def _known(where: str, names: Any, known: Mapping[str, Any]) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{where} names {name!r}, which the study does not define{_nearest(name, known)}")


def _nearest(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(sorted(known))}"


def read_study(path: Path, overrides: tuple[str, ...] = ()) -> StudyConfig:
    """The study of a TOML file, with ``key.key=value`` overrides applied.

    Raises ConfigError with the offending key, its value and the nearest known key.
    """
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"cannot read the study {path}: {error.strerror}; give a study name or a TOML file"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    for override in overrides:
        _apply_override(tree, override)
    return parse_study(tree, str(path))


def parse_study(tree: Mapping[str, Any], where: str = "study") -> StudyConfig:
    """The study of nested mappings.

    >>> parse_study({"name": "x", "sedd": 3})
    Traceback (most recent call last):
    rag.errors.ConfigError: study: unknown key 'sedd'; did you mean 'seed'?
    """
    try:
        return StudyConfig.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(f"{where}: {_first_problem(error)}") from error


def _apply_override(tree: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set takes key=value, not {override!r}; for example --set models.rag-token.steps=10")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *parents, last = key.strip().split(".")
    node = tree
    for parent in parents:
        child = node.setdefault(parent, {})
        if not isinstance(child, dict):
            raise ConfigError(f"--set {override}: {parent!r} holds a value, not a table of keys")
        node = child
    node[last] = value


def _first_problem(error: ValidationError) -> str:
    """The one problem a person should mend first; an unknown key before what may follow from it."""
    problems = sorted(error.errors(include_url=False), key=lambda problem: problem["type"] != "extra_forbidden")
    problem = problems[0]
    location = [str(part) for part in problem["loc"]]
    if problem["type"] == "extra_forbidden":
        known = _fields_at(location[:-1])
        return f"unknown key {'.'.join(location)!r}{_nearest(location[-1], known)}"
    if problem["type"] == "missing":
        return f"the key {'.'.join(location)!r} is missing"
    message = problem["msg"].removeprefix("Value error, ")
    value = "" if problem["type"] == "value_error" else f" = {problem['input']!r}"
    where = f"{'.'.join(location)}{value}: " if location else ""
    return f"{where}{message}"


def _fields_at(location: list[str]) -> list[str]:
    """The known keys of the table at ``location`` inside a study."""
    model: type[BaseModel] = StudyConfig
    for part in location:
        field = model.model_fields.get(part)
        if field is None:
            continue  # a name of the user's own, below a table of named things
        candidates = [field.annotation, *get_args(field.annotation)]
        model = next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), model)
    return list(model.model_fields)
