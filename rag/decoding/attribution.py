"""From an answer to a prediction: which passages are behind it, how much each, and which of them it cites."""

from collections.abc import Sequence

from rag.decoding.decode import Answer
from rag.records import Passage, Prediction, Question, RetrievedPassage


def with_evidence(
    question: Question,
    answer: Answer,
    found: Sequence[Passage],
    doc_scores: Sequence[float],
    prior: Sequence[float],
    seconds: float,
) -> Prediction:
    """The answer beside its passages with p(z|x) and p(z|x,y); the one with the largest posterior is cited.

    Scores, priors and posteriors may be longer than ``found``: what is beyond it was masked.
    """
    retrieved = tuple(
        RetrievedPassage(question.question_id, rank, passage.passage_id, passage.title, passage.text, *numbers)
        for rank, (passage, *numbers) in enumerate(zip(found, doc_scores, prior, answer.posterior, strict=False))
    )
    cited = max(retrieved, key=lambda passage: passage.posterior).passage_id if retrieved else None
    tokens = tuple(one._replace(posterior=one.posterior[: len(found)]) for one in answer.tokens)
    return Prediction(
        question.question_id,
        answer.text,
        answer.logprob,
        cited,
        retrieved,
        seconds,
        tokens=tokens,
        candidates=answer.candidates,
        label_probs=answer.label_probs,
    )
