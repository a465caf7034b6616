"""Two models on the same questions: what differs, by how much, and whether chance explains it."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from rag.config import ExpectedValue
from rag.evaluation.scorer import QuestionScore
from rag.evaluation.statistics import holm, mcnemar_exact, paired_bootstrap

_RIGHT_OR_WRONG = frozenset({"exact_match", "label_accuracy"})


class Comparison(NamedTuple):
    """Value of model a minus value of model b on the questions that both answered."""

    task: str
    metric: str
    model_a: str
    model_b: str
    difference: float
    low: float  # 95 % interval, paired bootstrap
    high: float
    p_value: float  # two-sided; exact McNemar for right-or-wrong metrics, else paired bootstrap
    test: str
    n: int
    p_adjusted: float = 1.0  # Holm, over all comparisons of the report


def compare(
    task: str, metric: str, models: tuple[str, str], scores: Mapping[str, Sequence[QuestionScore]], seed: int
) -> Comparison | None:
    """The paired comparison of two models by one metric; None where they have no question in common.

    Joined by question id. Metrics that are 0 or 1 for each question get the exact McNemar test.
    """
    by_model = [{one.question_id: one.value for one in scores[model] if one.metric == metric} for model in models]
    shared = [question for question in by_model[0] if question in by_model[1]]
    if not shared:
        return None
    a, b = ([values[question] for question in shared] for values in by_model)
    bootstrap = paired_bootstrap(a, b, seed)
    if metric in _RIGHT_OR_WRONG:
        p_value, test = mcnemar_exact([one == 1 for one in a], [one == 1 for one in b]).p_value, "mcnemar exact"
    else:
        p_value, test = bootstrap.p_value, "paired bootstrap"
    return Comparison(
        task, metric, *models, bootstrap.difference, bootstrap.low, bootstrap.high, p_value, test, len(shared)
    )


def verdict(low: float, value: float, high: float, expected: ExpectedValue) -> Literal["ok", "differs", "cannot tell"]:
    """Whether a measured value, with its interval, is the one that was expected.

    ok: within the tolerance. cannot tell: outside it, but the interval reaches into it. differs: it does not.

    >>> verdict(0.40, 0.45, 0.50, ExpectedValue(value=0.445, tolerance=0.01, source="table 1"))
    'ok'
    >>> verdict(0.40, 0.43, 0.50, ExpectedValue(value=0.445, tolerance=0.01, source="table 1"))
    'cannot tell'
    """
    if abs(value - expected.value) <= expected.tolerance:
        return "ok"
    reaches = low <= expected.value + expected.tolerance and high >= expected.value - expected.tolerance
    return "cannot tell" if reaches else "differs"


def adjusted(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with p-values corrected for their number (Holm)."""
    corrected = holm([one.p_value for one in comparisons])
    return [one._replace(p_adjusted=p_value) for one, p_value in zip(comparisons, corrected, strict=True)]
