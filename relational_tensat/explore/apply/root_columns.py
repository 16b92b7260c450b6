"""Statements on the roots of applications, for as many sources as rules have."""

from __future__ import annotations

import re

from relational_tensat.base.files import sql

_TWO = re.compile(r"\b((?:\w+\.)?)root0, \1root1\b")


def rooted_sql(name: str, roots: int) -> str:
    """Return the statement of ``sql/NAME.sql``, written for two columns of roots, for so many."""
    return _TWO.sub(lambda two: ", ".join(f"{two[1]}root{n}" for n in range(roots)), sql(name))


def next_waiting_text(roots: int) -> str:
    """Return the statement that makes the next application the only one, by the classes of today.

    None where two of its roots have become one class. Its parameter is ``position``.
    """
    every = range(roots)
    parents = ", ".join(f"coalesce(r{n}.parent, 0) AS root{n}" for n in every)
    joins = "\n".join(f"LEFT JOIN eclass AS r{n} ON r{n}.id = w.root{n}" for n in every)
    distinct = "".join(
        f"\n    AND (r{n}.id IS NULL OR r{m}.parent <> r{n}.parent)"
        for n in every
        for m in range(n)
    )
    return (
        "-- the next application alone, with the classes that its roots and bindings have become\n"
        "CREATE OR REPLACE TEMP TABLE application AS\n"
        f"SELECT w.id, w.rule, w.instance, {parents}, b.b\n"
        f"FROM waiting AS w\n{joins}\n"
        "CROSS JOIN (\n"
        "    SELECT list(coalesce(c.parent, 0) ORDER BY v.place) AS b\n"
        "    FROM (\n"
        "        SELECT unnest(b) AS class, generate_subscripts(b, 1) AS place\n"
        "        FROM waiting WHERE position = $position\n"
        "    ) AS v\n"
        "    LEFT JOIN eclass AS c ON c.id = v.class\n"
        ") AS b\n"
        f"WHERE w.position = $position{distinct}"
    )
