"""The results database: one writer at a time, readers that never wait.

DuckDB lets one process write a file and shuts everybody else out of it, readers too. So the writer works in a file of
its own, ``writer/results.duckdb``, under a lock, and ``publish`` puts a copy in place as ``results.duckdb`` by a
rename. Whoever reads has a finished snapshot that no writer ever touches again.

``schema.sql`` is the contract; this module knows its tables by reading it and nothing else about them.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
from filelock import FileLock, Timeout

from reports.errors import StoreError

SCHEMA_VERSION = 1
STORAGE_VERSION = "v1.2.0"  # of the file format: readers with DuckDB 1.2 or newer can open it
_READING = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN}


class Table(NamedTuple):
    """The answer to a query."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def records(self) -> list[dict[str, Any]]:
        """The rows as dictionaries.

        >>> Table(("a", "b"), [(1, 2)]).records()
        [{'a': 1, 'b': 2}]
        """
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


class _Shape(NamedTuple):
    """What the file says about one table."""

    arrow: pa.Schema
    primary: list[str]
    defaults: dict[str, str]  # column -> SQL
    json: set[str]


class Session:
    """The writer's side of one transaction; ``Store.write`` makes it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._shapes: dict[str, _Shape] = {}

    def replace(self, table: str, key: Mapping[str, object], rows: Sequence[Mapping[str, object]]) -> int:
        """Put ``rows`` in the place of those that match ``key``; returns how many were put in.

        Writing the same twice leaves it once. Rows may leave out the columns of the key, and columns with a default,
        which None stands for too. Mappings and lists become JSON in JSON columns; times must carry a time zone and are
        kept in UTC.
        Raises StoreError for an unknown table or column, a value of the wrong type, a row outside the key, or two rows
        with the same primary key.
        """
        shape = self._shape(table)
        if not key:
            raise StoreError(f"replace({table!r}) without a key would empty the table; name the rows, e.g. by run_id")
        filled = _filled(table, key, rows, shape)
        try:
            self._put(table, key, filled)
        except duckdb.Error as error:
            raise StoreError(f"{table}: {_first_line(error)}") from error
        return len(filled)

    def _put(self, table: str, key: Mapping[str, object], rows: list[dict[str, object]]) -> None:
        """Delete what the new rows do not replace, then insert or update.

        Deleting all and inserting again would come to the same, but where deleted keys come back DuckDB's commit is
        slow: 100,000 rows took 10 to 20 seconds, and take half a second this way.
        """
        shape = self._shape(table)
        self._connection.register("_incoming", self._arrow(table, rows))
        try:
            columns = ", ".join(f"{_or_default(_quoted(c), shape, c)} AS {_quoted(c)}" for c in shape.arrow.names)
            matches = [f"t.{_quoted(c)} IS NOT DISTINCT FROM {_or_default('?', shape, c)}" for c in key]
            same = [f"i.{_quoted(c)} = t.{_quoted(c)}" for c in shape.primary]
            self._connection.execute(
                f"DELETE FROM {_quoted(table)} AS t WHERE {' AND '.join(matches)} AND NOT EXISTS "
                f"(FROM (SELECT {columns} FROM _incoming) AS i WHERE {' AND '.join(same)})",
                [_plain(value) for value in key.values()],
            )
            rest = [c for c in shape.arrow.names if c not in shape.primary]
            update = ", ".join(f"{_quoted(c)} = excluded.{_quoted(c)}" for c in rest)
            self._connection.execute(
                f"INSERT INTO {_quoted(table)} BY NAME SELECT {columns} FROM _incoming "
                f"ON CONFLICT {f'DO UPDATE SET {update}' if update else 'DO NOTHING'}"
            )
        finally:
            self._connection.unregister("_incoming")

    def _arrow(self, table: str, rows: list[dict[str, object]]) -> pa.Table:
        shape = self._shape(table)
        arrays = []
        for field in shape.arrow:
            values = [row.get(field.name) for row in rows]
            if field.name in shape.json:
                values = [_json_text(value) for value in values]
            arrays.append(_array(f"{table}.{field.name}", values, field.type))
        return pa.Table.from_arrays(arrays, names=shape.arrow.names)

    def _shape(self, table: str) -> _Shape:
        if table not in self._shapes:
            known = [name for (name,) in self._connection.execute(_TABLES).fetchall()]
            if table not in known:
                raise StoreError(f"there is no table {table!r}; known: {', '.join(known)}")
            columns = self._connection.execute(_COLUMNS, [table]).fetchall()
            primary = self._connection.execute(_PRIMARY_KEY, [table]).fetchall()
            self._shapes[table] = _Shape(
                arrow=self._connection.sql(f"FROM {_quoted(table)} LIMIT 0").to_arrow_table().schema,
                primary=[name for (names,) in primary for name in names],
                defaults={name: default for name, _, default in columns if default is not None},
                json={name for name, kind, _ in columns if kind == "JSON"},
            )
        return self._shapes[table]


class Snapshot:
    """A reader's side: one published state; ``Store.snapshot`` makes it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def query(self, sql: str, params: Sequence[object] = ()) -> Table:
        """The rows of one SELECT; ``?`` stands for a parameter.

        Nothing can be changed and no other file be read, whatever ``sql`` says.
        Raises StoreError for anything but one reading statement, and for SQL that is wrong.
        """
        try:
            statements = self._connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type not in _READING:
                kinds = ", ".join(statement.type.name for statement in statements) or "nothing"
                raise StoreError(f"a query is one SELECT, not {kinds}; results are read-only")
            cursor = self._connection.execute(statements[0], list(params))
            return Table(tuple(column[0] for column in cursor.description or ()), cursor.fetchall())
        except duckdb.Error as error:
            raise StoreError(f"the query failed: {error}") from error


class Store:
    """The results of all runs in one folder: ``results.duckdb`` to read, ``writer/`` behind it."""

    def __init__(self, folder: Path, timeout_seconds: float = 60.0) -> None:
        self.folder = folder
        self.path = folder / "results.duckdb"
        self._writer = folder / "writer" / "results.duckdb"
        self._lock = folder / "writer" / "lock"
        self._holder = folder / "writer" / "holder.json"
        self._timeout = timeout_seconds

    @contextmanager
    def write(self) -> Iterator[Session]:
        """One transaction: all of it lands, or nothing. Readers see it after ``publish``.

        Raises StoreError where another process keeps the writer's lock longer than the time-out (its pid is named),
        where the file has a newer schema, or where the folder cannot be written.
        """
        with self._locked(), self._connected() as connection:
            connection.execute("BEGIN TRANSACTION")
            try:
                yield Session(connection)
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            try:
                connection.execute("COMMIT")
            except duckdb.Error as error:
                raise StoreError(f"nothing was written: {_first_line(error)}") from error

    def publish(self) -> Path:
        """Put a copy of everything written so far in place as ``results.duckdb``, in one step."""
        with self._locked():
            with self._connected() as connection:
                connection.execute("CHECKPOINT")
            _copy_in_place(self._writer, self.path)
        return self.path

    @contextmanager
    def snapshot(self) -> Iterator["Snapshot"]:
        """Several queries over one and the same published state, whatever is published meanwhile.

        Raises StoreError where nothing is published yet or the file has a newer schema.
        """
        with self._reading() as connection:
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            yield Snapshot(connection)

    def query(self, sql: str, params: Sequence[object] = ()) -> Table:
        """The rows of one SELECT over the published results; see Snapshot.query."""
        with self.snapshot() as snapshot:
            return snapshot.query(sql, params)

    def export_parquet(self, folder: Path) -> list[Path]:
        """Write every table of the published results as ``folder/TABLE.parquet``, rows in the order of all columns."""
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        with self._reading() as connection:
            for (table,) in connection.execute(_TABLES).fetchall():
                target = folder / f"{table}.parquet"
                part = target.with_suffix(".parquet.part")
                connection.execute(f"COPY (FROM {_quoted(table)} ORDER BY ALL) TO {_literal(part)} (FORMAT parquet)")
                _sync(part)
                os.replace(part, target)
                written.append(target)
        return written

    @contextmanager
    def _reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        if not self.path.is_file():
            raise StoreError(f"there are no published results at {self.path}; run a study first")
        # Attached to an instance of its own: connecting to the file by name would share, within one process, the
        # snapshot of whoever opened that name first, even after a newer one was put in its place.
        with duckdb.connect(":memory:", config={"python_enable_replacements": False}) as connection:
            try:
                connection.execute(f"ATTACH {_literal(self.path)} AS results (READ_ONLY)")
                connection.execute("USE results")
            except duckdb.Error as error:
                raise StoreError(f"{self.path} cannot be read: {_first_line(error)}") from error
            _refuse_newer(connection, self.path)
            yield connection

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self._lock.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self._lock, timeout=self._timeout, thread_local=False)
            lock.acquire()
        except Timeout:
            raise StoreError(
                f"{self._writer} is being written by {self._who_holds()}; waited {self._timeout:g} s. "
                "Wait for it to end, or end it."
            ) from None
        except OSError as error:
            raise StoreError(f"cannot write results to {self.folder}: {error.strerror or error}") from error
        try:
            self._holder.write_text(json.dumps({"pid": os.getpid()}), encoding="utf-8")
            yield
        finally:
            lock.release()

    def _who_holds(self) -> str:
        try:
            return f"process {json.loads(self._holder.read_text(encoding='utf-8'))['pid']}"
        except (OSError, ValueError, KeyError):
            return "another process"

    @contextmanager
    def _connected(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The writer's file, open and of this schema. Only under the lock."""
        if not self._writer.exists() and self.path.exists():
            _copy_in_place(self.path, self._writer)  # a folder that holds only what was published
        with _replayed(self._writer) as connection:
            _apply_schema(connection, self._writer)
            yield connection


_TABLES = (
    "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() AND NOT internal "
    "ORDER BY table_name"
)
_COLUMNS = (
    "SELECT column_name, data_type, column_default FROM duckdb_columns() "
    "WHERE database_name = current_database() AND table_name = ?"
)
_PRIMARY_KEY = (
    "SELECT constraint_column_names FROM duckdb_constraints() "
    "WHERE database_name = current_database() AND constraint_type = 'PRIMARY KEY' AND table_name = ?"
)


@contextmanager
def _replayed(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
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
            _copy_in_place(file, aside / file.name)
    try:
        connection = duckdb.connect(str(path), config={"storage_compatibility_version": STORAGE_VERSION})
    except duckdb.Error as error:
        if replay:
            for file in (path, log):
                _copy_in_place(aside / file.name, file)
        raise StoreError(
            f"{path} cannot be opened: {_first_line(error)}. Nothing was deleted; the published results are untouched. "
            f"To go on from them, move the folder {path.parent} away"
        ) from error
    try:
        if replay:
            connection.execute("CHECKPOINT")
            shutil.rmtree(aside)
        yield connection
    finally:
        connection.close()


def _apply_schema(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Make the tables and views, unless the file has exactly these already."""
    sql = resources.files("reports").joinpath("schema.sql").read_text(encoding="utf-8")
    digest = hashlib.sha256(sql.encode()).hexdigest()
    _refuse_newer(connection, path)
    if _recorded(connection) == (SCHEMA_VERSION, digest):
        return
    connection.execute("BEGIN TRANSACTION")
    connection.execute(sql)
    _same_columns(connection, sql, path)
    connection.execute("DELETE FROM schema_version")
    now = datetime.now(UTC).replace(tzinfo=None)
    row = [SCHEMA_VERSION, digest, duckdb.__version__, now]
    connection.execute("INSERT INTO schema_version VALUES (?, ?, ?, ?)", row)
    connection.execute("COMMIT")


def _recorded(connection: duckdb.DuckDBPyConnection) -> tuple[int, str] | None:
    if ("schema_version",) not in connection.execute(_TABLES).fetchall():
        return None
    rows = connection.execute("SELECT version, schema_sha256 FROM schema_version").fetchall()
    return rows[0] if rows else None


def _refuse_newer(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    recorded = _recorded(connection)
    if recorded and recorded[0] > SCHEMA_VERSION:
        raise StoreError(
            f"{path} has schema version {recorded[0]}, this software knows {SCHEMA_VERSION}; upgrade openbook"
        )


def _same_columns(connection: duckdb.DuckDBPyConnection, sql: str, path: Path) -> None:
    """A table that was there before keeps its columns, so they must be the ones of the contract."""
    columns = (
        "SELECT table_name || '.' || column_name || ' ' || data_type FROM duckdb_columns() "
        "WHERE database_name = current_database() AND NOT internal AND table_name NOT LIKE 'v\\_%' ESCAPE '\\'"
    )
    with duckdb.connect(":memory:") as fresh:
        fresh.execute(sql)
        wanted = set(fresh.execute(columns).fetchall())
    found = set(connection.execute(columns).fetchall())
    if wanted != found:
        different = ", ".join(sorted(name for (name,) in wanted ^ found)[:5])
        raise StoreError(
            f"{path} was written by another build of schema version {SCHEMA_VERSION} (differs: {different}); "
            "move its folder away to begin anew"
        )


def _filled(
    table: str, key: Mapping[str, object], rows: Sequence[Mapping[str, object]], shape: _Shape
) -> list[dict[str, object]]:
    """The rows with the key's columns in them, all columns known."""
    known = set(shape.arrow.names)
    for number, row in enumerate([key, *rows]):
        unknown = sorted(set(row) - known)
        if unknown:
            where = "the key" if number == 0 else f"row {number - 1}"
            raise StoreError(f"{table} has no column {unknown[0]!r} ({where}); known: {', '.join(shape.arrow.names)}")
    for number, row in enumerate(rows):
        outside = [column for column in key if column in row and row[column] != key[column]]
        if outside:
            column = outside[0]
            raise StoreError(f"{table}: row {number} has {column} = {row[column]!r} but the key says {key[column]!r}")
    return [{**key, **row} for row in rows]


def _or_default(value: str, shape: _Shape, column: str) -> str:
    default = shape.defaults.get(column)
    return value if default is None else f"coalesce({value}, {default})"


def _array(where: str, values: list[Any], kind: pa.DataType) -> pa.Array:
    try:
        if not pa.types.is_timestamp(kind):  # Arrow would take a time without a zone
            return pa.array(values, type=kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass  # some value needs to be made plain, or is wrong: which one is found below
    values = [_plain(value) for value in values]
    try:
        return pa.array(values, type=kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        row = _first_bad(values, kind)
        raise StoreError(f"{where}: row {row} holds {values[row]!r}, which is no {kind}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise StoreError(f"the time {value.isoformat()} has no time zone; use datetime.now(UTC)")
        return value.astimezone(UTC).replace(tzinfo=None)
    return str(value) if isinstance(value, Path) else value


def _json_text(value: Any) -> str | None:
    """JSON columns take text that is JSON already, or anything that can become it."""
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise StoreError(f"a value cannot become JSON: {error}; give text, numbers, lists and mappings") from error


def _first_bad(values: list[Any], kind: pa.DataType) -> int:
    for number, value in enumerate(values):
        try:
            pa.array([value], type=kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return number
    return 0


def _copy_in_place(source: Path, target: Path) -> None:
    """Copy a file so that ``target`` is at any moment the old one or the whole new one."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        shutil.copyfile(source, part)
        _sync(part)
        os.replace(part, target)
        _sync(target.parent)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StoreError(f"cannot write {target}: {error.strerror or error}; the old file is untouched") from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
