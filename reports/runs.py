"""What the database knows of runs: which there are, how they ended, and what they were made of."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from reports.errors import StoreError
from reports.store import Store


class StageKey(NamedTuple):
    """One stage of a study."""

    stage: str
    name: str


def run_ids(store: Store) -> list[str]:
    """All runs, the newest first."""
    return [str(row[0]) for row in store.query("SELECT run_id FROM runs ORDER BY started_at DESC, run_id").rows]


def run_status(store: Store, run_id: str) -> str | None:
    """The status of a run in the published results; None where it is not there."""
    if not store.path.is_file():
        return None
    rows = store.query("SELECT status FROM runs WHERE run_id = ?", [run_id]).rows
    return str(rows[0][0]) if rows else None


def latest_artifacts(store: Store, run_id: str) -> dict[StageKey, str]:
    """The fingerprints that the run's latest call had, by stage; empty where that is not certain.

    It is not where something was written that a kill kept from being published.
    """
    if not store.is_published:
        return {}
    rows = store.query(
        """SELECT stage, name, fingerprint FROM stage_runs WHERE run_id = ? AND invocation_id =
               (SELECT arg_max(invocation_id, started_at) FROM stage_runs WHERE run_id = ?)""",
        [run_id, run_id],
    ).rows
    return {StageKey(stage, name): str(fingerprint) for stage, name, fingerprint in rows}


def artifacts_of(store: Store, run_id: str) -> set[str]:
    """The fingerprints of everything a run was ever made of."""
    return {str(row[0]) for row in store.query("SELECT fingerprint FROM run_artifacts WHERE run_id = ?", [run_id]).rows}


def metrics_of(store: Store, run_id: str) -> list[Mapping[str, Any]]:
    """The stored metrics of a run, those of its sweeps too. Raises StoreError where it has none."""
    sql = "FROM metrics WHERE run_id = $1 UNION ALL BY NAME FROM n_docs_sweep WHERE run_id = $1"
    found = store.query(sql, [run_id]).records()
    if not found:
        raise StoreError(f"{run_id} has no metrics; it was stopped before its first evaluation: run it again")
    return list(found)
