"""One reader a task, each from the file format of its real data set to questions and rejects."""

from collections.abc import Callable, Mapping
from pathlib import Path

from rag.records import TaskName
from rag.tasks import fever, jeopardy, msmarco, open_qa
from rag.tasks.taskfile import TaskFile

__all__ = ["READERS", "TaskFile"]

READERS: Mapping[TaskName, Callable[[Path], TaskFile]] = {
    "open-qa": open_qa.read,
    "fever": fever.read,
    "msmarco": msmarco.read,
    "jeopardy": jeopardy.read,
}
