"""Paired comparisons of the study's models, task by task."""

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

from prefect import flow

from flows.artifacts import Artifact, BuildResult
from flows.recording import record_comparisons, record_expected
from flows.study_run import StudyRun, study_run
from flows.tasks import run_name

# Metrics of the passages, second readings of another metric, and errors, of which less is better.
_NOT_COMPARED = ("_passage", "_2way", "_search", "_fullmatch", "brier", "_calibrated")


@flow(name="compare-models", flow_run_name=run_name("compare models: {study}"))
def compare_models(study: str, overrides: tuple[str, ...] = ()) -> None:
    """Every pair of models on every task that both were tested on, and the study's expectations."""
    with study_run(study, overrides) as run:
        metrics = {
            model: {task: run.result("metrics", f"{model}.{task}") for task in config.tasks}
            for model, config in run.study.models.items()
        }

        def build(folder: Path) -> BuildResult:  # noqa: ARG001  (its result is all in the manifest)
            from rag.evaluation.compare import adjusted, compare
            from rag.evaluation.score_files import SCORES_FILE, read_scores

            found = []
            for task in run.study.tasks:
                scores = {
                    model: read_scores(of_model[task].file(SCORES_FILE))
                    for model, of_model in metrics.items()
                    if task in of_model
                }
                names = dict.fromkeys(one.metric for values in scores.values() for one in values)
                of_questions = [name for name in names if not name.endswith(_NOT_COMPARED)]
                pairs = [(metric, pair) for metric in of_questions for pair in combinations(scores, 2)]
                found += [compare(task, metric, pair, scores, run.study.seed) for metric, pair in pairs]
            compared = adjusted([one for one in found if one is not None])
            return BuildResult({"rows_out": len(compared)}, {"comparisons": [one._asdict() for one in compared]})

        compared = run.stage(
            "comparisons",
            "all",
            build,
            code=["rag.evaluation.compare", "rag.evaluation.score_files"],
            config={"seed": run.study.seed},
            parents={
                f"{model}.{task}": artifact
                for model, of_model in metrics.items()
                for task, artifact in of_model.items()
            },
        )
        record_comparisons(run, compared)
        record_expected(run, [_expectation(run, cell, metrics) for cell in run.study.expected])


def _expectation(run: StudyRun, cell: str, metrics: Mapping[str, Mapping[str, Artifact]]) -> dict[str, object]:
    """One cell ("model/task/metric") of the study's expectations beside what was measured."""
    from rag.evaluation.compare import verdict

    expected = run.study.expected[cell]
    row: dict[str, object] = {"cell": cell, **expected.model_dump(), "measured": None, "verdict": "missing"}
    model, _, rest = cell.partition("/")
    task, _, name = rest.partition("/")
    found = metrics[model][task].facts["metrics"] if task in metrics.get(model, {}) else []
    for metric in found:
        if metric["name"] == name:
            judged = verdict(metric["low"], metric["value"], metric["high"], expected)
            row |= {"measured": metric["value"], "verdict": judged}
    return row
