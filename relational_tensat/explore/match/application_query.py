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


def learned_text(on_pair: str, columns: str, order: str) -> str:
    """Return ``multi_text`` in which kinds of applications take turns as often as their weights say.

    Whether an operand depends on weights only is known of what was there at the last extraction.
    """
    return (
        "-- applications of multi-pattern rules, those that earlier runs needed more often\n"
        "SELECT row_number() OVER ()::INTEGER AS id, * EXCLUDE (turn, kind) FROM (\n"
        f"    SELECT {columns}, l.weights AS kind,\n"
        "        row_number() OVER (\n"
        f"            PARTITION BY p.rule, l.weights ORDER BY {order}\n"
        "        ) / coalesce(l.weight, 1) AS turn\n"
        "    FROM pair AS p\n"
        f"    JOIN instance AS i ON i.rule = p.rule AND {on_pair}\n"
        "    JOIN rule AS r ON r.id = p.rule\n"
        "    JOIN (SELECT list(weight_only ORDER BY id) AS is_weight FROM eclass) AS k ON true\n"
        "    LEFT JOIN learned AS l ON l.rule = p.rule\n"
        "        AND l.weights = list_transform(r.operands, lambda o: k.is_weight[p.b[o]])\n"
        f"    WHERE {IS_VALID}\n"
        "    ORDER BY turn, p.rule, kind\n"
        ")"
    )
