"""TENSAT's first cycle filter, kept for comparison (its section 5.2, "vanilla").

Before each application of a multi-pattern rule the descendants of every class are recomputed, and the
application is skipped if a root is among the descendants of a variable's class. Quadratic, by design.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from relational_tensat.explore.apply.applying import ApplyReport, apply_all
from relational_tensat.explore.apply.bounds import Candidates
from relational_tensat.explore.apply.root_columns import next_waiting_text, rooted_sql
from relational_tensat.explore.world import World


def apply_one_by_one(world: World, candidates: Iterator[Candidates], iteration: int) -> ApplyReport:
    """Carry out applications one at a time, each checked against all descendants.

    Args:
        candidates: of one search at most.
    """
    group = next(candidates, None)
    if group is None:
        return ApplyReport(unions=0, complete=True)
    database = world.egraph.database
    roots = world.rules.root_columns
    next_waiting = next_waiting_text(roots)
    is_descendant = rooted_sql("cycles/is_descendant", roots)
    database.run("apply/waiting")
    unions, rejected, complete = 0, 0, True
    for index in range(1, group.applications + 1):
        ((waiting,),) = database.execute(next_waiting, {"position": index}, "apply/next_waiting")
        if not waiting:
            continue  # two of its roots became one class in the meantime
        database.run("cycles/descendants")
        if database.execute(is_descendant, name="cycles/is_descendant")[0][0]:
            rejected += 1
            continue
        applied = apply_all(world, [replace(group, applications=1)], iteration)
        unions += applied.unions
        complete &= applied.complete
    return ApplyReport(unions, complete, rejected)
