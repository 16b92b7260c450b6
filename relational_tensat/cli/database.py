"""Reading a finished run's database: one's own queries, and the figures that ``inspect`` prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from relational_tensat.base import duckdb
from relational_tensat.base.errors import InputError, UsageError
from relational_tensat.base.files import sql
from relational_tensat.cli.console import table


@dataclass(frozen=True, slots=True)
class QueryRows:
    """The rows that a query returned."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def as_objects(self) -> list[dict[str, Any]]:
        """Return the rows as objects by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


class RunDatabase:
    """A run's database, opened so that no query can change it, or any other file."""

    def __init__(self, path: Path) -> None:
        """Open the database.

        Raises:
            InputError: there is no such file, or it is not a DuckDB database.
        """
        if not path.is_file():
            raise InputError(f"{path}: no such database file")
        try:
            self._connection = duckdb.open_database(path)
        except duckdb.Error as error:
            raise InputError(f"{path}: cannot be opened: {_one_line(error)}") from error
        self._path = path

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """DuckDB's own connection, which cannot change the database either."""
        return self._connection

    def query(self, text: str, params: Mapping[str, Any] | None = None) -> QueryRows:
        """Run a query and return all its rows.

        Raises:
            UsageError: the query is wrong, or would change something.
        """
        try:
            result = self._connection.execute(text, params)
            if result is None or result.description is None:
                raise UsageError(f"{self._path}: the query is empty: {text!r}")
            columns = tuple(str(column[0]) for column in result.description or ())
            return QueryRows(columns, result.fetchall())
        except duckdb.Error as error:
            raise UsageError(f"{self._path}: {_one_line(error)}") from error

    def named(self, name: str, **params: Any) -> QueryRows:
        """Run ``sql/NAME.sql``.

        Raises:
            InputError: the database was not written by a run of this program.
        """
        try:
            return self.query(sql(name), params or None)
        except UsageError as error:
            reason = str(error.__cause__).partition("\n")[0].partition(" Did you mean")[0]
            raise InputError(f"{self._path}: not a database of a run: {reason}") from error

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


def _one_line(error: Exception) -> str:
    """Return DuckDB's message without the lines that point into the query."""
    words: list[str] = []
    for line in str(error).splitlines():
        if line.startswith("LINE "):
            break
        if line.strip():
            words.append(line.strip())
    return " ".join(words) or type(error).__name__


#: The columns that hold text; all others are numbers.
_TEXT = frozenset({"what", "type", "operators", "name"})

#: Columns of sql/inspect_rules.sql.
_MATCHES, _SECONDS = 1, 5


@dataclass(frozen=True, slots=True)
class Inspection:
    """Sizes, biggest classes, rules by matches and time, growth per iteration."""

    sizes: QueryRows
    classes: QueryRows
    rules: QueryRows
    growth: QueryRows
    n_classes: int

    def to_json(self) -> dict[str, Any]:
        """Return all of it as one object."""
        return {
            "sizes": dict(self.sizes.rows),
            "classes": self.classes.as_objects(),
            "rules": self.rules.as_objects(),
            "growth": self.growth.as_objects(),
        }


def inspect_database(database: RunDatabase, classes_shown: int) -> Inspection:
    """Read the figures.

    Raises:
        InputError: the database was not written by a run of this program.
    """
    sizes = database.named("inspect/sizes")
    return Inspection(
        sizes=sizes,
        classes=database.named("inspect/classes", shown=classes_shown),
        rules=database.named("inspect/rules"),
        growth=database.named("inspect/growth"),
        n_classes=dict(sizes.rows)["e-classes"],
    )


def print_inspection(inspection: Inspection, console: Console) -> None:
    """Print the figures as tables."""
    print_rows(inspection.sizes, console)
    shown = len(inspection.classes.rows)
    console.print(f"\nbiggest e-classes (showing {shown} of {inspection.n_classes:,})")
    print_rows(inspection.classes, console)
    console.print("\nrules that matched, by matches and time")
    matched = [row for row in inspection.rules.rows if row[_MATCHES] > 0]
    print_rows(QueryRows(inspection.rules.columns, matched), console)
    idle = [row for row in inspection.rules.rows if row[_MATCHES] == 0]
    seconds = sum(row[_SECONDS] for row in idle)
    console.print(f"(and {len(idle)} rules without a match, {seconds:.4f} s)")
    console.print("\ngrowth per iteration")
    print_rows(inspection.growth, console)


def print_rows(rows: QueryRows, console: Console) -> None:
    """Print the rows of a query as a table."""
    numbers = tuple(column for column in rows.columns if column not in _TEXT)
    shape = table(*rows.columns, numbers=numbers)
    for row in rows.rows:
        shape.add_row(*(_cell(value) for value in row))
    console.print(shape)


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:,.4f}"
    return str(value)
