"""The form of a set of e-nodes: what it computes, whatever its weights and operands are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from relational_tensat.base.records import record
from relational_tensat.explore.strategies.blocks.loaded import LoadedGraph

#: Equal forms are isomorphic sets of e-nodes, in corresponding order.
Form: TypeAlias = tuple[object, ...]


@record
class Part:
    """Some e-nodes of a graph.

    Attributes:
        nodes: operands first.
        free: what they use from outside but for constants, in the order of first use.
        constants: the constants that they use.
        form: equal for two parts if renaming ``free`` and ``nodes``, one by one, makes them the same.
    """

    nodes: tuple[int, ...]
    free: tuple[int, ...]
    constants: tuple[int, ...]
    form: Form


def part_of(graph: LoadedGraph, nodes: Sequence[int], mark: int = 0) -> Part:
    """Return the part of a graph that some e-nodes are.

    Args:
        nodes: in ascending order; no leaves.
        mark: one of them whose place is part of the form.
    """
    local = {node: index for index, node in enumerate(nodes)}
    free: dict[int, int] = {}
    constants: dict[int, None] = {}
    form: list[object] = []

    def operand(node: int) -> object:
        if node in local:
            return local[node]
        if graph.is_constant(node):
            constants[node] = None
            return "constant", graph.nodes[node].signature
        if node not in free:
            free[node] = len(free)
        kind = "value" if not graph.is_leaf(node) else graph.op(node)
        is_known = node not in graph.on_inputs
        return kind, is_known, graph.type_id(node), free[node]

    for node in nodes:
        signature, children = graph.nodes[node]
        form.append((signature, *map(operand, children)))
    form.append(local.get(mark))
    return Part(tuple(nodes), tuple(free), tuple(constants), tuple(form))
