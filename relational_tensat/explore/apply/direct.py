"""Targets built with their roots in the classes of their sources.

The root of a target becomes one with its source: a class of its own would only be merged again, and all
that mentions it rewritten. So a new e-node that is a root is put into its source's class at once, the
lowest of several; the union is logged with its reason, as any other is. The e-nodes of all steps are in
``fresh`` until the last is built, so that nothing has to be undone where they are too many.
"""

from __future__ import annotations

from collections.abc import Callable

from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.apply.bounds import Bounds
from relational_tensat.explore.apply.direct_targets import (
    applications_of_built_text,
    bind_text,
    built_text,
    fresh_of_built_text,
    fresh_text,
    labelled_classes_text,
    reasons_text,
)
from relational_tensat.explore.apply.root_columns import rooted_sql

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
    egraph: EGraph,
    iteration: int,
    bounds: Bounds,
    applications: int,
    limit: int,
    fits: Callable[[], bool] | None = None,
    *,
    has_labels: bool,
) -> int | None:
    """Build the targets of the applications; return how many roots are in their source's class.

    None where there would be more e-nodes than there may be: then nothing has been done.

    Args:
        applications: at most so many.
        limit: the most e-nodes of the e-graph.
        fits: asked once they are in the table: whether a limit of the caller's allows for them, too.
        has_labels: whether new classes get height labels: a cycle filter needs them.
    """
    database = egraph.database
    in_one = applications <= MOST_IN_ONE and bounds.steps > 1
    build = _build_in_one if in_one else _build_by_steps
    built = build(egraph, bounds, limit)
    if built is None:
        return None
    if built:
        database.run("apply/add_fresh", iteration=iteration, stamp=egraph.clock)
    if fits is not None and not fits():
        database.run("apply/remove_fresh", next_id=egraph.next_id)
        return None
    if not built:
        return 0
    _add_classes(egraph, bounds, has_labels=has_labels)
    text = f"-- reasons: {bounds.rules}\n{reasons_text(bounds.bound, bounds.steps, bounds.roots)}"
    ((direct,),) = database.execute(text, {"iteration": iteration}, "reasons")
    egraph.next_id += built
    egraph.e_nodes += built
    egraph.e_classes += built - int(direct)
    return int(direct)


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
        bind = bind_text(bounds.operands, bounds.bound + step - 1, bounds.roots)
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
