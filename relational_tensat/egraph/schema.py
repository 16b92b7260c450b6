"""The schema: the published tables of a run, and the working tables of its stages.

Files of ``sql/schema`` have the tables, a purpose a file. Each table, view and column has a COMMENT, which
a database in a file keeps, so that the file alone explains itself.

Working tables are the temporary tables of all stages (``sql/schema/working.sql``). Those that are empty at
first are created from the declaration. Those that hold the rows of a query are created with them, by the
stage's own statement; a test compares their columns with the declaration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache

from relational_tensat.base import duckdb
from relational_tensat.base.files import sql
from relational_tensat.base.records import record
from relational_tensat.egraph.database import Database

_TABLE = re.compile(
    r"CREATE TEMP TABLE (?P<name>\w+) \((?P<columns>.*?)\);\n"
    r"COMMENT ON TABLE (?P=name) IS '(?P<comment>[^']*)';",
    re.DOTALL,
)


@record
class WorkingTable:
    """A working table.

    Attributes:
        columns: their definitions in SQL, on one line.
        comment: the stage that works with it, and what it holds.
    """

    name: str
    columns: str
    comment: str

    def create(self, database: Database, **widths: int) -> None:
        """Create the table, empty, in one statement; replace one of that name.

        Args:
            database: of the e-graph that works with it.
            widths: how many columns there are of those of which the declaration has the first, by letter:
                ``g=4`` makes ``g0`` to ``g3``.
        """
        columns = self.columns
        for letter, width in widths.items():
            several = ", ".join(f"{letter}{i} INTEGER" for i in range(width))
            columns = columns.replace(f"{letter}0 INTEGER", several)
        text = f"CREATE OR REPLACE TEMP TABLE {self.name} ({columns})"
        database.execute(f"-- {self.comment}\n{text}", name=self.name)


@cache
def working_tables() -> Mapping[str, WorkingTable]:
    """Return all working tables by name, in the order of the declaration."""
    title, *blocks = sql("schema/working").strip().split("\n\n")
    assert title.startswith("-- Working tables\n")
    tables = {}
    for block in blocks:
        match = _TABLE.fullmatch(block)
        assert match is not None, block
        tables[match["name"]] = WorkingTable(
            match["name"],
            " ".join(match["columns"].split()),
            match["comment"],
        )
    return tables


#: The files of ``sql/schema`` with the tables of a new database; views depend on all others.
_NEW = (
    "shared", "kernel_terms", "egraph", "model", "reasons", "exploration", "extraction", "views", "course",
)  # fmt: skip

#: The file with the tables that only a running process has: see above.
WORKING = "working"

#: All other files, in the order in which they are carried out.
PURPOSES = (*_NEW, "subgraphs", "universe", "search_tree")


@record
class Column:
    """A column as the database describes it."""

    name: str
    type: str
    comment: str | None


@record
class PublishedTable:
    """A table or view as the database describes it."""

    name: str
    is_view: bool
    comment: str | None
    columns: list[Column] = field(default_factory=list)


def create_tables(database: Database) -> None:
    """Make the tables of a new database."""
    _create(database, _NEW)


def create_subgraphs(database: Database) -> None:
    """Make the tables of a search over subgraphs, empty."""
    _create(database, ("subgraphs",))


def create_universe(database: Database) -> None:
    """Make the table of a universe's applications, empty."""
    _create(database, ("universe",))


def create_search_tree(database: Database) -> None:
    """Make the tables of a tree search, empty."""
    _create(database, ("search_tree",))


def purpose_title(purpose: str) -> tuple[str, str]:
    """Return the title of a file of ``sql/schema`` and what holds of all its tables."""
    lines = sql(f"schema/{purpose}").partition("\n\n")[0].splitlines()
    title, *text = (line.removeprefix("-- ") for line in lines)
    return title, " ".join(text)


def purpose_of(name: str) -> str | None:
    """Return the file of ``sql/schema`` that makes a table or view; None for a working table."""
    own = name.rpartition(".")[2]
    definitions = (f"CREATE TABLE {own} (", f"CREATE VIEW {own} AS")
    return next(
        (p for p in PURPOSES if any(text in sql(f"schema/{p}") for text in definitions)), None
    )


def read_schema(connection: duckdb.DuckDBPyConnection) -> list[PublishedTable]:
    """Return the tables and views of a database that outlive the process, by name, with their comments.

    Those of other schemas than ``main`` have its name before theirs.
    """
    rows = connection.execute(sql("inspect/schema")).fetchall()
    tables: dict[str, PublishedTable] = {}
    for name, is_view, comment, column, kind, column_comment in rows:
        table = tables.setdefault(name, PublishedTable(name, is_view, comment))
        table.columns.append(Column(column, kind, column_comment))
    return list(tables.values())


def _create(database: Database, purposes: Sequence[str]) -> None:
    """Make tables; in a file with their comments. Nobody reads those in memory."""
    for purpose in purposes:
        definitions, comments = _parts(purpose)
        database.execute_all(definitions, f"schema/{purpose}")
        if database.is_file:
            database.execute_all(comments, f"schema/{purpose} comments")


@cache
def _parts(purpose: str) -> tuple[str, str]:
    """Return the statements of a file of ``sql/schema`` that make tables, and those that comment them."""
    statements = sql(f"schema/{purpose}").split(";\n")
    comments = [text for text in statements if text.startswith("COMMENT ON ")]
    definitions = [text for text in statements if not text.startswith("COMMENT ON ")]
    return ";\n".join(definitions), ";\n".join(comments)
