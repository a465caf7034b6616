"""What a training's log says of its health once it is over."""

from collections.abc import Sequence

from rag.training.loop import TrainingStep

_LAST_STEPS = 10
_COLLAPSED = 0.2  # healthy training stays above 0.5
_ENOUGH = 7  # questions beyond the first of each step


def collapsed_retrieval(steps: Sequence[TrainingStep], batch_size: int) -> str | None:
    """What to do where the last steps found nearly the same best passage for every question; None where they did not.

    A question encoder that ends at one vector for all questions finds 1 passage for a batch of ``batch_size``. Two
    questions may well share a passage: a few small batches tell nothing, and small ones must nearly all agree.

    >>> step = TrainingStep(0, 9.0, 3.0, 1.0, distinct_top1=1 / 8, truncated=0)
    >>> collapsed_retrieval([step], 8).split(";")[0]
    'retrieval collapsed: different best passages are 0.12 of the questions in the last 1 steps'
    >>> collapsed_retrieval([step._replace(distinct_top1=0.9)], 8)
    """
    ratios = [step.distinct_top1 for step in steps[-_LAST_STEPS:] if step.distinct_top1 is not None]
    if len(ratios) * (batch_size - 1) < _ENOUGH:
        return None
    mean = sum(ratios) / len(ratios)
    if mean > max(_COLLAPSED, 1.1 / batch_size):
        return None
    return (
        f"retrieval collapsed: different best passages are {mean:.2f} of the questions in the last {len(ratios)} "
        "steps; lower question_encoder_learning_rate, or set it to 0 to keep the question encoder as it is"
    )
