"""The page about the tables of a run's database: ``schema`` prints it, docs/schema.md keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from relational_tensat.base.folders import temporary_folder
from relational_tensat.egraph.database import FORMAT_VERSION
from relational_tensat.egraph.schema import (
    PURPOSES,
    WORKING,
    Column,
    PublishedTable,
    WorkingTable,
    purpose_of,
    purpose_title,
    read_schema,
)

_BEGINNING = f"""# The database of a run

`relational-tensat run MODEL --db run.duckdb` keeps the e-graph, all that made it, and the extracted graph.
The database has comments (`duckdb_tables()`, `duckdb_columns()`, `duckdb_views()`), and
`relational-tensat schema` prints this page from them. `relational-tensat schema run.duckdb` prints the page
of a file. The format is version {FORMAT_VERSION} (`meta`, key `format_version`); files of others are
rejected.
"""

#: Title and query of each example: they run on the database of any finished run.
EXAMPLES = (
    (
        "E-nodes by the rule that made them",
        "SELECT rule, count(*) AS e_nodes FROM enode_text GROUP BY rule ORDER BY e_nodes DESC",
    ),
    (
        "What patterns compare: heads, and how many e-nodes have each",
        "SELECT coalesce(h.text, 'no rule names it') AS head, count(*) AS e_nodes\n"
        "FROM enode AS e LEFT JOIN head AS h ON h.id = e.head\n"
        "GROUP BY h.text ORDER BY e_nodes DESC",
    ),
    (
        "The extracted graph: operators, what they cost and which rules made them",
        "SELECT e.class, e.op, e.attrs, e.type, e.rule, c.cost_us\n"
        "FROM chosen AS x\n"
        "JOIN enode_text AS e ON e.id = x.enode\n"
        "JOIN enode AS n ON n.id = x.enode\n"
        "LEFT JOIN cost AS c ON c.signature = n.signature\n"
        "ORDER BY c.cost_us DESC NULLS LAST",
    ),
    (
        "The values of the original graph: their classes now, and how many forms these have",
        "SELECT v.name, c.parent AS class, count(*) AS forms\n"
        "FROM original_value AS v\n"
        "JOIN eclass AS c ON c.id = v.enode\n"
        "JOIN enode AS e ON e.class = c.parent\n"
        "GROUP BY v.name, c.parent ORDER BY forms DESC, v.name",
    ),
    (
        "Which rules united the most classes, in which iteration",
        "SELECT u.iteration, r.name, count(*) AS unions\n"
        "FROM union_log AS u JOIN rule AS r ON r.id = u.rule\n"
        "GROUP BY u.iteration, r.name ORDER BY unions DESC",
    ),
)


def schema_page(tables: Sequence[PublishedTable], working: Iterable[WorkingTable] = ()) -> str:
    """Return the page of a database's tables, grouped by purpose, with examples.

    Args:
        tables: those that a file has.
        working: those that only a running process has.
    """
    parts = [_BEGINNING]
    for purpose in PURPOSES:
        title, text = purpose_title(purpose)
        own = [table for table in tables if purpose_of(table.name) == purpose]
        if own:
            parts.append(f"## {title}\n\n{text}\n")
            parts += [_table_text(table) for table in own]
    if others := [table for table in tables if purpose_of(table.name) is None]:
        parts.append("## Other tables\n\nNo run makes these.\n")
        parts += [_table_text(table) for table in others]
    if rows := [f"| `{t.name}` | {t.comment} | `{t.columns}` |" for t in working]:
        title, text = purpose_title(WORKING)
        head = ["| table | stage and purpose | columns |", "| --- | --- | --- |"]
        parts.append("\n".join([f"## {title}\n\n{text}\n", *head, *rows]) + "\n")
    parts.append("## Examples\n")
    parts += [f"{title}:\n\n```sql\n{query}\n```\n" for title, query in EXAMPLES]
    return "\n".join(parts)


def example_schema() -> list[PublishedTable]:
    """Return the tables of a run with a search, of which others have a part."""
    from relational_tensat.egraph.database import Database
    from relational_tensat.egraph.schema import (
        create_search_tree,
        create_subgraphs,
        create_tables,
        create_universe,
    )

    with temporary_folder() as folder:
        database = Database(folder / "schema.duckdb")
        try:
            create_tables(database)
            create_subgraphs(database)
            create_universe(database)
            create_search_tree(database)
            return read_schema(database.connection)
        finally:
            database.close()


def ledger_page() -> str:
    """Return the page of the tables of a fleet's ledger."""
    from contextlib import closing

    from relational_tensat.base.duckdb import open_database
    from relational_tensat.base.files import sql

    with closing(open_database(None)) as connection:
        connection.execute(sql("fleet/schema"))
        tables = "\n".join(map(_table_text, read_schema(connection)))
    return f"# The ledger of a fleet\n\n`fleet.duckdb`, in the output folder.\n\n{tables}"


def _table_text(table: PublishedTable) -> str:
    kind = " (view)" if table.is_view else ""
    rows = [f"| {names} | {kind} | {comment} |" for (kind, comment), names in _alike(table.columns)]
    head = ["| column | type | |", "| --- | --- | --- |"]
    return "\n".join([f"### {table.name}{kind}\n", f"{table.comment}\n", *head, *rows]) + "\n"


def _alike(columns: Sequence[Column]) -> list[tuple[tuple[str, str], str]]:
    """Return (type, comment) and names of columns, those that follow each other with the same together."""
    groups = groupby(columns, key=lambda column: (column.type, column.comment or ""))
    return [
        (described, f"`{group[0].name}`" + (", …" if len(group) > 1 else ""))
        for described, group in ((key, list(members)) for key, members in groups)
    ]
