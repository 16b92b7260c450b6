"""Applying: build the targets of all applications, level by level, and unite them with their sources."""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.rebuild import rebuild


@dataclass(frozen=True, slots=True)
class Bounds:
    """What bounds the building of targets.

    Attributes:
        node_limit: the most e-nodes that the e-graph may have.
        most_nodes: the most e-nodes that one application can add.
        levels: the depth of the deepest target.
    """

    node_limit: int
    most_nodes: int
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

    The node limit holds at every moment: where all targets together might exceed it, applications are
    carried out in portions that cannot, until there is no room for one more.
    """
    database = egraph.database
    database.run("empty_unions")
    unions = done = 0
    portion = _room(egraph, bounds)
    if applications > portion:
        database.run("candidates")
    while done < applications and (portion := _room(egraph, bounds)) > 0:
        if done or applications > portion:
            database.run("portion", after=done, upto=done + portion)
        _build(egraph, iteration, bounds.levels)
        unions += database.change("root_unions")
        done += portion
    rebuilt = rebuild(database, iteration=iteration, stamp=egraph.clock, unions=unions)
    egraph.e_nodes -= rebuilt.dropped
    egraph.e_classes -= rebuilt.merged
    return Applied(rebuilt.unions, complete=done >= applications)


def _room(egraph: EGraph, bounds: Bounds) -> int:
    """Return how many applications certainly fit under the node limit."""
    if bounds.most_nodes == 0:  # no valid target builds anything: targets are variables
        return 2**31 - 1
    return max(bounds.node_limit - egraph.e_nodes, 0) // bounds.most_nodes


def _build(egraph: EGraph, iteration: int, levels: int) -> None:
    """Hash-cons the targets of the rows of ``application``."""
    database = egraph.database
    for level in range(1, levels + 1):
        if not database.change("request", level=level):
            return
        next_id = egraph.next_id
        added = database.change(
            "hash_cons", iteration=iteration, stamp=egraph.clock, next_id=next_id
        )
        if added:
            database.run("new_classes", next_id=next_id)
            egraph.next_id += added
            egraph.e_nodes += added
            egraph.e_classes += added
        database.run("bind")
