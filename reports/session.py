"""Writing rows: one transaction, any table of the schema."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from reports.database import TABLES, first_line, quoted
from reports.errors import StoreError

_COLUMNS = (
    "SELECT column_name, data_type, column_default FROM duckdb_columns() "
    "WHERE database_name = current_database() AND table_name = ?"
)
_PRIMARY_KEY = (
    "SELECT constraint_column_names FROM duckdb_constraints() "
    "WHERE database_name = current_database() AND constraint_type = 'PRIMARY KEY' AND table_name = ?"
)


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
            raise StoreError(f"{table}: {first_line(error)}") from error
        return len(filled)

    def _put(self, table: str, key: Mapping[str, object], rows: list[dict[str, object]]) -> None:
        """Delete what the new rows do not replace, then insert or update.

        Deleting all and inserting again would come to the same, but where deleted keys come back DuckDB's commit is
        slow: 100,000 rows took 10 to 20 seconds, and take half a second this way.
        """
        shape = self._shape(table)
        self._connection.register("_incoming", self._arrow(table, rows))
        columns = ", ".join(f"{_or_default(quoted(c), shape, c)} AS {quoted(c)}" for c in shape.arrow.names)
        incoming = f"(SELECT {columns} FROM _incoming)"
        self._refuse_twice(table, incoming, shape)
        matches = [f"t.{quoted(c)} IS NOT DISTINCT FROM {_or_default('?', shape, c)}" for c in key]
        same = [f"i.{quoted(c)} = t.{quoted(c)}" for c in shape.primary]
        self._connection.execute(
            f"DELETE FROM {quoted(table)} AS t WHERE {' AND '.join(matches)} "
            f"AND NOT EXISTS (FROM {incoming} AS i WHERE {' AND '.join(same)})",
            [_plain(value) for value in key.values()],
        )
        update = ", ".join(f"{quoted(c)} = excluded.{quoted(c)}" for c in shape.arrow.names if c not in shape.primary)
        self._connection.execute(
            f"INSERT INTO {quoted(table)} BY NAME FROM {incoming} "
            f"ON CONFLICT {f'DO UPDATE SET {update}' if update else 'DO NOTHING'}"
        )
        self._connection.unregister("_incoming")

    def _refuse_twice(self, table: str, incoming: str, shape: _Shape) -> None:
        """An upsert would keep one of two rows with the same primary key and say nothing."""
        primary = ", ".join(quoted(c) for c in shape.primary)
        twice = f"SELECT {primary} FROM {incoming} GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL LIMIT 1"
        found = self._connection.execute(twice).fetchall()
        if found:
            named = ", ".join(f"{c} = {value!r}" for c, value in zip(shape.primary, found[0], strict=True))
            raise StoreError(f"{table}: two rows have the same primary key: {named}")

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
            known = [name for (name,) in self._connection.execute(TABLES).fetchall()]
            if table not in known:
                raise StoreError(f"there is no table {table!r}; known: {', '.join(known)}")
            columns = self._connection.execute(_COLUMNS, [table]).fetchall()
            primary = self._connection.execute(_PRIMARY_KEY, [table]).fetchall()
            self._shapes[table] = _Shape(
                arrow=self._connection.sql(f"FROM {quoted(table)} LIMIT 0").to_arrow_table().schema,
                primary=[name for (names,) in primary for name in names],
                defaults={name: default for name, _, default in columns if default is not None},
                json={name for name, kind, _ in columns if kind == "JSON"},
            )
        return self._shapes[table]


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
