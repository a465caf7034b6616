"""The rows that a run adds to the results database: gathered while a flow works, written together at its end.

Opening the database for each of hundreds of small tables would cost more than what a found study costs else. A run
that is killed in between loses nothing: its next call finds the artifacts, and their rows are gathered again.
"""

from collections.abc import Mapping, Sequence

from flows.artifacts import Artifact
from reports.errors import StoreError
from reports.store import Store

_LATEST = """
SELECT fingerprint FROM stage_runs WHERE run_id = $run AND invocation_id =
    (SELECT arg_max(invocation_id, started_at) FROM stage_runs WHERE run_id = $run)
"""
_Row = Mapping[str, object]


class RunRows:
    """The rows of one run on their way into the database."""

    def __init__(self, results: Store, run_id: str) -> None:
        self._results = results
        self._pending: list[tuple[str, _Row, Sequence[_Row]]] = []
        self._known = _of_the_latest_call(results, run_id)

    def replace(self, table: str, key: _Row, rows: Sequence[_Row]) -> None:
        """Put ``rows`` in the place of those that match ``key``, at the next ``write``."""
        self._pending.append((table, key, rows))

    def knows(self, artifact: Artifact) -> bool:
        """Whether the run's latest call had this very artifact, so that its rows are there and in force."""
        return artifact.fingerprint in self._known

    def write(self) -> None:
        """Write what was gathered, all of it or nothing."""
        if not self._pending:
            return
        with self._results.write() as session:
            for table, key, rows in self._pending:
                session.replace(table, key, rows)
        self._pending.clear()


def _of_the_latest_call(results: Store, run_id: str) -> set[str]:
    try:
        return {row[0] for row in results.query(_LATEST.replace("$run", "?"), [run_id, run_id]).rows}
    except StoreError:
        return set()  # nothing is published yet
