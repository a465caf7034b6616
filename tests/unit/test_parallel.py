"""Work on several threads: in order, whole, and with the results of one thread."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from rag.config import ModelConfig, TaskConfig
from rag.parallel import on_threads
from rag.pipeline import answer_questions
from rag.records import Question
from rag.training.examples import Example
from rag.training.loop import Trainer
from tests.support.tiny_rag import tiny_rag


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_results_come_in_the_order_of_the_items(threads: int) -> None:
    def slow_at_first(number: int) -> int:
        time.sleep(0.01 if number == 0 else 0)
        return number + 10 * torch.get_num_threads()

    assert list(on_threads(slow_at_first, range(5))) == [10, 11, 12, 13, 14]
    assert torch.get_num_threads() == threads


@pytest.mark.usefixtures("threads")
def test_no_more_is_begun_than_may_wait_to_be_taken() -> None:
    begun: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        return number

    for number, found in enumerate(on_threads(work, range(9), at_once=2)):
        time.sleep(0.002)  # as long as it takes to begin more, if that were allowed
        assert found == number
        assert len(begun) <= number + 2
    assert sorted(begun) == list(range(9))


def test_an_error_comes_through_and_the_threads_are_given_back(threads: int) -> None:
    with pytest.raises(ZeroDivisionError):
        list(on_threads(lambda number: 1 // number, [1, 0, 1]))
    assert torch.get_num_threads() == threads


def test_leaving_early_gives_the_threads_back(threads: int) -> None:
    numbers = on_threads(lambda number: number, range(100))
    assert next(numbers) == 0
    numbers.close()  # type: ignore[attr-defined]
    assert torch.get_num_threads() == threads


def test_answers_and_training_do_not_depend_on_the_threads(threads: int, tmp_path: Path) -> None:
    assert torch.get_num_threads() == threads
    questions = [Question(str(n), "open-qa", "the capital of peru " + "a " * n, ("x",)) for n in range(6)]
    rag = tiny_rag(tmp_path, "rag-sequence")
    made = list(answer_questions(rag, TaskConfig(reader="open-qa", test="t"), questions, batch_size=2))
    config = ModelConfig(
        family="rag-sequence", corpus="c", tasks={"qa": 1}, n_docs=2, steps=2, batch_size=8, learning_rate=0.01,
        dropout=False,
    )  # fmt: skip
    examples = {"qa": [Example("qa", one.text, one.text, "a") for one in questions]}
    trainer = Trainer(rag.model, config, rag.layout, rag.max_source_tokens, 1, rag.retriever)
    log = trainer.train(examples, tmp_path / "training")
    results = ([(one.text, one.logprob, one.retrieved) for one in made], log)
    assert results == _remembered.setdefault("results", results)


_remembered: dict[str, object] = {}
