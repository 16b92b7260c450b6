"""Columns for Arrow: as pyarrow makes them, and without pandas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from relational_tensat.egraph.arrow_columns import arrow_column, fixed_list_column, list_column


@pytest.mark.parametrize(
    "values",
    [
        [1, -2, 3],
        [0.5, float("nan"), float("inf")],
        [True, False, True] * 5,
        ["a", "", "größe", "a\x00b"],
        [],
        [1, None],
        [1, 2.5],
        [[1, 2], []],
        [2**70],
        np.arange(10, dtype=np.int32)[::3],
        np.arange(6, dtype=np.uint8).reshape(2, 3)[1],
        np.array([True, False] * 9),
        np.array(["waiting", "built"])[[1, 0, 1]],
        np.array([1, 2], dtype=">i4"),
        pa.array([1, None]),
    ],
)
def test_a_column_is_what_pyarrow_makes_of_it(values: Any) -> None:
    try:
        expected = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError) as error:
        with pytest.raises(type(error)):
            arrow_column(values)
        return
    column = arrow_column(values)
    assert column.type == expected.type
    column.validate(full=True)
    assert str(column.to_pylist()) == str(expected.to_pylist())


def test_lists_of_equal_and_of_other_lengths() -> None:
    rows = np.array([[1, 2], [3, 4], [5, 6]], np.int32)
    assert fixed_list_column(rows).to_pylist() == rows.tolist()
    assert fixed_list_column(rows[:, :1]).to_pylist() == [[1], [3], [5]]
    lists = list_column(np.array([1, 1, 4], np.int32), np.array([7, 8, 9, 1], np.int32))
    assert lists.to_pylist() == [[7], [], [8, 9, 1]]


def test_pandas_is_not_imported(tmp_path: Path) -> None:
    """It is there, and says so where something imports it."""
    (tmp_path / "pandas.py").write_text("raise SystemExit('pandas was imported')", "utf-8")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import numpy as np\n"
        "from relational_tensat.egraph.arrow_columns import *\n"
        "from relational_tensat.egraph.database import Database\n"
        "database = Database()\n"
        "database.execute('CREATE TABLE t (a INTEGER, b INTEGER[], c VARCHAR)')\n"
        "rows = np.ones((2, 3), np.int32)\n"
        "columns = {'a': [1, 2], 'b': fixed_list_column(rows), 'c': np.array(['x', 'y'])}\n"
        "database.insert_arrays('t', columns, 'insert t')\n"
        "print(database.execute('FROM t'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[(1, [1, 1, 1], 'x'), (2, [1, 1, 1], 'y')]\n", done.stderr
