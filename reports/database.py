"""Opening the writer's database file: replay after a kill, schema, version.

The tables come from ``schema.sql`` alone; nothing here or in the store knows a table by name but ``schema_version``.
"""

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from pathlib import Path

import duckdb

from reports.errors import StoreError
from reports.files import copy_in_place

SCHEMA_VERSION = 1
STORAGE_VERSION = "v1.2.0"  # of the file format: readers with DuckDB 1.2 or newer can open it
TABLES = (
    "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() AND NOT internal "
    "ORDER BY table_name"
)


@contextmanager
def opened(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database whose last writer may have been killed.

    What it committed lies in the write-ahead log, which opening replays. The log is never deleted here: both files are
    set aside first, and put back should the replay fail, so that nothing is worse than before.
    """
    log = path.with_name(path.name + ".wal")
    aside = path.parent / "before-replay"
    replay = log.exists() and path.exists()
    if replay:
        for file in (path, log):
            aside.mkdir(exist_ok=True)
            copy_in_place(file, aside / file.name)
    try:
        connection = duckdb.connect(str(path), config={"storage_compatibility_version": STORAGE_VERSION})
    except duckdb.Error as error:
        if replay:
            for file in (path, log):
                copy_in_place(aside / file.name, file)
        raise StoreError(
            f"{path} cannot be opened: {first_line(error)}. Nothing was deleted; the published results are untouched. "
            f"To go on from them, move the folder {path.parent} away"
        ) from error
    try:
        if replay:
            connection.execute("CHECKPOINT")
            shutil.rmtree(aside)
        yield connection
    finally:
        connection.close()


def apply_schema(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Make the tables and views, unless the file has exactly these already."""
    refuse_newer(connection, path)
    if is_current(connection):
        return
    sql = _contract()
    is_new = not connection.execute(TABLES).fetchall()
    connection.execute("BEGIN TRANSACTION")
    try:
        if not is_new:
            _add_new_columns(connection, sql)
        connection.execute(sql)
    except duckdb.Error as error:
        raise _other_build(path, first_line(error)) from error
    if not is_new:
        _same_columns(connection, sql, path)
    connection.execute("DELETE FROM schema_version")
    now = datetime.now(UTC).replace(tzinfo=None)
    row = [*_own_version(), duckdb.__version__, now]
    connection.execute("INSERT INTO schema_version VALUES (?, ?, ?, ?)", row)
    connection.execute("COMMIT")


def is_current(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the open database has exactly the tables and views of this software."""
    return _recorded(connection) == _own_version()


def _own_version() -> tuple[int, str]:
    return SCHEMA_VERSION, hashlib.sha256(_contract().encode()).hexdigest()


@cache
def _contract() -> str:
    return resources.files("reports").joinpath("schema.sql").read_text(encoding="utf-8")


def _recorded(connection: duckdb.DuckDBPyConnection) -> tuple[int, str] | None:
    if ("schema_version",) not in connection.execute(TABLES).fetchall():
        return None
    rows = connection.execute("SELECT version, schema_sha256 FROM schema_version").fetchall()
    return rows[0] if rows else None


def refuse_newer(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """StoreError where the open database follows a newer contract than this software knows."""
    recorded = _recorded(connection)
    if recorded and recorded[0] > SCHEMA_VERSION:
        raise StoreError(
            f"{path} has schema version {recorded[0]}, this software knows {SCHEMA_VERSION}; upgrade openbook"
        )


_COLUMNS = (
    "SELECT table_name, column_name, data_type, column_default FROM duckdb_columns() "
    "WHERE database_name = current_database() AND NOT internal AND table_name NOT LIKE 'v\\_%' ESCAPE '\\'"
)


def _wanted_columns(sql: str) -> dict[tuple[str, str], tuple[str, str | None]]:
    """Type and default of every column of the contract, by table and name."""
    with duckdb.connect(":memory:") as fresh:
        fresh.execute(sql)
        return {(table, name): (kind, default) for table, name, kind, default in fresh.execute(_COLUMNS).fetchall()}


def _add_new_columns(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Columns that the contract gained since the file was made; its rows get the default there."""
    found = {(table, name) for table, name, _, _ in connection.execute(_COLUMNS).fetchall()}
    tables = {table for table, _ in found}
    for (table, name), (kind, default) in _wanted_columns(sql).items():
        if table in tables and (table, name) not in found:
            value = f" DEFAULT {default}" if default else ""
            connection.execute(f"ALTER TABLE {quoted(table)} ADD COLUMN {quoted(name)} {kind}{value}")


def _same_columns(connection: duckdb.DuckDBPyConnection, sql: str, path: Path) -> None:
    """A table that was there before keeps its columns, so they must be the ones of the contract."""
    wanted = {f"{table}.{name} {kind}" for (table, name), (kind, _) in _wanted_columns(sql).items()}
    found = {f"{table}.{name} {kind}" for table, name, kind, _ in connection.execute(_COLUMNS).fetchall()}
    if wanted != found:
        raise _other_build(path, ", ".join(sorted(wanted ^ found)[:5]))


def _other_build(path: Path, difference: str) -> StoreError:
    return StoreError(
        f"{path} was written by another build of schema version {SCHEMA_VERSION} (differs: {difference}); "
        f"move the folder {path.parent.parent} away to begin anew"
    )


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(path: Path) -> str:
    """A path as an SQL string, for the statements that take no parameters."""
    return "'" + str(path).replace("'", "''") + "'"


def first_line(error: Exception) -> str:
    """The message of an error without the lines that show the statement."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
