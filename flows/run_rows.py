"""The rows that a run adds to the results database: gathered while a flow works, written together at its end.

Opening the database for each of hundreds of small tables would cost more than what a found study costs else. A run
that is killed in between loses nothing: its next call finds the artifacts, and their rows are gathered again.
"""

from collections.abc import Mapping, Sequence

from flows.artifacts import Artifact
from reports.runs import StageKey, latest_artifacts
from reports.store import Store

_Row = Mapping[str, object]


class RunRows:
    """The rows of one run on their way into the database."""

    def __init__(self, results: Store, run_id: str) -> None:
        self._results = results
        self._pending: list[tuple[str, _Row, Sequence[_Row]]] = []
        self.latest = latest_artifacts(results, run_id)

    def replace(self, table: str, key: _Row, rows: Sequence[_Row]) -> None:
        """Put ``rows`` in the place of those that match ``key``, at the next ``write``."""
        self._pending.append((table, key, rows))

    def knows(self, artifact: Artifact) -> bool:
        """Whether the run's latest call had this very artifact in this place, so that its rows are in force."""
        return self.latest.get(StageKey(artifact.stage, artifact.name)) == artifact.fingerprint

    def write(self) -> None:
        """Write what was gathered, all of it or nothing."""
        if not self._pending:
            return
        with self._results.write() as session:
            for table, key, rows in self._pending:
                session.replace(table, key, rows)
        self._pending.clear()

    def discard(self) -> None:
        """Forget what was gathered by a flow that failed: a stage must not be known without its rows."""
        self._pending.clear()
