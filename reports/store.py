"""The results database: one writer at a time, readers that never wait.

DuckDB lets one process write a file and shuts everybody else out of it, readers too. So the writer works in a file of
its own, ``writer/results.duckdb``, under a lock, and ``publish`` puts a copy in place as ``results.duckdb`` by a
rename. Whoever reads has a finished snapshot that no writer ever touches again.

``schema.sql`` is the contract. ``Session.replace`` writes, ``Store.query`` reads.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
from filelock import FileLock, Timeout

from reports.database import TABLES, apply_schema, first_line, is_current, literal, opened, quoted, refuse_newer
from reports.errors import StoreError
from reports.files import copy_in_place, put_in_place
from reports.session import Session

__all__ = ["Session", "Snapshot", "Store", "Table"]

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

    @property
    def is_published(self) -> bool:
        """Whether readers see all that was written: false after a kill between writing and publishing."""
        written = [part.stat().st_mtime_ns for part in self._writer.parent.glob(f"{self._writer.name}*")]
        return self.path.is_file() and all(self.path.stat().st_mtime_ns >= when for when in written)

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
                raise StoreError(f"nothing was written: {first_line(error)}") from error

    def publish(self) -> Path:
        """Put a copy of everything written so far in place as ``results.duckdb``, in one step."""
        with self._locked():
            with self._connected() as connection:
                connection.execute("CHECKPOINT")
            copy_in_place(self._writer, self.path)
        return self.path

    @contextmanager
    def snapshot(self) -> Iterator["Snapshot"]:
        """Several queries over one and the same published state, whatever is published meanwhile.

        Results of an older build get the columns and views of this one first, through the writer's file.
        Raises StoreError where nothing is published yet, the file has a newer schema, or an older one cannot be
        brought up to date.
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
            for (table,) in connection.execute(TABLES).fetchall():
                target = folder / f"{table}.parquet"
                part = target.with_suffix(".parquet.part")
                connection.execute(f"COPY (FROM {quoted(table)} ORDER BY ALL) TO {literal(part)} (FORMAT parquet)")
                put_in_place(part, target)
                written.append(target)
        return written

    @contextmanager
    def _reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        if not self.path.is_file():
            raise StoreError(f"there are no published results at {self.path}; run a study first")
        with self._attached() as connection:
            if is_current(connection):
                yield connection
                return
        try:  # of an older build: columns and views that queries name are not there yet
            self.publish()
        except StoreError as error:
            raise StoreError(f"{self.path} is of another build and was not brought up to date: {error}") from error
        with self._attached() as connection:
            yield connection

    @contextmanager
    def _attached(self) -> Iterator[duckdb.DuckDBPyConnection]:
        # Attached to an instance of its own: connecting to the file by name would share, within one process, the
        # snapshot of whoever opened that name first, even after a newer one was put in its place.
        with duckdb.connect(":memory:", config={"python_enable_replacements": False}) as connection:
            try:
                connection.execute(f"ATTACH {literal(self.path)} AS results (READ_ONLY)")
                connection.execute("USE results")
            except duckdb.Error as error:
                raise StoreError(f"{self.path} cannot be read: {first_line(error)}") from error
            refuse_newer(connection, self.path)
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
            copy_in_place(self.path, self._writer)  # a folder that holds only what was published
        with opened(self._writer) as connection:
            apply_schema(connection, self._writer)
            yield connection
