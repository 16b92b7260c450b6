"""Reductions that take a class away: its children, or its e-nodes, go into the e-nodes that need it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from relational_tensat.base.deadline import Check, unlimited
from relational_tensat.extract.exact.reduce.declaration import ReductionStage, reduction
from relational_tensat.extract.exact.reduce.smaller_problem import Draft, Reduced, keep
from relational_tensat.extract.index import (
    children_by_node,
    derivations_by,
    nodes_by_class,
    parents_by_class,
)
from relational_tensat.extract.problem import Ints
from relational_tensat.extract.techniques import TechniqueGain

_MORE_EDGES = 4
"""A class is merged into its user where that makes at most so many more edges."""


@reduction(
    "single-parents",
    "merge a class of one e-node into the only e-node that needs it",
    stage=ReductionStage.LINEAR,
    order=60,
    earns_on=TechniqueGain("nasrnn k=1, unfiltered", "simplex_iterations"),
)
def merge_single_parents(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Merge a class with one e-node, needed by one e-node only, into that e-node.

    A choice that takes the one takes the other: their common costs and needs are the same in every choice.
    """
    return _merged(reduced, 1, unlimited)


@reduction(
    "single-users",
    "merge a class of several e-nodes into the class of the only one that needs it",
    stage=ReductionStage.COSTLY,
    order=10,
    earns_on=TechniqueGain("rings 300", "simplex_iterations"),
)
def merge_single_users(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Merge a class needed by one e-node only into that e-node's class, each way apart.

    If only e-node ``u`` needs class ``d``, then a choice with ``u`` has one e-node ``f`` of ``d``,
    which nobody else needs: instead of ``u`` the class of ``u`` gets one e-node per ``f``, which
    costs and needs what ``u`` and ``f`` do. Where ``f`` needs the class of ``u``, they were in no
    acyclic choice together.
    """
    return _merged(reduced, None, check)


def _merged(reduced: Reduced, most_members: int | None, check: Check) -> Reduced:
    draft = Draft(reduced)
    waiting = [klass for klass, users in enumerate(draft.users) if len(users) == 1]
    has_changed = False
    while waiting:
        check()
        klass = waiting.pop()
        if klass == draft.root or len(draft.users[klass]) != 1:
            continue
        (user,) = draft.users[klass]
        members = list(draft.members[klass])
        if (most_members is not None and len(members) > most_members) or not members:
            continue
        if (len(members) - 1) * (len(draft.children[user]) - 1) > _MORE_EDGES:
            continue
        owner = draft.owner[user]
        if owner == klass or (owner == draft.root and len(members) > 1):  # a root of one stays so
            continue
        has_changed = True
        child_classes = {child for node in members for child in draft.children[node]}
        for node in members:
            if owner not in draft.children[node]:
                draft.merge(user, node)
        draft.drop(user)
        for node in members:
            draft.drop(node)
        waiting.extend(sorted(child for child in child_classes if len(draft.users[child]) == 1))
    return draft.finish() if has_changed else reduced


@reduction(
    "free-classes",
    "settle classes that can be had for nothing",
    stage=ReductionStage.LINEAR,
    order=30,
    earns_on=TechniqueGain("nasnet_a k=2", "simplex_iterations"),
)
def inline_free_classes(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Decide every class that can be derived at cost 0, and need it nowhere any more.

    Taking the free derivation changes no cost and, as it depends on free classes only, closes no cycle.
    """
    problem = reduced.problem
    choice = derivations_by(problem, problem.cost_us == 0.0)
    if not choice:
        return reduced
    children = children_by_node(problem)
    nodes = np.ones(problem.n_nodes, dtype=np.bool_)
    fixed = reduced.fixed.copy()
    for klass, node in choice.items():
        fixed[reduced.class_origin[klass]] = reduced.node_origin[node]
    nodes[np.isin(problem.node_class, list(choice))] = False
    if problem.root in choice:
        nodes[choice[problem.root]] = True
    needs = [[child for child in part if child not in choice] for part in children]
    return keep(reduced, nodes, fixed=fixed, edges=_edges(needs))


@reduction(
    "single-free",
    "replace a class of one free e-node by that e-node's children",
    stage=ReductionStage.LINEAR,
    order=40,
    earns_on=TechniqueGain("rings 300", "simplex_iterations"),
)
def inline_single_free(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Replace a class whose only e-node is free by the children of that e-node.

    Only where the number of edges does not grow.
    """
    problem = reduced.problem
    children = [dict.fromkeys(part) for part in children_by_node(problem)]
    parents = [dict.fromkeys(part) for part in parents_by_class(problem)]
    fixed = reduced.fixed.copy()
    nodes = np.ones(problem.n_nodes, dtype=np.bool_)
    for klass, members in enumerate(nodes_by_class(problem)):
        if klass == problem.root or len(members) != 1 or problem.cost_us[members[0]] > 0:
            continue
        inner = children[members[0]]
        if klass in inner or len(inner) * len(parents[klass]) > len(inner) + len(parents[klass]):
            continue
        _substitute(klass, members[0], list(parents[klass]), children, parents)
        fixed[reduced.class_origin[klass]] = reduced.node_origin[members[0]]
        nodes[members[0]] = False
    if nodes.all():
        return reduced
    return keep(reduced, nodes, fixed=fixed, edges=_edges(children))


def _substitute(
    klass: int,
    inner: int,
    users: list[int],
    children: list[dict[int, None]],
    parents: list[dict[int, None]],
) -> None:
    """In every user, put the children of e-node ``inner`` in the place of ``klass``."""
    for child in children[inner]:
        parents[child].pop(inner, None)
    for user in users:
        del children[user][klass]
        for child in children[inner]:
            children[user][child] = None
            parents[child][user] = None
    parents[klass].clear()


def _edges(children: Iterable[Iterable[int]]) -> tuple[Ints, Ints]:
    """Return (e-node, child class) pairs as two arrays."""
    owner: list[int] = []
    child: list[int] = []
    for node, part in enumerate(children):
        for klass in part:
            owner.append(node)
            child.append(klass)
    return np.array(owner, dtype=np.int32), np.array(child, dtype=np.int32)
