"""Chains of a model: what a value is computed of by functions and reductions that nothing else uses.

Several of them are one with as many values where one reads the other's, or all read the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from relational_tensat.mugraph.regions.groups import groups
from relational_tensat.tensor import Graph, Node, TensorType

_FUNCTIONS = ("abs", "erf", "exp", "gelu", "neg", "reciprocal", "relu", "sigmoid", "sqrt", "tanh")
_BINARY = ("add", "div", "mul", "sub")
_REDUCTIONS = ("reduce_max", "reduce_mean", "reduce_sum")
#: What chains are made of.
OPERATORS = frozenset({*_FUNCTIONS, *_BINARY, "pow", *_REDUCTIONS, "layer_norm"})
#: Of a chain, and of a kernel.
MOST_INPUTS = 9


@dataclass(frozen=True, slots=True)
class Chain:
    """Nodes that compute one value, or several.

    Attributes:
        nodes: in topological order.
        inputs: what they read of others, in order.
        outputs: the values, in the order of the nodes.
    """

    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def chains(graph: Graph) -> list[Chain]:
    """Return the largest chains of at least two operators and few inputs, then groups of these.

    Of those with one value each node is in one. A single operator may be one of a group.
    """
    alone = _chains(graph)
    together = (
        _chain(group.nodes, group.outputs, graph)
        for group in groups(graph, [chain.nodes for chain in alone])
    )
    return [
        chain
        for chain in (*alone, *together)
        if len(chain.nodes) > 1 and len(chain.inputs) <= MOST_INPUTS
    ]


def _chains(graph: Graph) -> list[Chain]:
    """Return the largest chains with one value, those of one operator too."""
    makers = {name: node for node in graph.nodes for name in node.outputs}
    users: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in node.inputs:
            users.setdefault(name, []).append(node)
    taken: set[str] = set()
    found = []
    for node in reversed(graph.nodes):
        if node.outputs[0] in taken or not _is_fit(node, graph):
            continue
        chain = _cone(node, graph, makers, users)
        taken.update(member.outputs[0] for member in chain.nodes)
        found.append(chain)
    return found[::-1]


def exponent_of(node: Node, graph: Graph) -> float | None:
    """Return a power's exponent, if it is one number; None where it is a tensor."""
    weight = graph.weights.get(node.inputs[1])
    if weight is None or weight.data is None or weight.type.size != 1:
        return None
    return float(np.asarray(weight.data).item())


def _cone(
    last: Node, graph: Graph, makers: Mapping[str, Node], users: Mapping[str, list[Node]]
) -> Chain:
    """Return a node and what is computed for it only."""
    members = {last.outputs[0]: last}
    pending = [last]
    while pending:
        for name in _operands(pending.pop(), graph):
            node = makers.get(name)
            if node is None or name in members or not _is_fit(node, graph) or name in graph.outputs:
                continue
            if all(user.outputs[0] in members for user in users[name]):
                members[name] = node
                pending.append(node)
        if not pending:  # a value of several users may be theirs only now
            pending = [
                node
                for node in members.values()
                if any(
                    name not in members
                    and name in makers
                    and name not in graph.outputs
                    and _is_fit(makers[name], graph)
                    and all(user.outputs[0] in members for user in users[name])
                    for name in _operands(node, graph)
                )
            ]
    nodes = tuple(node for node in graph.nodes if node.outputs[0] in members)
    return _chain(nodes, last.outputs, graph)


def _chain(nodes: tuple[Node, ...], outputs: tuple[str, ...], graph: Graph) -> Chain:
    members = {node.outputs[0] for node in nodes}
    read = (name for node in nodes for name in _operands(node, graph) if name not in members)
    return Chain(nodes, tuple(dict.fromkeys(read)), outputs)


def _operands(node: Node, graph: Graph) -> tuple[str, ...]:
    """Return what a node reads; an exponent that is a number is no tensor of it."""
    is_number = node.op == "pow" and exponent_of(node, graph) is not None
    return node.inputs[:1] if is_number else node.inputs


def _is_fit(node: Node, graph: Graph) -> bool:
    if node.op not in OPERATORS or len(node.outputs) != 1:
        return False
    if node.attrs.get("approximate", "none") != "none" or not node.attrs.get("keepdims", True):
        return False
    kinds = [graph.types[name] for name in (*node.inputs, *node.outputs)]
    return all(isinstance(kind, TensorType) and kind.dtype == "float32" for kind in kinds)
