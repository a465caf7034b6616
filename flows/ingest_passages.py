"""A dump, or another source of pages, to validated passages: one source of a study."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefect import flow

from flows.artifacts import Artifact, BuildResult
from flows.checks import check_stage
from flows.code_fingerprint import code_fingerprint
from flows.recording import record_dataset, record_dropped_templates, record_rejects
from flows.sources import fetch_source, published_sums, source_files, source_identity
from flows.study_run import StudyRun, study_run
from flows.tasks import run_name

if TYPE_CHECKING:
    from data_checks.results import CheckReport

_CODE = ("rag.corpus.ingest.source", "rag.corpus.summary")
_OF_A_SOURCE = ("format", "dump_job", "until", "expected_rows", "max_passages_per_page", "sha1")
# What turns documents into text beside our own code; the other formats need no more than the standard library and lxml.
_LIBRARIES = {"mediawiki": ("lxml",), "documents": ("lxml", "markdown-it-py", "pypdf")}
_MANY_REJECTS = 0.01  # of the rows: a person should look
_CHECK_CODE = ("data_checks.passages",)


@flow(name="ingest-passages", flow_run_name=run_name("ingest passages: {study} {source}"))
def ingest_passages(study: str, source: str, overrides: tuple[str, ...] = ()) -> None:
    """Fetch the source, cut it into passages, and check them; the study stops where a critical check fails."""
    with study_run(study, overrides) as run:
        fetched = fetch_source(run, source)
        if fetched:
            record_dataset(run, "dump", fetched)
        passages = extract_passages(run, source, fetched)
        record_dataset(run, "passages", passages)
        record_rejects(run, passages)
        record_dropped_templates(run, passages)
        before = earlier_snapshot(run, source, passages)
        if before:
            record_dataset(run, "changes", list_changes(run, source, before, passages))
        check_passages(run, source, passages, before)


def extract_passages(run: StudyRun, source: str, fetched: Artifact | None) -> Artifact:
    """Pages -> plain text -> shards of passages, with a ledger of what became of every page.

    The number of worker processes and an earlier snapshot, from which unchanged pages are taken over, are no part of
    the identity: they change no byte of the result.
    """
    config = run.study.sources[source]

    def build(folder: Path) -> BuildResult:
        from rag.corpus.ingest.source import SourceSpec, ingest
        from rag.corpus.summary import summarise

        files = source_files(run, source, fetched)
        sums = published_sums(run, source, files, fetched)
        limits = (config.until, config.expected_rows, config.max_passages_per_page)
        spec = SourceSpec(source, files, config.format, *limits)
        known = _reusable(run, source, identity)
        workers = run.settings.worker_processes
        report = ingest(spec, run.study.passages, folder, workers, known, run.progress("blocks"))
        counts = {"rows_in": report.pages, "rows_out": report.passages, "rows_rejected": report.rejects}
        return BuildResult(counts, {**asdict(report), "files": sums, "summary": summarise(folder)._asdict()})

    identity = {
        **run.study.passages.model_dump(mode="json"),
        **config.model_dump(mode="json", include=set(_OF_A_SOURCE)),
        "source": source,
        "content": source_identity(run, source),
    }
    parents = {"dump": fetched} if fetched else {}
    passages = run.stage(
        "passages",
        source,
        build,
        code=_CODE,
        config=identity,
        parents=parents,
        versions=_LIBRARIES.get(config.format, ()),
    )
    rejected = passages.counts["rows_rejected"]
    if rejected > _MANY_REJECTS * passages.counts["rows_in"]:
        where = passages.file("rejects.jsonl")
        run.terminal.note(
            f"warning: {source}: {rejected:,} rows or pages could not be used; their reasons are in {where}"
        )
    return passages


def _reusable(run: StudyRun, source: str, identity: Mapping[str, Any]) -> Path | None:
    """The folder of an earlier snapshot that was cut by the same code and options; its pages need no second reading."""
    ours = {key: value for key, value in identity.items() if key not in ("source", "content", "sha1")}
    code = code_fingerprint(_CODE)
    for earlier in _earlier(run, source):
        theirs = {key: value for key, value in earlier.manifest.config.items() if key in ours}
        if earlier.manifest.code == code and theirs == ours:
            return earlier.folder
    return None


def _earlier(run: StudyRun, source: str) -> list[Artifact]:
    """Passages of the source that the study names as the older snapshot, or of this one; the newest first."""
    names = {source, run.study.sources[source].previous}
    found = [
        one
        for one in run.artifacts.artifacts("passages")
        if one.name in names and "summary" in one.facts and "content" in one.manifest.config
    ]
    return sorted(found, key=lambda artifact: artifact.created_at, reverse=True)


def earlier_snapshot(run: StudyRun, source: str, passages: Artifact) -> Artifact | None:
    """What the passages are compared with: the source that the study names, or what stood here before another dump."""
    previous = run.study.sources[source].previous
    if previous:
        return run.result("passages", previous)
    older = [one for one in _earlier(run, source) if one.created_at < passages.created_at]
    return next((one for one in older if _is_comparable(one, passages)), None)


def _is_comparable(earlier: Artifact, passages: Artifact) -> bool:
    """Whether both are of one wiki, or of one kind of source, and of different files."""
    ours, theirs = passages.manifest, earlier.manifest
    same_files = (ours.config["content"], ours.parents) == (theirs.config["content"], theirs.parents)
    same_wiki = passages.facts["site"].get("dbname") == earlier.facts["site"].get("dbname")
    return not same_files and same_wiki and ours.config["format"] == theirs.config["format"]


def list_changes(run: StudyRun, source: str, before: Artifact, after: Artifact) -> Artifact:
    """Which passages were added, changed and removed between two snapshots; for the index, and for whoever asks."""

    def build(folder: Path) -> BuildResult:
        from rag.corpus.changes import passage_changes

        report = passage_changes(before.folder, after.folder, folder)
        changed = report.added + report.changed + report.removed
        return BuildResult({"rows_in": after.counts["rows_out"], "rows_out": changed}, report._asdict())

    parents = {"before": before, "after": after}
    changes = run.stage("changes", source, build, code=["rag.corpus.changes"], parents=parents)
    facts = changes.facts
    counts = ", ".join(f"{facts[kind]:,} {kind}" for kind in ("added", "changed", "removed"))
    run.terminal.note(f"{source}: passages {counts} since {before.name}-{before.fingerprint[:8]}")
    return changes


def check_passages(run: StudyRun, source: str, passages: Artifact, before: Artifact | None) -> None:
    """The suite over every shard, over the sums of the source, and against the snapshot before.

    A study that names the snapshot before asks for comparable passages and is stopped where they are not; against what
    merely stood here before, a large difference is a warning.
    """
    words, stops = run.study.passages.words, run.study.sources[source].previous is not None

    def reports() -> "Iterable[CheckReport]":
        from data_checks.passages import check_source

        facts = before.facts if before else None
        return check_source(source, passages.folder, passages.facts, facts, words, drift_stops=stops)

    parents = {"passages": passages, **({"before": before} if before else {})}
    check_stage(run, "passage-checks", source, reports, parents, _CHECK_CODE, {"words": words, "drift_stops": stops})
