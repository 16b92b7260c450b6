"""Queries of one's own, and examples that teach the schema."""

from __future__ import annotations

from relational_tensat.base import duckdb
from relational_tensat.view.data.page_data import Example, QueryAnswer
from relational_tensat.view.query_process import MOST_ROWS, answered

#: An example has fewer rows than an answer may have.
_EXAMPLE_ROWS = 40

#: Title and query of each example; they run on any finished run.
EXAMPLES = (
    (
        "Which rules made the e-nodes, and which of them are in the result",
        "SELECT e.rule, count(*) AS e_nodes, count(x.enode) AS in_the_result\n"
        "FROM enode_text AS e LEFT JOIN chosen AS x ON x.enode = e.id\n"
        "GROUP BY e.rule ORDER BY e_nodes DESC, e.rule",
    ),
    (
        "The costliest operators of the result",
        "SELECT e.op, e.type, c.cost_us, e.rule\n"
        "FROM chosen AS x\n"
        "JOIN enode AS n ON n.id = x.enode\n"
        "JOIN enode_text AS e ON e.id = n.id\n"
        "JOIN eclass AS k ON k.id = n.class\n"
        "JOIN cost AS c ON c.signature = n.signature\n"
        "WHERE NOT k.weight_only ORDER BY c.cost_us DESC, e.id",
    ),
    (
        "How the e-graph grew",
        "SELECT iteration, e_nodes, e_classes, matches, unions, filtered, round(seconds, 4) AS seconds\n"
        "FROM iteration_log ORDER BY iteration",
    ),
    (
        "The classes with most forms, and what the model calls them",
        "SELECT e.class, count(*) AS forms, list(DISTINCT e.op ORDER BY e.op) AS operators,\n"
        "    (SELECT list(v.name ORDER BY v.name)\n"
        "     FROM original_value AS v JOIN eclass AS c ON c.id = v.enode\n"
        "     WHERE c.parent = e.class) AS names\n"
        "FROM enode_text AS e WHERE NOT e.filtered GROUP BY e.class ORDER BY forms DESC, e.class",
    ),
    (
        "Which rules united the most classes, in which iteration",
        "SELECT u.iteration, r.name AS rule, count(*) AS unions\n"
        "FROM union_log AS u JOIN rule AS r ON r.id = u.rule\n"
        "GROUP BY ALL ORDER BY unions DESC, u.iteration, rule",
    ),
    (
        "Rules that matched and brought nothing into the result",
        "SELECT r.name AS rule, sum(m.matches)::BIGINT AS matches\n"
        "FROM match_log AS m JOIN rule AS r ON r.id = m.rule\n"
        "WHERE r.id NOT IN (SELECT e.rule FROM chosen AS x JOIN enode AS e ON e.id = x.enode)\n"
        "GROUP BY r.name ORDER BY matches DESC, rule",
    ),
    (
        "Where the time went",
        "SELECT phase, statement, runs, round(seconds, 5) AS seconds FROM time_spent\n"
        "ORDER BY seconds DESC, phase, statement",
    ),
    (
        "All tables, and what they are for",
        "SELECT table_name AS name, comment, estimated_size AS rows FROM duckdb_tables()\n"
        "WHERE NOT internal ORDER BY table_name",
    ),
)


def ask(connection: duckdb.DuckDBPyConnection, query: str, most: int = MOST_ROWS) -> QueryAnswer:
    """Return the first rows of a query's answer.

    Raises:
        UsageError: the query is wrong, would change something, or was interrupted.
    """
    return QueryAnswer(*answered(connection, query, most))


def examples(connection: duckdb.DuckDBPyConnection) -> tuple[Example, ...]:
    """Return the examples with what they return for this run."""
    return tuple(
        Example(title, query, ask(connection, query, _EXAMPLE_ROWS)) for title, query in EXAMPLES
    )
