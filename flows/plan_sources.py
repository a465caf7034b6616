"""How large the sources of a study are, before anything starts, and what of the study lies in the workspace already."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from flows.artifacts import Artifact, ArtifactStore
from flows.input_hashes import InputHashes
from flows.paths import is_remote, local_model, resolve_path
from flows.settings import Settings
from flows.sources import remote_files
from rag.config import SourceConfig, StudyConfig
from rag.errors import ConfigError, DataError, ResourceError

_PSGS_BYTES = {".gz": 4_690_000_000, ".tsv": 13_569_339_442}  # of the published file
_FAR = 1.3  # times its size: another file
_ASSUMED_BYTES = {"enwiki": 24_000_000_000}  # where the server cannot be asked
_OF_A_SOURCE = ("format", "dump_job", "until", "expected_rows", "max_passages_per_page", "sha1")


class SourceSize(NamedTuple):
    """One source: its files and its passages, as far as they are known."""

    files: tuple[tuple[str, int], ...]  # name and bytes
    fetched: bool  # they lie on this machine
    rows: int | None  # passages; None: not known yet
    at_least: int  # rows that are sure
    basis: str
    passages: Artifact | None = None  # where they are cut already

    @property
    def file_bytes(self) -> int:
        """All files together."""
        return sum(size for _, size in self.files)


class Workspace:
    """What of a study lies in the workspace already; reads manifests, and no input."""

    def __init__(self, store: ArtifactStore, study: StudyConfig, folder: Path) -> None:
        self.store = store
        self.study = study
        self.folder = folder  # of the study file

    def local_files(self, config: SourceConfig) -> tuple[tuple[str, int], ...] | None:
        """Name and bytes of the files of a source on this machine; None where they are not here.

        Raises ConfigError for a path that leads nowhere, where only the path says what the source holds.
        """
        if config.path.startswith("demo:"):
            worlds = sorted(self.store.artifacts("world"), key=lambda one: one.created_at)
            return tuple(_sizes(worlds[-1].folder / config.path.removeprefix("demo:"))) if worlds else None
        if is_remote(config.path):
            dumps = [one for one in self.store.artifacts("dump") if one.manifest.config.get("path") == config.path]
            return tuple((file.path, file.size) for file in dumps[-1].manifest.files) if dumps else None
        try:
            return tuple(_sizes(resolve_path(config.path, study_folder=self.folder, demo=None)))
        except ConfigError:
            if config.format == "psgs":
                return None  # one published file, whose size everybody knows
            raise

    def passages(self, source: str, files: tuple[tuple[str, int], ...] | None) -> Artifact | None:
        """The passages that were cut from these files with the study's options; the newest."""
        config = self.study.sources[source]
        wanted = {
            **self.study.passages.model_dump(mode="json"),
            **config.model_dump(mode="json", include=set(_OF_A_SOURCE)),
            "source": source,
        }
        found = [
            one
            for one in self.store.artifacts("passages")
            if one.name == source
            and all(one.manifest.config.get(key) == value for key, value in wanted.items())
            and _is_of(one, files)
        ]
        return max(found, key=lambda one: one.created_at, default=None)

    def vectors(self, passages: Artifact | None) -> Artifact | None:
        """The vectors of these passages by the study's encoder."""
        encoder = self.study.encoder
        found = self._made_of("vectors", [passages], encoder.model_dump(mode="json"))
        model = local_model(encoder.passage_path, study_folder=self.folder, demo=None)
        hashes = InputHashes(self.store.root / ".input-hashes.json")
        return next((one for one in found if model and one.manifest.config["weights"] == hashes.sha256(model)), None)

    def index(self, corpus: str, vectors: Sequence[Artifact | None]) -> Artifact | None:
        """The index of these vectors, of the kind and with the options of the study."""
        options = self.study.index.model_dump(mode="json", exclude={"kind"})
        found = self._made_of("index", vectors, options)
        wanted = self.study.index.kind
        return next((one for one in found if one.name == corpus and wanted in ("auto", one.facts["kind"])), None)

    def bm25(self, corpus: str, passages: Sequence[Artifact | None]) -> Artifact | None:
        """The BM25 index of these passages."""
        found = self._made_of("bm25", passages, self.study.bm25.model_dump(mode="json", exclude={"score_scale"}))
        return next((one for one in found if one.name == corpus), None)

    def _made_of(self, stage: str, parents: Sequence[Artifact | None], config: Mapping[str, Any]) -> list[Artifact]:
        """What a stage made of just these, whose configuration says nothing else than ``config`` does."""
        wanted = {parent.fingerprint for parent in parents if parent}
        return [
            one
            for one in (self.store.artifacts(stage) if all(parents) else ())
            if wanted <= {parent.fingerprint for parent in one.manifest.parents.values()}
            and all(one.manifest.config.get(key, value) == value for key, value in config.items() if value is not None)
        ]

    def partial_bytes(self, stage: str, name: str) -> int:
        """What a stage that was stopped has left to go on from."""
        folders = self.store.root.glob(f"{stage}/{name}-*.partial")
        return sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())


def _is_of(passages: Artifact, files: tuple[tuple[str, int], ...] | None) -> bool:
    """Whether the passages were cut from files of these sizes; a folder's files are not listed, and are believed."""
    listed = {(str(file["name"]).rpartition("/")[2], file["size"]) for file in passages.facts.get("files", [])}
    here = {(name.rpartition("/")[2], size) for name, size in files or ()}
    return not listed or (bool(here) and listed <= here)


def source_size(workspace: Workspace, source: str, web: Settings | None = None) -> SourceSize:
    """What is known of a source; with ``web`` a server is asked for the sizes of files that are not here.

    Raises ConfigError for a local source that is not there, and for files whose size nobody says.
    """
    from rag.corpus.estimate import expected_passages, unpacked_bytes
    from rag.corpus.sources.psgs import DPR_ROWS

    config = workspace.study.sources[source]
    here = workspace.local_files(config)
    passages = workspace.passages(source, here)
    if passages:
        rows = passages.counts["rows_out"]
        return SourceSize(here or (), True, rows, rows, "counted: cut already", passages)
    files, basis = (here, "on this machine") if here is not None else _elsewhere(config, web)
    size = SourceSize(files, here is not None, None, 0, basis)
    unpacked = sum(unpacked_bytes(*file, config.format) for file in files)
    rows = expected_passages(unpacked, config.format)
    if config.format == "psgs":
        if files and not config.expected_rows and not 1 / _FAR < unpacked / _PSGS_BYTES[".tsv"] < _FAR:
            advice = f"another size than DPR's file: set sources.{source}.expected_rows"
            return size._replace(rows=rows, basis=f"{basis}; {advice}")
        rows = config.expected_rows or DPR_ROWS
        return size._replace(rows=rows, at_least=rows)
    if not files:
        return size
    sure = 0 if config.max_passages_per_page or config.until else rows // 2
    return size._replace(rows=rows, at_least=sure)


def _elsewhere(config: SourceConfig, web: Settings | None) -> tuple[tuple[tuple[str, int], ...], str]:
    """Name and bytes of every file of a source that is not on this machine, and how that is known."""
    if config.path.startswith("demo:"):
        return (), "written by the study itself; its rows are not known before"
    if not is_remote(config.path):
        return (
            _psgs(config.path),
        ), f"not on this machine yet: {config.path} is missing, and planned as the published file"
    if web is None:
        return (), "not fetched yet"
    if config.path.startswith("hf:"):
        raise ConfigError(f"{config.path}: the hub is not asked for sizes; download it and plan again")
    try:
        return _listed(config, web)
    except (DataError, ResourceError) as error:
        wiki = config.path.removeprefix("wikimedia:").partition("/")[0]
        if wiki not in _ASSUMED_BYTES:
            raise
        return (("assumed.xml.bz2", _ASSUMED_BYTES[wiki]),), f"assumed: {str(error).partition(' (')[0]}"


def _listed(config: SourceConfig, web: Settings) -> tuple[tuple[tuple[str, int], ...], str]:
    from rag.corpus.download.files import WebOptions

    options = WebOptions(proxy=web.proxy, attempts=1, timeout_seconds=20)
    listed = [(file.name, file.size) for file in remote_files(config, web.dumps_url, options)]
    unknown = [file for file, size in listed if size is None]
    if unknown and config.format == "psgs":
        return (_psgs(config.path),), "as the published file"
    if unknown:
        raise ConfigError(f"{config.path}: the server does not say how large {unknown[0]} is; plan after the download")
    return tuple((file, size or 0) for file, size in listed), "as published"


def _psgs(path: str) -> tuple[str, int]:
    ending = ".gz" if path.endswith(".gz") else ".tsv"
    return f"psgs_w100{ending}", _PSGS_BYTES[ending]


def _sizes(path: Path) -> Iterator[tuple[str, int]]:
    files = [file for file in sorted(path.rglob("*")) if file.is_file()] if path.is_dir() else [path]
    yield from ((file.name, file.stat().st_size) for file in files)
