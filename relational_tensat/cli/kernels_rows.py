"""``kernels show --sql``: the rows of a search that a kernel came from, and the SQL that asks for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from relational_tensat.base.errors import InputError
from relational_tensat.base.resources import sql

if TYPE_CHECKING:
    from rich.console import Console

    from relational_tensat.mugraph.graph.mugraph import MuGraph

#: Of any database that has kernels; of one that a search has kept its tables in.
_OF_KERNELS = ("mugraph/rows_of_kernel",)
_OF_SEARCHES = ("mugraph/configs_of_kernel", "mugraph/passes_of_kernel")


def mugraph_of(path: Path, key: str) -> MuGraph:
    """Return the μGraph of a kernel that a database has.

    Raises:
        InputError: it has none of that name, or it is malformed.
    """
    from relational_tensat.cli.database import RunDatabase
    from relational_tensat.mugraph.graph.mugraph_json import decoded

    database = RunDatabase(path)
    try:
        found = database.query("SELECT mugraph, graph FROM fused_kernel ORDER BY mugraph").rows
    finally:
        database.close()
    graphs = dict(found)
    if key not in graphs:
        names = ", ".join(graphs) or "none"
        raise InputError(f"{path}: no kernel {key!r}, there are: {names}")
    return decoded(json.loads(graphs[key]), f"{path}: {key}")


def show_rows(graph: MuGraph, console: Console) -> None:
    """Print the rows that a μGraph's file has.

    Raises:
        InputError: it has none.
    """
    from relational_tensat.cli.database import QueryRows
    from relational_tensat.cli.inspect_text import print_rows

    if not graph.rows:
        raise InputError(
            f"{graph.name}: no rows of a search: it was made, imported, or written before rows were kept"
        )
    columns = tuple(graph.rows[0].content())
    rows = [tuple(row.content().values()) for row in graph.rows]
    console.print("the rows of the search; with --db of a database that has it, as SQL")
    print_rows(QueryRows(columns, rows), console)


def show_sql(path: Path, key: str, console: Console) -> None:
    """Print each statement as it can be run there, and its rows."""
    from relational_tensat.cli.database import RunDatabase
    from relational_tensat.cli.inspect_text import print_rows
    from relational_tensat.explore.rule_run import literal

    database = RunDatabase(path)
    try:
        tables = {name for (name,) in database.query("SELECT table_name FROM duckdb_tables()").rows}
        names = (*_OF_KERNELS, *(_OF_SEARCHES if "derivation" in tables else ()))
        for name in names:
            text = sql(name).strip().replace("$mugraph", literal(key))
            console.print(text, markup=False, highlight=False)
            print_rows(database.query(text), console)
    finally:
        database.close()
