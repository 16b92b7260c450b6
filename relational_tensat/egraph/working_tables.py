"""Working tables: the temporary tables of all stages, as ``sql/schema/working.sql`` declares them.

Tables that are empty at first are created from the declaration. Those that hold the rows of a query are
created with them, by the stage's own statement; a test compares their columns with the declaration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from relational_tensat.base.records import record
from relational_tensat.base.resources import sql
from relational_tensat.egraph.database import Database

_TABLE = re.compile(
    r"CREATE TEMP TABLE (?P<name>\w+) \((?P<columns>.*?)\);\n"
    r"COMMENT ON TABLE (?P=name) IS '(?P<comment>[^']*)';\n?(?P<column_comments>.*)",
    re.DOTALL,
)
_COLUMN_COMMENT = re.compile(r"COMMENT ON COLUMN \w+\.(\w+) IS\s+'([^']*)';")


@record
class WorkingTable:
    """A working table.

    Attributes:
        name: its name.
        columns: their definitions in SQL, on one line.
        comment: the stage that works with it, and what it holds.
        column_comments: by column; only of tables that a file may have.
    """

    name: str
    columns: str
    comment: str
    column_comments: Mapping[str, str]

    def create(self, database: Database, *, kept: bool = False, **widths: int) -> None:
        """Create the table, empty, in one statement; replace one of that name.

        Args:
            database: of the e-graph that works with it.
            kept: a database in a file keeps it, with its comments.
            widths: how many columns there are of those of which the declaration has the first, by letter:
                ``g=4`` makes ``g0`` to ``g3``.
        """
        kept = kept and database.is_file
        columns = self.columns
        for letter, width in widths.items():
            several = ", ".join(f"{letter}{i} INTEGER" for i in range(width))
            columns = columns.replace(f"{letter}0 INTEGER", several)
        text = f"CREATE OR REPLACE {'TABLE' if kept else 'TEMP TABLE'} {self.name} ({columns})"
        database.execute(f"-- {self.comment}\n{text}", name=self.name)
        if kept:
            database.execute_all(self._comments(widths), f"{self.name} comments")

    def _comments(self, widths: Mapping[str, int]) -> str:
        """Return the statements that write the comments into the database."""
        comments = dict(self.column_comments)
        for letter, width in widths.items():
            later = (f"{letter}{i}" for i in range(1, width))
            comments.update(dict.fromkeys(later, f"As {letter}0, of the next one."))
        statements = [f"COMMENT ON TABLE {self.name} IS '{self.comment}'"]
        statements += [
            f"COMMENT ON COLUMN {self.name}.{column} IS '{comment}'"
            for column, comment in comments.items()
        ]
        return ";\n".join(statements)


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
            dict(_COLUMN_COMMENT.findall(match["column_comments"])),
        )
    return tables


def create_working(database: Database, name: str) -> None:
    """Create a working table, empty, as it is declared. One statement."""
    working_tables()[name].create(database)
