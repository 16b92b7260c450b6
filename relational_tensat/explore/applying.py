"""Applying: build the targets of all applications, level by level, and unite them with their sources."""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.rebuild import rebuild

#: How many times the node limit one portion of applications may build before what is too much is
#: taken away again: most applications share e-nodes, so the sum of their sizes says little.
OVERBUILD = 4


@dataclass(frozen=True, slots=True)
class Bounds:
    """What bounds the building of targets.

    Attributes:
        node_limit: the most e-nodes that the e-graph may have.
        total_nodes: the e-nodes of all targets, if nothing is shared.
        levels: the depth of the deepest target.
    """

    node_limit: int
    total_nodes: int
    levels: int


@dataclass(frozen=True, slots=True)
class Applied:
    """What applying did.

    Attributes:
        unions: pairs of classes that were asked to be one (congruence included).
        complete: whether every application was carried out within the node limit.
    """

    unions: int
    complete: bool


def apply_all(egraph: EGraph, applications: int, iteration: int, bounds: Bounds) -> Applied:
    """Carry out the ``applications`` rows of the table ``application``, then rebuild.

    Applications are carried out in their order as far as the node limit allows.
    """
    database = egraph.database
    database.run("empty_unions")
    unions = done = 0
    complete = True
    portions = 1 + bounds.total_nodes // (OVERBUILD * bounds.node_limit)
    portion = -(-applications // portions)
    if applications > portion:
        database.run("candidates")
    while complete and done < applications:
        if applications > portion:
            database.run("portion", after=done, upto=done + portion)
        complete = _build_within(egraph, iteration, bounds)
        unions += database.change("root_unions")
        done += portion
    if unions:
        rebuilt = rebuild(database, iteration=iteration, stamp=egraph.clock)
        egraph.e_nodes -= rebuilt.dropped
        egraph.e_classes -= rebuilt.merged
        unions += rebuilt.unions
    return Applied(unions, complete)


def _build_within(egraph: EGraph, iteration: int, bounds: Bounds) -> bool:
    """Build the targets; take away those past the node limit, and say whether there were none."""
    database = egraph.database
    next_id, before = egraph.next_id, egraph.e_nodes
    for level in range(1, bounds.levels + 1):
        added = database.change(
            "hash_cons",
            iteration=iteration,
            stamp=egraph.clock,
            next_id=egraph.next_id,
            level=level,
        )
        egraph.next_id += added
        egraph.e_nodes += added
        database.run("bind", level=level)
    fits = egraph.e_nodes <= bounds.node_limit
    if not fits:
        _take_away(egraph, next_id, max(bounds.node_limit - before, 0))
    egraph.e_classes += egraph.e_nodes - before
    if egraph.e_nodes > before:
        database.run("new_classes", next_id=next_id)
    return fits


def _take_away(egraph: EGraph, next_id: int, room: int) -> None:
    """Of the e-nodes from ``next_id`` on, keep what the first applications need and ``room`` allows."""
    database = egraph.database
    database.run("built", next_id=next_id)
    last = database.run("last_that_fits", room=room)[0][0]
    egraph.e_nodes -= database.change("unbuild_enodes", last=last)
    database.run("keep_applications", last=last)
