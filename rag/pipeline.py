"""The main path, section 2 of the paper: question -> passages -> generator -> answer with its evidence.

Read this first. Each line calls the one place that does it: ``rag.retrieval`` finds z, ``rag.modeling`` holds the
equations, ``rag.decoding`` searches y.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rag.config import TaskConfig
from rag.decoding.attribution import with_evidence
from rag.decoding.decode import decode
from rag.errors import DataError
from rag.modeling.inputs import GeneratorInputs, assemble, assemble_closed_book
from rag.modeling.marginalize import prior_logprobs
from rag.modeling.models import RagModel
from rag.parallel import on_threads
from rag.records import Passage, Prediction, Question
from rag.retrieval.retriever import Retriever


@dataclass(frozen=True)
class Rag:
    """A trained model with the passages it may look things up in; no retriever: closed book."""

    model: RagModel
    layout: str
    max_source_tokens: int
    n_docs: int = 1
    retriever: Retriever | None = None


def answer_questions(
    rag: Rag,
    task: TaskConfig,
    questions: Sequence[Question],
    batch_size: int = 16,
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> Iterator[Prediction]:
    """One prediction a question, in their order; ``batch_size`` changes speed and memory, never an answer.

    A question that cannot be answered (too long for the generator, no passage found) gets a prediction with the
    reason in ``error`` and does not stop the others.
    """
    batches = [questions[start : start + batch_size] for start in range(0, len(questions), batch_size)]
    answered = on_threads(lambda batch: _answer_or_explain(rag, task, batch), batches, rag.model.generator.device)
    for _, predictions in zip(progress(range(len(batches))), answered, strict=True):
        yield from predictions


def _answer_or_explain(rag: Rag, task: TaskConfig, batch: Sequence[Question]) -> list[Prediction]:
    try:
        return _answer_batch(rag, task, batch)
    except DataError:
        return [_answer_alone(rag, task, question) for question in batch]


def _answer_alone(rag: Rag, task: TaskConfig, question: Question) -> Prediction:
    started = time.perf_counter()
    try:
        return _answer_batch(rag, task, [question])[0]
    except DataError as error:
        seconds = time.perf_counter() - started
        return Prediction(question.question_id, "", float("-inf"), None, (), seconds, str(error))


@torch.inference_mode()
def _answer_batch(rag: Rag, task: TaskConfig, questions: Sequence[Question]) -> list[Prediction]:
    started = time.perf_counter()
    inputs, doc_scores, doc_mask, passages = _look_up(rag, task, questions)
    prior = prior_logprobs(doc_scores, doc_mask)  # log p(z|x)
    answers = decode(rag.model, task, inputs, prior, questions)  # argmax_y p(y|x), z marginalised out
    seconds = (time.perf_counter() - started) / len(questions)
    return [
        with_evidence(question, answer, found, scores, p_z.exp().tolist(), seconds)._replace(truncated=cut)
        for question, answer, found, scores, p_z, cut in zip(
            questions, answers, passages, doc_scores.tolist(), prior, inputs.truncated, strict=True
        )
    ]


def _look_up(
    rag: Rag, task: TaskConfig, questions: Sequence[Question]
) -> tuple[GeneratorInputs, Tensor, Tensor, list[list[Passage]]]:
    """Retrieve z for every x, and lay out what the generator reads; closed book reads the question alone."""
    tokenizer = rag.model.generator.tokenizer
    asked = [task.prefix + question.text for question in questions]
    device = rag.model.generator.device
    if rag.retriever is None:
        scores = torch.zeros(len(questions), 1, device=device)
        empty: list[list[Passage]] = [[] for _ in questions]
        return assemble_closed_book(asked, tokenizer, rag.max_source_tokens), scores, scores == 0, empty
    found = rag.retriever.retrieve([question.text for question in questions], rag.n_docs)
    inputs = assemble(asked, found.pairs(), rag.layout, tokenizer, rag.max_source_tokens)
    scores, mask = torch.from_numpy(found.doc_scores).to(device), torch.from_numpy(found.mask).to(device)
    return inputs, scores, mask, found.passages
