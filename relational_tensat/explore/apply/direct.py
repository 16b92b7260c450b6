"""Targets built with their roots in the classes of their sources.

The root of a target becomes one with its source: a class of its own would only be merged again, and all
that mentions it rewritten. So a new e-node that is a root is put into its source's class at once, the
lowest of several; the union is logged with its reason, like all others. The e-nodes of all steps are in
``fresh`` until the last is built, so that nothing has to be undone where they are too many. Statements on
roots are for as many sources as rules have.
"""

from __future__ import annotations

import re

from relational_tensat.base.files import sql
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.enode_rows import CHILD_COLUMNS
from relational_tensat.explore.apply.targets import Bounds, bind_text, has_at_most
from relational_tensat.explore.subgraph import Subgraph


def fresh_text(operands: int, sources: int, *, is_first: bool, roots: int = 2) -> str:
    """Return the query for the e-nodes of a step that do not exist: rows of ``fresh``.

    Its parameters are ``next_id``, ``step`` and ``place``, the step's position among the bindings.

    Args:
        operands: the most that an e-node of a target has.
        sources: the most that the rules have.
        is_first: whether it is the first step: ``fresh`` is empty.
        roots: how many columns of roots there are.
    """
    children = [f"c{i}" for i in range(operands)]
    operand_columns = ", ".join(f"coalesce(a.b[t.s{i}], 0) AS {c}" for i, c in enumerate(children))
    key = ", ".join(["signature", *children])
    zeros = "".join(f", 0 AS c{i}" for i in range(operands, CHILD_COLUMNS))
    known = f"SELECT {key} FROM enode{has_at_most(operands)}"
    if not is_first:
        known += f" UNION ALL SELECT {key} FROM fresh"
    homes = [f"CASE WHEN i.root{i} = $place THEN a.root{i}::BIGINT << 32 | a.id * {roots} + {i} END"
             for i in range(sources)]  # fmt: skip
    home = homes[0] if sources == 1 else f"least({', '.join(homes)})"
    return (
        "-- the e-nodes that applications need as one node of their targets and that do not exist\n"
        "SELECT\n"
        "    id, coalesce((home >> 32)::INTEGER, id) AS class, type, rule, signature, head,\n"
        f"    {', '.join(children)}{zeros}, home & 4294967295 AS reason\n"
        "FROM (\n"
        "    SELECT\n"
        "        ($next_id - 1 + row_number() OVER (ORDER BY min(application)))::INTEGER AS id,\n"
        "        min(home) AS home, min(rule) AS rule, any_value(head) AS head, any_value(type) AS type,\n"
        f"        {key}\n"
        "    FROM (\n"
        f"        SELECT a.id AS application, a.rule, t.signature, t.head, t.type, {operand_columns},\n"
        f"            {home} AS home\n"
        "        FROM application AS a\n"
        "        JOIN template AS t ON t.instance = a.instance\n"
        "        JOIN instance AS i ON i.id = a.instance\n"
        "        WHERE t.step = $step\n"
        "    ) AS request\n"
        f"    ANTI JOIN ({known}) AS known USING ({key})\n"
        f"    GROUP BY {key}\n"
        ")"
    )


def built_text(operands: int, sources: int, steps: int, bound: int, roots: int = 2) -> str:
    """Return the statement that does what ``fresh_text`` and ``bind_text`` do, of all steps: ``built``.

    A row of ``built`` is an application (``made`` is 0) or an e-node that did not exist. Each round takes
    all of them to the next step. Its parameter is ``next_id``.

    Args:
        operands: the most that an e-node of a target has.
        sources: the most that the rules have.
        steps: the most nodes that a target has.
        bound: how many bindings an application has before.
        roots: how many columns of roots there are.
    """
    children = [f"c{i}" for i in range(operands)]
    key = ", ".join(["signature", *children])
    operand_columns = ", ".join(f"coalesce(b[t.s{i}], 0) AS {c}" for i, c in enumerate(children))
    own_roots = [f"root{n}" for n in range(roots)]
    places = [f"place{n}" for n in range(sources)]
    of_application = ", ".join(["id", "rule", "instance", *own_roots, *places])
    of_node = ", ".join(["class", "type", "head", key, "reason"])
    no_node = ", ".join(
        f"0 AS {name}" for name in ("class", "type", "head", "signature", *children)
    )
    no_application = ", ".join("0" for _ in (*own_roots, *places))
    homes = [
        f"CASE WHEN place{n} = {bound} + t.step THEN root{n}::BIGINT << 32 | id * {roots} + {n} END"
        for n in range(sources)
    ]
    home = homes[0] if sources == 1 else f"least({', '.join(homes)})"
    return (
        "-- the e-nodes of targets that do not exist, and the classes of all, step by step\n"
        "CREATE OR REPLACE TEMP TABLE built AS\n"
        "WITH RECURSIVE\n"
        f"known AS MATERIALIZED (SELECT class, {key} FROM enode{has_at_most(operands)}),\n"
        f"built(step, made, {of_application}, b, {of_node}) AS (\n"
        f"    SELECT 0, 0, a.id, a.rule, a.instance, {', '.join(f'a.{r}' for r in own_roots)},\n"
        f"        {', '.join(f'i.root{n}' for n in range(sources))}, a.b[:{bound}], {no_node},\n"
        "        0::BIGINT AS reason\n"
        "    FROM application AS a JOIN instance AS i ON i.id = a.instance\n"
        "    UNION ALL (\n"
        f"    WITH before AS (SELECT * FROM built WHERE step < {steps}),\n"
        "    request AS MATERIALIZED (\n"
        f"        SELECT id, rule, t.signature, t.type, t.head, {operand_columns},\n"
        f"            {home} AS home\n"
        "        FROM before JOIN template AS t USING (instance)\n"
        "        WHERE made = 0 AND t.step = before.step + 1\n"
        "    ),\n"
        "    node AS MATERIALIZED (\n"
        f"        SELECT first, rule, type, head, {key}, home, of_known IS NULL AS is_new, made,\n"
        "            coalesce(of_known, (home >> 32)::INTEGER, made) AS class\n"
        "        FROM (\n"
        "            SELECT r.*, k.class AS of_known, (\n"
        "                $next_id - 1 + (SELECT count(*) FROM before WHERE made > 0)\n"
        "                + row_number() OVER (PARTITION BY k.class IS NULL ORDER BY r.first)\n"
        "            )::INTEGER AS made\n"
        "            FROM (\n"
        f"                SELECT {key}, min(id) AS first, min(home) AS home, min(rule) AS rule,\n"
        "                    any_value(type) AS type, any_value(head) AS head\n"
        f"                FROM request GROUP BY {key}\n"
        "            ) AS r\n"
        "            LEFT JOIN (\n"
        f"                FROM known UNION ALL SELECT class, {key} FROM before WHERE made > 0\n"
        f"            ) AS k USING ({key})\n"
        "        )\n"
        "    )\n"
        f"    SELECT before.step + 1, 0, {', '.join(f'before.{c}' for c in of_application.split(', '))},\n"
        f"        before.b || [n.class], {no_node}, 0\n"
        "    FROM before LEFT JOIN (\n"
        f"        SELECT request.id, node.class FROM request JOIN node USING ({key})\n"
        "    ) AS n USING (id)\n"
        "    WHERE made = 0\n"
        "    UNION ALL SELECT step + 1, * EXCLUDE (step) FROM before WHERE made > 0\n"
        "    UNION ALL SELECT (SELECT any_value(step) FROM before) + 1, made, first, rule, 0,\n"
        f"        {no_application}, NULL, {of_node.replace('reason', 'home & 4294967295')}\n"
        "    FROM node WHERE is_new\n"
        "    )\n"
        ")\n"
        f"SELECT * EXCLUDE (step) FROM built WHERE step = {steps}"
    )


def fresh_of_built_text(operands: int) -> str:
    """Return the statement that makes ``fresh`` of the e-nodes in ``built``."""
    children = [f"c{i}" for i in range(operands)]
    zeros = [f"0 AS c{i}" for i in range(operands, CHILD_COLUMNS)]
    return (
        "-- the e-nodes of targets that did not exist\n"
        "CREATE OR REPLACE TEMP TABLE fresh AS\n"
        "SELECT made AS id, class, type, rule, signature, head,\n"
        f"    {', '.join([*children, *zeros])}, reason\n"
        "FROM built WHERE made > 0"
    )


def applications_of_built_text(roots: int) -> str:
    """Return the statement that makes ``application`` of ``built``."""
    own_roots = ", ".join(f"root{n}" for n in range(roots))
    return (
        "-- the applications with the classes of all that their targets have\n"
        "CREATE OR REPLACE TEMP TABLE application AS\n"
        f"SELECT id, rule, instance, {own_roots}, b FROM built WHERE made = 0"
    )


def labelled_classes_text(bound: int, steps: int, roots: int = 2) -> str:
    """Return the statement that adds the classes of ``fresh``, as ``targets.new_classes_text`` labels them.

    The roots of targets, which have their source's class, bound nothing from below; that this class is
    above their children is left to the cycle filter.
    """
    added = range(bound + 1, bound + steps + 1)
    leaves = [f"height_of[b[{i}]]" for i in range(1, bound + 1)]
    columns = [f"root{n}" for n in range(roots)]
    own = ", ".join(columns)
    inner = [f"CASE WHEN {i} NOT IN ({own}) THEN height_of[b[{i}]] END" for i in added]
    newest = ", ".join(f"b[{i}]" for i in added)
    ordered = "SELECT list(height ORDER BY id) AS height_of FROM eclass"
    return (
        "-- the classes of new e-nodes\n"
        "INSERT INTO eclass\n"
        "SELECT f.id, f.class, f.type, coalesce(own.height, 1), false\n"
        "FROM fresh AS f LEFT JOIN (\n"
        "    SELECT class, min(bottom + place) AS height\n"
        "    FROM (\n"
        "        SELECT t.place, a.b[t.place] AS class, a.bottom\n"
        "        FROM (\n"
        f"            SELECT instance, b, greatest({', '.join([*leaves, *inner])}) AS bottom\n"
        "            FROM (\n"
        f"                SELECT a.instance, a.b, {', '.join(f'i.{name}' for name in columns)}\n"
        "                FROM application AS a JOIN instance AS i ON i.id = a.instance\n"
        f"                WHERE greatest({newest}) >= $next_id\n"
        f"            ), ({ordered})\n"
        "        ) AS a\n"
        f"        JOIN (SELECT instance, {bound} + step AS place FROM template) AS t USING (instance)\n"
        "    )\n"
        "    WHERE class >= $next_id\n"
        "    GROUP BY class\n"
        ") AS own ON own.class = f.id\n"
    )


def reasons_text(bound: int, steps: int, roots: int = 2) -> str:
    """Return the statement that logs the unions that roots of ``fresh`` stand for.

    Among the bindings, the root is named by its own id, as if it had had a class of its own.
    """
    source = f"f.reason % {roots}"
    cases = "".join(f" WHEN {source} = {n} THEN i.root{n}" for n in range(roots - 1))
    root = f"CASE{cases} ELSE i.root{roots - 1} END"
    leaves = [f"a.b[{i}]" for i in range(1, bound + 1)]
    built = [
        f"CASE WHEN {i} = {root} THEN f.id ELSE a.b[{i}] END"
        for i in range(bound + 1, bound + steps + 1)
    ]
    return (
        "-- the unions of new roots with their sources, in whose classes they are\n"
        "INSERT INTO union_log\n"
        "SELECT\n"
        f"    $iteration, a.rule, f.class, f.id, a.instance, ({source})::INTEGER,\n"
        f"    [{', '.join([*leaves, *built])}]\n"
        "FROM fresh AS f\n"
        f"JOIN application AS a ON a.id = f.reason // {roots}\n"
        "JOIN instance AS i ON i.id = a.instance"
    )


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


#: From so many classes on, their labels are joined instead of looked up in a list of them all (CPU ms: 650
#: and 390 at 680,000 classes, 600 and 570 at 890,000, a fifth less and not more at 2,000,000). Below, joins
#: would take a quarter more: 660 instead of 535 ms in all of TENSAT's 18 runs.
MANY_LABELS = 1_000_000

#: Up to so many applications, one recursive CTE builds all steps of their targets. It is planned once
#: (MobileNet's run, targets of nine nodes: 1.0 CPU s; two statements a step: 1.4). It carries all
#: applications from round to round, so many are built by steps (a chain of 100,000 e-nodes: 1.2 CPU s;
#: by the CTE 2.1).
MOST_IN_ONE = 5_000


def build_direct(
    subgraph: Subgraph, iteration: int, bounds: Bounds, applications: int
) -> int | None:
    """Build the targets of the applications; return how many roots are in their source's class.

    None where there would be more e-nodes than there may be: then nothing has been done. Else ``entering``
    has what comes into the subgraph, where that does not have all e-nodes.

    Args:
        applications: at most so many.
    """
    egraph, members = subgraph.egraph, subgraph.members
    database = egraph.database
    limit = bounds.node_limit if members is None else members.universe_limit
    in_one = applications <= MOST_IN_ONE and bounds.steps > 1
    build = _build_in_one if in_one else _build_by_steps
    built = build(egraph, bounds, limit)
    if built is None:
        return None
    if built:
        database.run("apply/add_fresh", iteration=iteration, stamp=egraph.clock)
    if members is not None:
        entering = database.change("subgraphs/entering", subgraph=members.subgraph)
        if entering > bounds.node_limit - members.size:
            database.run("apply/remove_fresh", next_id=egraph.next_id)
            return None
    direct = 0
    if built:
        _add_classes(egraph, bounds, has_labels=subgraph.options.cycle_filter != "none")
        text = (
            f"-- reasons: {bounds.rules}\n{reasons_text(bounds.bound, bounds.steps, bounds.roots)}"
        )
        direct = int(database.execute(text, {"iteration": iteration}, "reasons")[0][0])
        egraph.next_id += built
        egraph.e_nodes += built
        egraph.e_classes += built - direct
    return direct


def _build_in_one(egraph: EGraph, bounds: Bounds, limit: int) -> int | None:
    """Fill ``fresh`` and bind all classes by one recursive CTE; return how many e-nodes are new.

    None where there would be more than there may be; ``application`` is as it was.
    """
    database = egraph.database
    built = built_text(bounds.operands, bounds.sources, bounds.steps, bounds.bound, bounds.roots)
    params = {"next_id": egraph.next_id}
    database.execute(f"-- build: {bounds.rules}\n{built}", params, "build")
    fresh = f"-- fresh: {bounds.rules}\n{fresh_of_built_text(bounds.operands)}"
    ((made,),) = database.execute(fresh, name="fresh")
    if egraph.e_nodes + made > limit:
        return None
    text = f"-- bind: {bounds.rules}\n{applications_of_built_text(bounds.roots)}"
    database.execute(text, name="bind")
    return int(made)


def _build_by_steps(egraph: EGraph, bounds: Bounds, limit: int) -> int | None:
    """Do the same by two statements a step: many applications are not carried from round to round."""
    database, next_id = egraph.database, egraph.next_id
    for step in range(1, bounds.steps + 1):
        verb = "CREATE OR REPLACE TEMP TABLE fresh AS" if step == 1 else "INSERT INTO fresh"
        fresh = fresh_text(bounds.operands, bounds.sources, is_first=step == 1, roots=bounds.roots)
        params = {"next_id": next_id, "step": step, "place": bounds.bound + step}
        text = f"-- build: {bounds.rules}\n{verb}\n{fresh}"
        next_id += int(database.execute(text, params, "hash_cons")[0][0])
        if egraph.e_nodes + next_id - egraph.next_id > limit:
            return None
        at = bounds.bound + step - 1
        bind = bind_text(bounds.operands, at, bounds.roots, has_fresh=True)
        text = f"-- bind: {bounds.rules}\n{bind}"
        database.execute(text, {"step": step}, "bind")
    return next_id - egraph.next_id


def _add_classes(egraph: EGraph, bounds: Bounds, *, has_labels: bool) -> None:
    database = egraph.database
    if not has_labels:
        database.run("apply/add_classes")
        return
    if egraph.next_id >= MANY_LABELS:
        params = {"next_id": egraph.next_id, "steps": bounds.steps}
        text = rooted_sql("apply/add_classes_many", bounds.roots)
        database.execute(text, params, "apply/add_classes_many")
        return
    labelled = labelled_classes_text(bounds.bound, bounds.steps, bounds.roots)
    text = f"-- classes: {bounds.rules}\n{labelled}"
    database.execute(text, {"next_id": egraph.next_id}, "new_classes")
