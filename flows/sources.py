"""The files of a source: on this machine, or fetched once from a mirror, an archive or the hub, and verified."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.artifacts import Artifact, BuildResult
from flows.paths import dataset_name, download_dataset, is_remote
from flows.study_run import StudyRun
from rag.config import SourceConfig
from rag.errors import ConfigError

if TYPE_CHECKING:
    from rag.corpus.download.files import RemoteFile, WebOptions


def fetch_source(run: StudyRun, source: str) -> Artifact | None:
    """The files of a remote source, each verified against its published sum; None for one that is here already.

    A download that was stopped goes on where it stopped. The code that downloads is not part of the identity: the
    published sums say what the bytes must be, whoever fetched them.
    """
    config = run.study.sources[source]
    if not is_remote(config.path):
        return None

    def build(folder: Path) -> BuildResult:
        if config.path.startswith("hf:"):
            commit = download_dataset(config.path, folder)
            return BuildResult({"rows_out": sum(1 for _ in folder.rglob("*.parquet"))}, {"commit": commit})
        from rag.corpus.download.files import WebOptions, download

        own = run.settings
        web = WebOptions(attempts=own.download_attempts, proxy=own.proxy, notify=run.terminal.note)
        files = remote_files(config, own.dumps_url, web)
        _require_a_date(config.path, files)
        fetched = download(files, folder, progress=run.progress("MiB"), options=web)
        return BuildResult({"rows_out": len(fetched)}, {"files": [file._asdict() for file in fetched]})

    identity = {"path": config.path, "dump_job": config.dump_job, "sha1": config.sha1}
    return run.stage("dump", source, build, code=[], config=identity)


def remote_files(config: SourceConfig, dumps_url: str, web: "WebOptions") -> "list[RemoteFile]":
    """What has to be fetched for a source, as the server lists it; reads the list, and no file."""
    from rag.corpus.download.files import RemoteFile, dump_folder, find_dump

    if config.path.startswith("wikimedia:"):
        wiki, slash, date = config.path.removeprefix("wikimedia:").partition("/")
        if not (wiki and slash and date):
            raise ConfigError(f"{config.path!r}: write wikimedia:WIKI/DATE, for example wikimedia:enwiki/20240801")
        return find_dump(dump_folder(dumps_url, wiki, date), config.dump_job, web)
    if config.path.endswith("/"):
        return find_dump(config.path, config.dump_job, web)
    return [RemoteFile(config.path, config.path.rpartition("/")[2], None, config.sha1)]


def _require_a_date(path: str, files: "list[RemoteFile]") -> None:
    """A result is named by its inputs, and "latest" is another dump next month."""
    if path.rstrip("/").endswith("/latest"):
        dated = files[0].url.rstrip("/").rpartition("/")[0].rpartition("/")[2]
        raise ConfigError(f"{path!r} names another dump each month; the newest is {dated}: write that date")


def source_identity(run: StudyRun, source: str) -> Mapping[str, Any]:
    """What names the content of a local source; a fetched one is named by the artifact that holds it."""
    config = run.study.sources[source]
    if is_remote(config.path):
        return {}
    # A document without a heading is named by its file, and a folder's hash has the names of its files already.
    name = {"name": Path(config.path).name} if config.format == "documents" else {}
    return {**run.content_identity(config.path), **name}


def source_files(run: StudyRun, source: str, fetched: Artifact | None) -> tuple[Path, ...]:
    """The files to read, in order: the parts of a dump; else the one file or folder that the format's reader takes.

    Raises ConfigError for a folder without a dump in it.
    """
    config = run.study.sources[source]
    place = _fetched_place(config, fetched) if fetched else run.path(config.path)
    if config.format != "mediawiki":
        files = fetched.facts.get("files", []) if fetched else []
        return (place / files[0]["name"],) if len(files) == 1 else (place,)
    if not place.is_dir():
        return (place,)
    from rag.corpus.download.files import local_dump_files

    return tuple(local_dump_files(place, config.dump_job))


def _fetched_place(config: SourceConfig, fetched: Artifact) -> Path:
    """Where the files lie in the artifact: those of a data set keep the folder that they have on the hub."""
    return fetched.folder / dataset_name(config.path).inner if config.path.startswith("hf:") else fetched.folder


def published_sums(
    run: StudyRun, source: str, files: tuple[Path, ...], fetched: Artifact | None
) -> list[dict[str, Any]]:
    """Name, size and sha1 of every file that is named, checked against what its publisher says where that is known.

    Raises DumpError for a file that is another one than was published.
    """
    if fetched:
        return list(fetched.facts.get("files", []))
    from rag.corpus.download.files import verify_file

    sha1 = run.study.sources[source].sha1
    plain = [path for path in files if path.is_file()]
    if sha1 and len(plain) != 1:
        raise ConfigError(
            f"sources.{source}.sha1 is the sum of one file, and {run.study.sources[source].path} is a folder"
        )
    return [{"name": path.name, "size": path.stat().st_size, "sha1": verify_file(path, sha1)} for path in plain]
