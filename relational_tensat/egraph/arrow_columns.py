"""Columns of many rows for Arrow, without what pyarrow does first: it imports pandas where that is there.

That takes a fifth of a second, as long as a small search, only to find that a list or an array is not of
pandas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_column(values: Any) -> pa.Array:
    """Return a list, an array of NumPy or one of Arrow as Arrow's.

    Numbers, booleans and text without None go by their bytes; all else as pyarrow has it.
    """
    import pyarrow as pa  # only large e-graphs, and universes of many subgraphs, need it

    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    array = _plain_array(values)
    if array is None:
        return pa.array(values)
    if array.dtype.kind == "U":
        return _text_column(array.tolist())
    if array.dtype.kind == "b":
        bits = pa.py_buffer(np.packbits(array, bitorder="little"))
        return pa.Array.from_buffers(pa.bool_(), len(array), [None, bits])
    kind = pa.from_numpy_dtype(array.dtype)
    return pa.Array.from_buffers(kind, len(array), [None, pa.py_buffer(array)])


def list_column(ends: NDArray[np.int32], values: NDArray[np.int32]) -> pa.Array:
    """Return rows of lists, one after the other in ``values``.

    Args:
        ends: by row, where its list ends.
    """
    import pyarrow as pa  # as above

    offsets = np.concatenate([[0], ends]).astype(np.int32)
    return pa.ListArray.from_arrays(arrow_column(offsets), arrow_column(values))


def fixed_list_column(rows: NDArray[np.int32]) -> pa.Array:
    """Return rows of equally many values as lists."""
    import pyarrow as pa  # as above

    return pa.FixedSizeListArray.from_arrays(arrow_column(rows.ravel()), rows.shape[1])


def plain_columns(columns: Mapping[str, Sequence[Any]]) -> dict[str, NDArray[Any]] | None:
    """Return lists as arrays that DuckDB reads as they are; None where one of them cannot be.

    Numbers, booleans and text without None; not NaN, which DuckDB takes for NULL. Lists of integers go as
    text, which it casts to a column's type: its appender, which takes lists, takes 4 ms when first called.
    """
    arrays: dict[str, NDArray[Any]] = {}
    for name, values in columns.items():
        kinds = set(map(type, values))
        if kinds == {list} and {type(item) for row in values for item in row} <= {int}:
            kinds, values = {str}, list(map(str, values))
        if kinds == {str}:
            arrays[name] = np.array(values, object)
            continue
        array = _plain_array(values)
        if array is None or (array.dtype.kind == "f" and np.isnan(array).any()):
            return None
        arrays[name] = array
    return arrays


def _plain_array(values: Any) -> NDArray[Any] | None:
    """Return values as an array of numbers, booleans or text; None if they are something else."""
    if not isinstance(values, np.ndarray):
        kinds = set(map(type, values))
        if len(kinds) != 1 or not kinds <= {int, float, bool, str}:
            return None
        try:
            values = np.array(values)
        except OverflowError:
            return None
        if kinds == {int} and values.dtype.kind == "f":  # of both signs, too large for one type
            return None
    is_plain = values.ndim == 1 and values.dtype.kind in "iufbU" and values.dtype.isnative
    return np.ascontiguousarray(values) if is_plain else None


def _text_column(values: Sequence[str]) -> pa.Array:
    import pyarrow as pa  # as above

    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(
        len(encoded), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))
    )
