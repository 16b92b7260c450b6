"""Must sets: the classes that every acyclic derivation of a class contains.

``must(m)`` is m itself and, of its e-nodes, what all of them need: the intersection over the
e-nodes of the union of their children's must sets, as the greatest fixpoint. The mirror image,
``above(m)``, are the classes that every path of needs from the root to m goes through.
Sets are Python integers, one bit per class.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from relational_tensat.base.deadline import Check, unlimited
from relational_tensat.extract.exact.reduce.reduced import Reduced, keep
from relational_tensat.extract.index import (
    Adjacency,
    children_by_node,
    nodes_by_class,
    parents_by_class,
)
from relational_tensat.extract.problem import ExtractionProblem


def must_sets(problem: ExtractionProblem, check: Check = unlimited) -> list[int]:
    """Return the must set of every class.

    The e-graph must have no underivable e-nodes (a class without derivation would stay unset).
    """
    children = children_by_node(problem)
    nodes = nodes_by_class(problem)
    users = [
        sorted({int(problem.node_class[node]) for node in part})
        for part in parents_by_class(problem)
    ]
    must: list[int | None] = [None] * problem.n_classes
    queue = deque(_derivation_order(problem))
    queued = [True] * problem.n_classes
    while queue:
        check()
        klass = queue.popleft()
        queued[klass] = False
        common: int | None = None
        for node in nodes[klass]:
            needs = 0
            for child in children[node]:
                part = must[child]
                if part is None:  # stands for the set of all classes: the e-node says nothing yet
                    break
                needs |= part
            else:
                common = needs if common is None else common & needs
        if common is None:
            continue
        updated = common | (1 << klass)
        if updated == must[klass]:
            continue
        must[klass] = updated
        for user in users[klass]:
            if not queued[user] and must[user] is not None:
                queued[user] = True
                queue.append(user)
    return [part if part is not None else 1 << klass for klass, part in enumerate(must)]


def above_sets(problem: ExtractionProblem, check: Check = unlimited) -> list[int]:
    """Return, per class, the classes on every path from the root to it, itself included.

    Every class must be reachable from the root.
    """
    children = children_by_node(problem)
    nodes = nodes_by_class(problem)
    users = [
        sorted({int(problem.node_class[node]) for node in part})
        for part in parents_by_class(problem)
    ]
    above: list[int | None] = [None] * problem.n_classes
    above[problem.root] = 1 << problem.root
    below = [sorted({child for node in part for child in children[node]}) for part in nodes]
    queue = deque(reversed(_derivation_order(problem)))
    queued = [True] * problem.n_classes
    while queue:
        check()
        klass = queue.popleft()
        queued[klass] = False
        if klass == problem.root:
            continue
        common: int | None = None
        for user in users[klass]:
            part = above[user]
            if part is not None:
                common = part if common is None else common & part
        if common is None:
            continue
        updated = common | (1 << klass)
        if updated == above[klass]:
            continue
        above[klass] = updated
        for child in below[klass]:
            if not queued[child]:
                queued[child] = True
                queue.append(child)
    return [part if part is not None else 1 << klass for klass, part in enumerate(above)]


def members_of(bits: int) -> list[int]:
    """Return the classes of a set, in order."""
    raw = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
    flags = np.unpackbits(np.frombuffer(raw, dtype=np.uint8), bitorder="little")
    members: list[int] = np.flatnonzero(flags).tolist()
    return members


def node_needs(problem: ExtractionProblem, must: list[int], check: Check = unlimited) -> list[int]:
    """Return, per e-node, the union of the must sets of its children."""
    needs = []
    for part in children_by_node(problem):
        check()
        union = 0
        for child in part:
            union |= must[child]
        needs.append(union)
    return needs


def drop_by_must(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Drop e-nodes that must close a cycle, and those dominated by what they need anyway.

    * An e-node whose children need its class, or a class above it on every path from the root,
      is in no acyclic choice.
    * An e-node is dominated by another of its class that costs no more and whose children all are
      among what the first needs in any case: those are there, and do not rest on the class.
    """
    problem = reduced.problem
    needs = node_needs(problem, must_sets(problem, check), check)
    above = above_sets(problem, check)
    children = children_by_node(problem)
    cost = problem.cost_us.tolist()
    nodes = np.ones(problem.n_nodes, dtype=np.bool_)
    for klass, members in enumerate(nodes_by_class(problem)):
        check()
        open_nodes = []
        for node in members:
            if needs[node] & above[klass]:
                nodes[node] = False
            else:
                open_nodes.append(node)
        if len(open_nodes) > 1:
            nodes[_dominated(open_nodes, cost, children, needs)] = False
    return keep(reduced, nodes)


def _dominated(
    members: Sequence[int], cost: list[float], children: Adjacency, needs: list[int]
) -> list[int]:
    """Return the e-nodes of a class that another one makes superfluous.

    What dominates costs no more and, must sets being closed, needs no more in any case: sorted by
    both it comes first, or either may go. To find it among many, each kept e-node is filed under
    one child, which must be among the needs of what it dominates.
    """
    dominated: list[int] = []
    filed: dict[int, list[int]] = {}
    filed_bits = 0
    for node in sorted(members, key=lambda item: (cost[item], needs[item].bit_count(), item)):
        need = needs[node]
        candidates = members_of(need & filed_bits) if need & filed_bits else []
        if -1 in filed or any(
            all(need >> child & 1 for child in children[other])
            for key in candidates
            for other in filed[key]
        ):
            dominated.append(node)
            continue
        key = max(children[node], default=-1)
        filed.setdefault(key, []).append(node)
        if key >= 0:
            filed_bits |= 1 << key
    return dominated


def _derivation_order(problem: ExtractionProblem) -> list[int]:
    """Return the classes in an order in which they become derivable, breadth first."""
    missing = np.diff(problem.child_ptr).tolist()
    parents = parents_by_class(problem)
    node_class = problem.node_class.tolist()
    order: list[int] = []
    derived = [False] * problem.n_classes
    ready = deque(node for node, count in enumerate(missing) if count == 0)
    while ready:
        klass = node_class[ready.popleft()]
        if derived[klass]:
            continue
        derived[klass] = True
        order.append(klass)
        for parent in parents[klass]:
            missing[parent] -= 1
            if missing[parent] == 0:
                ready.append(parent)
    return order
