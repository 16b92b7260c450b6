"""The cycle filter: keep the e-graph of unfiltered e-nodes acyclic (TENSAT section 5.2).

Every class has a height label above those of its kept children. Most iterations violate no label and
cost one query. Where labels are violated, cycles are looked for only between the lowest class violated
and the highest offending child, and only from the e-nodes that violate. Of each cycle found, the youngest
e-node is filtered, so the original graph always stays. Then, without cycles, the labels are lifted.
"""

from __future__ import annotations

from relational_tensat.egraph.database import Database

#: Gap between the labels of a node and its operands in the original graph. Rewritten forms of a class
#: fit below it without lifting the classes above.
HEIGHT_STEP = 4096

#: Cycles are looked for at once from at most so many violating edges: the search multiplies with them.
FEW_VIOLATIONS = 2_000

#: Of more, most go away by lifting the labels this many steps upwards; round a cycle that never ends.
LIFT_STEPS = 64

_UNBOUNDED = 2**31 - 1


def filter_cycles(database: Database) -> int:
    """Filter e-nodes until the kept ones are acyclic; return how many were filtered."""
    with database.stopwatch.phase("filter cycles"):
        return _filter_cycles(database)


def _filter_cycles(database: Database) -> int:
    count, low, high = database.run("violations")[0]
    if count > FEW_VIOLATIONS:
        database.run("raise_heights", steps=LIFT_STEPS)
        count, low, high = database.run("violations")[0]
    if not count:
        return 0
    filtered = 0
    while found := database.change("filter_cycles", low=low, high=high):
        filtered += found
    database.run("raise_heights", steps=_UNBOUNDED)
    return filtered


def reject_cyclic_applications(database: Database) -> int:
    """Drop the rows of ``application`` that would close a cycle; return how many."""
    with database.stopwatch.phase("filter cycles"):
        return database.change("reject_cyclic")
