"""Working tables: the temporary tables of all stages, as ``sql/schema/working.sql`` declares them.

Tables that are empty at first are created from the declaration. Those that hold the rows of a query are
created with them, by the stage's own statement; a test compares their columns with the declaration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

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
        name: its name.
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


def create_working(database: Database, name: str) -> None:
    """Create a working table, empty, as it is declared. One statement."""
    working_tables()[name].create(database)
