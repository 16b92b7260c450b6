"""The rows of a query, as they are, or for pandas, polars and Arrow, with the types that DuckDB gave them.

Rows are read at once: they stay as they are when the e-graph grows, and when it is closed.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relational_tensat.base import duckdb
from relational_tensat.base.errors import MissingDependencyError
from relational_tensat.base.shown_text import HtmlTable

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


@dataclass(frozen=True, slots=True, repr=False)
class SqlRows(HtmlTable):
    """The rows of a query: iterated over, shown by a notebook, or made a table of another library.

    Attributes:
        types: of the columns, as DuckDB names them.
    """

    types: tuple[str, ...]

    @classmethod
    def fetch(cls, cursor: duckdb.DuckDBPyConnection) -> SqlRows:
        """Return all rows of a statement that was executed; none of one that gives none.

        Raises:
            duckdb.Error: the database cannot read them.
        """
        described = cursor.description or ()
        columns = tuple(str(column[0]) for column in described)
        rows = tuple(cursor.fetchall()) if columns else ()
        return cls(columns, rows, tuple(str(column[1]) for column in described))

    def arrow(self) -> pyarrow.Table:
        """Return the rows as a table of Arrow."""
        import pyarrow

        duckdb.import_package()
        with duckdb.open_database(None) as connection:
            arrays = [
                _array([row[place] for row in self.rows], kind, connection)
                for place, kind in enumerate(self.types)
            ]
        return pyarrow.Table.from_arrays(arrays, names=list(self.columns))

    def df(self) -> pandas.DataFrame:
        """Return the rows as a data frame of pandas.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        _need("pandas", "df")
        return self.arrow().to_pandas()

    def pl(self) -> polars.DataFrame:
        """Return the rows as a data frame of polars.

        Raises:
            MissingDependencyError: polars is not installed.
        """
        return _need("polars", "pl").from_arrow(self.arrow())


def _array(values: list[Any], kind: str, connection: duckdb.DuckDBPyConnection) -> pyarrow.Array:
    """Return a column; values that Arrow does not have become text."""
    import pyarrow

    null = connection.sql(f"SELECT CAST(NULL AS {kind}) AS value").to_arrow_table()
    wanted = null.schema.field(0).type
    shown = [list(value.items()) if _is_map(value, wanted) else value for value in values]
    refused = (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError)
    try:
        return pyarrow.array(shown, type=wanted)
    except refused:
        return pyarrow.array([None if value is None else str(value) for value in values])


def _is_map(value: Any, wanted: pyarrow.DataType) -> bool:
    import pyarrow

    return isinstance(value, dict) and pyarrow.types.is_map(wanted)


def _need(package: str, method: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingDependencyError(
            f"{method}() needs {package}: pip install {package}; arrow() needs nothing more"
        ) from None
