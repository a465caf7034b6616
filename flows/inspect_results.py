"""Look at finished runs: find them, render them again, and prove their numbers."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.artifacts import Artifact, ArtifactStore
from flows.errors import VerificationError
from flows.settings import Settings, load_settings
from rag.errors import ConfigError
from rag.records import Split
from reports.runs import artifacts_of, latest_artifacts, metrics_of, run_ids, run_status
from reports.store import Store

if TYPE_CHECKING:
    from rag.records import Metric, Question

_FORMATS = ("html", "md", "latex")
_RETRIEVAL = "retrieval-metrics"
_SCORING = ("metrics", _RETRIEVAL)


def open_store(settings: Settings | None = None) -> Store:
    """The results of this workspace."""
    return Store((settings or load_settings()).database_folder)


def find_run(store: Store, run: str | None) -> str:
    """The id of a run, or of the newest; raises ConfigError naming those that there are."""
    runs = run_ids(store)
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
    used = artifacts_of(store, run_id)
    found = {artifact.fingerprint: artifact for artifact in artifacts.artifacts() if artifact.fingerprint in used}
    problems = {one: [f"artifact {one[:16]} is gone"] for one in sorted(used - found.keys())}
    for one, artifact in found.items():
        wrong = [f"{artifact.stage} {artifact.name}: {problem}" for problem in artifacts.verify(artifact)]
        problems |= {one: wrong} if wrong else {}
    _require_none(run_id, problems)
    yield f"{len(found)} artifacts: every file has the size and sha256 of its manifest"
    scored = {one for key, one in latest_artifacts(store, run_id).items() if key.stage in _SCORING and one in found}
    metrics = metrics_of(store, run_id) if _has_metrics(store, run_id, found.values()) else []
    scored |= {row["fingerprint"] for row in metrics}
    again = {one: _scored_again(found[one], found) for one in sorted(scored)}
    _require_none(run_id, {"metrics": [*_differences(metrics, again)]})
    yield f"{len(metrics)} metrics: value, interval and counts are the same when scored again from the predictions"
    yield f"{run_id}: verified"


def _has_metrics(store: Store, run_id: str, found: Iterable[Artifact]) -> bool:
    """Whether the run should have metrics: a study of passages alone has none to verify."""
    return run_status(store, run_id) != "complete" or any(
        one.stage == "model" or (one.stage in _SCORING and one.counts["rows_out"]) for one in found
    )


def _require_none(run_id: str, problems: Mapping[str, Sequence[str]]) -> None:
    named = [problem for found in problems.values() for problem in found]
    if named:
        raise VerificationError(f"{run_id}: {len(named)} problems: {'; '.join(named[:5])}")


def _scored_again(metrics: Artifact, found: Mapping[str, Artifact]) -> dict[str, dict[str, Any]]:
    """The metrics of an artifact, by ``_key``, from what it was made of; none where that is gone."""
    parents = {role: found.get(parent.fingerprint) for role, parent in metrics.manifest.parents.items()}
    if None in parents.values():
        return {}
    inputs = {role: parent for role, parent in parents.items() if parent}
    score = _retrieval_again if metrics.stage == _RETRIEVAL else _predictions_again
    return {key: metric._asdict() for key, metric in score(inputs, metrics.manifest.config)}


def _predictions_again(inputs: Mapping[str, Artifact], config: Mapping[str, Any]) -> Iterator[tuple[str, "Metric"]]:
    from rag.evaluation.calibration import fit_on
    from rag.evaluation.score import score_task
    from rag.predictions import read_predictions

    gold, made = _gold(inputs["questions"]), read_predictions(inputs["predictions"].folder)
    dev = inputs.get("dev")
    fitted = fit_on(_gold(inputs["questions"], "dev"), read_predictions(dev.folder)) if dev else None
    temperature = fitted.temperature if fitted else None
    scores = score_task(gold[0].task, gold, made, config["seed"], config.get("answers") == "patterns", temperature)
    yield from ((metric.name, metric) for metric in scores.metrics)


def _retrieval_again(inputs: Mapping[str, Artifact], config: Mapping[str, Any]) -> Iterator[tuple[str, "Metric"]]:
    from rag.retrieved import RETRIEVED_FILE, score_file

    path = inputs["retrieved"].file(RETRIEVED_FILE)
    for role in (role for role in inputs if role != "retrieved"):
        task = role.removeprefix("questions:")
        patterns = task in config["patterns"]
        scores = score_file(path, task, _gold(inputs[role]), config["at"], patterns, config["seed"])
        yield from ((f"{task}/{metric.name}", metric) for metric in scores.metrics)


def _gold(questions: Artifact, split: Split = "test") -> "list[Question]":
    from rag.tasks.table import read_questions

    return read_questions(questions.file("questions.parquet"), split)


def _key(row: Mapping[str, Any]) -> str:
    """What tells the metrics of one artifact apart: a retriever's are of all tasks."""
    return f"{row['task']}/{row['name']}" if row["model"].startswith("retriever:") else str(row["name"])


def _differences(
    metrics: Sequence[Mapping[str, Any]], again: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> Iterator[str]:
    """Stored numbers that scoring again does not give, and scored ones that are not stored."""
    stored = {(row["fingerprint"], _key(row)) for row in metrics}
    scored = {(fingerprint, name) for fingerprint, of_task in again.items() for name in of_task}
    yield from (f"metric {name} of {fingerprint[:16]} is not stored" for fingerprint, name in sorted(scored - stored))
    for row in metrics:
        where = f"{row['model']} {row['task']} {row['name']}"
        metric = again[row["fingerprint"]].get(_key(row))
        if metric is None:
            yield f"{where}: what it was computed from is gone"
            continue
        for field in ("value", "low", "high", "n", "n_expected", "n_errors"):
            if not math.isclose(metric[field], row[field], rel_tol=1e-12, abs_tol=1e-12):
                yield f"{where}: {field} is stored as {row[field]}, scored again {metric[field]}"
