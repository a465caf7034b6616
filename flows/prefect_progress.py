"""Progress of a loop as a progress artifact, which the Prefect UI shows beside the run."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from uuid import UUID

from flows.display import Count
from flows.terminal import ProgressCallable, counted

T = TypeVar("T")
_EVERY_SECONDS = 2.0


@contextmanager
def prefect_progress(description: str, also: ProgressCallable | None = None) -> Iterator[ProgressCallable]:
    """A ``progress`` callable for a flow or task run, which shows per cent done in the Prefect UI.

    Loops over things without a length are passed on uncounted. ``also`` is another progress callable around it,
    such as a terminal stage's. Under the embedded server nobody looks: use the terminal's alone there.
    """
    artifact = _Artifact(description)

    def progress(items: Iterable[T], /) -> Iterable[T]:
        shown = counted(items, artifact.show)
        return also(shown) if also else shown

    yield progress
    artifact.finish()


class _Artifact:
    def __init__(self, description: str) -> None:
        from prefect.artifacts import create_progress_artifact, update_progress_artifact

        self._update: Callable[..., object] = update_progress_artifact
        created = create_progress_artifact(progress=0.0, description=description)
        assert isinstance(created, UUID), "prefect_progress is for flows and tasks that are plain functions"
        self._id = created
        self._last = time.monotonic()

    def show(self, count: Count) -> None:
        now = time.monotonic()
        if count.total and now - self._last > _EVERY_SECONDS:
            self._last = now
            self._update(artifact_id=self._id, progress=100.0 * count.done / count.total)

    def finish(self) -> None:
        self._update(artifact_id=self._id, progress=100.0)
