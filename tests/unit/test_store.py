"""The results database: what goes in comes out, once, and nothing else gets in."""

import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from reports.errors import StoreError
from reports.runs import metrics_of
from reports.session import Session
from reports.store import Store
from tests.support.report_fixture import RUN, filled_store

NOW = datetime(2026, 1, 5, 3, 0, tzinfo=timezone(timedelta(hours=1)))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return filled_store(tmp_path_factory.mktemp("filled"))


@pytest.fixture
def store(empty: Store, tmp_path: Path) -> Store:
    """A store of its own with nothing in it; going on from a published file is faster than making one."""
    shutil.copyfile(empty.path, tmp_path / "results.duckdb")
    return Store(tmp_path)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("empty"))
    store.publish()
    return store


def _steps(n: int, loss: float = 1.0) -> list[dict[str, Any]]:
    return [{"model": "m", "step": step, "loss_per_example": loss} for step in range(n)]


def test_every_table_column_and_view_is_explained(empty: Store) -> None:
    columns = "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = 'results' AND comment IS NULL"
    assert empty.query(columns + " AND table_name NOT LIKE 'v\\_%' ESCAPE '\\'").rows == []
    for kind in ("table", "view"):
        unexplained = f"SELECT {kind}_name FROM duckdb_{kind}s() WHERE database_name = 'results' AND comment IS NULL"
        assert empty.query(unexplained).rows == []


def test_every_table_has_a_primary_key(empty: Store) -> None:
    without = (
        "SELECT table_name FROM duckdb_tables() WHERE database_name = 'results' "
        "AND NOT has_primary_key AND NOT internal"
    )
    assert empty.query(without).rows == []


def test_all_views_answer_on_an_empty_database(empty: Store) -> None:
    named = "SELECT view_name FROM duckdb_views() WHERE database_name = 'results' AND NOT internal"
    with empty.snapshot() as snapshot:
        views = [view for (view,) in snapshot.query(named).rows]
        assert len(views) >= 15
        assert [view for view in views if snapshot.query(f"FROM {view}").rows] == []


def test_rows_come_back_with_their_types(store: Store) -> None:
    run = {
        "study": "demo",
        "status": "complete",
        "started_at": NOW,
        "config_json": {"b": [1, None], "a": "ü"},
        "description": None,
    }
    with store.write() as session:
        assert session.replace("runs", {"run_id": "r"}, [run]) == 1
        question = {"task": "t", "question_id": "1", "text": "who?", "answers": ("a", "b"), "titles": None}
        session.replace("questions", {"run_id": "r"}, [question])
    store.publish()
    row = store.query("SELECT * FROM runs").records()[0]
    assert row["started_at"] == NOW.astimezone(UTC).replace(tzinfo=None)
    assert row["config_json"] == '{"b": [1, null], "a": "ü"}'
    assert row["description"] == ""  # None stands for the default
    assert store.query("SELECT answers, titles, split FROM questions").rows == [(["a", "b"], None, "test")]


def test_replacing_leaves_each_row_once_and_other_keys_alone(store: Store) -> None:
    with store.write() as session:
        session.replace("training_steps", {"run_id": "a"}, _steps(3))
        session.replace("training_steps", {"run_id": "b"}, _steps(3))
        session.replace("training_steps", {"run_id": "a"}, _steps(2, loss=9.0))
    with store.write() as session:
        session.replace("training_steps", {"run_id": "a"}, _steps(2, loss=7.0))
    store.publish()
    found = store.query("SELECT run_id, count(*), sum(loss_per_example) FROM training_steps GROUP BY ALL ORDER BY ALL")
    assert found.rows == [("a", 2, 14.0), ("b", 3, 3.0)]


def test_replacing_with_nothing_deletes(store: Store) -> None:
    with store.write() as session:
        session.replace("lineage", {"child_fingerprint": "c"}, [{"parent_fingerprint": "p"}])
        session.replace("lineage", {"child_fingerprint": "c"}, [])
    store.publish()
    assert store.query("FROM lineage").rows == []


def test_a_column_left_out_falls_back_to_its_default(store: Store) -> None:
    row = {"model": "m", "task": "t", "name": "f1", "n": 2, "n_expected": 2}
    with store.write() as session:
        session.replace("metrics", {"run_id": "r"}, [row | {"n_errors": 5, "unit": "points"}])
        session.replace("metrics", {"run_id": "r"}, [row | {"corpus": None}])
    store.publish()
    assert store.query("SELECT corpus, split, n_errors, unit FROM metrics").rows == [("", "test", 0, "fraction")]


def _write_then(store: Store, then: Callable[[Session], object]) -> None:
    with store.write() as session:
        session.replace("training_steps", {"run_id": "a"}, _steps(5))
        then(session)


def _write_no_step(session: Session) -> None:
    session.replace("training_steps", {"run_id": "a"}, [{"model": "m", "step": None}])


def test_nothing_lands_of_a_block_that_fails(store: Store) -> None:
    with store.write() as session:
        session.replace("training_steps", {"run_id": "a"}, _steps(1))
    for then, error in ((lambda _: 1 / 0, ZeroDivisionError), (_write_no_step, StoreError)):
        with pytest.raises(error):
            _write_then(store, then)
    store.publish()
    assert store.query("SELECT count(*) FROM training_steps").rows == [(1,)]


_BAD: list[tuple[str, str, dict[str, object], list[dict[str, object]]]] = [
    ("there is no table 'metric'; known: ", "metric", {"run_id": "r"}, []),
    ("without a key would empty", "metrics", {}, []),
    ("no column 'loss' (row 1)", "training_steps", {"run_id": "r"}, [{"step": 1}, {"loss": 1}]),
    ("no column 'run' (the key)", "training_steps", {"run": "r"}, []),
    ("row 0 has run_id = 'q' but the key says 'r'", "training_steps", {"run_id": "r"}, [{"run_id": "q"}]),
    ("training_steps.step: row 1 holds 'x'", "training_steps", {"run_id": "r"}, [*_steps(1), {"step": "x"}]),
    ("NOT NULL constraint failed", "training_steps", {"run_id": "r"}, [{"model": "m"}]),
    ("CHECK constraint", "runs", {"run_id": "r"}, [{"study": "s", "status": "done", "started_at": NOW}]),
    ("has no time zone", "runs", {"run_id": "r"}, [{"started_at": datetime(2026, 1, 1)}]),
    ("cannot become JSON", "runs", {"run_id": "r"}, [{"config_json": {"a": {1, 2}}}]),
    ("Malformed JSON", "runs", {"run_id": "r"}, [{"config_json": "{", "study": "s"}]),
    ("primary key: run_id = 'r', model = 'm', step = 0", "training_steps", {"run_id": "r"}, [*_steps(1), *_steps(1)]),
]


@pytest.mark.parametrize(("message", "table", "key", "rows"), _BAD, ids=[bad[0][:24] for bad in _BAD])
def test_a_wrong_row_is_refused_and_named(
    empty: Store, message: str, table: str, key: dict[str, object], rows: list[dict[str, object]]
) -> None:
    with pytest.raises(StoreError, match=re.escape(message)), empty.write() as session:
        session.replace(table, key, rows)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO lineage VALUES ('a', 'b', 'c')",
        "DROP TABLE lineage",
        "SELECT 1; SELECT 2",
        "",
        "SET threads = 1",
        "CREATE TEMP TABLE t (a INTEGER)",
        "ATTACH 'other.duckdb'",
        "COPY lineage TO 'stolen.csv'",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM '/etc/hostname'",
        "SELECT * FROM glob('/*')",
        "LOAD httpfs",
        "SELECT * FROM some_python_variable",
        "SELEC 1",
    ],
)
def test_a_query_only_reads(filled: Store, sql: str) -> None:
    some_python_variable = pq  # a name that DuckDB must not look up in its caller
    assert some_python_variable
    with pytest.raises(StoreError):
        filled.query(sql)


def test_a_query_takes_parameters_as_values(filled: Store) -> None:
    assert filled.query("SELECT count(*) FROM runs WHERE run_id = ?", [RUN]).rows == [(1,)]
    assert filled.query("SELECT count(*) FROM runs WHERE run_id = ?", ["' OR true --"]).rows == [(0,)]
    with pytest.raises(StoreError, match="query failed"):
        filled.query("SELECT ?")


def test_without_published_results_the_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no published results at .*results\.duckdb"):
        Store(tmp_path).query("SELECT 1")


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "results.duckdb").write_bytes(b"not a database" * 1000)
    with pytest.raises(StoreError, match="cannot be read"):
        Store(tmp_path).query("SELECT 1")


def test_a_newer_schema_is_refused_by_readers_and_writers(store: Store) -> None:
    store.publish()
    for path in (store.path, store.folder / "writer" / "results.duckdb"):
        with duckdb.connect(str(path)) as connection:
            connection.execute("UPDATE schema_version SET version = 99")
    with pytest.raises(StoreError, match="schema version 99"):
        store.query("SELECT 1")
    with pytest.raises(StoreError, match="schema version 99"), store.write():
        pass


@pytest.mark.parametrize(
    "change", ["ALTER TABLE lineage ADD COLUMN more INTEGER", "ALTER TABLE metrics RENAME COLUMN signature TO sign"]
)
def test_a_file_of_another_build_is_refused_and_untouched(store: Store, change: str) -> None:
    store.publish()
    with duckdb.connect(str(store.folder / "writer" / "results.duckdb")) as connection:
        connection.execute(change)
        connection.execute("UPDATE schema_version SET schema_sha256 = 'other'")
    with pytest.raises(StoreError, match="another build"), store.write():
        pass


def test_a_file_from_before_a_column_gains_it_and_keeps_its_rows(store: Store) -> None:
    key = {"run_id": "r", "stage": "s", "name": "n"}
    row = {"suite": "passages", "expectation": "unique", "success": True}
    with store.write() as session:
        session.replace("checks", key, [row])
    store.publish()
    with duckdb.connect(str(store.folder / "writer" / "results.duckdb")) as connection:
        connection.execute("DROP VIEW v_checks")  # it is from after, too
        connection.execute("ALTER TABLE checks DROP COLUMN severity")
        connection.execute("DROP TABLE dropped_templates")
        connection.execute("UPDATE schema_version SET schema_sha256 = 'of the time before'")
    with store.write() as session:
        session.replace("checks", {**key, "name": "other"}, [{**row, "severity": "warning", "success": False}])
    store.publish()
    assert store.query("SELECT name, severity FROM checks ORDER BY name").rows == [
        ("n", "critical"),
        ("other", "warning"),
    ]
    assert store.query("SELECT name, n_failed, n_warnings, success FROM v_checks ORDER BY name").rows == [
        ("n", 0, 0, True),
        ("other", 0, 1, True),
    ]
    assert store.query("SELECT count(*) FROM dropped_templates").rows == [(0,)]


@pytest.mark.parametrize("with_writer", [True, False])
def test_results_of_an_older_build_are_read_before_anything_is_written(tmp_path: Path, with_writer: bool) -> None:
    store = filled_store(tmp_path)
    expected = metrics_of(store, RUN)
    files = [store.path, store.folder / "writer" / "results.duckdb"]
    for file in files:
        with duckdb.connect(str(file)) as connection:
            for view in ("v_n_docs_sweep", "v_calibration", "v_checks"):
                connection.execute(f"DROP VIEW {view}")
            connection.execute("DROP TABLE n_docs_sweep")
            connection.execute("ALTER TABLE predictions DROP COLUMN label_probs_json")
            connection.execute("UPDATE schema_version SET schema_sha256 = 'of the time before'")
    if not with_writer:
        shutil.rmtree(files[1].parent)
    found = metrics_of(Store(tmp_path), RUN)
    assert found == [row for row in expected if not row.get("n_docs")]
    assert store.query("SELECT count(label_probs_json) FROM predictions").rows == [(0,)]
    assert store.query("SELECT * FROM v_n_docs_sweep").rows == []


def test_an_older_build_that_cannot_be_brought_up_to_date_says_why(tmp_path: Path) -> None:
    store = filled_store(tmp_path)
    shutil.rmtree(store.folder / "writer")
    (store.folder / "writer").write_text("", encoding="utf-8")
    with duckdb.connect(str(store.path)) as connection:
        connection.execute("UPDATE schema_version SET schema_sha256 = 'of the time before'")
    with pytest.raises(StoreError, match="is of another build and was not brought up to date: cannot write results to"):
        store.query("SELECT 1")


def test_a_folder_with_only_the_published_file_goes_on_from_it(filled: Store, tmp_path: Path) -> None:
    shutil.copyfile(filled.path, tmp_path / "results.duckdb")
    second = Store(tmp_path)
    with second.write() as session:
        session.replace("training_steps", {"run_id": "new"}, _steps(1))
    second.publish()
    assert second.query("SELECT count(DISTINCT run_id) FROM training_steps").rows == [(2,)]


def test_readers_see_only_what_was_published_and_always_the_newest(store: Store) -> None:
    store.publish()
    with store.snapshot() as old:
        with store.write() as session:
            session.replace("training_steps", {"run_id": "r"}, _steps(4))
        assert store.query("SELECT count(*) FROM training_steps").rows == [(0,)]
        store.publish()
        assert store.query("SELECT count(*) FROM training_steps").rows == [(4,)]
        assert old.query("SELECT count(*) FROM training_steps").rows == [(0,)]


def test_parquet_beside_holds_the_same_rows(filled: Store, tmp_path: Path) -> None:
    files = filled.export_parquet(tmp_path / "it's")
    assert {file.stem for file in files} >= {"runs", "metrics", "predictions", "schema_version"}
    for file in files:
        assert pq.read_metadata(file).num_rows == filled.query(f"SELECT count(*) FROM {file.stem}").rows[0][0]
    again = filled.export_parquet(tmp_path / "again")
    assert [file.read_bytes() for file in files] == [file.read_bytes() for file in again]


def test_an_unwritable_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StoreError, match="cannot write results to"), Store(tmp_path / "file").write():
        pass


def test_the_published_file_opens_in_older_duckdb(filled: Store) -> None:
    tags = filled.query("SELECT tags FROM duckdb_databases() WHERE database_name = 'results'").rows[0][0]
    assert tags["storage_version"].startswith("v1.2.0")


def _metric(**changes: object) -> dict[str, Any]:
    row = {"model": "m", "task": "t", "name": "exact_match", "value": 0.5, "n": 10, "n_expected": 10}
    return row | changes


_PARTIAL = [
    ("complete", _metric(), ""),
    ("complete", _metric(n=8, n_excluded=2), ""),
    ("complete", _metric(n=8, n_excluded=1), "1 of 10 not scored"),
    ("complete", _metric(n=9, n_errors=1), "1 of 10 not scored; 1 failed"),
    ("complete", _metric(n_errors=1), "1 failed"),
    ("complete", _metric(value=None), "no value"),
    ("complete", _metric(value=float("nan")), "no value"),
    ("running", _metric(), "the run is not finished"),
    ("failed", _metric(), "the run failed"),
    (None, _metric(), "the run is not recorded"),
]


def test_a_number_that_is_not_whole_is_marked(store: Store) -> None:
    with store.write() as session:
        for number, (status, row, _) in enumerate(_PARTIAL):
            runs = [{"study": "s", "status": status, "started_at": NOW}] if status else []
            session.replace("runs", {"run_id": str(number)}, runs)
            session.replace("metrics", {"run_id": str(number)}, [row])
    store.publish()
    found = store.query("SELECT partial, partial_reason FROM v_open_qa ORDER BY run_id").rows
    assert found == [(bool(reason), reason) for _, _, reason in _PARTIAL]


def test_no_metric_is_lost_between_the_views(filled: Store) -> None:
    known = ("v_open_qa", "v_generation", "v_classification", "v_retrieval", "v_retrievers", "v_diversity")
    views = (*known, "v_other_metrics")
    shown = sum(filled.query(f"SELECT count(*) FROM {view}").rows[0][0] for view in views)
    assert shown == filled.query("SELECT count(*) FROM metrics").rows[0][0]


def test_the_swap_view_counts_and_agrees_with_wilson(filled: Store) -> None:
    rows = filled.query("SELECT corpus, answers_of, n_correct, n, low, high FROM v_swap ORDER BY ALL").rows
    assert [row[:4] for row in rows] == [
        ("2016", "2016", 13, 14),
        ("2016", "2018", 0, 14),
        ("2018", "2016", 0, 14),
        ("2018", "2018", 12, 14),
    ]
    # scipy.stats.binomtest(13, 14).proportion_ci(method="wilson")
    assert rows[0][4:] == pytest.approx((0.6853129557584889, 0.987277784752109), abs=1e-9)
    assert rows[1][4:] == pytest.approx((0.0, 0.2153108027376358), abs=1e-9)


def test_stages_show_the_last_call_and_what_the_artifact_cost(store: Store) -> None:
    stage = {"stage": "train", "name": "m", "fingerprint": "f", "status": "complete"}
    with store.write() as session:
        calls = [
            stage | {"invocation_id": "1", "seconds": 60.0, "started_at": NOW},
            stage | {"invocation_id": "2", "seconds": 0.1, "cache_hit": True, "started_at": NOW + timedelta(hours=1)},
        ]
        session.replace("stage_runs", {"run_id": "r"}, calls)
    store.publish()
    assert store.query("SELECT invocation_id, cache_hit, computed_seconds FROM v_stages WHERE latest").rows == [
        ("2", True, 60.0)
    ]
