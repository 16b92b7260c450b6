"""Reductions that decide a class once and for all and write its children into its users."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from relational_tensat.base.deadline import Check, unlimited
from relational_tensat.extract.exact.reduce.declaration import Stage, reduction
from relational_tensat.extract.exact.reduce.reduced import Reduced, keep
from relational_tensat.extract.index import (
    children_by_node,
    derivations,
    nodes_by_class,
    parents_by_class,
)
from relational_tensat.extract.problem import Ints
from relational_tensat.extract.techniques import Gain


@reduction(
    "free-classes",
    "settle classes that can be had for nothing",
    stage=Stage.LINEAR,
    order=30,
    earns_on=Gain("nasnet_a k=2", "simplex_iterations"),
)
def inline_free_classes(reduced: Reduced, check: Check = unlimited) -> Reduced:
    """Decide every class that can be derived at cost 0, and need it nowhere any more.

    Taking the free derivation changes no cost and, as it depends on free classes only, closes no cycle.
    """
    problem = reduced.problem
    choice = derivations(problem, problem.cost_us == 0.0)
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
    stage=Stage.LINEAR,
    order=40,
    earns_on=Gain("rings 300", "simplex_iterations"),
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
