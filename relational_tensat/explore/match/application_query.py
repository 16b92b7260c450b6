"""The queries that make applications of pairs of matches: multi-pattern rules take turns."""

from __future__ import annotations

#: The condition on instances that are valid: they have a root.
IS_VALID = "i.root0 > 0"

#: Stands for further tables, of one row, that conditions on applications read.
ALSO_FROM = " /* also from */"


def multi_text(pairs: str, on_pair: str, columns: str, order: str) -> str:
    """Return the query of multi-pattern rules' applications.

    What rules applications out is read in a query of its own: a window carries all that its WHERE reads.

    Args:
        pairs: which pairs ``p`` are asked for, as it stands after FROM.
        on_pair: which instance a pair is of.
        columns: of an application.
        order: of a rule's applications, in the names of these columns.
    """
    return (
        "-- applications of multi-pattern rules\n"
        "SELECT row_number() OVER (ORDER BY turn, rule)::INTEGER AS id, * EXCLUDE (turn) FROM (\n"
        f"    SELECT *, row_number() OVER (PARTITION BY rule ORDER BY {order}) AS turn\n"
        "    FROM (\n"
        f"        SELECT {columns}\n"
        f"        FROM {pairs}\n"
        f"        JOIN instance AS i ON i.rule = p.rule AND {on_pair}{ALSO_FROM}\n"
        f"        WHERE {IS_VALID}\n"
        "    )\n"
        ")"
    )
