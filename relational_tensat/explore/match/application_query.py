"""The queries that make applications of pairs of matches: multi-pattern rules take turns."""

from __future__ import annotations

#: The condition on instances that are valid: they have a root.
IS_VALID = "i.root0 > 0"


def multi_text(pairs: str, on_pair: str, columns: str, order: str) -> str:
    """Return the query of multi-pattern rules' applications.

    Args:
        pairs: which pairs ``p`` are asked for, as it stands after FROM.
        on_pair: which instance a pair is of.
        columns: of an application.
        order: of a rule's applications.
    """
    return (
        "-- applications of multi-pattern rules\n"
        "SELECT row_number() OVER ()::INTEGER AS id, * EXCLUDE (turn) FROM (\n"
        f"    SELECT {columns}, row_number() OVER (\n"
        f"        PARTITION BY p.rule ORDER BY {order}\n"
        "    ) AS turn\n"
        f"    FROM {pairs}\n"
        f"    JOIN instance AS i ON i.rule = p.rule AND {on_pair}\n"
        f"    WHERE {IS_VALID}\n"
        "    ORDER BY turn, p.rule\n"
        ")"
    )
