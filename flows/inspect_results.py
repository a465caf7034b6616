"""Look at finished runs: find them, render them again, and prove their numbers."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flows.artifacts import Artifact, ArtifactStore
from flows.errors import VerificationError
from flows.settings import Settings, load_settings
from rag.errors import ConfigError
from reports.store import Store

_FORMATS = ("html", "md", "latex")


def open_store(settings: Settings | None = None) -> Store:
    """The results of this workspace."""
    return Store((settings or load_settings()).database_folder)


def find_run(store: Store, run: str | None) -> str:
    """The id of a run, or of the newest; raises ConfigError naming those that there are."""
    runs = [row[0] for row in store.query("SELECT run_id FROM runs ORDER BY started_at DESC, run_id").rows]
    if run is None and runs:
        return str(runs[0])
    if run in runs:
        return str(run)
    known = f"known: {', '.join(runs[:10])}" if runs else "there is none yet; try openbook demo"
    raise ConfigError(f"no run {run!r}; {known}" if run else f"no run; {known}")


def render(run: str | None, format: str) -> Path:
    """The report of a run in one of its formats; returns its path."""
    from reports.render import render_html, render_latex, render_markdown

    if format not in _FORMATS:
        raise ConfigError(f"--format {format!r}: use one of {', '.join(_FORMATS)}")
    settings = load_settings()
    store = open_store(settings)
    run_id = find_run(store, run)
    renderers = {"html": (render_html, "html"), "md": (render_markdown, "md"), "latex": (render_latex, "tex")}
    renderer, ending = renderers[format]
    return renderer(store, run_id, settings.reports_folder / f"{run_id}.{ending}")


def verify_run(run: str | None) -> Iterator[str]:
    """Read every byte of a run's artifacts and score its predictions again; a line for each thing that holds.

    Raises VerificationError at the end, naming everything that does not hold.
    """
    settings = load_settings()
    store = open_store(settings)
    run_id = find_run(store, run)
    artifacts = ArtifactStore(settings.artifacts_folder)
    used = {row[0] for row in store.query("SELECT fingerprint FROM run_artifacts WHERE run_id = ?", [run_id]).rows}
    found = {artifact.fingerprint: artifact for artifact in artifacts.artifacts() if artifact.fingerprint in used}
    problems = [f"artifact {one[:16]} is gone" for one in sorted(used - found.keys())]
    for artifact in found.values():
        problems += [f"{artifact.stage} {artifact.name}: {problem}" for problem in artifacts.verify(artifact)]
    yield f"{len(found)} artifacts: every file has the size and sha256 of its manifest"
    metrics = store.query("SELECT * FROM metrics WHERE run_id = ?", [run_id]).records()
    again = {
        artifact.fingerprint: _scored_again(artifact, found)
        for artifact in found.values()
        if artifact.stage == "metrics"
    }
    problems += [problem for row in metrics for problem in _differs(row, again)]
    yield f"{len(metrics)} metrics: scored again from the stored predictions"
    if problems:
        raise VerificationError(f"{run_id}: {len(problems)} problems: {'; '.join(problems[:5])}")
    yield f"{run_id}: verified"


def _scored_again(metrics: Artifact, found: dict[str, Artifact]) -> dict[str, float]:
    from rag.evaluation.score import score_task
    from rag.predictions import read_predictions
    from rag.tasks.table import read_questions

    parents = {role: found[parent.fingerprint] for role, parent in metrics.manifest.parents.items()}
    gold = read_questions(parents["questions"].file("questions.parquet"), "test")
    seed = metrics.manifest.config["seed"]
    assert isinstance(seed, int), "the stage writes a number"
    scores = score_task(gold[0].task, gold, read_predictions(parents["predictions"].folder), seed)
    return {metric.name: metric.value for metric in scores.metrics}


def _differs(row: dict[str, Any], again: dict[str, dict[str, float]]) -> Iterator[str]:
    where = f"{row['model']} {row['task']} {row['name']}"
    value = again.get(row["fingerprint"], {}).get(row["name"])
    if value is None:
        yield f"{where}: its predictions are gone"
    elif not math.isclose(value, row["value"], rel_tol=1e-12, abs_tol=1e-12):
        yield f"{where}: stored {row['value']}, scored again {value}"
