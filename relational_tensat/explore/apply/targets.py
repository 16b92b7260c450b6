"""SQL that builds targets, for so many bindings of an application and so many operands of an e-node.

A list that is written out (``[b[1], b[2], e.class]``) costs a quarter of ``list_append``, and columns of
operands that no target has need not be looked up. Per application, these are most of what building takes.

Applying is given the applications that a search found, and bounds on the building of targets.
"""

from __future__ import annotations

from relational_tensat.base.records import record
from relational_tensat.egraph.enode_rows import CHILD_COLUMNS


@record
class Bounds:
    """Limits on the building of targets.

    Attributes:
        node_limit: the most e-nodes that the subgraph may have.
        total_nodes: the e-nodes of all targets, if nothing is shared.
        steps: the most nodes that a target has.
        sources: the most that the rules have.
        roots: how many columns of roots applications have: of those of one source, one is used.
        bound: how many bindings an application has before its target is built.
        operands: the most that an e-node of a target has.
        rules: the names of the rules in the first comments of statements.
        is_whole: the caller undoes all where the limit leaves something out: so it ends there.
    """

    node_limit: int
    total_nodes: int
    steps: int
    sources: int
    bound: int
    operands: int = CHILD_COLUMNS
    roots: int = 2
    is_whole: bool = False
    rules: str = ""


@record
class Candidates:
    """Applications that a search found: the rows of the table ``application``, as it is now.

    Attributes:
        applications: the highest id among them.
        has_rest: whether others of the same search may follow.
    """

    applications: int
    bounds: Bounds
    has_rest: bool = False


def hash_cons_text(operands: int) -> str:
    """Return the statement that adds the missing e-nodes of a step, each in a class of its own.

    Their children are bound by now. Its parameters are ``iteration``, ``stamp``, ``next_id`` and ``step``.

    Args:
        operands: the most that an e-node of a target has.
    """
    children = [f"c{i}" for i in range(operands)]
    operand_columns = ", ".join(f"coalesce(a.b[t.s{i}], 0) AS {c}" for i, c in enumerate(children))
    key = ", ".join(["signature", *children])
    zeros = ", 0" * (CHILD_COLUMNS - operands)
    return (
        "-- the e-nodes that applications need as one node of their targets and that do not exist\n"
        "INSERT INTO enode\n"
        "SELECT\n"
        f"    id, id, signature, head, {', '.join(children)}{zeros}, $iteration, rule, $stamp, false\n"
        "FROM (\n"
        "    SELECT\n"
        "        ($next_id - 1 + row_number() OVER (ORDER BY min(application)))::INTEGER AS id,\n"
        f"        min(rule) AS rule, any_value(head) AS head, {key}\n"
        "    FROM (\n"
        f"        SELECT a.id AS application, a.rule, t.signature, t.head, {operand_columns}\n"
        "        FROM application AS a JOIN template AS t ON t.instance = a.instance\n"
        "        WHERE t.step = $step\n"
        "    ) AS request\n"
        f"    ANTI JOIN (SELECT {key} FROM enode{has_at_most(operands)}) AS known USING ({key})\n"
        f"    GROUP BY {key}\n"
        ")"
    )


def bind_text(operands: int, bound: int, roots: int = 2, *, has_fresh: bool = False) -> str:
    """Return the statement that appends the class of a step's e-node to each application's bindings.

    NULL is appended where a target has no so many nodes. Its parameter is ``step``.

    Args:
        operands: the most that an e-node of a target has.
        bound: how many bindings there are before.
        roots: how many columns of roots there are.
        has_fresh: whether the e-node may be in ``fresh`` still.
    """
    kept = "".join(f", a.root{n}" for n in range(roots))
    before = "".join(f"a.b[{i}], " for i in range(1, bound + 1))
    same = "".join(f" AND e.c{i} = coalesce(a.b[t.s{i}], 0)" for i in range(operands))
    enodes = f"(SELECT * FROM enode{has_at_most(operands)})"
    if has_fresh:
        columns = ", ".join(["class", "signature", *(f"c{i}" for i in range(operands))])
        enodes = (
            f"(\n    SELECT {columns} FROM enode{has_at_most(operands)}\n"
            f"    UNION ALL SELECT {columns} FROM fresh\n)"
        )
    return (
        "-- the class of this step's e-node, bound in each application\n"
        "CREATE OR REPLACE TEMP TABLE application AS\n"
        f"SELECT a.id, a.rule, a.instance{kept}, [{before}e.class] AS b\n"
        "FROM application AS a\n"
        "LEFT JOIN template AS t ON t.instance = a.instance AND t.step = $step\n"
        f"LEFT JOIN {enodes} AS e ON e.signature = t.signature{same}"
    )


def new_classes_text(bound: int, steps: int) -> str:
    """Return the statement that gives new e-nodes their classes, in the order of their ids.

    Height labels must lie above those of the children. The labels of an application's old classes bound
    it from below. Its place among the bindings grows from operands to results, so it orders the new ones.
    Of several applications the lowest label holds: each of them builds the children too. Its parameter is
    ``next_id``, the first new id: ids are dense, so that a list of all labels answers at once what a join
    for each binding would.

    Args:
        bound: how many bindings there were before targets were built.
        steps: how many have been added.
    """
    every = ", ".join(f"height_of[b[{i}]]" for i in range(1, bound + steps + 1))
    added = ", ".join(f"b[{i}]" for i in range(bound + 1, bound + steps + 1))
    ordered = "SELECT list(height ORDER BY id) AS height_of FROM eclass"
    return (
        "-- the classes of new e-nodes\n"
        "INSERT INTO eclass\n"
        "SELECT class, class, any_value(type), coalesce(min(bottom + place), 1), false\n"
        "FROM (\n"
        "    SELECT t.place, a.b[t.place] AS class, t.type, a.bottom\n"
        "    FROM (\n"
        f"        SELECT instance, b, greatest({every}) AS bottom\n"
        f"        FROM application, ({ordered})\n"
        f"        WHERE greatest({added}) >= $next_id\n"
        "    ) AS a\n"
        f"    JOIN (SELECT instance, type, {bound} + step AS place FROM template) AS t USING (instance)\n"
        ")\n"
        "WHERE class >= $next_id\n"
        "GROUP BY class\n"
        "ORDER BY class"
    )


def unions_text(sources: int) -> str:
    """Return the query for the unions that applications ask for: rows of ``union_pair``, of round 0.

    The class of each target root joins the class of its source root. Of several applications that ask for
    the same union, the first is the reason; of its sources, the first.

    Args:
        sources: the most that the rules have.
    """
    root, target, positions = "a.root0", "a.b[i.root0]", "0"
    columns, source, reason = "min(application) FILTER (source = 0) AS first", "0", "first"
    if sources > 1:
        every = range(sources)
        root = f"unnest([{', '.join(f'a.root{n}' for n in every)}])"
        target = f"unnest([{', '.join(f'a.b[i.root{n}]' for n in every)}])"
        positions = f"unnest([{', '.join(map(str, every))}])"
        columns = f"min(application::BIGINT * {sources} + source) AS first"
        source, reason = f"(first % {sources})::INTEGER", f"(first // {sources})::INTEGER"
    return (
        "-- the unions that applications ask for\n"
        "WITH pair AS (\n"
        "    SELECT\n"
        f"        least(a, b) AS a, greatest(a, b) AS b, {columns}\n"
        "    FROM (\n"
        "        SELECT\n"
        f"            a.id AS application, {positions} AS source, {root} AS a, {target} AS b\n"
        "        FROM application AS a JOIN instance AS i ON i.id = a.instance\n"
        "    )\n"
        "    WHERE a > 0 AND a <> b\n"
        "    GROUP BY least(a, b), greatest(a, b)\n"
        ")\n"
        f"SELECT 0 AS round, w.rule, pair.a, pair.b, w.instance, {source} AS source, w.b AS bindings\n"
        f"FROM pair JOIN application AS w ON w.id = {reason}"
    )


def has_at_most(operands: int) -> str:
    """Return the condition that an e-node has no more than so many children."""
    conditions = [f"c{i} = 0" for i in range(operands, CHILD_COLUMNS)]
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""
