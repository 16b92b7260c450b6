"""Applications carried out in arrays: the tables are read once and written once."""

from __future__ import annotations

import numpy as np

from relational_tensat.base.records import record
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.node_hashes import HashesCollideError
from relational_tensat.explore.apply.bounds import Bounds
from relational_tensat.explore.apply.in_arrays.asking import AskedUnions, asked_unions
from relational_tensat.explore.apply.in_arrays.building import NO_REASON, Building
from relational_tensat.explore.apply.in_arrays.closing import Closed, close
from relational_tensat.explore.apply.in_arrays.nodes import Nodes, read_nodes
from relational_tensat.explore.apply.in_arrays.write_back import Writing, read_classes
from relational_tensat.explore.match.found import Found
from relational_tensat.explore.match.target_arrays import TargetArrays
from relational_tensat.explore.world import World

#: In e-graphs of so many e-nodes, and for so many applications: about 100 bytes each. Beyond, the database
#: may keep on the disk what does not fit into its memory.
MOST_NODES, MOST_APPLICATIONS = 4_000_000, 8_000_000


def works_in_arrays(world: World) -> bool:
    """Whether a world's applications may be found and carried out in arrays, not by statements.

    Not where a world has some e-nodes only, nor where someone reads the statements.
    """
    return (
        world.egraph.e_nodes <= MOST_NODES
        and world.members is None
        and not world.egraph.database.shows_sql
    )


@record
class InArrays:
    """What was done in arrays.

    Attributes:
        fits: whether the e-graph has room for all; else nothing was done.
        unions: that were asked for, congruence included.
    """

    fits: bool
    unions: int = 0


def apply_in_arrays(
    egraph: EGraph,
    iteration: int,
    found: Found,
    bounds: Bounds,
    targets: TargetArrays,
    *,
    has_labels: bool,
) -> InArrays | None:
    """Build the targets of applications, carry out their unions, and close the e-graph under these.

    None where two e-nodes have one number: nothing has been done.

    Args:
        has_labels: whether classes have height labels.
    """
    check = egraph.database.check_interrupt
    try:
        known = read_nodes(egraph.database, bounds.operands)
        building = Building(found, bounds.steps, targets, known, egraph.next_id)
        building.run()
        fresh = building.fresh
        if egraph.e_nodes + fresh.count > bounds.node_limit:
            return InArrays(fits=False)
        check()
        asked = asked_unions(building)
        highest = egraph.next_id + fresh.count - 1
        with egraph.database.stopwatch.phase("rebuild"):
            closed = close(_with_fresh(known, building), asked.lower, asked.higher, highest, check)
    except HashesCollideError:
        return None
    direct = int(np.count_nonzero(fresh.reasons != NO_REASON))
    if fresh.count or len(asked.lower):
        _write(egraph, iteration, building, asked, closed, has_labels=has_labels)
    egraph.next_id += fresh.count
    egraph.e_nodes += fresh.count - int(np.count_nonzero(closed.is_dropped))
    egraph.e_classes += fresh.count - direct - closed.merged
    congruent = sum(len(lower) for lower, _ in closed.congruent)
    return InArrays(True, direct + len(asked.lower) + congruent)


def _with_fresh(known: Nodes, building: Building) -> Nodes:
    fresh = building.fresh
    children = [np.concatenate(c) for c in zip(known.children, fresh.children, strict=True)]
    return Nodes(
        np.concatenate([known.ids, fresh.ids]),
        np.concatenate([known.classes, fresh.classes]),
        np.concatenate([known.signatures, fresh.signatures]),
        children,
        np.concatenate([known.is_filtered, np.zeros(fresh.count, np.bool_)]),
    )


def _write(
    egraph: EGraph,
    iteration: int,
    building: Building,
    asked: AskedUnions,
    closed: Closed,
    *,
    has_labels: bool,
) -> None:
    writing = Writing(egraph, iteration, building, closed)
    needs_labels = has_labels and building.fresh.count > 0
    known = read_classes(egraph) if needs_labels or closed.merged else None
    labels = building.labels(known.heights) if has_labels and known is not None else None
    writing.nodes()
    writing.classes(known if closed.merged else None, labels)
    writing.log(asked)
