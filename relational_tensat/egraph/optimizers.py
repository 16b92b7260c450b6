"""Which passes of DuckDB's planner statements go through."""

from __future__ import annotations

from relational_tensat.base import duckdb

#: What DuckDB's planner may do. Our statements are many, small, and already in a good shape: planning
#: them is most of their cost, and the other passes take a sixth of it without ever paying. Joins stay as
#: they are written: to look for a better order costs a twelfth of all planning, and NasRNN's run at
#: k_multi 2 takes 1.4 times as long with what it finds.
OPTIMIZERS = frozenset(
    {
        "build_side_probe_side",
        "column_lifetime",
        "deliminator",
        "expression_rewriter",
        "filter_pullup",
        "filter_pushdown",
        "in_clause",
        "unnest_rewriter",
        "unused_columns",
    }
)


def limit_planning(connection: duckdb.DuckDBPyConnection) -> None:
    """Leave out all passes but ``OPTIMIZERS``."""
    optimizers = connection.execute("SELECT * FROM duckdb_optimizers()").fetchall()
    disabled = ",".join(sorted(name for (name,) in optimizers if name not in OPTIMIZERS))
    connection.execute(f"SET disabled_optimizers = '{disabled}'")
