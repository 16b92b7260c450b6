"""SQL that builds targets: texts for what an application's bindings are and how many operands e-nodes have.

A list that is written out (``[b[1], b[2], e.class]``) costs a quarter of ``list_append``, and columns of
operands that no target has need not be looked up: per application, these are most of what building takes.
"""

from __future__ import annotations

from relational_tensat.egraph.loading import CHILD_COLUMNS


def hash_cons_text(operands: int) -> str:
    """Return the statement that adds the missing e-nodes of a step, each in a class of its own.

    Their children are bound by now. Its parameters are ``iteration``, ``stamp``, ``next_id`` and ``step``.

    Args:
        operands: the most that an e-node of a target has.
    """
    children = [f"c{i}" for i in range(operands)]
    wanted = ", ".join(f"coalesce(a.b[t.s{i}], 0) AS {c}" for i, c in enumerate(children))
    key = ", ".join(["signature", *children])
    zeros = ", 0" * (CHILD_COLUMNS - operands)
    return (
        "-- the e-nodes that applications want as one node of their targets and that do not exist\n"
        "INSERT INTO enode\n"
        "SELECT\n"
        f"    id, id, signature, head, {', '.join(children)}{zeros}, $iteration, rule, $stamp, false\n"
        "FROM (\n"
        "    SELECT\n"
        "        ($next_id - 1 + row_number() OVER (ORDER BY min(application)))::INTEGER AS id,\n"
        f"        min(rule) AS rule, any_value(head) AS head, {key}\n"
        "    FROM (\n"
        f"        SELECT a.id AS application, a.rule, t.signature, t.head, {wanted}\n"
        "        FROM application AS a JOIN template AS t ON t.instance = a.instance\n"
        "        WHERE t.step = $step\n"
        "    ) AS request\n"
        f"    ANTI JOIN (SELECT {key} FROM enode{_no_more(operands)}) AS known USING ({key})\n"
        f"    GROUP BY {key}\n"
        ")"
    )


def bind_text(operands: int, bound: int) -> str:
    """Return the statement that appends the class of a step's e-node to each application's bindings.

    NULL is appended where a target has no so many nodes. Its parameter is ``step``.

    Args:
        operands: the most that an e-node of a target has.
        bound: how many bindings there are before.
    """
    same = "".join(f" AND e.c{i} = coalesce(a.b[t.s{i}], 0)" for i in range(operands))
    before = "".join(f"a.b[{i}], " for i in range(1, bound + 1))
    known = f"(SELECT * FROM enode{_no_more(operands)})"
    return (
        "-- the class of this step's e-node, bound in each application\n"
        "CREATE OR REPLACE TEMP TABLE application AS\n"
        f"SELECT a.id, a.rule, a.instance, a.root0, a.root1, [{before}e.class] AS b\n"
        "FROM application AS a\n"
        "LEFT JOIN template AS t ON t.instance = a.instance AND t.step = $step\n"
        f"LEFT JOIN {known} AS e ON e.signature = t.signature{same}"
    )


def _no_more(operands: int) -> str:
    """Return the condition that an e-node has no more than so many children."""
    rest = [f"c{i} = 0" for i in range(operands, CHILD_COLUMNS)]
    return f" WHERE {' AND '.join(rest)}" if rest else ""
