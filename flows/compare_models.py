"""Paired comparisons of the study's models, task by task."""

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

from prefect import flow

from flows.artifacts import Artifact, BuildResult
from flows.recording import record_comparisons
from flows.study_run import study_run


@flow(name="compare-models", flow_run_name="compare models: {study}", validate_parameters=False)
def compare_models(
    study: str, metrics: Mapping[str, Mapping[str, Artifact]], overrides: tuple[str, ...] = ()
) -> Artifact:
    """Every pair of models on every task that both were tested on; ``metrics`` is by model and task."""
    with study_run(study, overrides) as run:

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
                of_questions = [name for name in names if not name.endswith(("_passage", "_2way"))]
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
        record_comparisons(run, compared.facts["comparisons"])
        return compared
