"""What a single question is answered with: the model's own task, and the passages that it may be used with."""

from types import SimpleNamespace

import pytest

from flows.ask_model import ask_as
from flows.corpora import Corpus
from flows.open_models import allowed_passages
from rag.config import StudyConfig, TaskConfig, parse_study

CHAT = TaskConfig(reader="open-qa", test="t", prefix="chat: ", decoding="sample", samples=3)
NQ = TaskConfig(reader="open-qa", test="t", prefix="nq: ", num_beams=4)
WRITING = TaskConfig(reader="jeopardy", test="t", prefix="jeopardy: ")
FEVER = TaskConfig(reader="fever", test="t", labels={"SUPPORTS": "a", "REFUTES": "b"})


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [([NQ, CHAT], NQ), ([CHAT, NQ], CHAT), ([FEVER, WRITING, NQ], NQ), ([FEVER, WRITING], WRITING), ([FEVER], FEVER)],
)
def test_a_model_is_asked_as_one_of_its_own_tasks(tasks: list[TaskConfig], expected: TaskConfig) -> None:
    assert ask_as(tasks, candidates=1) == expected


def test_more_answers_are_looked_for_in_the_way_of_the_task() -> None:
    assert ask_as([NQ], 9) == NQ.model_copy(update={"num_beams": 9})
    assert ask_as([NQ], 2) == NQ
    assert ask_as([CHAT], 9) == CHAT.model_copy(update={"samples": 9})
    assert ask_as([FEVER], 9) == FEVER


def _study(**encoder: object) -> StudyConfig:
    model = {"family": "rag-token", "corpus": "own", "tasks": {"qa": 1}}
    return parse_study(
        {
            "name": "x",
            "title": "x",
            "sources": {"s": {"path": "s.xml"}},
            "corpora": {"own": ["s"], "other": ["s"]},
            "encoder": encoder,
            "tasks": {"qa": {"reader": "open-qa", "test": "t"}},
            "models": {"m": model, "closed": {"family": "closed-book", "tasks": {"qa": 1}}},
        }
    )


@pytest.mark.parametrize(
    ("model", "corpus", "mismatch", "allowed"),
    [
        ("m", "own", False, "nothing"),  # also where somebody names it
        ("m", "other", False, "other passages"),
        ("m", "own", True, "every mismatch"),
        ("closed", None, False, "nothing"),
    ],
)
def test_only_another_corpus_than_the_models_own_is_a_swap(
    model: str, corpus: str | None, mismatch: bool, allowed: str
) -> None:
    run = SimpleNamespace(study=_study(allow_mismatch=mismatch))
    asked = Corpus(corpus, "dense", (), (), None, None) if corpus else None
    assert allowed_passages(run, model, asked) == allowed  # type: ignore[arg-type]
