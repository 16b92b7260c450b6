"""Classes that every derivation of a class contains, or every path from the root to it.

The *required classes* of class m are m itself and the classes that all of its e-nodes need: the
intersection over the e-nodes of the union of their children's required classes, as the greatest fixpoint.
The *dominators* of m, the mirror image, are the classes that every path of needs from the root to m goes
through. Sets are Python integers, one bit per class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush

import numpy as np

from relational_tensat.base.deadline import ASKED_EVERY, Check, unlimited
from relational_tensat.extract.index import (
    Adjacency,
    children_by_node,
    derivations,
    nodes_by_class,
    parents_by_class,
)
from relational_tensat.extract.problem import ExtractionProblem

_Sets = Sequence[int | None]
"""Per class its set so far; None stands for the set of all classes."""


def required_classes(problem: ExtractionProblem, check: Check = unlimited) -> list[int]:
    """Return, per class, the classes that every acyclic derivation of it contains, itself included.

    The e-graph must have no underivable e-nodes (a class without derivation would stay unset).
    """
    children, nodes = children_by_node(problem), nodes_by_class(problem)

    def needed_by_all_nodes(klass: int, sets: _Sets) -> int | None:
        common: int | None = None
        for node in nodes[klass]:
            needs = 0
            for child in children[node]:
                required = sets[child]
                if required is None:  # the e-node says nothing yet
                    break
                needs |= required
            else:
                common = needs if common is None else common & needs
        return common

    order = derivations(problem)
    return _greatest_fixpoint(order, _user_classes(problem), needed_by_all_nodes, check)


def dominators(problem: ExtractionProblem, check: Check = unlimited) -> list[int]:
    """Return, per class, the classes on every path from the root to it, itself included.

    Every class must be reachable from the root.
    """
    users, children = _user_classes(problem), children_by_node(problem)
    child_classes = [
        sorted({child for node in nodes for child in children[node]})
        for nodes in nodes_by_class(problem)
    ]

    def shared_by_all_users(klass: int, sets: _Sets) -> int | None:
        common: int | None = None
        for user in () if klass == problem.root else users[klass]:
            above = sets[user]
            if above is not None:
                common = above if common is None else common & above
        return 0 if klass == problem.root else common

    order = reversed(derivations(problem))
    return _greatest_fixpoint(order, child_classes, shared_by_all_users, check)


def _greatest_fixpoint(
    order: Iterable[int],
    dependents: Adjacency,
    common: Callable[[int, _Sets], int | None],
    check: Check,
) -> list[int]:
    """Return, per class, the largest sets with ``sets[m] = common(m, sets) + {m}``.

    Args:
        order: the classes, in an order in which few of them have to be looked at twice. Of those to look
            at, the first in it is next: in the order of discovery, each is looked at tens of times.
        dependents: per class, those whose set depends on its own.
        common: what a class's set is but for itself; None for the set of all classes.
        check: asked often.
    """
    sets: list[int | None] = [None] * len(dependents)
    classes = list(order)
    place = {klass: number for number, klass in enumerate(classes)}
    queue, queued, turn = list(range(len(classes))), [True] * len(dependents), 0
    while queue:
        if turn % ASKED_EVERY == 0:
            check()
        turn += 1
        klass = classes[heappop(queue)]
        queued[klass] = False
        common_bits = common(klass, sets)
        if common_bits is None or common_bits | (1 << klass) == sets[klass]:
            continue
        sets[klass] = common_bits | (1 << klass)
        for dependent in dependents[klass]:
            if not queued[dependent]:
                queued[dependent] = True
                heappush(queue, place[dependent])
    return [bits if bits is not None else 1 << klass for klass, bits in enumerate(sets)]


def members_of(bits: int) -> list[int]:
    """Return the classes of a set, in order."""
    raw = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
    flags = np.unpackbits(np.frombuffer(raw, dtype=np.uint8), bitorder="little")
    members: list[int] = np.flatnonzero(flags).tolist()
    return members


def node_needs(
    problem: ExtractionProblem, required: Sequence[int], check: Check = unlimited
) -> list[int]:
    """Return, per e-node, the union of the required classes of its children."""
    needs = []
    for node, children in enumerate(children_by_node(problem)):
        if node % ASKED_EVERY == 0:
            check()
        union = 0
        for child in children:
            union |= required[child]
        needs.append(union)
    return needs


def _user_classes(problem: ExtractionProblem) -> list[list[int]]:
    """Return, per class, the classes of the e-nodes that need it."""
    owner = problem.node_class.tolist()
    return [sorted({owner[node] for node in users}) for users in parents_by_class(problem)]
