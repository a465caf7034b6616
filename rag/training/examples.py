"""What a model is trained on: question and answer, nothing else. No passage is ever labelled."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rag.config import TaskConfig
from rag.errors import DataError
from rag.records import Question, Reject


class Example(NamedTuple):
    """One input-output pair."""

    task: str
    question: str  # what the retriever sees
    generator_question: str  # what the generator sees: the task's prefix, then the question
    target: str  # what the decoder writes; where a head classifies, the claim that it reads
    label: str | None = None  # where a head classifies


def task_examples(task: str, config: TaskConfig, questions: Sequence[Question]) -> list[Example]:
    """The pairs of one task: one a (question, answer), or the first answer only, as ``train_answers`` says.

    A label of fever becomes its word, or stays itself where a head classifies. Questions without an
    answer (MS MARCO's unanswerable ones) give no pair.
    Raises DataError for a label that has no word.
    """
    examples = []
    for question in questions:
        answers = question.answers if config.train_answers == "all" else question.answers[:1]
        for answer in answers:
            word = _label_word(config, question, answer) if config.labels else answer
            label = answer if config.classification == "head" else None
            target = word if label is None else question.text
            examples.append(Example(task, question.text, config.prefix + question.text, target, label))
    return examples


def _label_word(config: TaskConfig, question: Question, label: str) -> str:
    if label not in config.labels:
        raise DataError(f"question {question.question_id} has the label {label!r}; labels has {sorted(config.labels)}")
    return config.labels[label]


def split_findable(
    examples: Mapping[str, Sequence[Example]], finds: Callable[[Sequence[str]], Iterable[bool]]
) -> tuple[dict[str, list[Example]], list[Reject]]:
    """The examples whose question finds a passage, and the others as rejects: without any there is no p(y|x).

    ``finds`` says for each question whether it does. Of dense retrieval all do; BM25 needs a word in common.

    >>> examples = {"qa": [Example("qa", question, question, "a") for question in ("lima", "the")]}
    >>> kept, rejects = split_findable(examples, lambda questions: [len(one) > 3 for one in questions])
    >>> [one.question for one in kept["qa"]], rejects[0].row, rejects[0].text
    (['lima'], 2, 'the')
    """
    kept: dict[str, list[Example]] = {task: [] for task in examples}
    rejects = []
    for task, pairs in examples.items():
        found = finds([example.question for example in pairs])
        for row, (example, finds_some) in enumerate(zip(pairs, found, strict=True), start=1):
            if finds_some:
                kept[task].append(example)
            else:
                rejects.append(Reject(f"training pairs of {task}", row, "no passage is found for it", example.question))
    return kept, rejects


def example_stream(
    examples: Mapping[str, Sequence[Example]], weights: Mapping[str, float], seed: int
) -> Iterator[Example]:
    """An endless mixture of tasks: their shares follow ``weights`` at every point, each task in random epochs.

    Smooth weighted round robin: every task gains its weight, the richest is drawn and pays the sum. The order
    depends on the seed alone, so a resumed training skips what it has seen.

    Raises DataError for a task without examples.

    >>> pairs = {task: [Example(task, str(i), str(i), "a") for i in range(2)] for task in ("qa", "fever")}
    >>> stream = example_stream(pairs, {"qa": 2, "fever": 1}, seed=0)
    >>> [next(stream).task for _ in range(6)]
    ['qa', 'fever', 'qa', 'qa', 'fever', 'qa']
    """
    empty = [task for task in weights if not examples.get(task)]
    if empty:
        raise DataError(f"no training examples for {', '.join(empty)}; give the task a train file or leave it out")
    streams = {task: _epochs(examples[task], seed, place) for place, task in enumerate(sorted(weights))}
    credit = dict.fromkeys(weights, 0.0)
    total = sum(weights.values())
    while True:
        for task, weight in weights.items():
            credit[task] += weight
        richest = max(credit, key=lambda task: credit[task])
        credit[richest] -= total
        yield next(streams[richest])


def _epochs(examples: Sequence[Example], seed: int, place: int) -> Iterator[Example]:
    generator = np.random.default_rng([seed, place])
    while True:
        for row in generator.permutation(len(examples)):
            yield examples[row]
