"""The cycle filter: keep the e-graph of unfiltered e-nodes acyclic (TENSAT section 5.2).

Every class has a height label above those of its kept children. Where labels are violated, a recursive
CTE lifts them (``cycles/lift.sql``). On a cycle they would rise for ever. So where they do not converge
soon, the edges that may lie on cycles are collected (``cycles/core.sql``). Of these, an e-node that
closes a cycle with older ones is filtered: the original graph always stays. Recursive CTEs find these
e-nodes, too (``cycles/break.sql``), unless the classes are many: then a search in Python does
(``cycle_search``).
"""

from __future__ import annotations

from itertools import permutations

from relational_tensat.egraph.cycle_search import break_cycles
from relational_tensat.egraph.database import Database

#: Gap between the labels of a node and its operands in the original graph. Rewritten forms of a class
#: fit below it without lifting the classes above.
HEIGHT_STEP = 4096

#: In how many rounds labels converge, as a rule, where there is no cycle: e-graphs of the 13 models take
#: 1 to 19, most of them below 8. Where there is one, these rounds are in vain (32 of them: 6 ms more each).
_FEW_ROUNDS = 12

#: More rounds than there are classes in any e-graph.
_ALL_ROUNDS = 2**31 - 1

#: Of so many edges that may lie on a cycle, those between different strong components are dropped first.
_MANY_EDGES = 300

#: Up to so many edges of strong components, statements find the e-nodes to filter. The ways between classes
#: are as many as the square of these.
MOST_BY_STATEMENTS = 3_000


def filter_cycles(database: Database, world: int = 0) -> int:
    """Filter e-nodes until the kept ones are acyclic; return how many were filtered.

    Args:
        world: of whose e-nodes, whose ages are when they came into it; 0 for all, by when they were made.
    """
    with database.stopwatch.phase("filter cycles"):
        if _lift(database, _FEW_ROUNDS):
            return 0
        edges = database.change("cycles/core")
        if edges > _MANY_EDGES:
            edges -= database.change("cycles/shrink")
        filtered = 0
        if edges:
            if world:
                database.run("worlds/core_ages", world=world)
            by_statements = edges <= MOST_BY_STATEMENTS
            filtered = _break(database) if by_statements else _break_by_search(database)
        _lift(database, _ALL_ROUNDS)
        return filtered


def _lift(database: Database, rounds: int) -> bool:
    """Raise labels to the lowest above those of all children; return whether so many rounds sufficed."""
    ((converged, _),) = database.run("cycles/lift", rounds=rounds)
    return bool(converged)


def _break(database: Database) -> int:
    """Filter the e-nodes that close cycles, by statements; return how many."""
    total = 0
    while True:
        ((filtered, undecided),) = database.run("cycles/break")
        total += int(filtered)
        if filtered == undecided:
            return total


def _break_by_search(database: Database) -> int:
    """Filter the e-nodes that close cycles, by a search; return how many."""
    edges = database.columns("cycles/core_edges")
    ages = break_cycles(edges, database.check_interrupt)
    if ages:
        database.run("cycles/filter_cycles", ages=ages)
    return len(ages)


def reject_cyclic_applications(database: Database, leaves: int, rules: str, roots: int = 2) -> int:
    """Drop the rows of ``application`` that would close a cycle; return how many.

    Args:
        leaves: how many of an application's bindings are each of its matches'.
        rules: what the statement's first comment reports of the rules that it serves.
        roots: how many columns of roots, and of matches, there are.
    """
    text = f"-- suspect: {rules}\n{suspects_text(leaves, roots)}"
    with database.stopwatch.phase("filter cycles"):
        ((suspects,),) = database.execute(text, name="suspect")
        return database.change("cycles/reject_cyclic") if suspects else 0


def suspects_text(leaves: int, roots: int = 2) -> str:
    """Return the statement that fills ``suspect``: applications that may close a cycle, by heights.

    An application puts its roots above its variables: that closes no cycle where all variables of one
    match lie lower than the roots of the others, which is so for most. Class ids are dense, so that a list
    of all heights answers at once what a join for each variable would. Of rules with fewer sources than
    others, a root is 0 and has no height.

    Args:
        leaves: how many of an application's bindings are each of its matches'.
        roots: how many columns of roots, and of matches, there are.
    """
    every = range(roots)
    slices = [range(n * leaves + 1, (n + 1) * leaves + 1) for n in every]
    tops = [f"greatest({', '.join(f'height_of[b[{i}]]' for i in places)})" for places in slices]
    columns = [
        *(f"m{n}" for n in every),
        *(f"root{n}" for n in every),
        *(f"height_of[root{n}] AS height{n}" for n in every),
    ]
    pairs = list(permutations(every, 2))
    may_close = " OR ".join(f"top{one} >= height{other}" for one, other in pairs)
    suspected = [
        f"SELECT id, m{one}, root{other}, b[{slices[one].start}:{slices[one].stop - 1}], height{other}"
        f" FROM suspected WHERE top{one} >= height{other}"
        for one, other in pairs
    ]
    return (
        "-- applications that may close a cycle, by the heights of their roots and variables\n"
        "CREATE OR REPLACE TEMP TABLE suspect AS\n"
        "WITH suspected AS MATERIALIZED (\n"
        "    SELECT * FROM (\n"
        f"        SELECT\n            id, b, {', '.join(columns)},\n            "
        + ",\n            ".join(f"{top} AS top{n}" for n, top in enumerate(tops))
        + "\n        FROM application, (SELECT list(height ORDER BY id) AS height_of FROM eclass)\n"
        "    )\n"
        f"    WHERE {may_close}\n"
        "),\n"
        "pair(id, match, root, leaves, lowest) AS (\n    "
        + "\n    UNION ALL\n    ".join(suspected)
        + "\n)\nFROM pair"
    )
