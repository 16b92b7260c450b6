"""Rows of queries as tables of other libraries: DuckDB's own Arrow table is the oracle."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest

from relational_tensat.base.errors import MissingDependencyError
from relational_tensat.run.workbench import SqlRows

QUERIES = (
    "SELECT i::TINYINT AS a, i::BIGINT AS b, i::HUGEINT AS c, i / 3 AS d, (i % 2 = 0) AS e,"
    " 'n' || i AS f FROM range(5) AS t(i)",
    "SELECT NULL AS a, CAST(NULL AS INTEGER) AS b, CAST(NULL AS VARCHAR) AS c",
    "SELECT [1, 2] AS a, {'k': 1, 'l': 'x'} AS b, MAP {'x': 1} AS c, '\\xAA'::BLOB AS d",
    "SELECT 1.50::DECIMAL(5, 2) AS a, DATE '2026-01-02' AS b, TIMESTAMP '2026-01-02 03:04:05' AS c",
    "SELECT 'b'::ENUM('a', 'b') AS a, uuid() AS b FROM range(2)",
    "SELECT 1 AS a, 2 AS b WHERE false",
    "SELECT 1 AS a, 2 AS a",
)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        yield made


@pytest.mark.parametrize("query", QUERIES)
def test_arrow_has_the_types_and_values_that_duckdb_gives(
    query: str, connection: duckdb.DuckDBPyConnection
) -> None:
    connection.execute(f"CREATE OR REPLACE TEMP TABLE kept AS {_unique(query)}").fetchall()
    rows = SqlRows.fetch(connection.execute("FROM kept"))
    expected = connection.sql("FROM kept").to_arrow_table()
    table = rows.arrow()
    assert isinstance(table, pa.Table)
    assert table.schema.types == expected.schema.types
    assert table.to_pylist() == expected.to_pylist()
    assert rows.rows == tuple(connection.execute("FROM kept").fetchall())


def _unique(query: str) -> str:
    return query.replace("2 AS a", "2 AS z")


def test_columns_of_one_name_stay_apart(connection: duckdb.DuckDBPyConnection) -> None:
    rows = SqlRows.fetch(connection.execute(QUERIES[-1]))
    assert rows.columns == ("a", "a")
    assert [column.to_pylist() for column in rows.arrow().columns] == [[1], [2]]


def test_what_arrow_does_not_take_is_text(connection: duckdb.DuckDBPyConnection) -> None:
    rows = SqlRows.fetch(connection.execute("SELECT '101'::BIT AS a, '1 day'::INTERVAL AS b"))
    assert rows.arrow().num_rows == 1


def test_a_statement_without_rows_has_none(connection: duckdb.DuckDBPyConnection) -> None:
    rows = SqlRows.fetch(connection.execute("CREATE OR REPLACE TEMP TABLE other (a INTEGER)"))
    assert list(rows) == []
    assert rows.arrow().num_rows == 0


@pytest.mark.parametrize(("package", "method"), [("pandas", "df"), ("polars", "pl")])
def test_data_frames(package: str, method: str, connection: duckdb.DuckDBPyConnection) -> None:
    pytest.importorskip(package)
    rows = SqlRows.fetch(connection.execute(QUERIES[0]))
    frame = getattr(rows, method)()
    assert list(frame.columns) == list(rows.columns)
    assert list(frame["f"]) == ["n0", "n1", "n2", "n3", "n4"]
    assert list(frame["b"]) == [0, 1, 2, 3, 4]


def test_what_is_not_installed_is_said(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = SqlRows.fetch(connection.execute("SELECT 1 AS a"))
    for package, method in (("pandas", rows.df), ("polars", rows.pl)):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingDependencyError, match=f"needs {package}: pip install {package}"):
            method()
