"""One run of one study, as all its flows share it: configuration, artifacts, results, terminal.

A run is named by what can change its results, so the same study called again, after a crash or a year, goes on
with the same run; each call of the command is an invocation of it.
"""

import json
import os
import platform
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from flows.artifacts import Artifact, ArtifactStore, BuildResult, Identity, Outcome
from flows.code_fingerprint import code_fingerprint
from flows.input_hashes import InputHashes
from flows.manifest import json_sha256
from flows.paths import is_remote, resolve_path
from flows.prefect_progress import prefect_progress
from flows.run_rows import RunRows
from flows.settings import Settings, compute_device, limit_threads, load_settings, prepare_workspace
from flows.terminal import ProgressCallable, Terminal
from rag.config import StudyConfig, read_study
from rag.errors import ConfigError
from rag.files import file_sha256
from reports.runs import StageKey
from reports.store import Store

T = TypeVar("T")
STUDIES = Path(__file__).parent / "studies"
_LIBRARIES = ("torch", "transformers", "faiss-cpu", "numpy", "duckdb", "prefect", "great-expectations", "pyarrow")
_ALL_CODE = (
    "rag.predictions", "rag.pipeline", "rag.training.loop", "rag.training.checkpoint", "rag.training.hf_checkpoint",
    "rag.modeling.packaged",
    "rag.corpus.ingest.source", "rag.corpus.summary", "rag.corpus.changes", "rag.corpus.coverage",
    "rag.tasks", "rag.tasks.table", "rag.evaluation.compare", "rag.evaluation.score", "rag.evaluation.score_files",
    "rag.evaluation.swap", "rag.retrieved", "rag.retrieval.encode",
    "rag.retrieval.index_update", "rag.retrieval.recall_sweep", "rag.retrieval.known_items", "rag.retrieval.bm25",
    "rag.retrieval.hybrid",
    "rag.demo.world", "data_checks.passages", "data_checks.questions", "data_checks.index", "data_checks.runner",
    "data_checks.results", "data_checks.data_docs",
)  # fmt: skip
_ACTIVE: ContextVar["StudyRun | None"] = ContextVar("active study run", default=None)
# Whether somebody can look at what Prefect shows: not so with the embedded server, which ends with the command.
WATCHED: ContextVar[bool] = ContextVar("a server is watched", default=True)


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


def find_study(study: str) -> Path:
    """The TOML file of a study: a path, or the name of one that comes with openbook.

    Raises ConfigError where there is none, naming those that there are.
    """
    path = Path(study)
    if path.suffix == ".toml" or path.is_file():
        return path
    packaged = STUDIES / f"{study}.toml"
    if packaged.is_file():
        return packaged
    known = ", ".join(sorted(found.stem for found in STUDIES.glob("*.toml")))
    raise ConfigError(f"no study {study!r}: give a TOML file, or one of: {known}")


@dataclass
class StudyRun:
    """A study with the places its flows read and write."""

    reference: str
    overrides: tuple[str, ...]
    study: StudyConfig
    folder: Path  # of the study file: relative paths in it start here
    settings: Settings
    artifacts: ArtifactStore
    results: Store
    terminal: Terminal
    invocation: str = field(default_factory=lambda: f"{now():%Y%m%dT%H%M%S}-{secrets.token_hex(2)}")
    computed: int = 0  # stages that this invocation had to compute
    found: int = 0  # stages whose results were there already
    started: datetime = field(default_factory=now)
    watched: bool = field(default_factory=WATCHED.get)
    _prefect_progress: ProgressCallable | None = None
    _made: dict[tuple[str, str], Artifact] = field(default_factory=dict)

    @cached_property
    def run_id(self) -> str:
        """Study and hash of its configuration, its data, its code and the versions of what computes it."""
        identity = {
            "config": self.config_json,
            "inputs": self._inputs(),
            "code": code_fingerprint(_ALL_CODE),
            "versions": library_versions(_LIBRARIES),
        }
        return f"{self.study.name}-{json_sha256(identity)[:10]}"

    def _inputs(self) -> dict[str, Any]:
        """The content of the dumps, task files and facts that the study names; the demo's are code and tables."""
        tasks = [getattr(task, split) for task in self.study.tasks.values() for split in ("train", "dev", "test")]
        facts = [self.study.swap.facts] if self.study.swap else []
        named = [*(source.path for source in self.study.sources.values()), *filter(None, tasks), *facts]
        files = {text: self.content_identity(text) for text in named if not text.startswith("demo:")}
        return {"files": files, "demo": _demo_tables() if len(files) < len(set(named)) else {}}

    @property
    def config_json(self) -> dict[str, Any]:
        """The resolved configuration, defaults included."""
        return self.study.model_dump(mode="json")

    def stage(
        self,
        stage: str,
        name: str,
        build: Callable[[Path], BuildResult],
        *,
        code: Sequence[str],
        config: Mapping[str, Any] | None = None,
        parents: Mapping[str, Artifact] | None = None,
        versions: Sequence[str] = (),
    ) -> Artifact:
        """Run one stage, or find its result, as a Prefect task; its row in the database says which and why."""
        from flows.tasks import build_stage

        identity = Identity(code_fingerprint(code), config or {}, parents or {}, library_versions(versions))
        started = now()

        def work() -> Outcome:
            return self.artifacts.get_or_build(stage, name, identity=identity, build=self._shown(stage, name, build))

        with self.terminal.stage(stage, name) as line:
            outcome: Outcome = build_stage(stage, name, work)
            line.finish(outcome)
        if self._made.get((stage, name)) == outcome.artifact:
            return outcome.artifact  # asked for a second time in this call: its row says what the first time cost
        self._made[stage, name] = outcome.artifact
        self.found += outcome.cache_hit
        self.computed += not outcome.cache_hit
        self._record(outcome, started)
        return outcome.artifact

    def result(self, stage: str, name: str) -> Artifact:
        """What a stage made in this call, or, where a flow is called alone, in the run's latest call.

        Raises ConfigError where there is none.
        """
        if (stage, name) in self._made:
            return self._made[stage, name]
        wanted = self.rows.latest.get(StageKey(stage, name))
        found = [one for one in self.artifacts.artifacts(stage) if one.fingerprint == wanted]
        if not found:
            options = "".join(f" --set {override}" for override in self.overrides)
            raise ConfigError(
                f"no finished {stage} {name} of this study with these options and this version of openbook (run "
                f"{self.run_id}); make it, taking over what is there, with: openbook run {self.reference}{options}"
            )
        return found[0]

    def made(self, stage: str, name: str) -> Artifact | None:
        """What a stage made or found in this call; None where it did not run."""
        return self._made.get((stage, name))

    @cached_property
    def rows(self) -> RunRows:
        """The rows of this run on their way into the database."""
        return RunRows(self.results, self.run_id)

    def _record(self, outcome: Outcome, started: datetime) -> None:
        artifact, counts = outcome.artifact, outcome.artifact.counts
        fingerprint = artifact.fingerprint
        if not self.rows.knows(artifact):
            lineage = [
                {"parent_fingerprint": parent.fingerprint, "role": role}
                for role, parent in artifact.manifest.parents.items()
            ]
            self.rows.replace("artifacts", {"fingerprint": fingerprint}, [_artifact_row(artifact, self.artifacts.root)])
            self.rows.replace("lineage", {"child_fingerprint": fingerprint}, lineage)
            self.rows.replace("run_artifacts", {"run_id": self.run_id, "fingerprint": fingerprint}, [{}])
        key = {"run_id": self.run_id, "invocation_id": self.invocation, "stage": artifact.stage, "name": artifact.name}
        row = {
            "fingerprint": fingerprint,
            "status": "complete",
            "cache_hit": outcome.cache_hit,
            "reason": outcome.reason,
            "seconds": outcome.seconds,
            "started_at": started,
            **{column: counts.get(column) for column in ("rows_in", "rows_out", "rows_rejected")},
        }
        self.rows.replace("stage_runs", key, [row])

    def path(self, text: str) -> Path:
        """A path of the study file: plain, ``package:`` or ``demo:``."""
        demo = self.demo_world.folder if text.startswith("demo:") else None
        return resolve_path(text, study_folder=self.folder, demo=demo)

    def content_identity(self, text: str) -> dict[str, str]:
        """What names the content of a file or folder; of one that is fetched, its address, which says the date."""
        return {"address": text} if is_remote(text) else {"sha256": self.hashes.sha256(self.path(text))}

    def file_identity(self, text: str) -> dict[str, str]:
        """What names the content of an input: its sha256, whatever its path is."""
        path = self.path(text)
        if not path.is_file():
            raise ConfigError(f"no file at {path} (the study says {text!r})")
        return {"sha256": self.hashes.sha256(path)}

    @cached_property
    def hashes(self) -> InputHashes:
        """The hashes of input files, remembered between calls."""
        return InputHashes(self.artifacts.root / ".input-hashes.json")

    @property
    def device(self) -> str:
        """Where models compute: ``cuda`` where the settings allow it and there is one."""
        return compute_device(self.settings)

    @cached_property
    def demo_world(self) -> Artifact:
        """The dumps and task files that the demo writes itself, from its tables of facts."""

        def build(folder: Path) -> BuildResult:
            from rag.demo.world import write_demo_world

            report = write_demo_world(folder)
            return BuildResult({"rows_out": sum(report.pages.values())}, report._asdict())

        return self.stage("world", "demo", build, code=["rag.demo.world"], config={"facts": _demo_tables()})

    def progress(self, unit: str) -> ProgressCallable:
        """A progress callable for a loop of the stage that is running: on the terminal, and in the Prefect UI."""
        bar, shown = self.terminal.progress(unit), self._prefect_progress

        def progress(items: Iterable[T], /) -> Iterable[T]:
            return bar(shown(items)) if shown else bar(items)

        return progress

    def _shown(self, stage: str, name: str, build: Callable[[Path], BuildResult]) -> Callable[[Path], BuildResult]:
        """The build with a progress artifact around it where a server is watched."""
        if not self.watched:
            return build

        def watched_build(folder: Path) -> BuildResult:
            with prefect_progress(f"{stage} {name}") as self._prefect_progress:
                result = build(folder)
            self._prefect_progress = None
            return result

        return watched_build


@contextmanager
def study_run(study: str, overrides: Sequence[str] = ()) -> Iterator[StudyRun]:
    """The run that is open for this study, or a new one; whoever opens it closes it.

    The run is marked running and complete only by ``run_study``; a flow that is called alone leaves the mark as it
    is. An exception marks the run failed, with its message.
    """
    active = _ACTIVE.get()
    if active and (active.reference, active.overrides) == (study, tuple(overrides)):
        yield active
        active.rows.write()
        return
    run = open_run(study, tuple(overrides))
    token = _ACTIVE.set(run)
    try:
        yield run
        run.rows.write()
    except BaseException as error:
        run.rows.discard()
        mark(run, "failed", str(error) or type(error).__name__)
        raise
    finally:
        _ACTIVE.reset(token)
        run.results.publish()


def open_run(study: str, overrides: tuple[str, ...] = ()) -> StudyRun:
    """The run of a study with nothing marked or written yet."""
    path = find_study(study)
    settings = load_settings()
    prepare_workspace(settings)
    limit_threads(settings)
    terminal = Terminal.current()
    return StudyRun(
        reference=study,
        overrides=overrides,
        study=read_study(path, overrides),
        folder=path.parent,
        settings=settings,
        artifacts=ArtifactStore(settings.artifacts_folder, notify=terminal.note),
        results=Store(settings.database_folder),
        terminal=terminal,
    )


def mark(run: StudyRun, status: str, error: str | None = None) -> None:
    """Write the run's row with its status."""
    row = {
        "study": run.study.name,
        "title": run.study.title,
        "description": run.study.description.strip(),
        "seed": run.study.seed,
        "config_json": run.config_json,
        "config_hash": json_sha256(run.config_json),
        "status": status,
        "started_at": run.started,
        "finished_at": None if status == "running" else now(),
        "error": error,
        "machine_json": _machine(),
        "versions_json": {"python": platform.python_version(), **library_versions(_LIBRARIES)},
    }
    run.rows.replace("runs", {"run_id": run.run_id}, [row])
    run.rows.write()


def library_versions(libraries: Sequence[str]) -> dict[str, str]:
    """The installed versions of some distributions.

    >>> sorted(library_versions(["numpy"]))
    ['numpy']
    """
    return {library: version(library) for library in libraries}


def _demo_tables() -> dict[str, str]:
    import rag.demo

    return {table.name: file_sha256(table) for table in sorted(Path(rag.demo.__file__).parent.glob("*.csv"))}


def _machine() -> dict[str, Any]:
    import psutil

    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
    }


def _artifact_row(artifact: Artifact, root: Path) -> dict[str, Any]:
    manifest = artifact.manifest
    return {
        "stage": artifact.stage,
        "name": artifact.name,
        "created_at": artifact.created_at,
        "path": str(artifact.folder.relative_to(root.parent)),
        "bytes": sum(record.size for record in manifest.files),
        "manifest_json": json.loads(manifest.model_dump_json()),
    }
