"""Arrow columns of Python values.

``pyarrow.array`` asks of every list whether it is a pandas object, for which it imports pandas: a fifth of a second and
some 40 MB for every worker process, which needs it for nothing else.
"""

from collections.abc import Sequence
from typing import cast

import numpy as np
import pyarrow as pa


def make_table(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    """Rows as an Arrow table; columns are strings, integers, or lists of structs of those, without nulls.

    Raises OverflowError for an integer that the column's type cannot hold.

    >>> make_table([("Lima", 3)], pa.schema([("title", pa.string()), ("words", pa.int16())])).to_pylist()
    [{'title': 'Lima', 'words': 3}]
    """
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [_array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(values: Sequence[object], type: pa.DataType) -> pa.Array:
    if pa.types.is_string(type):
        return _strings(cast(Sequence[str], values))
    if pa.types.is_list(type):
        return _structs(cast(Sequence[Sequence[dict[str, object]]], values), type)
    numbers = np.array(values, type.to_pandas_dtype())
    return pa.Array.from_buffers(type, len(numbers), [None, pa.py_buffer(numbers)])


def _strings(values: Sequence[str]) -> pa.Array:
    encoded = [value.encode() for value in values]
    data = pa.py_buffer(b"".join(encoded))
    return pa.Array.from_buffers(pa.string(), len(encoded), [None, _offsets(encoded), data])


def _structs(values: Sequence[Sequence[dict[str, object]]], type: pa.ListType) -> pa.Array:
    fields = list(type.value_type)
    flat = [item for value in values for item in value]
    parts = [_array([item[field.name] for item in flat], field.type) for field in fields]
    structs = pa.StructArray.from_arrays(parts, fields=fields)
    return pa.Array.from_buffers(type, len(values), [None, _offsets(values)], children=[structs])


def _offsets(values: Sequence[Sequence[object]]) -> pa.Buffer:
    """Where each value ends; 32 bits, so a column holds 2 GB at most: far more than a block of pages."""
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum([len(value) for value in values], out=ends[1:])
    if ends[-1] > np.iinfo(np.int32).max:
        raise OverflowError(f"a column of {ends[-1]} bytes; the most is 2 GB")
    return pa.py_buffer(ends.astype(np.int32))
